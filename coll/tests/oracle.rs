//! Every algorithm against a serial oracle: 1 to 17 ranks, any root, any length, messages that overtake each other, and an
//! operation that does not commute.

use std::sync::Arc;

use crate::common::cases::cases;
use crate::common::{CHECKED, each_forced, on_hosts, ranks, rounds};

use tagwire_coll::operations::{Gather, Parts, Root, Scatter};
use tagwire_coll::{ALGORITHMS, Error, Needs, Reduction, Team};
use tagwire_layout::{Basic, Layout, Operation};

/// Group sizes.
const SIZES: std::ops::RangeInclusive<usize> = 1..=17;

/// All operations once, with what the draws of `round` say.
fn everything(team: &Team, round: u64) {
    for mut case in cases(team, round) {
        case.block(team);
        case.check();
    }
}

fn all_sizes(selection: &str) {
    for size in SIZES {
        ranks(size, selection, |team| {
            (0..rounds(8)).for_each(|round| everything(team, round));
        });
    }
}

#[test]
fn the_table() {
    all_sizes("");
}

/// Every algorithm, wherever it may be taken.
#[test]
fn each_algorithm() {
    let all = each_forced();
    for algorithm in ALGORITHMS.iter().filter(|it| it.needs == Needs::Nothing) {
        let name = algorithm.to_string();
        let mut names = all.iter().flat_map(|forced| forced.split(','));
        assert!(
            names.any(|forced| forced == name),
            "{name} is in none of {all:?}"
        );
    }
    all.iter().for_each(|forced| all_sizes(forced));
}

/// A barrier holds everybody until the last has come.
#[test]
fn nobody_leaves_a_barrier_before_all_have_entered() {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    let entered = AtomicUsize::new(0);
    let rounds = |team: &Arc<Team>| {
        for round in 1..=50 {
            entered.fetch_add(1, SeqCst);
            team.barrier().unwrap();
            assert!(entered.load(SeqCst) >= round * team.size());
        }
    };
    for size in [2, 3, 6] {
        ranks(size, "", rounds);
        entered.store(0, SeqCst);
    }
    for hosts in [&[0, 0, 1, 1][..], &[0, 1, 0, 1, 2], &[0, 1, 1]] {
        on_hosts(hosts, "", rounds);
        entered.store(0, SeqCst);
    }
}

/// Groups of groups, whose ids and numbers differ from the job's.
#[test]
fn groups_are_split_duplicated_and_picked() {
    for size in [1, 2, 5, 8] {
        ranks(size, "", |team| {
            let me = team.me();
            // Ids of ranks differ from here on.
            let alone = team.split(Some(me as u32), 0).unwrap().unwrap();
            assert_eq!((alone.me(), alone.size()), (0, 1));
            let kept: Vec<_> = (0..me % 3).map(|_| alone.duplicate().unwrap()).collect();
            everything(&team.duplicate().unwrap(), 3);
            let half = team.split(Some(me as u32 % 2), -(me as i32)).unwrap();
            let half = half.unwrap();
            assert_eq!(half.size(), (size + 1 - me % 2) / 2);
            // Keys fall, so that numbers go down.
            let rank = |member| half.members().rank(member).unwrap().as_u32();
            assert!((1..half.size()).all(|n| rank(n - 1) > rank(n)));
            everything(&half, 4);
            let few = team.split((me < 2).then_some(9), 0).unwrap();
            assert_eq!(few.is_some(), me < 2);
            if let Some(few) = &few {
                everything(few, 5);
            }
            if size > 2 && me != 1 {
                let others: Vec<_> = (0..size).rev().filter(|other| *other != 1).collect();
                let picked = team.subset(&others).unwrap();
                assert_eq!(picked.me(), others.iter().position(|o| *o == me).unwrap());
                everything(&picked, 6);
                assert!(team.subset(&[1]).is_err());
            }
            everything(team, 7);
            drop(kept);
        });
    }
}

#[test]
fn wrong_arguments_are_refused_before_anything_is_sent() {
    ranks(2, "", |team| {
        assert!(team.broadcast(&mut [0], 2).is_err());
        let (operation, layout) = (Operation::BitAnd, Layout::of(Basic::F64));
        let no_such = Reduction {
            operation: &operation,
            layout: &layout,
        };
        let error = team
            .allreduce(no_such, &mut [0; 8])
            .unwrap_err()
            .to_string();
        assert!(error.contains("f64") || error.contains("F64"), "{error}");
        let (operation, layout) = (Operation::Sum, Layout::of(Basic::F64));
        let sum = Reduction {
            operation: &operation,
            layout: &layout,
        };
        assert!(team.allreduce(sum, &mut [0; 9]).is_err());
        assert!(team.allgather(&[0], &mut [0; 3]).is_err());
        assert!(team.alltoall(&[0; 3], &mut [0; 3]).is_err());
        assert!(team.allgatherv(&[0], &[1], &mut [0]).is_err());
        // In place is for the root.
        let (parts, root) = (Parts::Equal, Root::Member(0));
        let gather = Gather {
            own: None,
            parts: parts.clone(),
            out: None,
            root,
        };
        let scatter = Scatter {
            input: None,
            parts,
            own: None,
            root,
        };
        if team.me() == 1 {
            assert!(team.call(gather).is_err());
            assert!(team.call(scatter).is_err());
        }
        everything(team, 1);
    });
}

