//! Nonblocking and persistent operations: the results of the oracle, any order of ends, progress from anywhere.
#![allow(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use crate::common::cases::{Case, Draws, cases};
use crate::common::{CHECKED, each_forced, ranks, threaded};
use tagwire_base::{SourceSelector, Tag, TagSelector};
use tagwire_coll::operations::{Barrier, Broadcast};
use tagwire_coll::{Division, Error, Reduction, Request, Team};
use tagwire_layout::{Basic, Layout, Operation};
use tagwire_pml::{ProgressThread, SendMode};
use tagwire_transport::{RecvBuffer, SendBuffer};

const ROUNDS: u64 = 12;

/// Starts all, and waits for them in an order that is drawn for each rank.
fn all_at_once(team: &Arc<Team>, round: u64) {
    let mut list = cases(team, round);
    let mut open: Vec<_> = list.iter_mut().map(|case| case.start(team)).collect();
    let mut draws = Draws::of(round << 8 | team.me() as u64);
    while !open.is_empty() {
        let request = open.swap_remove(draws.below(open.len()));
        match draws.below(3) {
            0 => while !request.test().unwrap() {},
            _ => request.wait(None).unwrap(),
        }
        assert!(request.is_complete());
        assert!(matches!(request.take(), Some(Err(Error::Pml(_)))));
    }
    list.iter().for_each(Case::check);
}

#[test]
fn several_at_once_end_in_any_order() {
    for size in [1, 2, 3, 5, 8, 17] {
        ranks(size, "", |team| {
            (0..ROUNDS).for_each(|round| all_at_once(team, round));
        });
    }
}

#[test]
fn parts_of_a_group_are_made_without_waiting() {
    for size in [1, 2, 5, 8] {
        ranks(size, "", |team| {
            let me = team.me();
            let made = Division::of(team, me as u32 % 2, -(me as i32)).unwrap();
            // Others are under way meanwhile.
            all_at_once(team, 1);
            while !made.is_complete() {
                team.messenger().progress().unwrap();
            }
            let part = Arc::new(made.take().unwrap().unwrap());
            // Those of the same color, from the last one on.
            let ranks: Vec<_> = (0..part.size())
                .map(|member| part.members().rank(member).unwrap().as_u32() as usize)
                .collect();
            let mut alike: Vec<_> = (0..team.size()).filter(|it| it % 2 == me % 2).collect();
            alike.reverse();
            assert_eq!(ranks, alike);
            all_at_once(&part, 2);
            assert!(made.take().unwrap().is_err(), "it is there once");
        });
    }
}

#[test]
fn every_algorithm_is_polled() {
    for forced in each_forced() {
        for size in [2, 3, 4, 7] {
            ranks(size, &forced, |team| {
                (0..ROUNDS).for_each(|round| all_at_once(team, round));
            });
        }
    }
}

#[test]
fn members_compare_what_they_start() {
    ranks(3, CHECKED, |team| {
        all_at_once(team, 1);
        let different = Arc::new(team.duplicate().unwrap());
        let mut data = [0; 10];
        let (data, root) = (&mut data[..], usize::from(team.me() == 1));
        // SAFETY: it is waited for.
        let request = unsafe {
            different.start(Broadcast {
                data,
                root: root.into(),
            })
        }
        .unwrap();
        let error = request.wait(None).unwrap_err();
        assert!(matches!(error, Error::Different { .. }), "{error}");
    });
}

/// Blocking ones of the same group in between, and messages of users.
#[test]
fn blocking_operations_and_messages_go_on_beside_them() {
    ranks(4, "", |team| {
        let messenger = team.messenger();
        for round in 0..ROUNDS {
            let mut early = cases(team, round);
            let requests: Vec<_> = early.iter_mut().map(|case| case.start(team)).collect();
            let ((to, context), tag) = (
                team.peer((team.me() + 1) % 4).unwrap(),
                Tag::user(5).unwrap(),
            );
            let sent = messenger.isend(SendBuffer::EMPTY, to, tag, context, SendMode::Synchronous);
            let mut between = cases(team, round + 100);
            for case in &mut between {
                case.block(team);
                case.check();
            }
            let (from, tag) = (SourceSelector::ANY, TagSelector::exact(tag));
            let received = messenger.recv(RecvBuffer::EMPTY, from, tag, team.context());
            assert_eq!(received.unwrap().failure, None);
            assert_eq!(messenger.wait(sent.unwrap(), None).unwrap().failure, None);
            for request in requests.iter().rev() {
                request.wait(None).unwrap();
            }
            early.iter().for_each(Case::check);
        }
    });
}

