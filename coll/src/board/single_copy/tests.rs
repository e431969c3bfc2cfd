//! Memory that some member cannot read.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::thread;
use std::time::Duration;

use tagwire_base::Rank;
use tagwire_base::bootstrap::LocalJob;
use tagwire_layout::{Basic, Layout, Operation};
use tagwire_pml::ob1::{Ob1, Ob1Options};
use tagwire_pml::{Messenger, ThreadLevel, WaitPolicy};
use tagwire_transport::MemberMemory;
use tagwire_transport::shm::{Shm, ShmOptions};

use super::*;
use crate::algorithms::Collective;
use crate::board::Head;
use crate::board::state::Boards;
use crate::operations::Allreduce;
use crate::{Reduction, Selection, Team};

const SIZE: usize = 3;
/// Bytes of a member. A part is longer than a slot, and the parts are not of one length.
const BYTES: usize = SIZE * ((64 << 10) + 100) + 1;

/// Can be read so many times.
struct Brittle {
    memory: Arc<dyn MemberMemory>,
    reads: Arc<AtomicUsize>,
}

impl MemberMemory for Brittle {
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        let spend = |left: usize| left.checked_sub(1);
        let is_left = self.reads.fetch_update(Relaxed, Relaxed, spend).is_ok();
        is_left && self.memory.read(address, into)
    }
}

/// Can be read once a flag is set.
struct Late {
    memory: Arc<dyn MemberMemory>,
    is_time: Arc<AtomicBool>,
}

impl MemberMemory for Late {
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        while !self.is_time.load(Acquire) {
            thread::yield_now();
        }
        self.memory.read(address, into)
    }
}

/// Runs `body` as each member of a group whose second member can read so many times.
fn with_reads<T: Send>(reads: usize, body: impl Fn(&Team) -> T + Sync) -> Vec<T> {
    let reads = Arc::new(AtomicUsize::new(reads));
    let brittle = |memory| {
        let reads = Arc::clone(&reads);
        Arc::new(Brittle { memory, reads }) as _
    };
    with_memory(brittle, body)
}

/// The same, where its second member reads what `around` returns of the memory of another.
fn with_memory<T: Send>(
    around: impl Fn(Arc<dyn MemberMemory>) -> Arc<dyn MemberMemory> + Sync,
    body: impl Fn(&Team) -> T + Sync,
) -> Vec<T> {
    let job = LocalJob::new(SIZE as u32).unwrap();
    let names = ["allgather", "alltoall", "allreduce"];
    let forced = names.map(|name| format!("{name}:single-copy")).join(",");
    let selection = Arc::new(Selection::parse(&forced).unwrap());
    let run = |number: usize| {
        let mut member = job.member(Rank::new(number as u32));
        let rail = Box::new(Shm::open(ShmOptions::default(), &mut member).unwrap());
        let ob1 = Ob1::open(&Ob1Options::default(), rail, Box::new(member)).unwrap();
        let policy = WaitPolicy::adaptive(true);
        let messenger = Arc::new(Messenger::new(ob1, ThreadLevel::Single, policy));
        let team = Team::world(&messenger, Arc::clone(&selection));
        let mut boards = team.run(Boards::meet(&team, Boards::tags(&team))).unwrap();
        if number == 1 {
            let memories = boards.as_mut().unwrap().memories.as_mut().unwrap();
            for memory in memories.members.iter_mut().flatten() {
                *memory = around(Arc::clone(memory));
            }
        }
        team.board.keep(boards);
        let end = body(&team);
        let _ = messenger.close(Duration::from_secs(20));
        end
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..SIZE)
            .map(|number| {
                let run = &run;
                scope.spawn(move || run(number))
            })
            .collect();
        let ends = threads.into_iter().map(|thread| thread.join());
        ends.map(Result::unwrap).collect()
    })
}

fn reads(team: &Team) -> bool {
    team.board.memories().unwrap().are_read()
}

fn data(member: usize) -> Vec<u8> {
    let bytes = (0..BYTES).map(|at| (at * 7 + member * 31 + at / 251) as u8);
    bytes.collect()
}