/// Where they are asked to, ranks tell each other what they call.
#[test]
fn calls_that_differ_are_told_apart() {
    ranks(3, CHECKED, |team| {
        everything(team, 2);
        let different = team.duplicate().unwrap();
        let root = usize::from(different.me() == 1);
        let error = different.broadcast(&mut [0; 10], root).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, Error::Different { .. }), "{text}");
        let both = ["from rank 0", "from rank 1"];
        assert!(both.iter().all(|part| text.contains(part)), "{text}");
    });
}

/// The same for lengths that only some members know: the error names who gives and who expects what, on all of them.
#[test]
fn lengths_of_varying_parts_that_differ_are_told_apart() {
    type Wrong = fn(&Team, usize) -> tagwire_coll::Result<()>;
    // Each but the second expects or gives what the others do.
    let wrong: [(&str, Wrong); 6] = [
        ("an allgatherv", |team, odd| {
            let lengths = [1, 2 + odd, 3 - odd];
            team.allgatherv(&vec![0; lengths[team.me()]], &lengths, &mut [0; 6])
        }),
        ("a gatherv", |team, odd| {
            let own = vec![0; team.me() + odd];
            let mut all = [0; 3];
            let out = (team.me() == 0).then_some(&mut all[..]);
            team.gatherv(&own, &[0, 1, 2], out, 0)
        }),
        ("a scatterv", |team, odd| {
            let mut own = vec![0; team.me() + odd];
            let all = [0; 3];
            let input = (team.me() == 0).then_some(&all[..]);
            team.scatterv(input, &[0, 1, 2], &mut own, 0)
        }),
        ("an alltoallv", |team, odd| {
            let (to, mut from) = ([4; 3], [4; 3]);
            from[0] += odd;
            let mut out = vec![0; from.iter().sum()];
            team.alltoallv(&[0; 12], &to, &mut out, &from)
        }),
        ("an alltoallw", |team, odd| {
            let mut out = [vec![0; 4 + odd], vec![0; 4], vec![0; 4]];
            let mut out: Vec<_> = out.iter_mut().map(|block| &mut block[..]).collect();
            team.alltoallw(&[&[0; 4][..]; 3], &mut out)
        }),
        ("a reduce-scatter", |team, odd| {
            let (operation, layout) = (Operation::BitXor, Layout::of(Basic::U8));
            let sum = Reduction {
                operation: &operation,
                layout: &layout,
            };
            let lengths = [3 - odd, 1 + odd, 2];
            let mut own = vec![0; lengths[team.me()]];
            team.reduce_scatter(sum, &[0; 6], &lengths, &mut own)
        }),
    ];
    ranks(3, CHECKED, |team| {
        for (name, wrong) in &wrong {
            let different = team.duplicate().unwrap();
            wrong(&different, 0).unwrap_or_else(|error| panic!("{name}: {error}"));
            let odd = usize::from(team.me() == 1);
            let error = wrong(&different, odd).unwrap_err();
            let text = error.to_string();
            assert!(matches!(error, Error::Different { .. }), "{text}");
            let both = [*name, " bytes of rank ", " bytes"];
            assert!(both.iter().all(|part| text.contains(part)), "{text}");
        }
    });
}

/// Lengths that differ are told apart, also by whole pieces.
#[test]
fn lengths_that_differ_are_found_out() {
    let (operation, layout) = (Operation::BitXor, Layout::of(Basic::U8));
    let sum = Reduction {
        operation: &operation,
        layout: &layout,
    };
    for (given, expected) in [
        (8160 * 3, 8160 * 2),
        (8160, 8160 * 2),
        (32_768, 16_384),
        (10, 9),
    ] {
        // In groups of three messages go in pieces.
        ranks(3, "reduce:binomial", |team| {
            if team.me() == 2 {
                return;
            }
            let pair = team.subset(&[0, 1]).unwrap();
            let mut data = vec![1; if pair.me() == 1 { expected } else { given }];
            let ended = pair.broadcast(&mut data, 0);
            if pair.me() == 1 {
                let error = ended.unwrap_err();
                assert!(matches!(error, Error::Length { .. }), "{error}");
                assert!(matches!(pair.barrier(), Err(Error::Broken)));
            }
            let pair = team.subset(&[1, 0]).unwrap();
            let data = vec![1; if pair.me() == 1 { given } else { expected }];
            let mut out = data.clone();
            let ended = pair.reduce(sum, &data, (pair.me() == 0).then_some(&mut out), 0);
            if pair.me() == 0 {
                let error = ended.unwrap_err();
                assert!(matches!(error, Error::Length { .. }), "{error}");
            }
        });
    }
}

/// A rank that has no context left tells the others.
#[test]
fn all_hear_of_a_rank_without_a_context() {
    ranks(3, "", |team| {
        let messenger = team.messenger();
        let mut taken = Vec::new();
        while team.me() == 1 {
            match messenger.open_context() {
                Ok(context) => taken.push(context),
                Err(_) => break,
            }
        }
        assert!(team.duplicate().is_err());
        assert!(team.split(Some(1), 0).is_err());
        for context in taken {
            messenger.close_context(context).unwrap();
        }
        everything(&team.duplicate().unwrap(), 1);
    });
}
