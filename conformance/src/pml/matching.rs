//! Core: which receive takes which message.

use tagwire_base::{Tag, TagSelector};

use super::rig::{
    ANYONE, ANYTHING, Checked, WORLD, World, accepted, ensure, from, only, pattern, same, tag,
};
use super::{Factory, Setup};
use tagwire_pml::types::SendMode;
use tagwire_transport::RecvBuffer;

pub(super) fn order_is_kept_per_pair(factory: &Factory) -> Checked {
    const COUNT: usize = 120;
    let mut lengths = factory.lengths();
    lengths.rotate_left(3);
    let len = |number: usize| lengths[number % lengths.len()];
    let most = lengths.iter().copied().max().unwrap_or(0);
    let mode = |number: usize| match number % 5 {
        0 => SendMode::Synchronous,
        1 => SendMode::Buffered,
        _ => SendMode::Standard,
    };
    for posted in [0, COUNT / 2, COUNT] {
        let mut world = World::pair(factory)?;
        let mut receives = Vec::new();
        for _ in 0..posted {
            receives.push(world.recv(1, from(0), only(1), most)?);
        }
        let mut sends = Vec::new();
        for number in 0..COUNT {
            let data = pattern(number, len(number));
            sends.push(world.send(0, 1, 1, &data, mode(number))?);
            if number % 7 == 0 {
                world.turn();
            }
        }
        for _ in posted..COUNT {
            receives.push(world.recv(1, ANYONE, only(1), most)?);
            world.turn();
        }
        for (number, receiving) in receives.into_iter().enumerate() {
            world
                .got(receiving, 0, 1, number, len(number))
                .map_err(|error| format!("message {number}: {error}"))?;
        }
        for sent in sends {
            world.finish_well(0, sent)?;
        }
    }
    Ok(())
}

pub(super) fn tags_are_received_in_any_order(factory: &Factory) -> Checked {
    let mut world = World::pair(factory)?;
    let lengths = factory.protocols();
    let len = |number: usize| lengths[number % lengths.len()];
    let mut sends = Vec::new();
    for number in 0..60 {
        sends.push(world.send(
            0,
            1,
            number as u32 % 20,
            &pattern(number, len(number)),
            SendMode::Standard,
        )?);
    }
    for value in (0..20_u32).rev() {
        for round in 0..3 {
            let number = round * 20 + value as usize;
            let receiving = world.recv(1, from(0), only(value), 100_000)?;
            world.got(receiving, 0, value, number, len(number))?;
        }
    }
    for sent in sends {
        world.finish_well(0, sent)?;
    }
    world.is_idle()
}

pub(super) fn the_earliest_posted_receive_wins(factory: &Factory) -> Checked {
    let mut world = World::open(factory, 3, &Setup::default())?;
    // Each in the order of posting, with the message of the four that it has to get.
    let posted = [
        (ANYONE, only(9), 3),
        (from(0), ANYTHING, 0),
        (ANYONE, only(1), 1),
        (from(0), only(1), 2),
    ];
    let mut receives = Vec::new();
    for (source, value, number) in posted {
        receives.push((world.recv(1, source, value, 100)?, number));
    }
    for (number, value) in [1_u32, 1, 1, 9].into_iter().enumerate() {
        world.send(0, 1, value, &pattern(number, 50), SendMode::Standard)?;
        world.settle();
    }
    for (receiving, number) in receives {
        let value = if number == 3 { 9 } else { 1 };
        world.got(receiving, 0, value, number, 50)?;
    }
    Ok(())
}

pub(super) fn the_earliest_message_wins(factory: &Factory) -> Checked {
    for len in factory.protocols() {
        let mut world = World::open(factory, 3, &Setup::default())?;
        world.meet()?;
        let mut sends = Vec::new();
        for (number, (sender, value)) in [(0, 5), (2, 6), (0, 6), (2, 5)].into_iter().enumerate() {
            let data = pattern(number, len);
            sends.push((
                sender,
                world.send(sender, 1, value, &data, SendMode::Standard)?,
            ));
            world.settle();
        }
        for (source, value, number, wanted) in [
            (ANYONE, only(6), 1, (2, 6)),
            (from(0), ANYTHING, 0, (0, 5)),
            (ANYONE, ANYTHING, 2, (0, 6)),
            (ANYONE, ANYTHING, 3, (2, 5)),
        ] {
            let receiving = world.recv(1, source, value, len)?;
            world.got(receiving, wanted.0, wanted.1, number, len)?;
        }
        for (sender, sent) in sends {
            world.finish_well(sender, sent)?;
        }
    }
    Ok(())
}

