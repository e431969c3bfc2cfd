//! Operations through a board in shared memory: ranks are threads, each with a transport of its own.
#![cfg(not(loom))]
#![allow(unsafe_code, reason = "starts operations")]

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use crate::common::composition;
use crate::common::shm::{on_shm, on_shm_by};
use tagwire_base::{SourceSelector, Tag, TagSelector};
use tagwire_coll::operations::{
    Allgather, Allreduce, Alltoall, Barrier as NonblockingBarrier, Blocks, Broadcast,
    CollectiveOperation, Gather, Parts, ReduceScatter, Scatter,
};
use tagwire_coll::{ALGORITHMS, Collective, Error, Needs, Reduction, Selection, Team};
use tagwire_layout::{Basic, Layout, Operation, UserOperation};
use tagwire_pml::SendMode;
use tagwire_pml::wait::WaitMode;
use tagwire_transport::fault::SplitMix64;
use tagwire_transport::{Pack, RecvBuffer, SendBuffer, Unpack};

/// What `rank` gives in `round`.
fn data(rank: usize, round: u64, bytes: usize) -> Vec<u8> {
    SplitMix64::stream(round << 32 | rank as u64, 2).bytes(bytes)
}

/// Lengths in elements around the bounds of lines and slots, and of several slots.
const COUNTS: [usize; 12] = [0, 1, 3, 6, 7, 511, 512, 2048, 2049, 4097, 16_384, 40_000];

/// Every operation that takes a board once, against a serial oracle. `round` picks lengths, roots and operations.
fn everything(team: &Team, round: u64) {
    let (me, size) = (team.me(), team.size());
    let mut draws = SplitMix64::stream(round, 1);
    let mut below = |end: usize| draws.below(end as u64) as usize;
    let root = below(size);
    let (operation, layout) = match round % 3 {
        0 => composition(),
        1 => (Operation::Sum, Layout::of(Basic::U64)),
        _ => (Operation::Max, Layout::of(Basic::I32)),
    };
    let sum = Reduction {
        operation: &operation,
        layout: &layout,
    };
    let bytes = COUNTS[below(COUNTS.len())] * layout.extent();
    let own = data(me, round, bytes);
    let mut inputs = (0..size).map(|rank| data(rank, round, bytes));
    let first = inputs.next().unwrap();
    let combined = inputs.fold(first, |sum, mut into| {
        operation.combine(&layout, &sum, &mut into).unwrap();
        into
    });

    team.barrier().unwrap();
    let mut both = own.clone();
    team.allreduce(sum, &mut both).unwrap();
    assert!(both == combined, "allreduce of {bytes}");
    let mut beside = vec![0; bytes];
    team.call(Allreduce {
        operator: sum.into(),
        input: Some(&own),
        data: &mut beside,
    })
    .unwrap();
    assert!(beside == combined, "allreduce of {bytes} beside");
    let mut out = (me == root).then(|| vec![0; bytes]);
    team.reduce(sum, &own, out.as_deref_mut(), root).unwrap();
    assert!(out.is_none_or(|out| out == combined), "reduce of {bytes}");
    // Parts of any length, none among them.
    let mut ends: Vec<usize> = (1..size)
        .map(|_| below(bytes / layout.extent() + 1) * layout.extent())
        .collect();
    ends.extend([0, bytes]);
    ends.sort_unstable();
    let lengths: Vec<usize> = ends.windows(2).map(|two| two[1] - two[0]).collect();
    let mut part = vec![0; lengths[me]];
    team.reduce_scatter(sum, &own, &lengths, &mut part).unwrap();
    let mine = ends[me]..ends[me + 1];
    assert!(part == combined[mine], "reduce-scatter of {lengths:?}");
    let mut within = own.clone();
    team.call(ReduceScatter {
        operator: sum.into(),
        input: None,
        lengths: lengths.clone().into(),
        out: &mut within,
    })
    .unwrap();
    let (result, rest) = within.split_at(part.len());
    let kept = rest == &own[part.len()..];
    assert!(
        result == part && kept,
        "reduce-scatter of {lengths:?} in place"
    );

    let bytes = COUNTS[below(COUNTS.len())] * 3 + below(3);
    let own = data(me, round, bytes);
    let mut whole = if me == root {
        own.clone()
    } else {
        vec![0; bytes]
    };
    team.broadcast(&mut whole, root).unwrap();
    assert!(whole == data(root, round, bytes), "broadcast of {bytes}");

    let all: Vec<u8> = (0..size)
        .flat_map(|rank| data(rank, round, bytes))
        .collect();
    let mut out = vec![0; all.len()];
    team.allgather(&own, &mut out).unwrap();
    assert!(out == all, "allgather of {bytes}");
    let mut out = (me == root).then(|| vec![0; all.len()]);
    team.gather(&own, out.as_deref_mut(), root).unwrap();
    assert!(out.is_none_or(|out| out == all), "gather of {bytes}");
    let mut part = vec![0; bytes];
    team.scatter((me == root).then_some(&all[..]), &mut part, root)
        .unwrap();
    assert!(part == own, "scatter of {bytes}");

    let input = data(me, round, bytes * size);
    let mut out = vec![0; bytes * size];
    team.alltoall(&input, &mut out).unwrap();
    let from = |rank| data(rank, round, bytes * size)[me * bytes..][..bytes].to_vec();
    let expected = (0..size).flat_map(from).collect::<Vec<_>>();
    assert!(out == expected, "alltoall of {bytes}");
    out.copy_from_slice(&input);
    team.call(Alltoall {
        input: None,
        out: Blocks::Together(&mut out, Parts::Equal),
    })
    .unwrap();
    assert!(out == expected, "alltoall of {bytes} in place");

    // The root, or all, have their own block where it goes.
    let mut room = vec![0; all.len()];
    room[me * bytes..][..bytes].copy_from_slice(&own);
    let mut gathered = if me == root {
        room.clone()
    } else {
        own.clone()
    };
    team.call(Allgather {
        own: None,
        parts: Parts::Equal,
        out: &mut room,
    })
    .unwrap();
    assert!(room == all, "allgather of {bytes} in place");
    let gather = Gather::in_place(team, &mut gathered, Parts::Equal, root);
    team.call(gather).unwrap();
    let expected = if me == root { &all } else { &own };
    assert!(gathered == *expected, "gather of {bytes} in place");
    if me != root {
        gathered.fill(0);
    }
    let scatter = Scatter::in_place(team, &mut gathered, Parts::Equal, root);
    team.call(scatter).unwrap();
    assert!(gathered == *expected, "scatter of {bytes} in place");
}

