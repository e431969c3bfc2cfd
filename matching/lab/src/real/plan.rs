//! What real ranks do for the calls of a trace, and what has to come of it.

use std::collections::{BTreeMap, BTreeSet};

use tagwire_base::{ContextId, Rank, SourceSelector};
use tagwire_matching::trace::Event;
use tagwire_matching::{Envelope, Pattern};

use super::content::NUMBER;
use crate::trace::Trace;
use crate::walk::{Change, Left, Walk};

/// The calls that real ranks make.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Ranks of the job: the one whose trace it is, then those whose messages it is about.
    pub(super) ranks: u32,
    /// Contexts beside the world's.
    pub(super) contexts: usize,
    pub(super) steps: Vec<Step>,
    /// Calls that only a layer makes, or that found no room: nothing is done for them.
    pub(crate) left_out: usize,
    /// The messages that are queued behind the last call.
    pub(super) queued: Vec<Envelope>,
}

/// What is done for a call.
#[derive(Debug)]
pub(super) struct Step {
    /// Its number in the trace, from 1 on.
    pub(super) call: usize,
    pub(super) action: Action,
}

#[derive(Debug)]
pub(super) enum Action {
    /// A receive with so much room, which takes this message at once or is queued.
    Post {
        pattern: Pattern,
        bytes: usize,
        takes: Option<u64>,
    },
    /// A message, which goes to this receive or is queued.
    Send {
        envelope: Envelope,
        number: u64,
        bytes: usize,
        goes_to: Option<u32>,
    },
    Probe {
        pattern: Pattern,
        finds: Option<Envelope>,
    },
    Claim {
        pattern: Pattern,
        takes: Option<(u64, usize)>,
    },
    /// The receive of this number, which is withdrawn or has matched.
    Cancel { receive: u32, withdrawn: bool },
}

/// A message as it is sent.
#[derive(Debug, Clone, Copy)]
struct Sent {
    number: u64,
    bytes: usize,
}

impl Plan {
    /// Returns what is done for the calls of a trace.
    ///
    /// # Errors
    /// A call that cannot be made again, or an answer that the rules do not give.
    pub(crate) fn new(trace: &Trace) -> Result<Self, String> {
        let names = Names::of(trace)?;
        let mut walk = Walk::new(trace.header.capacity);
        let mut plan = Self {
            ranks: names.ranks.len() as u32,
            contexts: names.contexts.len() - 1,
            steps: Vec::with_capacity(trace.calls.len()),
            left_out: 0,
            queued: Vec::new(),
        };
        // The messages that are queued, by their numbers in the queue, and the posts of receives.
        let (mut messages, mut posts) = (Vec::new(), Vec::new());
        for (index, call) in trace.calls.iter().enumerate() {
            let at = |why: String| format!("call {}: {why}", index + 1);
            let search = walk.search(&call.event);
            let found = walk.found(search);
            let change = walk.apply(call, search).map_err(at)?;
            let number = index as u64 + 1;
            let action = match (call.event, change) {
                (Event::Post(pattern), change) => match change {
                    Change::MessageLeft(entry, _) => {
                        let Sent { number, bytes } = messages[entry.number as usize];
                        Some(Action::Post {
                            pattern: names.pattern(pattern),
                            bytes,
                            takes: Some(number),
                        })
                    }
                    Change::ReceiveQueued => {
                        posts.push(plan.steps.len());
                        Some(Action::Post {
                            pattern: names.pattern(pattern),
                            bytes: NUMBER,
                            takes: None,
                        })
                    }
                    _ => None,
                },
                (Event::Arrive(envelope, _) | Event::ArriveExpected(envelope), change) => {
                    let bytes = match call.event {
                        Event::Arrive(_, size) => size.bytes().min(LONGEST as u64) as usize,
                        _ => 0,
                    };
                    let bytes = bytes.max(NUMBER);
                    let goes_to = match change {
                        Change::ReceiveLeft(entry, _) => {
                            plan.make_room(posts[entry.number as usize], bytes);
                            Some(entry.number)
                        }
                        Change::MessageQueued => {
                            messages.push(Sent { number, bytes });
                            None
                        }
                        // It stays with its sender, and comes again.
                        _ => {
                            plan.left_out += 1;
                            continue;
                        }
                    };
                    Some(Action::Send {
                        envelope: names.envelope(envelope),
                        number,
                        bytes,
                        goes_to,
                    })
                }
                (Event::Probe(pattern), _) => Some(Action::Probe {
                    pattern: names.pattern(pattern),
                    finds: found.map(|message| names.envelope(message)),
                }),
                (Event::Claim(pattern), change) => {
                    let takes = match change {
                        Change::MessageLeft(entry, _) => {
                            let Sent { number, bytes } = messages[entry.number as usize];
                            Some((number, bytes))
                        }
                        _ => None,
                    };
                    Some(Action::Claim {
                        pattern: names.pattern(pattern),
                        takes,
                    })
                }
                (Event::Cancel(receive), change) => Some(Action::Cancel {
                    receive,
                    withdrawn: matches!(change, Change::ReceiveLeft(_, Left::Withdrawn)),
                }),
                (Event::Discard(_), Change::MessageLeft(..)) => {
                    return Err(at(
                        "a message is thrown away whose sender was gone, and no sender is here"
                            .to_owned(),
                    ));
                }
                // What a layer asks for itself, and promises, which change no outcome.
                _ => None,
            };
            match action {
                Some(action) => plan.steps.push(Step {
                    call: index + 1,
                    action,
                }),
                None => plan.left_out += 1,
            }
        }
        let left = walk.messages.entries.iter();
        plan.queued = left.map(|entry| names.envelope(entry.what)).collect();
        Ok(plan)
    }

