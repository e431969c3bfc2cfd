//! Rank 0 sends as many messages as are asked for to rank 1, which looks at each. Both say what memory they have, and end with an error where
//! it grows by more than 1 MiB beyond what the first hundredth took at most: all of it, or that which is theirs alone.
//!
//! ```text
//! tagwire run -n 2 -- target/release/examples/endurance 1000000000
//! tagwire run -n 2 --first-sequence 4294000000 --shm-first-slot 4294000000 -- target/release/examples/endurance 10000000
//! ```
//!
//! The second has the numbers of messages wrap at 2^32, as they do in runs that are four times as long.

use std::error::Error;
use std::time::Instant;
use std::{fmt, fs};

use tagwire::{Context, Session};

const DATA: i32 = 1;
/// So many messages are sent before the receiver is heard again.
const BATCH: u64 = 1 << 16;
const HEARD: i32 = 2;
/// Every so many messages one is long, and goes by a rendezvous, or in many packets.
const LONG_EACH: u64 = 10_007;
/// The first ones are all long.
const LONG_FIRST: u64 = 256;
/// Elements of a long message: 64 KiB.
const LONG: usize = 8192;
/// So many follow of 7 KiB. Each is one packet of a ring, which grows to its largest by their bytes and is gone through several times: by
/// which way long ones go is found out by trials, and a ring that they leave alone would grow whenever a later trial used it.
const PACKETS_FIRST: u64 = 4608;
/// Elements of one of these.
const PACKET: usize = 896;
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
    let (first, later) = (seen.first, seen.later);
    let rate = count as f64 / start.elapsed().as_secs_f64() / 1e6;
    println!(
        "rank {rank}: {count} messages, {rate:.2} million a second; {first} in the first hundredth, {later} later"
    );
    session.close()?;
    match later.is_within(first) {
        true => Ok(()),
        false => Err(format!("rank {rank}: memory grew: {first}, then {later}").into()),
    }
}

fn send(world: &Context<'_>, numbers: std::ops::Range<u64>) -> Outcome {
    let mut data = vec![0u64; LONG];
    for number in numbers {
        let data = &mut data[..length(number)];
        data.fill(number);
        world.send(data, 1, DATA)?;
    }
    let mut heard = [0u8];
    world.recv(&mut heard, 1, HEARD)?;
    Ok(())
}

fn receive(world: &Context<'_>, numbers: std::ops::Range<u64>) -> Outcome {
    let mut data = vec![0u64; LONG];
    for number in numbers {
        let status = world.recv(&mut data, 0, DATA)?;
        let length = length(number);
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

const fn length(number: u64) -> usize {
    match number {
        0..LONG_FIRST => LONG,
        _ if number < LONG_FIRST + PACKETS_FIRST => PACKET,
        _ if number.is_multiple_of(LONG_EACH) => LONG,
        _ => 1,
    }
}

/// Memory of this process in KiB, as the kernel counts it.
#[derive(Clone, Copy, Default)]
struct Memory {
    /// With what it shares.
    all: u64,
    own: u64,
}

impl Memory {
    fn now() -> Outcome<Self> {
        let status = fs::read_to_string("/proc/self/status")?;
        let kib = |name: &str| -> Outcome<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let figure = line.and_then(|rest| rest.split_whitespace().next());
            Ok(figure.ok_or_else(|| format!("no {name}"))?.parse()?)
        };
        Ok(Self {
            all: kib("VmRSS:")?,
            own: kib("RssAnon:")?,
        })
    }

    fn most(self, other: Self) -> Self {
        Self {
            all: self.all.max(other.all),
            own: self.own.max(other.own),
        }
    }

    const fn is_within(self, first: Self) -> bool {
        self.all <= first.all + MORE_KIB && self.own <= first.own + MORE_KIB
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} KiB at most ({} its own)", self.all, self.own)
    }
}

/// What memory this process has had.
struct Seen {
    /// From this message on it is to be what it is.
    warm: u64,
    /// At most until then: a ring that is idle gives its memory back.
    first: Memory,
    later: Memory,
}

impl Seen {
    fn new(count: u64) -> Self {
        Self {
            warm: (count / 100).min(count.saturating_sub(1) / BATCH * BATCH),
            first: Memory::default(),
            later: Memory::default(),
        }
    }

    /// Looks, behind the messages from `begin` on.
    fn look(&mut self, begin: u64) -> Outcome {
        let now = Memory::now()?;
        let seen = match begin < self.warm + BATCH {
            true => &mut self.first,
            false => &mut self.later,
        };
        *seen = seen.most(now);
        Ok(())
    }
}
