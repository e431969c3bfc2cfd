//! Groups of two sides: their operations against a serial oracle, and the groups that are made of them.
#![allow(unsafe_code)]

use std::sync::Arc;

use crate::common::sides::{Blocking, Run, even_and_odd, everything};
use crate::common::{CHECKED, each_forced, ranks, threaded};
use tagwire_base::Rank;
use tagwire_coll::operations::{Allgather, Broadcast, CollectiveOperation, Parts, Root};
use tagwire_coll::{Bridge, Duplicate, Error, Leader, Result, Team};

/// Leaves operations to progress.
struct Nonblocking;

impl Run for Nonblocking {
    fn run<O: CollectiveOperation>(&self, team: &Arc<Team>, operation: O) -> Result<()> {
        // SAFETY: it is waited for.
        unsafe { team.start(operation) }?.wait(None)
    }
}

const SIZES: [usize; 6] = [2, 3, 4, 5, 8, 11];

fn rounds(team: &Arc<Team>, of: std::ops::Range<u64>) {
    for number in of {
        everything(team, number, &Blocking).unwrap();
        everything(team, number, &Nonblocking).unwrap();
    }
}

#[test]
fn data_goes_to_the_other_side() {
    for size in SIZES {
        ranks(size, "", |team| {
            let both = Arc::new(even_and_odd(team, "").unwrap());
            let sides = both.sides().unwrap();
            let (own, remote) = (
                both.members().part(sides.local()),
                both.members().part(sides.remote()),
            );
            let parity = team.me() % 2;
            assert!(
                (0..own.len())
                    .all(|place| own.rank(place) == Some(Rank::new((2 * place + parity) as u32)))
            );
            assert!((0..remote.len()).all(|place| {
                remote.member(Rank::new((2 * place + 1 - parity) as u32)) == Some(place)
            }));
            assert_eq!(own.len() + remote.len(), size);
            rounds(&both, 0..8);
        });
    }
}

#[test]
fn sides_take_every_algorithm() {
    for forced in each_forced().iter().map(String::as_str).chain([CHECKED]) {
        ranks(7, forced, |team| {
            let both = Arc::new(even_and_odd(team, "").unwrap());
            rounds(&both, 10..14);
        });
    }
}

#[test]
fn what_is_of_one_side_is_refused_in_a_group_of_two() {
    ranks(4, "", |team| {
        let both = Arc::new(even_and_odd(team, "").unwrap());
        let refused = |end: Result<()>| match end {
            Err(Error::Argument(why)) => why,
            other => panic!("{other:?}"),
        };
        let from = |team: &Team, root| {
            let data = &mut [0][..];
            refused(team.call(Broadcast { data, root }))
        };
        let why = from(&both, Root::Member(0));
        assert!(why.contains("as in a group of one side"), "{why}");
        let why = from(&both, Root::There(2));
        assert!(why.contains("no rank 2 in a remote group of 2"), "{why}");
        for root in [Root::Here, Root::There(0), Root::Beside] {
            let why = from(team, root);
            assert!(why.contains("not one of two sides"), "{why}");
        }
        let within = Allgather {
            own: None,
            parts: Parts::Equal,
            out: &mut [0; 2],
        };
        let why = refused(both.call(within));
        assert!(why.contains("no data is in place"), "{why}");
        rounds(&both, 0..1);
    });
}

