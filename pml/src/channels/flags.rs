//! The flags of a channel: a word for each transport partition of each room of its buffer, which the sender
//! writes behind the partition's bytes, with the number of the round.
//!
//! Both ends have such words: what the sender writes from, and what is written. Values of a peer's are compared
//! with the round that is open, and nothing else is done with them.
#![allow(unsafe_code)]

use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed};

use tagwire_transport::{
    Buffering, EndpointId, Post, RecvBuffer, RegistrationHandle, RemoteAccess, RemoteMemory,
    SendBuffer, Token,
};

use super::key::Run;
use crate::peers::LANE;

/// Bytes of a flag.
const FLAG: u64 = size_of::<AtomicU64>() as u64;

/// The words of one end. They are kept for ever unless whoever lends them frees them.
#[derive(Debug)]
struct Words {
    words: ManuallyDrop<Box<[AtomicU64]>>,
    units: usize,
}

impl Words {
    fn new(units: u32, buffering: Buffering) -> Self {
        let units = units as usize;
        let words = 0..units * buffering.rooms();
        Self {
            words: ManuallyDrop::new(words.map(|_| AtomicU64::new(0)).collect()),
            units,
        }
    }

    fn place(&self, run: &Run) -> std::ops::Range<usize> {
        let first = run.room * self.units;
        first + run.units.start as usize..first + run.units.end as usize
    }

    /// # Safety
    /// Nobody else uses the words any more, nor does this end.
    unsafe fn free(&mut self) {
        // SAFETY: the caller's promise.
        unsafe { ManuallyDrop::drop(&mut self.words) };
    }
}

/// The sender's flags, and where the receiver has its own.
#[derive(Debug)]
pub(super) struct Sources {
    words: Words,
    /// Where the receiver's flags are, and what opens them.
    address: u64,
    key: Box<[u8]>,
    /// Writes that have not ended.
    under_way: u32,
}

impl Sources {
    pub(super) fn new(units: u32, buffering: Buffering, address: u64, key: &[u8]) -> Self {
        Self {
            words: Words::new(units, buffering),
            address,
            key: key.into(),
            under_way: 0,
        }
    }

    /// Writes the flags of a run, behind all that was put before. Nothing of it may be under way.
    pub(super) fn put(
        &mut self,
        rail: &mut dyn RemoteAccess,
        to: EndpointId,
        (run, epoch): (&Run, u64),
        token: Token,
    ) -> Post {
        #[cfg(not(test))]
        let is_fenced = true;
        #[cfg(test)]
        let is_fenced = !crate::planted::UNFENCED_FLAGS.get();
        if is_fenced {
            match rail.fence(LANE, to) {
                Post::Posted => {}
                other => return other,
            }
        }
        let place = self.words.place(run);
        let offset = place.start as u64 * FLAG;
        let words = &self.words.words[place];
        words.iter().for_each(|word| word.store(epoch, Relaxed));
        // SAFETY: the bytes of the words, which are freed once nothing is under way, and are not set
        // again before this write has ended.
        let data = unsafe { SendBuffer::contiguous(words.as_ptr().cast(), size_of_val(words)) };
        let target = RemoteMemory {
            address: self.address.wrapping_add(offset),
            key: &self.key,
        };
        let post = rail.put(LANE, to, &data, target, None, token);
        if post == Post::Posted {
            self.under_way += 1;
        }
        post
    }

    /// One of the writes has ended.
    pub(super) fn ended(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
    }
}

impl Drop for Sources {
    fn drop(&mut self) {
        if self.under_way == 0 {
            // SAFETY: no write is under way, and none is posted any more.
            unsafe { self.words.free() };
        }
    }
}

/// The receiver's flags: registered memory that its sender writes.
#[derive(Debug)]
pub(super) struct Targets {
    words: Words,
    /// Until it ends.
    registration: Option<RegistrationHandle>,
}

impl Targets {
    /// `None` where they cannot be registered.
    pub(super) fn register(
        rail: &mut dyn RemoteAccess,
        units: u32,
        buffering: Buffering,
    ) -> Option<Self> {
        let mut flags = Self {
            words: Words::new(units, buffering),
            registration: None,
        };
        let words: &[AtomicU64] = &flags.words.words;
        // SAFETY: the bytes of the words, which are atomic: they may be written while they are read.
        // They are freed once the registration has ended.
        let data =
            unsafe { RecvBuffer::contiguous(words.as_ptr().cast_mut().cast(), size_of_val(words)) };
        flags.registration = Some(rail.register(&data).ok()?);
        Some(flags)
    }

    /// Where the words are, and the key of their registration.
    pub(super) fn remote(&self) -> (u64, &[u8]) {
        let key = self.registration.as_ref().map_or(&[][..], |one| &one.key);
        (self.words.words.as_ptr().expose_provenance() as u64, key)
    }

    /// The round in which `unit` was last written there.
    #[inline]
    pub(super) fn get(&self, room: usize, unit: usize) -> u64 {
        self.words.words[room * self.words.units + unit].load(Acquire)
    }

    /// No peer may write them any more.
    pub(super) fn end(mut self, rail: &mut dyn RemoteAccess) {
        if let Some(registration) = self.registration.take() {
            rail.deregister(registration);
        }
    }
}

impl Drop for Targets {
    fn drop(&mut self) {
        if self.registration.is_none() {
            // SAFETY: the transport has ended the registration, or there was none.
            unsafe { self.words.free() };
        }
    }
}
