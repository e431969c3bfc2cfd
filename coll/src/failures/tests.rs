use std::time::Duration;

use tagwire_base::Rank;
use tagwire_base::bootstrap::LocalJob;
use tagwire_conformance::network::{MemoryNetwork, MemoryOptions};
use tagwire_pml::ob1::{Ob1, Ob1Options};
use tagwire_pml::{ThreadLevel, WaitPolicy};

use super::*;

/// Ranks that the test's thread calls, and the group of all of them.
struct World {
    job: LocalJob,
    ranks: Vec<Arc<Messenger>>,
    groups: Vec<Failures>,
}

impl World {
    fn new(size: u32) -> Self {
        Self::with(size, &Ob1Options::default())
    }

    fn with(size: u32, options: &Ob1Options) -> Self {
        let network = MemoryNetwork::new(size, MemoryOptions::full());
        let job = LocalJob::new(size).unwrap();
        let open = |number| {
            let (network, job, options) = (network.clone(), job.clone(), options.clone());
            move || {
                let rank = Rank::new(number);
                let rail = Box::new(network.rank(rank));
                let member = Box::new(job.member(rank));
                let ob1 = Ob1::open(&options, rail, member).unwrap();
                let policy = WaitPolicy::adaptive(true);
                Arc::new(Messenger::new(ob1, ThreadLevel::Multiple, policy))
            }
        };
        // Each waits for the others.
        let ranks: Vec<_> = (0..size)
            .map(|number| std::thread::spawn(open(number)))
            .collect();
        let ranks: Vec<_> = ranks.into_iter().map(|rank| rank.join().unwrap()).collect();
        let members = Members::world(size as usize);
        let group = |(me, messenger)| Failures::new(messenger, &members, me, ContextId::WORLD);
        let groups = ranks.iter().enumerate().map(group).collect();
        Self { job, ranks, groups }
    }

    /// Has messages arrive, and a rank look after its peers.
    fn look_around(&self, member: usize) {
        for _ in 0..20 {
            self.ranks.iter().for_each(|rank| drop(rank.progress()));
        }
        self.ranks[member].failed().unwrap();
    }

    /// Returns what a member hears of another that has ended because of `error`.
    fn hears(&self, member: usize, error: &Error, of: usize) -> Option<Lost> {
        assert!(self.groups[of].enter(error));
        self.groups[of].report();
        self.look_around(member);
        said(self.groups[member].check_members())
    }
}

fn dead(member: u32) -> Error {
    Error::Failed(Failure::PeerFailed(Rank::new(member)))
}

/// A first contact that failed.
fn no_way_to(member: u32) -> Error {
    Error::Pml(tagwire_pml::Error::Transport(
        tagwire_transport::Error::Unreachable {
            transport: "memory",
            peer: Rank::new(member),
            reason: "it is not there".to_owned(),
        },
    ))
}

/// Returns whom an end names.
fn said(end: Result<()>) -> Option<Lost> {
    match end {
        Ok(()) => None,
        Err(Error::Failed(Failure::PeerFailed(rank))) => Some(Lost::Dead(rank.index())),
        Err(Error::Gone { member }) => Some(Lost::Gone(member)),
        Err(error) => panic!("{error}"),
    }
}

fn differs() -> Error {
    Error::Different {
        own: String::new(),
        member: 2,
        theirs: String::new(),
    }
}

#[test]
fn the_culprit_is_a_member_by_its_number_in_the_group() {
    let world = World::new(4);
    let ranks = [3, 0, 2].map(Rank::new).to_vec();
    let members = Members::new(ranks, vec![ContextId::WORLD; 3]);
    let group = Failures::new(&world.ranks[0], &members, 1, ContextId::WORLD);
    assert_eq!(group.failed_member(&dead(3)), 0);
    assert_eq!(group.failed_member(&dead(2)), 2);
    assert_eq!(group.failed_member(&Error::Gone { member: 2 }), 2);
    for failure in [Failure::PeerLeft, Failure::Protocol, Failure::Unreachable] {
        assert_eq!(
            group.failed_member(&Error::Failed(failure(Rank::new(3)))),
            0
        );
    }
    assert_eq!(group.failed_member(&no_way_to(3)), 0);
    // None of the group.
    assert_eq!(group.failed_member(&dead(1)), 1);
    assert_eq!(group.failed_member(&Error::Broken), 1);
    assert_eq!(group.failed_member(&differs()), 1);
}

