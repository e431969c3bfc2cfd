//! Partitioned operations, whatever the way that their partitions take.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tagwire_base::Rank;
use tagwire_transport::fault::SplitMix64;

use super::Factory;
use super::failure::around_a_death;
use super::rig::{
    Checked, PATIENCE, Room, WORLD, accepted, ensure, from, on_threads, only, pattern, same, tag,
    waiting,
};
use tagwire_pml::error::{Error, Result};
use tagwire_pml::guard::ThreadLevel;
use tagwire_pml::messenger::Messenger;
use tagwire_pml::partitioned::{PartitionedRecv, PartitionedSend, Policy};
use tagwire_pml::types::{Failure, SendMode};

/// One operation, and how it is used.
#[derive(Debug, Clone, Copy)]
struct Case {
    /// Partitions on either side.
    sender: u32,
    receiver: u32,
    bytes: usize,
    policy: Policy,
    /// How many rounds the receiver has room for.
    rooms: usize,
    /// Threads that send.
    threads: u32,
    rounds: usize,
    /// Of the order in which partitions become ready, and are asked for.
    seed: u64,
}

/// None of the partitions begins where one of the other side does but the first.
const CASE: Case = Case {
    sender: 8,
    receiver: 7,
    bytes: 8 * 7 * 100,
    policy: Policy::Each,
    rooms: 1,
    threads: 1,
    rounds: 4,
    seed: 1,
};

/// Bytes of a part that both counts divide: short ones, and such as are never copied on the way.
const PARTS: [usize; 3] = [1, 100, 4000];

/// How user partitions go together.
const POLICIES: [Policy; 3] = [Policy::Each, Policy::Fixed(3), Policy::Bytes(4096)];

/// The bytes of one partition of `count`.
fn part(number: u32, count: u32, bytes: usize) -> Range<usize> {
    let each = bytes / count as usize;
    number as usize * each..(number as usize + 1) * each
}

impl Case {
    /// A send to the other rank, and the memory that it sends.
    fn sending(self, port: &Arc<Messenger>) -> Checked<(PartitionedSend, Room)> {
        let (room, to) = (Room::new(self.bytes), Rank::new(1));
        let data = room.lend_to_send();
        let send = PartitionedSend::init(port, &data, self.sender, to, tag(1), WORLD, self.policy);
        Ok((accepted("psend_init", send)?, room))
    }

    /// A receive from the other rank, and where it receives.
    fn receiving(self, port: &Arc<Messenger>) -> Checked<(PartitionedRecv, Room)> {
        let room = Room::new(self.bytes * self.rooms);
        let (data, sender) = (room.lend(), Rank::new(0));
        let init = match self.rooms {
            1 => PartitionedRecv::init,
            _ => PartitionedRecv::init_double,
        };
        let recv = init(port, &data, self.receiver, sender, tag(1), WORLD);
        Ok((accepted("precv_init", recv)?, room))
    }

    /// What travels in `round`.
    fn pattern(self, round: usize) -> Vec<u8> {
        pattern(round + self.seed as usize % 1000, self.bytes)
    }

