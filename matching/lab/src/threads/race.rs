//! `--order-from race`: real threads of two ranks make the exchange, and a trace says in which order receives were posted and
//! messages came.
//!
//! One rank has the threads that receive, the other one a thread for each cell that sends, of all processes around: two ranks in
//! place of 9 or 27, as in "Low-cost MPI multithreaded message matching benchmarking" (HPCC 2020). Threads that send enter the layer
//! by its lock, and their messages leave in this order.

use std::fmt;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use serde::Serialize;
use tagwire_base::{Rank, Tag};
use tagwire_matching::trace::Event;
use tagwire_matching::{Engines, Envelope, Pattern};
use tagwire_pml::SendMode;

use super::{Exchange, Process};
use crate::error::{Error, Result};
use crate::order::Drain;
use crate::real::{Member, NUMBER, Posted, Way, message, recorded};
use crate::trace::Trace;

/// What the threads ran on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Race {
    processors: usize,
    transport: String,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Raced {
    pub(super) race: Race,
    /// Of the receiving rank.
    pub(super) trace: Trace,
    pub(super) drains: Vec<Drain>,
}

impl fmt::Display for Race {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            processors,
            transport,
        } = self;
        write!(
            f,
            "race: threads of two ranks over {transport}, on {processors} processors: an order of this machine, and of this run"
        )
    }
}

/// How far the threads have come, over all rounds.
#[derive(Debug, Default)]
struct Progress {
    posted: AtomicU32,
    /// Rounds whose messages have come.
    drained: AtomicU32,
    sent: AtomicU32,
}

/// Has threads race for the order of an exchange, again and again.
///
/// # Errors
/// [`Error::Usage`] for more threads than are made, [`Error::Script`] for what ranks cannot do.
pub(super) fn race(
    exchange: &Exchange,
    rounds: u32,
    way: Way<'_>,
    known: &Engines,
) -> Result<Raced> {
    let Process {
        grid,
        stencil,
        receiving,
        sending,
        ..
    } = &exchange.process;
    let case = format!("the race of {grid} with {stencil} cells");
    if receiving + sending > MOST {
        return Err(Error::Usage(format!(
            "{case} has {receiving} threads that receive and {sending} that send, and at most {MOST} are made"
        )));
    }
    let failed = |why: String| Error::Script(format!("{case}: {why}"));
    let progress = Progress::default();
    let traces = recorded(2, way, known, |member| match member.port.rank().as_u32() {
        0 => receive(member, exchange, rounds, &progress),
        _ => send(member, exchange, rounds, &progress),
    });
    let trace = traces.map_err(failed)?.into_iter().next();
    let trace = trace.ok_or_else(|| failed("it left no trace".to_owned()))?;
    let drains = drains(&trace, exchange.messages.len()).map_err(failed)?;
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let race = Race {
        processors,
        transport: way.transport.to_owned(),
    };
    Ok(Raced {
        race,
        trace,
        drains,
    })
}

/// The rank whose threads receive. Its main thread takes what comes.
fn receive(
    member: &Member<'_>,
    exchange: &Exchange,
    rounds: u32,
    progress: &Progress,
) -> Result<(), String> {
    let entries = exchange.messages.len() as u32;
    let posted: Mutex<Vec<(u32, Posted)>> = Mutex::new(Vec::new());
    let post = |numbers: &[u32]| -> Result<(), String> {
        for round in 0..rounds {
            member.wait_for(|| progress.drained.load(Ordering::Acquire) == round)?;
            for number in numbers {
                let envelope = of_sender(exchange.messages[*number as usize]);
                let receive = member.irecv(Pattern::exact(envelope), NUMBER)?;
                let mut posted = posted.lock().unwrap_or_else(PoisonError::into_inner);
                posted.push((*number, receive));
                progress.posted.fetch_add(1, Ordering::AcqRel);
            }
        }
        Ok(())
    };
    let take = || -> Result<(), String> {
        for round in 0..rounds {
            let all = entries * (round + 1);
            member.until("receives were not posted", || {
                let posted = progress.posted.load(Ordering::Acquire);
                Ok((posted == all).then_some(()))
            })?;
            let receives =
                std::mem::take(&mut *posted.lock().unwrap_or_else(PoisonError::into_inner));
            for (number, receive) in receives {
                member.until("a message did not come", || member.ended(receive.request))?;
                let found = receive.room.number();
                if found != u64::from(number) {
                    return Err(format!(
                        "the receive of message {number} took message {found}"
                    ));
                }
            }
            progress.drained.fetch_add(1, Ordering::AcqRel);
        }
        Ok(())
    };
    with_threads(member, &exchange.received, post, take)
}

/// The rank whose threads send. Its main thread makes progress until all is sent.
fn send(
    member: &Member<'_>,
    exchange: &Exchange,
    rounds: u32,
    progress: &Progress,
) -> Result<(), String> {
    let entries = exchange.messages.len() as u32;
    let send = |numbers: &[u32]| -> Result<(), String> {
        for round in 0..rounds {
            let all = entries * (round + 1);
            member.wait_for(|| progress.posted.load(Ordering::Acquire) >= all)?;
            let mut sends = Vec::new();
            for number in numbers {
                let Envelope { tag, context, .. } = exchange.messages[*number as usize];
                let data = message(u64::from(*number), NUMBER);
                let to = Rank::new(0);
                let sent = member
                    .port
                    .isend(data, to, tag, context, SendMode::Standard);
                sends.push(sent.map_err(|error| error.to_string())?);
            }
            for request in sends {
                member.until("a message was not sent", || member.ended(request))?;
                progress.sent.fetch_add(1, Ordering::AcqRel);
            }
        }
        Ok(())
    };
    let wait = || {
        member.until("messages were not sent", || {
            let sent = progress.sent.load(Ordering::Acquire);
            Ok((sent == entries * rounds).then_some(()))
        })
    };
    with_threads(member, &exchange.sent, send, wait)
}

