//! Core: messages of every length, by every protocol and mode.

use tagwire_base::Rank;

use super::rig::{ANYONE, ANYTHING, Checked, World, ensure, from, only, pattern, same, tag};
use super::{Budget, Factory, Setup};
use tagwire_pml::error::Error;
use tagwire_pml::types::{Failure, RequestId, SendMode, Status};

const MODES: [SendMode; 4] = [
    SendMode::Standard,
    SendMode::Synchronous,
    SendMode::Buffered,
    SendMode::Ready,
];

pub(super) fn every_length_arrives(factory: &Factory) -> Checked {
    let mut world = World::pair(factory)?;
    let mut seed = 0;
    for len in factory.lengths() {
        for mode in MODES {
            for posted_first in [true, false] {
                if mode == SendMode::Ready && !posted_first {
                    continue;
                }
                seed += 1;
                let early = if posted_first {
                    Some(world.recv(1, from(0), only(7), len + 3)?)
                } else {
                    None
                };
                let sent = world.send(0, 1, 7, &pattern(seed, len), mode)?;
                world.settle();
                let receiving = match early {
                    Some(receiving) => receiving,
                    None => world.recv(1, from(0), ANYTHING, len + 3)?,
                };
                let words =
                    |error| format!("{len} bytes, {mode:?}, posted first {posted_first}: {error}");
                world.got(receiving, 0, 7, seed, len).map_err(words)?;
                let status = world.finish_well(0, sent).map_err(words)?;
                if sent != RequestId::COMPLETE {
                    same("a send's peer", status.source, Rank::new(1))?;
                    same("a send's length", status.length, len)?;
                }
            }
        }
    }
    world.is_idle()
}

/// Ready mode (MPI-5.0, section 3.4): with the receives posted, whatever they ask for, each message
/// goes to the one it would go to in any other mode, and keeps its place among those.
pub(super) fn ready_sends_go_to_posted_receives(factory: &Factory) -> Checked {
    let mut world = World::pair(factory)?;
    for len in factory.lengths() {
        let wanted = [
            (from(0), only(1)),
            (ANYONE, only(2)),
            (from(0), ANYTHING),
            (ANYONE, ANYTHING),
        ];
        let mut posted = Vec::new();
        for (source, value) in wanted {
            posted.push(world.recv(1, source, value, len + 3)?);
        }
        // The first two meet their tags; the wildcards take the rest in order of posting.
        let tags = [2, 1, 1, 3];
        let modes = [
            SendMode::Ready,
            SendMode::Ready,
            SendMode::Standard,
            SendMode::Ready,
        ];
        let mut sent = Vec::new();
        for (seed, (value, mode)) in tags.into_iter().zip(modes).enumerate() {
            sent.push(world.send(0, 1, value, &pattern(seed, len), mode)?);
        }
        for (receiving, (value, seed)) in posted.into_iter().zip([(1, 1), (2, 0), (1, 2), (3, 3)]) {
            world.got(receiving, 0, value, seed, len)?;
        }
        for request in sent {
            world.finish_well(0, request)?;
        }
    }
    world.is_idle()
}

pub(super) fn messages_to_oneself_arrive(factory: &Factory) -> Checked {
    let mut world = World::open(factory, 1, &Setup::default())?;
    for (seed, len) in factory.lengths().into_iter().enumerate() {
        let receiving = world.recv(0, ANYONE, ANYTHING, len)?;
        let sent = world.send(0, 0, 3, &pattern(seed, len), SendMode::Synchronous)?;
        world.got(receiving, 0, 3, seed, len)?;
        world.finish_well(0, sent)?;
        let sent = world.send(0, 0, 4, &pattern(seed, len), SendMode::Standard)?;
        world.settle();
        let receiving = world.recv(0, from(0), only(4), len)?;
        world.got(receiving, 0, 4, seed, len)?;
        world.finish_well(0, sent)?;
    }
    world.is_idle()
}

