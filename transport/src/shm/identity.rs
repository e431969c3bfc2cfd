//! Who a rank is: in its published address, in its segment's header, and in its hellos.

use std::os::unix::fs::MetadataExt;
use std::sync::atomic::Ordering::Relaxed;

use tagwire_base::Rank;

use super::arena;
use super::layout::{IdentityLine, MAGIC, VERSION};
use super::room::Size;
use super::segment::Extent;

/// Who a rank is. What a peer says of itself is believed only where it can be checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    /// The rank ...
    pub rank: u32,
    /// ... in a job of so many.
    pub size: u32,
    /// Its process ...
    pub pid: u32,
    /// ... in this namespace of process ids (an inode; 0 when it is not known).
    pub namespace: u64,
    /// The number of the segment's descriptor there.
    pub descriptor: u32,
    /// A random number that also lies in the process's private memory ...
    pub nonce: u64,
    /// ... at this address.
    pub nonce_address: u64,
    /// Whether the process takes part in memory barriers of others (see `waiter`).
    pub barriers: bool,
    /// Whether its segment has a match list.
    pub matches: bool,
    /// The largest room that it may grant a sender.
    pub room: Size,
    /// Bytes of its arena, a multiple of [`arena::STEP`].
    pub arena: u64,
}

impl Identity {
    /// Bytes of an address.
    pub(super) const LEN: usize = 64;

    fn to_words(self) -> [u64; 8] {
        [
            MAGIC | VERSION << 56,
            u64::from(self.rank) | u64::from(self.size) << 32,
            u64::from(self.pid),
            self.namespace,
            u64::from(self.descriptor),
            self.nonce,
            self.nonce_address,
            u64::from(self.barriers)
                | u64::from(self.matches) << 1
                | u64::from(self.room.0) << 2
                | self.arena,
        ]
    }

    fn from_words(words: [u64; 8]) -> Result<Self, String> {
        let (magic, version) = (words[0] & (u64::MAX >> 8), words[0] >> 56);
        if magic != MAGIC {
            return Err("it does not begin with the mark of this transport".to_owned());
        }
        if version != VERSION {
            return Err(format!("version {version} where {VERSION} is spoken"));
        }
        let number = |word: u64, name: &str| {
            u32::try_from(word).map_err(|_| format!("impossible {name} {word}"))
        };
        let rank = words[1] as u32;
        if rank > Rank::MAX {
            return Err(format!("impossible rank {rank}"));
        }
        Ok(Self {
            rank,
            size: (words[1] >> 32) as u32,
            pid: number(words[2], "process id")?,
            namespace: words[3],
            descriptor: number(words[4], "descriptor")?,
            nonce: words[5],
            nonce_address: words[6],
            barriers: words[7] & 1 != 0,
            matches: match words[7] % arena::STEP {
                flags @ 0..=15 => flags & 2 != 0,
                flags => return Err(format!("unknown flags {flags:#x}")),
            },
            room: Size((words[7] >> 2 & 3) as u8),
            arena: match words[7] & !(arena::STEP - 1) {
                len @ 0..=arena::MOST => len,
                len => return Err(format!("an impossible arena of {len} bytes")),
            },
        })
    }

    /// The parts of its segment.
    pub(super) const fn extent(&self) -> Extent {
        Extent {
            size: self.size,
            matches: self.matches,
            room: self.room,
            arena: self.arena,
        }
    }

    /// As the address that is published.
    pub(super) fn to_bytes(self) -> Vec<u8> {
        self.to_words()
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect()
    }

    /// Reads a published address, or reports what is wrong with it.
    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() != Self::LEN {
            return Err(format!("{} bytes instead of {}", bytes.len(), Self::LEN));
        }
        let mut words = [0; 8];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            let mut array = [0; 8];
            array.copy_from_slice(bytes);
            *word = u64::from_le_bytes(array);
        }
        Self::from_words(words)
    }

    /// Writes it to shared memory; whoever reads it is told by another word that it is there.
    pub(super) fn write(self, line: &IdentityLine) {
        let words = self.to_words();
        for (word, value) in Self::atomics(line).into_iter().zip(words) {
            word.store(value, Relaxed);
        }
    }

    /// Reads it from shared memory, or reports what is wrong with it.
    pub(super) fn read(line: &IdentityLine) -> Result<Self, String> {
        Self::from_words(Self::atomics(line).map(|word| word.load(Relaxed)))
    }

    fn atomics(line: &IdentityLine) -> [&std::sync::atomic::AtomicU64; 8] {
        [
            &line.magic,
            &line.rank,
            &line.pid,
            &line.namespace,
            &line.descriptor,
            &line.nonce,
            &line.nonce_address,
            &line.flags,
        ]
    }

    /// Whether the process with this identity can be named from the namespace of `other`.
    pub(super) const fn shares_namespace(&self, other: &Self) -> bool {
        self.namespace != 0 && self.namespace == other.namespace
    }
}

/// The inode of this process's namespace of process ids; 0 when the system does not tell.
pub(super) fn own_namespace() -> u64 {
    std::fs::metadata("/proc/self/ns/pid").map_or(0, |metadata| metadata.ino())
}
