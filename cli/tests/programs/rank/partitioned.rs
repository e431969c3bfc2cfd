//! Partitioned operations between processes: every byte of every epoch, and a peer that is killed.

use std::time::Duration;

use tagwire::{Failure, PartitionedRecv, PartitionedSend, Policy, Session, ThreadLevel};

use super::{Outcome, say, sleep_until_killed};

/// Both sides draw the same numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % bound
    }
}

fn pattern(epoch: u64, at: usize) -> u64 {
    epoch << 32 | at as u64
}

fn produce(send: &mut PartitionedSend<u64>, threads: u32, epoch: u64) -> tagwire::Result<()> {
    let count = send.partitions();
    let sending = send.start()?;
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                // From the back, and every thread its own.
                for number in (0..count).rev().filter(|n| n % threads == thread) {
                    let mut part = sending.partition(number).unwrap();
                    let first = number as usize * part.len();
                    for (at, value) in part.iter_mut().enumerate() {
                        *value = pattern(epoch, first + at);
                    }
                    part.ready().unwrap();
                }
            });
        }
    });
    sending.wait()
}

fn consume(recv: &mut PartitionedRecv<u64>, threads: u32, epoch: u64) -> tagwire::Result<()> {
    let count = recv.partitions();
    let arriving = recv.start()?;
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                for number in (0..count).filter(|n| n % threads == thread) {
                    let values = loop {
                        match arriving.partition(number).unwrap() {
                            Some(values) => break values,
                            None => std::thread::yield_now(),
                        }
                    };
                    for (at, value) in values.iter().enumerate() {
                        let at = number as usize * values.len() + at;
                        assert_eq!(*value, pattern(epoch, at), "epoch {epoch}, element {at}");
                    }
                }
            });
        }
    });
    arriving.wait()
}

/// Random numbers of partitions on both sides, of threads, of bytes; `seed` is all there is to it.
pub fn exchange(arguments: &[String]) -> Outcome {
    let seed = arguments.first().ok_or("which seed?")?.parse()?;
    let mut random = Random(seed);
    let session = Session::builder().threads(ThreadLevel::Multiple).open()?;
    let (world, rank) = (session.world(), session.rank());
    for case in 0..12 {
        let (sender, receiver) = (random.below(64) as u32 + 1, random.below(64) as u32 + 1);
        let each = [1, 5, 40][random.below(3) as usize];
        let threads = random.below(4) as u32 + 1;
        let epochs = random.below(40) + 1;
        let text = [
            "each",
            "default",
            "fixed:2",
            "timer:2048:20",
            "messages",
            "single",
        ];
        let policy: Policy = text[random.below(6) as usize].parse()?;
        let data = vec![0u64; (sender * receiver) as usize * each];
        if rank == 0 {
            let mut send = world.psend_init_with(policy, data, sender, 1, case)?;
            for epoch in 0..epochs {
                produce(&mut send, threads, epoch)
                    .map_err(|error| format!("seed {seed}, case {case}: {error}"))?;
            }
        } else {
            let mut recv = if case % 2 == 0 {
                world.precv_init(data, receiver, 0, case)?
            } else {
                let both = [&data[..], &data].concat();
                world.precv_init_double(both, receiver, 0, case)?
            };
            for epoch in 0..epochs {
                consume(&mut recv, threads, epoch)
                    .map_err(|error| format!("seed {seed}, case {case}: {error}"))?;
            }
        }
    }
    session.close()?;
    say(rank, "checked all");
    Ok(())
}

/// The sender is killed in the middle of a round.
pub fn death(arguments: &[String]) -> Outcome {
    let len = arguments.first().ok_or("how many?")?.parse::<usize>()?;
    let session = Session::open()?;
    let (world, rank) = (session.world(), session.rank());
    let data = vec![1u64; len * 4];
    if rank == 0 {
        let mut send = world.psend_init_with(Policy::Each, data, 4, 1, 1)?;
        let sending = send.start()?;
        sending.ready_range(1..3)?;
        while send.describe().is_none() {
            send.test()?;
        }
        // The receiver says that it saw some.
        world.recv(&mut [0u8], 1, 2)?;
        say(rank, "is in the middle");
        sleep_until_killed();
    }
    let mut recv = world.precv_init(data, 4, 0, 1)?;
    let arriving = recv.start()?;
    while !(arriving.arrived(1)? && arriving.arrived(2)?) {}
    assert!(!arriving.arrived(0)?);
    world.send(&[0u8], 0, 2)?;
    match arriving.wait() {
        Err(error) if error.failure() == Some(Failure::PeerFailed(tagwire_base::Rank::new(0))) => {}
        other => return Err(format!("the wait ended with {other:?}").into()),
    }
    assert!(recv.start().is_err());
    // Nobody is there any more who could touch it.
    let mut patience = 1000;
    while recv.data().is_err() && patience > 0 {
        std::thread::sleep(Duration::from_millis(10));
        patience -= 1;
    }
    assert_eq!(recv.data()?.len(), len * 4);
    drop(recv);
    session.close()?;
    say(rank, "saw the failure");
    Ok(())
}
