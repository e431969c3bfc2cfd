//! How often an operation is polled, by whom, and what it reports of itself.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Barrier as Threads, Mutex};

use tagwire_base::Rank;
use tagwire_base::bootstrap::LocalJob;
use tagwire_conformance::network::{MemoryNetwork, MemoryOptions};
use tagwire_layout::{Basic, Layout, Operation};
use tagwire_pml::ob1::{Ob1, Ob1Options};
use tagwire_pml::{ThreadLevel, WaitPolicy};
use tagwire_transport::ByteTransport;
use tagwire_transport::shm::{Shm, ShmOptions};

use super::*;
use crate::operations::{Allreduce, Barrier};
use crate::{Reduction, Selection};

/// What an operation of the test shares with it.
#[derive(Default)]
struct Watch {
    polls: AtomicUsize,
    /// The operation itself, which polls itself in its next poll.
    again: Mutex<Option<Request>>,
}

impl Watch {
    fn polls(&self) -> usize {
        self.polls.load(SeqCst)
    }
}

/// Ends in its poll of this number.
struct EndsIn(usize, Arc<Watch>);

impl CollectiveOperation for EndsIn {
    fn check(&self, _: &Team) -> Result<()> {
        Ok(())
    }

    fn describe(&self, _: &Team) -> String {
        "ends in".to_owned()
    }

    fn steps(&mut self, _: Call<'_>) -> impl Future<Output = Result<()>> + Send {
        poll_fn(|_| {
            let polls = self.1.polls.fetch_add(1, SeqCst) + 1;
            if let Some(own) = self.1.again.lock().unwrap().take() {
                assert!(!own.0.poll(), "the poll that is under way goes on");
            }
            match polls < self.0 {
                true => Poll::Pending,
                false => Poll::Ready(Ok(())),
            }
        })
    }
}

fn world(
    rail: Box<dyn ByteTransport>,
    member: impl tagwire_base::Bootstrap + 'static,
) -> Arc<Team> {
    let ob1 = Ob1::open(&Ob1Options::default(), rail, Box::new(member)).unwrap();
    let policy = WaitPolicy::adaptive(true);
    let messenger = Arc::new(Messenger::new(ob1, ThreadLevel::Single, policy));
    Arc::new(Team::world(&messenger, Arc::new(Selection::default())))
}

/// A group of one.
fn alone() -> Arc<Team> {
    let (job, me) = (LocalJob::new(1).unwrap(), Rank::new(0));
    let network = MemoryNetwork::new(1, MemoryOptions::full());
    world(Box::new(network.rank(me)), job.member(me))
}

fn start(team: &Arc<Team>, ends_in: usize) -> (Request, Arc<Watch>) {
    let watch = Arc::new(Watch::default());
    (
        start_owned(team, EndsIn(ends_in, Arc::clone(&watch))).unwrap(),
        watch,
    )
}

fn is_listed(team: &Team, request: &Request) -> bool {
    let found = team.active().find(request.0.place());
    found.is_some_and(|found| Arc::ptr_eq(&found, &request.0))
}

/// The first poll is the caller's, and one more comes once progress sees the operation: what came between them is not lost.
#[test]
fn a_start_polls_twice_at_most() {
    let team = alone();
    for (ends_in, polls) in [(1, 1), (2, 2), (3, 2)] {
        let (request, watch) = start(&team, ends_in);
        assert_eq!(watch.polls(), polls, "one that ends in {ends_in}");
        assert_eq!(request.is_complete(), ends_in < 3);
        assert_eq!(is_listed(&team, &request), ends_in == 3);
    }
    assert!(team.messenger().progress().is_ok());
    assert!(team.messenger().progress().is_ok());
}

#[test]
fn places_differ_and_find_their_operation() {
    let team = alone();
    let open = [start(&team, 9).0, start(&team, 9).0];
    assert_ne!(open[0].0.place(), open[1].0.place());
    assert_eq!(open[0].0.place().0, team.context());
    assert!(open.iter().all(|request| is_listed(&team, request)));
    open.iter().for_each(|request| request.wait(None).unwrap());
    assert!(!open.iter().any(|request| is_listed(&team, request)));
}