pub(super) fn synchronous_sends_wait_for_the_match(factory: &Factory) -> Checked {
    for len in factory.protocols() {
        let mut world = World::pair(factory)?;
        let sent = world.send(0, 1, 1, &pattern(1, len), SendMode::Synchronous)?;
        world.settle();
        ensure!(
            !world.is_complete(0, sent)?,
            "a synchronous send of {len} bytes completed unmatched"
        );
        let other = world.recv(1, ANYONE, only(2), len)?;
        world.settle();
        ensure!(
            !world.is_complete(0, sent)?,
            "a receive for another tag completed a synchronous send"
        );
        let receiving = world.recv(1, ANYONE, ANYTHING, len)?;
        world.got(receiving, 0, 1, 1, len)?;
        world.finish_well(0, sent)?;
        same(
            "the outcome of a cancel",
            world.pml(1)?.cancel(other.request).ok(),
            Some(tagwire_pml::types::CancelOutcome::Cancelled),
        )?;
        world.finish(1, other.request)?;
        world.is_idle()?;
    }
    Ok(())
}

pub(super) fn truncation_concerns_one_receive(factory: &Factory) -> Checked {
    for len in factory.protocols() {
        for room in [0, 1, len / 2, len - 1] {
            for (posted_first, mode) in [
                (true, SendMode::Standard),
                (false, SendMode::Standard),
                (true, SendMode::Synchronous),
                (false, SendMode::Synchronous),
            ] {
                let mut world = World::pair(factory)?;
                let early = if posted_first {
                    Some(world.recv(0, ANYONE, ANYTHING, room)?)
                } else {
                    None
                };
                let sent = world.send(1, 0, 1, &pattern(3, len), mode)?;
                let after = world.send(1, 0, 2, &pattern(4, 4), SendMode::Standard)?;
                world.settle();
                let receiving = match early {
                    Some(receiving) => receiving,
                    None => world.recv(0, ANYONE, ANYTHING, room)?,
                };
                let status = world.finish(0, receiving.request)?;
                // Rank 1 sends, since a status that nobody filled in has rank 0.
                let wanted = Status {
                    source: Rank::new(1),
                    tag: tag(1),
                    length: len,
                    cancelled: false,
                    failure: Some(Failure::truncated(room)),
                };
                same("the status", status, wanted)?;
                ensure!(
                    !world.gives_cuts || world.bytes(receiving) == &pattern(3, len)[..room],
                    "the first {room} of {len} bytes are not those that were sent"
                );
                world.finish_well(1, sent)?;
                let next = world.recv(0, ANYONE, ANYTHING, 4)?;
                world.got(next, 1, 2, 4, 4)?;
                world.finish_well(1, after)?;
                world.is_idle()?;
            }
        }
    }
    Ok(())
}

pub(super) fn a_completed_send_has_its_buffer_back(factory: &Factory) -> Checked {
    for len in factory.protocols() {
        for mode in [SendMode::Standard, SendMode::Buffered] {
            let mut world = World::pair(factory)?;
            let sent = world.send(0, 1, 1, &pattern(1, len), mode)?;
            if mode == SendMode::Buffered {
                same("a buffered send", sent, RequestId::COMPLETE)?;
            }
            world.settle();
            let complete = world.is_complete(0, sent)?;
            if complete {
                world.scribble();
            }
            let receiving = world.recv(1, ANYONE, ANYTHING, len)?;
            world.got(receiving, 0, 1, 1, len)?;
            world.finish_well(0, sent)?;
        }
    }
    Ok(())
}

