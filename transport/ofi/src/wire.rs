//! What travels in front of every message, and in the first one.
//!
//! ```text
//!  0     sequence      u32   of this sender's messages to this receiver, from that of its hello on
//!  4     kind          u8
//!  5     version       u8
//!  6     (zero)        u16
//!  8     source        u32   the sender's rank
//! 12     stamp         u32   the sender's, told in its hello: who does not know it is refused
//! 16     slot          u32   where the receiver keeps this sender, or all ones
//! 20     credit        u32   the sequence number behind the receiver's messages that the sender has consumed; nothing without a slot
//! 24     words         2 x u64   the header of the layer above, or operands
//! 40     payload
//! ```
//!
//! Everything is little-endian. The payload of a hello is the proof that the sender knows the job's secret (32 bytes), then its
//! address as it publishes it.

use tagwire_base::Rank;
use tagwire_base::bootstrap::JobSecret;
use tagwire_transport::AmHeader;

/// Bytes in front of every payload.
pub(crate) const HEADER: usize = 40;

/// Changes when what travels changes.
const VERSION: u8 = 3;

/// What stands in `slot` before the receiver has told it.
pub(crate) const NO_SLOT: u32 = u32::MAX;

/// What a message is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The first one: who this is. Its first word is the slot to be used in replies.
    Hello,
    /// A message of the layer above.
    Data,
    /// Nothing but the credit in the header.
    Credit,
    /// Nothing comes after this.
    Goodbye,
    /// The sender gives up.
    Abort,
    /// Asks for a reply once all that was written before is there; the first word names it.
    Flush,
    /// The reply.
    Flushed,
    /// The reply to a goodbye, after which nothing comes either.
    GoodbyeHeard,
}

impl Kind {
    const ALL: [Self; 8] = [
        Self::Hello,
        Self::Data,
        Self::Credit,
        Self::Goodbye,
        Self::Abort,
        Self::Flush,
        Self::Flushed,
        Self::GoodbyeHeard,
    ];

    fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.get(usize::from(byte)).copied()
    }
}

/// A header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) sequence: u32,
    pub(crate) kind: Kind,
    pub(crate) source: Rank,
    pub(crate) stamp: u32,
    pub(crate) slot: u32,
    pub(crate) credit: u32,
    pub(crate) words: AmHeader,
}

impl Header {
    #[inline]
    pub(crate) fn encode(&self) -> [u8; HEADER] {
        let mut out = [0; HEADER];
        out[0..4].copy_from_slice(&self.sequence.to_le_bytes());
        out[4] = self.kind as u8;
        out[5] = VERSION;
        out[8..12].copy_from_slice(&self.source.as_u32().to_le_bytes());
        out[12..16].copy_from_slice(&self.stamp.to_le_bytes());
        out[16..20].copy_from_slice(&self.slot.to_le_bytes());
        out[20..24].copy_from_slice(&self.credit.to_le_bytes());
        out[24..32].copy_from_slice(&self.words.0[0].to_le_bytes());
        out[32..40].copy_from_slice(&self.words.0[1].to_le_bytes());
        out
    }

    /// The header in these bytes, if a peer of this version wrote them.
    #[inline]
    pub(crate) fn decode(bytes: &[u8; HEADER]) -> Option<Self> {
        let short = |at: usize| {
            let mut word = [0; 4];
            word.copy_from_slice(&bytes[at..at + 4]);
            u32::from_le_bytes(word)
        };
        let long = |at: usize| u64::from(short(at)) | u64::from(short(at + 4)) << 32;
        if bytes[5] != VERSION || bytes[6..8] != [0, 0] {
            return None;
        }
        Some(Self {
            sequence: short(0),
            kind: Kind::from_byte(bytes[4])?,
            source: rank_of(short(8))?,
            stamp: short(12),
            slot: short(16),
            credit: short(20),
            words: AmHeader([long(24), long(32)]),
        })
    }
}

/// The rank that a peer names, if there can be such a rank.
const fn rank_of(number: u32) -> Option<Rank> {
    if number <= Rank::MAX {
        Some(Rank::new(number))
    } else {
        None
    }
}

/// What a hello says beside the address of its sender: it is good for nothing else.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Greets {
    /// The sender's stamp.
    pub(crate) stamp: u32,
    /// The number of the hello among the sender's messages, which is the first.
    pub(crate) first: u32,
    /// Its slot for the receiver.
    pub(crate) slot: u64,
    /// The receiver.
    pub(crate) to: Rank,
}

impl Greets {
    fn words(self) -> [u8; 20] {
        let mut words = [0; 20];
        words[..4].copy_from_slice(&self.stamp.to_le_bytes());
        words[4..8].copy_from_slice(&self.first.to_le_bytes());
        words[8..16].copy_from_slice(&self.slot.to_le_bytes());
        words[16..].copy_from_slice(&self.to.as_u32().to_le_bytes());
        words
    }
}

/// What proofs are over before all else.
const PROOF: &[u8] = b"tagwire.ofi\0";

