//! Ranks that run scripts: what each has done, what is on its way to it, and what its engine was given.
//!
//! The machine decides nothing. A model says which rank does its next step and which message arrives next; the machine
//! does it, by MPI's rules, and keeps the calls of each rank's engine.

use std::collections::{BTreeMap, VecDeque};

use tagwire_base::{ContextId, Rank, Tag};
use tagwire_matching::trace::{Event, Size};
use tagwire_matching::{Capacity, Envelope, Pattern};

use super::{Action, Outgoing, Request, Script};
use crate::error::{Error, Result};
use crate::trace::Call;
use crate::walk::{Change, Search, Walk};

/// All ranks.
#[derive(Debug)]
pub(super) struct Machine<'a> {
    ranks: Vec<Runner<'a>>,
    /// Messages on their way, by their source and target, in their order.
    channels: BTreeMap<(u32, u32), VecDeque<Message>>,
    woken: Vec<u32>,
    is_cut: bool,
}

/// A message on its way.
#[derive(Debug, Clone, Copy)]
struct Message {
    outgoing: Outgoing,
    /// The send, which is complete with the match where it is synchronous.
    send: Request,
}

/// One rank.
#[derive(Debug)]
struct Runner<'a> {
    script: &'a Script,
    /// The next step.
    next: usize,
    /// When each operation was complete; `None`: it is not.
    complete: Vec<Option<u64>>,
    walk: Walk,
    /// The receive of each entry of the queue of receives, by its number, and the sender of each one of messages.
    receives: Vec<Request>,
    messages: Vec<(u32, Request, bool)>,
    /// What the last probe found.
    probed: Option<Envelope>,
    calls: Vec<Call>,
}

/// What became of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was done: what it waited for was there, a receive was posted, a message sent, so many nanoseconds computed.
    Done,
    Posted,
    Sent {
        to: u32,
        bytes: u64,
    },
    Computed(u64),
    /// It waits for what has not come.
    Blocked,
    /// There was none.
    Finished,
}

