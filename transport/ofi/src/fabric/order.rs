//! When a provider's writes become visible: what it promises is put to the test.
//!
//! A net of the test's own writes to itself, over the network: bytes, and a word behind them in memory of
//! its own, several such pairs under way at once. Whoever sees the word must find the bytes, all of them, of
//! few and of many, the last ones first; one that does not says that writes keep no order. Whoever is told that a write has been
//! delivered must find its bytes too. It takes some milliseconds, most of them to connect, once for each provider and process.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Release};
use std::sync::{Mutex, PoisonError};
// The machine's own clock, not the rank's: what is tried out is this machine.
use std::time::{Duration, Instant};

use tagwire_libfabric_sys::bindings::{FI_REMOTE_WRITE, FI_WRITE};
use tagwire_transport::SendBuffer;

use super::memory::Block;
use super::{Info, Net, OpId, Peer, Reading, Registered, Remote, Took};
use crate::quirks;

/// Bytes, and how often.
const ROUNDS: [(usize, u64); 7] = [
    (8, 50),
    (13, 50),
    (1 << 10, 50),
    (4_099, 50),
    (16 << 10, 50),
    (64 << 10, 20),
    (512 << 10, 5),
];

/// Pairs of bytes and word under way at once.
const PAIRS: usize = 4;

/// The length of a word.
const WORD: usize = size_of::<u64>();

/// How long a network has for all of it: a rank does nothing else meanwhile. One that takes longer is not trusted.
const PATIENCE: Duration = Duration::from_secs(1);

/// What a provider keeps of what it promises.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Kept {
    /// Writes to one peer become visible in their order.
    pub order: bool,
    /// A write is visible when its delivery is told (`FI_DELIVERY_COMPLETE`).
    pub delivery: bool,
}

/// What was found in this process, by library and provider.
static FOUND: Mutex<BTreeMap<(String, String), Kept>> = Mutex::new(BTreeMap::new());

/// Returns whether the provider of `info` promises the order of writes and keeps it. One that does not promise is not tried, nor one that
/// cannot but keep it.
pub(crate) fn keeps(info: &Info) -> bool {
    let provider = info.provider();
    provider.promises_order_of_writes() && (quirks::streams(&provider) || kept(info).order)
}

/// Returns what the provider of `info` keeps. Tries it the first time.
pub(crate) fn kept(info: &Info) -> Kept {
    let name = info.provider().name();
    let key = (info.library().file().to_owned(), name.clone());
    // Who opens at the same time waits, and tries nothing.
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    *found.entry(key).or_insert_with(|| {
        let opened = info.duplicate().ok_or_else(|| "no memory".to_owned());
        let kept = opened.and_then(|info| Trial::open(info, &name, PATIENCE)?.run());
        match &kept {
            Ok(kept) => tracing::debug!(provider = name, ?kept, "writes were tried"),
            Err(why) => tracing::warn!(provider = name, why, "writes are not trusted"),
        }
        kept.unwrap_or_default()
    })
}

/// Why a provider is not trusted.
type Doubt = String;

/// Memory at one end, with its registration, where there has to be one.
struct Area {
    /// Before the memory: it ends first.
    registered: Option<Registered>,
    block: Block,
}

/// What is written and where it goes.
struct Route {
    source: Area,
    target: Area,
}

/// Bytes, and the word behind them.
struct Pair {
    bytes: Route,
    word: Route,
}

struct Trial {
    /// Before the net: registrations end before their domain.
    pairs: Vec<Pair>,
    net: Net,
    me: Peer,
    /// Operations under way.
    under_way: usize,
    /// How many bytes the pairs write in this round, and which.
    len: usize,
    number: u64,
    /// Why not all of it is kept.
    late: Option<Doubt>,
    undelivered: Option<Doubt>,
    patience: Duration,
    deadline: Instant,
}

impl Area {
    fn open(net: &mut Net, len: usize, access: Option<u64>) -> Result<Self, i32> {
        let block = Block::new(len);
        let start = block.at(0, 0);
        // SAFETY: an area keeps its block, and drops the registration first.
        let registered = access.map(|access| unsafe { net.register(start, block.len(), access) });
        Ok(Self {
            registered: registered.transpose()?,
            block,
        })
    }
}

