//! What goes over the transport inside, and its checksum.
//!
//! ```text
//!  the header of the transport inside, as two words       its payload
//!  0   kind (8) │ flags (8) │ 0 (16)                      of a message: the header of the layer above (16),
//!  4   number (32)                                        then its bytes;
//!  8   consumed (32)                                      of a note: nothing, or which messages have come
//! 12   CRC-32C of both ranks, the header and the payload  early (32); of a goodbye and an end: nothing
//! ```
//!
//! The flags are urgent (1), overdue (2), final (4) and again (8). `consumed` is the number of the next message that the sender of the packet expects. Both ranks are in the checksum, so that
//! what a network delivers to the wrong rank is not taken.

use tagwire_base::Rank;
use tagwire_transport::{AmHeader, Payload};

use crate::crc;
use crate::window::Seen;

/// Bytes of the layer above's header, in front of the payload.
pub(crate) const ABOVE: usize = 16;

/// Payload that is copied before it is looked at, in bytes.
pub(crate) const SHORT: usize = 64;

/// Pieces in which longer payload is checked, in bytes.
const PIECE: usize = 4096;

/// What a packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A message of the layer above; `number` is its place in the sender's order.
    Message,
    /// Says what has come, and has no number: it is not kept.
    Note,
    /// The last in the sender's order: it leaves.
    Goodbye,
    /// The sender has given up the receiver, and takes nothing from it any more. It has no number.
    End,
}

const KINDS: [Kind; 4] = [Kind::Message, Kind::Note, Kind::Goodbye, Kind::End];

/// The sender waits for a note.
const URGENT: u64 = 1 << 8;

/// What is missing has been missing for long: it is not just late.
const OVERDUE: u64 = 1 << 9;

/// The sender of the note knows that its goodbye has come, and sends nothing more unless it is asked.
const FINAL: u64 = 1 << 10;

/// The note is owed to a message that had come before.
const AGAIN: u64 = 1 << 11;

const FLAGS: u64 = URGENT | OVERDUE | OF_NOTES;

/// Flags that no packet but a note has.
const OF_NOTES: u64 = FINAL | AGAIN;

/// The header of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    pub(crate) is_urgent: bool,
    pub(crate) is_overdue: bool,
    pub(crate) is_final: bool,
    pub(crate) is_again: bool,
    pub(crate) number: u32,
    pub(crate) consumed: u32,
}

impl Header {
    /// Returns the words without a checksum.
    #[inline]
    const fn words(self) -> [u64; 2] {
        let urgent = if self.is_urgent { URGENT } else { 0 };
        let overdue = if self.is_overdue { OVERDUE } else { 0 };
        let last = if self.is_final { FINAL } else { 0 };
        let again = if self.is_again { AGAIN } else { 0 };
        let flags = urgent | overdue | last | again;
        let first = self.kind as u64 | flags | (self.number as u64) << 32;
        [first, self.consumed as u64]
    }

    /// Returns the words in front of `payload`, checked from `start` on, which is of both ranks.
    #[inline]
    pub(crate) fn seal(self, start: u32, payload: &[u8]) -> AmHeader {
        let [first, second] = self.words();
        let crc = crc::with_words(start, [first, second], payload);
        AmHeader([first, second | u64::from(crc) << 32])
    }

    /// Returns the header in words whose checksum was right; `None` where no correct peer writes such a thing.
    #[inline]
    pub(crate) fn open(AmHeader([first, second]): AmHeader) -> Option<Self> {
        let unused = (first as u32) & !(0xff | FLAGS as u32);
        if unused != 0 {
            return None;
        }
        let kind = *KINDS.get((first & 0xff) as usize)?;
        if first & OF_NOTES != 0 && kind != Kind::Note {
            return None;
        }
        Some(Self {
            kind,
            is_urgent: first & URGENT != 0,
            is_overdue: first & OVERDUE != 0,
            is_final: first & FINAL != 0,
            is_again: first & AGAIN != 0,
            number: (first >> 32) as u32,
            consumed: second as u32,
        })
    }
}

/// Returns what the checksum of all that `from` sends to `to` begins with.
pub(crate) fn start(from: Rank, to: Rank) -> u32 {
    let ranks = [from, to].map(|rank| u64::from(rank.as_u32()));
    crc::with_words(0, ranks, &[])
}

/// The header's words as they were before the checksum, and the checksum.
#[inline]
const fn unseal(AmHeader([first, second]): AmHeader) -> ([u64; 2], u32) {
    ([first, second & u32::MAX as u64], (second >> 32) as u32)
}

/// Whether a packet with short payload is as it was sent.
#[inline]
pub(crate) fn is_intact(start: u32, header: AmHeader, payload: &[u8]) -> bool {
    let (words, crc) = unseal(header);
    crc::with_words(start, words, payload) == crc
}

