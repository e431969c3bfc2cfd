//! Operations of neighbourhoods against a serial oracle: random graphs and grids, several edges between two members, edges to
//! oneself and to nobody, any lengths; blocking, all at once, and persistent.

use std::borrow::Cow;
use std::sync::Arc;

use crate::common::graphs::Graph;
use crate::common::{CHECKED, ranks, threaded};

use tagwire_coll::operations::{
    Alltoall, Blocks, CollectiveOperation, NeighbourAllgather, NeighbourAlltoall, Parts,
};
use tagwire_coll::{Error, Grid, Neighbours, Team};

/// Group sizes.
const SIZES: std::ops::RangeInclusive<usize> = 1..=9;

/// Rounds of each size.
const ROUNDS: u64 = 20;

#[test]
fn random_graphs() {
    for size in SIZES {
        ranks(size, "", |team| {
            for round in 0..ROUNDS {
                let graph = Graph::random(size, (size as u64) << 32 | round);
                graph.exchange(team, round);
            }
        });
    }
}

/// What is drawn has what the test is for.
#[test]
fn random_graphs_have_every_kind_of_edge() {
    let graphs: Vec<_> = (0..ROUNDS)
        .map(|round| Graph::random(3, 3 << 32 | round))
        .collect();
    let any = |has: &dyn Fn(&Graph) -> bool| graphs.iter().any(has);
    assert!(any(&|it| it.edges.iter().any(|(from, to)| from == to)));
    assert!(any(&|it| it
        .edges
        .iter()
        .enumerate()
        .any(|(n, edge)| it.edges[..n].contains(edge))));
    assert!(any(&|it| it.coming.iter().flatten().any(Option::is_none)));
    assert!(any(&|it| it.leaving.iter().flatten().any(Option::is_none)));
    assert!(any(&|it| it.leaving.iter().any(Vec::is_empty)));
}

/// Extents of 1 and 2 are among them, where both neighbours are one member.
#[test]
fn grids() {
    let extents: [&[usize]; 12] = [
        &[1],
        &[2],
        &[3],
        &[5],
        &[1, 1],
        &[2, 1],
        &[2, 2],
        &[2, 3],
        &[3, 3],
        &[1, 2, 1],
        &[2, 2, 2],
        &[1, 3, 2],
    ];
    for extents in extents {
        for mask in 0..1 << extents.len() {
            let periods: Vec<_> = (0..extents.len()).map(|d| mask & 1 << d != 0).collect();
            let graph = Graph::grid(extents, &periods);
            ranks(graph.size, "", |team| {
                for seed in 0..3 {
                    graph.exchange(team, seed);
                }
            });
        }
    }
}

/// What goes in the negative direction comes from the positive one, as with `MPI_Cart_shift` and `MPI_Sendrecv`.
#[test]
fn both_neighbours_are_one_member() {
    for size in [1, 2] {
        ranks(size, "", |team| {
            let (me, other) = (team.me() as u8, (team.size() - 1 - team.me()) as u8);
            let grid = Grid::new(&[size], &[true]).unwrap();
            let neighbours = Neighbours::cartesian(&grid, team.me()).unwrap();
            let other_twice = [Some(usize::from(other)); 2];
            assert_eq!(neighbours.sources(), other_twice);
            let mut out = [0; 4];
            team.call(NeighbourAlltoall {
                neighbours,
                input: Blocks::Together(&[b'-', me, b'+', me], Parts::Equal),
                out: Blocks::Together(&mut out, Parts::Equal),
            })
            .unwrap();
            assert_eq!(out, [b'+', other, b'-', other]);
        });
    }
}

#[test]
fn members_compare_what_they_call() {
    ranks(4, CHECKED, |team| {
        let graph = Graph::random(4, 4 << 32 | 5);
        let sizes: Vec<_> = graph.leaving.iter().map(Vec::len).collect();
        assert!(sizes.iter().any(|len| *len != sizes[0]), "{sizes:?}");
        graph.exchange(team, 1);
        let different = team.duplicate().unwrap();
        let neighbours = Neighbours::adjacent(Vec::new(), Vec::new());
        let (own, input, out) = (&[][..], &[][..], &mut [][..]);
        let error = match team.me() {
            1 => different.call(NeighbourAllgather {
                neighbours,
                own,
                parts: Parts::Equal,
                out,
            }),
            _ => different.call(NeighbourAlltoall {
                neighbours,
                input: Blocks::Together(input, Parts::Equal),
                out: Blocks::Together(out, Parts::Equal),
            }),
        };
        let error = error.unwrap_err().to_string();
        assert!(error.contains("a neighbour alltoall"), "{error}");
        assert!(error.contains("a neighbour allgather"), "{error}");
    });
}

