//! Flow: budgets hold, and no legal program hangs on them.

use super::rig::{ANYONE, ANYTHING, Checked, WORLD, World, accepted, ensure, from, only, pattern};
use super::{Budget, Factory, Setup};
use tagwire_pml::types::{RequestId, SendMode};

const SMALL: Budget = Budget {
    payload: 1 << 16,
    headers: 20_000,
    buffered: 1 << 20,
};

/// No envelope can be kept in less than this: source, tag, context, length, a place in a queue.
const LEAST_ENVELOPE: usize = 32;

fn open(factory: &Factory, ranks: u32) -> Checked<World> {
    let setup = Setup {
        budget: Some(SMALL),
    };
    World::open(factory, ranks, &setup)
}

fn flood(
    world: &mut World,
    at: usize,
    to: u32,
    count: usize,
    len: usize,
) -> Checked<Vec<RequestId>> {
    (0..count)
        .map(|seed| world.send(at, to, seed as u32, &pattern(seed, len), SendMode::Standard))
        .collect()
}

pub(super) fn floods_stay_within_the_budget(factory: &Factory) -> Checked {
    const COUNT: usize = 1500;
    for len in [0, 64, 4096, 6000] {
        let mut world = open(factory, 2)?;
        let sends = flood(&mut world, 0, 1, COUNT, len)?;
        world.settle();
        // What is complete at its sender is kept by its receiver.
        let mut kept = 0;
        for sent in &sends {
            kept += usize::from(world.is_complete(0, *sent)?);
        }
        ensure!(
            kept * len <= SMALL.payload + factory.claims.slack.bytes,
            "{} bytes are kept for a budget of {}",
            kept * len,
            SMALL.payload
        );
        let most = SMALL.headers / LEAST_ENVELOPE + factory.claims.slack.envelopes;
        ensure!(
            kept <= most,
            "{kept} envelopes are kept where {most} fit into {} bytes",
            SMALL.headers
        );
        // Behind all others.
        let last = COUNT - 1;
        let receiving = world.recv(1, ANYONE, only(last as u32), len)?;
        world.got(receiving, 0, last as u32, last, len)?;
        for seed in 0..last {
            let receiving = world.recv(1, ANYONE, ANYTHING, len)?;
            world.got(receiving, 0, seed as u32, seed, len)?;
        }
        for sent in sends {
            world.finish_well(0, sent)?;
        }
        world.is_idle()?;
    }
    Ok(())
}

/// The budget comes back: the same flood again and again.
pub(super) fn budgets_come_back(factory: &Factory) -> Checked {
    let mut world = open(factory, 2)?;
    let mut first = None;
    for _ in 0..6 {
        let sends = flood(&mut world, 0, 1, 600, 200)?;
        world.settle();
        let mut kept = 0;
        for sent in &sends {
            kept += usize::from(world.is_complete(0, *sent)?);
        }
        let fresh = *first.get_or_insert(kept);
        ensure!(
            kept * 2 >= fresh,
            "{kept} messages are kept where {fresh} were at first: the budget leaks"
        );
        for seed in 0..600 {
            let receiving = world.recv(1, ANYONE, ANYTHING, 200)?;
            world.got(receiving, 0, seed as u32, seed, 200)?;
        }
        for sent in sends {
            world.finish_well(0, sent)?;
        }
    }
    world.is_idle()
}

/// A receive is posted before a flood that comes in small steps: whenever the budget is spent,
/// the sender has nothing that waits, and still its last message is asked for.
pub(super) fn posted_receives_reach_behind_a_trickle(factory: &Factory) -> Checked {
    const COUNT: usize = 900;
    for source in [from(0), ANYONE] {
        let mut world = open(factory, 2)?;
        let last = world.recv(1, source, only(COUNT as u32), 8)?;
        let mut sends = Vec::new();
        for seed in 0..COUNT {
            sends.push(world.send(0, 1, seed as u32, &pattern(seed, 8), SendMode::Standard)?);
            for _ in 0..3 {
                world.turn();
            }
        }
        world.settle();
        ensure!(
            !world.is_complete(1, last.request)?,
            "a receive took a message with another tag"
        );
        sends.push(world.send(0, 1, COUNT as u32, &pattern(COUNT, 8), SendMode::Standard)?);
        world.got(last, 0, COUNT as u32, COUNT, 8)?;
        for seed in 0..COUNT {
            let receiving = world.recv(1, ANYONE, ANYTHING, 8)?;
            world.got(receiving, 0, seed as u32, seed, 8)?;
        }
        for sent in sends {
            world.finish_well(0, sent)?;
        }
        world.is_idle()?;
    }
    Ok(())
}