#[test]
fn groups_are_made_of_both_sides() {
    ranks(7, "", |team| {
        let both = Arc::new(even_and_odd(team, "").unwrap());
        let copy = Arc::new(both.duplicate().unwrap());
        rounds(&copy, 0..2);
        let made = Duplicate::of(&both).unwrap();
        rounds(&copy, 2..3);
        while !made.is_complete() {
            team.messenger().progress().unwrap();
        }
        rounds(&Arc::new(made.take().unwrap().unwrap()), 3..4);

        // Odd ones first: by what they say, not by what they are.
        let whole = copy.merge(team.me() % 2 == 0).unwrap();
        assert!(whole.sides().is_none());
        let order: Vec<_> = (0..7)
            .map(|member| whole.members().rank(member).unwrap().as_u32())
            .collect();
        assert_eq!(order, [1, 3, 5, 0, 2, 4, 6]);
        whole.barrier().unwrap();

        // Ranks 0, 1, 5, 6 the other way round; 2 and 4 have nobody on the other side; 3 does not want to.
        let color = [Some(1), Some(1), Some(0), None, Some(0), Some(1), Some(1)][team.me()];
        let part = both.split(color, -(team.me() as i32)).unwrap();
        assert_eq!(part.is_some(), [0, 1, 5, 6].contains(&team.me()));
        if let Some(part) = part.map(Arc::new) {
            let sides = part.sides().unwrap();
            let own = part.members().part(sides.local());
            let expected = if team.me() % 2 == 0 { [6, 0] } else { [5, 1] };
            assert_eq!(
                [own.rank(0), own.rank(1)],
                expected.map(|rank| Some(Rank::new(rank)))
            );
            rounds(&part, 4..6);
        }
    });
}

/// Two of the same leaders at once, of which the names tell which is which.
#[test]
fn names_tell_apart_what_leaders_make_at_once() {
    threaded(4, |team| {
        std::thread::scope(|scope| {
            let threads: Vec<_> = ["one", "other"]
                .into_iter()
                .map(|name| {
                    let team = Arc::new(team.duplicate().unwrap());
                    scope.spawn(move || {
                        (0..20).for_each(|_| drop(even_and_odd(&team, name).unwrap()))
                    })
                })
                .collect();
            threads
                .into_iter()
                .for_each(|thread| thread.join().unwrap());
        });
    });
}

#[test]
fn all_hear_what_is_wrong() {
    ranks(5, "", |team| {
        let side = team
            .split(Some(u32::from(team.me() > 1)), 0)
            .unwrap()
            .unwrap();
        // A leader of both groups.
        let members = [0, 1, 2, 3, 4];
        let (name, number) = ("", 0);
        let way = Leader {
            peer: team,
            members: &members,
            number,
            name,
        };
        let to = (team.me() == 0).then_some(way);
        let end = Bridge { leader: 0, to }.of(team);
        assert!(matches!(end, Err(Error::Argument(_))), "{end:?}");
        // A leader that has no way to the other.
        let end = Bridge {
            leader: 0,
            to: None,
        }
        .of(&side);
        assert!(matches!(end, Err(Error::Argument(_))), "{end:?}");
        let end = Bridge {
            leader: 5,
            to: None,
        }
        .of(&side);
        assert!(matches!(end, Err(Error::Argument(_))), "{end:?}");
        // The groups are still good.
        side.barrier().unwrap();
        team.barrier().unwrap();
    });
}

/// Member 1 is in both groups.
#[test]
fn groups_have_no_member_in_common() {
    threaded(3, |team| {
        let (one, other, members) = ([0, 1], [2, 1], [0, 1, 2]);
        let side = |members: &[usize]| {
            let is_member = members.contains(&team.me());
            is_member.then(|| team.subset(members).unwrap())
        };
        let sides = [(side(&one), 2), (side(&other), 0)];
        std::thread::scope(|scope| {
            let sides = sides.into_iter();
            let of_mine = sides.filter_map(|(side, number)| Some((side?, number)));
            let threads: Vec<_> = of_mine
                .map(|(side, number)| {
                    let name = "";
                    let way = Leader {
                        peer: team,
                        members: &members,
                        number,
                        name,
                    };
                    scope.spawn(move || {
                        let to = (side.me() == 0).then_some(way);
                        Bridge { leader: 0, to }.of(&side)
                    })
                })
                .collect();
            for thread in threads {
                let end = thread.join().unwrap();
                assert!(matches!(end, Err(Error::Argument(_))), "{end:?}");
            }
        });
    });
}
