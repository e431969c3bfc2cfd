//! One-sided access: put, get, and fetch-and-add, to memory that a peer has registered.
//!
//! The owner enters each registration into a table in the header of its segment. A key names a line of the table and the number
//! that was drawn for this registration alone. The initiator copies within its own call: by cross-memory attach, or, where the
//! memory lies in the owner's arena, through its mapping of that. The owner does nothing for it, and need not be inside the
//! library.
//!
//! A registration ends while peers may be at it. One of both sees the other:
//!
//! ```text
//!   the initiator                          the owner ends a registration
//!   writes the line into its mark          strikes the number out of the line
//!   fence                                  fence
//!   looks for the number in the line       waits while a peer's mark names the line
//!   copies, and clears its mark            the memory is the program's again
//! ```
//!
//! The mark lies in the initiator's own area of the owner's segment. Nobody waits for the mark of a process that has ended.
//! One that is stopped just there holds its owner up until it goes on or ends.
//!
//! What a line says is as untrusted as any other word of a peer: an address is an operand of the system's call, and an offset
//! into an arena is checked against the mapping.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU64, fence};

use tagwire_base::Rank;

use super::NAME;
use super::cma;
use super::layout::{REGISTRATIONS, RegistrationLine};
use super::peer::{Access, Peer};
use super::rank::Shm;
use super::segment::HeaderMap;
use crate::data::{ReadRegion, RecvBuffer, SendBuffer, WriteRegion};
use crate::error::{Error, Result};
use crate::message::{EndpointId, Lane, Outcome, Token};
use crate::post::Post;
use crate::remote::{RegistrationHandle, RemoteAccess, RemoteMemory};

/// What a key says: 16 bytes, little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Key {
    line: u64,
    number: u64,
}

impl Key {
    fn encode(self) -> Vec<u8> {
        [self.line.to_le_bytes(), self.number.to_le_bytes()].concat()
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: [u8; 16] = bytes.try_into().ok()?;
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        let key = Self {
            line: word(0),
            number: word(8),
        };
        (key.line < REGISTRATIONS as u64 && key.number != 0).then_some(key)
    }
}

/// What a peer may do with memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Permit {
    Read,
    Write,
}

/// The registrations of a rank: which lines of its table are in use.
#[derive(Debug, Default)]
pub(super) struct Registrations {
    /// By the number in the key.
    lines: HashMap<u64, usize>,
    /// Lines that were in use and are not any more.
    free: Vec<usize>,
    /// How many lines were ever in use.
    touched: usize,
    /// How many numbers were drawn.
    drawn: u64,
}

impl Registrations {
    /// Takes a line, and draws its number; `None` where all lines are in use.
    fn take(&mut self, nonce: u64) -> Option<Key> {
        let line = self.free.pop().or_else(|| {
            let fresh = self.touched;
            self.touched += usize::from(fresh < REGISTRATIONS);
            (fresh < REGISTRATIONS).then_some(fresh)
        })?;
        let number = loop {
            self.drawn += 1;
            // Different for each draw: multiplication by an odd number is invertible, and so is the rest.
            let mixed = nonce
                .wrapping_add(self.drawn)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let number = mixed ^ (mixed >> 32);
            if number != 0 {
                break number;
            }
        };
        self.lines.insert(number, line);
        Some(Key {
            line: line as u64,
            number,
        })
    }
}

impl RegistrationLine {
    /// Enters memory that the owner's program calls `address` and copies go by as `name`.
    fn enter(&self, (address, name, len): (u64, u64, usize), permit: Permit, number: u64) {
        let writable = u64::from(permit == Permit::Write);
        self.address.store(address, Relaxed);
        self.name.store(name, Relaxed);
        self.extent.store((len as u64) << 1 | writable, Relaxed);
        self.number.store(number, Release);
    }

