//! Core: taking receives back.

use super::Factory;
use super::rig::{ANYONE, ANYTHING, Checked, World, accepted, ensure, from, only, pattern, same};
use tagwire_pml::error::Error;
use tagwire_pml::types::{CancelOutcome, SendMode};

pub(super) fn cancelled_receives_take_nothing(factory: &Factory) -> Checked {
    let mut world = World::pair(factory)?;
    let first = world.recv(1, ANYONE, ANYTHING, 8)?;
    let second = world.recv(1, ANYONE, ANYTHING, 8)?;
    let outcome = accepted("cancel", world.pml(1)?.cancel(first.request))?;
    same("the outcome", outcome, CancelOutcome::Cancelled)?;
    ensure!(
        world.is_complete(1, first.request)?,
        "a cancelled receive does not complete"
    );
    let sent = world.send(0, 1, 1, &pattern(1, 8), SendMode::Synchronous)?;
    world.got(second, 0, 1, 1, 8)?;
    let status = world.finish(1, first.request)?;
    ensure!(status.cancelled, "the status does not say 'cancelled'");
    same("the failure", status.failure, None)?;
    ensure!(
        world
            .bytes(first)
            .iter()
            .all(|byte| *byte == super::rig::UNTOUCHED),
        "a cancelled receive's buffer was written"
    );
    world.finish_well(0, sent)?;
    world.is_idle()
}

/// A cancel at every moment of a delivery: either the message is in the receive, or it is there
/// for the next.
pub(super) fn a_cancel_has_exactly_one_outcome(factory: &Factory) -> Checked {
    const LAST: usize = 16;
    let mut seen = [0; 2];
    for len in factory.protocols() {
        for turns in 0..=LAST {
            let mut world = World::pair(factory)?;
            let receiving = world.recv(1, from(0), only(1), len)?;
            // The first cancel comes before the message: a layer may deliver as it is sent.
            let early = if turns == 0 {
                Some(world.pml(1)?.cancel(receiving.request))
            } else {
                None
            };
            let sent = world.send(0, 1, 1, &pattern(1, len), SendMode::Standard)?;
            for _ in 1..turns {
                world.turn();
            }
            // The last cancel comes after the message: to connect may take more turns than that.
            if turns == LAST {
                world.settle();
            }
            let outcome = match early {
                Some(outcome) => outcome,
                None => world.pml(1)?.cancel(receiving.request),
            };
            match accepted("cancel", outcome)? {
                CancelOutcome::Cancelled => {
                    seen[0] += 1;
                    let status = world.finish(1, receiving.request)?;
                    ensure!(status.cancelled, "cancelled, and the status denies it");
                    let next = world.recv(1, ANYONE, ANYTHING, len)?;
                    world.got(next, 0, 1, 1, len)?;
                }
                CancelOutcome::AlreadyMatched => {
                    seen[1] += 1;
                    world.got(receiving, 0, 1, 1, len)?;
                }
            }
            world.finish_well(0, sent)?;
            world.is_idle()?;
        }
    }
    ensure!(
        seen[0] > 0 && seen[1] > 0,
        "only one outcome was ever seen: {seen:?}"
    );
    Ok(())
}

pub(super) fn what_cannot_be_cancelled_is_refused(factory: &Factory) -> Checked {
    let mut world = World::pair(factory)?;
    world.meet()?;
    let sent = world.send(0, 1, 1, &pattern(1, 8), SendMode::Synchronous)?;
    ensure!(
        matches!(world.pml(0)?.cancel(sent), Err(Error::WrongRequest(_))),
        "a send was cancelled"
    );
    let receiving = world.recv(1, ANYONE, ANYTHING, 8)?;
    world.settle();
    same(
        "the outcome after the end",
        world.pml(1)?.cancel(receiving.request).ok(),
        Some(CancelOutcome::AlreadyMatched),
    )?;
    world.got(receiving, 0, 1, 1, 8)?;
    ensure!(
        matches!(
            world.pml(1)?.cancel(receiving.request),
            Err(Error::StaleRequest)
        ),
        "a stale request was cancelled"
    );
    world.finish_well(0, sent).map(drop)
}