    /// Sends all rounds: partitions become ready in any order, by as many threads as asked for.
    fn send(self, port: &Arc<Messenger>) -> Checked {
        let (send, room) = self.sending(port)?;
        let mut random = SplitMix64::new(self.seed);
        for round in 0..self.rounds {
            accepted("start", send.start())?;
            let data = self.pattern(round);
            let ready = |number: &u32| {
                let part = part(*number, self.sender, self.bytes);
                room.write(part.start, &data[part]);
                accepted("ready", send.ready(*number))
            };
            let order = random.shuffled(self.sender);
            if self.threads == 1 {
                order.iter().try_for_each(ready)?;
            } else {
                let share = order.len().div_ceil(self.threads as usize);
                std::thread::scope(|scope| {
                    let ready = &ready;
                    let spawn = |list| scope.spawn(move || <[u32]>::iter(list).try_for_each(ready));
                    let threads: Vec<_> = order.chunks(share).map(spawn).collect();
                    let panicked = |_| Err("a thread panicked".into());
                    let mut ends = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
                    ends.try_for_each(|end| end.unwrap_or_else(panicked))
                })?;
            }
            accepted("wait", send.wait(PATIENCE))?;
        }
        accepted("free", send.free())?;
        let until = Instant::now() + Duration::from_secs(60);
        while !send.is_settled() {
            // The thread of the timers may just have the rank.
            let in_time = self.threads > 1 && Instant::now() < until;
            ensure!(in_time, "a send that is over has its buffer");
            accepted("progress", port.progress())?;
        }
        // Waits for the receiver's last word.
        super::rig::recv(port, from(1), only(9), 9, 8).map(|_| ())
    }

    /// Receives all rounds; in every other one it asks for every partition, in any order.
    fn receive(self, port: &Arc<Messenger>) -> Checked {
        let (recv, room) = self.receiving(port)?;
        let mut random = SplitMix64::new(self.seed);
        for round in 0..self.rounds {
            accepted("start", recv.start())?;
            same("the room", recv.room(), round % self.rooms)?;
            let (base, wanted) = (recv.room() * self.bytes, self.pattern(round));
            let asked = random.shuffled(self.receiver);
            for number in asked.into_iter().filter(|_| round % 2 == 0) {
                while !accepted("arrived", recv.arrived(number))? {
                    std::thread::yield_now();
                }
                let part = part(number, self.receiver, self.bytes);
                ensure!(
                    room.read(base + part.start..base + part.end) == wanted[part],
                    "round {round}: partition {number} arrived with other bytes"
                );
            }
            accepted("wait", recv.wait(PATIENCE))?;
            ensure!(
                room.read(base..base + self.bytes) == wanted,
                "round {round} brought other bytes"
            );
        }
        accepted("free", recv.free())?;
        // A sender may write a second room until it has heard that nothing is wanted there.
        let until = Instant::now() + Duration::from_secs(60);
        while !recv.is_settled() {
            let in_time = self.rooms > 1 && Instant::now() < until;
            ensure!(in_time, "a receive that is over has its buffer");
            accepted("progress", port.progress())?;
        }
        // Nobody leaves before the other has heard of it.
        super::rig::send(port, 0, 9, &pattern(9, 8), SendMode::Standard)
    }

    fn run(self, factory: &Factory) -> Checked {
        let level = match self.threads {
            1 => ThreadLevel::Single,
            _ => ThreadLevel::Multiple,
        };
        let ran = on_threads(factory, 2, level, waiting(), |port| {
            if port.rank() == Rank::new(1) {
                self.receive(port)
            } else {
                self.send(port)
            }
        });
        ran.map_err(|error| format!("{self:?}: {error}"))
    }
}

pub(super) fn partitions_arrive_in_every_round(factory: &Factory) -> Checked {
    for each in PARTS {
        for (policy, rooms) in POLICIES.into_iter().zip([1, 2, 2]) {
            let bytes = each * (CASE.sender * CASE.receiver) as usize;
            let case = Case {
                bytes,
                policy,
                rooms,
                ..CASE
            };
            case.run(factory)?;
        }
    }
    Ok(())
}

pub(super) fn partitions_of_many_threads_arrive(factory: &Factory) -> Checked {
    for each in PARTS {
        let bytes = each * (CASE.sender * CASE.receiver) as usize;
        let case = Case {
            bytes,
            threads: 4,
            ..CASE
        };
        case.run(factory)?;
    }
    Ok(())
}

