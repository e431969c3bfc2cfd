//! Failure: a dead peer fails what involves it, and nothing else.

use std::sync::{Arc, mpsc};

use tagwire_base::Rank;

use super::random::rounds;
use super::rig::{
    ANYONE, ANYTHING, Checked, Room, WORLD, World, accepted, ensure, from, lend, only, pattern,
    same, tag, waiting,
};
use super::{Factory, Job, Setup};
use tagwire_pml::error::Error;
use tagwire_pml::guard::ThreadLevel;
use tagwire_pml::messenger::Messenger;
use tagwire_pml::types::{Failure, SendMode};

const DEAD: Rank = Rank::new(2);
const FAILED: Option<Failure> = Some(Failure::PeerFailed(DEAD));

/// Until the living know.
fn find_out(world: &mut World) -> Checked {
    world.until("the news of a death", |world| {
        world.look_around();
        let mut all = true;
        for rank in 0..world.size() {
            if world.is_alive(rank) {
                all &= world.pml(rank)?.failed() == [DEAD];
            }
        }
        Ok(all)
    })?;
    for _ in 0..3 {
        world.settle();
        world.look_around();
    }
    Ok(())
}

pub(super) fn a_death_fails_what_involves_it(factory: &Factory) -> Checked {
    let mut world = World::open(factory, 3, &Setup::default())?;
    world.acquaint()?;
    let last_words = world.send(2, 0, 5, &pattern(1, 10), SendMode::Standard)?;
    world.finish_well(2, last_words)?;
    world.settle();
    let mut doomed = Vec::new();
    for len in factory.protocols() {
        doomed.push(world.recv(0, from(2), only(1), len)?.request);
        doomed.push(world.send(0, 2, 9, &pattern(1, len), SendMode::Synchronous)?);
    }
    doomed.push(world.send(0, 2, 9, &pattern(1, 200_000), SendMode::Standard)?);
    doomed.push(world.recv(0, ANYONE, only(2), 8)?.request);
    let living = world.recv(0, from(1), only(3), 8)?;
    world.settle();
    world.kill(2);
    find_out(&mut world)?;
    for request in doomed {
        same("how it ends", world.finish(0, request)?.failure, FAILED)?;
    }
    // What it said before is still there.
    let receiving = world.recv(0, from(2), only(5), 10)?;
    world.got(receiving, 2, 5, 1, 10)?;
    // What is new fails at once; the living go on.
    let receiving = world.recv(0, from(2), ANYTHING, 8)?;
    same(
        "a new receive",
        world.finish(0, receiving.request)?.failure,
        FAILED,
    )?;
    let sent = world.send(0, 2, 0, &pattern(1, 8), SendMode::Standard)?;
    same("a new send", world.finish(0, sent)?.failure, FAILED)?;
    let can = world.pml(0)?.receive_can_happen(from(2));
    ensure!(
        matches!(can, Err(Error::Failed(_))),
        "a receive from the dead could happen"
    );
    accepted(
        "receive_can_happen",
        world.pml(0)?.receive_can_happen(from(1)),
    )?;
    world.send(1, 0, 3, &pattern(4, 8), SendMode::Standard)?;
    world.got(living, 1, 3, 4, 8)?;
    world.is_idle()
}

pub(super) fn any_source_waits_for_acknowledgement(factory: &Factory) -> Checked {
    let mut world = World::open(factory, 3, &Setup::default())?;
    world.acquaint()?;
    // Nobody will ever have the bytes of this.
    world.send(2, 0, 4, &pattern(1, 200_000), SendMode::Standard)?;
    world.settle();
    world.kill(2);
    find_out(&mut world)?;
    let receiving = world.recv(0, ANYONE, only(40), 8)?;
    same(
        "before",
        world.finish(0, receiving.request)?.failure,
        FAILED,
    )?;
    ensure!(
        world.pml(0)?.receive_can_happen(ANYONE).is_err(),
        "any source could happen before the failure was acknowledged"
    );
    same(
        "the failed",
        world.pml(0)?.acknowledge_failures(),
        vec![DEAD],
    )?;
    accepted(
        "receive_can_happen",
        world.pml(0)?.receive_can_happen(ANYONE),
    )?;
    let receiving = world.recv(0, ANYONE, only(4), 8)?;
    // News that is no news, and new calls that name the dead, leave it alone.
    for _ in 0..3 {
        world.settle();
        world.look_around();
    }
    let sent = world.send(0, 2, 0, &pattern(1, 8), SendMode::Standard)?;
    same("a send to the dead", world.finish(0, sent)?.failure, FAILED)?;
    world.send(1, 0, 4, &pattern(2, 8), SendMode::Standard)?;
    world.got(receiving, 1, 4, 2, 8)?;
    world.is_idle()
}

