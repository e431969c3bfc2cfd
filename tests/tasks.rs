//! Futures of owned operations: who is woken, and when.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use std::future::{Future, pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use tagwire::testing::{self, Job};
use tagwire::{Allreduce, Error, Failure, Result, Session, Sum};

/// Runs `work` in tokio, with one thread.
fn run<T>(session: &Session, work: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().build().unwrap();
    runtime.block_on(session.drive(work)).unwrap()
}

/// Counts how often it is woken.
#[derive(Default)]
struct Counter(AtomicUsize);

impl Wake for Counter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

impl Counter {
    fn poll<F: Future>(self: &Arc<Self>, future: Pin<&mut F>) -> Poll<F::Output> {
        let waker = Waker::from(Arc::clone(self));
        future.poll(&mut Context::from_waker(&waker))
    }
}

fn alone() -> Session {
    Session::open().unwrap()
}

#[test]
fn tasks_exchange_messages_and_run_collectives() {
    for layer in ["ob1", "cm"] {
        let sums = Job::new(3).setting("pml", layer).run(|session| {
            let (world, me, size) = (session.world(), session.rank(), session.size());
            let (left, right) = ((me + size - 1) % size, (me + 1) % size);
            let exchange = async {
                let mut send = world.send_init(vec![0u32; 4], right, 2)?;
                let mut recv = world.recv_init(vec![0u32; 4], left, 2)?;
                let mut sum = world.init(Allreduce::in_place(vec![0u64], Sum))?;
                for round in 0..20 {
                    // Of one packet, and by rendezvous.
                    let count = if round % 2 == 0 { 1 } else { 100_000 };
                    let receive = world.irecv_owned(vec![0u32; count], left, 1)?;
                    let sent = world
                        .isend_owned(vec![me + round; count], right, 1)?
                        .await?;
                    let (status, got) = receive.await?;
                    assert_eq!((status.source(), sent.len()), (left, count));
                    assert_eq!(got, vec![left + round; count]);

                    send.data_mut()?.fill(me * round);
                    recv.start()?;
                    send.start()?;
                    recv.completed().await?;
                    send.completed().await?;
                    assert_eq!(recv.data()?, [left * round; 4]);

                    sum.data_mut()?[0] = u64::from(me);
                    sum.start()?;
                    sum.completed().await?;
                    assert_eq!(sum.data()?, [3]);
                }
                // Nothing is under way.
                recv.completed().await?;
                sum.completed().await?;
                Ok::<_, Error>(sum.data()?[0])
            };
            run(session, exchange).unwrap()
        });
        assert_eq!(sums, [3; 3]);
    }
}

/// A future among others: polled when it is woken.
struct Child<'a> {
    future: Pin<Box<dyn Future<Output = Result<u32>> + 'a>>,
    woken: Arc<Woken>,
    polls: usize,
}

struct Woken {
    is_due: AtomicBool,
    parent: Arc<Mutex<Option<Waker>>>,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.is_due.store(true, SeqCst);
        let parent = self.parent.lock().unwrap().clone();
        parent.unwrap().wake();
    }
}

