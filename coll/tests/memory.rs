//! The memory that boards keep. Alone in its process, whose mappings it reads.
#![cfg(all(not(loom), target_os = "linux"))]
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use std::sync::{Arc, Barrier};
use std::time::Duration;

use tagwire_base::Rank;
use tagwire_base::bootstrap::LocalJob;
use tagwire_coll::{Reduction, Selection, Team};
use tagwire_layout::{Basic, Layout, Operation};
use tagwire_pml::ob1::{Ob1, Ob1Options};
use tagwire_pml::wait::WaitPolicy;
use tagwire_pml::{Messenger, ThreadLevel};
use tagwire_transport::shm::{Shm, ShmOptions};

const SIZE: usize = 2;
const GROUPS: usize = 24;
/// All slots of a board come to be written.
const VALUES: usize = 1 << 20;
/// Two boards and a half of each rank.
const BUDGET: usize = 5 << 20;

/// Returns how many bytes of boards are mapped here and exist. Each rank is a thread that maps each board.
fn resident() -> usize {
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let (mut is_board, mut sum) = (false, 0);
    for line in maps.lines() {
        if let Some(rest) = line.strip_prefix("Rss:").filter(|_| is_board) {
            let kib: usize = rest.trim().trim_end_matches(" kB").parse().unwrap();
            sum += kib << 10;
        } else if line.contains('-') && !line.contains(": ") {
            is_board = line.contains("tagwire-board");
        }
    }
    sum
}

/// An allreduce of the ranks' numbers, as long as all slots.
fn use_board(group: &Team, value: u8) {
    let by = Reduction {
        operation: &Operation::Sum,
        layout: &Layout::of(Basic::U8),
    };
    let mut data = vec![group.me() as u8 + value; 8 * VALUES];
    group.allreduce(by, &mut data).unwrap();
    assert!(data.iter().all(|sum| *sum == 2 * value + 1));
}

fn body(team: &Team, turn: &Barrier) -> usize {
    let make = |_| {
        let group = team.duplicate().unwrap();
        (0..4).for_each(|_| group.barrier().unwrap());
        use_board(&group, 1);
        group
    };
    let groups: Vec<_> = (0..GROUPS).map(make).collect();
    turn.wait();
    let kept = resident();
    turn.wait();
    // Boards whose memory was given back work on, as do those that kept it.
    for value in [3, 5] {
        groups.iter().for_each(|group| use_board(group, value));
    }
    kept
}

#[test]
fn idle_boards_give_back_what_is_above_the_budget() {
    let (job, turn) = (LocalJob::new(SIZE as u32).unwrap(), Barrier::new(SIZE));
    let kept: Vec<_> = std::thread::scope(|scope| {
        let start = |number: usize| {
            let (job, turn) = (job.clone(), &turn);
            scope.spawn(move || {
                let mut member = job.member(Rank::new(number as u32));
                let rail = Box::new(Shm::open(ShmOptions::default(), &mut member).unwrap());
                let ob1 = Ob1::open(&Ob1Options::default(), rail, Box::new(member)).unwrap();
                let policy = WaitPolicy::adaptive(true);
                let messenger = Arc::new(Messenger::new(ob1, ThreadLevel::Single, policy));
                let selection = Selection::default().with_board_memory(BUDGET);
                let team = Team::world(&messenger, Arc::new(selection));
                let kept = body(&team, turn);
                let _ = messenger.close(Duration::from_secs(20));
                kept
            })
        };
        let threads: Vec<_> = (0..SIZE).map(start).collect();
        let kept = threads.into_iter().map(|thread| thread.join().unwrap());
        kept.collect()
    });
    // Each page is in the mapping of each rank; beside slots a board has a few pages of lines. A rank may keep one board more, where
    // the other has not done with those that are idle.
    let board = 2 << 20;
    let most = SIZE * SIZE * (BUDGET + board + GROUPS * (64 << 10));
    assert!(
        kept.iter().all(|kept| *kept > 0 && *kept <= most),
        "{kept:?}, at most {most}"
    );
    // All of them would keep more than three times as much.
    assert!(SIZE * SIZE * GROUPS * board > 3 * most);
}
