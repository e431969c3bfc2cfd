//! Whether a provider's writes become visible in their order: what it promises is put to the test.
//!
//! A net of the test's own writes to itself, over the network: bytes, and a word behind them, several
//! such pairs under way at once. Whoever sees the word must find the bytes, all of them, at every length;
//! one that does not ends the test. It takes some milliseconds, most of them to connect.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Release};
use std::time::{Duration, Instant};

use tagwire_libfabric_sys::bindings::{FI_REMOTE_WRITE, FI_WRITE};
use tagwire_transport::SendBuffer;

use super::memory::Block;
use super::{Info, Net, OpId, Peer, Reading, Registered, Remote, Took};

/// Bytes, and how often.
const ROUNDS: [(usize, u64); 5] = [
    (8, 50),
    (1 << 10, 50),
    (16 << 10, 50),
    (64 << 10, 20),
    (512 << 10, 5),
];

/// Pairs of bytes and word under way at once.
const PAIRS: usize = 4;

/// The length of a word.
const WORD: usize = size_of::<u64>();

/// How long a network has for all of it.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whether the provider of `info` promises that order and keeps it.
pub(crate) fn keeps(info: Info) -> bool {
    if !info.provider().promises_order_of_writes() {
        return false;
    }
    let name = info.provider().name();
    let outcome = Trial::open(info, &name).and_then(|mut trial| trial.run());
    match &outcome {
        Ok(()) => tracing::debug!(provider = name, "writes keep their order"),
        Err(why) => tracing::warn!(provider = name, why, "the order of writes is not trusted"),
    }
    outcome.is_ok()
}

/// Why a provider is not trusted.
type Doubt = String;

/// The memory of one pair: bytes and their word, at both ends.
struct Pair {
    source: Block,
    target: Block,
    /// Of the source, where the provider asks for it, and of the target.
    local: Option<Registered>,
    remote: Registered,
}

struct Trial {
    /// Before the net: registrations end before their domain.
    pairs: Vec<Pair>,
    net: Net,
    me: Peer,
    /// Operations under way.
    under_way: usize,
    deadline: Instant,
}

impl Trial {
    fn open(info: Info, name: &str) -> Result<Self, Doubt> {
        let mut net = Net::open(info, name, 0).map_err(|error| error.to_string())?;
        let code = |what: &'static str| move |code: i32| format!("{what}: {code}");
        let address = net.address().map_err(code("its address"))?;
        let me = net.insert(&address).map_err(code("the way to itself"))?;
        let longest = ROUNDS.iter().map(|(len, _)| *len).max().unwrap_or(0);
        let locally = net.provider().registers_locally();
        let mut pairs = Vec::new();
        for _ in 0..PAIRS {
            let (source, target) = (Block::new(longest + WORD), Block::new(longest + WORD));
            let mut register = |block: &Block, access| {
                net.register(block.at(0, 0), block.len(), access)
                    .map_err(code("registering memory"))
            };
            let remote = register(&target, FI_REMOTE_WRITE)?;
            let local = locally.then(|| register(&source, FI_WRITE)).transpose()?;
            pairs.push(Pair {
                source,
                target,
                local,
                remote,
            });
        }
        Ok(Self {
            pairs,
            net,
            me,
            under_way: 0,
            deadline: Instant::now() + PATIENCE,
        })
    }

    fn run(&mut self) -> Result<(), Doubt> {
        let mut number = 0;
        for (len, rounds) in ROUNDS {
            for _ in 0..rounds {
                number += 1;
                for pair in 0..PAIRS {
                    self.fill(pair, len, number);
                    self.write(pair, 0, len)?;
                    self.write(pair, len, WORD)?;
                }
                self.check(len, number)?;
            }
        }
        Ok(())
    }

    /// What is to be written of a pair: `len` bytes that all say `number`, and a word that does.
    fn fill(&self, pair: usize, len: usize, number: u64) {
        let places = (0..=len).step_by(WORD);
        places.for_each(|place| self.pairs[pair].source.store(place, number));
    }

