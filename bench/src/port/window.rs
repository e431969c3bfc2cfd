//! Memory of a rank that all others write to: by the pml's remote memory access, and by any library of the MPI standard.

use tagwire_base::Rank;

use super::null::NullPort;
use crate::buffer::{Incoming, Outgoing};
use crate::error::Result;

/// Gives what a rank's peers need to reach it to those, and returns what they gave.
pub(crate) type Exchange<'a> = &'a mut dyn FnMut(&[u8]) -> Result<Vec<(Rank, Vec<u8>)>>;

/// What has remote access.
pub(crate) trait Windows: Sync {
    /// Lets the other ranks write to `room`, and returns what they let this one write to. All ranks call it, in the same order.
    /// Nobody uses a window any more when the first rank drops its own.
    ///
    /// # Errors
    /// Where there is no such access.
    fn open(&self, room: Incoming, exchange: Exchange<'_>) -> Result<Box<dyn Window + '_>>;
}

/// A window on each rank. Any thread calls.
pub(crate) trait Window: Sync {
    /// Starts to write `data` into a rank's room, from `offset` on.
    fn put(&self, data: Outgoing, to: Rank, offset: usize) -> Result<()>;

    /// Returns once all that was put to some ranks is visible there.
    fn flush(&self, to: &[Rank]) -> Result<()>;

    /// Makes progress, and returns whether the word at `offset` of this rank's room, which others put there, is `value` or
    /// greater.
    fn has_reached(&self, offset: usize, value: u64) -> Result<bool>;
}

impl Windows for NullPort {
    #[inline]
    fn open(&self, _: Incoming, _: Exchange<'_>) -> Result<Box<dyn Window + '_>> {
        Ok(Box::new(NullWindow))
    }
}

/// A window through which nothing goes.
struct NullWindow;

impl Window for NullWindow {
    #[inline(never)]
    fn put(&self, _: Outgoing, _: Rank, _: usize) -> Result<()> {
        Ok(())
    }

    #[inline(never)]
    fn flush(&self, _: &[Rank]) -> Result<()> {
        Ok(())
    }

    #[inline(never)]
    fn has_reached(&self, _: usize, _: u64) -> Result<bool> {
        Ok(true)
    }
}