/// Rank 0 waits in a receive for a message that another sends once it has left a barrier: that needs rank 0.
#[test]
fn a_rank_in_a_receive_lets_its_operations_go_on() {
    ranks(3, "", |team| {
        let messenger = team.messenger();
        for number in 0..50 {
            let tag = Tag::user(number).unwrap();
            if team.me() == 0 {
                let mut list = cases(team, 3);
                let requests: Vec<_> = list.iter_mut().map(|case| case.start(team)).collect();
                let from = SourceSelector::ANY;
                let received = messenger.recv(
                    RecvBuffer::EMPTY,
                    from,
                    TagSelector::exact(tag),
                    team.context(),
                );
                assert_eq!(received.unwrap().failure, None);
                // Its own last steps may end later: what they wait for is on its way.
                for request in &requests {
                    request.wait(None).unwrap();
                }
                list.iter().for_each(Case::check);
            } else {
                for mut case in cases(team, 3) {
                    // Blocking ones do not match nonblocking ones.
                    case.start(team).wait(None).unwrap();
                    case.check();
                }
                // In turn, so that rank 0 is told once all have ended.
                if team.me() == 1 {
                    let (to, context) = team.peer(2).unwrap();
                    let mode = SendMode::Standard;
                    messenger
                        .send(SendBuffer::EMPTY, to, tag, context, mode)
                        .unwrap();
                } else {
                    let (from, exact) = (SourceSelector::ANY, TagSelector::exact(tag));
                    let mode = SendMode::Standard;
                    messenger
                        .recv(RecvBuffer::EMPTY, from, exact, team.context())
                        .unwrap();
                    let (to, context) = team.peer(0).unwrap();
                    messenger
                        .send(SendBuffer::EMPTY, to, tag, context, mode)
                        .unwrap();
                }
            }
        }
    });
}

#[test]
fn a_nonblocking_barrier_holds_until_all_have_entered() {
    for size in [2, 3, 6] {
        let entered = AtomicUsize::new(0);
        ranks(size, "", |team| {
            for round in 1..=50 {
                entered.fetch_add(1, SeqCst);
                // SAFETY: it borrows nothing.
                let request = unsafe { team.start(Barrier) }.unwrap();
                while !request.test().unwrap() {}
                assert!(entered.load(SeqCst) >= round * size);
            }
        });
    }
}

/// A thread of each rank makes progress; another only looks.
#[test]
fn another_thread_moves_them_on() {
    threaded(3, |team| {
        let driver = ProgressThread::start(team.messenger()).unwrap();
        for round in 0..ROUNDS {
            let mut list = cases(team, round);
            let requests: Vec<_> = list.iter_mut().map(|case| case.start(team)).collect();
            while !requests.iter().all(Request::is_complete) {
                std::thread::yield_now();
            }
            for request in requests {
                request.take().unwrap().unwrap();
            }
            list.iter().for_each(Case::check);
        }
        drop(driver);
    });
}

/// Several threads of a rank wait for operations of different groups.
#[test]
fn threads_wait_for_operations_of_their_own() {
    threaded(3, |team| {
        let teams: Vec<_> = (0..3)
            .map(|_| Arc::new(team.duplicate().unwrap()))
            .collect();
        std::thread::scope(|scope| {
            for (number, team) in teams.iter().enumerate() {
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        all_at_once(team, round << 4 | number as u64);
                    }
                });
            }
        });
        team.barrier().unwrap();
    });
}

