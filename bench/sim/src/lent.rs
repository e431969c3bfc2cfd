//! The buffers of a rank's operations. They are the rank's, so that a body that is given up in the middle of a wait leaves nothing lent
//! that is gone.
#![allow(unsafe_code)]

use std::sync::Arc;

use tagwire_base::Rank;
use tagwire_coll::operations::{Barrier, CollectiveOperation};
use tagwire_coll::{Request, Team};
use tagwire_pml::{RequestId, Target};
use tagwire_transport::{RecvBuffer, SendBuffer};

/// A collective operation that was started on a buffer.
#[derive(Debug)]
pub(crate) struct Collective {
    pub(crate) request: Request,
    number: u64,
}

/// Buffers by the request that they are lent to. Dropped after the port of the rank, which touches them in its calls alone.
#[derive(Debug, Default)]
pub(crate) struct Lent {
    messages: Vec<(RequestId, Box<[u8]>)>,
    /// Of collectives that are under way, by their number.
    collectives: Vec<(u64, Box<[u8]>)>,
    /// How many collectives were started.
    started: u64,
    /// Of writes that no flush has ended, by the rank that is written to.
    puts: Vec<(Rank, Box<[u8]>)>,
    /// Of partitioned operations, as long as the rank is there.
    kept: Vec<Box<[u8]>>,
}

impl Lent {
    /// Posts a send of `bytes`, which are kept until [`take`](Self::take) has its request.
    pub(crate) fn send<E>(
        &mut self,
        bytes: Box<[u8]>,
        post: impl FnOnce(SendBuffer) -> Result<RequestId, E>,
    ) -> Result<RequestId, E> {
        // SAFETY: the bytes do not move with their box. They are dropped once their request is taken, that is complete, or
        // after the port. Where the call fails, nothing was started.
        let buffer = unsafe { SendBuffer::contiguous(bytes.as_ptr(), bytes.len()) };
        let request = post(buffer)?;
        if request != RequestId::COMPLETE {
            self.messages.push((request, bytes));
        }
        Ok(request)
    }

    /// Posts a receive into `room`; the same.
    pub(crate) fn recv<E>(
        &mut self,
        mut room: Box<[u8]>,
        post: impl FnOnce(RecvBuffer) -> Result<RequestId, E>,
    ) -> Result<RequestId, E> {
        // SAFETY: as above, and nobody looks at them before.
        let buffer = unsafe { RecvBuffer::contiguous(room.as_mut_ptr(), room.len()) };
        let request = post(buffer)?;
        self.messages.push((request, room));
        Ok(request)
    }

    /// Makes a partitioned send of `len` bytes.
    pub(crate) fn psend<E, T>(
        &mut self,
        len: usize,
        init: impl FnOnce(&SendBuffer) -> Result<T, E>,
    ) -> Result<T, E> {
        let bytes = self.keep(len);
        // SAFETY: they are dropped with the rank or after it, in one step of the simulation, in which no packet lands; and nobody
        // writes to them.
        init(&unsafe { SendBuffer::contiguous(bytes, len) })
    }

    /// Lends `len` bytes as long as the rank is there, to be received into or reached by others.
    pub(crate) fn lend<E, T>(
        &mut self,
        len: usize,
        init: impl FnOnce(&RecvBuffer) -> Result<T, E>,
    ) -> Result<T, E> {
        let room = self.keep(len);
        // SAFETY: as above, and nobody reads them.
        init(&unsafe { RecvBuffer::contiguous(room, len) })
    }

    /// Starts to write `bytes` to the rank of `target`.
    pub(crate) fn put<E, T>(
        &mut self,
        target: &Target,
        bytes: Vec<u8>,
        start: impl FnOnce(SendBuffer) -> Result<T, E>,
    ) -> Result<(), E> {
        let bytes = bytes.into_boxed_slice();
        // SAFETY: the bytes do not move with their box. They are dropped once a flush has ended the write, or after the port. Where
        // the call fails, nothing was started.
        start(unsafe { SendBuffer::contiguous(bytes.as_ptr(), bytes.len()) })?;
        self.puts.push((target.rank(), bytes));
        Ok(())
    }

    /// All writes to the rank of `target` have ended.
    pub(crate) fn flushed(&mut self, target: &Target) {
        self.puts.retain(|(rank, _)| *rank != target.rank());
    }

    fn keep(&mut self, len: usize) -> *mut u8 {
        let mut bytes = vec![0; len].into_boxed_slice();
        let start = bytes.as_mut_ptr();
        self.kept.push(bytes);
        start
    }

    /// Takes the buffer of a request that is complete.
    pub(crate) fn take(&mut self, request: RequestId) -> Option<Box<[u8]>> {
        let place = self.messages.iter().position(|(of, _)| *of == request)?;
        Some(self.messages.swap_remove(place).1)
    }

    /// Starts an operation of the group on a buffer, which is kept until it is [taken](Self::take_ended).
    pub(crate) fn start<O: CollectiveOperation + 'static>(
        &mut self,
        team: &Arc<Team>,
        mut data: Box<[u8]>,
        make: impl FnOnce(&'static mut [u8]) -> O,
    ) -> tagwire_coll::Result<Collective> {
        let (start, len) = (data.as_mut_ptr(), data.len());
        // SAFETY: as above: the bytes do not move with their box. They are dropped once the operation has ended, or after the port, and
        // nobody looks at them before.
        let lent = unsafe { std::slice::from_raw_parts_mut(start, len) };
        let operation = make(lent);
        // SAFETY: what it borrows is there until it has ended.
        let request = unsafe { team.start(operation) }?;
        self.started += 1;
        let number = self.started;
        self.collectives.push((number, data));
        Ok(Collective { request, number })
    }

    /// Starts a barrier of the group, which borrows nothing, and returns its request.
    pub(crate) fn barrier(&self, team: &Arc<Team>) -> tagwire_coll::Result<Request> {
        // SAFETY: there is nothing that has to be kept.
        unsafe { team.start(Barrier) }
    }

    /// Takes the buffer of an operation that has ended.
    pub(crate) fn take_ended(&mut self, ended: &Collective) -> Option<Box<[u8]>> {
        debug_assert!(ended.request.is_complete(), "its buffer is lent");
        let is_it = |(number, _): &(u64, Box<[u8]>)| *number == ended.number;
        let place = self.collectives.iter().position(is_it);
        let place = place.filter(|_| ended.request.is_complete())?;
        Some(self.collectives.swap_remove(place).1)
    }
}
