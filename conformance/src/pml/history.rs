//! What was sent and what was received in a run, and whether any legal matching explains it.
//!
//! Each receive with its message is an event. An event must come after those of earlier posted
//! receives that would have taken the same message, and after those of earlier messages of the
//! same source and context that the same receive would have taken (MPI-5.0, section 3.5). The run
//! is right exactly when these demands have no circle and nothing was passed over.

use tagwire_base::{ContextId, Rank, Tag};

use super::rig::{ensure, pattern};
use tagwire_pml::types::Status;

/// A message of a run. Its place in the list is its name.
#[derive(Debug, Clone, Copy)]
pub struct Sent {
    /// The rank that sent it.
    pub from: usize,
    /// The rank that it went to.
    pub to: usize,
    /// Its tag.
    pub tag: Tag,
    /// Its context.
    pub context: ContextId,
    /// Its length in bytes.
    pub len: usize,
}

/// A receive (or claim) of a run, in the order of posting.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// The rank that posted it.
    pub at: usize,
    /// The source that it names; `None` for any.
    pub source: Option<usize>,
    /// The tag that it names; `None` for any of the program's.
    pub tag: Option<Tag>,
    /// Its context.
    pub context: ContextId,
    /// The message that it got.
    pub got: Option<usize>,
    /// It was taken back, or failed with its peer: it demands nothing.
    pub excused: bool,
}

impl Wanted {
    /// Written apart from the layer's own selectors, which are under test.
    fn accepts(&self, message: &Sent) -> bool {
        self.at == message.to
            && self.context == message.context
            && self.source.is_none_or(|source| source == message.from)
            && match self.tag {
                Some(tag) => tag == message.tag,
                None => message.tag.as_i32() >= 0,
            }
    }
}

/// A run.
#[derive(Debug, Default)]
pub struct History {
    /// The messages, those of one source in the order of sending.
    pub sent: Vec<Sent>,
    /// The receives, those of one rank in the order of posting.
    pub wanted: Vec<Wanted>,
    /// The messages that [`identify`](Self::identify) has given out.
    taken: Vec<bool>,
    /// Ranks that died: what they sent may be lost.
    pub dead: Vec<usize>,
}

impl History {
    /// Returns a run in which nobody died.
    pub fn new(sent: Vec<Sent>, wanted: Vec<Wanted>) -> Self {
        Self {
            sent,
            wanted,
            ..Self::default()
        }
    }

    /// Finds out which message receive `number` got. In the order of posting: messages that look
    /// the same are taken in the order of sending.
    pub(super) fn identify(
        &mut self,
        number: usize,
        status: Status,
        bytes: &[u8],
    ) -> Result<(), String> {
        self.taken.resize(self.sent.len(), false);
        let receive = self.wanted[number];
        let found = self.sent.iter().enumerate().position(|(name, message)| {
            !self.taken[name]
                && message.from == status.source.index()
                && message.to == receive.at
                && message.tag == status.tag
                && message.context == receive.context
                && message.len == status.length
                && bytes[..message.len] == pattern(name, message.len)
        });
        let name = found.ok_or_else(|| {
            format!("receive {number} ({receive:?}) got what nobody sent, or sent once: {status:?}")
        })?;
        ensure!(
            receive.accepts(&self.sent[name]),
            "receive {number} ({receive:?}) got what it did not ask for: {:?}",
            self.sent[name]
        );
        self.taken[name] = true;
        self.wanted[number].got = Some(name);
        Ok(())
    }

    /// Checks that everything between the living arrived, and that some legal matching explains the run.
    ///
    /// # Errors
    ///
    /// A message that was lost, a receive or message that was passed over, or a circle of receives each of which has
    /// to come before the next.
    pub fn check(&self) -> Result<(), String> {
        let mut event_of = vec![None; self.sent.len()];
        for (number, receive) in self.wanted.iter().enumerate() {
            if let Some(name) = receive.got {
                event_of[name] = Some(number);
            }
        }
        for (name, message) in self.sent.iter().enumerate() {
            let lost = event_of[name].is_none();
            let excused = self.dead.contains(&message.from) || self.dead.contains(&message.to);
            ensure!(!lost || excused, "message {name} ({message:?}) was lost");
        }
        let mut before = vec![Vec::new(); self.wanted.len()];
        for (number, receive) in self.wanted.iter().enumerate() {
            if let Some(name) = receive.got {
                self.demands(number, name, &event_of, &mut before[number])?;
            }
        }
        find_circle(&before).map_or(Ok(()), |circle| {
            let lines: Vec<_> = circle
                .iter()
                .map(|number| {
                    let receive = &self.wanted[*number];
                    let message = receive.got.map(|name| (name, self.sent[name]));
                    format!("receive {number} {receive:?} with message {message:?}")
                })
                .collect();
            Err(format!(
                "out of order, each before the next:\n  {}",
                lines.join("\n  ")
            ))
        })
    }

    /// The events that have to come before receive `number` gets message `name`.
    fn demands(
        &self,
        number: usize,
        name: usize,
        event_of: &[Option<usize>],
        before: &mut Vec<usize>,
    ) -> Result<(), String> {
        let (receive, message) = (&self.wanted[number], &self.sent[name]);
        for (earlier, other) in self.wanted[..number].iter().enumerate() {
            if other.excused || !other.accepts(message) {
                continue;
            }
            ensure!(
                other.got.is_some(),
                "receive {earlier} ({other:?}) was passed over: {number} got message {name}"
            );
            before.push(earlier);
        }
        for (earlier, other) in self.sent[..name].iter().enumerate() {
            if other.from != message.from || !receive.accepts(other) {
                continue;
            }
            match event_of[earlier] {
                Some(event) => before.push(event),
                None => ensure!(
                    self.dead.contains(&other.from),
                    "message {earlier} ({other:?}) was passed over by {name}"
                ),
            }
        }
        Ok(())
    }

    /// Whether `rank` died.
    pub(super) fn is_dead(&self, rank: Rank) -> bool {
        self.dead.contains(&rank.index())
    }
}

/// Some of the events that each have to come before the next, round and round; `None` when there
/// is an order.
fn find_circle(before: &[Vec<usize>]) -> Option<Vec<usize>> {
    let mut waits: Vec<usize> = before.iter().map(Vec::len).collect();
    let mut after = vec![Vec::new(); before.len()];
    for (event, earlier) in before.iter().enumerate() {
        for other in earlier {
            after[*other].push(event);
        }
    }
    let mut ready: Vec<usize> = (0..before.len())
        .filter(|event| waits[*event] == 0)
        .collect();
    while let Some(event) = ready.pop() {
        for next in &after[event] {
            waits[*next] -= 1;
            if waits[*next] == 0 {
                ready.push(*next);
            }
        }
    }
    let mut event = (0..before.len()).find(|event| waits[*event] > 0)?;
    let mut path = Vec::new();
    while !path.contains(&event) {
        path.push(event);
        event = *before[event].iter().find(|other| waits[**other] > 0)?;
    }
    let start = path.iter().position(|other| *other == event)?;
    path.drain(..start);
    path.reverse();
    Some(path)
}