    /// Waits for the words of all pairs; the `len` bytes before each must be there then.
    fn check(&mut self, len: usize, number: u64) -> Result<(), Doubt> {
        let mut seen = [false; PAIRS];
        while seen != [true; PAIRS] {
            self.progress()?;
            for (pair, seen) in seen.iter_mut().enumerate().filter(|(_, seen)| !**seen) {
                let target = &self.pairs[pair].target;
                if target.load(len) != number {
                    continue;
                }
                *seen = true;
                if let Some(late) = (0..len).step_by(WORD).find(|at| target.load(*at) != number) {
                    return Err(format!("of {len} bytes those from {late} on were late"));
                }
            }
        }
        while self.under_way > 0 {
            self.progress()?;
        }
        Ok(())
    }

    /// Writes `len` bytes at `start` of a pair to the same place of its target.
    fn write(&mut self, pair: usize, start: usize, len: usize) -> Result<(), Doubt> {
        let by_address = self.net.provider().names_by_address();
        loop {
            let Self { net, pairs, me, .. } = self;
            let Pair {
                source,
                target,
                local,
                remote,
            } = &pairs[pair];
            let base = if by_address {
                target.at(0, 0).addr()
            } else {
                0
            };
            let place = Remote {
                address: (base + start) as u64,
                key: remote.key(),
            };
            // SAFETY: `len` bytes of the block, which lives until the net's endpoint is closed; they
            // are left alone until all operations of the round have ended.
            let data = unsafe { SendBuffer::contiguous(source.at(start, len), len) };
            let Some(region) = data.region() else {
                return Err("no region".to_owned());
            };
            let op = OpId((2 * pair + usize::from(start > 0)) as u32);
            match net.write(*me, (region, local.as_ref()), place, None, op) {
                Took::Yes => break,
                Took::Busy => self.progress()?,
                Took::Failed(code) => return Err(format!("a write: {code}")),
            }
        }
        self.under_way += 1;
        Ok(())
    }

    fn progress(&mut self) -> Result<(), Doubt> {
        match self.net.read() {
            Reading::Some(count) => self.under_way = self.under_way.saturating_sub(count),
            Reading::Nothing => std::thread::yield_now(),
            Reading::Fault(fault) => return Err(format!("a write ended with {}", fault.error)),
            Reading::Broken(code) => return Err(format!("its queue broke: {code}")),
        }
        match Instant::now() < self.deadline {
            true => Ok(()),
            false => Err(format!("it took longer than {PATIENCE:?}")),
        }
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        // Nothing is written any more once the endpoint is closed; then the registrations and their
        // memory go, then the rest of the net.
        self.net.close_endpoint();
        if self.net.is_abandoned() {
            self.pairs.drain(..).for_each(std::mem::forget);
        }
    }
}

impl Block {
    /// The word at `offset`, which the provider may be writing.
    fn word(&self, offset: usize) -> &AtomicU64 {
        let place = self.at(offset, WORD).cast::<AtomicU64>();
        debug_assert!(place.is_aligned());
        // SAFETY: inside of the block, which is aligned to a page, at a multiple of the word's length;
        // it was zeroed, and nobody has a reference to it but as this.
        unsafe { &*place }
    }

    fn load(&self, offset: usize) -> u64 {
        self.word(offset).load(Acquire)
    }

    fn store(&self, offset: usize, value: u64) {
        self.word(offset).store(value, Release);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use super::*;
    use crate::config::OfiOptions;
    use crate::open::{Use, open_info};

    fn trial() -> Option<Trial> {
        let options = OfiOptions {
            provider: "tcp;ofi_rxm".to_owned(),
            ..OfiOptions::default()
        };
        match open_info(&options, 2, Use::Bytes) {
            Ok(info) => Some(Trial::open(info, "tcp;ofi_rxm").unwrap()),
            Err(error) => {
                eprintln!("SKIPPED: {error}");
                None
            }
        }
    }

    #[test]
    fn a_provider_that_keeps_the_order_passes() {
        let Some(mut trial) = trial() else { return };
        trial.run().unwrap();
    }

    #[test]
    fn a_word_without_its_bytes_is_found_out() {
        let Some(mut trial) = trial() else { return };
        for pair in 0..PAIRS {
            trial.fill(pair, 64, 7);
            let bytes = if pair + 1 == PAIRS { 56 } else { 64 };
            trial.write(pair, 0, bytes).unwrap();
            trial.write(pair, 64, WORD).unwrap();
        }
        let doubt = trial.check(64, 7).unwrap_err();
        assert_eq!(doubt, "of 64 bytes those from 56 on were late");
    }
}
