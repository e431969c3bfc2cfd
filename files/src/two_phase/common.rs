//! Memory that all members of a file map, where the job is on one host: in it they put the data of a collective write in the order of
//! the file, and the aggregator gives it to the system from there. So data is copied once, by all members at the same time, and before
//! the system does.
//!
//! ```text
//!     | a window of the file | a list of each member |  the window after it  | lists |
//! ```
//!
//! Windows take turns: members fill one while the aggregator writes the one before. They all meet between.
#![allow(unsafe_code)]

use std::fmt;
use std::ops::Range;
use std::slice;
use std::sync::atomic::Ordering::Relaxed;

use tagwire_coll::Team;
use tagwire_transport::SharedMemory;

use crate::Result;
use crate::code::{word, words};
use crate::pointer::{Way, join, shared};

/// Bytes of a member's list of extents. A round in which one has a longer list is made by messages.
const LIST: usize = 8192;

/// Windows at a time.
const TURNS: u64 = 2;

/// The memory, as a member maps it.
pub(crate) struct Common {
    memory: SharedMemory,
    /// Bytes of a window.
    window: usize,
    /// Bytes of a window and of the lists behind it.
    turn: usize,
}

impl fmt::Debug for Common {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.memory.len())
    }
}

impl Common {
    /// Makes memory for windows of so many bytes, with all other members. `None` where there is none for all of them.
    ///
    /// # Errors
    /// When a member fails.
    pub(crate) fn new(team: &Team, window: u64) -> Result<Option<Self>> {
        let window = (window as usize).next_multiple_of(4096);
        let turn = window + LIST * team.size();
        let bytes = turn * TURNS as usize;
        let made = match team.me() {
            // Where it cannot be made, the exchange is by messages.
            0 => shared(team, bytes).ok().flatten(),
            _ => None,
        };
        let (own, key) = made.map_or((None, Way::Nowhere), |(memory, key)| {
            (Some(memory), Way::Map(key))
        });
        let mut told = key.encode();
        team.broadcast(&mut told, 0)?;
        let memory = match (own, Way::decode(&told)) {
            (None, Way::Map(key)) => join(team, &key, bytes).ok(),
            (own, _) => own,
        };
        let mut all = vec![0; 8 * team.size()];
        team.allgather(&words([u64::from(memory.is_some())]), &mut all)?;
        let is_whole = (0..team.size()).all(|member| word(&all, member) == 1);
        Ok(memory.filter(|_| is_whole).map(|memory| Self {
            memory,
            window,
            turn,
        }))
    }

    /// Returns whether a window and the list of a member have room.
    pub(super) const fn fits(&self, window: &Range<u64>, list: usize) -> bool {
        window.end - window.start <= self.window as u64 && list <= LIST
    }

    /// Puts bytes into the window of a round.
    pub(super) fn put(&self, round: u64, at: u64, bytes: &[u8]) {
        let at = at as usize;
        assert!(at <= self.window && bytes.len() <= self.window - at);
        self.copy(self.begin(round) + at, bytes);
    }

    /// Puts the list of a member of a round.
    pub(super) fn put_list(&self, round: u64, member: usize, list: &[u8]) {
        assert!(list.len() <= LIST);
        self.copy(self.begin(round) + self.window + LIST * member, list);
    }

    /// Returns the list of a member in a round, of so many bytes.
    pub(super) fn list(&self, round: u64, member: usize, len: u64) -> Vec<u8> {
        let start = self.begin(round) + self.window + LIST * member;
        let len = (len as usize).min(LIST);
        let words = self.memory.words(start, len.div_ceil(8)).iter();
        let bytes = words.flat_map(|word| word.load(Relaxed).to_ne_bytes());
        let mut list: Vec<u8> = bytes.collect();
        list.truncate(len);
        list
    }

    /// Returns the window of a round, once all members have put what they have, and until this one meets them again.
    pub(super) fn window(&self, round: u64) -> &[u8] {
        let start = self.memory.start().as_ptr().wrapping_add(self.begin(round));
        // SAFETY: it is within the memory, which is mapped as long as `self` is there and cannot shrink. The members have met since they
        // filled it, and fill it again once they have met this one twice more. What another process that does otherwise changes goes to
        // the system and nowhere else.
        unsafe { slice::from_raw_parts(start, self.window) }
    }

    /// Returns where the memory of a round begins.
    const fn begin(&self, round: u64) -> usize {
        (round % TURNS) as usize * self.turn
    }

    /// Copies bytes to an offset.
    fn copy(&self, at: usize, bytes: &[u8]) {
        assert!(at <= self.memory.len() && bytes.len() <= self.memory.len() - at);
        let to = self.memory.start().as_ptr().wrapping_add(at);
        // SAFETY: the place is within the memory, as was checked. Nobody reads it before all have met, and members write each its own
        // list, and bytes of the file that are its own; where two write the same bytes of a file, either may be there.
        unsafe { to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) }
    }
}
