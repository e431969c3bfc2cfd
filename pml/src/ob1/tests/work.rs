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

/// Three ranks send more to one at once than its budgets are by default, and that keeps no more than they are; all of it comes, in order.
/// TAGWIRE_TEST_FLOOD is how many messages each of them sends.
#[test]
fn a_flood_of_three_ranks_stays_within_the_budgets() {
    const LEN: usize = 1024;
    let each = std::env::var("TAGWIRE_TEST_FLOOD").map_or(40_000, |text| text.parse().unwrap());
    let options = Ob1Options::default();
    let mut world = World::new(4, MemoryOptions::default(), &options);
    let data = |from: usize, number: usize| {
        let mut data = [from as u8; LEN];
        data[..8].copy_from_slice(&number.to_le_bytes());
        data
    };
    let mut sends = Vec::new();
    for number in 0..each {
        for from in 1..4 {
            let sent = world.send(from, 0, tag(1), &data(from, number), SendMode::Standard);
            sends.push((from, sent));
        }
    }
    world.settle();
    let core = &world.ranks[0].core;
    let kept = || core.matcher.messages();
    let bytes: usize = kept().map(|message| message.content.arrived().len()).sum();
    let envelopes = kept().count() * size_of::<unexpected::Unexpected>();
    assert!(bytes <= options.unexpected_payload, "{bytes} bytes");
    assert!(envelopes <= options.unexpected_headers, "{envelopes} bytes");
    assert!(bytes >= options.unexpected_payload / 2, "{bytes} bytes");
    assert!(!core.budget.starving().is_empty(), "no test");
    for from in 1..4 {
        let source = SourceSelector::exact(Rank::new(from as u32));
        for number in 0..each {
            let (received, place) = world.recv(0, source, TagSelector::ANY, LEN);
            assert_eq!(world.finish(0, received).failure, None);
            assert_eq!(world.lent[place][..], data(from, number));
            world.lent.pop();
        }
    }
    for (from, sent) in sends {
        assert_eq!(world.finish(from, sent).failure, None);
    }
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

/// Messages that come for a context which is closed are dropped by looks at the peers. A look goes through some slots, however many messages
/// wait for their receives.
#[test]
fn a_look_for_strays_goes_through_some_messages() {
    let mut world = World::pair(MemoryOptions::default());
    let closed = world.ranks[1].open_context().unwrap();
    world.ranks[1].close_context(closed).unwrap();
    let stray = |world: &mut World| {
        // SAFETY: the bytes are there for good.
        let data = unsafe { lend(b"stray") };
        let to = Rank::new(1);
        let sent = world.ranks[0].isend(data, to, tag(1), closed, SendMode::Standard);
        assert_eq!(sent.unwrap(), RequestId::COMPLETE);
    };
    let others = 3 * recv::LOOKED_AT as usize;
    stray(&mut world);
    for _ in 0..others {
        world.send(0, 1, tag(1), b"kept", SendMode::Standard);
        world.settle();
    }
    stray(&mut world);
    world.settle();
    let mut left = Vec::new();
    for _ in 0..8 {
        world.ranks[1].look_after_peers();
        left.push(world.ranks[1].core.matcher.len() - others);
    }
    assert_eq!(left, [1, 1, 1, 0, 0, 0, 0, 0]);
    audit(&world.ranks[1].core);
}

/// A receive has asked for a message whose sender has thousands of others to send as soon as there is credit. They leave room on the network
/// for what was asked for.
#[test]
fn what_a_receive_has_asked_for_does_not_wait_for_what_nobody_receives() {
    const LEN: usize = 1024;
    const FLOOD: usize = 3000;
    let options = Ob1Options {
        unexpected_payload: 1 << 18,
        unexpected_headers: 100_000,
        ..Ob1Options::default()
    };
    let network = MemoryOptions {
        slots: 12,
        ..MemoryOptions::default()
    };
    let mut world = World::new(2, network, &options);
    for number in 0..FLOOD {
        world.send(0, 1, tag(1), &pattern(number, LEN), SendMode::Standard);
        world.settle();
    }
    let is_announced = |world: &World| {
        let core = &world.ranks[1].core;
        core.matcher
            .messages()
            .any(|message| !message.content.is_whole())
    };
    assert!(is_announced(&world), "no test");
    let mut longest = 0;
    for number in 0..FLOOD {
        let (received, place) = world.recv(1, SourceSelector::ANY, TagSelector::ANY, LEN);
        let mut rounds = 0;
        while world.ranks[1].take(received).unwrap().is_none() {
            rounds += 1;
            world.ranks.iter_mut().for_each(|rank| {
                rank.progress();
            });
        }
        assert_eq!(&world.lent[place][..], &pattern(number, LEN)[..]);
        world.lent.pop();
        longest = longest.max(rounds);
    }
    assert!(longest < 8, "a message took {longest} rounds");
}