    /// A receive that is posted by an earlier step gets a message of so many bytes.
    fn make_room(&mut self, step: usize, needed: usize) {
        if let Some(Step {
            action: Action::Post { bytes, .. },
            ..
        }) = self.steps.get_mut(step)
        {
            *bytes = needed;
        }
    }
}

/// The ranks and contexts of a trace, and those of the job in their place.
///
/// Matching compares them and nothing else, so that the same matches with others in their order.
struct Names {
    ranks: BTreeMap<Rank, Rank>,
    contexts: BTreeMap<ContextId, ContextId>,
}

impl Names {
    fn of(trace: &Trace) -> Result<Self, String> {
        let own = Rank::new(trace.header.rank);
        let mut ranks = BTreeSet::new();
        let mut contexts = BTreeSet::new();
        for call in &trace.calls {
            let (source, context) = match call.event {
                Event::Post(pattern) | Event::Probe(pattern) | Event::Claim(pattern) => {
                    (pattern.source.rank(), pattern.context)
                }
                event => match event.message() {
                    Some(message) => (Some(message.source), message.context),
                    None => continue,
                },
            };
            ranks.extend(source);
            contexts.insert(context);
        }
        ranks.remove(&own);
        contexts.remove(&ContextId::WORLD);
        if ranks.len() >= MOST_RANKS {
            return Err(format!(
                "it is about {} other ranks, and a job of this process has at most {MOST_RANKS}",
                ranks.len()
            ));
        }
        let numbered = (1..).map(Rank::new);
        let ranks = ranks.into_iter().zip(numbered);
        let numbered = (1..).map(ContextId::new);
        let contexts = contexts.into_iter().zip(numbered);
        Ok(Self {
            ranks: ranks.chain([(own, Rank::new(0))]).collect(),
            contexts: contexts
                .chain([(ContextId::WORLD, ContextId::WORLD)])
                .collect(),
        })
    }

    fn envelope(&self, envelope: Envelope) -> Envelope {
        Envelope {
            source: self.ranks[&envelope.source],
            context: self.contexts[&envelope.context],
            ..envelope
        }
    }

    fn pattern(&self, pattern: Pattern) -> Pattern {
        let rank = pattern.source.rank();
        let source = rank.map(|rank| SourceSelector::exact(self.ranks[&rank]));
        Pattern {
            source: source.unwrap_or(SourceSelector::ANY),
            context: self.contexts[&pattern.context],
            ..pattern
        }
    }
}

/// Bytes of the longest message; longer ones are cut.
pub(crate) const LONGEST: usize = 64 << 10;

/// Ranks of a job.
pub(crate) const MOST_RANKS: usize = 256;
