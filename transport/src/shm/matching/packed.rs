//! The words that hold more than one value, or one of a few: each is a type with `pack` and `unpack`.
//!
//! Most of them lie in memory that peers write: `unpack` takes any word.

use tagwire_base::Rank;
use tagwire_matching::Handle;

use crate::message::Token;
use crate::shm::matching::wire::Kind;

/// What has become of a posted receive, in [`Receive::state`](super::layout::Receive::state).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum ReceiveState {
    Free = 0,
    Posted = 1,
    /// Matched, and the bytes are in the user's buffer.
    Landed = 2,
    /// Matched, and the bytes are in the entry.
    Inline = 3,
    /// Matched, and the bytes are in an overflow block.
    Block = 4,
    /// Matched; a transfer moves the bytes.
    Long = 5,
    /// Matched; the sender waits until it is told to send the bytes.
    Stream = 6,
}

impl ReceiveState {
    #[inline]
    pub(super) const fn pack(self) -> u64 {
        self as u64
    }

    /// Returns the state that a word holds; `None` for a word that no correct peer writes.
    #[inline]
    pub(super) const fn unpack(word: u64) -> Option<Self> {
        Some(match word {
            0 => Self::Free,
            1 => Self::Posted,
            2 => Self::Landed,
            3 => Self::Inline,
            4 => Self::Block,
            5 => Self::Long,
            6 => Self::Stream,
            _ => return None,
        })
    }
}

/// The header of an unexpected message that is in use, in [`Header::state`](super::layout::Header::state).
///
/// ```text
///   number's lower half u32 << 32 | beyond the allowance << 16 | kind u8 << 8 | phase u8
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HeaderState {
    pub phase: HeaderPhase,
    pub kind: Kind,
    /// The message was sent because envelopes were asked for.
    pub beyond: bool,
    /// The lower half of the sender's number for the message.
    pub number: u32,
}

/// Whether the message of a header takes part in matching.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum HeaderPhase {
    Queued = 1,
    /// Out of matching, and not received.
    Claimed = 2,
}

impl HeaderState {
    /// The word of a header that is not in use.
    pub(super) const FREE: u64 = 0;

    #[inline]
    pub(super) const fn pack(self) -> u64 {
        let beyond = if self.beyond { BEYOND } else { 0 };
        self.phase as u64 | (self.kind as u64) << 8 | beyond | (self.number as u64) << 32
    }

    /// Returns what a word says of a header in use; `None` for a free one, or a word that no correct peer writes.
    #[inline]
    pub(super) fn unpack(word: u64) -> Option<Self> {
        let phase = match word as u8 {
            1 => HeaderPhase::Queued,
            2 => HeaderPhase::Claimed,
            _ => return None,
        };
        Some(Self {
            phase,
            kind: Kind::from_byte((word >> 8) as u8).filter(|kind| kind.is_message())?,
            beyond: word & BEYOND != 0,
            number: (word >> 32) as u32,
        })
    }

    /// Returns whether a word says `phase`, whatever else it says.
    #[inline]
    pub(super) const fn is_in(word: u64, phase: HeaderPhase) -> bool {
        word as u8 == phase as u8
    }

    /// Returns the word with another phase.
    #[inline]
    pub(super) const fn with_phase(word: u64, phase: HeaderPhase) -> u64 {
        word & !0xff | phase as u64
    }
}

/// The message was sent because envelopes were asked for.
const BEYOND: u64 = 1 << 16;

/// Who sent an unexpected message, in [`Header::source`](super::layout::Header::source).
///
/// ```text
///   number's upper half u32 << 32 | rank u32
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HeaderSource {
    pub rank: Rank,
    /// The upper half of the sender's number for the message.
    pub number: u32,
}

impl HeaderSource {
    #[inline]
    pub(super) const fn pack(self) -> u64 {
        self.rank.as_u32() as u64 | (self.number as u64) << 32
    }

    /// Returns what a word says; `None` where it names no rank.
    #[inline]
    pub(super) fn unpack(word: u64) -> Option<Self> {
        let rank = word as u32;
        (rank <= Rank::MAX).then(|| Self {
            rank: Rank::new(rank),
            number: (word >> 32) as u32,
        })
    }
}

/// What the holder of the lock gives a message to, in [`Journal::what`](super::layout::Journal::what).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JournalEntry {
    Idle,
    Receive(u32),
    Header(u32),
}

impl JournalEntry {
    #[inline]
    pub(super) const fn pack(self) -> u64 {
        match self {
            Self::Idle => 0,
            Self::Receive(index) => 1 << 32 | index as u64,
            Self::Header(index) => 2 << 32 | index as u64,
        }
    }

    /// Returns what a word says. Nothing is being done where no correct peer wrote it.
    #[inline]
    pub(super) const fn unpack(word: u64) -> Self {
        match word >> 32 {
            1 => Self::Receive(word as u32),
            2 => Self::Header(word as u32),
            _ => Self::Idle,
        }
    }
}

/// Names an entry of a table whose entries are used again: the generation distinguishes one use from the next.
/// A receive, a send or a claimed header in a message or an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EntryName {
    pub index: u32,
    pub generation: u32,
}

impl EntryName {
    #[inline]
    pub(super) const fn pack(self) -> u64 {
        self.index as u64 | (self.generation as u64) << 32
    }

    #[inline]
    pub(super) const fn unpack(word: u64) -> Self {
        Self {
            index: word as u32,
            generation: (word >> 32) as u32,
        }
    }
}

