//! A short blocking collective on one host allocates nothing: its ranks are threads over shared memory, of which each counts.
#![cfg(all(target_os = "linux", not(loom)))]
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use std::sync::{Arc, Barrier};
use std::time::Duration;

use tagwire_base::Rank;
use tagwire_base::bootstrap::LocalJob;
use tagwire_coll::operations::{Allgather, Alltoall, Blocks, Parts};
use tagwire_coll::{Reduction, Selection, Team};
use tagwire_conformance::allocations::{CountingAllocator, allocations};
use tagwire_layout::{Basic, Layout, Operation};
use tagwire_pml::ob1::{Ob1, Ob1Options};
use tagwire_pml::{Messenger, ThreadLevel, WaitPolicy};
use tagwire_transport::shm::{Shm, ShmOptions};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// A line, and a piece of a slot.
const LENGTHS: [usize; 2] = [8, 4096];

/// Every operation that takes a board, once for each length. Returns those that have allocated, with how often.
fn allocate(team: &Team) -> Vec<(&'static str, usize, u64)> {
    let (me, size) = (team.me(), team.size());
    let layout = Layout::of(Basic::F64);
    let sum = Reduction {
        operation: &Operation::Sum,
        layout: &layout,
    };
    let (mut own, mut out) = (vec![0; 4096], vec![0; 4096]);
    let (mut all, mut from) = (vec![0; 4096 * size], vec![0; 4096 * size]);
    let mut found = Vec::with_capacity(100);
    for len in LENGTHS {
        let mut look = |what, operation: &mut dyn FnMut() -> tagwire_coll::Result<()>| {
            let before = allocations();
            operation().unwrap();
            match allocations() - before {
                0 => {}
                times => found.push((what, len, times)),
            }
        };
        let (own, out) = (&mut own[..len], &mut out[..len]);
        let (all, from) = (&mut all[..len * size], &mut from[..len * size]);
        look("barrier", &mut || team.barrier());
        look("broadcast", &mut || team.broadcast(own, 0));
        look("allreduce", &mut || team.allreduce(sum, own));
        look("reduce", &mut || {
            team.reduce(sum, own, (me == 1).then_some(&mut *out), 1)
        });
        look("allgather", &mut || team.allgather(own, all));
        look("allgather in place", &mut || {
            let parts = Parts::Equal;
            team.call(Allgather {
                own: None,
                parts,
                out: all,
            })
        });
        look("alltoall", &mut || team.alltoall(all, from));
        look("alltoall in place", &mut || {
            let (input, out) = (None, Blocks::Together(&mut *all, Parts::Equal));
            team.call(Alltoall { input, out })
        });
        look("gather", &mut || {
            team.gather(own, (me == 0).then_some(&mut *all), 0)
        });
        look("scatter", &mut || {
            team.scatter((me == 0).then_some(&*all), own, 0)
        });
    }
    found
}

#[test]
fn short_collectives_allocate_nothing() {
    for size in [2, 3] {
        let job = LocalJob::new(size).unwrap();
        let together = Arc::new(Barrier::new(size as usize));
        let start = |number: u32| {
            let (job, together) = (job.clone(), Arc::clone(&together));
            std::thread::spawn(move || {
                let mut member = job.member(Rank::new(number));
                let rail = Box::new(Shm::open(ShmOptions::default(), &mut member).unwrap());
                let ob1 = Ob1::open(&Ob1Options::default(), rail, Box::new(member)).unwrap();
                let policy = WaitPolicy::adaptive(true);
                let messenger = Arc::new(Messenger::new(ob1, ThreadLevel::Single, policy));
                let team = Team::world(&messenger, Arc::new(Selection::default()));
                // The board is made, and what is kept from one operation to the next.
                let first = allocate(&team);
                assert!(!first.is_empty(), "the board comes from somewhere");
                let found: Vec<_> = (0..100).flat_map(|_| allocate(&team)).collect();
                together.wait();
                drop(team);
                let _ = messenger.close(Duration::from_secs(20));
                found
            })
        };
        let threads: Vec<_> = (0..size).map(start).collect();
        for thread in threads {
            let found = thread.join().unwrap();
            assert!(found.is_empty(), "{size} ranks: {found:?}");
        }
    }
}
