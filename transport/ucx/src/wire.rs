//! What travels in our active messages.
//!
//! ```text
//!     data       session u32 | AmHeader 16 bytes | payload
//!     write      session u32 | access, whose tag is the value to tell | payload
//!     control    magic u32 | version u16 | kind u16 | rank u32 | session u32 | to u32 | a u32 |
//!                b u64 | proof 32 bytes | payload (hello: the sender's address; get, put and
//!                what is said of them: an access)
//!     access     registration u32 | generation u32 | offset u64 | length u64 | tag u64
//!     key        registration u32 | generation u32 | address u64 | length u64 | digest u64
//!     address    magic u32 | version u16 | 0 u16 | rank u32 | length u32 | digest u64 | worker address
//! ```
//!
//! All little-endian. A session is a number that a rank draws when it opens, with the rank in its last
//! bits, and reports in its hello, which also proves that it knows the job's secret; messages under another session are
//! refused.

use tagwire_base::Rank;
use tagwire_base::bootstrap::JobSecret;
use tagwire_transport::RemoteMemory;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Messages to one peer that may be under way: UCX itself has no bound. Its receiver holds it to that.
pub(crate) const DATA_MESSAGES: usize = 64;

/// The longest put whose bytes come with the question: a copy of so many takes less than a way over a network.
pub(crate) const SHORT_PUT: usize = 8192;

const MAGIC: u32 = 0x5857_4754;
const VERSION: u16 = 6;
/// What proofs are over before all else.
const PROOF: &[u8] = b"tagwire.ucx\0";

/// What stands before the payload of data: as few bytes as can be. Over shared memory UCX's own header
/// of 36 bytes comes before it, and 28 more are what is left of the cache line; a message that takes
/// a second line takes twice as long.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct Prefix {
    pub(crate) session: U32,
    pub(crate) header: [U64; 2],
}

/// The number that peers know the messages of a rank by: `drawn`, with the rank in its last bits, so
/// that no two ranks of a job have the same.
pub(crate) const fn session_of(rank: Rank, size: u32, drawn: u32) -> u32 {
    let ranks = rank_bits(size);
    drawn & !ranks | rank.as_u32() & ranks
}

/// Whether `session` can be the number of `rank`, in a job of so many.
pub(crate) const fn is_session_of(session: u32, rank: Rank, size: u32) -> bool {
    session & rank_bits(size) == rank.as_u32()
}

/// The bits of a session that are the rank's.
const fn rank_bits(size: u32) -> u32 {
    size.next_power_of_two() - 1
}

/// The header of a write, whose payload is to go into registered memory of the receiver.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct Write {
    pub(crate) session: U32,
    /// Where to. The tag is the value to be told once the bytes are there.
    pub(crate) access: Access,
}

impl Write {
    /// The write that a message of `len` bytes of payload under `header` is; nothing where it is
    /// none.
    pub(crate) fn read(header: &[u8], len: usize) -> Option<&Self> {
        let write = Self::ref_from_bytes(header).ok()?;
        (write.access.length.get() == len as u64).then_some(write)
    }
}

/// What a control message is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum ControlKind {
    /// The sender introduces itself; its address follows, as it is published.
    Hello = 1,
    /// It leaves in good order.
    Leaving = 2,
    /// It ends in disorder.
    Failing = 3,
    /// It has received messages: `a` of them, `b` bytes.
    Credit = 4,
    /// It asks for bytes of registered memory; an [`Access`] follows.
    Get = 5,
    /// The access that follows was not allowed.
    Refused = 6,
    /// It wants to write registered memory; an [`Access`] follows, whose tag names the put, and its bytes where they are
    /// [short](SHORT_PUT).
    Put = 7,
    /// The bytes of a put may come, under the tag of the access that follows; its offset names the
    /// put.
    Ready = 8,
    /// The put that the access names is where it should be.
    Placed = 9,
    /// It has read the goodbye, and so all that came before, and sends nothing more.
    Heard = 10,
    /// It wants to know when its first `b` writes are dealt with.
    Flush = 11,
    /// The first `b` writes of the receiver are dealt with.
    Flushed = 12,
}

/// A control message without its payload.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct Control {
    magic: U32,
    version: U16,
    kind: U16,
    pub(crate) rank: U32,
    pub(crate) session: U32,
    pub(crate) to: U32,
    pub(crate) a: U32,
    pub(crate) b: U64,
    proof: [u8; JobSecret::LEN],
}

impl Control {
    pub(crate) fn new(kind: ControlKind, from: Rank, session: u32, to: Rank) -> Self {
        Self {
            magic: MAGIC.into(),
            version: VERSION.into(),
            kind: (kind as u16).into(),
            rank: from.as_u32().into(),
            session: session.into(),
            to: to.as_u32().into(),
            a: U32::ZERO,
            b: U64::ZERO,
            proof: [0; JobSecret::LEN],
        }
    }

