//! A member of a group of two sides dies, while that is made or later: all operations of the others end.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use crate::common::sides::{Blocking, Sided, everything};
use tagwire_base::Rank;
use tagwire_base::bootstrap::LocalJob;
use tagwire_coll::{Error, Selection, Team};
use tagwire_conformance::network::{MemoryNetwork, MemoryOptions};
use tagwire_pml::ob1::{Ob1, Ob1Options};
use tagwire_pml::{Messenger, ThreadLevel, WaitPolicy};
use tagwire_transport::fault::{FaultOptions, FaultTransport};

const SIZE: usize = 5;

fn open(network: &MemoryNetwork, job: &LocalJob, rank: Rank, kill_after: Option<u64>) -> Messenger {
    let (failing, reporter) = (network.clone(), job.clone());
    let faults = FaultOptions {
        kill_after,
        ..FaultOptions::default()
    };
    let rail =
        FaultTransport::new(Box::new(network.rank(rank)), rank, faults).on_death(move |rank| {
            failing.fail(rank);
            reporter.declare_failed(rank);
        });
    let options = Ob1Options::default();
    let ob1 = Ob1::open(&options, Box::new(rail), Box::new(job.member(rank))).unwrap();
    Messenger::new(ob1, ThreadLevel::Single, WaitPolicy::adaptive(true))
}

/// Makes a group of two sides, and uses it until that fails.
fn until_it_fails(team: &Team, sided: &Sided) -> Error {
    let both = match sided.bridge(team, "") {
        Ok(both) => Arc::new(both),
        Err(error) => return error,
    };
    loop {
        if let Err(error) = everything(&both, 1, &Blocking) {
            return error;
        }
    }
}

/// Runs ranks of which one dies with a message. Returns whether it lived to make its side with them.
fn run(victim: usize, kill_after: u64) -> bool {
    let (network, job) = (
        MemoryNetwork::new(SIZE as u32, MemoryOptions::full()),
        LocalJob::new(SIZE as u32).unwrap(),
    );
    let (sender, ends) = channel();
    let have_sides = Arc::new(Barrier::new(SIZE - 1));
    let (made, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    for number in 0..SIZE {
        let (network, job, sender) = (network.clone(), job.clone(), sender.clone());
        let have_sides = Arc::clone(&have_sides);
        let (made, done) = (Arc::clone(&made), Arc::clone(&done));
        // Not joined: the dead rank's thread waits for ever.
        std::thread::spawn(move || {
            let kill_after = (number == victim).then_some(kill_after);
            let rank = Rank::new(number as u32);
            let messenger = Arc::new(open(&network, &job, rank, kill_after));
            let team = Team::world(&messenger, Arc::new(Selection::default()));
            let sided = Sided::of(&team);
            if number == victim {
                until_it_fails(&team, &sided.unwrap());
                loop {
                    std::thread::park();
                }
            }
            made.fetch_add(usize::from(sided.is_ok()), SeqCst);
            have_sides.wait();
            // Without a side a member is missed by those who have one and know of no death among them.
            let lived = made.load(SeqCst) == SIZE - 1;
            if let (Ok(sided), true) = (&sided, lived) {
                until_it_fails(&team, sided);
            }
            // What others still send to this one is dropped by its progress.
            done.fetch_add(1, SeqCst);
            let have_all = || Ok((done.load(SeqCst) == SIZE - 1).then_some(()));
            messenger.progress_until(None, have_all).unwrap();
            let _ = sender.send(lived);
        });
    }
    let ends = (1..SIZE).map(|_| ends.recv_timeout(Duration::from_secs(60)));
    let lived: Result<Vec<bool>, _> = ends.collect();
    let lived = lived.unwrap_or_else(|_| panic!("{victim}, {kill_after}: somebody hangs"));
    lived[0]
}

/// The leader of a side, a member of one, and its only other member.
#[test]
fn operations_of_two_sides_end_when_a_member_dies() {
    for victim in [4, 2, 1] {
        let times = (2..22).chain([30, 40, 60, 90, 120, 200]);
        let lived = times.filter(|kill_after| run(victim, *kill_after));
        assert!(lived.count() > 12);
    }
}