/// Counts, sizes, policies and threads as they come.
pub(super) fn random_partitions_arrive(factory: &Factory) -> Checked {
    let mut random = SplitMix64::new(20_261_122);
    for seed in 0..RANDOM_CASES {
        let (sender, receiver) = (random.below(24) as u32 + 1, random.below(24) as u32 + 1);
        let each = [1, 7, 40, 400][random.below(4) as usize];
        let policies = [
            Policy::Each,
            Policy::Default,
            Policy::Fixed(3),
            Policy::Timer {
                bytes: 4096,
                after: Duration::from_micros(50),
            },
            Policy::Messages(4),
        ];
        let case = Case {
            sender,
            receiver,
            bytes: (sender * receiver) as usize * each,
            policy: policies[random.below(5) as usize],
            rooms: random.below(2) as usize + 1,
            threads: random.below(4) as u32 + 1,
            rounds: 25,
            seed,
        };
        case.run(factory)?;
    }
    Ok(())
}

/// Cases of the random check: with 25 rounds each, every pair of layer and transport has 400.
const RANDOM_CASES: u64 = 16;

pub(super) fn a_partitioned_round_ends_with_its_peer(factory: &Factory) -> Checked {
    let dead = Rank::new(0);
    around_a_death(
        factory,
        dead,
        |port| {
            let (send, _room) = CASE.sending(port)?;
            accepted("start", send.start())?;
            accepted("ready", send.ready(3))?;
            // Until the receiver has it.
            super::rig::recv(port, from(1), only(9), 2, 8)?;
            // It dies with its round: nothing of it is dropped in good order.
            std::mem::forget(send);
            Ok(())
        },
        |port, doomed| {
            let (recv, _room) = CASE.receiving(port)?;
            accepted("start", recv.start())?;
            super::rig::send(port, 0, 9, &pattern(2, 8), SendMode::Standard)?;
            doomed.kill(doomed.take()?);
            names_the_dead(recv.wait(PATIENCE), dead)?;
            ensure!(!recv.is_active(), "a round goes on with the dead");
            drop(recv);
            accepted("close", port.close(Duration::from_secs(20)))
        },
    )
}

/// The same for a sender. Rounds that were copied away before anybody knew of the death are complete.
pub(super) fn a_partitioned_send_ends_with_its_receiver(factory: &Factory) -> Checked {
    let dead = Rank::new(1);
    around_a_death(
        factory,
        dead,
        |port| {
            let (recv, _room) = CASE.receiving(port)?;
            accepted("start", recv.start())?;
            super::rig::send(port, 0, 9, &pattern(2, 8), SendMode::Standard)?;
            // Until the sender has begun.
            super::rig::recv(port, from(0), only(9), 2, 8)?;
            std::mem::forget(recv);
            Ok(())
        },
        |port, doomed| {
            let (send, _room) = CASE.sending(port)?;
            super::rig::recv(port, from(1), only(9), 2, 8)?;
            accepted("start", send.start())?;
            accepted("ready", send.ready(3))?;
            super::rig::send(port, 1, 9, &pattern(2, 8), SendMode::Standard)?;
            doomed.kill(doomed.take()?);
            accepted("ready", send.ready_range(0..3))?;
            accepted("ready", send.ready_range(4..CASE.sender))?;
            let mut outcome = send.wait(PATIENCE);
            // Short messages leave before it is known that nobody takes them.
            let until = Instant::now() + Duration::from_secs(30);
            while outcome.is_ok() && Instant::now() < until {
                outcome = send
                    .start()
                    .and_then(|()| send.ready_range(0..CASE.sender))
                    .and_then(|()| send.wait(PATIENCE));
            }
            names_the_dead(outcome, dead)?;
            ensure!(!send.is_active(), "a round goes on with the dead");
            drop(send);
            accepted("close", port.close(Duration::from_secs(20)))
        },
    )
}

/// A round with a rank that died says so.
fn names_the_dead(outcome: Result<()>, dead: Rank) -> Checked {
    match outcome {
        Err(Error::Failed(Failure::PeerFailed(rank))) => same("who failed", rank, dead),
        other => Err(format!("a round with the dead: {other:?}")),
    }
}
