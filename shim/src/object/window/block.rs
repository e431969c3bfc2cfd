//! The control block of a member: the words by which members of a window take turns.
//!
//! ```text
//!     0    long, waiting              the member that changes many values here, and one; how many wait for words of this block
//!     64   tickets, serving, readers  the lock of the window's memory at this member
//!     128  version, attached          of the table behind: odd while it is changed; how many entries it has
//!     192  looked, called, attends    of accesses that others ask for: when its process has looked; somebody has woken it; it looks
//!                                     all the time
//!     256  lines of each member       quick: whether its first thread changes a single value here by an instruction
//!                                     short: how many of its other threads do
//!                                     posts: how often it has exposed its memory to this member
//!                                     dones: how often it has completed its accesses to this member
//!                                     meetings: how many of all members it has begun, where it tells this member
//!                                     a line for what it asks of this member, and one for the reply
//!     ...  the table of attached memory, of a dynamic window alone
//! ```
//!
//! Members on one host map the blocks of each other, and change words by instructions. Others change them by remote memory
//! access, which the owner serves by the same instructions.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

use tagwire_pml::rma::Atomic;
use tagwire_pml::{Messenger, Target};
use tagwire_transport::{RecvBuffer, SharedMemory};

use crate::error::Result;
use crate::raw::{KeptWords, Out};

/// Bytes of a line of a processor's cache.
const LINE: usize = 64;

/// Where the lines of members begin.
const LINES: usize = 4 * LINE;

/// The number of the word that says when the process has looked.
const LOOKED: usize = 3 * LINE / 8;

/// Bytes of the lines of a member.
const STRIDE: usize = 3 * LINE;

/// A word of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word {
    Long,
    Tickets,
    Serving,
    Readers,
    Waiting,
    Version,
    Attached,
    Quick(usize),
    Short(usize),
    Posts(usize),
    Dones(usize),
    Meetings(usize),
}

/// What [`Word::Long`] holds.
pub(crate) mod long {
    /// Nobody has gone the long way yet: who goes the quick way notes it by a plain store.
    pub(crate) const UNTAKEN: u64 = 0;
    /// Nobody is on the long way; somebody was, or may be that has no barrier on all: notes are fenced. Beside the number of a member, and
    /// 1, that member is on it.
    pub(crate) const FREE: u64 = 1 << 63;
}

impl Word {
    #[inline]
    const fn offset(self) -> usize {
        match self {
            Self::Long => 0,
            Self::Tickets => LINE,
            Self::Serving => LINE + 8,
            Self::Readers => LINE + 16,
            Self::Waiting => 8,
            Self::Version => 2 * LINE,
            Self::Attached => 2 * LINE + 8,
            Self::Quick(member) => LINES + member * STRIDE,
            Self::Short(member) => LINES + member * STRIDE + 8,
            Self::Posts(member) => LINES + member * STRIDE + 16,
            Self::Dones(member) => LINES + member * STRIDE + 24,
            Self::Meetings(member) => LINES + member * STRIDE + 32,
        }
    }
}

/// Returns how many bytes the block of a member has, before its table of attached memory.
pub(crate) const fn bytes(members: usize) -> usize {
    LINES + members * STRIDE
}

/// Memory that this process has mapped, or its own.
pub(crate) enum Mapping {
    /// Of the ranks of a host.
    Shared(SharedMemory),
    /// Of this process alone.
    Own(Box<[AtomicU64]>),
}

impl fmt::Debug for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shared(shared) => shared.fmt(f),
            Self::Own(words) => write!(f, "{} words", words.len()),
        }
    }
}

impl Mapping {
    /// Returns so many bytes of this process alone, all zero.
    pub(crate) fn own(bytes: usize) -> Self {
        let words = std::iter::repeat_with(|| AtomicU64::new(0));
        Self::Own(words.take(bytes.div_ceil(8)).collect())
    }

