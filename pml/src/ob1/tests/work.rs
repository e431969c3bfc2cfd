//! How much work things are, counted in entries looked at: no clock.

use super::*;
use crate::contacts::IN_VAIN;

/// While a budget is spent, each receive pulls its message from the senders. What that costs does
/// not depend on how many other operations there are.
#[test]
fn a_pull_does_not_look_at_all_requests() {
    const OTHERS: i32 = 2000;
    const FLOOD: i32 = 1500;
    const PULLS: i32 = 200;
    let options = Ob1Options {
        unexpected_payload: 1 << 16,
        unexpected_headers: 20_000,
        ..Ob1Options::default()
    };
    let mut world = World::new(2, MemoryOptions::default(), &options);
    // Receives that nothing ever matches, and that all accept messages of the sender.
    for value in 0..OTHERS {
        let never = TagSelector::exact(tag(100_000 + value));
        world.recv(1, SourceSelector::exact(Rank::new(0)), never, 8);
    }
    for value in 0..FLOOD {
        world.send(0, 1, tag(value), b"flooding", SendMode::Standard);
    }
    world.settle();
    assert!(!world.ranks[1].core.budget.starving().is_empty(), "no test");
    let work = |world: &World| {
        let core = &world.ranks[1].core;
        let seen = core.matcher.stats().posted.attempts as usize;
        (seen, core.requests.walked.get())
    };
    let before = work(&world);
    for value in 0..PULLS {
        let wanted = TagSelector::exact(tag(FLOOD - 1 - value));
        let (received, _) = world.recv(1, SourceSelector::ANY, wanted, 8);
        assert_eq!(world.finish(1, received).failure, None);
    }
    // Probes look at the senders' queues in the same way.
    for value in PULLS..2 * PULLS {
        let wanted = TagSelector::exact(tag(FLOOD - 1 - value));
        for _ in 0..8 {
            let _ = world.ranks[1].probe(SourceSelector::ANY, wanted, WORLD);
            world.ranks.iter_mut().for_each(|rank| {
                rank.progress();
            });
        }
    }
    let after = work(&world);
    assert_eq!(after.1 - before.1, 0, "requests walked over");
    let seen = after.0 - before.0;
    assert!(seen < 20 * PULLS as usize, "{seen} receives looked at");
}

/// A peer that takes nothing in has thousands of replies wait. A call tries some of them, and those that were not tried come first in
/// the next one.
#[test]
fn replies_that_cannot_be_sent_do_not_make_a_call_long() {
    const ROUNDS: usize = 10;
    let network = MemoryOptions {
        control_slots: 1,
        ..MemoryOptions::default()
    };
    let mut world = World::pair(network);
    let mut sends = Vec::new();
    while world.ranks[1].core.pending.len() < ROUNDS * IN_VAIN {
        let from = SourceSelector::exact(Rank::new(0));
        world.recv(1, from, TagSelector::ANY, 8);
        sends.push(world.send(0, 1, tag(0), b"answered", SendMode::Synchronous));
        world.ranks[1].progress();
    }
    let order = |world: &World| format!("{:?}", world.ranks[1].core.pending);
    let before = order(&world);
    for _ in 1..ROUNDS {
        assert_eq!(world.ranks[1].progress(), 0);
        assert!(order(&world) != before, "all were tried in one call");
    }
    world.ranks[1].progress();
    assert!(order(&world) == before, "each was tried once");
    for send in sends {
        assert_eq!(world.finish(0, send).failure, None);
    }
}