#[test]
fn every_operation_gives_what_a_serial_one_gives() {
    // Nine have no board.
    for size in [2, 3, 4, 5, 8, 9] {
        on_shm(size, WaitMode::Adaptive, |team| {
            (0..36).for_each(|round| everything(team, round));
        });
    }
}

/// Whichever is taken at a length: the table has thresholds, and a setting takes one at all.
#[test]
fn each_algorithm_by_a_board_does_every_length() {
    let by_board = ALGORITHMS.iter().filter(|it| it.needs == Needs::Board);
    let choices = by_board.filter(|it| it.collective == Collective::Allreduce || it.reads_memory);
    for algorithm in choices {
        let selection = Selection::parse(&algorithm.to_string()).unwrap();
        for size in [2, 3, 8] {
            let taken = selection.on_board(algorithm.collective, size, 8, true);
            assert_eq!(taken, Some(algorithm));
            on_shm_by(&selection, size, WaitMode::Adaptive, |team| {
                (0..24).for_each(|round| everything(team, round));
            });
        }
    }
}

#[test]
fn sleepers_are_woken() {
    on_shm(3, WaitMode::Sleep, |team| {
        (0..8).for_each(|round| everything(team, round));
    });
}

#[test]
fn groups_have_boards_of_their_own() {
    on_shm(4, WaitMode::Adaptive, |team| {
        let me = team.me();
        for round in 0..3 {
            let half = team.split(Some(me as u32 % 2), -(me as i32)).unwrap();
            let half = half.unwrap();
            (0..4).for_each(|n| everything(&half, round + n));
            (0..4).for_each(|n| everything(team, round + n));
            if me != 1 {
                let picked = team.subset(&[3, 0, 2]).unwrap();
                (0..4).for_each(|n| everything(&picked, round + n));
            }
        }
    });
}