    /// The name of the `len` bytes at `address`, where this line has the number and they lie inside.
    fn find(&self, number: u64, (address, len): (u64, usize), permit: Permit) -> Option<u64> {
        if self.number.load(Acquire) != number {
            return None;
        }
        let extent = self.extent.load(Relaxed);
        let offset = address.checked_sub(self.address.load(Relaxed))?;
        let fits = offset.checked_add(len as u64)? <= extent >> 1;
        let permitted = permit == Permit::Read || extent & 1 != 0;
        let name = self.name.load(Relaxed).checked_add(offset)?;
        (fits && permitted).then_some(name)
    }
}

/// Says, for as long as it exists, that this rank is at a line.
struct Mark<'a>(&'a AtomicU64);

impl<'a> Mark<'a> {
    fn at(word: &'a AtomicU64, line: u64) -> Self {
        word.store(line + 1, Relaxed);
        fence(SeqCst);
        Self(word)
    }
}

impl Drop for Mark<'_> {
    fn drop(&mut self) {
        self.0.store(0, Release);
    }
}

/// Copies `from` to what `peer` calls `name`.
///
/// # Safety
/// `from` is lent for reading.
unsafe fn write(peer: &Peer, access: Access, name: u64, from: ReadRegion) -> bool {
    let all = 0..from.len();
    match access {
        Access::None => false,
        // SAFETY: the caller says so.
        Access::Mapped => peer
            .arena
            .as_ref()
            .is_some_and(|arena| unsafe { arena.write_part(name, from, all) }),
        // SAFETY: as above.
        Access::Attach(pid) => unsafe {
            from.is_empty() || cma::write(pid, name, from, all, || peer.is_still(pid)).is_ok()
        },
    }
}

/// Copies what `peer` calls `name` into `to`.
///
/// # Safety
/// `to` is lent for writing.
unsafe fn read(peer: &Peer, access: Access, name: u64, to: WriteRegion) -> bool {
    let all = 0..to.len();
    match access {
        Access::None => false,
        // SAFETY: the caller says so.
        Access::Mapped => peer
            .arena
            .as_ref()
            .is_some_and(|arena| unsafe { arena.read(name, to, all) }),
        // SAFETY: as above. What was read of another process is not counted.
        Access::Attach(pid) => unsafe {
            to.is_empty() || cma::read(pid, name, to, all).is_ok() && peer.is_still(pid)
        },
    }
}

impl Shm {
    /// Does `act` with the `len` bytes at `memory` of a peer, which gets their name and how they are reached, and returns what
    /// it came to. `None`: not this way.
    fn reach(
        &mut self,
        to: EndpointId,
        memory: RemoteMemory<'_>,
        (len, permit): (usize, Permit),
        token: Token,
        act: impl FnOnce(&Peer, Access, u64) -> Option<Option<u64>>,
    ) -> Post {
        if !self.is_alive(to) {
            return Post::Gone;
        }
        if self.outbound[to.index()].is_none() && self.answer_contact(to).is_err() {
            return Post::Unsupported;
        }
        let pid = self.attach(to);
        let peer = &self.peers[to.index()];
        let sees = |peer: &Peer| {
            peer.identity
                .is_some_and(|it| it.shares_namespace(&self.identity))
        };
        let (Some(area), Some(header), true) = (&peer.outbound, &peer.header, sees(peer)) else {
            // The owner could not see whether this process has ended at its memory.
            return Post::Unsupported;
        };
        let mut moved = None;
        if let Some(key) = Key::decode(memory.key) {
            let _mark = Mark::at(&area.accessing.word, key.line);
            let line = &header.registrations()[key.line as usize];
            let name = line.find(key.number, (memory.address, len), permit);
            let access = name.and_then(|name| Some((name, peer.access(name, len as u64, pid)?)));
            if let Some((name, access)) = access {
                match act(peer, access, name) {
                    None => return Post::Unsupported,
                    Some(outcome) => moved = outcome,
                }
            }
        }
        let outcome = match moved {
            Some(value) => Outcome::Done(value),
            None if peer.liveness.is_over() => Outcome::PeerFailed,
            None => Outcome::Impossible,
        };
        self.end_at_once(token, outcome)
    }