/// The dead rank never was in contact with anyone.
pub(super) fn strangers_may_die(factory: &Factory) -> Checked {
    let mut world = World::open(factory, 3, &Setup::default())?;
    let doomed = [
        world.recv(0, from(2), ANYTHING, 8)?.request,
        world.recv(0, ANYONE, only(6), 8)?.request,
    ];
    let living = world.recv(0, from(1), ANYTHING, 8)?;
    world.kill(2);
    find_out(&mut world)?;
    for request in doomed {
        same("how it ends", world.finish(0, request)?.failure, FAILED)?;
    }
    world.pml(0)?.acknowledge_failures();
    let receiving = world.recv(0, ANYONE, only(7), 8)?;
    // First contact with the dead is no news. It may be refused at once.
    let data = world.lend(&pattern(1, 8));
    let sent = world
        .pml(0)?
        .isend(data, DEAD, tag(1), WORLD, SendMode::Standard);
    if let Ok(sent) = sent {
        same("a send to the dead", world.finish(0, sent)?.failure, FAILED)?;
    }
    world.settle();
    ensure!(
        !world.is_complete(0, receiving.request)?,
        "an acknowledged failure failed an any-source receive"
    );
    world.send(1, 0, 6, &pattern(1, 8), SendMode::Standard)?;
    world.got(living, 1, 6, 1, 8)?;
    world.send(1, 0, 7, &pattern(2, 8), SendMode::Standard)?;
    world.got(receiving, 1, 7, 2, 8)
}

/// A receive from a rank that has ended, of which this rank has not heard yet: it is accepted, and fails.
pub(super) fn receives_from_the_dead_are_posted_and_fail(factory: &Factory) -> Checked {
    let mut world = World::open(factory, 3, &Setup::default())?;
    world.kill(2);
    let doomed = world.recv(0, from(2), ANYTHING, 8)?.request;
    accepted("probe", world.pml(0)?.probe(from(2), ANYTHING, WORLD))?;
    find_out(&mut world)?;
    same("how it ends", world.finish(0, doomed)?.failure, FAILED)
}

/// A transfer is cut off in the middle, at every moment of it. Over networks, whose jobs take long to
/// open, at every third one, unless more rounds than usual are asked for.
pub(super) fn deaths_cut_transfers_off(factory: &Factory) -> Checked {
    let step = if factory.claims.latency.is_zero() || rounds() > 1 {
        1
    } else {
        3
    };
    for (first, len) in factory.protocols().into_iter().enumerate() {
        for sender_dies in [true, false] {
            for turns in (first % step..10).step_by(step) {
                let mut world = World::open(factory, 3, &Setup::default())?;
                let (sender, receiver) = if sender_dies { (2, 0) } else { (0, 2) };
                let receiving = world.recv(receiver, from(sender as u32), ANYTHING, len)?;
                let sent = world.send(
                    sender,
                    receiver as u32,
                    1,
                    &pattern(1, len),
                    SendMode::Synchronous,
                )?;
                for _ in 0..turns {
                    world.turn();
                }
                // Somebody has to be in contact to hear of it.
                let note = world.send(0, 2, 99, &pattern(0, 1), SendMode::Standard)?;
                let known = world.recv(0, from(2), only(98), 1)?;
                world.kill(2);
                let what = format!("{len} bytes, sender dies {sender_dies}, {turns} turns");
                let words = |error| format!("{what}: {error}");
                let status = if sender_dies {
                    world.finish(0, receiving.request)
                } else {
                    world.finish(0, sent)
                }
                .map_err(words)?;
                match status.failure {
                    None if sender_dies => ensure!(
                        world.bytes(receiving) == pattern(1, len),
                        "{what}: complete, with wrong bytes"
                    ),
                    None | FAILED => {}
                    failure => return Err(format!("{what}: ends with {failure:?}")),
                }
                world.finish(0, note).map_err(words)?;
                let status = world.finish(0, known.request).map_err(words)?;
                same("a receive from the dead", status.failure, FAILED)?;
                world.is_idle().map_err(words)?;
            }
        }
    }
    Ok(())
}

