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
use super::rig::{Rig, header};
use crate::common::{LANE, ensure, rounds};
use tagwire_transport::fault::SplitMix64;
use tagwire_transport::message::EndpointId;
use tagwire_transport::wait::{WaitKey, Waiter};
use tagwire_transport::{ByteTransport, Class, Post};

/// Rounds of sleeping and waking, at length.
const ROUNDS: u64 = 10_000;

/// The first of these, in which what wakes the sleeper comes after it has armed and before it sleeps
/// for certain; in the others the two threads meet where they may.
const ARRANGED: u64 = 100;

/// How long a sleeper sleeps whom nobody wakes.
const LONG: Duration = Duration::from_secs(10);

/// Sleeps; returns whether that took all of a [`LONG`] time.
fn overslept(waiter: &dyn Waiter, key: WaitKey) -> bool {
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

/// What a sleeper and the thread that wakes it share: counts of rounds.
#[derive(Default)]
struct Meeting {
    /// The sleeper has armed for this round and has seen nothing of it.
    armed: AtomicU64,
    /// What this round wakes with is out.
    posted: AtomicU64,
    /// The wake itself is done, where it is not the posting.
    woken: AtomicU64,
    /// The sleeper has seen this round.
    taken: AtomicU64,
    over: AtomicBool,
}

impl Meeting {
    /// Called by the sleeper between arming for `round` and sleeping.
    fn before_sleep(&self, round: u64, random: &mut SplitMix64) {
        if round > ARRANGED {
            return dawdle(random);
        }
        self.armed.store(round, Ordering::Release);
        while self.woken.load(Ordering::Acquire) < round && !self.is_over() {
            thread::yield_now();
        }
    }

    /// Called by the waker before it posts `round`; `meanwhile` as long as it waits.
    fn before_wake(&self, round: u64, random: &mut SplitMix64, mut meanwhile: impl FnMut()) {
        if round > ARRANGED {
            return dawdle(random);
        }
        while self.armed.load(Ordering::Acquire) < round && !self.is_over() {
            meanwhile();
            thread::yield_now();
        }
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// One sleep of the sleeper; what lasts too long ends the meeting.
    fn sleep(&self, waiter: &dyn Waiter, key: WaitKey) -> bool {
        let good = !overslept(waiter, key);
        if !good {
            self.over.store(true, Ordering::Release);
        }
        good
    }
}

/// A wake by another thread ends a sleep, however close they come.
pub(super) fn other_threads_wake_a_sleeper(factory: &Factory) -> Result<(), String> {
    let mut rig = Rig::open(factory, 1)?;
    let waiter = rig.transport(0).waiter();
    let meeting = Arc::new(Meeting::default());
    let sleeper = {
        let (waiter, meeting) = (Arc::clone(&waiter), Arc::clone(&meeting));
        thread::spawn(move || {
            let mut random = SplitMix64::new(1);
            (1..=rounds(ROUNDS)).all(|round| {
                while meeting.posted.load(Ordering::Acquire) < round {
                    let key = waiter.arm();
                    if meeting.posted.load(Ordering::Acquire) >= round {
                        waiter.disarm();
                        break;
                    }
                    meeting.before_sleep(round, &mut random);
                    if !meeting.sleep(&*waiter, key) {
                        return false;
                    }
                }
                meeting.taken.store(round, Ordering::Release);
                true
            })
        })
    };
    let mut random = SplitMix64::new(2);
    for round in 1..=rounds(ROUNDS) {
        meeting.before_wake(round, &mut random, || ());
        meeting.posted.store(round, Ordering::Release);
        waiter.wake();
        meeting.woken.store(round, Ordering::Release);
        while meeting.taken.load(Ordering::Acquire) < round && !meeting.is_over() {
            thread::yield_now();
        }
    }
    let good = sleeper
        .join()
        .map_err(|_| "the sleeper panicked".to_owned())?;
    ensure(good, || "a wake-up was lost".to_owned())
}

/// Receives until all messages of the rounds are there, sleeping whenever there is nothing to do. Returns
/// whether no wake-up was lost.
fn receive_asleep(transport: &mut dyn ByteTransport, meeting: &Meeting) -> bool {
    let waiter = transport.waiter();
    let mut random = SplitMix64::new(3);
    let mut log = Log::default();
    let (mut received, all) = (0, rounds(ROUNDS));
    while received < all && !meeting.is_over() {
        let key = waiter.arm();
        let events = transport.progress(LANE, &mut log);
        received += log.message_count() as u64;
        log.entries.clear();
        meeting.taken.store(received, Ordering::Release);
        if events > 0 {
            waiter.disarm();
            continue;
        }
        meeting.before_sleep(received + 1, &mut random);
        if !meeting.sleep(&*waiter, key) {
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
    for round in 1..=rounds(ROUNDS) {
        meeting.before_wake(round, &mut random, || {
            transport.progress(LANE, &mut log);
        });
        loop {
            match transport.send(LANE, to, Class::Data, header(round), b"wake up") {
                Post::Posted => break,
                Post::Busy => {
                    transport.progress(LANE, &mut log);
                }
                other => return Err(format!("a send was answered {other:?}")),
            }
        }
        meeting.woken.store(round, Ordering::Release);
        let mut turns = 0_u32;
        while meeting.taken.load(Ordering::Acquire) < round {
            if meeting.is_over() {
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

/// How long what a peer replies has to come.
const REPLY: Duration = Duration::from_millis(1);

/// Refusals after each of which a sender sleeps for the first time, in one of the meetings.
const REFUSALS: u32 = 8;

/// Sends a message, asleep whenever it is refused, from the refusal of number `first` on. The peer makes progress while it is
/// `let_on` alone, so that what it replies comes between progress and the post. Returns whether no wake-up was lost.
fn send_asleep(
    transport: &mut dyn ByteTransport,
    to: EndpointId,
    first: u32,
    let_on: &AtomicBool,
) -> Result<bool, String> {
    let waiter = transport.waiter();
    let mut log = Log::default();
    let mut refusals = 0;
    while refusals < 10_000 {
        let key = waiter.arm();
        let events = transport.progress(LANE, &mut log);
        let_on.store(true, Ordering::Release);
        thread::sleep(REPLY);
        let post = transport.send(LANE, to, Class::Data, header(1), b"hello");
        refusals += u32::from(post == Post::Busy);
        if post != Post::Busy || events > 0 || refusals < first {
            waiter.disarm();
        } else if overslept(&*waiter, key) {
            return Ok(false);
        }
        match post {
            Post::Posted => return Ok(true),
            Post::Busy => let_on.store(false, Ordering::Release),
            other => return Err(format!("a send was answered {other:?}")),
        }
    }
    Err("a send was refused all the time".to_owned())
}

/// Who was refused while contact is made does not sleep over that it is: also where the refused post has found that out.
pub(super) fn contact_wakes_those_who_were_refused(factory: &Factory) -> Result<(), String> {
    for first in 0..REFUSALS {
        let mut rig = Rig::open(factory, 2)?;
        let to = rig.connect(0, 1)?;
        let mut peer = rig.take(1);
        let let_on = Arc::new(AtomicBool::new(false));
        let over = Arc::new(AtomicBool::new(false));
        let replying = {
            let (let_on, over) = (Arc::clone(&let_on), Arc::clone(&over));
            thread::spawn(move || {
                let mut log = Log::default();
                while !over.load(Ordering::Acquire) {
                    if let_on.load(Ordering::Acquire) {
                        peer.progress(LANE, &mut log);
                    }
                    thread::yield_now();
                }
                peer
            })
        };
        let sent = send_asleep(rig.transport(0), to, first, &let_on);
        over.store(true, Ordering::Release);
        let joined = replying.join();
        drop(joined.map_err(|_| "the peer panicked".to_owned())?);
        ensure(sent?, || "a wake-up was lost".to_owned())?;
    }
    Ok(())
}