    /// Ends an operation that is done: the next call of progress reports it.
    fn end_at_once(&mut self, token: Token, outcome: Outcome) -> Post {
        self.transfers.end(token, outcome);
        self.attention = true;
        Post::Posted
    }

    fn enter(
        &mut self,
        region: Option<(u64, usize)>,
        permit: Permit,
    ) -> Result<RegistrationHandle> {
        let refused = |what| Error::Unsupported {
            transport: NAME,
            what,
        };
        let (address, len) =
            region.ok_or_else(|| refused("registration of memory that is not contiguous"))?;
        let name = self.arena.span.name(address, len);
        let key = self.registrations.take(self.identity.nonce);
        let key = key.ok_or_else(|| refused("more than 1024 registrations at once"))?;
        let line = &self.header.registrations()[key.line as usize];
        line.enter((address, name, len), permit, key.number);
        Ok(RegistrationHandle {
            id: key.number,
            key: key.encode(),
        })
    }

    /// Waits until no peer is at a line any more, whose number is struck out.
    fn wait_for_marks(&self, line: usize) {
        fence(SeqCst);
        for (index, word) in self.header.bitmap().iter().enumerate() {
            let mut contacts = word.load(Acquire);
            while contacts != 0 {
                let rank = Rank::new(index as u32 * 64 + contacts.trailing_zeros());
                contacts &= contacts - 1;
                self.wait_for_mark(rank, line as u64 + 1);
            }
        }
    }

    fn wait_for_mark(&self, rank: Rank, mark: u64) {
        let peer = self.by_rank.get(&rank).map(|at| &self.peers[at.index()]);
        let known = peer.and_then(|peer| peer.inbound.clone());
        // One that was not looked at yet may have the key already.
        let area = known.or_else(|| self.segment.map_area(rank.as_u32()).ok());
        let Some(area) = area else { return };
        let is_over = || match peer {
            Some(peer) => peer.liveness.is_over(),
            None => self.unknown_is_over(rank),
        };
        while area.accessing.word.load(Acquire) == mark && !is_over() {
            std::thread::yield_now();
        }
    }
}

/// Strikes out all registrations, of an owner that closes. Their memory stays lent: nobody is waited for.
pub(super) fn strike_out(registrations: &Registrations, header: &HeaderMap) {
    for line in registrations.lines.values() {
        header.registrations()[*line].number.store(0, Release);
    }
}

impl RemoteAccess for Shm {
    fn put(
        &mut self,
        _lane: Lane,
        to: EndpointId,
        data: &SendBuffer,
        target: RemoteMemory<'_>,
        immediate: Option<u64>,
        token: Token,
    ) -> Post {
        if immediate.is_some() {
            return Post::Unsupported;
        }
        let mut bounce = Vec::new();
        let region = data.region().unwrap_or_else(|| {
            bounce.resize(data.len(), 0);
            let filled = data.copy_out(0, &mut bounce);
            ReadRegion::new(bounce.as_ptr(), filled)
        });
        let wanted = (region.len(), Permit::Write);
        self.reach(to, target, wanted, token, |peer, access, name| {
            // SAFETY: the buffer is lent until the operation completes, which is after this call; the bounce buffer is ours.
            let is_there = unsafe { write(peer, access, name, region) };
            (access != Access::None).then_some(is_there.then_some(region.len() as u64))
        })
    }

    fn get(
        &mut self,
        _lane: Lane,
        from: EndpointId,
        data: &RecvBuffer,
        source: RemoteMemory<'_>,
        token: Token,
    ) -> Post {
        let Some(region) = data.region() else {
            return Post::Unsupported;
        };
        let wanted = (region.len(), Permit::Read);
        self.reach(from, source, wanted, token, |peer, access, name| {
            // SAFETY: the buffer is lent until the operation completes, which is after this call.
            let is_here = unsafe { read(peer, access, name, region) };
            (access != Access::None).then_some(is_here.then_some(region.len() as u64))
        })
    }

    fn flush(&mut self, _lane: Lane, to: EndpointId, token: Token) -> Post {
        match self.is_alive(to) {
            // What was put is there since its call.
            true => self.end_at_once(token, Outcome::Done(0)),
            false => Post::Gone,
        }
    }