/// What a dead peer's messages and grants took of the budget comes back.
pub(super) fn budgets_survive_deaths(factory: &Factory) -> Checked {
    let setup = Setup {
        budget: Some(super::Budget {
            payload: 1 << 16,
            headers: 20_000,
            buffered: 1 << 20,
        }),
    };
    let mut world = World::open(factory, 3, &setup)?;
    world.acquaint()?;
    for seed in 0..400 {
        world.send(2, 0, 1, &pattern(seed, 100), SendMode::Standard)?;
    }
    world.settle();
    world.kill(2);
    find_out(&mut world)?;
    world.pml(0)?.acknowledge_failures();
    let mut sends = Vec::new();
    for seed in 0..400 {
        sends.push(world.send(1, 0, 2, &pattern(seed, 100), SendMode::Standard)?);
    }
    for seed in 0..400 {
        let receiving = world.recv(0, ANYONE, only(2), 100)?;
        world.got(receiving, 1, 2, seed, 100)?;
    }
    for sent in sends {
        world.finish_well(1, sent)?;
    }
    world.is_idle()
}

pub(super) fn those_who_left_are_no_failures(factory: &Factory) -> Checked {
    let mut world = World::open(factory, 3, &Setup::default())?;
    world.acquaint()?;
    let left = Some(Failure::PeerLeft(DEAD));
    let sent = world.send(2, 0, 5, &pattern(1, 10), SendMode::Standard)?;
    world.finish_well(2, sent)?;
    let doomed = world.recv(0, from(2), only(6), 8)?;
    let any = world.recv(0, ANYONE, only(7), 8)?;
    world.leave(2)?;
    // Before the news is looked for.
    let early = world.send(0, 2, 1, &pattern(1, 8), SendMode::Standard)?;
    for _ in 0..3 {
        world.settle();
        world.look_around();
    }
    same(
        "a posted receive",
        world.finish(0, doomed.request)?.failure,
        left,
    )?;
    let late = world.recv(0, from(2), only(6), 8)?;
    same(
        "a new receive",
        world.finish(0, late.request)?.failure,
        left,
    )?;
    let receiving = world.recv(0, from(2), only(5), 10)?;
    world.got(receiving, 2, 5, 1, 10)?;
    ensure!(
        matches!(
            world.finish(0, early)?.failure,
            None | Some(Failure::PeerLeft(_))
        ),
        "a send to a rank that has just left failed as if it had died"
    );
    let sent = world.send(0, 2, 1, &pattern(1, 8), SendMode::Standard)?;
    same("a new send", world.finish(0, sent)?.failure, left)?;
    same("the failed", world.pml(0)?.failed(), Vec::new())?;
    ensure!(
        !world.is_complete(0, any.request)?,
        "a goodbye failed an any-source receive"
    );
    world.send(1, 0, 7, &pattern(2, 8), SendMode::Standard)?;
    world.got(any, 1, 7, 2, 8)?;
    world.is_idle()
}

/// Receives that are posted after a goodbye, whether it was told or not, look for what was sent
/// before it, whether or not there had been contact.
pub(super) fn what_was_sent_before_a_goodbye_is_there(factory: &Factory) -> Checked {
    for (acquainted, told) in [(true, true), (true, false), (false, true), (false, false)] {
        let mut world = World::open(factory, 3, &Setup::default())?;
        if acquainted {
            world.acquaint()?;
        }
        let mut there = Vec::new();
        for (number, len) in factory.protocols().into_iter().enumerate() {
            for value in [2 * number as u32, 2 * number as u32 + 1] {
                let bytes = pattern(value as usize, len);
                let sent = world.send(2, 0, value, &bytes, SendMode::Standard)?;
                world.settle();
                if world.is_complete(2, sent)? {
                    there.push((value, len));
                } else {
                    // Nobody leaves before this is received.
                    let receiving = world.recv(0, from(2), only(value), len)?;
                    world.got(receiving, 2, value, value as usize, len)?;
                }
                world.finish_well(2, sent)?;
            }
        }
        ensure!(!there.is_empty(), "no send ends before its match");
        let doomed = world.recv(0, from(2), only(999), 1)?;
        world.leave(2)?;
        let left = Some(Failure::PeerLeft(DEAD));
        if told {
            same("told", world.finish(0, doomed.request)?.failure, left)?;
        }
        // All at once, and the later ones first: some may wait for room.
        let receiving: Vec<_> = (there.iter().rev())
            .map(|(value, len)| {
                let source = if value % 2 == 0 { from(2) } else { ANYONE };
                world.recv(0, source, only(*value), *len)
            })
            .collect::<Result<_, _>>()?;
        for (receiving, (value, len)) in receiving.into_iter().zip(there.iter().rev()) {
            world
                .got(receiving, 2, *value, *value as usize, *len)
                .map_err(|error| format!("{len} bytes, tag {value}: {error}"))?;
        }
        if !told {
            same("told", world.finish(0, doomed.request)?.failure, left)?;
        }
        let late = world.recv(0, from(2), ANYTHING, 8)?;
        same("the rest", world.finish(0, late.request)?.failure, left)?;
        world.is_idle()?;
    }
    Ok(())
}