impl<'a> Machine<'a> {
    /// Returns the ranks before their first steps.
    ///
    /// # Errors
    /// [`Error::Script`] for a message to a rank that is not there, or with a tag that is none.
    pub(super) fn new(scripts: &'a [Script]) -> Result<Self> {
        for (rank, script) in scripts.iter().enumerate() {
            for step in script.steps() {
                if let Action::Send(Outgoing { to, tag, .. }, _) = step.action
                    && (to as usize >= scripts.len() || Tag::from_wire(tag).is_none())
                {
                    return Err(Error::Script(format!(
                        "rank {rank} sends to rank {to} with tag {tag}, and there are {} ranks",
                        scripts.len()
                    )));
                }
            }
        }
        let runner = |script: &'a Script| Runner {
            script,
            next: 0,
            complete: vec![None; script.requests() as usize],
            walk: Walk::new(Capacity::default()),
            receives: Vec::new(),
            messages: Vec::new(),
            probed: None,
            calls: Vec::new(),
        };
        Ok(Self {
            ranks: scripts.iter().map(runner).collect(),
            channels: BTreeMap::new(),
            woken: Vec::new(),
            is_cut: scripts.iter().any(Script::is_cut),
        })
    }

    /// How many ranks there are.
    pub(super) const fn size(&self) -> usize {
        self.ranks.len()
    }

    /// The pairs of ranks between which messages are on their way, in the order of pairs.
    pub(super) fn under_way(&self) -> impl Iterator<Item = (u32, u32)> {
        self.channels.keys().copied()
    }

    /// The ranks for which something came since this was asked before.
    pub(super) fn take_woken(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.woken)
    }

    pub(super) const fn woken_is_empty(&self) -> bool {
        self.woken.is_empty()
    }

    /// How many messages are on their way from one rank to another.
    pub(super) fn count(&self, pair: (u32, u32)) -> usize {
        self.channels.get(&pair).map_or(0, VecDeque::len)
    }

    /// Passes over a step that waits: a trace of another tool saw it done.
    pub(super) fn pass(&mut self, rank: u32) {
        self.ranks[rank as usize].next += 1;
    }

    /// When a trace of another tool saw the next step of a rank, where it did.
    pub(super) fn next_at(&self, rank: u32) -> Option<u64> {
        let runner = &self.ranks[rank as usize];
        runner.script.steps().get(runner.next)?.at
    }

    /// Does the next step of a rank at this time.
    pub(super) fn step(&mut self, rank: u32, at: u64) -> Outcome {
        let runner = &mut self.ranks[rank as usize];
        let Some(step) = runner.script.steps().get(runner.next) else {
            return Outcome::Finished;
        };
        let mut outcome = Outcome::Done;
        match &step.action {
            Action::Post(pattern, request) => {
                let met = runner.post(*pattern, *request, at);
                self.note_match(met, at);
                outcome = Outcome::Posted;
            }
            Action::PostProbed(request) => {
                if let Some(found) = runner.probed {
                    let met = runner.post(Pattern::exact(found), *request, at);
                    self.note_match(met, at);
                }
                outcome = Outcome::Posted;
            }
            Action::Send(outgoing, request) => {
                if !outgoing.synchronous {
                    runner.complete[request.0 as usize] = Some(at);
                }
                let (to, bytes) = (outgoing.to, outgoing.bytes);
                self.channels
                    .entry((rank, to))
                    .or_default()
                    .push_back(Message {
                        outgoing: *outgoing,
                        send: *request,
                    });
                outcome = Outcome::Sent { to, bytes };
            }
            Action::Wait(requests) => {
                if !requests.iter().all(|request| runner.is_complete(*request)) {
                    return Outcome::Blocked;
                }
            }
            Action::WaitAny(requests) => {
                let is_complete = |request: &Request| runner.is_complete(*request);
                if !requests.is_empty() && !requests.iter().any(is_complete) {
                    return Outcome::Blocked;
                }
            }
            Action::Probe(pattern) => {
                let event = Event::Probe(*pattern);
                let Some(found) = runner.walk.found(runner.walk.search(&event)) else {
                    return Outcome::Blocked;
                };
                runner.probed = Some(found);
                runner.call(event, at);
            }
            Action::Cancel(request) => runner.cancel(*request, at),
            Action::Compute(nanos) => outcome = Outcome::Computed(*nanos),
        }
        self.ranks[rank as usize].next += 1;
        outcome
    }

    /// Has the next message from one rank to another arrive.
    pub(super) fn deliver(&mut self, pair: (u32, u32), at: u64) {
        let Some(channel) = self.channels.get_mut(&pair) else {
            return;
        };
        let message = channel.pop_front();
        if channel.is_empty() {
            self.channels.remove(&pair);
        }
        let Some(Message { outgoing, send }) = message else {
            return;
        };
        let (source, target) = pair;
        let envelope = Envelope {
            source: Rank::new(source),
            tag: Tag::from_wire(outgoing.tag).expect("it was looked at"),
            context: ContextId::new(outgoing.context),
        };
        self.woken.push(target);
        let runner = &mut self.ranks[target as usize];
        let change = runner.call(Event::Arrive(envelope, Size::of(outgoing.bytes)), at);
        match change {
            Change::ReceiveLeft(entry, _) => {
                let receive = runner.receives[entry.number as usize];
                runner.complete[receive.0 as usize] = Some(at);
                if outgoing.synchronous {
                    self.note_match(Some((source, send)), at);
                }
            }
            _ => runner.messages.push((source, send, outgoing.synchronous)),
        }
    }

    /// A synchronous send is complete.
    fn note_match(&mut self, met: Option<(u32, Request)>, at: u64) {
        if let Some((rank, send)) = met {
            self.woken.push(rank);
            self.ranks[rank as usize].complete[send.0 as usize] = Some(at);
        }
    }

    /// What a rank that is blocked waits for: the patterns of its receives, in the order of posting, or that of its probe.
    pub(super) fn wants(&self, rank: u32) -> Vec<Pattern> {
        let runner = &self.ranks[rank as usize];
        let requests = match runner
            .script
            .steps()
            .get(runner.next)
            .map(|step| &step.action)
        {
            Some(Action::Wait(requests) | Action::WaitAny(requests)) => requests,
            Some(Action::Probe(pattern)) => return vec![*pattern],
            _ => return Vec::new(),
        };
        let entries = runner.walk.receives.entries.iter();
        let wanted = entries.filter(|entry| {
            let receive = runner.receives[entry.number as usize];
            requests.contains(&receive)
        });
        wanted.map(|entry| entry.what).collect()
    }

    /// How many messages from one rank to another come up to the first that such a receive takes.
    pub(super) fn messages_until(&self, pair: (u32, u32), pattern: &Pattern) -> Option<usize> {
        let place = self.channels.get(&pair)?.iter().position(|message| {
            pattern.source.accepts(Rank::new(pair.0))
                && pattern.context.as_u16() == message.outgoing.context
                && Tag::from_wire(message.outgoing.tag).is_some_and(|tag| pattern.tag.accepts(tag))
        })?;
        Some(place + 1)
    }

    /// Whether a rank has done all its steps.
    pub(super) fn is_finished(&self, rank: u32) -> bool {
        let runner = &self.ranks[rank as usize];
        runner.next >= runner.script.steps().len()
    }

    /// Whether ranks may wait for what a file that was cut does not have.
    pub(super) const fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// A rank waits for ever.
    pub(super) fn stuck(&self, rank: u32) -> Error {
        let runner = &self.ranks[rank as usize];
        let step = runner.next + 1;
        let line = match runner.script.steps().get(runner.next) {
            Some(step) if step.line > 0 => format!(" (line {})", step.line),
            _ => String::new(),
        };
        let wanted = self.wants(rank);
        let what = match wanted.first() {
            Some(pattern) => format!("for a message that is never sent ({pattern})"),
            None => "for a synchronous send that no receive takes".to_owned(),
        };
        Error::Script(format!(
            "rank {rank} waits for ever in step {step}{line}, {what}"
        ))
    }

    /// The calls of each rank's engine.
    pub(super) fn into_calls(self) -> Vec<Vec<Call>> {
        self.ranks.into_iter().map(|runner| runner.calls).collect()
    }
}

