//! Threads: who may call, from where.

use tagwire_base::Rank;

use super::Factory;
use super::rig::{
    ANYONE, ANYTHING, Checked, PATIENCE, WORLD, accepted, ensure, from, lend, on_threads, only,
    pattern, recv, same, send, tag, waiting,
};
use crate::common::at_length;
use tagwire_pml::error::Error;
use tagwire_pml::guard::ThreadLevel;
use tagwire_pml::messenger::Messenger;
use tagwire_pml::types::SendMode;

const THREADS: u32 = 4;

/// Runs `body` on several threads of this rank.
fn all_threads(port: &Messenger, body: impl Fn(u32) -> Checked + Sync) -> Checked {
    let ends: Vec<Checked> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let body = &body;
                scope.spawn(move || body(thread))
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|_| Err("a thread panicked".into()))
            })
            .collect()
    });
    let _ = port;
    ends.into_iter().collect()
}

pub(super) fn many_threads_share_a_rank(factory: &Factory) -> Checked {
    let lengths = factory.protocols();
    on_threads(factory, 2, ThreadLevel::Multiple, waiting(), |port| {
        let rank = port.rank().as_u32();
        let peer = 1 - rank;
        all_threads(port, |thread| {
            for round in 0..40_usize {
                let len = lengths[(round + thread as usize) % lengths.len()];
                let seed = |rank: u32| round * 100 + (thread * 10 + rank) as usize;
                let mode = match round % 3 {
                    0 => SendMode::Synchronous,
                    _ => SendMode::Standard,
                };
                let data = lend(&pattern(seed(rank), len));
                let sent = port.isend(data, Rank::new(peer), tag(thread), WORLD, mode);
                let sent = accepted("isend", sent)?;
                recv(port, from(peer), only(thread), seed(peer), len)
                    .map_err(|error| format!("thread {thread}, round {round}: {error}"))?;
                let status = accepted("wait", port.wait(sent, PATIENCE))?;
                same("a send's failure", status.failure, None)?;
            }
            Ok(())
        })
    })
}

/// Each rank has a thread that receives and one that sends synchronously: neither may keep the other waiting, in whatever
/// order they come to their calls (Thakur and Gropp, figure 1).
pub(super) fn a_thread_that_waits_keeps_no_other(factory: &Factory) -> Checked {
    let rounds = if at_length() { 10_000 } else { 500 };
    on_threads(factory, 2, ThreadLevel::Multiple, waiting(), |port| {
        let rank = port.rank().as_u32();
        let peer = 1 - rank;
        two_threads(
            || {
                (0..rounds).try_for_each(|round| {
                    dawdle(round, 2 * rank);
                    recv(port, from(peer), only(1), round, 16)
                        .map(drop)
                        .map_err(|error| {
                            format!("the thread that receives, round {round}: {error}")
                        })
                })
            },
            || {
                (0..rounds).try_for_each(|round| {
                    dawdle(round, 2 * rank + 1);
                    send(port, peer, 1, &pattern(round, 16), SendMode::Synchronous)
                        .map_err(|error| format!("the thread that sends, round {round}: {error}"))
                })
            },
        )
    })
}

/// Lets other threads go first, for a time that differs from round to round.
fn dawdle(round: usize, caller: u32) {
    let drawn = (round as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15 ^ u64::from(caller) << 17);
    for _ in 0..drawn >> 61 {
        std::thread::yield_now();
    }
    for _ in 0..(drawn >> 40) % 512 {
        std::hint::spin_loop();
    }
}

fn two_threads(one: impl FnOnce() -> Checked + Send, other: impl FnOnce() -> Checked) -> Checked {
    std::thread::scope(|scope| {
        let one = scope.spawn(one);
        let other = other();
        one.join().map_err(|_| "a thread panicked")?.and(other)
    })
}

/// Threads take any message there is: each is taken once.
pub(super) fn threads_claim_each_message_once(factory: &Factory) -> Checked {
    const EACH: usize = 60;
    on_threads(factory, 2, ThreadLevel::Multiple, waiting(), |port| {
        let peer = 1 - port.rank().as_u32();
        if port.rank() == Rank::new(0) {
            for seed in 0..EACH * THREADS as usize {
                send(port, peer, 1, &pattern(seed, 40), SendMode::Standard)?;
            }
            return Ok(());
        }
        let seen = std::sync::Mutex::new(Vec::new());
        all_threads(port, |_| {
            for _ in 0..EACH {
                let found = port.wait_claim(ANYONE, ANYTHING, WORLD, PATIENCE);
                let (message, status) = accepted("wait_claim", found)?;
                let room = super::rig::Room::new(status.length);
                let request = accepted("irecv_claimed", port.irecv_claimed(room.lend(), message))?;
                accepted("wait", port.wait(request, PATIENCE))?;
                let mut number = [0; 4];
                number.copy_from_slice(&room.bytes()[..4]);
                if let Ok(mut seen) = seen.lock() {
                    seen.push(u32::from_le_bytes(number) as usize);
                }
            }
            Ok(())
        })?;
        let mut seen = seen.into_inner().map_err(|_| "a thread panicked")?;
        seen.sort_unstable();
        let all: Vec<_> = (0..EACH * THREADS as usize).collect();
        ensure!(seen == all, "messages were claimed twice or never");
        Ok(())
    })
}

pub(super) fn thread_levels_are_kept(factory: &Factory) -> Checked {
    for (level, shared) in [
        (ThreadLevel::Single, false),
        (ThreadLevel::Funneled, false),
        (ThreadLevel::Serialized, true),
        (ThreadLevel::Multiple, true),
    ] {
        on_threads(factory, 1, level, waiting(), |port| {
            let elsewhere = std::thread::scope(|scope| {
                scope
                    .spawn(|| port.probe(ANYONE, ANYTHING, WORLD))
                    .join()
                    .map_err(|_| "a thread panicked".to_owned())
            })?;
            match elsewhere {
                Ok(None) if shared => {}
                Err(Error::WrongThread) if !shared => {}
                other => return Err(format!("another thread at {level:?}: {other:?}")),
            }
            let seen = accepted("probe", port.probe(ANYONE, ANYTHING, WORLD))?;
            same("what the first thread sees", seen, None)
        })?;
    }
    Ok(())
}