/// The receive comes while nothing is held back, the message once the budget is long spent.
pub(super) fn posted_receives_reach_behind_a_pause(factory: &Factory) -> Checked {
    for extra in 0..6 {
        let mut world = open(factory, 2)?;
        // So much that the sender's window is spent, or nearly.
        let mut count = 0;
        let mut complete = true;
        let mut sends = Vec::new();
        // A network that is slow on a busy machine may leave an early one open for long: of these there are
        // more than are received below.
        while complete || count < 8 || extra > 0 && count % 7 != extra {
            ensure!(count < 5000, "there is no budget");
            let sent = world.send(0, 1, 1, &pattern(count, 8), SendMode::Standard)?;
            // Within the window it completes at once. What is left of the others stays as it is.
            complete = world.settle_or_complete(0, sent)?;
            sends.push(sent);
            count += 1;
        }
        // Room for what is held back: the sender's queue is empty again.
        for seed in 0..extra + 1 {
            let receiving = world.recv(1, from(0), only(1), 8)?;
            world.got(receiving, 0, 1, seed, 8)?;
        }
        world.settle();
        let receiving = world.recv(1, ANYONE, only(2), 8)?;
        world.settle();
        for seed in 0..40 {
            sends.push(world.send(0, 1, 3, &pattern(seed, 8), SendMode::Standard)?);
        }
        world.settle();
        sends.push(world.send(0, 1, 2, &pattern(7, 8), SendMode::Standard)?);
        world.got(receiving, 0, 2, 7, 8)?;
        for seed in extra + 1..count {
            let receiving = world.recv(1, from(0), only(1), 8)?;
            world.got(receiving, 0, 1, seed, 8)?;
        }
        for seed in 0..40 {
            let receiving = world.recv(1, from(0), only(3), 8)?;
            world.got(receiving, 0, 3, seed, 8)?;
        }
        for sent in sends {
            world.finish_well(0, sent)?;
        }
        world.is_idle()?;
    }
    Ok(())
}

/// Two senders reply to the same receive: one of them has to take its message back, and nothing is
/// lost or out of order.
pub(super) fn several_senders_answer_one_receive(factory: &Factory) -> Checked {
    let mut world = open(factory, 3)?;
    let mut sends = Vec::new();
    for sender in 0..2 {
        for sent in flood(&mut world, sender, 2, 600, 16)? {
            sends.push((sender, sent));
        }
    }
    world.settle();
    for round in 0..40 {
        let early = world.recv(2, ANYONE, only(1000 + round), 16)?;
        let late = world.recv(2, ANYONE, only(1000 + round), 16)?;
        for sender in 0..2 {
            let data = pattern(sender, 16);
            sends.push((
                sender,
                world.send(sender, 2, 1000 + round, &data, SendMode::Standard)?,
            ));
        }
        let mut senders = Vec::new();
        for receiving in [early, late] {
            let status = world.finish_well(2, receiving.request)?;
            let sender = status.source.index();
            ensure!(
                world.bytes(receiving) == pattern(sender, 16),
                "the bytes are of another message than the status"
            );
            senders.push(sender);
        }
        senders.sort_unstable();
        super::rig::same("the senders", senders, vec![0, 1])?;
    }
    for sender in 0..2 {
        for seed in 0..600 {
            let receiving = world.recv(2, from(sender), ANYTHING, 16)?;
            world.got(receiving, sender, seed as u32, seed, 16)?;
        }
    }
    for (at, sent) in sends {
        world.finish_well(at, sent)?;
    }
    world.is_idle()
}

/// Many receives wait while the only message goes to and fro between them.
pub(super) fn receives_wait_side_by_side(factory: &Factory) -> Checked {
    let mut world = open(factory, 3)?;
    let mut sends = flood(&mut world, 0, 2, 700, 8)?;
    world.settle();
    for round in 0..20_usize {
        let tags = |number: usize| 5000 + (round * 8 + number) as u32;
        let mut receives = Vec::new();
        for number in 0..8 {
            receives.push(world.recv(2, ANYONE, only(tags(number)), 8)?);
        }
        // Half of them are cancelled, or served by somebody else, while the sender may reply.
        for number in 0..8 {
            if number % 2 == 0 {
                sends.push(world.send(
                    0,
                    2,
                    tags(number),
                    &pattern(number, 8),
                    SendMode::Standard,
                )?);
            } else {
                let sent =
                    world.send(1, 2, tags(number), &pattern(number, 8), SendMode::Standard)?;
                world.finish_well(1, sent)?;
            }
            for _ in 0..round % 4 {
                world.turn();
            }
        }
        for (number, receiving) in receives.into_iter().enumerate() {
            let sender = (number % 2) as u32;
            world.got(receiving, sender, tags(number), number, 8)?;
        }
    }
    for seed in 0..700 {
        let receiving = world.recv(2, from(0), ANYTHING, 8)?;
        world.got(receiving, 0, seed as u32, seed, 8)?;
    }
    for sent in sends {
        world.finish_well(0, sent)?;
    }
    world.is_idle()
}