/// Makes sure that the board is there.
fn warm_up(team: &Team) {
    (0..4).for_each(|_| team.barrier().unwrap());
}

fn sum() -> (Operation, Layout) {
    (Operation::Sum, Layout::of(Basic::U8))
}

#[test]
fn calls_that_differ_end_with_an_error_that_names_both() {
    let ends = on_shm(2, WaitMode::Adaptive, |team| {
        warm_up(team);
        let (operation, layout) = sum();
        let sum = Reduction {
            operation: &operation,
            layout: &layout,
        };
        let end = match team.me() {
            0 => team.barrier(),
            _ => team.allreduce(sum, &mut [0; 8]),
        };
        assert!(matches!(team.barrier(), Err(Error::Broken)));
        end.unwrap_err().to_string()
    });
    for end in ends {
        assert!(
            end.contains("barrier") && end.contains("allreduce"),
            "{end}"
        );
    }
}

/// The root and what combines count too, where operation and length are alike.
#[test]
fn roots_and_operations_that_differ_are_found_out() {
    let ends = on_shm(3, WaitMode::Adaptive, |team| {
        warm_up(team);
        let other = team.duplicate().unwrap();
        warm_up(&other);
        // The last member gives to another root than the first one is.
        let root = usize::from(team.me() == 2);
        let mut out = (team.me() == root).then(|| vec![0; 24]);
        let rooted = team.gather(&[1; 8], out.as_deref_mut(), root);
        let rooted = rooted.and_then(|()| team.barrier());
        let layout = Layout::of(Basic::U64);
        let operation = [Operation::Sum, Operation::Max, Operation::Sum][other.me()].clone();
        let by = Reduction {
            operation: &operation,
            layout: &layout,
        };
        let combined = other.allreduce(by, &mut [0; 8]);
        [rooted, combined].map(|end| end.unwrap_err().to_string())
    });
    let [rooted, combined] = [0, 1].map(|which| ends.iter().map(move |one| one[which].clone()));
    let told = |text: &String| text.contains("with root 0") && text.contains("with root 1");
    assert!(rooted.clone().any(|text| told(&text)), "{ends:?}");
    let name = |operation: Operation| operation.name().to_owned();
    let both = [name(Operation::Sum), name(Operation::Max)];
    let told = |text: &String| both.iter().all(|name| text.contains(&format!("by {name}")));
    assert!(combined.clone().any(|text| told(&text)), "{ends:?}");
}

/// Short nonblocking operations are rounds of a board: many at once, beside blocking ones, and they send nothing.
#[test]
fn short_nonblocking_operations_take_a_board() {
    for (size, mode) in [
        (2, WaitMode::Adaptive),
        (5, WaitMode::Adaptive),
        (3, WaitMode::Sleep),
    ] {
        on_shm(size, mode, |team| {
            let team = &Arc::new(team.duplicate().unwrap());
            warm_up(team);
            let (operation, layout) = composition();
            let by = || Reduction {
                operation: &operation,
                layout: &layout,
            };
            let (me, size) = (team.me(), team.size());
            for round in 0..16 {
                let root = round as usize % size;
                let mut sums: Vec<_> = (0..7).map(|n| data(me, round * 8 + n, 48)).collect();
                let mut named = vec![if me == root { 7 } else { 0 }; 33];
                let mut open = Vec::new();
                for own in &mut sums {
                    let one = Allreduce {
                        operator: by().into(),
                        input: None,
                        data: own,
                    };
                    // SAFETY: the data are there until all have ended, below.
                    open.push(unsafe { team.start(one) }.unwrap());
                }
                let one = Broadcast {
                    data: &mut named,
                    root: root.into(),
                };
                // SAFETY: as above.
                open.push(unsafe { team.start(one) }.unwrap());
                // SAFETY: it borrows nothing.
                open.push(unsafe { team.start(NonblockingBarrier) }.unwrap());
                everything(team, round);
                for request in open.iter().rev() {
                    request.wait(None).unwrap();
                }
                for (n, sum) in sums.iter().enumerate() {
                    let mut inputs = (0..size).map(|rank| data(rank, round * 8 + n as u64, 48));
                    let first = inputs.next().unwrap();
                    let combined = inputs.fold(first, |sum, mut into| {
                        operation.combine(&layout, &sum, &mut into).unwrap();
                        into
                    });
                    assert!(*sum == combined, "allreduce {n} of round {round}");
                }
                assert_eq!(named, [7; 33]);
            }
        });
    }
}

