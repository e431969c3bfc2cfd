//! Checks of sleeping and waking.
//!
//! A lost wake-up shows as a sleep that lasts its whole timeout although there was something to
//! wake for. The timeouts are far longer than any machine needs, so only that is taken for one.

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::Factory;
use super::log::Log;
use super::rig::{LANE, Rig, ensure, header};
use crate::byte::{ByteTransport, Class, Post};
use crate::fault::SplitMix64;
use crate::message::EndpointId;
use crate::wait::Waiter;

/// Rounds of sleeping and waking.
const ROUNDS: u64 = 10_000;

/// How long a sleeper sleeps whom nobody wakes.
const LONG: Duration = Duration::from_secs(10);

/// Sleeps; answers whether that took all of a [`LONG`] time.
fn overslept(waiter: &dyn Waiter, key: crate::wait::WaitKey) -> bool {
    let start = Instant::now();
    waiter.sleep(key, LONG);
    start.elapsed() >= LONG
}

/// What comes between arming and sleeping ends the sleep before it begins.
pub(super) fn arrivals_before_sleep_are_not_slept_over(factory: &Factory) -> Result<(), String> {
    let (mut rig, a, b, _) = Rig::pair(factory)?;
    let (to, _) = rig.contact(a, b)?;
    rig.settle()?;
    let waiter = rig.transport(b).waiter();
    for number in 1..=20 {
        let key = waiter.arm();
        rig.settle()?;
        rig.send(a, to, header(number), b"wake up")?;
        ensure(!overslept(&*waiter, key), || {
            "a message was slept over".to_owned()
        })?;
        rig.drive("the message", |rig| {
            rig.log(b).message_count() as u64 >= number
        })?;
        rig.settle()?;

        let key = waiter.arm();
        waiter.wake();
        ensure(!overslept(&*waiter, key), || {
            "a wake was slept over".to_owned()
        })?;

        let _ = waiter.arm();
        waiter.disarm();
    }
    // And where nothing comes, a sleep ends by itself.
    let key = waiter.arm();
    waiter.sleep(key, Duration::from_millis(1));
    Ok(())
}

/// Spins a little while, so that two threads meet at different points of their ways.
fn dawdle(random: &mut SplitMix64) {
    for _ in 0..random.below(1500) {
        spin_loop();
    }
}

/// A wake by another thread ends a sleep, however close they come.
pub(super) fn other_threads_wake_a_sleeper(factory: &Factory) -> Result<(), String> {
    let mut rig = Rig::open(factory, 1)?;
    let waiter = rig.transport(0).waiter();
    let (posted, taken) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let sleeper = {
        let (waiter, posted, taken) =
            (Arc::clone(&waiter), Arc::clone(&posted), Arc::clone(&taken));
        thread::spawn(move || {
            let mut random = SplitMix64::new(1);
            for round in 1..=ROUNDS {
                while posted.load(Ordering::Acquire) < round {
                    let key = waiter.arm();
                    if posted.load(Ordering::Acquire) >= round {
                        waiter.disarm();
                        break;
                    }
                    dawdle(&mut random);
                    if overslept(&*waiter, key) {
                        taken.store(u64::MAX, Ordering::Release);
                        return false;
                    }
                }
                taken.store(round, Ordering::Release);
            }
            true
        })
    };
    let mut random = SplitMix64::new(2);
    for round in 1..=ROUNDS {
        dawdle(&mut random);
        posted.store(round, Ordering::Release);
        waiter.wake();
        while taken.load(Ordering::Acquire) < round {
            thread::yield_now();
        }
    }
    let good = sleeper
        .join()
        .map_err(|_| "the sleeper panicked".to_owned())?;
    ensure(good, || "a wake-up was lost".to_owned())
}

/// What a sleeping rank and its waker share.
#[derive(Default)]
struct Meeting {
    received: AtomicU64,
    over: AtomicBool,
}

/// Receives until `ROUNDS` messages are there, sleeping whenever there is nothing to do; answers
/// whether no wake-up was lost.
fn receive_asleep(transport: &mut dyn ByteTransport, meeting: &Meeting) -> bool {
    let waiter = transport.waiter();
    let mut random = SplitMix64::new(3);
    let mut log = Log::default();
    let mut received = 0;
    while received < ROUNDS && !meeting.over.load(Ordering::Acquire) {
        let key = waiter.arm();
        let events = transport.progress(LANE, &mut log);
        received += log.message_count() as u64;
        log.entries.clear();
        meeting.received.store(received, Ordering::Release);
        if events > 0 {
            waiter.disarm();
            continue;
        }
        dawdle(&mut random);
        if overslept(&*waiter, key) {
            meeting.over.store(true, Ordering::Release);
            return false;
        }
    }
    true
}

/// A message wakes a rank that sleeps, however close they come.
pub(super) fn messages_wake_a_sleeper(factory: &Factory) -> Result<(), String> {
    let mut rig = Rig::open(factory, 2)?;
    let (to, _) = rig.contact(0, 1)?;
    rig.settle()?;
    let mut transport = rig.take(1);
    let meeting = Arc::new(Meeting::default());
    let sleeper = {
        let meeting = Arc::clone(&meeting);
        thread::spawn(move || {
            let good = receive_asleep(&mut *transport, &meeting);
            (good, transport)
        })
    };
    let sent = send_rounds(rig.transport(0), to, &meeting);
    meeting.over.store(true, Ordering::Release);
    let joined = sleeper
        .join()
        .map_err(|_| "the sleeper panicked".to_owned());
    let (good, transport) = joined?;
    drop(transport);
    ensure(good, || "a wake-up was lost".to_owned())?;
    sent
}

/// Sends one message after the other, each once the one before was received.
fn send_rounds(
    transport: &mut dyn ByteTransport,
    to: EndpointId,
    meeting: &Meeting,
) -> Result<(), String> {
    let mut random = SplitMix64::new(4);
    let mut log = Log::default();
    for round in 1..=ROUNDS {
        dawdle(&mut random);
        loop {
            match transport.send(LANE, to, Class::Data, header(round), b"wake up") {
                Post::Posted => break,
                Post::Busy => {
                    transport.progress(LANE, &mut log);
                }
                other => return Err(format!("a send was answered {other:?}")),
            }
        }
        let mut turns = 0_u32;
        while meeting.received.load(Ordering::Acquire) < round {
            if meeting.over.load(Ordering::Acquire) {
                return Ok(());
            }
            // Whoever waits looks after its message that nobody takes.
            transport.progress(LANE, &mut log);
            turns += 1;
            if turns.is_multiple_of(256) {
                transport.look_after_peers(&mut log);
            }
            thread::yield_now();
        }
    }
    Ok(())
}