/// Each of many tasks is polled when it begins, and when its own operation is complete.
#[test]
fn those_are_woken_whose_operations_are_complete() {
    const TASKS: u32 = 40;
    testing::job(2, |session| {
        let (world, peer) = (session.world(), 1 - session.rank());
        let parent = Arc::new(Mutex::new(None));
        let begin = |tag: u32| {
            let receive = world.irecv_owned(vec![0u32; 1], peer, tag as i32).unwrap();
            let woken = Woken {
                is_due: AtomicBool::new(true),
                parent: Arc::clone(&parent),
            };
            Child {
                future: Box::pin(async { Ok(receive.await?.1[0]) }),
                woken: Arc::new(woken),
                polls: 0,
            }
        };
        let mut children: Vec<_> = (0..TASKS).map(begin).collect();
        let mut sum = 0;
        let all = poll_fn(|task| {
            *parent.lock().unwrap() = Some(task.waker().clone());
            children.retain_mut(|child| {
                if !child.woken.is_due.swap(false, SeqCst) {
                    return true;
                }
                child.polls += 1;
                let waker = Waker::from(Arc::clone(&child.woken));
                let polled = child.future.as_mut().poll(&mut Context::from_waker(&waker));
                assert!(child.polls <= 2, "woken with nothing to be had");
                let Poll::Ready(value) = polled else {
                    return true;
                };
                sum += value.unwrap();
                false
            });
            match children.is_empty() {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        });
        run(session, async {
            // The last ones first.
            for tag in (0..TASKS).rev() {
                world
                    .isend_owned(vec![tag], peer, tag as i32)
                    .unwrap()
                    .await
                    .unwrap();
            }
            all.await;
        });
        assert_eq!(sum, (0..TASKS).sum());
    });
}

#[test]
fn progress_wakes_where_nobody_drives() {
    let session = alone();
    let (world, counter) = (session.world(), Arc::new(Counter::default()));
    let mut receive = world.irecv_owned(vec![0u8; 4], 0, 7).unwrap();
    assert!(counter.poll(Pin::new(&mut receive)).is_pending());
    session.progress().unwrap();
    assert_eq!(counter.0.load(SeqCst), 0);
    world.send(b"work", 0, 7).unwrap();
    while counter.0.load(SeqCst) == 0 {
        session.progress().unwrap();
    }
    session.progress().unwrap();
    assert_eq!(counter.0.load(SeqCst), 1, "it is woken once");
    let Poll::Ready(ended) = counter.poll(Pin::new(&mut receive)) else {
        panic!("it was woken for nothing");
    };
    assert_eq!(ended.unwrap().1, b"work");
    // Its end has been taken.
    let Poll::Ready(again) = counter.poll(Pin::new(&mut receive)) else {
        panic!("it waits for nobody");
    };
    assert!(again.is_err());
}

/// The one that drives may be about to sleep, and have sent nothing of what was started since.
#[test]
fn a_task_that_begins_to_wait_wakes_the_one_that_drives() {
    let session = alone();
    let (driver, task) = (Arc::new(Counter::default()), Arc::new(Counter::default()));
    let mut drive = pin!(session.drive(pending::<()>()));
    let mut turns = 0;
    while turns <= driver.0.load(SeqCst) {
        assert!(driver.poll(drive.as_mut()).is_pending());
        turns += 1;
    }
    let before = driver.0.load(SeqCst);
    let mut receive = session.world().irecv_owned(vec![0u8; 4], 0, 7).unwrap();
    for _ in 0..3 {
        assert!(task.poll(Pin::new(&mut receive)).is_pending());
        assert_eq!(driver.0.load(SeqCst), before + 1);
    }
}

/// Nothing holds its waker any more, and its message is for the next receive.
#[test]
fn a_future_that_is_dropped_leaves_nothing_behind() {
    let session = alone();
    let (world, counter) = (session.world(), Arc::new(Counter::default()));
    let mut receive = world.irecv_owned(vec![0u8; 4], 0, 7).unwrap();
    let mut round = world.recv_init(vec![0u8; 4], 0, 8).unwrap();
    round.start().unwrap();
    assert!(counter.poll(Pin::new(&mut receive)).is_pending());
    assert!(counter.poll(pin!(round.completed())).is_pending());
    drop(receive);
    assert_eq!(Arc::strong_count(&counter), 1);
    world.send(b"next", 0, 7).unwrap();
    let mut room = [0u8; 4];
    world.recv(&mut room, 0, 7).unwrap();
    assert_eq!(&room, b"next");
    // A round goes on without its future.
    world.send(b"more", 0, 8).unwrap();
    round.wait().unwrap();
    assert_eq!(round.data().unwrap(), b"more");
    assert_eq!(counter.0.load(SeqCst), 0);
}

#[test]
fn an_operation_outlives_the_patience_of_its_task() {
    testing::job(2, |session| {
        let (world, me) = (session.world(), session.rank());
        run(session, async {
            if me == 0 {
                let mut receive = world.irecv_owned(vec![0u8; 4], 1, 7).unwrap();
                let soon = Duration::from_millis(2);
                // The other rank waits for this one's word.
                let early = tokio::time::timeout(soon, &mut receive).await;
                assert!(early.is_err());
                world.isend_owned(vec![1u8], 1, 7).unwrap().await.unwrap();
                assert_eq!(receive.await.unwrap().1, b"late");
            } else {
                world.irecv_owned(vec![0u8], 0, 7).unwrap().await.unwrap();
                let send = world.isend_owned(b"late".to_vec(), 0, 7).unwrap();
                send.await.unwrap();
            }
        });
    });
}

#[test]
fn futures_fail_as_waits_do() {
    let session = alone();
    let (world, counter) = (session.world(), Arc::new(Counter::default()));
    let receive = world.irecv_owned(vec![0u8; 4], 0, 7).unwrap();
    world.send(b"longer", 0, 7).unwrap();
    let failed = run(&session, receive).unwrap_err();
    assert_eq!(
        failed.error().failure(),
        Some(Failure::Truncated { room: 4 })
    );
    assert_eq!(failed.into_parts().1.as_deref(), Some(&b"long"[..]));

    // The session is that of the thread that opened it.
    let mut receive = world.irecv_owned(vec![0u8; 4], 0, 7).unwrap();
    let refused = std::thread::scope(|scope| {
        let poll = || counter.poll(Pin::new(&mut receive));
        scope.spawn(poll).join().unwrap()
    });
    let Poll::Ready(Err(refused)) = refused else {
        panic!("another thread may not call: {refused:?}");
    };
    assert!(refused.into_parts().1.is_none(), "it goes on");
}

/// Ranks that hang in their tasks say what they wait for too, and end.
#[test]
fn tasks_that_wait_for_ever_are_reported_and_ended() {
    let run = || {
        let job = Job::new(2).timeout(Duration::from_millis(500));
        job.run(|session| {
            let world = session.world();
            let receive = world.irecv_owned(vec![0u8], 1 - session.rank(), 7).unwrap();
            assert!(run(session, receive).is_err());
        });
    };
    let panic = catch_unwind(AssertUnwindSafe(run)).unwrap_err();
    let text = panic.downcast_ref::<String>().unwrap();
    assert!(
        text.contains("rank 0 waits") && text.contains("rank 1 waits"),
        "{text}"
    );
}
