//! The shared file pointer: a word that all members of a file add to.
//!
//! | where the job's ranks are | what it is | who changes it |
//! |---|---|---|
//! | on one host | a word in memory that the members map, each at its first use | the caller, by an instruction |
//! | on several, or without shared memory | a word of member 0 | the caller, by remote memory access, which member 0 serves in its progress |
//! | a file of one member | a word | the caller |
//!
//! There are two words, which take turns: a new view begins with the other one, which was set to 0 when the last began. Nobody uses that
//! then, since all have agreed on the view after. So one exchange of all members is enough for a view.
//!
//! A lock of the file would serve too, but takes several system calls each time, and file systems without locks would have no shared
//! pointers. The word is made when the file is opened, since later calls are of one member alone.
#![allow(unsafe_code)]

use std::fmt;
use std::mem;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicU64, AtomicUsize};

use tagwire_coll::Team;
use tagwire_pml::rma::Atomic;
use tagwire_pml::{Messenger, Region, Target};
use tagwire_transport::{RecvBuffer, SharedMemory};

use crate::{Error, Result};

/// The words that members share, which take turns.
const WORDS: usize = 2;

/// Bytes of them.
const SHARED: usize = 8 * WORDS;

/// Bytes of a key in messages, at most.
pub(crate) const KEY: usize = 126;

/// How members reach the word: what member 0 tells them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Way {
    /// There is none.
    #[default]
    Nowhere,
    /// By mapping memory with this key.
    Map(Vec<u8>),
    /// By remote memory access with this key.
    Reach(Vec<u8>),
}

impl Way {
    /// Returns it as bytes of a message: so many in any case.
    pub(crate) fn encode(&self) -> [u8; KEY + 2] {
        let (kind, key) = match self {
            Self::Nowhere => (0, &[][..]),
            Self::Map(key) => (1, &key[..]),
            Self::Reach(key) => (2, &key[..]),
        };
        let mut bytes = [0; KEY + 2];
        bytes[0] = kind;
        bytes[1] = key.len() as u8;
        bytes[2..2 + key.len()].copy_from_slice(key);
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Self {
        let [kind, len, rest @ ..] = bytes else {
            return Self::Nowhere;
        };
        let key = rest.get(..usize::from(*len)).map(<[u8]>::to_vec);
        match (kind, key) {
            (1, Some(key)) => Self::Map(key),
            (2, Some(key)) => Self::Reach(key),
            _ => Self::Nowhere,
        }
    }
}

/// What member 0 has made.
#[derive(Default)]
pub(crate) struct Made {
    memory: Option<SharedMemory>,
    _exposed: Option<Exposed>,
}

/// A word that others reach, until this is dropped.
struct Exposed {
    /// Their own allocation, which is at an address that stays.
    words: Option<Box<[AtomicU64; WORDS]>>,
    region: Option<Region>,
    messenger: std::sync::Arc<Messenger>,
}

impl Drop for Exposed {
    fn drop(&mut self) {
        let withdrawn = self
            .region
            .take()
            .map(|region| self.messenger.window().withdraw(region));
        // On a thread that may not call, the memory stays lent.
        if matches!(withdrawn, Some(Err(_))) {
            mem::forget(self.words.take());
        }
    }
}

impl Made {
    /// Makes the word of a group, at member 0. Returns how the others reach it.
    ///
    /// # Errors
    /// When the system has no memory, or the transport none that is reached.
    pub(crate) fn new(team: &Team, is_on_one_host: bool) -> Result<(Self, Way)> {
        if is_on_one_host && let Some((memory, key)) = shared(team, SHARED)? {
            let made = Self {
                memory: Some(memory),
                _exposed: None,
            };
            return Ok((made, Way::Map(key)));
        }
        let messenger = std::sync::Arc::clone(team.messenger());
        let words: Box<[AtomicU64; WORDS]> = Box::default();
        let start = words.as_ptr().cast::<u8>().cast_mut();
        // SAFETY: the words are at addresses of their own, have as many bytes, and are freed after the region was withdrawn, or never.
        // They are changed by atomic operations alone.
        let memory = unsafe { RecvBuffer::contiguous(start, SHARED) };
        let region = messenger.window().expose(&memory)?;
        let key = region.key().to_vec();
        // Withdrawn in any case, before the words are freed.
        let exposed = Exposed {
            words: Some(words),
            region: Some(region),
            messenger,
        };
        if key.len() > KEY {
            let text = "the key of the shared file pointer is too long";
            return Err(Error::Unsupported(text.to_owned()));
        }
        let made = Self {
            memory: None,
            _exposed: Some(exposed),
        };
        Ok((made, Way::Reach(key)))
    }
}

/// Makes so many bytes of memory for the ranks of this host. `None` where the transport has none to share.
pub(crate) fn shared(team: &Team, bytes: usize) -> Result<Option<(SharedMemory, Vec<u8>)>> {
    let Some(board) = SharedMemory::board_bytes(bytes.next_multiple_of(4096)) else {
        return Ok(None);
    };
    let with = team.peer(1)?.0;
    let opened = team
        .messenger()
        .with_boards(with, |boards, _| boards.open_board(board))?;
    let Some(opened) = opened.flatten() else {
        return Ok(None);
    };
    let memory = SharedMemory::new(opened.memory);
    let is_usable = opened.key.len() <= KEY && memory.reserve().is_ok();
    Ok(is_usable.then_some((memory, opened.key)))
}

/// The shared file pointer of an open file, in etypes of the view.
pub(crate) struct SharedPointer {
    place: Place,
    /// Views that there were before: which word it is.
    turn: AtomicUsize,
    _made: Made,
}

enum Place {
    Own([AtomicU64; WORDS]),
    Mapped {
        key: Vec<u8>,
        memory: OnceLock<SharedMemory>,
    },
    Remote(Target),
    None,
}

impl fmt::Debug for SharedPointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.place {
            Place::Own(_) => "own",
            Place::Mapped { .. } => "mapped",
            Place::Remote(_) => "remote",
            Place::None => "none",
        })
    }
}

