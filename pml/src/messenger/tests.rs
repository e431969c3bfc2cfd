//! Threads of one rank that sleep while others do their work: every turn is set by the test.

use std::sync::atomic::AtomicUsize;
use std::sync::{Mutex, OnceLock};

use tagwire_base::ManualClock;
use tagwire_base::bootstrap::LocalJob;
use tagwire_conformance::network::{MemoryNetwork, MemoryOptions};
use tagwire_transport::{WaitKey, Waiter};

use super::*;
use crate::ob1::{Ob1, Ob1Options};
use crate::wait::WaitMode;

const TAG: Tag = Tag::user(7).expect("not negative");
const WORLD: ContextId = ContextId::WORLD;

type Turn = Box<dyn FnOnce() + Send>;

/// A waiter that never sleeps: it gives others their turn at the two places that matter, and counts.
struct Stage {
    inner: Arc<dyn Waiter>,
    before_arming: Mutex<Option<Turn>>,
    asleep: Mutex<Option<Turn>>,
    slept: AtomicUsize,
    woken: AtomicUsize,
}

impl Stage {
    fn play(turn: &Mutex<Option<Turn>>) {
        let turn = turn.lock().unwrap().take();
        if let Some(turn) = turn {
            std::thread::spawn(turn).join().unwrap();
        }
    }
}

impl Waiter for Stage {
    fn arm(&self) -> WaitKey {
        Self::play(&self.before_arming);
        self.inner.arm()
    }

    fn sleep(&self, _: WaitKey, _: Duration) {
        self.slept.fetch_add(1, Ordering::Relaxed);
        Self::play(&self.asleep);
    }

    fn disarm(&self) {
        self.inner.disarm();
    }

    fn wake(&self) {
        self.woken.fetch_add(1, Ordering::Relaxed);
        self.inner.wake();
    }
}

/// Two ranks, of which threads of the first wait on a stage.
fn ranks() -> (Arc<Messenger>, Arc<Messenger>, Arc<Stage>) {
    let options = MemoryOptions {
        slots: 400,
        ..MemoryOptions::default()
    };
    let network = MemoryNetwork::new(2, options);
    let job = LocalJob::new(2).unwrap();
    let policy = WaitPolicy {
        mode: WaitMode::Sleep,
        ..WaitPolicy::adaptive(true)
    };
    let open = |rank: u32| {
        let rank = Rank::new(rank);
        let rail = Box::new(network.rank(rank));
        let ob1 = Ob1::open(&Ob1Options::default(), rail, Box::new(job.member(rank))).unwrap();
        Messenger::new(ob1, ThreadLevel::Multiple, policy)
    };
    let (mut first, second) = std::thread::scope(|scope| {
        let second = scope.spawn(|| open(1));
        (open(0), second.join().unwrap())
    });
    let stage = Arc::new(Stage {
        inner: Arc::clone(&first.sleepers.waiter),
        before_arming: Mutex::default(),
        asleep: Mutex::default(),
        slept: AtomicUsize::new(0),
        woken: AtomicUsize::new(0),
    });
    first.sleepers = Sleepers::new(Arc::clone(&stage) as Arc<dyn Waiter>);
    (Arc::new(first), Arc::new(second), stage)
}

fn send(port: &Messenger, to: u32) {
    let to = Rank::new(to);
    let mode = SendMode::Standard;
    port.isend(SendBuffer::EMPTY, to, TAG, WORLD, mode).unwrap();
}

fn receive(port: &Messenger) -> RequestId {
    let from = SourceSelector::exact(Rank::new(1));
    port.irecv(RecvBuffer::EMPTY, from, TagSelector::ANY, WORLD)
        .unwrap()
}

/// Another thread completes what this one waits for just before this one arms: it has nobody to
/// wake yet, and this one must not sleep.
#[test]
fn what_ended_before_the_arming_is_not_slept_on() {
    let (port, _peer, stage) = ranks();
    let request = receive(&port);
    let other = Arc::clone(&port);
    *stage.before_arming.lock().unwrap() = Some(Box::new(move || {
        other.cancel(request).unwrap();
    }));
    assert!(port.wait(request, None).unwrap().cancelled);
    assert_eq!(stage.slept.load(Ordering::Relaxed), 0);
}