#[test]
fn what_is_under_way_ends_with_the_first_that_was_lost() {
    for (first, lost) in [
        (dead(2), Some(Lost::Dead(2))),
        (Error::Gone { member: 1 }, Some(Lost::Gone(1))),
        (
            Error::Failed(Failure::Unreachable(Rank::new(2))),
            Some(Lost::Gone(2)),
        ),
        (no_way_to(2), Some(Lost::Gone(2))),
        (Error::Failed(Failure::Closed), None),
        (differs(), None),
    ] {
        let world = World::new(3);
        let group = &world.groups[0];
        assert!(group.check().is_ok());
        assert!(group.broken_by().is_none());
        assert!(group.enter(&first));
        // Others hear of it once, and what comes later is no cause.
        assert!(!group.enter(&Error::Gone { member: 0 }));
        assert!(!group.enter(&dead(1)));
        assert!(matches!(group.check(), Err(Error::Broken)));
        for end in [
            group.broken_by().unwrap(),
            group.check_members().unwrap_err(),
        ] {
            match lost {
                None => assert!(matches!(end, Error::Broken), "{end}"),
                Some(_) => assert_eq!(said(Err(end)), lost),
            }
        }
    }
}

#[test]
fn deaths_of_members_are_found_and_of_no_others() {
    let world = World::new(4);
    let part = |members: [u32; 2]| {
        let ranks = members.map(Rank::new).to_vec();
        let members = Members::new(ranks, vec![ContextId::WORLD; 2]);
        Failures::new(&world.ranks[0], &members, 0, ContextId::WORLD)
    };
    let (one, other) = (part([0, 1]), part([0, 2]));
    assert!(one.check_members().is_ok() && other.check_members().is_ok());
    world.job.declare_failed(Rank::new(3));
    world.look_around(0);
    assert!(one.check_members().is_ok() && other.check_members().is_ok());
    assert_eq!(said(world.groups[0].check_members()), Some(Lost::Dead(3)));
    world.job.declare_failed(Rank::new(2));
    world.look_around(0);
    assert!(one.check_members().is_ok());
    assert_eq!(said(other.check_members()), Some(Lost::Dead(2)));
}

#[test]
fn nothing_goes_on_in_a_rank_that_closes() {
    let world = World::new(1);
    let group = &world.groups[0];
    assert!(group.check_members().is_ok());
    world.ranks[0].close(Duration::from_secs(20)).unwrap();
    let end = group.check_members();
    assert!(
        matches!(end, Err(Error::Failed(Failure::Closed))),
        "{end:?}"
    );
}

#[test]
fn members_hear_whom_another_has_lost() {
    let hears = |error: &Error| World::new(3).hears(1, error, 0);
    assert_eq!(hears(&dead(2)), Some(Lost::Dead(2)));
    assert_eq!(hears(&Error::Gone { member: 2 }), Some(Lost::Gone(2)));
    // Something else, or the one that hears it: the one that has broken off is lost.
    for error in [differs(), dead(1), Error::Gone { member: 1 }] {
        assert_eq!(hears(&error), Some(Lost::Gone(0)));
    }
    // The launcher's word is surer, also where this rank has not asked for it since.
    let world = World::new(3);
    world.groups[0].enter(&differs());
    world.groups[0].report();
    world.look_around(1);
    world.job.declare_failed(Rank::new(2));
    assert_eq!(said(world.groups[1].check_members()), Some(Lost::Dead(2)));
}

/// Where bytes are fetched after the match, news is not here yet when it is claimed.
#[test]
fn news_that_takes_a_while_is_waited_for() {
    let options = Ob1Options {
        eager_limit: Some(0),
        ..Ob1Options::default()
    };
    let world = World::with(3, &options);
    // Once it is claimed, and until its bytes are here.
    assert_eq!(world.hears(1, &dead(2), 0), None);
    for rank in &world.ranks {
        rank.progress().unwrap();
    }
    let heard = (0..100).find_map(|_| {
        world.ranks.iter().for_each(|rank| drop(rank.progress()));
        said(world.groups[1].check_members())
    });
    assert_eq!(heard, Some(Lost::Dead(2)));
    world.look_around(1);
    assert!(world.groups[1].check_members().is_ok());
}

/// News is looked for whenever peers were looked after, and not in between.
#[test]
fn news_is_heard_once_and_by_members_alone() {
    let world = World::new(3);
    let members = Members::new([1, 2].map(Rank::new).to_vec(), vec![ContextId::WORLD; 2]);
    let pair = Failures::new(&world.ranks[1], &members, 0, ContextId::WORLD);
    // Of a group that had the context before.
    assert_eq!(world.hears(2, &differs(), 0), Some(Lost::Gone(0)));
    world.look_around(1);
    assert!(pair.check_members().is_ok());
    assert!(world.groups[1].check_members().is_ok());
    let group = &world.groups[2];
    world.look_around(2);
    assert!(group.check_members().is_ok());
}
