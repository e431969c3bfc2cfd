//! The regions of a rank, and what their owner does for peers whose transport does not.
#![allow(unsafe_code)]

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

use tagwire_transport::{
    Capabilities, Payload, RecvBuffer, RegistrationHandle, SendBuffer, WriteRegion,
};

use super::atomic::Atomic;
use super::wire::{self, AtomicBody, FRONT, GetBody, Key, PutBody};
use crate::error::{Error, Result};
use crate::packet::{ControlHeader, Kind};
use crate::peers::PeerIndex;
use crate::service::{Out, Wire, Wrong};
use crate::slab::{Handle, Slab};

/// Longest reply to a get.
const LONGEST: u64 = 64 * 1024;

/// Memory that peers may reach.
#[derive(Debug)]
struct Exposed {
    memory: WriteRegion,
    /// By which the transport reaches it.
    registration: Option<RegistrationHandle>,
}

/// The regions of a rank.
#[derive(Debug, Default)]
pub(crate) struct Regions(Slab<Exposed>);

impl Regions {
    /// Lets peers reach `memory`, which is lent until [`withdraw`](Self::withdraw). Returns its handle and its key.
    ///
    /// # Errors
    /// [`Error::BadRound`] when it is not contiguous.
    pub(crate) fn expose(
        &mut self,
        memory: &RecvBuffer,
        wire: &mut Wire<'_>,
    ) -> Result<(Handle, Vec<u8>)> {
        let region = memory
            .region()
            .ok_or(Error::BadRegion("needs contiguous memory"))?;
        let rail = wire.rail.as_deref_mut();
        let rail = rail.filter(|rail| rail.capabilities().contains(Capabilities::PUT));
        // What cannot be registered is reached by packets.
        let registration = rail.and_then(|rail| rail.register(memory).ok());
        let memory = registration.as_ref().map_or(&[][..], |one| &one.key).into();
        let handle = self.0.insert(Exposed {
            memory: region,
            registration,
        });
        let key = Key {
            region: handle,
            length: region.len() as u64,
            address: region.address(),
            memory,
        };
        Ok((handle, key.encode()))
    }

    /// Lets nobody reach the region any more: its memory is the caller's again.
    pub(crate) fn withdraw(&mut self, region: Handle, wire: &mut Wire<'_>) {
        let exposed = self.0.remove(region);
        if let Some(registration) = exposed.and_then(|exposed| exposed.registration)
            && let Some(rail) = wire.rail.as_deref_mut()
        {
            rail.deregister(registration);
        }
    }

    /// Does what a peer asks for.
    ///
    /// # Errors
    /// What it did wrong.
    pub(super) fn serve(
        &self,
        from: PeerIndex,
        header: ControlHeader,
        payload: Payload<'_>,
        out: &mut dyn Out,
    ) -> Result<(), Wrong> {
        const SHORT: Wrong = "an access that is cut short";
        let reply = |kind, access: u64, argument| ControlHeader {
            kind,
            handle: Handle::from_wire(access),
            argument,
        };
        let offset = header.argument;
        match header.kind {
            Kind::RMA_PUT => {
                let PutBody { access } = wire::read(payload).ok_or(SHORT)?;
                let bytes = payload.slice(FRONT..payload.len());
                let kind = match self.part(header.handle, offset, bytes.len() as u64) {
                    Some(part) => {
                        // SAFETY: the memory is lent until it is withdrawn, and may be written meanwhile.
                        unsafe { RecvBuffer::of(part) }.write(0, bytes);
                        Kind::RMA_DONE
                    }
                    None => Kind::RMA_REFUSED,
                };
                let reply = reply(kind, access.get(), bytes.len() as u64);
                out.packet(from, reply, &[]);
            }
            Kind::RMA_GET => {
                let GetBody { access, length } = wire::read(payload).ok_or(SHORT)?;
                if length.get() > LONGEST {
                    return Err("a get of more than a packet has");
                }
                let mut bytes = vec![0; length.get() as usize];
                let kind = match self.part(header.handle, offset, length.get()) {
                    Some(part) => {
                        // SAFETY: as above.
                        let part = unsafe { SendBuffer::contiguous(part.as_ptr(), part.len()) };
                        part.copy_out(0, &mut bytes);
                        Kind::RMA_DATA
                    }
                    None => {
                        bytes.clear();
                        Kind::RMA_REFUSED
                    }
                };
                out.packet(from, reply(kind, access.get(), offset), &bytes);
            }
            _ => {
                let body: AtomicBody = wire::read(payload).ok_or(SHORT)?;
                let atomic = body.atomic().ok_or("an atomic operation that is none")?;
                let word = self.part(header.handle, offset, size_of::<u64>() as u64);
                let word = word.filter(|word| word.as_ptr().cast::<u64>().is_aligned());
                let (kind, value) = match word {
                    // SAFETY: aligned, and lent until it is withdrawn; nobody reads or writes it meanwhile but atomically,
                    // or takes what comes of it: see `Window::expose`.
                    Some(word) => (Kind::RMA_VALUE, unsafe { apply(atomic, word) }),
                    None => (Kind::RMA_REFUSED, 0),
                };
                out.packet(from, reply(kind, body.access.get(), value), &[]);
            }
        }
        Ok(())
    }

    /// Returns a part of a region, if it is there.
    fn part(&self, region: Handle, offset: u64, len: u64) -> Option<WriteRegion> {
        let memory = self.0.get(region)?.memory;
        let start = usize::try_from(offset).ok()?;
        let end = start.checked_add(usize::try_from(len).ok()?)?;
        memory.slice(start..end)
    }
}

/// Changes a word. Returns what it was.
///
/// # Safety
/// `word` is 8 aligned bytes that are lent to be written, and that others use atomically.
unsafe fn apply(atomic: Atomic, word: WriteRegion) -> u64 {
    // SAFETY: the caller's promise.
    let word = unsafe { AtomicU64::from_ptr(word.as_ptr().cast()) };
    match atomic {
        Atomic::Sum(operand) => word.fetch_add(operand, AcqRel),
        Atomic::Replace(operand) => word.swap(operand, AcqRel),
        Atomic::And(operand) => word.fetch_and(operand, AcqRel),
        Atomic::Or(operand) => word.fetch_or(operand, AcqRel),
        Atomic::Xor(operand) => word.fetch_xor(operand, AcqRel),
        Atomic::Min(operand) => word.fetch_min(operand, AcqRel),
        Atomic::Max(operand) => word.fetch_max(operand, AcqRel),
        Atomic::CompareSwap { compare, swap } => word
            .compare_exchange(compare, swap, AcqRel, Acquire)
            .unwrap_or_else(|found| found),
    }
}
