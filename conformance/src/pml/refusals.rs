//! Core: what is refused, and how.

use tagwire_base::{ContextId, Rank};
use tagwire_transport::{RecvBuffer, SendBuffer};

use super::Factory;
use super::rig::{
    ANYONE, ANYTHING, Checked, WORLD, World, accepted, ensure, from, pattern, same, tag,
};
use tagwire_pml::error::Error;
use tagwire_pml::types::SendMode;

pub(super) fn stale_requests_are_refused(factory: &Factory) -> Checked {
    let mut world = World::pair(factory)?;
    let mut stale = Vec::new();
    for seed in 0..50 {
        let receiving = world.recv(1, ANYONE, ANYTHING, 8)?;
        let sent = world.send(0, 1, 1, &pattern(seed, 8), SendMode::Synchronous)?;
        world.got(receiving, 0, 1, seed, 8)?;
        world.finish_well(0, sent)?;
        stale.push((1, receiving.request));
        stale.push((0, sent));
    }
    // Their slots are in use again, and still the old names do not work.
    let receiving = world.recv(1, ANYONE, ANYTHING, 8)?;
    for (at, request) in stale {
        let pml = world.pml(at)?;
        ensure!(
            matches!(pml.take(request), Err(Error::StaleRequest)),
            "the end of a request was taken twice"
        );
        ensure!(pml.start(request).is_err(), "a stale request was started");
        ensure!(pml.free(request).is_err(), "a stale request was freed");
        ensure!(
            pml.cancel(request).is_err(),
            "a stale request was cancelled"
        );
    }
    world.send(0, 1, 1, &pattern(99, 8), SendMode::Standard)?;
    world.got(receiving, 0, 1, 99, 8)
}

pub(super) fn ordinary_requests_cannot_be_started(factory: &Factory) -> Checked {
    let mut world = World::pair(factory)?;
    let receiving = world.recv(1, ANYONE, ANYTHING, 8)?;
    let pml = world.pml(1)?;
    for outcome in [pml.start(receiving.request), pml.free(receiving.request)] {
        ensure!(
            matches!(outcome, Err(Error::WrongRequest(_))),
            "an ordinary request was started or freed: {outcome:?}"
        );
    }
    world.send(0, 1, 1, &pattern(1, 8), SendMode::Standard)?;
    world.got(receiving, 0, 1, 1, 8)
}

pub(super) fn ranks_and_contexts_that_are_not_there_are_refused(factory: &Factory) -> Checked {
    let mut world = World::pair(factory)?;
    let pml = world.pml(0)?;
    same("the rank", pml.rank(), Rank::new(0))?;
    same("the size", pml.size(), 2)?;
    for stranger in [2, 1000, Rank::MAX] {
        let rank = Rank::new(stranger);
        let standard = SendMode::Standard;
        let refusals = [
            pml.isend(SendBuffer::EMPTY, rank, tag(0), WORLD, standard)
                .err(),
            pml.send_init(SendBuffer::EMPTY, rank, tag(0), WORLD, standard)
                .err(),
            pml.irecv(RecvBuffer::EMPTY, from(stranger), ANYTHING, WORLD)
                .err(),
            pml.recv_init(RecvBuffer::EMPTY, from(stranger), ANYTHING, WORLD)
                .err(),
            pml.probe(from(stranger), ANYTHING, WORLD).err(),
            pml.claim(from(stranger), ANYTHING, WORLD).err(),
        ];
        for refusal in refusals {
            ensure!(
                matches!(refusal, Some(Error::NoSuchRank { size: 2, .. })),
                "a call that names rank {stranger}: {refusal:?}"
            );
        }
    }
    let nowhere = ContextId::new(77);
    let refusals = [
        pml.irecv(RecvBuffer::EMPTY, ANYONE, ANYTHING, nowhere)
            .err(),
        pml.probe(ANYONE, ANYTHING, nowhere).err(),
    ];
    for refusal in refusals {
        ensure!(
            matches!(refusal, Some(Error::NoSuchContext(77))),
            "a call in a context that is not there: {refusal:?}"
        );
    }
    // Nothing was started by all this.
    world.is_idle()?;
    accepted("probe", world.pml(0)?.probe(ANYONE, ANYTHING, WORLD)).map(drop)
}
