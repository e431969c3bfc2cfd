//! How an origin and a target on another host tell each other of accumulates, and what each has under way: see
//! [`delegated`](super::delegated).

use std::collections::VecDeque;
use std::fmt;

use tagwire_base::Tag;
use tagwire_pml::RequestId;

use crate::lock::Lock;
use crate::object::window::exchange::Serving;
use crate::raw::StagingBuffer;

/// Most bytes of values in a message.
pub(crate) const MOST: usize = 64 * 1024;

/// Bytes before the values: what is done, the offset in the target's memory, how many values there are, and whether what was there is
/// wanted.
pub(super) const HEADER: usize = 32;

/// What [`Header::what`] holds of an end.
pub(super) const END: u64 = u64::MAX;

/// The tags of messages to a target, and of its answers: the window's context has no others of users.
pub(super) const REQUESTS: Tag = tag(0);
pub(super) const ANSWERS: Tag = tag(1);

const fn tag(number: i32) -> Tag {
    Tag::user(number).expect("a tag of users")
}

/// What comes before the values of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) what: u64,
    pub(super) offset: u64,
    pub(super) count: u64,
    pub(super) is_answered: bool,
}

impl Header {
    pub(super) fn encode(self) -> Vec<u8> {
        let words = [
            self.what,
            self.offset,
            self.count,
            u64::from(self.is_answered),
        ];
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (words, _) = bytes.first_chunk::<HEADER>()?.as_chunks::<8>();
        let word = |index: usize| words.get(index).map(|word| u64::from_ne_bytes(*word));
        Some(Self {
            what: word(0)?,
            offset: word(1)?,
            count: word(2)?,
            is_answered: word(3)? == 1,
        })
    }
}

/// What this process has asked of a member, and is not known to be done.
#[derive(Debug, Default)]
pub(super) struct Towards {
    /// Messages under way, with their bytes.
    pub(super) sent: VecDeque<(RequestId, StagingBuffer)>,
    /// Receives for answers.
    pub(super) answers: VecDeque<RequestId>,
    /// Something was sent since the last end.
    pub(super) is_open: bool,
}

/// The accumulates of a window that its members on other hosts do, and those that this process does for them.
#[derive(Default)]
pub(crate) struct Delegated {
    pub(super) towards: Box<[Lock<Towards>]>,
    pub(super) serving: Lock<Option<Serving>>,
}

impl fmt::Debug for Delegated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "accumulates of {} members", self.towards.len())
    }
}

impl Delegated {
    /// Returns those of a window of so many members; `is_needed` where some of them are on other hosts.
    pub(super) fn new(members: usize, is_needed: bool) -> Self {
        let towards = 0..if is_needed { members } else { 0 };
        Self {
            towards: towards.map(|_| Lock::default()).collect(),
            serving: Lock::default(),
        }
    }

    /// Lets this process do nothing for others any more.
    pub(super) fn close(&self) {
        drop(self.serving.lock().take());
    }
}