/// The payload of a hello of the rank with this address.
pub(crate) fn hello(secret: &JobSecret, address: &Address, greets: Greets) -> Vec<u8> {
    let address = address.encode();
    let proof = secret.prove(&[PROOF, &greets.words(), &address]);
    [&proof[..], &address].concat()
}

/// The longest payload of a hello.
pub(crate) const MAX_HELLO: usize = JobSecret::LEN + 16 + MAX_NAME;

/// The address in a hello that says this beside, if it proves to be of this job.
pub(crate) fn read_hello(payload: &[u8], secret: &JobSecret, greets: Greets) -> Option<Address> {
    let (proof, address) = payload.split_at_checked(JobSecret::LEN)?;
    let is_proved = secret.is_proved(proof, &[PROOF, &greets.words(), address]);
    is_proved.then(|| Address::decode(address)).flatten()
}

/// What a rank publishes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) rank: Rank,
    /// Libfabric's number for the kind of address.
    pub(crate) format: u32,
    /// The provider's own.
    pub(crate) name: Vec<u8>,
}

/// What every published address starts with.
const MAGIC: &[u8; 4] = b"ofi1";

/// Longest name of an endpoint that is taken.
const MAX_NAME: usize = 512;

impl Address {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend(self.rank.as_u32().to_le_bytes());
        out.extend(self.format.to_le_bytes());
        out.extend((self.name.len() as u32).to_le_bytes());
        out.extend(&self.name);
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (magic, rest) = bytes.split_first_chunk::<4>()?;
        let (rank, rest) = rest.split_first_chunk::<4>()?;
        let (format, rest) = rest.split_first_chunk::<4>()?;
        let (len, name) = rest.split_first_chunk::<4>()?;
        let fits = u32::from_le_bytes(*len) as usize == name.len();
        let source = rank_of(u32::from_le_bytes(*rank))?;
        (magic == MAGIC && fits && !name.is_empty() && name.len() <= MAX_NAME).then(|| Self {
            rank: source,
            format: u32::from_le_bytes(*format),
            name: name.to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_come_back_as_they_were() {
        for kind in Kind::ALL {
            let header = Header {
                sequence: 0xfeed_beef,
                kind,
                source: Rank::new(70_000),
                stamp: 3,
                slot: NO_SLOT,
                credit: 9,
                words: AmHeader([1 << 63, 0x0123_4567_89ab_cdef]),
            };
            assert_eq!(Header::decode(&header.encode()), Some(header));
        }
    }

    #[test]
    fn other_versions_and_kinds_are_no_headers() {
        let mut bytes = [0; HEADER];
        assert_eq!(Header::decode(&bytes), None);
        bytes[5] = VERSION;
        assert!(Header::decode(&bytes).is_some());
        bytes[8..12].fill(0xff);
        assert_eq!(Header::decode(&bytes), None, "no such rank");
        bytes[8..12].fill(0);
        bytes[4] = 200;
        assert_eq!(Header::decode(&bytes), None);
    }

    fn address() -> Address {
        Address {
            rank: Rank::new(5),
            format: 3,
            name: vec![1, 2, 3, 4],
        }
    }

    #[test]
    fn a_hello_is_of_one_sender_to_one_receiver() {
        let secret = JobSecret::from_bytes([5; JobSecret::LEN]);
        let greets = Greets {
            stamp: 9,
            first: 1,
            slot: 1 << 40,
            to: Rank::new(7),
        };
        let payload = hello(&secret, &address(), greets);
        assert_eq!(read_hello(&payload, &secret, greets), Some(address()));
        let others = [
            Greets { stamp: 8, ..greets },
            Greets { first: 0, ..greets },
            Greets { slot: 0, ..greets },
            Greets {
                to: Rank::new(6),
                ..greets
            },
        ];
        for other in others {
            assert_eq!(read_hello(&payload, &secret, other), None, "{other:?}");
        }
        for place in 0..payload.len() {
            let mut changed = payload.clone();
            changed[place] ^= 1;
            assert_eq!(read_hello(&changed, &secret, greets), None, "byte {place}");
            let cut = &payload[..place];
            assert_eq!(read_hello(cut, &secret, greets), None, "{place} bytes");
        }
        let theirs = JobSecret::from_bytes([6; JobSecret::LEN]);
        assert_eq!(read_hello(&payload, &theirs, greets), None);
        let words = payload.windows(JobSecret::LEN);
        assert!(words.into_iter().all(|words| words != secret.as_bytes()));
        let longest = Address {
            name: vec![0; MAX_NAME],
            ..address()
        };
        assert_eq!(hello(&secret, &longest, greets).len(), MAX_HELLO);
    }

    #[test]
    fn addresses_are_taken_whole_or_not_at_all() {
        let address = address();
        let bytes = address.encode();
        assert_eq!(Address::decode(&bytes), Some(address));
        for len in 0..bytes.len() {
            assert_eq!(Address::decode(&bytes[..len]), None, "{len} bytes");
        }
        assert_eq!(Address::decode(&[&bytes[..], b"x"].concat()), None);
    }
}