/// Combines each with the other members' in an operation of its own, all of them under way at once.
fn combine_at_once<const N: usize>(team: &Arc<Team>, by: Reduction<'_>, all: &mut [[u8; N]]) {
    let start = |data: &mut [u8; N]| {
        let one = Allreduce {
            operator: by.into(),
            input: None,
            data,
        };
        // SAFETY: the data are there until all have ended, below.
        unsafe { team.start(one) }.unwrap()
    };
    let open: Vec<_> = all.iter_mut().map(start).collect();
    open.iter().for_each(|one| one.wait(None).unwrap());
}

/// So many at once that they come round to the first line again, while a member is late.
#[test]
fn lines_are_used_again() {
    const COUNT: u64 = 600;
    for size in [2, 3] {
        on_shm(size, WaitMode::Adaptive, |team| {
            let team = &Arc::new(team.duplicate().unwrap());
            warm_up(team);
            if team.me() == 1 {
                std::thread::sleep(Duration::from_millis(20));
            }
            let (operation, layout) = (Operation::Sum, Layout::of(Basic::U64));
            let by = Reduction {
                operation: &operation,
                layout: &layout,
            };
            let mut sums: Vec<_> = (0..COUNT)
                .map(|n| (n + team.me() as u64).to_ne_bytes())
                .collect();
            combine_at_once(team, by, &mut sums);
            let ranks = size as u64;
            for (n, sum) in (0..COUNT).zip(&sums) {
                let expected = n * ranks + ranks * (ranks - 1) / 2;
                assert_eq!(u64::from_ne_bytes(*sum), expected);
            }
        });
    }
}

/// Transfers that come round to the first slot again, while members are several slots apart.
#[test]
fn slots_are_used_again() {
    const BYTES: usize = 70 * tagwire_transport::board::SLOT + 8;
    for size in [2, 3] {
        on_shm(size, WaitMode::Adaptive, |team| {
            warm_up(team);
            let (me, bytes) = (team.me(), BYTES);
            let mut whole = data(if me == 0 { 0 } else { 9 }, 1, bytes);
            team.broadcast(&mut whole, 0).unwrap();
            assert!(whole == data(0, 1, bytes), "broadcast");
            let mut all = vec![0; size * bytes];
            team.allgather(&data(me, 2, bytes), &mut all).unwrap();
            for (rank, block) in all.chunks_exact(bytes).enumerate() {
                assert!(block == data(rank, 2, bytes), "allgather of {rank}");
            }
        });
    }
}

/// Nonblocking operations count among those with which a group gets its boards, and make them themselves. Several are under way
/// before it is known whether there are boards, and a blocking one comes between.
#[test]
fn nonblocking_operations_make_the_boards() {
    for (size, before) in [(2, 0), (2, 3), (3, 9)] {
        on_shm(size, WaitMode::Adaptive, |team| {
            let team = Arc::new(team.duplicate().unwrap());
            if team.me() == 1 {
                std::thread::sleep(Duration::from_millis(20));
            }
            // SAFETY: they borrow nothing.
            let start = |_| unsafe { team.start(NonblockingBarrier) }.unwrap();
            let open: Vec<_> = (0..before).map(start).collect();
            let is_on_board = NonblockingBarrier.on_board(&team).transpose().unwrap();
            assert_eq!(is_on_board.is_some(), before >= 3, "after {before}");
            let late: Vec<_> = (0..9).map(start).collect();
            let (operation, layout) = sum();
            let by = Reduction {
                operation: &operation,
                layout: &layout,
            };
            let mut data = [1; 8];
            team.allreduce(by, &mut data).unwrap();
            assert_eq!(data, [size as u8; 8]);
            let ends = open.iter().chain(&late).rev();
            ends.for_each(|one| one.wait(None).unwrap());
            assert!(NonblockingBarrier.on_board(&team).is_some());
        });
    }
}

