//! Partitioned operations, whatever the way that their partitions take.

use std::sync::Arc;

use tagwire_base::Rank;

use super::Factory;
use super::rig::{
    Checked, PATIENCE, Room, WORLD, accepted, ensure, from, on_threads, only, pattern, same, tag,
    waiting,
};
use crate::error::Error;
use crate::guard::ThreadLevel;
use crate::messenger::Messenger;
use crate::partitioned::{PartitionedRecv, PartitionedSend, Policy};
use crate::types::{Failure, SendMode};

/// Partitions on either side: none of them begins where another one does but the first.
const SENDER: u32 = 8;
const RECEIVER: u32 = 7;

/// Bytes of a part that both counts divide: short ones, and such as are never copied on the way.
const PARTS: [usize; 3] = [1, 100, 4000];

/// How user partitions go together.
const POLICIES: [Policy; 3] = [Policy::Each, Policy::Fixed(3), Policy::Bytes(4096)];

const ROUNDS: usize = 4;

/// A send of `bytes` to the other rank, and the memory that it sends.
fn sending(
    port: &Arc<Messenger>,
    bytes: usize,
    policy: Policy,
) -> Checked<(PartitionedSend, Room)> {
    let (room, to) = (Room::new(bytes), Rank::new(1));
    let data = room.lend_to_send();
    let send = PartitionedSend::init(port, &data, SENDER, to, tag(1), WORLD, policy);
    Ok((accepted("psend_init", send)?, room))
}

/// A receive of `bytes` from the other rank, and where it receives: so many rounds.
fn receiving(
    port: &Arc<Messenger>,
    bytes: usize,
    rooms: usize,
) -> Checked<(PartitionedRecv, Room)> {
    let room = Room::new(bytes * rooms);
    let (data, sender) = (room.lend(), Rank::new(0));
    let init = match rooms {
        1 => PartitionedRecv::init,
        _ => PartitionedRecv::init_double,
    };
    let recv = init(port, &data, RECEIVER, sender, tag(1), WORLD);
    Ok((accepted("precv_init", recv)?, room))
}

/// The bytes of one partition of `count`.
fn part(number: u32, count: u32, bytes: usize) -> std::ops::Range<usize> {
    let each = bytes / count as usize;
    number as usize * each..(number as usize + 1) * each
}

/// Receives some rounds of `bytes`, asking for every partition.
fn receive(port: &Arc<Messenger>, bytes: usize, rooms: usize) -> Checked {
    let (recv, room) = receiving(port, bytes, rooms)?;
    for round in 0..ROUNDS {
        accepted("start", recv.start())?;
        let base = recv.room() * bytes;
        same("the room", recv.room(), round % rooms)?;
        let wanted = pattern(round, bytes);
        // Every other round by waiting alone.
        for number in (0..RECEIVER).filter(|_| round % 2 == 0) {
            while !accepted("arrived", recv.arrived(number))? {
                std::thread::yield_now();
            }
            let part = part(number, RECEIVER, bytes);
            ensure!(
                room.read(base + part.start..base + part.end) == wanted[part],
                "round {round}: partition {number} arrived with other bytes"
            );
        }
        accepted("wait", recv.wait(PATIENCE))?;
        ensure!(
            room.read(base..base + bytes) == wanted,
            "round {round} brought other bytes"
        );
    }
    accepted("free", recv.free())?;
    // A sender may write a second room until it has heard that nothing is wanted there.
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !recv.is_settled() {
        let in_time = rooms > 1 && std::time::Instant::now() < until;
        ensure!(in_time, "a receive that is over has its buffer");
        accepted("progress", port.progress())?;
    }
    // Nobody leaves before the other has heard of it.
    super::rig::send(port, 0, 9, &pattern(9, 8), SendMode::Standard)
}

/// Waits for the receiver's last word.
fn see_it_done(port: &Messenger) -> Checked {
    super::rig::recv(port, from(1), only(9), 9, 8).map(|_| ())
}