impl Route {
    fn open(net: &mut Net, len: usize) -> Result<Self, i32> {
        let locally = net.provider().registers_locally().then_some(FI_WRITE);
        Ok(Self {
            source: Area::open(net, len, locally)?,
            target: Area::open(net, len, Some(FI_REMOTE_WRITE))?,
        })
    }
}

impl Trial {
    fn open(info: Info, name: &str, patience: Duration) -> Result<Self, Doubt> {
        let net = Net::open(info, name, 0).map_err(|error| error.to_string())?;
        let code = |what: &'static str| move |code: i32| format!("{what}: {code}");
        let address = net.address().map_err(code("its address"))?;
        let me = net.insert(&address).map_err(code("the way to itself"))?;
        let longest = ROUNDS.iter().map(|(len, _)| *len).max().unwrap_or(0);
        let mut trial = Self {
            pairs: Vec::new(),
            net,
            me,
            under_way: 0,
            len: 0,
            number: 0,
            late: None,
            undelivered: None,
            patience,
            deadline: Instant::now() + patience,
        };
        for _ in 0..PAIRS {
            let failed = code("registering memory");
            trial.pairs.push(Pair {
                bytes: Route::open(&mut trial.net, longest).map_err(failed)?,
                word: Route::open(&mut trial.net, WORD).map_err(failed)?,
            });
        }
        Ok(trial)
    }

    fn run(mut self) -> Result<Kept, Doubt> {
        let mut number = 0;
        for (len, rounds) in ROUNDS {
            for _ in 0..rounds {
                // Odd, so that all are different, as are most of their bytes.
                number = u64::wrapping_add(number, 0x9e37_79b9_7f4a_7c15);
                for pair in 0..PAIRS {
                    self.fill(pair, len, number);
                    self.write(pair, len)?;
                    self.write_word(pair)?;
                }
                self.check()?;
            }
        }
        if let Some(why) = &self.late
            && self.net.provider().promises_order_of_writes()
        {
            tracing::warn!(why, "the order of writes is not trusted");
        }
        if let Some(why) = &self.undelivered {
            tracing::debug!(why, "deliveries of writes are not trusted");
        }
        Ok(Kept {
            order: self.late.is_none(),
            delivery: self.undelivered.is_none(),
        })
    }

    /// What is to be written of a pair: `len` bytes that all say `number`, and a word that does.
    fn fill(&mut self, pair: usize, len: usize, number: u64) {
        (self.len, self.number) = (len, number);
        let Pair { bytes, word } = &self.pairs[pair];
        let places = (0..len).step_by(WORD);
        places.for_each(|place| bytes.source.block.store(place, number));
        word.source.block.store(0, number);
    }

    /// Waits for the words of all pairs; the bytes before each must be there then.
    fn check(&mut self) -> Result<(), Doubt> {
        let mut seen = [false; PAIRS];
        while seen != [true; PAIRS] {
            self.progress()?;
            for (pair, seen) in seen.iter_mut().enumerate().filter(|(_, seen)| !**seen) {
                if self.pairs[pair].word.target.block.load(0) != self.number {
                    continue;
                }
                *seen = true;
                if let Some(at) = self.missing(pair) {
                    let what = format!("of {} bytes those at {at} were late", self.len);
                    self.late.get_or_insert(what);
                }
            }
        }
        while self.under_way > 0 {
            self.progress()?;
        }
        Ok(())
    }

    /// Returns where bytes of a pair are not there yet.
    fn missing(&self, pair: usize) -> Option<usize> {
        let bytes = &self.pairs[pair].bytes.target.block;
        // The last ones have had the least time.
        let is_late = |at: &usize| {
            let counts = u64::MAX >> (8 * (WORD - WORD.min(self.len - at)));
            (bytes.load(*at) ^ self.number) & counts != 0
        };
        (0..self.len).step_by(WORD).rev().find(is_late)
    }