impl SharedPointer {
    /// Returns that of a file of one member.
    pub(crate) fn own() -> Self {
        Self {
            place: Place::Own(Default::default()),
            turn: AtomicUsize::new(0),
            _made: Made::default(),
        }
    }

    /// Returns that of a group which reaches it so.
    ///
    /// # Errors
    /// When member 0 cannot be reached.
    pub(crate) fn new(team: &Team, mut made: Made, way: Way) -> Result<Self> {
        let place = match way {
            Way::Nowhere => Place::None,
            Way::Map(key) => Place::Mapped {
                key,
                memory: made
                    .memory
                    .take()
                    .map_or_else(OnceLock::new, OnceLock::from),
            },
            Way::Reach(key) => {
                let rank = team.peer(0)?.0;
                Place::Remote(team.messenger().window().reach(rank, &key)?)
            }
        };
        Ok(Self {
            place,
            turn: AtomicUsize::new(0),
            _made: made,
        })
    }

    /// Returns whether the members map memory of each other, on all of them the same.
    pub(crate) const fn is_mapped(&self) -> bool {
        matches!(self.place, Place::Mapped { .. })
    }

    /// Adds to it. Returns what it was.
    ///
    /// # Errors
    /// When it cannot be reached.
    pub(crate) fn add(&self, team: &Team, units: u64) -> Result<u64> {
        match &self.place {
            Place::Remote(_) => self.remote(team, Atomic::Sum(units), self.turn()),
            _ => Ok(self.word(team, self.turn())?.fetch_add(units, SeqCst)),
        }
    }

    /// Begins with a view at 0, once all members have agreed on it.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub(crate) fn restart(&self, team: &Team) -> Result<()> {
        let before = self.turn.fetch_add(1, SeqCst) % WORDS;
        match (&self.place, team.me()) {
            // The one before is the next.
            (Place::None, _) => Ok(()),
            (_, 0) => self.set_word(team, 0, before),
            _ => Ok(()),
        }
    }

    /// Returns which word it is.
    fn turn(&self) -> usize {
        self.turn.load(SeqCst) % WORDS
    }

    /// Sets it.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub(crate) fn set(&self, team: &Team, units: u64) -> Result<()> {
        self.set_word(team, units, self.turn())
    }

    fn set_word(&self, team: &Team, units: u64, turn: usize) -> Result<()> {
        match &self.place {
            Place::Remote(_) => self.remote(team, Atomic::Replace(units), turn).map(drop),
            _ => {
                self.word(team, turn)?.store(units, SeqCst);
                Ok(())
            }
        }
    }

    fn remote(&self, team: &Team, atomic: Atomic, turn: usize) -> Result<u64> {
        let Place::Remote(target) = &self.place else {
            return Err(none());
        };
        let access = team
            .messenger()
            .window()
            .keeping()
            .atomic(atomic, target, 8 * turn as u64)?;
        Ok(team.messenger().window().wait(access, None)?)
    }

    /// Returns a word where they are in this process.
    fn word(&self, team: &Team, turn: usize) -> Result<&AtomicU64> {
        match &self.place {
            Place::Own(words) => Ok(&words[turn]),
            Place::Mapped { key, memory } => {
                if let Some(memory) = memory.get() {
                    return Ok(memory.word(8 * turn));
                }
                let joined = join(team, key, SHARED)?;
                Ok(memory.get_or_init(|| joined).word(8 * turn))
            }
            Place::Remote(_) | Place::None => Err(none()),
        }
    }
}

/// Maps the memory of member 0, of so many bytes.
pub(crate) fn join(team: &Team, key: &[u8], bytes: usize) -> Result<SharedMemory> {
    let board = SharedMemory::board_bytes(bytes.next_multiple_of(4096)).ok_or_else(none)?;
    let from = team.peer(0)?.0;
    let joined = team
        .messenger()
        .with_boards(from, |boards, from| boards.join_board(from, board, key))?;
    let joined = joined.ok_or_else(none)?;
    let joined = joined.map_err(|error| {
        let text = format!("the memory of the file's members cannot be mapped: {error}");
        Error::Unsupported(text)
    })?;
    Ok(SharedMemory::new(joined))
}

#[cold]
fn none() -> Error {
    let text = "the file has no shared file pointer: the transport has no remote memory access";
    Error::Unsupported(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_come_as_they_were() {
        let longest = vec![7; KEY];
        for way in [Way::Nowhere, Way::Map(vec![1, 2]), Way::Reach(longest)] {
            assert_eq!(Way::decode(&way.encode()), way);
        }
        assert_eq!(Way::decode(&[]), Way::Nowhere);
        assert_eq!(Way::decode(&[1, 200, 0]), Way::Nowhere, "cut off");
    }
}