#[test]
fn a_dropped_request_and_a_dropped_group_leave_the_operation_under_way() {
    ranks(4, "", |team| {
        for round in 0..ROUNDS {
            let other = Arc::new(team.duplicate().unwrap());
            let mut list = cases(&other, round);
            let mut requests: Vec<_> = list.iter_mut().map(|case| case.start(&other)).collect();
            let last = requests.pop().unwrap();
            drop(requests);
            drop(other);
            last.wait(None).unwrap();
            let (operation, layout) = (Operation::Min, Layout::of(Basic::U8));
            let least = Reduction {
                operation: &operation,
                layout: &layout,
            };
            let mut done = [0];
            while done[0] == 0 {
                done[0] = u8::from(list.iter().all(Case::is_right));
                team.allreduce(least, &mut done).unwrap();
            }
            // Nobody is told when the memory is free.
            std::mem::forget(list);
        }
    });
}

#[test]
fn wrong_arguments_are_refused_at_the_call() {
    ranks(2, "", |team| {
        let data = &mut [0][..];
        // SAFETY: nothing is started.
        let refused = unsafe {
            team.start(Broadcast {
                data,
                root: 2.into(),
            })
        };
        assert!(matches!(refused, Err(Error::Argument(_))));
        all_at_once(team, 1);
    });
}

#[test]
fn a_wait_gives_up_and_the_operation_goes_on() {
    ranks(2, "", |team| {
        if team.me() == 0 {
            // SAFETY: it borrows nothing.
            let request = unsafe { team.start(Barrier) }.unwrap();
            let error = request.wait(Some(Duration::from_millis(1))).unwrap_err();
            let is_timeout = matches!(error, Error::Pml(tagwire_pml::Error::TimedOut(_)));
            assert!(is_timeout, "{error}");
            let (to, context) = team.peer(1).unwrap();
            let (tag, mode) = (Tag::user(1).unwrap(), SendMode::Standard);
            let messenger = team.messenger();
            messenger
                .send(SendBuffer::EMPTY, to, tag, context, mode)
                .unwrap();
            request.wait(None).unwrap();
        } else {
            let (from, tag) = (SourceSelector::ANY, TagSelector::ANY);
            let messenger = team.messenger();
            messenger
                .recv(RecvBuffer::EMPTY, from, tag, team.context())
                .unwrap();
            team.barrier().unwrap();
        }
    });
}

#[test]
fn what_is_under_way_is_named() {
    let is_named = AtomicUsize::new(0);
    ranks(2, "", |team| {
        if team.me() == 0 {
            // SAFETY: it borrows nothing.
            let request = unsafe { team.start(Barrier) }.unwrap();
            let during = team.messenger().dump().unwrap();
            is_named.store(1, SeqCst);
            request.wait(None).unwrap();
            let after = team.messenger().dump().unwrap();
            assert!(during.contains("    Barrier of "), "{during}");
            assert!(!after.contains("    Barrier of "), "{after}");
        } else {
            while is_named.load(SeqCst) == 0 {
                std::thread::yield_now();
            }
            // SAFETY: as above.
            let request = unsafe { team.start(Barrier) }.unwrap();
            request.wait(None).unwrap();
        }
    });
}

/// More operations begin while one is under way than there are tags: the one that has its tag waits for it.
#[test]
fn an_operation_outlives_all_tags() {
    let (operation, layout) = (Operation::Sum, Layout::of(Basic::U8));
    let sum = Reduction {
        operation: &operation,
        layout: &layout,
    };
    // Three in four tags, but for two, are for operations that are not persistent.
    let others = Tag::COLLECTIVES / 4 * 3 - 3;
    // Without a message: there is nothing to combine.
    ranks(3, "allreduce:recursive-doubling", |team| {
        let messenger = team.messenger();
        let (tag, mode) = (Tag::user(1).unwrap(), SendMode::Standard);
        if team.me() == 2 {
            // Late to the barrier, of which the others cannot have done the second step.
            for _ in 0..2 {
                let (from, tag) = (SourceSelector::ANY, TagSelector::exact(tag));
                messenger
                    .recv(RecvBuffer::EMPTY, from, tag, team.context())
                    .unwrap();
            }
        }
        // SAFETY: it borrows nothing.
        let first = unsafe { team.start(Barrier) }.unwrap();
        for _ in 0..others {
            team.allreduce(sum, &mut []).unwrap();
        }
        let mut byte = [team.me() as u8];
        let (data, root) = (&mut byte[..], 1);
        // SAFETY: it is waited for.
        let second = unsafe {
            team.start(Broadcast {
                data,
                root: root.into(),
            })
        }
        .unwrap();
        if team.me() < 2 {
            let (to, context) = team.peer(2).unwrap();
            messenger
                .send(SendBuffer::EMPTY, to, tag, context, mode)
                .unwrap();
        }
        second.wait(None).unwrap();
        first.wait(None).unwrap();
        assert_eq!(byte, [1]);
    });
}