/// A member that dies while the others make the boards ends what they have started, and what they call meanwhile.
#[test]
fn a_death_ends_nonblocking_operations_that_make_the_boards() {
    let ends = on_shm(3, WaitMode::Adaptive, |team| {
        let team = Arc::new(team.duplicate().unwrap());
        if team.me() == 2 {
            return None;
        }
        // SAFETY: they borrow nothing.
        let started = [(); 6].map(|()| unsafe { team.start(NonblockingBarrier) });
        let blocking = team.barrier();
        let ends = started.map(|one| one.and_then(|request| request.wait(None)));
        Some(
            ends.into_iter()
                .chain([blocking])
                .filter(Result::is_err)
                .count(),
        )
    });
    assert_eq!(ends, [Some(7), Some(7), None]);
}

/// A member that breaks off while another waits for the boards that one of its own operations makes: whoever hears of it ends what
/// waits beside.
#[test]
fn who_hears_of_an_end_while_boards_are_made_ends_the_others() {
    const LONG: Option<Duration> = Some(Duration::from_secs(60));
    let last = Barrier::new(2);
    let ends = on_shm(2, WaitMode::Adaptive, |team| {
        let team = Arc::new(team.duplicate().unwrap());
        (0..3).for_each(|_| team.barrier().unwrap());
        let me = team.me();
        // As long as goes by messages; the root does not hear of it.
        let mut data = vec![0; 1000 * (me + 1)];
        let broadcast = Broadcast {
            data: &mut data,
            root: 0.into(),
        };
        // SAFETY: it is waited for while `data` is there.
        let end = unsafe { team.start(broadcast) }.unwrap().wait(LONG);
        assert_eq!(end.is_err(), me == 1, "{end:?}");
        let mut ends = Vec::new();
        if me == 0 {
            // SAFETY: it borrows nothing.
            let makes = unsafe { team.start(NonblockingBarrier) }.unwrap();
            ends = vec![team.barrier(), makes.wait(LONG), team.barrier()];
        }
        last.wait();
        ends
    });
    let ends: Vec<_> = ends.into_iter().flatten().map(Result::unwrap_err).collect();
    let timed_out = |end: &Error| matches!(end, Error::Pml(tagwire_pml::Error::TimedOut(_)));
    assert!(!ends.iter().any(timed_out), "{ends:?}");
    assert!(matches!(ends[2], Error::Broken), "{ends:?}");
}

/// A rank that closes ends what it has under way on a board, and leaves nothing: neither waits the other for ever, nor does anything
/// keep the rank's objects.
#[test]
fn closing_ends_short_nonblocking_operations() {
    let messengers = Mutex::new(Vec::new());
    let ends = on_shm(2, WaitMode::Adaptive, |team| {
        let team = Arc::new(team.duplicate().unwrap());
        warm_up(&team);
        messengers
            .lock()
            .unwrap()
            .push(Arc::downgrade(team.messenger()));
        if team.me() == 0 {
            // SAFETY: it borrows nothing.
            let request = unsafe { team.start(NonblockingBarrier) }.unwrap();
            // Not waited for; dropped with the team. `on_shm` closes the rank.
            drop(request);
            return None;
        }
        Some(loop {
            if let Err(error) = team.barrier() {
                break error;
            }
        })
    });
    assert!(
        matches!(ends[1], Some(Error::Gone { member: 0 })),
        "{ends:?}"
    );
    let left = messengers.into_inner().unwrap();
    assert_eq!(left.len(), 2);
    assert!(left.iter().all(|messenger| messenger.upgrade().is_none()));
}

/// A look at the members may make progress, and with it poll other operations of the same board: many groups, each with several under
/// way, while one rank is late for a few hundred looks.
#[test]
fn a_look_at_members_may_poll_other_nonblocking_operations() {
    const GROUPS: usize = 40;
    on_shm(2, WaitMode::Adaptive, |team| {
        let groups: Vec<_> = (0..GROUPS)
            .map(|_| Arc::new(team.duplicate().unwrap()))
            .collect();
        groups.iter().for_each(|group| warm_up(group));
        if team.me() == 1 {
            std::thread::sleep(Duration::from_millis(1500));
        }
        // SAFETY: they borrow nothing.
        let start = |group: &Arc<Team>| unsafe { group.start(NonblockingBarrier) }.unwrap();
        let open: Vec<_> = groups
            .iter()
            .flat_map(|group| [start(group), start(group), start(group)])
            .collect();
        open.iter().for_each(|one| one.wait(None).unwrap());
    });
}

