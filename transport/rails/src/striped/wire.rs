//! The header in front of every message between the two ends of a bundle of rails.
//!
//! ```text
//!  the rail's header, as two words            the rail's payload
//!  0   kind (8) │ flags (8) │ 0 (16)          of a message: the header of the layer
//!  4   number (32)                            above (16), then its bytes;
//!  8   consumed (32)                          of all others: nothing
//! 12   0 (32)
//! ```
//!
//! `consumed` is how many messages of the receiver the sender has delivered, in every header: what
//! the receiver has sent up to there need not be kept any more.

use tagwire_transport::AmHeader;

/// Bytes of the layer above's header, in front of the payload.
pub(super) const ABOVE: usize = 16;

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// One of the layer above; `number` is its place in the sender's order, from 0.
    Message,
    /// Says how much was consumed, and nothing else.
    Note,
    /// First contact by this rail.
    Hello,
    /// The sender has given up the rail `number`.
    Down,
    /// Is to be replied to by the same rail; `number` is that of the round.
    Probe,
    /// The reply.
    Echo,
    /// The sender leaves; `number` is how many messages it has sent in all.
    Bye,
}

const KINDS: [Kind; 7] = [
    Kind::Message,
    Kind::Note,
    Kind::Hello,
    Kind::Down,
    Kind::Probe,
    Kind::Echo,
    Kind::Bye,
];

/// The sender waits for what was consumed to be said.
const URGENT: u64 = 1 << 8;

/// The header of a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: Kind,
    /// The receiver is to say soon what it has consumed.
    pub(super) is_urgent: bool,
    pub(super) number: u32,
    pub(super) consumed: u32,
}

impl Header {
    pub(super) const fn encode(self) -> AmHeader {
        let urgent = if self.is_urgent { URGENT } else { 0 };
        let first = self.kind as u64 | urgent | (self.number as u64) << 32;
        AmHeader([first, self.consumed as u64])
    }

    /// The header in `words`; `None` where no bundle writes such a thing.
    pub(super) fn decode(AmHeader([first, second]): AmHeader) -> Option<Self> {
        let unused = (first as u32) & !(0xff | URGENT as u32);
        if unused != 0 || second > u64::from(u32::MAX) {
            return None;
        }
        Some(Self {
            kind: *KINDS.get((first & 0xff) as usize)?,
            is_urgent: first & URGENT != 0,
            number: (first >> 32) as u32,
            consumed: second as u32,
        })
    }
}

/// Writes the header of the layer above.
pub(super) fn write_above(AmHeader(words): AmHeader, out: &mut Vec<u8>) {
    words.iter().for_each(|word| out.extend(word.to_le_bytes()));
}

/// The header of the layer above.
pub(super) fn read_above(bytes: &[u8; ABOVE]) -> AmHeader {
    let mut words = [[0; 8]; 2];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        word.copy_from_slice(bytes);
    }
    AmHeader(words.map(u64::from_le_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_come_back() {
        for (place, kind) in KINDS.into_iter().enumerate() {
            assert_eq!(kind as usize, place);
            for is_urgent in [false, true] {
                let header = Header {
                    kind,
                    is_urgent,
                    number: 0x8765_4321,
                    consumed: u32::MAX,
                };
                assert_eq!(Header::decode(header.encode()), Some(header));
            }
        }
        let above = AmHeader([1, u64::MAX - 1]);
        let mut bytes = Vec::new();
        write_above(above, &mut bytes);
        assert_eq!(read_above(&bytes.try_into().unwrap()), above);
    }

    #[test]
    fn what_no_bundle_writes_is_none() {
        for words in [[7, 0], [0x200, 0], [0x1_0000, 0], [0, 1 << 32], [255, 0]] {
            assert_eq!(Header::decode(AmHeader(words)), None, "{words:x?}");
        }
    }
}