impl Runner<'_> {
    fn is_complete(&self, request: Request) -> bool {
        self.complete[request.0 as usize].is_some()
    }

    /// Posts a receive. Returns the rank and the synchronous send of the message that it takes.
    fn post(&mut self, pattern: Pattern, request: Request, at: u64) -> Option<(u32, Request)> {
        let change = self.call(Event::Post(pattern), at);
        let Change::MessageLeft(entry, _) = change else {
            self.receives.push(request);
            return None;
        };
        self.complete[request.0 as usize] = Some(at);
        let (source, send, synchronous) = self.messages[entry.number as usize];
        synchronous.then_some((source, send))
    }

    fn cancel(&mut self, request: Request, at: u64) {
        let place = self.receives.iter().position(|one| *one == request);
        // One that took a message at once was never queued.
        if let Some(number) = place.and_then(|place| u32::try_from(place).ok()) {
            self.call(Event::Cancel(number), at);
            self.complete[request.0 as usize].get_or_insert(at);
        }
    }

    /// Does a call of the engine, and keeps it.
    fn call(&mut self, event: Event, at: u64) -> Change {
        let search = self.walk.search(&event);
        let matched = match (event, search) {
            (Event::Cancel(number), _) => {
                let mut entries = self.walk.receives.entries.iter();
                entries.any(|entry| entry.number == number)
            }
            (_, search) => search.is_some_and(Search::is_hit),
        };
        let call = Call { at, event, matched };
        self.calls.push(call);
        let change = self.walk.apply(&call, search);
        change.expect("its answer is that of the search")
    }
}
