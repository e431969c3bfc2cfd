//! The table of requests under way: [`Slots`], in which a new request writes just the fields that it needs.

use std::ops::{Deref, DerefMut};

use tagwire_base::slab::{Entry, Handle, Slots};

use crate::error::{Error, Result};
use crate::types::{RequestId, Status};

/// Requests by handle.
#[derive(Debug)]
pub(crate) struct Table<T>(Slots<T>);

impl<T> Deref for Table<T> {
    type Target = Slots<T>;

    #[inline(always)]
    fn deref(&self) -> &Slots<T> {
        &self.0
    }
}

impl<T> DerefMut for Table<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Slots<T> {
        &mut self.0
    }
}

/// A request, as far as its owner is concerned.
pub(crate) trait Request: Entry {
    /// Returns what a slot holds before its first use.
    fn blank() -> Self;

    /// Whether something is still to be done for it.
    fn is_active(&self) -> bool;

    /// Whether it was started often, and is not now.
    fn is_inactive(&self) -> bool;

    fn is_persistent(&self) -> bool;

    fn status(&self) -> Status;

    /// Its end was taken: it may be started again.
    fn deactivate(&mut self);
}

impl<T: Request> Table<T> {
    pub(crate) const fn new() -> Self {
        Self(Slots::new())
    }

    /// Returns the handle that the next [`occupy`](Table::occupy) gives.
    #[inline]
    pub(crate) fn next_handle(&mut self) -> Handle {
        self.0.next_handle(|_| T::blank())
    }

    /// Returns a slot for a new entry: its handle, and what the slot held before.
    #[inline]
    pub(crate) fn occupy(&mut self) -> (Handle, &mut T) {
        self.0.occupy(|_| T::blank())
    }

    /// As [`PointToPoint::is_complete`](crate::PointToPoint::is_complete).
    #[inline]
    pub(crate) fn is_complete(&self, request: RequestId) -> bool {
        request == RequestId::COMPLETE
            || self
                .get(request.0)
                .is_none_or(|request| !request.is_active())
    }

    /// As [`PointToPoint::take`](crate::PointToPoint::take).
    #[inline]
    pub(crate) fn take_end(&mut self, request: RequestId) -> Result<Option<Status>> {
        if request == RequestId::COMPLETE {
            return Ok(Some(Status::EMPTY));
        }
        let entry = self.get_mut(request.0).ok_or(Error::StaleRequest)?;
        if entry.is_active() {
            return Ok(None);
        }
        if entry.is_inactive() {
            return Ok(Some(Status::EMPTY));
        }
        let status = entry.status();
        match entry.is_persistent() {
            true => entry.deactivate(),
            false => self.remove(request.0),
        }
        Ok(Some(status))
    }

    /// Returns a persistent request that is inactive, to be `done` something with: started, or freed.
    ///
    /// # Errors
    /// When it is none.
    pub(crate) fn at_rest(&mut self, request: RequestId, done: &'static str) -> Result<&mut T> {
        let entry = self.get_mut(request.0).ok_or(Error::StaleRequest)?;
        match entry.is_persistent() && entry.is_inactive() {
            true => Ok(entry),
            false => Err(Error::WrongRequest(done)),
        }
    }

    /// As [`PointToPoint::free`](crate::PointToPoint::free).
    pub(crate) fn free(&mut self, request: RequestId) -> Result<()> {
        self.at_rest(request, "freed: it is not persistent and inactive")?;
        self.remove(request.0);
        Ok(())
    }
}
