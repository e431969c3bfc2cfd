//! Core: looking at messages, and taking them out of matching.

use tagwire_base::Rank;

use super::Factory;
use super::rig::{
    ANYONE, ANYTHING, Checked, Receiving, WORLD, World, accepted, ensure, from, only, pattern,
    same, tag,
};
use tagwire_pml::types::{Failure, SendMode, Status};

pub(super) fn probes_see_and_leave(factory: &Factory) -> Checked {
    for len in factory.protocols() {
        let mut world = World::pair(factory)?;
        world.meet()?;
        let seen = accepted("probe", world.pml(1)?.probe(ANYONE, ANYTHING, WORLD))?;
        same("what is seen of nothing", seen, None)?;
        let first = world.send(0, 1, 1, &pattern(1, len), SendMode::Standard)?;
        let second = world.send(0, 1, 2, &pattern(2, len + 1), SendMode::Synchronous)?;
        world.settle();
        for _ in 0..2 {
            for (value, number) in [(ANYTHING, 1), (only(2), 2), (only(1), 1)] {
                let seen = accepted("probe", world.pml(1)?.probe(from(0), value, WORLD))?;
                let seen = seen.ok_or_else(|| format!("message {number} is not seen"))?;
                same("the tag seen", seen.tag, tag(number))?;
                same("the source seen", seen.source, Rank::new(0))?;
                same("the length seen", seen.length, len + number as usize - 1)?;
            }
        }
        ensure!(
            !world.is_complete(0, second)?,
            "a probe completed a synchronous send"
        );
        let receiving = world.recv(1, ANYONE, only(2), len + 1)?;
        world.got(receiving, 0, 2, 2, len + 1)?;
        let seen = accepted("probe", world.pml(1)?.probe(ANYONE, only(2), WORLD))?;
        same("what is seen after the receive", seen, None)?;
        let receiving = world.recv(1, ANYONE, ANYTHING, len)?;
        world.got(receiving, 0, 1, 1, len)?;
        world.finish_well(0, first)?;
        world.finish_well(0, second)?;
    }
    Ok(())
}

pub(super) fn posted_receives_come_before_probes(factory: &Factory) -> Checked {
    let mut world = World::pair(factory)?;
    let receiving = world.recv(1, ANYONE, only(1), 8)?;
    world.send(0, 1, 1, &pattern(1, 8), SendMode::Standard)?;
    world.settle();
    let seen = accepted("probe", world.pml(1)?.probe(ANYONE, ANYTHING, WORLD))?;
    same("what is seen of a matched message", seen, None)?;
    world.got(receiving, 0, 1, 1, 8)
}

pub(super) fn claimed_messages_are_out_of_matching(factory: &Factory) -> Checked {
    for len in factory.protocols() {
        for room in [len + 2, len, len - 1] {
            let mut world = World::pair(factory)?;
            world.meet()?;
            let mut sends = Vec::new();
            for number in 1..4_u32 {
                let data = pattern(number as usize, len);
                sends.push(world.send(0, 1, number % 2, &data, SendMode::Synchronous)?);
            }
            world.settle();
            let claimed = accepted("claim", world.pml(1)?.claim(ANYONE, only(1), WORLD))?;
            let (message, seen) = claimed.ok_or("nothing was claimed")?;
            same("the length claimed", (seen.length, seen.tag), (len, tag(1)))?;
            // Out of matching: the next of the same kind is seen and received.
            let receiving = world.recv(1, ANYONE, only(1), len)?;
            world.got(receiving, 0, 1, 3, len)?;
            ensure!(
                !world.is_complete(0, sends[0])?,
                "a claim completed a synchronous send"
            );
            let (buffer, place) = world.lend_room(room);
            let request = accepted(
                "irecv_claimed",
                world.pml(1)?.irecv_claimed(buffer, message),
            )?;
            let receiving = Receiving {
                request,
                buffer: place,
                at: 1,
            };
            if room < len {
                let status = world.finish(1, request)?;
                let wanted = Status {
                    failure: Some(Failure::truncated(room)),
                    ..seen
                };
                same("the status", status, wanted)?;
                ensure!(
                    !world.gives_cuts || world.bytes(receiving) == &pattern(1, len)[..room],
                    "the bytes that fit are not those that were sent"
                );
            } else {
                world.got(receiving, 0, 1, 1, len)?;
            }
            let again = world
                .pml(1)?
                .irecv_claimed(tagwire_transport::RecvBuffer::EMPTY, message);
            ensure!(again.is_err(), "a message was received twice");
            let last = world.recv(1, ANYONE, ANYTHING, len)?;
            world.got(last, 0, 0, 2, len)?;
            for sent in sends {
                world.finish_well(0, sent)?;
            }
            world.is_idle()?;
        }
    }
    Ok(())
}

/// A claim in the middle of a message's arrival: some bytes are here, some are not.
pub(super) fn claims_take_what_is_still_arriving(factory: &Factory) -> Checked {
    for len in factory.protocols() {
        for turns in 0..12 {
            let mut world = World::pair(factory)?;
            let sent = world.send(0, 1, 1, &pattern(1, len), SendMode::Standard)?;
            for _ in 0..turns {
                world.turn();
            }
            let mut found = None;
            world.until("a claim", |world| {
                found = accepted("claim", world.pml(1)?.claim(ANYONE, ANYTHING, WORLD))?;
                Ok(found.is_some())
            })?;
            let (message, seen) = found.ok_or("nothing was claimed")?;
            same("the length claimed", seen.length, len)?;
            let (buffer, place) = world.lend_room(len);
            let request = accepted(
                "irecv_claimed",
                world.pml(1)?.irecv_claimed(buffer, message),
            )?;
            let receiving = Receiving {
                request,
                buffer: place,
                at: 1,
            };
            world.got(receiving, 0, 1, 1, len)?;
            world.finish_well(0, sent)?;
        }
    }
    Ok(())
}