pub(super) fn buffered_sends_have_a_budget(factory: &Factory) -> Checked {
    let setup = Setup {
        budget: Some(Budget {
            payload: 1 << 20,
            headers: 1 << 20,
            buffered: 250_000,
        }),
    };
    let mut world = World::open(factory, 2, &setup)?;
    for _ in 0..3 {
        for seed in 0..2 {
            world.send(0, 1, 1, &pattern(seed, 100_000), SendMode::Buffered)?;
        }
        let data = world.lend(&pattern(2, 100_000));
        let refused = world.pml(0)?.isend(
            data,
            Rank::new(1),
            tag(1),
            super::rig::WORLD,
            SendMode::Buffered,
        );
        match refused {
            Err(Error::BufferFull { wanted, limit, .. }) => {
                same(
                    "what was wanted and the limit",
                    (wanted, limit),
                    (100_000, 250_000),
                )?;
            }
            other => return Err(format!("a buffered send past the budget: {other:?}")),
        }
        for seed in 0..2 {
            let receiving = world.recv(1, ANYONE, ANYTHING, 100_000)?;
            world.got(receiving, 0, 1, seed, 100_000)?;
        }
        world.is_idle()?;
    }
    Ok(())
}

pub(super) fn both_ways_at_once(factory: &Factory) -> Checked {
    for len in factory.protocols() {
        let mut world = World::pair(factory)?;
        let mut receives = Vec::new();
        let mut sends = Vec::new();
        for at in 0..2 {
            for seed in 0..20 {
                sends.push((
                    at,
                    world.send(
                        at,
                        1 - at as u32,
                        5,
                        &pattern(seed, len),
                        SendMode::Standard,
                    )?,
                ));
            }
        }
        for at in 0..2 {
            for seed in 0..20 {
                receives.push((seed, world.recv(at, ANYONE, only(5), len)?));
            }
        }
        for (seed, receiving) in receives {
            world.got(receiving, 1 - receiving.at as u32, 5, seed, len)?;
        }
        for (at, sent) in sends {
            world.finish_well(at, sent)?;
        }
        world.is_idle()?;
    }
    Ok(())
}

pub(super) fn ten_thousand_requests_are_open_at_once(factory: &Factory) -> Checked {
    const COUNT: usize = 10_000;
    let mut world = World::pair(factory)?;
    let mut receives = Vec::with_capacity(COUNT);
    for _ in 0..COUNT / 2 {
        receives.push(world.recv(1, from(0), ANYTHING, 16)?);
    }
    let mut sends = Vec::with_capacity(COUNT);
    for seed in 0..COUNT {
        sends.push(world.send(0, 1, seed as u32, &pattern(seed, 16), SendMode::Synchronous)?);
    }
    world.settle();
    for _ in COUNT / 2..COUNT {
        receives.push(world.recv(1, from(0), ANYTHING, 16)?);
    }
    for (seed, receiving) in receives.into_iter().enumerate() {
        world.got(receiving, 0, seed as u32, seed, 16)?;
    }
    for sent in sends {
        world.finish_well(0, sent)?;
    }
    world.is_idle()
}

pub(super) fn statuses_are_full(factory: &Factory) -> Checked {
    let mut world = World::open(factory, 3, &Setup::default())?;
    for (sender, value, len, room) in [
        (0, 4711, 12, 17),
        (2, 0, 0, 5),
        (0, 0x7fff_ffff, 20_000, 20_005),
        (2, 12, 13, 12),
        (2, 13, 20_000, 9),
    ] {
        let receiving = world.recv(1, ANYONE, ANYTHING, room)?;
        let sent = world.send(sender, 1, value, &pattern(1, len), SendMode::Synchronous)?;
        let status = world.finish(1, receiving.request)?;
        let wanted = Status {
            source: Rank::new(sender as u32),
            tag: tag(value),
            length: len,
            cancelled: false,
            failure: (len > room).then(|| Failure::truncated(room)),
        };
        same("a receive's status", status, wanted)?;
        let status = world.finish(sender, sent)?;
        same(
            "a send's failure",
            (status.failure, status.cancelled),
            (None, false),
        )?;
    }
    for _ in 0..2 {
        let empty = world.pml(0)?.take(RequestId::COMPLETE);
        same(
            "the end of what was complete",
            empty.ok(),
            Some(Some(Status::EMPTY)),
        )?;
    }
    Ok(())
}