    fn fence(&mut self, _lane: Lane, to: EndpointId) -> Post {
        fence(SeqCst);
        match self.is_alive(to) {
            true => Post::Posted,
            false => Post::Gone,
        }
    }

    /// Of words in the peer's arena: the system has no call that adds to a word of another process.
    fn fetch_add(
        &mut self,
        _lane: Lane,
        to: EndpointId,
        target: RemoteMemory<'_>,
        operand: u64,
        token: Token,
    ) -> Post {
        let wanted = (size_of::<u64>(), Permit::Write);
        self.reach(to, target, wanted, token, |peer, access, name| {
            let arena = peer.arena.as_ref().filter(|_| access == Access::Mapped)?;
            Some(arena.fetch_add(name, operand))
        })
    }

    fn register(&mut self, data: &RecvBuffer) -> Result<RegistrationHandle> {
        let region = data.region();
        let region = region.map(|region| (region.address(), region.len()));
        self.enter(region, Permit::Write)
    }

    fn expose(&mut self, data: &SendBuffer) -> Result<RegistrationHandle> {
        let region = data.region();
        let region = region.map(|region| (region.address(), region.len()));
        self.enter(region, Permit::Read)
    }

    fn deregister(&mut self, handle: RegistrationHandle) {
        let Some(line) = self.registrations.lines.remove(&handle.id) else {
            return;
        };
        self.header.registrations()[line].number.store(0, Relaxed);
        self.wait_for_marks(line);
        self.registrations.free.push(line);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn keys_are_taken_whole() {
        let key = Key {
            line: 3,
            number: 0x0102_0304_0506_0708,
        };
        let bytes = key.encode();
        assert_eq!(Key::decode(&bytes), Some(key));
        assert_eq!(Key::decode(&bytes[..15]), None);
        assert_eq!(Key::decode(&[&bytes[..], &[0]].concat()), None);
        let outside = Key {
            line: REGISTRATIONS as u64,
            ..key
        };
        assert_eq!(Key::decode(&outside.encode()), None);
        assert_eq!(Key::decode(&Key { number: 0, ..key }.encode()), None);
    }

    #[test]
    fn lines_come_again_with_other_numbers() {
        let mut registrations = Registrations::default();
        let all: Vec<Key> = (0..REGISTRATIONS)
            .map(|_| registrations.take(7).unwrap())
            .collect();
        assert_eq!(registrations.take(7), None);
        let mut numbers: Vec<u64> = all.iter().map(|key| key.number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), REGISTRATIONS);
        let line = registrations.lines.remove(&all[5].number).unwrap();
        registrations.free.push(line);
        let again = registrations.take(7).unwrap();
        assert_eq!(again.line, 5);
        assert!(!numbers.contains(&again.number));
    }

    #[test]
    fn lines_hold_what_was_entered_and_no_more() {
        let line = RegistrationLine::default();
        assert_eq!(
            line.find(0, (0, 0), Permit::Read).map(drop),
            Some(()),
            "an empty line has no number, and no key names that"
        );
        line.enter((1000, 5000, 100), Permit::Read, 9);
        assert_eq!(line.find(9, (1000, 100), Permit::Read), Some(5000));
        assert_eq!(line.find(9, (1099, 1), Permit::Read), Some(5099));
        assert_eq!(line.find(9, (1100, 0), Permit::Read), Some(5100));
        for (address, len) in [
            (1000, 101),
            (1100, 1),
            (999, 1),
            (u64::MAX, 1),
            (1001, usize::MAX),
        ] {
            assert_eq!(line.find(9, (address, len), Permit::Read), None);
        }
        assert_eq!(line.find(9, (1000, 1), Permit::Write), None);
        assert_eq!(line.find(8, (1000, 1), Permit::Read), None);
        line.enter((1000, 5000, 100), Permit::Write, 10);
        assert_eq!(line.find(10, (1000, 1), Permit::Write), Some(5000));
    }
}