    #[inline]
    fn word(&self, offset: usize) -> &AtomicU64 {
        match self {
            Self::Shared(shared) => shared.word(offset),
            Self::Own(words) => &words[offset / 8],
        }
    }

    /// Returns the words of a block from `offset` on, up to the lines of so many members.
    fn words(&self, offset: usize, members: usize) -> &[AtomicU64] {
        let count = bytes(members) / 8;
        match self {
            Self::Shared(shared) => shared.words(offset, count),
            Self::Own(words) => &words[offset / 8..][..count],
        }
    }

    /// Returns the address of so many bytes, for accesses that end before the mapping does.
    ///
    /// # Panics
    /// Where there are not so many.
    pub(crate) fn part(&self, offset: usize, bytes: usize) -> Out {
        let (start, len) = match self {
            Self::Shared(shared) => (shared.start().as_ptr(), shared.len()),
            Self::Own(words) => (words.as_ptr().cast_mut().cast::<u8>(), words.len() * 8),
        };
        assert!(offset <= len && bytes <= len - offset, "within the memory");
        Out::at_address(start.wrapping_add(offset))
    }
}

/// The control block of a member, as this process reaches it.
#[derive(Debug)]
pub(crate) enum Block {
    Mapped {
        memory: Arc<Mapping>,
        at: usize,
        /// Its words up to the lines of members.
        words: KeptWords<Mapping>,
        /// The number of the word by which this process notes the quick way.
        quick: usize,
    },
    Remote(Target),
}

impl Block {
    /// Returns the block at an offset of mapped memory, of a window of so many members.
    /// This process is member `me`.
    pub(crate) fn at(memory: &Arc<Mapping>, at: usize, (me, members): (usize, usize)) -> Self {
        Self::Mapped {
            memory: Arc::clone(memory),
            at,
            quick: Word::Quick(me).offset() / 8,
            words: KeptWords::new(memory, |memory| memory.words(at, members)),
        }
    }

    /// Returns whether this process changes its words by instructions.
    #[inline]
    pub(crate) const fn is_mapped(&self) -> bool {
        matches!(self, Self::Mapped { .. })
    }