pub(super) fn floods_to_oneself_are_received(factory: &Factory) -> Checked {
    let mut world = open(factory, 1)?;
    let sends = flood(&mut world, 0, 0, 900, 100)?;
    world.settle();
    for seed in (0..900).rev() {
        let receiving = world.recv(0, ANYONE, only(seed as u32), 100)?;
        world.got(receiving, 0, seed as u32, seed, 100)?;
    }
    for sent in sends {
        world.finish_well(0, sent)?;
    }
    world.is_idle()
}

pub(super) fn probes_see_what_is_held_back(factory: &Factory) -> Checked {
    for (source, claim) in [
        (from(0), false),
        (ANYONE, false),
        (from(0), true),
        (ANYONE, true),
    ] {
        let mut world = open(factory, 3)?;
        let mut sends = flood(&mut world, 0, 2, 900, 8)?;
        let others = flood(&mut world, 1, 2, 900, 8)?;
        world.settle();
        // Nothing like that is there: a probe says so and does no harm.
        for _ in 0..10 {
            let seen = accepted("probe", world.pml(2)?.probe(source, only(9999), WORLD))?;
            super::rig::same("what is seen", seen, None)?;
            world.turn();
        }
        for round in 0..5_u32 {
            let value = 2000 + round;
            for len in [12, 30_000] {
                let seed = value as usize;
                sends.push(world.send(0, 2, value, &pattern(seed, len), SendMode::Standard)?);
                sends.push(world.send(0, 2, value, &pattern(seed + 1, 3), SendMode::Standard)?);
                let receiving = see(&mut world, source, value, len, claim)?;
                world.got(receiving, 0, value, seed, len)?;
                let receiving = see(&mut world, source, value, 3, !claim)?;
                world.got(receiving, 0, value, seed + 1, 3)?;
            }
        }
        for seed in 0..900 {
            let receiving = world.recv(2, from(0), ANYTHING, 8)?;
            world.got(receiving, 0, seed as u32, seed, 8)?;
            let receiving = world.recv(2, from(1), ANYTHING, 8)?;
            world.got(receiving, 1, seed as u32, seed, 8)?;
        }
        for sent in sends {
            world.finish_well(0, sent)?;
        }
        for sent in others {
            world.finish_well(1, sent)?;
        }
        world.is_idle()?;
    }
    Ok(())
}

/// Probes (or claims) until the message of `len` bytes is seen, then receives it.
fn see(
    world: &mut World,
    source: tagwire_base::SourceSelector,
    value: u32,
    len: usize,
    claim: bool,
) -> Checked<super::rig::Receiving> {
    let mut found = None;
    let mut length = 0;
    world.until("what a probe looks for", |world| {
        let pml = world.pml(2)?;
        if claim {
            found = accepted("claim", pml.claim(source, only(value), WORLD))?;
            length = found.map_or(0, |(_, status)| status.length);
            return Ok(found.is_some());
        }
        let seen = accepted("probe", pml.probe(source, only(value), WORLD))?;
        length = seen.map_or(0, |status| status.length);
        Ok(seen.is_some())
    })?;
    super::rig::same("the length seen", length, len)?;
    match found {
        None => world.recv(2, source, only(value), len),
        Some((message, _)) => {
            let (room, buffer) = world.lend_room(len);
            let request = world.pml(2)?.irecv_claimed(room, message);
            Ok(super::rig::Receiving {
                request: accepted("irecv_claimed", request)?,
                buffer,
                at: 2,
            })
        }
    }
}

/// A probe that saw something and came to nothing must not stand in the way of others.
pub(super) fn probes_that_are_given_up_stop_nobody(factory: &Factory) -> Checked {
    let mut world = open(factory, 2)?;
    let mut sends = flood(&mut world, 0, 1, 900, 8)?;
    sends.push(world.send(0, 1, 3000, &pattern(1, 8), SendMode::Standard)?);
    world.settle();
    let waiting = world.recv(1, from(0), only(3001), 8)?;
    world.until("what a probe looks for", |world| {
        let seen = world.pml(1)?.probe(from(0), only(3000), WORLD);
        Ok(accepted("probe", seen)?.is_some())
    })?;
    sends.push(world.send(0, 1, 3001, &pattern(2, 8), SendMode::Standard)?);
    world.got(waiting, 0, 3001, 2, 8)?;
    for seed in 0..900 {
        let receiving = world.recv(1, from(0), ANYTHING, 8)?;
        world.got(receiving, 0, seed as u32, seed, 8)?;
    }
    let receiving = world.recv(1, from(0), ANYTHING, 8)?;
    world.got(receiving, 0, 3000, 1, 8)?;
    for sent in sends {
        world.finish_well(0, sent)?;
    }
    world.is_idle()
}