/// As [`is_intact`], of payload that a peer may still change: each piece is copied to `scratch` first.
pub(crate) fn is_all_intact(
    start: u32,
    header: AmHeader,
    payload: Payload<'_>,
    scratch: &mut Vec<u8>,
) -> bool {
    scratch.resize(PIECE, 0);
    let (words, expected) = unseal(header);
    let mut crc = crc::with_words(start, words, &[]);
    for offset in (0..payload.len()).step_by(PIECE) {
        let piece = payload.slice(offset..offset + PIECE);
        let copy = &mut scratch[..piece.len()];
        piece.copy_to_slice(copy);
        crc = crc::extend(crc, copy);
    }
    crc == expected
}

/// Writes the header of the layer above.
#[inline]
pub(crate) fn write_above(AmHeader([first, second]): AmHeader, out: &mut Vec<u8>) {
    let mut bytes = [0; ABOVE];
    bytes[..8].copy_from_slice(&first.to_le_bytes());
    bytes[8..].copy_from_slice(&second.to_le_bytes());
    out.extend_from_slice(&bytes);
}

/// Returns the header of the layer above.
#[inline]
pub(crate) fn read_above(bytes: &[u8; ABOVE]) -> AmHeader {
    let (words, _) = bytes.as_chunks::<8>();
    AmHeader([u64::from_le_bytes(words[0]), u64::from_le_bytes(words[1])])
}

/// Returns what a note carries.
pub(crate) fn write_seen(seen: &Seen) -> [u8; size_of::<Seen>()] {
    let mut bytes = [0; size_of::<Seen>()];
    let (words, _) = bytes.as_chunks_mut::<8>();
    for (word, seen) in words.iter_mut().zip(seen) {
        *word = seen.to_le_bytes();
    }
    bytes
}

/// Returns what a note carries; `None` where it is neither nothing nor all.
pub(crate) fn read_seen(payload: Payload<'_>) -> Option<Seen> {
    let mut seen = Seen::default();
    let mut bytes = [0; size_of::<Seen>()];
    if payload.is_empty() {
        return Some(seen);
    }
    if payload.len() != bytes.len() {
        return None;
    }
    payload.copy_to_slice(&mut bytes);
    for (seen, word) in seen.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *seen = u64::from_le_bytes(*word);
    }
    Some(seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_come_back_whole_or_not() {
        let start = start(Rank::new(3), Rank::new(4));
        let payload: Vec<u8> = (0..255).cycle().take(10_000).collect();
        for (place, kind) in KINDS.into_iter().enumerate() {
            assert_eq!(kind as usize, place);
            for (is_urgent, is_overdue) in [(false, true), (true, false)] {
                let header = Header {
                    kind,
                    is_urgent,
                    is_overdue,
                    is_final: is_overdue && kind == Kind::Note,
                    is_again: is_urgent && kind == Kind::Note,
                    number: 0x8765_4321,
                    consumed: u32::MAX,
                };
                let sealed = header.seal(start, &payload);
                assert_eq!(Header::open(sealed), Some(header));
                assert!(is_intact(start, sealed, &payload));
                let lent = Payload::from_slice(&payload);
                assert!(is_all_intact(start, sealed, lent, &mut Vec::new()));
                let other = super::start(Rank::new(4), Rank::new(3));
                assert!(!is_intact(other, sealed, &payload), "another pair's");
            }
        }
    }

    #[test]
    fn no_changed_bit_passes() {
        let header = Header {
            kind: Kind::Message,
            is_urgent: false,
            is_overdue: false,
            is_final: false,
            is_again: false,
            number: 7,
            consumed: 9,
        };
        let mut payload = vec![0x5a; 40];
        let sealed = header.seal(1, &payload);
        for bit in 0..128 {
            let mut changed = sealed;
            changed.0[bit / 64] ^= 1 << (bit % 64);
            assert!(!is_intact(1, changed, &payload), "bit {bit} of the header");
        }
        for bit in 0..8 * payload.len() {
            payload[bit / 8] ^= 1 << (bit % 8);
            assert!(!is_intact(1, sealed, &payload), "bit {bit} of the payload");
            payload[bit / 8] ^= 1 << (bit % 8);
        }
        assert!(!is_intact(1, sealed, &payload[..39]), "a byte less");
    }

    #[test]
    fn what_no_peer_writes_is_none() {
        for words in [
            [4, 0],
            [0x400, 0],
            [0x800, 0],
            [0x1001, 0],
            [0x1_0000, 0],
            [255, 0],
        ] {
            assert_eq!(Header::open(AmHeader(words)), None, "{words:x?}");
        }
        let seen = [1, 0, u64::MAX, 1 << 63];
        let read = |bytes: &[u8]| read_seen(Payload::from_slice(bytes));
        assert_eq!(read(&write_seen(&seen)), Some(seen));
        assert_eq!(read(&[]), Some(Seen::default()));
        assert_eq!(read(&[0; 31]), None);
    }

    #[test]
    fn headers_of_the_layer_above_come_back() {
        let above = AmHeader([1, u64::MAX - 1]);
        let mut bytes = Vec::new();
        write_above(above, &mut bytes);
        assert_eq!(read_above(&bytes.try_into().unwrap()), above);
    }
}