/// A program's operation may make progress, which polls other operations of the same board.
#[test]
fn a_programs_operation_may_make_progress() {
    on_shm(3, WaitMode::Adaptive, |team| {
        let team = Arc::new(team.duplicate().unwrap());
        warm_up(&team);
        let messenger = Arc::clone(team.messenger());
        let add = move |_: &Layout, left: &[u8], into: &mut [u8]| {
            messenger.progress().unwrap();
            for (left, into) in left.iter().zip(into) {
                *into += left;
            }
        };
        let operation = Operation::User(Arc::new(UserOperation::new("add", true, add)));
        let by = Reduction {
            operation: &operation,
            layout: &Layout::of(Basic::U8),
        };
        let mut sums = [[team.me() as u8 + 1; 5]; 9];
        combine_at_once(&team, by, &mut sums);
        assert_eq!(sums, [[6; 5]; 9]);
    });
}

/// An operation that could end as it is, after one that failed by lengths, is not taken for a call that differs.
#[test]
fn what_follows_an_operation_that_failed_ends_by_its_failure() {
    let turn = Barrier::new(2);
    let ends = on_shm(2, WaitMode::Adaptive, |team| {
        let team = Arc::new(team.duplicate().unwrap());
        warm_up(&team);
        let me = team.me();
        if me == 0 {
            turn.wait();
        }
        let mut both = [vec![0; 8 + me], vec![0; 8]];
        let start = |data| {
            let one = Broadcast {
                data,
                root: 0.into(),
            };
            // SAFETY: the data are there until both have ended, below.
            unsafe { team.start(one) }.unwrap()
        };
        let open: Vec<_> = both.iter_mut().map(|data| start(data)).collect();
        if me == 1 {
            // The root shows both while this member polls neither.
            turn.wait();
        }
        turn.wait();
        open.iter().map(|one| one.wait(None)).collect::<Vec<_>>()
    });
    assert!(ends[0].iter().all(Result::is_ok), "{ends:?}");
    assert!(
        matches!(
            ends[1][..],
            [
                Err(Error::Length { .. }),
                Err(Error::Broken | Error::Gone { .. } | Error::Failed(_))
            ]
        ),
        "{ends:?}"
    );
}

/// A member that dies, or leaves before it has started one, ends it on the others.
#[test]
fn a_death_ends_short_nonblocking_operations() {
    let ends = on_shm(3, WaitMode::Adaptive, |team| {
        let team = Arc::new(team.duplicate().unwrap());
        warm_up(&team);
        if team.me() == 2 {
            return None;
        }
        // SAFETY: they borrow nothing.
        let started = [(); 2].map(|()| unsafe { team.start(NonblockingBarrier) });
        // Refused, where the other has ended by then.
        let ends = started.map(|one| one.and_then(|request| request.wait(None)));
        assert!(matches!(team.barrier(), Err(Error::Broken)));
        Some(ends.map(|end| end.unwrap_err().to_string()))
    });
    let ends: Vec<_> = ends.into_iter().flatten().flatten().collect();
    assert_eq!(ends.len(), 4, "{ends:?}");
}

#[test]
fn lengths_that_differ_are_found_out() {
    for (first, second) in [
        (8, 9),
        (8, 100),
        (40_000, 8),
        (300_000, 300_001),
        (0, 70_000),
    ] {
        let ends = on_shm(2, WaitMode::Adaptive, |team| {
            warm_up(team);
            let (operation, layout) = sum();
            let sum = Reduction {
                operation: &operation,
                layout: &layout,
            };
            let len = if team.me() == 0 { first } else { second };
            team.allreduce(sum, &mut vec![0; len]).unwrap_err()
        });
        for (end, expected) in ends.into_iter().zip([first, second]) {
            assert!(
                matches!(end, Error::Length { expected: own, .. } if own == expected)
                    || matches!(end, Error::Gone { .. }),
                "{end:?}"
            );
        }
    }
}

