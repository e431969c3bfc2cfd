//! Groups that threads of the same members make at once, and what is left of meetings that failed.

use std::collections::HashMap;
use std::sync::Barrier;

use crate::common::sides::Sided;
use crate::common::threaded;
use tagwire_coll::{Bridge, Error, Leader, Result, Subset, Team};

/// Returns pairs of names that digests of 13 bits do not tell apart, as SplitMix64 (Steele, Lea and Flood, 2014) makes them.
fn alike(count: usize) -> Vec<[String; 2]> {
    let mixed = |value: u64| {
        let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    };
    let digest = |name: &str| {
        let words = [0, 1].into_iter().chain(name.bytes().map(u64::from));
        let all = words.chain([0]).fold(2, |hash, word| mixed(hash ^ word));
        (all >> 32) as u32 % 8192
    };
    let mut seen = HashMap::new();
    let names = (0..).map(|number: u32| number.to_string());
    let pairs = names.filter_map(|name| {
        let other = seen.insert(digest(&name), name.clone());
        other.map(|other| [other, name])
    });
    pairs.take(count).collect()
}

/// Makes groups under two names at once, one member in the other order, and returns what the first member gives in each.
fn at_once(team: &Team, names: &[String; 2], make: impl Fn(&str) -> Team + Sync) -> [u8; 2] {
    let (first, second) = match team.me() {
        0 => (0, 1),
        _ => (1, 0),
    };
    let make = &make;
    let of = |place: usize| {
        let group = make(&names[place]);
        let mut data = [if group.me() == 0 { place as u8 } else { 9 }];
        group.broadcast(&mut data, 0).unwrap();
        data[0]
    };
    std::thread::scope(|scope| {
        let one = scope.spawn(move || of(first));
        let other = scope.spawn(move || of(second));
        let mut got = [0; 2];
        got[first] = one.join().unwrap();
        got[second] = other.join().unwrap();
        got
    })
}

#[test]
fn groups_of_other_names_are_never_mixed_up() {
    let pairs = alike(20);
    let ends = threaded(2, |team| {
        let members = &[0, 1];
        let made = |name: &str| Subset { members, name }.of(team).unwrap();
        let ends = pairs.iter().map(|names| at_once(team, names, made));
        ends.collect::<Vec<_>>()
    });
    assert!(ends.iter().flatten().all(|got| *got == [0, 1]), "{ends:?}");
}

#[test]
fn groups_of_two_sides_of_other_names_are_never_mixed_up() {
    let pairs = alike(20);
    threaded(2, |team| {
        // Each thread has a side of its own: one thread of a member calls collectives of a group at a time.
        let sided = [(); 2].map(|()| Sided::of(team).unwrap());
        for names in &pairs {
            let merged = |name: &str| {
                let sided = &sided[usize::from(name == names[1])];
                sided.bridge(team, name).unwrap().merge(false).unwrap()
            };
            assert_eq!(at_once(team, names, merged), [0, 1]);
        }
    });
}

/// Many at once, in any order, again and again under the same names.
#[test]
fn any_number_meets_at_once() {
    const THREADS: usize = 6;
    threaded(3, |team| {
        let started = Barrier::new(THREADS);
        std::thread::scope(|scope| {
            for number in 0..THREADS {
                let started = &started;
                scope.spawn(move || {
                    let (members, name): (&[usize], _) = match number % 3 {
                        0 => (&[0, 1, 2], number.to_string()),
                        1 => (&[2, 0, 1], "one".to_owned() + &number.to_string()),
                        _ => (&[1, 0], "x".repeat(5000 + number)),
                    };
                    started.wait();
                    if !members.contains(&team.me()) {
                        return;
                    }
                    for round in 0..10 {
                        let name = &name;
                        let group = Subset { members, name }.of(team).unwrap();
                        let mut data = [number as u8 + round];
                        if group.me() > 0 {
                            data = [99];
                        }
                        group.broadcast(&mut data, 0).unwrap();
                        assert_eq!(data, [number as u8 + round]);
                    }
                });
            }
        });
    });
}

/// A leader that cannot take part says so; what the other has said to it is not taken for the next attempt's.
#[test]
fn leaders_that_failed_meet_again_under_the_same_name() {
    crate::common::ranks(4, "", |team| {
        let members = [0, 1, 2, 3];
        let side = team.split(Some(team.me() as u32 / 2), 0).unwrap().unwrap();
        let bridge = |side: &Team| -> Result<Team> {
            let way = Leader {
                peer: team,
                number: if team.me() < 2 { 2 } else { 0 },
                members: &members,
                name: "again",
            };
            let to = (side.me() == 0).then_some(way);
            Bridge { leader: 0, to }.of(side)
        };
        for _ in 0..3 {
            // One side is broken: its members do not agree on a length.
            let broken = side.duplicate().unwrap();
            if team.me() < 2 {
                let mut data = vec![0; 8 + team.me()];
                let mut end = broken.broadcast(&mut data, 0);
                while end.is_ok() {
                    end = broken.barrier();
                }
            }
            let end = bridge(&broken);
            assert!(
                matches!(end, Err(Error::Broken | Error::Argument(_))),
                "{end:?}"
            );
            let both = bridge(&side).unwrap();
            assert_eq!(both.size(), 4);
            both.barrier().unwrap();
        }
    });
}