fn sums() -> Vec<u8> {
    let all: Vec<_> = (0..SIZE).map(data).collect();
    let sum = |at: usize| all.iter().fold(0_u8, |sum, one| sum.wrapping_add(one[at]));
    (0..BYTES).map(sum).collect()
}

/// A member reads of two others and, in a reduction, two pieces each and their results.
#[test]
fn an_operation_begins_anew_where_a_member_cannot_read_and_later_ones_read_no_more() {
    let layout = Layout::of(Basic::U8);
    let sum = Reduction {
        operation: &Operation::Sum,
        layout: &layout,
    };
    let calls: [&(dyn Fn(&Team) + Sync); 4] = [
        &|team| {
            let mut out = vec![0; SIZE * BYTES];
            team.allgather(&data(team.me()), &mut out).unwrap();
            assert!(out == (0..SIZE).flat_map(data).collect::<Vec<_>>());
        },
        &|team| {
            let (me, block) = (team.me(), BYTES / SIZE);
            let mut out = vec![0; SIZE * block];
            team.alltoall(&data(me)[..SIZE * block], &mut out).unwrap();
            let own = |member| data(member)[me * block..][..block].to_vec();
            assert!(out == (0..SIZE).flat_map(own).collect::<Vec<_>>());
        },
        &|team| {
            let (input, mut out) = (data(team.me()), vec![0; BYTES]);
            team.call(Allreduce {
                operator: sum.into(),
                input: Some(&input),
                data: &mut out,
            })
            .unwrap();
            assert!(out == sums());
        },
        &|team| {
            let mut both = data(team.me());
            team.allreduce(sum, &mut both).unwrap();
            assert!(both == sums());
        },
    ];
    // So many reads of the second member are too few, and so many are enough. In a reduction the last two are of results.
    let reads_of = [(0..2, 2), (0..2, 2), (0..6, 6), (0..6, 6)];
    for (call, (too_few, enough)) in calls.into_iter().zip(reads_of) {
        for left in too_few.chain([enough]) {
            with_reads(left, |team| {
                call(team);
                assert_eq!(reads(team), left == enough, "{left} reads");
                call(team);
                assert!(!reads(team));
            });
        }
    }
}

/// The last member has shown that it has read all, and fails. The first one hears so, and its program changes the data, while the second
/// one still reads.
#[test]
fn what_was_read_of_a_member_that_has_failed_meanwhile_counts_for_nothing() {
    let has_failed = Arc::new(AtomicBool::new(false));
    let late = |memory| {
        let is_time = Arc::clone(&has_failed);
        Arc::new(Late { memory, is_time }) as _
    };
    let ends = with_memory(late, |team| {
        let (mut own, mut out) = (data(team.me()), vec![0; SIZE * BYTES]);
        let end = if team.me() == SIZE - 1 {
            let shared = team.board.board.get().unwrap().as_ref().unwrap();
            let head = Head::of(Collective::Allgather, BYTES);
            let mut call = BoardCall::new(team, shared, shared.enter().unwrap(), head);
            let first = call.begin(2);
            call.show_place(first, Some(&own)).unwrap();
            call.show_whether_read(first + 1, true).unwrap();
            let gone = Error::Gone { member: team.me() };
            call.give_up(&gone);
            Err(gone)
        } else {
            team.allgather(&own, &mut out)
        };
        if team.me() == 0 {
            own.fill(0xee);
            has_failed.store(true, Release);
        }
        (end, own, out)
    });
    for (end, _, out) in &ends {
        assert!(matches!(end, Err(Error::Gone { .. })), "{end:?}");
        assert!(out.len() == SIZE * BYTES);
    }
}

#[test]
fn pieces_are_whole_units() {
    let of = |total, unit| pieces_of(total, unit).collect::<Vec<_>>();
    assert!(of(0, 8).is_empty());
    assert_eq!(
        of(READ_AT_ONCE + 8, 8),
        [0..READ_AT_ONCE, READ_AT_ONCE..READ_AT_ONCE + 8]
    );
    let long = READ_AT_ONCE + 1;
    assert_eq!(of(2 * long, long), [0..long, long..2 * long]);
    assert_eq!(of(30_000 * 3, 30_000), [0..60_000, 60_000..90_000]);
}