    /// A hello with the sender's address behind it, which proves that the sender belongs to the job. It is good for this sender, session,
    /// receiver and address alone.
    pub(crate) fn hello(
        from: Rank,
        session: u32,
        to: Rank,
        (secret, address): (&JobSecret, &[u8]),
    ) -> Self {
        let hello = Self::new(ControlKind::Hello, from, session, to);
        Self {
            proof: secret.prove(&[PROOF, hello.as_bytes(), address]),
            ..hello
        }
    }

    /// The kind, when the message is one of ours and in our version.
    pub(crate) fn kind(&self) -> Result<ControlKind, String> {
        if self.magic != MAGIC {
            return Err("a control message of nobody's protocol".to_owned());
        }
        if self.version != VERSION {
            return Err(format!(
                "it speaks version {} and not {VERSION}",
                self.version
            ));
        }
        match self.kind.get() {
            1 => Ok(ControlKind::Hello),
            2 => Ok(ControlKind::Leaving),
            3 => Ok(ControlKind::Failing),
            4 => Ok(ControlKind::Credit),
            5 => Ok(ControlKind::Get),
            6 => Ok(ControlKind::Refused),
            7 => Ok(ControlKind::Put),
            8 => Ok(ControlKind::Ready),
            9 => Ok(ControlKind::Placed),
            10 => Ok(ControlKind::Heard),
            11 => Ok(ControlKind::Flush),
            12 => Ok(ControlKind::Flushed),
            other => Err(format!("a control message of unknown kind {other}")),
        }
    }

    /// Whether the sender of this hello knows the secret, and this address is its own.
    pub(crate) fn proves(&self, secret: &JobSecret, address: &[u8]) -> bool {
        let said = Self {
            proof: [0; JobSecret::LEN],
            ..*self
        };
        secret.is_proved(&self.proof, &[PROOF, said.as_bytes(), address])
    }
}

/// An access to registered memory of the receiver. But for those of a write, the bytes travel by
/// the tag interface, under a tag that the asking side chose.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct Access {
    pub(crate) registration: U32,
    pub(crate) generation: U32,
    pub(crate) offset: U64,
    pub(crate) length: U64,
    pub(crate) tag: U64,
}

impl Access {
    /// Asks for the `len` bytes at `memory` of `owner`, under a tag still to be chosen; `None` where
    /// the key is not of its making, or does not reach that far.
    pub(crate) fn of(
        owner: Rank,
        memory: RemoteMemory<'_>,
        len: u64,
        secret: &JobSecret,
    ) -> Option<Self> {
        let key = Key::read(owner, memory.key, secret)?;
        Some(Self {
            registration: key.registration,
            generation: key.generation,
            offset: key.offset_of(memory.address, len)?.into(),
            length: len.into(),
            tag: U64::ZERO,
        })
    }
}

/// What is published of a registration.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct Key {
    pub(crate) registration: U32,
    pub(crate) generation: U32,
    pub(crate) address: U64,
    pub(crate) length: U64,
    digest: U64,
}

impl Key {
    /// The key of memory of `owner`.
    pub(crate) fn new(
        owner: Rank,
        (registration, generation): (u32, u32),
        (address, length): (u64, u64),
        secret: &JobSecret,
    ) -> Self {
        let mut key = Self {
            registration: registration.into(),
            generation: generation.into(),
            address: address.into(),
            length: length.into(),
            digest: U64::ZERO,
        };
        key.digest = digest(owner, key.as_bytes(), secret).into();
        key
    }

    /// Reads a key of memory of `owner`; nothing where it is none.
    pub(crate) fn read(owner: Rank, bytes: &[u8], secret: &JobSecret) -> Option<Self> {
        let mut key = Self::read_from_bytes(bytes).ok()?;
        let told = std::mem::replace(&mut key.digest, U64::ZERO);
        (told == digest(owner, key.as_bytes(), secret)).then_some(key)
    }

    /// Where `len` bytes at `address` lie in the memory; nothing where they reach outside.
    pub(crate) fn offset_of(&self, address: u64, len: u64) -> Option<u64> {
        let offset = address.checked_sub(self.address.get())?;
        let end = offset.checked_add(len)?;
        (end <= self.length.get()).then_some(offset)
    }
}

/// What stands before the worker address in what a rank publishes.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct AddressHead {
    magic: U32,
    version: U16,
    zero: U16,
    rank: U32,
    length: U32,
    digest: U64,
}