/// The engine's handle of a queued message, in [`Header::link`](super::layout::Header::link).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct QueuedHandle(pub Handle);

impl QueuedHandle {
    #[inline]
    pub(super) const fn pack(self) -> u64 {
        self.0.slot() as u64 | (self.0.generation() as u64) << 32
    }

    #[inline]
    pub(super) const fn unpack(word: u64) -> Self {
        Self(Handle::from_parts(word as u32, (word >> 32) as u32))
    }
}

/// The word of a lock.
///
/// ```text
///   times it was given back u32 << 32 | holder's rank + 1, or 0
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LockWord {
    pub turns: u32,
    pub holder: Option<u32>,
}

impl LockWord {
    #[inline]
    pub(super) const fn pack(self) -> u64 {
        let holder = match self.holder {
            Some(rank) => rank.wrapping_add(1),
            None => 0,
        };
        (self.turns as u64) << 32 | holder as u64
    }

    #[inline]
    pub(super) const fn unpack(word: u64) -> Self {
        Self {
            turns: (word >> 32) as u32,
            holder: (word as u32).checked_sub(1),
        }
    }
}

/// Whose transfer a token of the byte transport underneath is, where it is no access of the layer above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TransferToken {
    /// Of the receive at an index.
    Receive(u32),
    /// Of the send in a slot.
    Send(u32),
}

impl TransferToken {
    #[inline]
    pub(super) const fn pack(self) -> Token {
        match self {
            Self::Receive(index) => Token(RECEIVE | index as u64),
            Self::Send(slot) => Token(slot as u64),
        }
    }

    #[inline]
    pub(super) const fn unpack(token: Token) -> Option<Self> {
        if token.0 & ACCESS != 0 {
            None
        } else if token.0 & RECEIVE != 0 {
            Some(Self::Receive(token.0 as u32))
        } else {
            Some(Self::Send(token.0 as u32))
        }
    }
}

const RECEIVE: u64 = 1 << 62;
const ACCESS: u64 = 1 << 63;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const NUMBERS: [u32; 5] = [0, 1, 77, 1 << 31, u32::MAX];

    #[test]
    fn receive_states_come_back() {
        for word in 0..=6 {
            assert_eq!(
                ReceiveState::unpack(word).map(ReceiveState::pack),
                Some(word)
            );
        }
        for word in [7, 1 << 32, u64::MAX] {
            assert_eq!(ReceiveState::unpack(word), None);
        }
    }

    #[test]
    fn header_states_come_back() {
        for phase in [HeaderPhase::Queued, HeaderPhase::Claimed] {
            for kind in [Kind::Short, Kind::Long, Kind::Stream] {
                for (beyond, number) in NUMBERS.into_iter().flat_map(|n| [(false, n), (true, n)]) {
                    let state = HeaderState {
                        phase,
                        kind,
                        beyond,
                        number,
                    };
                    let word = state.pack();
                    assert_eq!(HeaderState::unpack(word), Some(state));
                    assert!(HeaderState::is_in(word, phase));
                    let claimed = HeaderState {
                        phase: HeaderPhase::Claimed,
                        ..state
                    };
                    let again = HeaderState::with_phase(word, HeaderPhase::Claimed);
                    assert_eq!(again, claimed.pack());
                }
            }
        }
        let (go, no_phase, no_kind) = (5 << 8 | 1, 1 << 8 | 3, 1);
        for word in [HeaderState::FREE, go, no_phase, no_kind, u64::MAX] {
            assert_eq!(HeaderState::unpack(word), None);
        }
    }

    #[test]
    fn sources_come_back() {
        for number in NUMBERS {
            for rank in [0, 5, Rank::MAX] {
                let rank = Rank::new(rank);
                let source = HeaderSource { rank, number };
                assert_eq!(HeaderSource::unpack(source.pack()), Some(source));
            }
        }
        assert_eq!(HeaderSource::unpack(u64::from(Rank::MAX) + 1), None);
    }

    #[test]
    fn journal_entries_come_back() {
        for index in NUMBERS {
            for entry in [JournalEntry::Receive(index), JournalEntry::Header(index)] {
                assert_eq!(JournalEntry::unpack(entry.pack()), entry);
            }
        }
        let idle = JournalEntry::Idle;
        for word in [idle.pack(), 1, 3 << 32, u64::MAX] {
            assert_eq!(JournalEntry::unpack(word), idle);
        }
    }

    #[test]
    fn names_and_handles_come_back() {
        for index in NUMBERS {
            for generation in NUMBERS {
                let name = EntryName { index, generation };
                assert_eq!(EntryName::unpack(name.pack()), name);
                let handle = QueuedHandle(Handle::from_parts(index, generation));
                assert_eq!(QueuedHandle::unpack(handle.pack()), handle);
            }
        }
    }

    #[test]
    fn locks_come_back() {
        for turns in NUMBERS {
            for holder in [None, Some(0), Some(7), Some(Rank::MAX)] {
                let word = LockWord { turns, holder };
                assert_eq!(LockWord::unpack(word.pack()), word);
            }
        }
    }

    #[test]
    fn tokens_come_back() {
        for index in NUMBERS {
            for token in [TransferToken::Receive(index), TransferToken::Send(index)] {
                assert_eq!(TransferToken::unpack(token.pack()), Some(token));
            }
        }
    }
}
