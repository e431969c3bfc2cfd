//! The messages of ranks that match for each other, in the rings.
//!
//! ```text
//!   header word 0   0 in the highest byte: a packet of the layer above; else
//!                   match bits u47 | sent because envelopes were asked for << 55 | kind u8 << 56
//!   header word 1   the sender's number for the message, or the one that is answered
//!
//!   kind      payload
//!   Short     the message; a number other than 0 asks for Matched
//!   Long      ticket u64 x 2, length u64: its bytes are offered
//!   Stream    0, 0, length u64: its bytes come when asked for
//!   Matched   -                       number: of a Short
//!   Go        receive u64, room u64   number: of a Long or Stream; send the bytes
//!   Data      bytes                   number: the receive; in order
//! ```

use tagwire_base::Rank;

use crate::message::{AmHeader, Payload};

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(in crate::shm) enum Kind {
    /// Its bytes are with it.
    Short = 1,
    /// Its bytes are offered for a cooperative transfer.
    Long = 2,
    /// Its bytes are sent when asked for.
    Stream = 3,
    /// Reply to a synchronous [`Kind::Short`].
    Matched = 4,
    /// Asks for the bytes of a [`Kind::Long`] or [`Kind::Stream`].
    Go = 5,
    /// Bytes that were asked for.
    Data = 6,
}

impl Kind {
    #[inline]
    pub(super) const fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Short,
            2 => Self::Long,
            3 => Self::Stream,
            4 => Self::Matched,
            5 => Self::Go,
            6 => Self::Data,
            _ => return None,
        })
    }

    /// Whether it takes part in matching.
    #[inline]
    pub(super) const fn is_message(self) -> bool {
        matches!(self, Self::Short | Self::Long | Self::Stream)
    }
}

/// A message that takes part in matching.
#[derive(Debug, Clone, Copy)]
pub(in crate::shm) struct Message<'a> {
    pub source: Rank,
    pub bits: u64,
    pub kind: Kind,
    pub length: u64,
    /// The sender's number, 0 for none.
    pub number: u64,
    pub ticket: [u64; 2],
    /// It was sent beyond the allowance, because the receiver had asked for envelopes.
    pub asked_for: bool,
    pub payload: Payload<'a>,
}

/// Set in header word 0 of a message that was sent because envelopes were asked for.
pub(super) const ASKED_FOR: u64 = 1 << 55;

/// The match bits that may be set: for the engine, the lower 31 are a tag, the 16 above it a
/// context. (The layer above has a tag's sign in the lowest of these 16, so that internal tags
/// are a context of their own, which no any-tag of the users reaches.)
pub(super) const BITS: u64 = (1 << 47) - 1;
/// The bits that an any-tag receive ignores.
pub(super) const IGNORABLE: u64 = 0x7fff_ffff;

/// The header of a message.
#[inline]
pub(super) const fn header(kind: Kind, bits: u64, number: u64) -> AmHeader {
    AmHeader([bits | (kind as u64) << 56, number])
}

/// Whether it is the header of a packet of the layer above.
#[inline]
pub(super) const fn is_packet(header: AmHeader) -> bool {
    header.0[0] >> 56 == 0
}

/// What a header says: `None` when no correct peer writes it.
#[inline]
pub(super) fn kind_of(header: AmHeader) -> Option<Kind> {
    Kind::from_byte((header.0[0] >> 56) as u8)
}

/// The message behind a header; `None` when no correct peer writes it.
#[inline]
pub(super) fn parse<'a>(
    source: Rank,
    kind: Kind,
    header: AmHeader,
    payload: Payload<'a>,
) -> Option<Message<'a>> {
    let bits = header.0[0] & !(0xff << 56) & !ASKED_FOR;
    if bits & !BITS != 0 {
        return None;
    }
    let (length, ticket) = if kind == Kind::Short {
        (payload.len() as u64, [0; 2])
    } else {
        let words = three_words(payload)?;
        (words[2], [words[0], words[1]])
    };
    Some(Message {
        source,
        bits,
        kind,
        length,
        number: header.0[1],
        ticket,
        asked_for: header.0[0] & ASKED_FOR != 0,
        payload,
    })
}

/// A payload of three words.
pub(super) fn three_words(payload: Payload<'_>) -> Option<[u64; 3]> {
    let mut bytes = [0; 24];
    if !payload.read_into(&mut bytes) {
        return None;
    }
    let mut words = [0; 3];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        let mut array = [0; 8];
        array.copy_from_slice(bytes);
        *word = u64::from_le_bytes(array);
    }
    Some(words)
}

/// The bytes of [`three_words`].
pub(super) fn three_bytes(words: [u64; 3]) -> [u8; 24] {
    let mut bytes = [0; 24];
    for (bytes, word) in bytes.chunks_exact_mut(8).zip(words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}