/// A member whose operation failed, or that has freed the group, ends those of the others.
#[test]
fn a_member_that_left_the_group_is_named() {
    let last = Barrier::new(3);
    let ends = on_shm(3, WaitMode::Adaptive, |team| {
        let group = team.duplicate().unwrap();
        warm_up(&group);
        let end = (team.me() != 1).then(|| group.barrier().unwrap_err());
        drop(group);
        last.wait();
        end
    });
    for end in ends.into_iter().flatten() {
        assert!(matches!(end, Error::Gone { member: 1 }), "{end:?}");
    }
}

/// Who has done its part may free the group, while others are still in the operation.
#[test]
fn a_member_that_has_done_its_part_may_leave() {
    let left = Barrier::new(2);
    on_shm(3, WaitMode::Adaptive, |team| {
        let group = team.duplicate().unwrap();
        warm_up(&group);
        let own = [team.me() as u8];
        if team.me() == 1 {
            // After the other one has left, and the root has waited for a while.
            left.wait();
            std::thread::sleep(Duration::from_millis(100));
        }
        let mut all = [0; 3];
        let out = (team.me() == 0).then_some(&mut all[..]);
        group.gather(&own, out, 0).unwrap();
        drop(group);
        if team.me() == 2 {
            left.wait();
        }
        assert!(team.me() > 0 || all == [0, 1, 2]);
    });
}

#[test]
fn a_death_ends_operations() {
    let ends = on_shm(3, WaitMode::Adaptive, |team| {
        warm_up(team);
        if team.me() == 2 {
            // Dropped without a goodbye: as a rank that unwinds.
            return None;
        }
        Some(loop {
            if let Err(error) = team.barrier() {
                break error;
            }
        })
    });
    assert_eq!(ends.iter().filter(|end| end.is_some()).count(), 2);
}

/// As many bytes of a kind, which nobody has to own.
struct Filled(usize);

impl Pack for Filled {
    fn len(&self) -> usize {
        self.0
    }

    fn pack(&self, _: usize, out: &mut [u8]) {
        out.fill(7);
    }
}

/// Counts the bytes of that kind.
struct Counted(usize, Arc<AtomicUsize>);

impl Unpack for Counted {
    fn capacity(&self) -> usize {
        self.0
    }

    fn unpack(&self, _: usize, bytes: &[u8]) {
        let sevens = bytes.iter().filter(|byte| **byte == 7).count();
        self.1.fetch_add(sevens, SeqCst);
    }
}

/// A rank whose operations always find everything there makes progress on its messages all the same.
#[test]
fn messages_go_on_meanwhile() {
    // In one round, and in two.
    [1, 12 << 10].into_iter().for_each(messages_beside);
}

/// The same, of operations of so many bytes.
fn messages_beside(bytes: usize) {
    const LEN: usize = 1 << 20;
    let taken = on_shm(2, WaitMode::Adaptive, |team| {
        warm_up(team);
        let (messenger, taken) = (team.messenger(), Arc::new(AtomicUsize::new(0)));
        let (peer, context) = team.peer(1 - team.me()).unwrap();
        let tag = Tag::user(5).unwrap();
        let request = if team.me() == 0 {
            let data = SendBuffer::packed(Box::new(Filled(LEN)));
            messenger.isend(data, peer, tag, context, SendMode::Standard)
        } else {
            let data = RecvBuffer::unpacked(Box::new(Counted(LEN, Arc::clone(&taken))));
            let (from, tag) = (SourceSelector::exact(peer), TagSelector::exact(tag));
            messenger.irecv(data, from, tag, team.context())
        };
        let (request, mut is_done) = (request.unwrap(), false);
        let (operation, layout) = (Operation::Min, Layout::of(Basic::U8));
        let least = Reduction {
            operation: &operation,
            layout: &layout,
        };
        loop {
            // No progress but that of the operations.
            is_done = is_done || messenger.take(request).unwrap().is_some();
            let mut all = vec![u8::from(is_done); bytes];
            team.allreduce(least, &mut all).unwrap();
            if all[0] == 1 {
                return taken.load(SeqCst);
            }
        }
    });
    assert_eq!(taken, [0, LEN]);
}