/// Threads of a rank in groups of their own.
#[test]
fn threads_exchange_at_once() {
    threaded(3, |team| {
        let teams: Vec<_> = (0..3)
            .map(|_| Arc::new(team.duplicate().unwrap()))
            .collect();
        std::thread::scope(|scope| {
            for (number, team) in teams.iter().enumerate() {
                scope.spawn(move || {
                    let graph = Graph::random(3, 3 << 32 | number as u64);
                    (0..4).for_each(|seed| graph.exchange(team, seed));
                });
            }
        });
        team.barrier().unwrap();
    });
}

/// A block that is longer than expected is found out, and does not take the place of the next one.
#[test]
fn lengths_that_differ_are_found_out() {
    for (given, expected) in [(4, 5), (5, 4), (100_000, 50_000), (0, 1), (1, 0)] {
        ranks(3, "", |team| {
            let neighbours = match team.me() {
                0 => Neighbours::adjacent(Vec::new(), vec![Some(1); 2]),
                1 => Neighbours::adjacent(vec![Some(0); 2], Vec::new()),
                _ => Neighbours::adjacent(Vec::new(), Vec::new()),
            };
            let input = vec![1; if team.me() == 0 { given + 7 } else { 0 }];
            let to = if team.me() == 0 {
                vec![given, 7]
            } else {
                Vec::new()
            };
            let mut out = vec![0; if team.me() == 1 { expected + 7 } else { 0 }];
            let from = if team.me() == 1 {
                vec![expected, 7]
            } else {
                Vec::new()
            };
            let ended = team.call(NeighbourAlltoall {
                neighbours,
                input: Blocks::Together(&input, Parts::Of(to.into())),
                out: Blocks::Together(&mut out, Parts::Of(from.into())),
            });
            if team.me() == 1 {
                let error = ended.unwrap_err();
                let Error::Length {
                    sent,
                    expected: room,
                    ..
                } = error
                else {
                    panic!("{error}");
                };
                assert_eq!((sent, room), (given, expected));
            }
        });
    }
}

/// Runs an operation that is refused, and returns why.
fn refused(team: &Team, operation: impl CollectiveOperation) -> String {
    match team.call(operation).unwrap_err() {
        Error::Argument(why) => why,
        other => panic!("{other}"),
    }
}

