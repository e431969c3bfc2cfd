//! Closing, and saying what a rank waits for.

use std::sync::Barrier;
use std::time::Duration;

use tagwire_base::Rank;
use tagwire_transport::{RecvBuffer, SendBuffer};

use super::Factory;
use super::rig::{
    ANYONE, ANYTHING, Checked, WORLD, World, accepted, ensure, from, lend, on_threads, only,
    pattern, recv, same, tag, waiting,
};
use tagwire_pml::error::Error;
use tagwire_pml::guard::ThreadLevel;
use tagwire_pml::types::{Failure, SendMode};

pub(super) fn closing_ends_receives_and_flushes_sends(factory: &Factory) -> Checked {
    for len in factory.protocols() {
        let mut world = World::pair(factory)?;
        let posted = world.recv(0, ANYONE, ANYTHING, 8)?;
        let sent = world.send(0, 1, 1, &pattern(1, len), SendMode::Synchronous)?;
        let buffered = world.send(0, 1, 2, &pattern(2, len), SendMode::Buffered)?;
        world.pml(0)?.begin_close();
        let status = world.finish(0, posted.request)?;
        same("a posted receive", status.failure, Some(Failure::Closed))?;
        world.settle();
        let open = world.pml(0)?.open_work();
        ensure!(
            open.as_ref().is_some_and(|open| !open.is_empty()),
            "nothing is open, and a send of {len} bytes is"
        );
        let pml = world.pml(0)?;
        let refusals = [
            pml.irecv(RecvBuffer::EMPTY, ANYONE, ANYTHING, WORLD).err(),
            pml.isend(
                SendBuffer::EMPTY,
                Rank::new(1),
                tag(0),
                WORLD,
                SendMode::Standard,
            )
            .err(),
            pml.probe(ANYONE, ANYTHING, WORLD).err(),
        ];
        for refusal in refusals {
            ensure!(
                matches!(refusal, Some(Error::Closed)),
                "a call after the close: {refusal:?}"
            );
        }
        for value in 1..3_u32 {
            let receiving = world.recv(1, ANYONE, ANYTHING, len)?;
            world.got(receiving, 0, value, value as usize, len)?;
        }
        world.finish_well(0, sent)?;
        world.finish_well(0, buffered)?;
        world.leave(0)?;
        for _ in 0..3 {
            world.settle();
            world.look_around();
        }
        let after = world.recv(1, from(0), ANYTHING, 8)?;
        let status = world.finish(1, after.request)?;
        same(
            "a receive after the goodbye",
            status.failure,
            Some(Failure::PeerLeft(Rank::new(0))),
        )?;
        world.is_idle()?;
    }
    Ok(())
}

/// The last messages of a rank that leaves at once.
pub(super) fn last_messages_arrive(factory: &Factory) -> Checked {
    for len in factory.protocols() {
        let mut world = World::pair(factory)?;
        for seed in 0..10 {
            world.send(0, 1, 1, &pattern(seed, 40), SendMode::Buffered)?;
        }
        let sent = world.send(0, 1, 1, &pattern(10, len), SendMode::Standard)?;
        let mut receives = Vec::new();
        for seed in 0..11 {
            receives.push((seed, world.recv(1, from(0), only(1), 100_000)?));
        }
        world.leave(0)?;
        for (seed, receiving) in receives {
            world.got(receiving, 0, 1, seed, if seed < 10 { 40 } else { len })?;
        }
        let _ = sent;
    }
    Ok(())
}

pub(super) fn a_close_waits_for_what_is_under_way(factory: &Factory) -> Checked {
    on_threads(factory, 2, ThreadLevel::Multiple, waiting(), |port| {
        let lengths = [5, 5000, 100_000];
        if port.rank() == Rank::new(0) {
            for len in lengths {
                let data = lend(&pattern(len, len));
                let sent = port.isend(data, Rank::new(1), tag(1), WORLD, SendMode::Synchronous);
                accepted("isend", sent)?;
            }
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(30));
        for len in lengths {
            recv(port, from(0), only(1), len, len)?;
        }
        Ok(())
    })
}

pub(super) fn a_close_past_its_deadline_names_what_is_open(factory: &Factory) -> Checked {
    let barrier = Barrier::new(2);
    on_threads(factory, 2, ThreadLevel::Single, waiting(), |port| {
        if port.rank() == Rank::new(1) {
            barrier.wait();
            return Ok(());
        }
        let data = lend(&pattern(1, 8));
        let sent = port.isend(data, Rank::new(1), tag(1), WORLD, SendMode::Synchronous);
        let outcome = accepted("isend", sent).map(|_| port.close(Duration::from_millis(50)));
        barrier.wait();
        match outcome? {
            Err(Error::CloseDeadline { open, .. }) if open.contains("1 send") => Ok(()),
            other => Err(format!("a close with an open send: {other:?}")),
        }
    })
}

pub(super) fn a_dump_names_what_is_waited_for(factory: &Factory) -> Checked {
    let mut world = World::pair(factory)?;
    world.meet()?;
    let receiving = world.recv(1, from(0), only(47_110), 8)?;
    let sent = world.send(0, 1, 8150, &pattern(1, 8), SendMode::Synchronous)?;
    world.settle();
    for (rank, wanted) in [(0, vec!["8150"]), (1, vec!["47110", "8150"])] {
        let mut text = String::new();
        world
            .pml(rank)?
            .dump(&tagwire_pml::ContextNames::default(), &mut text)
            .map_err(|_| "a string refused the dump")?;
        let name = world.pml(rank)?.name();
        for word in wanted.into_iter().chain([name]) {
            ensure!(
                text.contains(word),
                "'{word}' is not in the dump of rank {rank}:\n{text}"
            );
        }
    }
    let other = world.recv(1, ANYONE, only(8150), 8)?;
    world.got(other, 0, 8150, 1, 8)?;
    world.finish_well(0, sent)?;
    world.send(0, 1, 47_110, &pattern(2, 8), SendMode::Standard)?;
    world.got(receiving, 0, 47_110, 2, 8)?;
    let mut text = String::new();
    world
        .pml(1)?
        .dump(&tagwire_pml::ContextNames::default(), &mut text)
        .map_err(|_| "a string refused the dump")?;
    ensure!(
        !text.contains("47110") && !text.contains("8150"),
        "what is done is still in the dump:\n{text}"
    );
    Ok(())
}
