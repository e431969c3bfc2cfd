//! Descriptors to wait on.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use crate::error::Result;

/// A descriptor that becomes readable when its rank has something to do ([`Session::wait_fd`](crate::Session::wait_fd)).
#[derive(Debug)]
pub struct WaitDescriptor(pub(crate) tagwire_pml::WaitDescriptor);

impl WaitDescriptor {
    /// Makes progress once, and says that the caller is about to wait. Returns whether it may: from then on the descriptor becomes
    /// readable when something comes. Where it may not, something has happened: requests may be complete.
    ///
    /// What a call before this one has left readable is taken.
    ///
    /// # Errors
    /// When called from a thread that may not.
    pub fn arm(&self) -> Result<bool> {
        Ok(self.0.arm()?)
    }
}

impl AsFd for WaitDescriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for WaitDescriptor {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}