/// What `rank` publishes to be reached at `worker`.
pub(crate) fn address_of(rank: Rank, worker: &[u8], secret: &JobSecret) -> Vec<u8> {
    let head = AddressHead {
        magic: MAGIC.into(),
        version: VERSION.into(),
        zero: U16::ZERO,
        rank: rank.as_u32().into(),
        length: (worker.len() as u32).into(),
        digest: digest(rank, worker, secret).into(),
    };
    [head.as_bytes(), worker].concat()
}

/// The worker address in what `rank` published.
pub(crate) fn read_address<'a>(
    rank: Rank,
    published: &'a [u8],
    secret: &JobSecret,
) -> Result<&'a [u8], String> {
    let (head, worker) = AddressHead::read_from_prefix(published)
        .map_err(|_| format!("{} bytes are too few", published.len()))?;
    if head.magic != MAGIC {
        return Err("it is not an address of this transport".to_owned());
    }
    if head.version != VERSION {
        return Err(format!(
            "it is of version {} and not {VERSION}",
            head.version
        ));
    }
    if head.rank != rank.as_u32() {
        return Err(format!("it is that of rank {}", head.rank));
    }
    if head.length.get() as usize != worker.len() || head.digest != digest(rank, worker, secret) {
        return Err("it is damaged, or of another job".to_owned());
    }
    Ok(worker)
}

/// UCX reads addresses and keys without a check of its own: only what a member of the job made is
/// given to it. (FNV-1a over the secret and the bytes: it keeps out what is damaged or foreign.)
pub(crate) fn digest(rank: Rank, bytes: &[u8], secret: &JobSecret) -> u64 {
    let rank = rank.as_u32().to_le_bytes();
    let all = secret.as_bytes().iter().chain(&rank).chain(bytes);
    all.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(byte: u8) -> JobSecret {
        JobSecret::from_bytes([byte; JobSecret::LEN])
    }

    #[test]
    fn addresses_are_read_by_their_job_alone() {
        let published = address_of(Rank::new(3), b"worker", &secret(1));
        let read = |rank, bytes: &[u8], secret: &JobSecret| {
            read_address(Rank::new(rank), bytes, secret).map(<[u8]>::to_vec)
        };
        assert_eq!(read(3, &published, &secret(1)).unwrap(), b"worker");
        assert!(read(4, &published, &secret(1)).is_err());
        assert!(read(3, &published, &secret(2)).is_err());
        for place in 0..published.len() {
            assert!(read(3, &published[..place], &secret(1)).is_err());
            let mut changed = published.clone();
            changed[place] ^= 1;
            // The two bytes that stand for nothing may change.
            assert!((6..8).contains(&place) || read(3, &changed, &secret(1)).is_err());
        }
    }

    #[test]
    fn control_messages_prove_and_name_their_kind() {
        let hello = Control::hello(Rank::new(1), 7, Rank::new(2), (&secret(5), b"here"));
        let back = Control::read_from_bytes(hello.as_bytes()).unwrap();
        assert_eq!(back.kind(), Ok(ControlKind::Hello));
        assert!(back.proves(&secret(5), b"here"));
        assert!(!back.proves(&secret(6), b"here") && !back.proves(&secret(5), b"there"));
        // What was overheard is no hello of another rank, to another, or of another session.
        for place in 0..size_of::<Control>() {
            let mut bytes = [0; size_of::<Control>()];
            bytes.copy_from_slice(hello.as_bytes());
            bytes[place] ^= 1;
            let other = Control::read_from_bytes(&bytes).unwrap();
            assert!(!other.proves(&secret(5), b"here"), "byte {place}");
        }
        let text = format!("{:?}", hello.as_bytes());
        let words = format!("{:?}", secret(5).as_bytes());
        assert!(
            !text.contains(words.trim_matches(['[', ']'])),
            "the secret itself"
        );
        assert!(Control::read_from_bytes(&[0; 64]).unwrap().kind().is_err());
        assert_eq!(size_of::<Control>(), 64);
    }

    #[test]
    fn eight_bytes_of_payload_fit_a_cache_line() {
        assert!(36 + size_of::<Prefix>() + 8 <= 64);
    }

    #[test]
    fn sessions_tell_the_ranks_of_a_job_apart() {
        for size in [1, 2, 3, 8, 1000, 65_536] {
            let sessions = (0..size).map(|rank| session_of(Rank::new(rank), size, 0xdead_beef));
            let all: std::collections::HashSet<u32> = sessions.collect();
            assert_eq!(all.len(), size as usize);
        }
        assert_eq!(session_of(Rank::new(5), 6, 0xffff_fff0), 0xffff_fff5);
        assert_ne!(
            session_of(Rank::new(0), 1, 7),
            session_of(Rank::new(0), 1, 8)
        );
    }
}
