//! Core: requests that are started again and again.

use tagwire_base::Rank;

use super::Factory;
use super::rig::{
    ANYONE, Checked, Receiving, WORLD, World, accepted, ensure, from, only, pattern, same, tag,
};
use tagwire_pml::types::{CancelOutcome, SendMode, Status};

pub(super) fn persistent_requests_go_round(factory: &Factory) -> Checked {
    for mode in [
        SendMode::Standard,
        SendMode::Synchronous,
        SendMode::Buffered,
        SendMode::Ready,
    ] {
        for len in factory.protocols() {
            let mut world = World::pair(factory)?;
            let data = world.lend(&pattern(5, len));
            let send = world
                .pml(0)?
                .send_init(data, Rank::new(1), tag(4), WORLD, mode);
            let send = accepted("send_init", send)?;
            let (room, buffer) = world.lend_room(len);
            let recv = world.pml(1)?.recv_init(room, from(0), only(4), WORLD);
            let recv = accepted("recv_init", recv)?;
            let receiving = Receiving {
                request: recv,
                buffer,
                at: 1,
            };
            for (at, request) in [(0, send), (1, recv)] {
                ensure!(
                    world.is_complete(at, request)?,
                    "an inactive request is not complete"
                );
                let end = accepted("take", world.pml(at)?.take(request))?;
                same("the end of an inactive request", end, Some(Status::EMPTY))?;
            }
            for _ in 0..4 {
                accepted("start", world.pml(1)?.start(recv))?;
                ensure!(world.pml(1)?.start(recv).is_err(), "started while active");
                ensure!(world.pml(1)?.free(recv).is_err(), "freed while active");
                accepted("start", world.pml(0)?.start(send))?;
                world.got(receiving, 0, 4, 5, len)?;
                world.finish_well(0, send)?;
            }
            for (at, request) in [(0, send), (1, recv)] {
                accepted("free", world.pml(at)?.free(request))?;
                ensure!(world.pml(at)?.free(request).is_err(), "freed twice");
                ensure!(world.pml(at)?.start(request).is_err(), "started after free");
            }
            world.is_idle()?;
        }
    }
    Ok(())
}

pub(super) fn persistent_receives_can_be_cancelled(factory: &Factory) -> Checked {
    let mut world = World::pair(factory)?;
    let (room, buffer) = world.lend_room(8);
    let recv = world.pml(1)?.recv_init(room, ANYONE, only(4), WORLD);
    let recv = accepted("recv_init", recv)?;
    let receiving = Receiving {
        request: recv,
        buffer,
        at: 1,
    };
    for seed in 0..3 {
        accepted("start", world.pml(1)?.start(recv))?;
        let outcome = accepted("cancel", world.pml(1)?.cancel(recv))?;
        same("the outcome", outcome, CancelOutcome::Cancelled)?;
        ensure!(
            world.finish(1, recv)?.cancelled,
            "the status does not say 'cancelled'"
        );
        accepted("start", world.pml(1)?.start(recv))?;
        world.send(0, 1, 4, &pattern(seed, 8), SendMode::Standard)?;
        world.got(receiving, 0, 4, seed, 8)?;
    }
    accepted("free", world.pml(1)?.free(recv))
}
