//! What travels and what is told: headers, payloads, arrivals, completions, peer events.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::ops::Range;

use tagwire_base::Rank;

use crate::data::copy_bytes;
use crate::error::Error;

/// The header of an active message: 16 bytes that belong to the layer above, carried as they are
/// (little-endian words on the wire).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct AmHeader(pub [u64; 2]);

/// Transport resources that one thread at a time drives (a VCI in MPICH, a worker in UCX).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Lane(pub u16);

/// A transport's handle for one peer. Numbered from 0 in the order of first contact, never
/// reused: it can index a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EndpointId(pub u32);

impl EndpointId {
    /// The number, as an index.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The caller's name for an operation, given back when it completes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Token(pub u64);

/// Bytes that a peer wrote, possibly in memory that the peer can still change. They are
/// untrusted: copy first, then look. No reference to them exists.
#[derive(Debug, Clone, Copy)]
pub struct Payload<'a> {
    start: *const u8,
    len: usize,
    lent: PhantomData<&'a [u8]>,
}

impl<'a> Payload<'a> {
    /// No bytes.
    pub const EMPTY: Payload<'static> = Payload {
        start: std::ptr::dangling(),
        len: 0,
        lent: PhantomData,
    };

    /// The bytes of a slice.
    #[inline]
    #[must_use]
    pub const fn from_slice(bytes: &'a [u8]) -> Self {
        Self {
            start: bytes.as_ptr(),
            len: bytes.len(),
            lent: PhantomData,
        }
    }

    /// The `len` bytes at `start`.
    ///
    /// # Safety
    /// The memory stays mapped and readable for `'a`. Another process may change it meanwhile.
    #[inline]
    #[must_use]
    pub const unsafe fn from_raw(start: *const u8, len: usize) -> Self {
        Self {
            start,
            len,
            lent: PhantomData,
        }
    }

    /// Length in bytes.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes in `range`, cut to what there is.
    #[inline]
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Self {
        let start = range.start.min(self.len);
        let end = range.end.clamp(start, self.len);
        // SAFETY: `start` is at most `len`, so the pointer stays within the memory or one past.
        let first = unsafe { self.start.add(start) };
        Self {
            start: first,
            len: end - start,
            lent: PhantomData,
        }
    }

    /// Copies the first `len` bytes to `to`, at most as many as there are.
    ///
    /// # Safety
    /// `to` is writable for `len` bytes and does not overlap the payload.
    #[inline]
    pub unsafe fn copy_to(&self, to: *mut u8, len: usize) {
        // SAFETY: the maker promised readable memory of `self.len`; the caller vouches for `to`.
        // A peer that writes meanwhile tears bytes, which the contract allows: they are data.
        unsafe { copy_bytes(self.start, to, len.min(self.len)) };
    }

    /// Where the bytes are: for no longer than the payload lives.
    pub(crate) const fn region(&self) -> crate::data::ReadRegion {
        crate::data::ReadRegion::new(self.start, self.len)
    }

    /// Fills `out` from the start of the payload; returns whether there was enough.
    #[inline]
    #[must_use = "a short payload leaves the rest of `out` as it was"]
    pub fn read_into(&self, out: &mut [u8]) -> bool {
        self.copy_to_slice(out);
        self.len >= out.len()
    }

    /// Copies as much as fits into `out`.
    #[inline]
    pub fn copy_to_slice(&self, out: &mut [u8]) {
        // SAFETY: `out` is writable for its length, and a mutable borrow overlaps nothing.
        unsafe { self.copy_to(out.as_mut_ptr(), out.len()) };
    }

    /// A private copy.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let mut out = vec![0; self.len];
        self.copy_to_slice(&mut out);
        out
    }
}

/// A message that has arrived. The payload is lent for the time of the upcall.
#[derive(Debug)]
pub struct Arrival<'a> {
    /// Who sent it.
    pub from: EndpointId,
    /// The sender's header.
    pub header: AmHeader,
    /// The sender's bytes.
    pub payload: Payload<'a>,
}

impl<'a> Arrival<'a> {
    /// One that is told again, with the bytes that were kept of it.
    #[must_use]
    pub fn kept(from: EndpointId, header: AmHeader, bytes: &'a [u8]) -> Self {
        Self {
            from,
            header,
            payload: Payload::from_slice(bytes),
        }
    }
}

/// How an operation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// It moved this many bytes.
    Done(u64),
    /// The peer failed. The buffer is the caller's again: nobody can touch it any more.
    PeerFailed,
    /// The means did not work (cross-memory attach was forbidden, say) and the operation has
    /// moved nothing that counts: another protocol may carry the bytes.
    Impossible,
    /// It was withdrawn.
    Withdrawn,
}

/// What became of a peer.
#[derive(Debug)]
#[non_exhaustive]
pub enum PeerEvent {
    /// First contact: messages of `rank` come by `endpoint`.
    Up {
        /// The handle from now on.
        endpoint: EndpointId,
        /// The peer.
        rank: Rank,
    },
    /// The peer closed this transport in good order; what it sent before has been delivered.
    Left(EndpointId),
    /// The peer failed; what it sent before and could be read has been delivered.
    Failed(EndpointId),
    /// Something came that no correct peer sends. Where an endpoint is named, it is dead.
    Protocol(Option<EndpointId>, Error),
}

/// What a transport reports to the layer above, from within
/// [`progress`](crate::ByteTransport::progress). An upcall must not call the transport.
pub trait Upcalls {
    /// A message has arrived.
    fn deliver(&mut self, arrival: Arrival<'_>);

    /// The operation that was given `token` has ended.
    fn complete(&mut self, token: Token, outcome: Outcome);

    /// Something happened to a peer.
    fn peer(&mut self, event: PeerEvent);

    /// A peer has [put](crate::RemoteAccess::put) bytes into memory of this rank with this immediate
    /// value; they are visible. From whom, the layer above knows by the value: networks do not tell. A
    /// layer that asks no peer for such puts has nothing to do.
    fn notice(&mut self, immediate: u64) {
        let _ = immediate;
    }
}

/// So that what is generic over its upcalls takes those behind a pointer too.
impl<U: Upcalls + ?Sized> Upcalls for &mut U {
    #[inline]
    fn deliver(&mut self, arrival: Arrival<'_>) {
        (**self).deliver(arrival);
    }

    #[inline]
    fn complete(&mut self, token: Token, outcome: Outcome) {
        (**self).complete(token, outcome);
    }

    #[inline]
    fn peer(&mut self, event: PeerEvent) {
        (**self).peer(event);
    }

    #[inline]
    fn notice(&mut self, immediate: u64) {
        (**self).notice(immediate);
    }
}