    /// The delivery of a write has been told.
    fn is_told(&mut self, op: OpId) {
        let (pair, is_word) = (op.slot() as usize / 2, op.slot() % 2 == 1);
        let missing = match is_word {
            true => (self.pairs[pair].word.target.block.load(0) != self.number).then_some(0),
            false => self.missing(pair),
        };
        if let Some(at) = missing {
            let what = format!(
                "{} bytes were told before those at {at} were there",
                self.len
            );
            self.undelivered.get_or_insert(what);
        }
    }

    /// Writes the first `len` bytes of a pair to their target.
    fn write(&mut self, pair: usize, len: usize) -> Result<(), Doubt> {
        self.post(|pair| &pair.bytes, pair, len, OpId::new(2 * pair as u32, 0))
    }

    /// Writes the word of a pair to its target.
    fn write_word(&mut self, pair: usize) -> Result<(), Doubt> {
        self.post(
            |pair| &pair.word,
            pair,
            WORD,
            OpId::new(2 * pair as u32 + 1, 0),
        )
    }

    fn post(
        &mut self,
        way: impl Fn(&Pair) -> &Route,
        pair: usize,
        len: usize,
        op: OpId,
    ) -> Result<(), Doubt> {
        let by_address = self.net.provider().names_by_address();
        loop {
            let Route { source, target } = way(&self.pairs[pair]);
            let place = Remote {
                address: match by_address {
                    true => target.block.at(0, 0).addr() as u64,
                    false => 0,
                },
                key: target.registered.as_ref().map_or(0, Registered::key),
            };
            // SAFETY: `len` bytes of the block, which lives until the net's endpoint is closed; they
            // are left alone until all operations of the round have ended.
            let data = unsafe { SendBuffer::contiguous(source.block.at(0, len), len) };
            let Some(region) = data.region() else {
                return Err("no region".to_owned());
            };
            let local = source.registered.as_ref();
            // SAFETY: as the buffer says, which is made of the source.
            let took = unsafe { self.net.write(self.me, region, local, place, None, op) };
            match took {
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
            Reading::Some(count) => {
                self.under_way = self.under_way.saturating_sub(count);
                for place in 0..count {
                    if let Some(op) = self.net.completion(place).op {
                        self.is_told(op);
                    }
                }
            }
            Reading::Nothing => std::thread::yield_now(),
            Reading::Fault(fault) => return Err(format!("a write ended with {}", fault.error)),
            Reading::Broken(code) => return Err(format!("its queue broke: {code}")),
        }
        match Instant::now() < self.deadline {
            true => Ok(()),
            false => Err(format!("it took longer than {:?}", self.patience)),
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
    use crate::fixture;

    fn trial() -> Option<Trial> {
        let info = fixture::info_of("tcp;ofi_rxm")?;
        Some(Trial::open(info, "tcp;ofi_rxm", 12 * PATIENCE).unwrap())
    }

    #[test]
    fn a_provider_that_keeps_the_order_passes() {
        let Some(trial) = trial() else { return };
        let kept = trial.run().unwrap();
        assert_eq!(
            kept,
            Kept {
                order: true,
                delivery: true
            }
        );
    }

    #[test]
    fn a_word_without_its_bytes_is_found_out() {
        let Some(mut trial) = trial() else { return };
        for pair in 0..PAIRS {
            trial.fill(pair, 64, u64::MAX);
            let bytes = if pair + 1 == PAIRS { 61 } else { 64 };
            trial.write(pair, bytes).unwrap();
            trial.write_word(pair).unwrap();
        }
        trial.check().unwrap();
        assert_eq!(
            trial.late.as_deref(),
            Some("of 64 bytes those at 56 were late")
        );
    }

    #[test]
    fn a_delivery_that_is_told_too_early_is_found_out() {
        let Some(mut trial) = trial() else { return };
        for pair in 0..PAIRS {
            trial.fill(pair, 64, u64::MAX);
            trial.write(pair, 64).unwrap();
            trial.write_word(pair).unwrap();
        }
        trial.check().unwrap();
        assert_eq!(trial.undelivered, None);
        // Nothing of it was written.
        trial.fill(0, 16, 1);
        trial.is_told(OpId::new(0, 0));
        let why = "16 bytes were told before those at 8 were there";
        assert_eq!(trial.undelivered.as_deref(), Some(why));
    }
}