pub(super) fn wildcards_take_from_everyone(factory: &Factory) -> Checked {
    let size = factory.most_ranks.min(8);
    let mut world = World::open(factory, size, &Setup::default())?;
    let mut receives = Vec::new();
    for _ in 0..size * 4 {
        receives.push(world.recv(0, ANYONE, ANYTHING, 64)?);
    }
    for round in 0..4 {
        for sender in 0..size {
            let data = pattern((round * size + sender) as usize, 33);
            world.send(sender as usize, 0, round, &data, SendMode::Standard)?;
        }
        world.turn();
    }
    let mut next = vec![0; size as usize];
    for receiving in receives {
        let status = world.finish_well(0, receiving.request)?;
        let sender = status.source.as_u32();
        let round = next[sender as usize];
        next[sender as usize] += 1;
        same("the tag", status.tag, tag(round))?;
        ensure!(
            world.bytes(receiving)[..33] == pattern((round * size + sender) as usize, 33),
            "the bytes are of another message than the status"
        );
    }
    same("messages of each", next, vec![4; size as usize])
}

pub(super) fn any_tag_leaves_internal_tags_alone(factory: &Factory) -> Checked {
    for len in factory.protocols() {
        for posted_first in [true, false] {
            let mut world = World::pair(factory)?;
            let inside = Tag::internal(5);
            let early = if posted_first {
                Some(world.recv(1, ANYONE, ANYTHING, len)?)
            } else {
                None
            };
            let hidden =
                world.send_in(0, 1, inside, WORLD, &pattern(1, len), SendMode::Standard)?;
            world.settle();
            let any = match early {
                Some(receiving) => receiving,
                None => {
                    let seen = accepted("probe", world.pml(1)?.probe(ANYONE, ANYTHING, WORLD))?;
                    same("what an any-tag probe sees", seen, None)?;
                    world.recv(1, ANYONE, ANYTHING, len)?
                }
            };
            world.settle();
            ensure!(
                !world.is_complete(1, any.request)?,
                "an any-tag receive took an internal tag"
            );
            let sent = world.send(0, 1, 8, &pattern(2, len), SendMode::Standard)?;
            world.got(any, 0, 8, 2, len)?;
            let receiving = world.recv(1, from(0), TagSelector::exact(inside), len)?;
            let status = world.finish_well(1, receiving.request)?;
            same("the tag", status.tag, inside)?;
            ensure!(
                world.bytes(receiving) == pattern(1, len),
                "the bytes are not those that were sent"
            );
            world.finish_well(0, sent)?;
            world.finish_well(0, hidden)?;
        }
    }
    Ok(())
}

pub(super) fn contexts_keep_apart(factory: &Factory) -> Checked {
    let mut world = World::pair(factory)?;
    // Ids of two ranks that differ.
    accepted("open_context", world.pml(1)?.open_context())?;
    let other = accepted("open_context", world.pml(1)?.open_context())?;
    for len in factory.protocols() {
        let first = world.send_in(0, 1, tag(1), other, &pattern(1, len), SendMode::Standard)?;
        let second = world.send_in(0, 1, tag(1), WORLD, &pattern(2, len), SendMode::Standard)?;
        world.settle();
        let receiving = world.recv_in(1, ANYONE, ANYTHING, WORLD, len)?;
        world.got(receiving, 0, 1, 2, len)?;
        let receiving = world.recv_in(1, ANYONE, ANYTHING, other, len)?;
        world.got(receiving, 0, 1, 1, len)?;
        world.finish_well(0, first)?;
        world.finish_well(0, second)?;
        // And the receives first.
        let outer = world.recv_in(1, ANYONE, ANYTHING, WORLD, len)?;
        let inner = world.recv_in(1, ANYONE, ANYTHING, other, len)?;
        let sent = world.send_in(0, 1, tag(1), other, &pattern(3, len), SendMode::Standard)?;
        world.got(inner, 0, 1, 3, len)?;
        ensure!(
            !world.is_complete(1, outer.request)?,
            "a receive took a message of another context"
        );
        world.finish_well(0, sent)?;
        let sent = world.send_in(0, 1, tag(1), WORLD, &pattern(4, len), SendMode::Standard)?;
        world.got(outer, 0, 1, 4, len)?;
        world.finish_well(0, sent)?;
    }
    Ok(())
}