#[test]
fn wrong_arguments_are_refused_before_anything_is_sent() {
    ranks(2, "", |team| {
        let other = Some(1 - team.me());
        let me = Some(team.me());
        let pair = || Neighbours::adjacent(vec![other, None], vec![other]);
        let allgather = |own: &[u8], out: &mut [u8]| {
            let neighbours = pair();
            refused(
                team,
                NeighbourAllgather {
                    neighbours,
                    own,
                    parts: Parts::Equal,
                    out,
                },
            )
        };
        let why = allgather(&[1, 2], &mut [0; 3]);
        assert!(
            why.contains("what comes has 3 bytes where 4 are needed"),
            "{why}"
        );
        let only_gets = Neighbours::adjacent(vec![None, None], Vec::new());
        let out = &mut [0; 3][..];
        let neighbours = only_gets.clone();
        let why = refused(
            team,
            NeighbourAllgather {
                neighbours,
                own: &[],
                parts: Parts::Equal,
                out,
            },
        );
        assert!(
            why.contains("3 bytes are not equal blocks for 2 sources"),
            "{why}"
        );

        let allgatherv = |lengths: &[usize]| {
            let operation = NeighbourAllgather {
                neighbours: pair(),
                own: &[],
                parts: Parts::Of(Cow::Borrowed(lengths)),
                out: &mut [0; 3],
            };
            refused(team, operation)
        };
        let why = allgatherv(&[3]);
        assert!(why.contains("1 blocks were given for 2 sources"), "{why}");
        let why = allgatherv(&[3, 1]);
        assert!(
            why.contains("what comes has 3 bytes where 4 are needed"),
            "{why}"
        );
        let why = allgatherv(&[usize::MAX, 4]);
        assert!(why.contains("what comes has 3 bytes"), "{why}");

        let alltoall = |neighbours, input: &[u8], out: &mut [u8]| {
            refused(
                team,
                NeighbourAlltoall {
                    neighbours,
                    input: Blocks::Together(input, Parts::Equal),
                    out: Blocks::Together(out, Parts::Equal),
                },
            )
        };
        let two = Neighbours::adjacent(vec![other], vec![other, other]);
        let why = alltoall(two, &[0; 3], &mut [0]);
        assert!(
            why.contains("3 bytes are not equal blocks for 2 destinations"),
            "{why}"
        );
        let why = alltoall(pair(), &[0], &mut [0; 4]);
        assert!(
            why.contains("what comes has 4 bytes where 2 are needed"),
            "{why}"
        );
        let why = alltoall(only_gets, &[0], &mut [0; 4]);
        assert!(
            why.contains("1 bytes are not equal blocks for 0 destinations"),
            "{why}"
        );
        let stranger = Neighbours::adjacent(vec![Some(2)], Vec::new());
        let why = alltoall(stranger, &[], &mut []);
        assert!(why.contains("no rank 2 in a group of 2"), "{why}");
        let half = Neighbours::adjacent(vec![me], vec![other]);
        let why = alltoall(half, &[0], &mut [0]);
        assert!(why.contains("1 times its own source and 0 times"), "{why}");

        let oneself = Neighbours::adjacent(vec![me, other], vec![me, other]);
        let alltoallv = |to: &[usize], from: &[usize]| {
            let operation = NeighbourAlltoall {
                neighbours: oneself.clone(),
                input: Blocks::Together(&[0; 3], Parts::Of(Cow::Borrowed(to))),
                out: Blocks::Together(&mut [0; 3], Parts::Of(Cow::Borrowed(from))),
            };
            refused(team, operation)
        };
        let why = alltoallv(&[1, 2], &[2, 1]);
        assert!(
            why.contains("for oneself has 2 bytes where 1 are needed"),
            "{why}"
        );
        let why = alltoallv(&[1, 1], &[1, 2]);
        assert!(
            why.contains("what leaves has 3 bytes where 2 are needed"),
            "{why}"
        );
        let why = alltoallv(&[3], &[1, 2]);
        assert!(
            why.contains("1 blocks were given for 2 destinations"),
            "{why}"
        );

        let (short, long) = (&[0; 1][..], &[0; 2][..]);
        let (mut first, mut second) = ([0; 1], [0; 1]);
        let operation = NeighbourAlltoall {
            neighbours: oneself.clone(),
            input: Blocks::Apart(vec![long, short]),
            out: Blocks::Apart(vec![&mut first, &mut second]),
        };
        let why = refused(team, operation);
        assert!(
            why.contains("for oneself has 1 bytes where 2 are needed"),
            "{why}"
        );
        let operation = NeighbourAlltoall {
            neighbours: oneself.clone(),
            input: Blocks::Apart(vec![short, long]),
            out: Blocks::Apart(vec![&mut first]),
        };
        let why = refused(team, operation);
        assert!(why.contains("1 blocks were given for 2 sources"), "{why}");

        let all = |input: Vec<&'static [u8]>, out: Vec<&mut [u8]>| {
            let (input, out) = (Some(Blocks::Apart(input)), Blocks::Apart(out));
            refused(team, Alltoall { input, out })
        };
        let why = all(vec![&[1]], vec![&mut first, &mut second]);
        assert!(
            why.contains("1 blocks were given for 2 ranks to send to"),
            "{why}"
        );
        let why = all(vec![&[1], &[1]], vec![&mut first]);
        assert!(
            why.contains("1 blocks were given for 2 ranks to receive"),
            "{why}"
        );
        let why = all(vec![&[1, 2], &[1, 2]], vec![&mut first, &mut second]);
        assert!(
            why.contains("for oneself has 1 bytes where 2 are needed"),
            "{why}"
        );

        // Nothing has begun.
        let grid = Grid::new(&[2], &[false]).unwrap();
        assert!(Neighbours::cartesian(&grid, 2).is_err());
        Graph::grid(&[2], &[true]).exchange(team, 1);
    });
}
