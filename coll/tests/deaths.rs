//! A member dies in any phase of any operation: the others' operations end, and those who are left make a new group.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod common;

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Barrier, OnceLock};
use std::time::Duration;

use common::cases::{cases, start};
use common::each_forced;
use common::graphs::Graph;
use tagwire_base::Rank;
use tagwire_base::bootstrap::LocalJob;
use tagwire_coll::operations::{Blocks, NeighbourAlltoall, Parts};
use tagwire_coll::{Error, Grid, Neighbours, Reduction, Result, Selection, Team};
use tagwire_conformance::network::matching::{MatchNetwork, MatchOptions};
use tagwire_conformance::network::{MemoryNetwork, MemoryOptions};
use tagwire_layout::{Basic, Layout, Operation};
use tagwire_pml::cm::{Cm, CmOptions};
use tagwire_pml::ob1::{Ob1, Ob1Options};
use tagwire_pml::{Messenger, ThreadLevel, WaitPolicy};
use tagwire_transport::fault::{FaultOptions, FaultTransport};

const SIZE: usize = 5;
const VICTIM: usize = 2;

/// Long enough for the rendezvous protocol.
const LONG: usize = 40_000;

/// Operations of [`up_to`].
const OPERATIONS: usize = 12;

/// All operations once.
fn everything(team: &Team, bytes: usize) -> Result<()> {
    up_to(team, bytes, OPERATIONS)
}

/// The first `stop` operations.
fn up_to(team: &Team, bytes: usize, stop: usize) -> Result<()> {
    let (operation, layout) = (Operation::Sum, Layout::of(Basic::U8));
    let sum = Reduction {
        operation: &operation,
        layout: &layout,
    };
    let (size, me) = (team.size(), team.me());
    let own = vec![1; bytes];
    let (mut whole, mut other) = (vec![0; bytes * size], vec![0; bytes * size]);
    let mut out = vec![0; bytes];
    for operation in 0..stop {
        match operation {
            0 => team.barrier(),
            1 => team.broadcast(&mut out, 1),
            2 => team.reduce(sum, &own, (me == 0).then_some(&mut out), 0),
            3 => team.allreduce(sum, &mut out),
            4 => team.scan(sum, &mut out),
            5 => team.reduce_scatter(sum, &whole, &vec![bytes; size], &mut out),
            6 => team.allgather(&own, &mut whole),
            7 => team.gather(&own, (me == 3).then_some(&mut whole), 3),
            8 => team.scatter((me == 3).then_some(&whole), &mut out, 3),
            9 => team.alltoall(&whole, &mut other),
            10 => {
                let input: Vec<_> = whole.chunks(bytes).collect();
                let mut out: Vec<_> = other.chunks_mut(bytes).collect();
                team.alltoallw(&input, &mut out)
            }
            _ => {
                let ring = Neighbours::cartesian(&Grid::new(&[size], &[true])?, me)?;
                team.call(NeighbourAlltoall {
                    neighbours: ring,
                    input: Blocks::Together(&whole[..2 * bytes], Parts::Equal),
                    out: Blocks::Together(&mut other[..2 * bytes], Parts::Equal),
                })
            }
        }?;
    }
    Ok(())
}

/// All operations once, at the same time. Returns the first failure; all have ended then.
fn everything_at_once(team: &Arc<Team>, round: u64) -> Result<()> {
    let mut list = cases(team, round);
    let mut exchanges = Graph::random(team.size(), round).cases(team.me(), round);
    let mut ended = Ok(());
    let mut open = Vec::new();
    let first = list.iter_mut().map(|case| case.try_start(team));
    let second = exchanges.iter_mut().map(|case| start(case, team));
    for started in first.chain(second) {
        match started {
            Ok(request) => open.push(request),
            // Refused, since one that is under way has failed: that one says why.
            Err(Error::Broken) => break,
            Err(error) => panic!("{error}"),
        }
    }
    for request in open {
        let end = request.wait(None);
        ended = ended.and(end);
    }
    ended
}

/// How a rank calls the operations.
#[derive(Debug, Clone, Copy)]
enum Calls {
    Blocking,
    AtOnce,
    /// Blocking ones of one length.
    Long(usize),
}

impl Calls {
    fn of(self, team: &Arc<Team>) -> Result<()> {
        match self {
            Self::Blocking => everything(team, 8).and_then(|()| everything(team, LONG)),
            Self::Long(bytes) => everything(team, bytes),
            Self::AtOnce => everything_at_once(team, 1).and_then(|()| everything_at_once(team, 4)),
        }
    }
}

/// Runs a rank until a member is found dead; tells what its operation ended with.
fn survive(team: &Arc<Team>, calls: Calls, both_left: &Barrier) -> Result<Error> {
    let end = loop {
        if let Err(error) = calls.of(team) {
            break error;
        }
    };
    assert!(matches!(team.barrier(), Err(Error::Broken)));
    let left: Vec<_> = (0..SIZE).filter(|member| *member != VICTIM).collect();
    let rest = Arc::new(team.subset(&left)?);
    calls.of(&rest)?;
    // Nobody is missed by another who still works.
    both_left.wait();
    Ok(end)
}

/// Opens a rank's port.
type Open = dyn Fn(Rank, LocalJob) -> Messenger + Send + Sync;

/// What the victim does until it dies.
type Die = dyn Fn(&Arc<Team>) + Send + Sync;