    /// Returns the words of the quick way: `None` where the block is not mapped.
    #[inline(always)]
    pub(crate) fn quick(&self) -> Option<QuickWords<'_>> {
        let Self::Mapped { words, quick, .. } = self else {
            return None;
        };
        let words = words.get();
        let own = words.get(*quick)?;
        let [long, waiting, ..] = words else {
            return None;
        };
        Some(QuickWords { long, waiting, own })
    }

    /// Returns the lines by which a member asks for accesses: `None` where the block is not mapped.
    #[inline]
    pub(super) fn lines(&self, member: usize) -> Option<Lines<'_>> {
        let Self::Mapped { words, .. } = self else {
            return None;
        };
        let words = words.get();
        let first = (LINES + member * STRIDE + LINE) / 8;
        let (ask, reply) = words.get(first..first + 2 * LINE / 8)?.split_at(LINE / 8);
        let [looked, called, attends, ..] = words.get(LOOKED..)? else {
            return None;
        };
        Some(Lines {
            ask,
            reply,
            looked,
            called,
            attends,
        })
    }

    /// Returns the same block once more, as [`at`](Self::at) does: `None` where it is not mapped.
    pub(super) fn again(&self, group: (usize, usize)) -> Option<Self> {
        match self {
            Self::Mapped { memory, at, .. } => Some(Self::at(memory, *at, group)),
            Self::Remote(_) => None,
        }
    }

    /// Adds to a word. Returns what it was.
    ///
    /// # Errors
    /// When the member is gone.
    #[inline]
    pub(crate) fn add(&self, messenger: &Messenger, word: Word, value: u64) -> Result<u64> {
        match self {
            Self::Mapped { memory, at, .. } => {
                Ok(memory.word(at + word.offset()).fetch_add(value, SeqCst))
            }
            Self::Remote(target) => remote(messenger, target, word, Atomic::Sum(value)),
        }
    }

    /// Subtracts from a word.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    #[inline]
    pub(crate) fn subtract(&self, messenger: &Messenger, word: Word, value: u64) -> Result {
        self.add(messenger, word, value.wrapping_neg()).map(drop)
    }

    /// Returns a word.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    #[inline]
    pub(crate) fn get(&self, messenger: &Messenger, word: Word) -> Result<u64> {
        match self {
            Self::Mapped { memory, at, .. } => Ok(memory.word(at + word.offset()).load(SeqCst)),
            Self::Remote(target) => remote(messenger, target, word, Atomic::Or(0)),
        }
    }

    /// Sets a word.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    #[inline]
    pub(crate) fn set(&self, messenger: &Messenger, word: Word, value: u64) -> Result {
        match self {
            Self::Mapped { memory, at, .. } => {
                memory.word(at + word.offset()).store(value, SeqCst);
                Ok(())
            }
            Self::Remote(target) => {
                remote(messenger, target, word, Atomic::Replace(value)).map(drop)
            }
        }
    }

    /// Sets a word that has a value. Returns whether it had.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    #[inline]
    pub(crate) fn replace(
        &self,
        messenger: &Messenger,
        word: Word,
        (compare, swap): (u64, u64),
    ) -> Result<bool> {
        match self {
            Self::Mapped { memory, at, .. } => {
                let word = memory.word(at + word.offset());
                let replaced = word.compare_exchange(compare, swap, SeqCst, SeqCst);
                Ok(replaced.is_ok())
            }
            Self::Remote(target) => {
                let atomic = Atomic::CompareSwap { compare, swap };
                Ok(remote(messenger, target, word, atomic)? == compare)
            }
        }
    }

    /// Writes whole words of the block, which is mapped: of this process's own.
    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) {
        let Self::Mapped { memory, at, .. } = self else {
            debug_assert!(false, "only the owner writes its table");
            return;
        };
        for (place, word) in bytes.as_chunks::<8>().0.iter().enumerate() {
            let to = memory.word(at + offset + place * 8);
            to.store(u64::from_ne_bytes(*word), SeqCst);
        }
    }

    /// Copies bytes out of the block.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub(crate) fn read(
        &self,
        messenger: &Messenger,
        offset: usize,
        bytes: usize,
    ) -> Result<Vec<u8>> {
        match self {
            Self::Mapped { memory, at, .. } => {
                let words = (0..bytes.div_ceil(8)).map(|word| {
                    let word = memory.word(at + offset + word * 8);
                    word.load(SeqCst).to_ne_bytes()
                });
                let mut read: Vec<u8> = words.flatten().collect();
                read.truncate(bytes);
                Ok(read)
            }
            Self::Remote(target) => {
                let mut room = vec![0; bytes];
                let window = messenger.window();
                let buffer: RecvBuffer = Out::over(&mut room).buffer(0, bytes);
                let access = window.keeping().get(buffer, target, offset as u64)?;
                window.wait(access, None)?;
                Ok(room)
            }
        }
    }
}

/// The lines by which a member asks another for accesses.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lines<'w> {
    pub(super) ask: &'w [AtomicU64],
    pub(super) reply: &'w [AtomicU64],
    /// When the target has looked last.
    pub(super) looked: &'w AtomicU64,
    /// An origin has woken the target.
    pub(super) called: &'w AtomicU64,
    /// Not 0 while the target waits for a synchronization, and looks all the time.
    pub(super) attends: &'w AtomicU64,
}

/// The words of a mapped block that the quick way needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QuickWords<'w> {
    pub(crate) long: &'w AtomicU64,
    pub(crate) waiting: &'w AtomicU64,
    /// [`Word::Quick`] of this process.
    pub(crate) own: &'w AtomicU64,
}

fn remote(messenger: &Messenger, target: &Target, word: Word, atomic: Atomic) -> Result<u64> {
    let window = messenger.window();
    let access = window
        .keeping()
        .atomic(atomic, target, word.offset() as u64)?;
    Ok(window.wait(access, None)?)
}