/// Has a thread do something for each part, and this one something else.
fn with_threads(
    member: &Member<'_>,
    parts: &[Vec<u32>],
    each: impl Fn(&[u32]) -> Result<(), String> + Sync,
    own: impl FnOnce() -> Result<(), String>,
) -> Result<(), String> {
    thread::scope(|scope| {
        for part in parts {
            let each = &each;
            let run = move || {
                if let Err(why) = each(part) {
                    member.fail(&why);
                }
            };
            let builder = thread::Builder::new().stack_size(STACK);
            if let Err(error) = builder.spawn_scoped(scope, run) {
                let why = format!("the machine has no thread more: {error}");
                member.fail(&why);
                return Err(why);
            }
        }
        own()
    })
}

/// A message as it is sent: from the one rank that plays all processes around.
fn of_sender(envelope: Envelope) -> Envelope {
    Envelope {
        source: Rank::new(1),
        ..envelope
    }
}

/// The drains of a trace: each time all receives, then all messages.
fn drains(trace: &Trace, entries: usize) -> Result<Vec<Drain>, String> {
    let number = |tag: Tag| u32::try_from(tag.as_i32()).ok();
    let (mut posted, mut come) = (Vec::new(), Vec::new());
    for call in &trace.calls {
        match call.event {
            Event::Post(pattern) => posted.extend(pattern.tag.tag().and_then(number)),
            Event::Arrive(message, _) => {
                // A message that is refused comes again.
                come.extend(number(message.tag).filter(|_| call.matched));
            }
            _ => {}
        }
    }
    let whole = |numbers: &[u32]| {
        let mut sorted = numbers.to_vec();
        sorted.sort_unstable();
        sorted.into_iter().eq(0..entries as u32)
    };
    let pairs = posted.chunks(entries).zip(come.chunks(entries));
    let drains: Vec<Drain> = pairs
        .map(|(posted, come)| Drain {
            posted: posted.to_vec(),
            come: come.to_vec(),
        })
        .collect();
    match posted.len() == come.len()
        && drains
            .iter()
            .all(|one| whole(&one.posted) && whole(&one.come))
    {
        true => Ok(drains),
        false => Err(format!(
            "its trace has {} receives and {} messages for them, which are not those of whole drains of {entries}",
            posted.len(),
            come.len()
        )),
    }
}

/// Most threads of both ranks.
const MOST: usize = 8192;
/// Bytes of a thread's stack.
const STACK: usize = 512 << 10;

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use super::*;
    use crate::trace::Call;

    /// Every message of every round comes once, those of each thread in the order in which it sends them, and receives likewise.
    #[test]
    fn threads_of_two_ranks_make_whole_drains_in_which_each_thread_keeps_its_order() {
        let exchange = Exchange::new(&"4x4".parse().unwrap(), "9".parse().unwrap());
        let raced = race(&exchange, 3, Way::SHM, &Engines::default()).unwrap();
        assert_eq!(raced.drains.len(), 3);
        let keeps = |order: &[u32], threads: &[Vec<u32>]| {
            threads.iter().all(|own| {
                let of_thread = order.iter().filter(|number| own.contains(number));
                of_thread.eq(own)
            })
        };
        for drain in &raced.drains {
            assert!(keeps(&drain.posted, &exchange.received), "{drain:?}");
            assert!(keeps(&drain.come, &exchange.sent), "{drain:?}");
        }
        let told = raced.race.to_string();
        assert!(
            told.starts_with("race: threads of two ranks over shm, on "),
            "{told}"
        );
    }

    #[test]
    fn what_is_no_race_is_refused() {
        let one = Exchange::new(&"4x4".parse().unwrap(), "5".parse().unwrap());
        let raced = race(&one, 2, Way::SHM, &Engines::default()).unwrap();
        let mut cut = raced.trace.clone();
        let is_message = |call: &Call| matches!(call.event, Event::Arrive(..)) && call.matched;
        let last = cut.calls.iter().rposition(is_message).unwrap();
        cut.calls.remove(last);
        let told = drains(&cut, one.messages.len()).unwrap_err();
        assert!(told.contains("32 receives and"), "{told}");
        let many = Exchange::new(&"64x64x8".parse().unwrap(), "27".parse().unwrap());
        let refused = race(&many, 1, Way::SHM, &Engines::default()).unwrap_err();
        assert_eq!(refused.exit_status(), 1);
        assert!(
            refused.to_string().contains("at most 8192 are made"),
            "{refused}"
        );
        let lost = Way {
            transport: "shn",
            ..Way::SHM
        };
        let refused = race(&one, 1, lost, &Engines::default()).unwrap_err();
        assert_eq!(refused.exit_status(), 2);
    }
}
