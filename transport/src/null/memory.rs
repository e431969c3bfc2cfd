//! Registered memory, and the copies of put, get and atomics. The only place of this transport
//! that touches memory by address.
#![allow(unsafe_code)]

use std::collections::HashMap;

use crate::data::{ReadRegion, RecvBuffer, SendBuffer, WriteRegion};
use crate::message::Payload;
use crate::remote::{RegistrationHandle, RemoteMemory};

/// The memory that a rank has registered, by number. Numbers are not used again, so an old key
/// finds nothing.
#[derive(Debug, Default)]
pub(super) struct Registrations {
    regions: HashMap<u64, Registered>,
    next: u64,
}

/// What may be done with registered memory.
#[derive(Debug, Clone, Copy)]
enum Registered {
    Readable(ReadRegion),
    Writable(WriteRegion),
}

impl Registered {
    fn readable(self) -> ReadRegion {
        match self {
            Self::Readable(region) => region,
            Self::Writable(region) => ReadRegion::new(region.as_ptr(), region.len()),
        }
    }
}

impl Registrations {
    pub(super) fn register(&mut self, region: WriteRegion) -> RegistrationHandle {
        self.insert(Registered::Writable(region))
    }

    pub(super) fn expose(&mut self, region: ReadRegion) -> RegistrationHandle {
        self.insert(Registered::Readable(region))
    }

    fn insert(&mut self, region: Registered) -> RegistrationHandle {
        let id = self.next;
        self.next += 1;
        self.regions.insert(id, region);
        RegistrationHandle {
            id,
            key: id.to_le_bytes().to_vec(),
        }
    }

    pub(super) fn deregister(&mut self, id: u64) {
        self.regions.remove(&id);
    }

    fn named(&self, memory: RemoteMemory<'_>) -> Option<Registered> {
        let id = u64::from_le_bytes(memory.key.try_into().ok()?);
        self.regions.get(&id).copied()
    }

    /// The `len` bytes at `memory`, when they lie inside the registration that its key names.
    fn find(&self, memory: RemoteMemory<'_>, len: usize) -> Option<ReadRegion> {
        let region = self.named(memory)?.readable();
        let offset = usize::try_from(memory.address.checked_sub(region.address())?).ok()?;
        region.slice(offset..offset.checked_add(len)?)
    }

    /// The same, to write to.
    fn find_writable(&self, memory: RemoteMemory<'_>, len: usize) -> Option<*mut u8> {
        let Registered::Writable(region) = self.named(memory)? else {
            return None;
        };
        let offset = usize::try_from(memory.address.checked_sub(region.address())?).ok()?;
        let part = region.slice(offset..offset.checked_add(len)?)?;
        Some(part.as_ptr())
    }

    /// Writes `data` to `target`; returns how much, or nothing where it must not go.
    pub(super) fn put(&self, data: &SendBuffer, target: RemoteMemory<'_>) -> Option<u64> {
        // Asked for once: what packs a message may return something else the next time.
        let len = data.len();
        let to = self.find_writable(target, len)?;
        // A copy in between: source and target may be the same memory.
        let mut bytes = vec![0; len];
        let count = data.copy_out(0, &mut bytes);
        // SAFETY: `count` is at most `len`, for which the range was found inside a registration; its maker lends
        // that for access by peers until it ends. `bytes` is memory of our own.
        unsafe { Payload::from_slice(&bytes).copy_to(to, count) };
        Some(count as u64)
    }

    /// Fills `data` from `source`.
    pub(super) fn get(&self, data: &RecvBuffer, source: RemoteMemory<'_>) -> Option<u64> {
        let target = data.region()?;
        let from = self.find(source, target.len())?;
        // SAFETY: `from` as in `put`; `target` is lent until the operation completes. They may
        // be the same memory: `copy` allows it.
        unsafe { std::ptr::copy(from.as_ptr(), target.as_ptr(), target.len()) };
        Some(target.len() as u64)
    }

    /// Adds to the word at `target`; returns what it held.
    pub(super) fn fetch_add(&self, target: RemoteMemory<'_>, operand: u64) -> Option<u64> {
        let word = self.find_writable(target, size_of::<u64>())?;
        let word = word.cast::<u64>();
        if !word.is_aligned() {
            return None;
        }
        // SAFETY: eight bytes of registered memory, aligned; the only rank that can reach them
        // is the caller, so nobody else is at it.
        unsafe {
            let old = word.read();
            word.write(old.wrapping_add(operand));
            Some(old)
        }
    }
}