#[test]
fn persistent_operations_are_restarted() {
    for size in [1, 2, 3, 6] {
        ranks(size, "", |team| {
            let mut list = cases(team, size as u64);
            let mut all: Vec<_> = list.iter_mut().map(|case| case.init(team)).collect();
            let mut draws = Draws::of(team.me() as u64);
            for _ in 0..100 {
                // Started in another order on each rank.
                let mut order: Vec<_> = (0..all.len()).collect();
                while !order.is_empty() {
                    let one = order.swap_remove(draws.below(order.len()));
                    assert!(!all[one].is_active());
                    all[one].start().unwrap();
                    assert!(matches!(all[one].start(), Err(Error::Active)));
                }
                for one in &mut all {
                    match draws.below(2) {
                        0 => one.wait(None).unwrap(),
                        _ => while !one.test().unwrap() {},
                    }
                    assert!(!one.is_active());
                    one.wait(None).unwrap();
                }
                list.iter().for_each(Case::check);
                list.iter_mut().for_each(Case::reset);
                // Others of the group in between.
                team.barrier().unwrap();
            }
            drop(all);
        });
    }
}

#[test]
fn there_are_as_many_persistent_operations_as_tags() {
    ranks(2, CHECKED, |team| {
        let mut made = Vec::new();
        let error = loop {
            // SAFETY: it borrows nothing.
            match unsafe { team.init(|| Barrier) } {
                Ok(one) => made.push(one),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::Persistent(_)), "{error}");
        let mut last = made.pop().unwrap();
        last.start().unwrap();
        last.wait(None).unwrap();
        drop(made);
        // SAFETY: as above.
        assert!(unsafe { team.init(|| Barrier) }.is_ok());
    });
}

/// One that is kept, by one rank alone, is in nobody's way.
#[test]
fn persistent_operations_are_made_and_freed_without_end() {
    ranks(3, "", |team| {
        // SAFETY: it borrows nothing.
        let make = || unsafe { team.init(|| Barrier) };
        let first = make().unwrap();
        let mut kept = vec![];
        if team.me() == 1 {
            kept.push(first);
        } else {
            drop(first);
        }
        let mut last = make().unwrap();
        for _ in 0..3 * Tag::COLLECTIVES / 4 {
            make().unwrap();
        }
        for _ in 0..10 {
            let mut one = make().unwrap();
            // Other operations in between, and in another order.
            one.start().unwrap();
            last.start().unwrap();
            team.barrier().unwrap();
            last.wait(None).unwrap();
            one.wait(None).unwrap();
        }
    });
}

/// A rank that keeps them alone is refused with all others, and not for good.
#[test]
fn all_are_refused_one_persistent_operation_too_many() {
    ranks(2, "", |team| {
        // SAFETY: it borrows nothing.
        let make = || unsafe { team.init(|| Barrier) };
        let mut kept = Vec::new();
        let error = loop {
            match make() {
                Ok(one) if team.me() == 0 => kept.push(one),
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::Persistent(2048)), "{error}");
        assert!(matches!(make(), Err(Error::Persistent(2048))));
        kept.truncate(2000);
        for _ in 0..100 {
            let mut one = make().unwrap();
            one.start().unwrap();
            one.wait(None).unwrap();
        }
    });
}
