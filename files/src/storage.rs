//! The boundary to the system: what holds files.
//!
//! A [`Storage`] opens files, and a [`Handle`] is an open one. Any thread of a rank calls them. Each call is one system call: it may
//! be interrupted, and may read or write less than it was asked for. Who calls repeats it. What is not a number of errno(3) is not
//! told. [`Unix`](crate::Unix) is the system; a test has one that fails at a call of its choice.

use std::fmt::Debug;
use std::ops::Range;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::Mode;

/// What holds files.
pub trait Storage: Debug + Send + Sync {
    /// Opens a file (open(2)) that is made with these `permissions` where the mode says so.
    ///
    /// # Errors
    /// What the system says.
    fn open(&self, path: &Path, mode: Mode, permissions: u32) -> Result<Box<dyn Handle>, Errno>;

    /// Removes the name of a file (unlink(2)).
    ///
    /// # Errors
    /// What the system says.
    fn remove(&self, path: &Path) -> Result<(), Errno>;

    /// Returns a name of the same file that stays so when the process changes its working directory.
    fn lasting(&self, path: &Path) -> PathBuf {
        path.to_owned()
    }
}

/// Which others a lock keeps out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockKind {
    /// Those that write.
    Read,
    /// All.
    Write,
}

/// An open file.
pub trait Handle: Debug + Send + Sync {
    /// Reads bytes from an offset on (pread(2)). Returns how many: none at the end of the file.
    ///
    /// # Errors
    /// What the system says.
    fn read(&self, offset: u64, into: &mut [u8]) -> Result<usize, Errno>;

    /// Writes bytes from an offset on (pwrite(2)). Returns how many.
    ///
    /// # Errors
    /// What the system says.
    fn write(&self, offset: u64, data: &[u8]) -> Result<usize, Errno>;

    /// Returns how many bytes the file has (fstat(2)).
    ///
    /// # Errors
    /// What the system says.
    fn size(&self) -> Result<u64, Errno>;

    /// Gives the file so many bytes (ftruncate(2)).
    ///
    /// # Errors
    /// What the system says.
    fn set_size(&self, size: u64) -> Result<(), Errno>;

    /// Has storage for the first so many bytes, and gives the file as many where it has fewer (fallocate(2)).
    ///
    /// # Errors
    /// What the system says: [`Errno::OPNOTSUPP`] where the file system cannot.
    fn allocate(&self, size: u64) -> Result<(), Errno>;

    /// Returns when what was written is on the storage (fdatasync(2)).
    ///
    /// # Errors
    /// What could not be written there. The system says it once.
    fn sync(&self) -> Result<(), Errno>;

    /// Waits for a lock of some bytes, which is of this open file and no other (`F_OFD_SETLKW` of fcntl(2)).
    ///
    /// # Errors
    /// What the system says.
    fn lock(&self, bytes: Range<u64>, kind: LockKind) -> Result<(), Errno>;

    /// Gives it back.
    ///
    /// # Errors
    /// What the system says.
    fn unlock(&self, bytes: Range<u64>) -> Result<(), Errno>;

    /// Says what the file system has kept back of errors until a close (close(2)). The file stays open until it is dropped.
    ///
    /// # Errors
    /// What the system says.
    fn flush(&self) -> Result<(), Errno>;
}