pub(super) fn partitions_arrive_in_every_round(factory: &Factory) -> Checked {
    for each in PARTS {
        for (policy, rooms) in POLICIES.into_iter().zip([1, 2, 2]) {
            let bytes = each * (SENDER * RECEIVER) as usize;
            on_threads(factory, 2, ThreadLevel::Single, waiting(), |port| {
                if port.rank() == Rank::new(1) {
                    return receive(port, bytes, rooms);
                }
                let (send, room) = sending(port, bytes, policy)?;
                for round in 0..ROUNDS {
                    accepted("start", send.start())?;
                    let data = pattern(round, bytes);
                    // From the back, so that nothing is ready in order.
                    for number in (0..SENDER).rev() {
                        let part = part(number, SENDER, bytes);
                        room.write(part.start, &data[part]);
                        accepted("ready", send.ready(number))?;
                    }
                    accepted("wait", send.wait(PATIENCE))?;
                }
                accepted("free", send.free())?;
                ensure!(send.is_settled(), "a send that is over has its buffer");
                see_it_done(port)
            })
            .map_err(|error| format!("{bytes} bytes, {policy}: {error}"))?;
        }
    }
    Ok(())
}

pub(super) fn partitions_of_many_threads_arrive(factory: &Factory) -> Checked {
    for each in PARTS {
        let bytes = each * (SENDER * RECEIVER) as usize;
        on_threads(factory, 2, ThreadLevel::Multiple, waiting(), |port| {
            if port.rank() == Rank::new(1) {
                return receive(port, bytes, 1);
            }
            let (send, room) = sending(port, bytes, Policy::Each)?;
            for round in 0..ROUNDS {
                accepted("start", send.start())?;
                let data = pattern(round, bytes);
                let ready = |number| {
                    let part = part(number, SENDER, bytes);
                    room.write(part.start, &data[part]);
                    accepted("ready", send.ready(number))
                };
                let ended: Vec<Checked> = std::thread::scope(|scope| {
                    let threads: Vec<_> = (0..SENDER / 2)
                        .map(|thread| {
                            let ready = &ready;
                            scope.spawn(move || {
                                ready(2 * thread + 1).and_then(|()| ready(2 * thread))
                            })
                        })
                        .collect();
                    let join = |thread: std::thread::ScopedJoinHandle<'_, Checked>| {
                        thread
                            .join()
                            .unwrap_or_else(|_| Err("a thread panicked".into()))
                    };
                    threads.into_iter().map(join).collect()
                });
                ended.into_iter().collect::<Checked>()?;
                accepted("wait", send.wait(PATIENCE))?;
            }
            accepted("free", send.free())?;
            see_it_done(port)
        })
        .map_err(|error| format!("{bytes} bytes: {error}"))?;
    }
    Ok(())
}

pub(super) fn a_partitioned_round_ends_with_its_peer(factory: &Factory) -> Checked {
    let job = factory.job(2, &super::Setup::default())?;
    let (give, take) = std::sync::mpsc::channel();
    let dead = Rank::new(0);
    std::thread::scope(|scope| {
        let job = &job;
        let victim = scope.spawn(move || -> Checked {
            let port = Arc::new(job.port(dead, ThreadLevel::Serialized, waiting())?);
            let (send, _room) = sending(&port, 5600, Policy::Each)?;
            accepted("start", send.start())?;
            accepted("ready", send.ready(3))?;
            // Until the receiver has it.
            super::rig::recv(&port, from(1), only(9), 2, 8)?;
            // It dies with its round: nothing of it is dropped in good order.
            std::mem::forget(send);
            give.send(port)
                .map_err(|_| "the other rank gave up".to_owned())
        });
        let waited = (|| {
            let port = job.port(Rank::new(1), ThreadLevel::Multiple, waiting())?;
            let port = Arc::new(port);
            let (recv, _room) = receiving(&port, 5600, 1)?;
            accepted("start", recv.start())?;
            super::rig::send(&port, 0, 9, &pattern(2, 8), SendMode::Standard)?;
            let victim = take
                .recv()
                .map_err(|_| "the other rank failed".to_owned())?;
            job.kill(dead, Box::new(victim));
            match recv.wait(PATIENCE) {
                Err(Error::Failed(Failure::PeerFailed(rank))) => same("who failed", rank, dead)?,
                other => return Err(format!("a round with the dead: {other:?}")),
            }
            ensure!(!recv.is_active(), "a round goes on with the dead");
            drop(recv);
            accepted("close", port.close(std::time::Duration::from_secs(20)))
        })();
        drop(take);
        let victim = victim
            .join()
            .unwrap_or_else(|_| Err("a rank panicked".into()));
        waited.and(victim)
    })
}