pub(super) fn contexts_are_opened_and_closed(factory: &Factory) -> Checked {
    let mut world = World::pair(factory)?;
    let pml = world.pml(0)?;
    let first = accepted("open_context", pml.open_context())?;
    let second = accepted("open_context", pml.open_context())?;
    ensure!(
        first != second && first != WORLD && second != WORLD,
        "contexts are not told apart"
    );
    accepted("close_context", pml.close_context(first))?;
    ensure!(
        pml.close_context(first).is_err(),
        "a context was closed twice"
    );
    ensure!(
        pml.probe(ANYONE, ANYTHING, first).is_err(),
        "a closed context can be used"
    );
    let room = RecvBuffer::EMPTY;
    let persistent = pml.recv_init(room, ANYONE, ANYTHING, second);
    let persistent = accepted("recv_init", persistent)?;
    accepted("close_context", pml.close_context(second))?;
    ensure!(
        pml.start(persistent).is_err(),
        "a receive in a closed context was started"
    );
    accepted("free", pml.free(persistent))?;
    ensure!(pml.close_context(WORLD).is_err(), "the world was closed");
    Ok(())
}

/// What is posted in a context that is closed completes, and what nobody has received is dropped.
pub(super) fn contexts_are_closed_at_any_time(factory: &Factory) -> Checked {
    let mut world = World::pair(factory)?;
    for len in factory.protocols() {
        let context = accepted("open_context", world.pml(1)?.open_context())?;
        let receiving = world.recv_in(1, ANYONE, ANYTHING, context, len)?;
        accepted("close_context", world.pml(1)?.close_context(context))?;
        let sent = world.send_in(0, 1, tag(1), context, &pattern(1, len), SendMode::Standard)?;
        world.got(receiving, 0, 1, 1, len)?;
        world.finish_well(0, sent)?;
        // Messages without a receive: their senders do not wait for ever.
        let context = accepted("open_context", world.pml(1)?.open_context())?;
        let mut sent: Vec<_> = [SendMode::Standard, SendMode::Synchronous]
            .into_iter()
            .map(|mode| world.send_in(0, 1, tag(1), context, &pattern(2, len), mode))
            .collect::<Checked<_>>()?;
        for number in [0, Tag::COLLECTIVES] {
            let tag = Tag::internal(number);
            sent.push(world.send_in(0, 1, tag, context, &pattern(2, len), SendMode::Standard)?);
        }
        world.settle();
        accepted("close_context", world.pml(1)?.close_context(context))?;
        for sent in sent {
            world.finish_well(0, sent)?;
        }
        let receiving = world.recv_in(1, ANYONE, ANYTHING, WORLD, len)?;
        let sent = world.send_in(0, 1, tag(1), WORLD, &pattern(3, len), SendMode::Standard)?;
        world.got(receiving, 0, 1, 3, len)?;
        world.finish_well(0, sent)?;
    }
    Ok(())
}

/// After a failure nobody receives what collectives send: those who have not heard of it do not wait for ever. Other messages stay.
pub(super) fn messages_of_broken_collectives_are_dropped(factory: &Factory) -> Checked {
    let mut world = World::pair(factory)?;
    for len in factory.protocols() {
        let context = accepted("open_context", world.pml(1)?.open_context())?;
        let data = pattern(1, len);
        let send = |world: &mut World, tag: Tag| {
            world.send_in(0, 1, tag, context, &data, SendMode::Standard)
        };
        let early = send(&mut world, Tag::internal(3))?;
        world.settle();
        world.pml(1)?.break_collectives(context);
        let late = send(&mut world, Tag::internal(Tag::COLLECTIVES - 1))?;
        world.finish_well(0, early)?;
        world.finish_well(0, late)?;
        for tag in [Tag::internal(Tag::COLLECTIVES), tag(1)] {
            let sent = send(&mut world, tag)?;
            let receiving = world.recv_in(1, from(0), TagSelector::exact(tag), context, len)?;
            let status = world.finish(1, receiving.request)?;
            same("length", status.length, len)?;
            world.finish_well(0, sent)?;
        }
        accepted("close_context", world.pml(1)?.close_context(context))?;
    }
    Ok(())
}

/// An id comes again, after others, and with nothing in it.
pub(super) fn contexts_come_again_empty(factory: &Factory) -> Checked {
    let mut world = World::pair(factory)?;
    let first = accepted("open_context", world.pml(1)?.open_context())?;
    accepted("close_context", world.pml(1)?.close_context(first))?;
    // From a wrong program.
    let late = world.send_in(0, 1, tag(1), first, &pattern(1, 8), SendMode::Standard)?;
    world.settle();
    for _ in 0..1000 {
        let pml = world.pml(1)?;
        let context = accepted("open_context", pml.open_context())?;
        let left = accepted("probe", pml.probe(ANYONE, ANYTHING, context))?;
        same("what is in a new context", left, None)?;
        accepted("close_context", pml.close_context(context))?;
        if context == first {
            return world.finish_well(0, late).map(drop);
        }
    }
    Err("the id never came again".to_owned())
}