/// Runs ranks of which one dies.
fn run(what: &str, selection: &Selection, calls: Calls, open: Arc<Open>, die: Arc<Die>) {
    let job = LocalJob::new(SIZE as u32).unwrap();
    let (sender, ends) = channel();
    let left = Arc::new(Barrier::new(SIZE - 1));
    for number in 0..SIZE {
        let (job, left) = (job.clone(), Arc::clone(&left));
        let (open, die) = (Arc::clone(&open), Arc::clone(&die));
        let selection = Arc::new(selection.clone());
        let sender: Sender<Result<Error>> = sender.clone();
        // Not joined: the dead rank's thread waits for ever.
        std::thread::spawn(move || {
            let messenger = Arc::new(open(Rank::new(number as u32), job));
            let team = Arc::new(Team::world(&messenger, selection));
            if number == VICTIM {
                die(&team);
                loop {
                    std::thread::park();
                }
            }
            let end = survive(&team, calls, &left);
            let _ = messenger.close(Duration::from_secs(5));
            let _ = sender.send(end);
        });
    }
    for _ in 1..SIZE {
        let end = ends.recv_timeout(Duration::from_secs(60));
        let end = end.unwrap_or_else(|_| panic!("{what}: somebody hangs"));
        let end = end.unwrap_or_else(|error| panic!("{what}: {error}"));
        let named = end.to_string().contains(&format!("rank {VICTIM}"));
        assert!(named, "{what}: {end}");
    }
}

/// Over ob1; the victim dies with a message.
fn run_ob1(selection: &Selection, calls: Calls, kill_after: u64) {
    let network = MemoryNetwork::new(SIZE as u32, MemoryOptions::full());
    let open = move |rank: Rank, job: LocalJob| {
        let (network, reporter) = (network.clone(), job.clone());
        let faults = FaultOptions {
            kill_after: (rank.index() == VICTIM).then_some(kill_after),
            ..FaultOptions::default()
        };
        let rail =
            FaultTransport::new(Box::new(network.rank(rank)), rank, faults).on_death(move |rank| {
                network.fail(rank);
                // As a launcher does: a rank that was never in contact is missed by nobody else.
                reporter.declare_failed(rank);
            });
        let options = Ob1Options::default();
        let ob1 = Ob1::open(&options, Box::new(rail), Box::new(job.member(rank))).unwrap();
        Messenger::new(ob1, ThreadLevel::Single, WaitPolicy::adaptive(true))
    };
    let what = format!("{selection}, {calls:?}, {kill_after}");
    let die = move |team: &Arc<Team>| while calls.of(team).is_ok() {};
    run(&what, selection, calls, Arc::new(open), Arc::new(die));
}

/// Over cm; the victim dies before an operation.
fn run_cm(selection: &Selection, stop: usize, bytes: usize) {
    let network = MatchNetwork::new(SIZE as u32, MatchOptions::default());
    let job: Arc<OnceLock<LocalJob>> = Arc::default();
    let (ranks, seen) = (network.clone(), Arc::clone(&job));
    let open = move |rank: Rank, job: LocalJob| {
        let _ = seen.set(job.clone());
        let rail = Box::new(ranks.rank(rank));
        let cm = Cm::open(&CmOptions::default(), rail, Box::new(job.member(rank))).unwrap();
        Messenger::new(cm, ThreadLevel::Single, WaitPolicy::adaptive(true))
    };
    let die = move |team: &Arc<Team>| {
        let _ = up_to(team, bytes, stop);
        let victim = Rank::new(VICTIM as u32);
        network.fail(victim);
        job.get().unwrap().declare_failed(victim);
    };
    let what = format!("cm, {selection}, {stop}, {bytes}");
    let calls = Calls::Long(bytes);
    run(&what, selection, calls, Arc::new(open), Arc::new(die));
}

/// When the victim dies, in messages of its own.
fn times() -> impl Iterator<Item = u64> {
    (0..24).chain([30, 47, 60, 75, 90, 120, 200])
}

#[test]
fn operations_end_when_a_member_dies() {
    for forced in each_forced() {
        let selection = Selection::parse(&forced).unwrap();
        for kill_after in times() {
            run_ob1(&selection, Calls::Blocking, kill_after);
        }
    }
}

/// The victim is the leader of a host, or another of its members.
#[test]
fn operations_of_two_levels_end_when_a_member_dies() {
    for hosts in [[0, 0, 1, 1, 1], [0, 1, 0, 1, 1]] {
        for forced in ["", "allreduce:multi-lane"] {
            let selection = Selection::parse(forced).unwrap().with_hosts(&hosts, true);
            for kill_after in times() {
                run_ob1(&selection, Calls::Blocking, kill_after);
            }
        }
    }
}

/// The same for operations that are all under way.
#[test]
fn nonblocking_operations_end_when_a_member_dies() {
    for kill_after in (0..24).chain([30, 47, 60, 75, 90, 120, 200, 300]) {
        run_ob1(&Selection::default(), Calls::AtOnce, kill_after);
    }
}

/// Where the transport matches, members that have broken off receive what others still send.
#[test]
fn operations_over_cm_end_when_a_member_dies() {
    for names in [
        "",
        "reduce:scatter-gather,allreduce:ring,broadcast:scatter-ring,gather:linear",
    ] {
        for stop in 0..OPERATIONS {
            for bytes in [8, LONG] {
                run_cm(&Selection::parse(names).unwrap(), stop, bytes);
            }
        }
    }
}

/// An operation that failed at one member ends at all, also at those who have nothing to do with it.
#[test]
fn all_hear_of_a_member_that_has_broken_off() {
    for size in [3, 5] {
        let ends = common::ranks(size, "allgather:ring", |team| {
            // Members 0 and 1 do not agree.
            let mut data = vec![0; if team.me() == 1 { 9 } else { 8 }];
            let end = team.broadcast(&mut data, 0);
            end.and_then(|()| {
                loop {
                    team.barrier()?;
                }
            })
        });
        for end in ends {
            let end: Result<()> = end;
            assert!(end.is_err(), "{end:?}");
        }
    }
}