#[test]
fn a_cancel_wakes_the_thread_that_waits() {
    let (port, _peer, stage) = ranks();
    let request = receive(&port);
    let other = Arc::clone(&port);
    *stage.asleep.lock().unwrap() = Some(Box::new(move || {
        other.cancel(request).unwrap();
    }));
    assert!(port.wait(request, None).unwrap().cancelled);
    assert_eq!(stage.slept.load(Ordering::Relaxed), 1);
    assert!(stage.woken.load(Ordering::Relaxed) > 0, "nobody was woken");
}

/// What a wait polls by itself may be what another thread waits for, or what that one's comes after.
#[test]
fn an_end_inside_of_a_wait_wakes_the_thread_that_waits() {
    let (port, _peer, stage) = ranks();
    let other = Arc::clone(&port);
    let has_ended = Arc::new(AtomicBool::new(false));
    let end = Arc::clone(&has_ended);
    *stage.asleep.lock().unwrap() = Some(Box::new(move || {
        let mut ends = || {
            end.store(true, Ordering::Relaxed);
            true
        };
        assert!(other.poll_inside(&mut ends).unwrap());
    }));
    port.progress_until(None, || Ok(has_ended.load(Ordering::Relaxed).then_some(())))
        .unwrap();
    assert_eq!(stage.slept.load(Ordering::Relaxed), 1);
    assert!(stage.woken.load(Ordering::Relaxed) > 0, "nobody was woken");
}

/// A send without credit makes progress, and that is where the other thread's message is taken.
#[test]
fn a_send_that_makes_progress_wakes_the_thread_that_waits() {
    let (port, peer, stage) = ranks();
    let request = receive(&port);
    // All the credit there is before the first grant.
    for _ in 0..64 {
        send(&port, 1);
    }
    let other = Arc::clone(&port);
    let done = Arc::new(OnceLock::new());
    let seen = Arc::clone(&done);
    let counted = Arc::clone(&stage);
    *stage.asleep.lock().unwrap() = Some(Box::new(move || {
        send(&peer, 0);
        send(&other, 1);
        seen.set(counted.woken.load(Ordering::Relaxed)).unwrap();
        // The peer stays until the wait is over.
        std::mem::forget(peer);
    }));
    assert_eq!(port.wait(request, None).unwrap().source, Rank::new(1));
    assert!(*done.get().unwrap() > 0, "nobody was woken");
}

#[test]
fn a_timeout_beyond_the_end_of_time_is_none() {
    let (port, _peer, stage) = ranks();
    let request = receive(&port);
    let other = Arc::clone(&port);
    *stage.asleep.lock().unwrap() = Some(Box::new(move || {
        other.cancel(request).unwrap();
    }));
    assert!(port.wait(request, Some(Duration::MAX)).unwrap().cancelled);
}

/// A wait's timeout goes by the rank's clock: an hour passes as soon as the clock says so, and not before.
#[test]
fn a_timeout_goes_by_the_clock_of_the_rank() {
    const HOUR: Duration = Duration::from_secs(3600);
    let (port, peer, stage) = ranks();
    let hand = ManualClock::default();
    let port = Arc::into_inner(port).unwrap().with_clock(hand.clock());
    let request = receive(&port);
    let clock = hand.clone();
    *stage.asleep.lock().unwrap() = Some(Box::new(move || clock.advance(HOUR)));
    let late = port.wait(request, Some(HOUR));
    assert!(matches!(late, Err(Error::TimedOut(HOUR))), "{late:?}");
    assert_eq!(stage.slept.load(Ordering::Relaxed), 1);
    *stage.asleep.lock().unwrap() = Some(Box::new(move || {
        hand.advance(HOUR - Duration::from_nanos(1));
        send(&peer, 0);
    }));
    port.wait(request, Some(HOUR)).unwrap();
}
