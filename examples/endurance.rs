//! Rank 0 sends as many messages as are asked for to rank 1, which looks at each. Both say what memory they have, and end with an error where
//! it has grown by more than 1 MiB since the first hundredth.
//!
//! ```text
//! tagwire run -n 2 -- target/release/examples/endurance 1000000000
//! tagwire run -n 2 --first-sequence 4294000000 --shm-first-slot 4294000000 -- target/release/examples/endurance 10000000
//! ```
//!
//! The second has the numbers of messages wrap at 2^32, as they do in runs that are four times as long.

use std::error::Error;
use std::fs;
use std::time::Instant;

use tagwire::{Context, Session};

const DATA: i32 = 1;
/// So many messages are sent before the receiver is heard again.
const BATCH: u64 = 1 << 16;
const HEARD: i32 = 2;
/// Every so many messages one is long, and goes by a rendezvous, or in many packets.
const LONG_EACH: u64 = 10_007;
/// The first ones are all long: they go once through all of the memory that two ranks have for their packets.
const LONG_FIRST: u64 = 256;
/// Elements of a long message: 64 KiB.
const LONG: usize = 8192;
/// What may be had beyond what the first hundredth took, in KiB.
const MORE_KIB: u64 = 1024;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn main() -> Outcome {
    let text = std::env::args().nth(1);
    let count: u64 = text.map_or(Ok(1_000_000), |text| text.parse())?;
    let session = Session::open()?;
    if session.size() != 2 {
        return Err("two ranks: tagwire run -n 2 -- endurance MESSAGES".into());
    }
    let rank = session.rank();
    let start = Instant::now();
    let mut seen = Seen::new(count);
    for begin in (0..count).step_by(BATCH as usize) {
        let numbers = begin..count.min(begin + BATCH);
        match rank {
            0 => send(&session.world(), numbers)?,
            _ => receive(&session.world(), numbers)?,
        }
        seen.look(begin)?;
    }
    let (first, last) = seen.end()?;
    let rate = count as f64 / start.elapsed().as_secs_f64() / 1e6;
    println!(
        "rank {rank}: {count} messages, {rate:.2} million a second; {first} KiB after the first hundredth, {last} KiB at most later"
    );
    session.close()?;
    match last <= first + MORE_KIB {
        true => Ok(()),
        false => Err(format!("rank {rank}: memory grew from {first} to {last} KiB").into()),
    }
}

fn send(world: &Context<'_>, numbers: std::ops::Range<u64>) -> Outcome {
    let mut long = vec![0u64; LONG];
    for number in numbers {
        if is_long(number) {
            long.fill(number);
            world.send(&long, 1, DATA)?;
        } else {
            world.send(&[number], 1, DATA)?;
        }
    }
    let mut heard = [0u8];
    world.recv(&mut heard, 1, HEARD)?;
    Ok(())
}

fn receive(world: &Context<'_>, numbers: std::ops::Range<u64>) -> Outcome {
    let mut data = vec![0u64; LONG];
    for number in numbers {
        let status = world.recv(&mut data, 0, DATA)?;
        let length = if is_long(number) { LONG } else { 1 };
        let is_right = status.bytes() == length * size_of::<u64>()
            && data[0] == number
            && data[length - 1] == number;
        if !is_right {
            return Err(format!("message {number} is lost, late or wrong: {}", data[0]).into());
        }
    }
    world.send(&[1u8], 0, HEARD)?;
    Ok(())
}

const fn is_long(number: u64) -> bool {
    number < LONG_FIRST || number.is_multiple_of(LONG_EACH)
}

/// What memory this process has had.
struct Seen {
    /// From this message on it is to be what it is.
    warm: u64,
    first: Option<u64>,
    most: u64,
}

impl Seen {
    fn new(count: u64) -> Self {
        Self {
            warm: (count / 100).min(count.saturating_sub(1) / BATCH * BATCH),
            first: None,
            most: 0,
        }
    }

    /// Looks, behind the messages from `begin` on.
    fn look(&mut self, begin: u64) -> Outcome {
        if begin >= self.warm {
            let now = resident_kib()?;
            self.first.get_or_insert(now);
            self.most = self.most.max(now);
        }
        Ok(())
    }

    /// Returns what there was at first and at most, in KiB.
    fn end(self) -> Outcome<(u64, u64)> {
        Ok((self.first.ok_or("no messages")?, self.most))
    }
}

/// The memory of this process, as the kernel counts it, with what it shares.
fn resident_kib() -> Outcome<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let figure = line.and_then(|rest| rest.split_whitespace().next());
    Ok(figure.ok_or("no VmRSS")?.parse()?)
}