/// A rank that is to die, as the other one has it in its hands.
pub(super) struct Doomed<'a> {
    job: &'a dyn Job,
    rank: Rank,
    given: mpsc::Receiver<Arc<Messenger>>,
}

impl Doomed<'_> {
    /// Waits until the rank has done what it has to do; it makes no progress from then on.
    pub(super) fn take(&self) -> Checked<Arc<Messenger>> {
        self.given
            .recv()
            .map_err(|_| "the other rank failed".to_owned())
    }

    /// Ends it, without a goodbye.
    pub(super) fn kill(&self, victim: Arc<Messenger>) {
        self.job.kill(self.rank, Box::new(victim));
    }
}

/// Two ranks, of which `dead` does what `victim` says and the other, on this thread, what `survivor` does,
/// with the victim's death in its hands.
pub(super) fn around_a_death(
    factory: &Factory,
    dead: Rank,
    victim: impl FnOnce(&Arc<Messenger>) -> Checked + Send,
    survivor: impl FnOnce(&Arc<Messenger>, &Doomed<'_>) -> Checked,
) -> Checked {
    let job = factory.job(2, &Setup::default())?;
    let (give, given) = mpsc::channel();
    std::thread::scope(|scope| {
        let job = &job;
        let other = scope.spawn(move || -> Checked {
            let port = Arc::new(job.port(dead, ThreadLevel::Serialized, waiting())?);
            victim(&port)?;
            give.send(port)
                .map_err(|_| "the other rank gave up".to_owned())
        });
        let doomed = Doomed {
            job: &**job,
            rank: dead,
            given,
        };
        let living = Rank::new(1 - dead.as_u32());
        let survived = job
            .port(living, ThreadLevel::Multiple, waiting())
            .and_then(|port| survivor(&Arc::new(port), &doomed));
        drop(doomed);
        let other = other
            .join()
            .unwrap_or_else(|_| Err("a rank panicked".into()));
        survived.and(other)
    })
}

/// Threads that wait for the dead are told.
pub(super) fn waits_end_with_the_peer(factory: &Factory) -> Checked {
    let dead = Rank::new(1);
    around_a_death(
        factory,
        dead,
        |port| {
            super::rig::send(port, 0, 1, &pattern(1, 8), SendMode::Standard)?;
            super::rig::recv(port, from(0), only(2), 2, 8).map(|_| ())
        },
        |port, doomed| {
            super::rig::recv(port, from(1), only(1), 1, 8)?;
            super::rig::send(port, 1, 2, &pattern(2, 8), SendMode::Standard)?;
            let victim = doomed.take()?;
            let room = Room::new(8);
            let posted = port.irecv(room.lend(), from(1), only(3), WORLD);
            let posted = accepted("irecv", posted)?;
            let sent = port.isend(
                lend(&pattern(1, 100_000)),
                dead,
                tag(4),
                WORLD,
                SendMode::Standard,
            );
            let sent = accepted("isend", sent)?;
            doomed.kill(victim);
            let patience = super::rig::PATIENCE;
            for request in [posted, sent] {
                let status = accepted("wait", port.wait(request, patience))?;
                same(
                    "how it ends",
                    status.failure,
                    Some(Failure::PeerFailed(dead)),
                )?;
            }
            let probed = port.wait_probe(from(1), ANYTHING, WORLD, patience);
            ensure!(
                matches!(probed, Err(Error::Failed(Failure::PeerFailed(rank))) if rank == dead),
                "a probe for the dead: {probed:?}"
            );
            accepted("close", port.close(std::time::Duration::from_secs(20)))
        },
    )
}