#[test]
fn an_end_is_taken_once() {
    let (request, _) = start(&alone(), 3);
    assert!(request.take().is_none());
    assert!(!request.is_taken());
    request.wait(None).unwrap();
    assert!(request.is_taken() && request.is_complete());
    let again = request.take().unwrap().unwrap_err();
    assert!(matches!(
        again,
        crate::Error::Pml(tagwire_pml::Error::StaleRequest)
    ));
}

/// Whoever finds an operation polled has it polled once more, by the one that does: what it has seen may have come since.
#[test]
fn a_poll_amid_another_has_it_come_again() {
    let (request, watch) = start(&alone(), 9);
    assert_eq!(watch.polls(), 2);
    *watch.again.lock().unwrap() = Some(request.clone());
    assert!(!request.0.poll());
    assert_eq!(watch.polls(), 4);
    assert!(!request.0.poll());
    assert_eq!(watch.polls(), 5);
}

/// A wait tries its own operation first. The others are polled where that is not enough.
#[test]
fn a_wait_polls_its_own_first() {
    let team = alone();
    let (mine, mine_watched) = start(&team, 3);
    let (other, other_watched) = start(&team, usize::MAX);
    mine.wait(None).unwrap();
    assert_eq!((mine_watched.polls(), other_watched.polls()), (3, 2));
    let (mine, _) = start(&team, usize::MAX);
    let error = mine.wait(Some(Duration::from_millis(5))).unwrap_err();
    assert!(
        matches!(
            error,
            crate::Error::Pml(tagwire_pml::Error::TimedOut { .. })
        ),
        "{error}"
    );
    let polls = other_watched.polls();
    assert!(polls > 2, "{polls} polls");
    assert!(!other.test().unwrap());
    assert_eq!(other_watched.polls(), polls + 1);
}

/// Short operations of a group with a board are its rounds, in their order, of which so many are shown. Long ones are none.
#[test]
fn short_operations_take_turns() {
    const AT_ONCE: usize = 200;
    let (job, threads) = (LocalJob::new(2).unwrap(), Threads::new(2));
    let rank = |number| {
        let me = Rank::new(number);
        let mut member = job.member(me);
        let rail = Shm::open(ShmOptions::default(), &mut member).unwrap();
        let team = world(Box::new(rail), member);
        // The group makes its board in one of them.
        for _ in 0..16 {
            start_owned(&team, Barrier).unwrap().wait(None).unwrap();
        }
        threads.wait();
        // The second comes when the first has looked.
        if number == 1 {
            threads.wait();
        }
        let open: Vec<_> = (0..AT_ONCE)
            .map(|_| start_owned(&team, Barrier).unwrap())
            .collect();
        let mut long = vec![1; 8 << 14];
        let (sum, layout) = (Operation::Sum, Layout::of(Basic::U64));
        let reduction = Reduction {
            operation: &sum,
            layout: &layout,
        };
        let operation = Allreduce {
            operator: reduction.into(),
            input: None,
            data: &mut long,
        };
        // SAFETY: it is waited for.
        let last = unsafe { team.start(operation) }.unwrap();
        if number == 0 {
            let turns: Vec<_> = open.iter().map(|one| one.0.turn().unwrap()).collect();
            assert!(turns.is_sorted_by(|one, next| one + 1 == *next));
            let shown = |one: &Request| one.0.order() == Order::Shown;
            let count = open.iter().take_while(|one| shown(one)).count();
            assert!((1..AT_ONCE).contains(&count), "{count} are shown");
            let waits = |one: &Request| one.0.order() == Order::Waits;
            assert!(open[count..].iter().all(waits));
            assert_eq!((last.0.turn(), last.0.order()), (None, Order::Any));
            threads.wait();
        }
        open.iter().for_each(|one| one.wait(None).unwrap());
        last.wait(None).unwrap();
        drop((open, last));
        team.messenger().close(Duration::from_secs(20)).unwrap();
    };
    std::thread::scope(|scope| {
        let ranks = [0, 1].map(|number| scope.spawn(move || rank(number)));
        ranks.into_iter().for_each(|rank| rank.join().unwrap());
    });
}
