//! What was sent and what was received in a run, and whether any legal matching explains it.
//!
//! Each receive with its message is an event. An event must come after those of earlier posted
//! receives that would have taken the same message, and after those of earlier messages of the
//! same source and context that the same receive would have taken (MPI-5.0, section 3.5). The run
//! is right exactly when these demands have no circle and nothing was passed over.

use tagwire_base::{ContextId, Rank, Tag};

use super::rig::{Checked, ensure, pattern};
use tagwire_pml::types::Status;

/// A message of a run. Its place in the list is its name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent {
    pub from: usize,
    pub to: usize,
    pub tag: Tag,
    pub context: ContextId,
    pub len: usize,
}

/// A receive (or claim) of a run, in the order of posting.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub at: usize,
    pub source: Option<usize>,
    pub tag: Option<Tag>,
    pub context: ContextId,
    /// What it got.
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
pub(super) struct History {
    pub sent: Vec<Sent>,
    pub wanted: Vec<Wanted>,
    taken: Vec<bool>,
    /// Ranks that died: what they sent may be lost.
    pub dead: Vec<usize>,
}

impl History {
    /// Finds out which message receive `number` got. In the order of posting: messages that look
    /// the same are taken in the order of sending.
    pub(super) fn identify(&mut self, number: usize, status: Status, bytes: &[u8]) -> Checked {
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

    /// Whether everything between the living arrived, and some legal matching explains the run.
    pub(super) fn check(&self) -> Checked {
        for (name, message) in self.sent.iter().enumerate() {
            let lost = !self.taken.get(name).copied().unwrap_or(false);
            let excused = self.dead.contains(&message.from) || self.dead.contains(&message.to);
            ensure!(!lost || excused, "message {name} ({message:?}) was lost");
        }
        let mut event_of = vec![None; self.sent.len()];
        for (number, receive) in self.wanted.iter().enumerate() {
            if let Some(name) = receive.got {
                event_of[name] = Some(number);
            }
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
    ) -> Checked {
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

#[cfg(test)]
mod tests {
    use super::super::rig::tag;
    use super::*;

    fn sent(from: usize, value: u32) -> Sent {
        Sent {
            from,
            to: 9,
            tag: tag(value),
            context: ContextId::WORLD,
            len: 8,
        }
    }

    fn wanted(source: Option<usize>, value: Option<u32>, got: Option<usize>) -> Wanted {
        Wanted {
            at: 9,
            source,
            tag: value.map(tag),
            context: ContextId::WORLD,
            got,
            excused: false,
        }
    }

    fn verdict(sent: Vec<Sent>, wanted: Vec<Wanted>) -> Checked {
        let mut taken = vec![false; sent.len()];
        wanted
            .iter()
            .filter_map(|receive| receive.got)
            .for_each(|name| taken[name] = true);
        History {
            sent,
            wanted,
            taken,
            dead: Vec::new(),
        }
        .check()
    }

    #[test]
    fn the_checker_tells_right_from_wrong() {
        let two = || vec![sent(0, 1), sent(0, 1)];
        let any = |got| wanted(None, None, got);
        assert!(verdict(two(), vec![any(Some(0)), any(Some(1))]).is_ok());
        assert!(
            verdict(two(), vec![any(Some(1)), any(Some(0))]).is_err(),
            "overtaken"
        );
        assert!(
            verdict(two(), vec![any(None), any(Some(0)), any(Some(1))]).is_err(),
            "passed over"
        );
        assert!(verdict(two(), vec![any(Some(0))]).is_err(), "lost");
        let others = || vec![sent(0, 1), sent(1, 1)];
        assert!(
            verdict(others(), vec![any(Some(1)), any(Some(0))]).is_ok(),
            "two sources"
        );
        let tags = || vec![sent(0, 1), sent(0, 2)];
        let picky = wanted(None, Some(2), Some(1));
        assert!(verdict(tags(), vec![picky, any(Some(0))]).is_ok());
        assert!(verdict(tags(), vec![any(Some(1)), wanted(None, Some(1), Some(0))]).is_err());
    }

    /// No pair is wrong by itself; all four together are.
    #[test]
    fn the_checker_finds_circles_over_two_sources() {
        let sent = vec![sent(0, 1), sent(0, 2), sent(1, 1), sent(1, 2)];
        let wanted = vec![
            wanted(Some(0), Some(2), Some(1)),
            wanted(None, Some(1), Some(2)),
            wanted(Some(0), None, Some(0)),
            wanted(Some(1), None, Some(3)),
        ];
        // Receive 2 must follow receive 1 (both take message 0), and that is all there is to it.
        assert!(verdict(sent.clone(), wanted.clone()).is_ok());
        let mut crossed = wanted;
        crossed[0] = super::Wanted {
            tag: None,
            ..crossed[0]
        };
        // Now receive 0 could have taken message 0 and got message 1: 2 before 0, 0 before 2.
        assert!(verdict(sent, crossed).is_err());
    }
}
