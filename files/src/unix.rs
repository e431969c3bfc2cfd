//! Files of the system.
#![allow(unsafe_code)]

use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, IntoRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, OFlags};
use rustix::io::Errno;

use crate::Mode;
use crate::storage::{Handle, LockKind, Storage};

/// The type of a file system of ext2, ext3 or ext4 (statfs(2)).
const EXT4: rustix::fs::FsWord = 0xEF53;

/// The files of the system.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unix;

/// An open file of the system.
#[derive(Debug)]
struct Open(OwnedFd);

impl Storage for Unix {
    fn open(
        &self,
        path: &Path,
        mode: Mode,
        permissions: u32,
    ) -> std::result::Result<Box<dyn Handle>, Errno> {
        let access = match (mode.reads(), mode.writes()) {
            (true, true) => OFlags::RDWR,
            (false, true) => OFlags::WRONLY,
            _ => OFlags::RDONLY,
        };
        let mut flags = access | OFlags::CLOEXEC;
        flags.set(OFlags::CREATE, mode.contains(Mode::CREATE));
        flags.set(OFlags::EXCL, mode.contains(Mode::EXCLUSIVE));
        let permissions = rustix::fs::Mode::from_raw_mode(permissions);
        let file = rustix::fs::open(path, flags, permissions)?;
        // A directory opens for reading, and fails at the first read.
        let kind = rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode);
        match kind.is_dir() {
            true => Err(Errno::ISDIR),
            false => Ok(Box::new(Open(file))),
        }
    }

    fn remove(&self, path: &Path) -> std::result::Result<(), Errno> {
        rustix::fs::unlink(path)
    }

    fn lasting(&self, path: &Path) -> PathBuf {
        // Where the working directory is gone, the name leads nowhere later, too.
        std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
    }
}

impl Handle for Open {
    fn read(&self, offset: u64, into: &mut [u8]) -> std::result::Result<usize, Errno> {
        rustix::io::pread(&self.0, into, offset)
    }

    fn write(&self, offset: u64, data: &[u8]) -> std::result::Result<usize, Errno> {
        rustix::io::pwrite(&self.0, data, offset)
    }

    fn size(&self) -> std::result::Result<u64, Errno> {
        let size = rustix::fs::fstat(&self.0)?.st_size;
        u64::try_from(size).map_err(|_| Errno::OVERFLOW)
    }

    fn set_size(&self, size: u64) -> std::result::Result<(), Errno> {
        // ext4 stores what a file has at its close, once it was truncated to no bytes, even if it had none before (`auto_da_alloc` in ext4(5)).
        // Elsewhere the size that is known here may be an old one (nfs(5), `ac`).
        if rustix::fs::fstatfs(&self.0)?.f_type == EXT4 && self.size()? == size {
            return Ok(());
        }
        rustix::fs::ftruncate(&self.0, size)
    }

    fn allocate(&self, size: u64) -> std::result::Result<(), Errno> {
        rustix::fs::fallocate(&self.0, FallocateFlags::empty(), 0, size)
    }

    fn sync(&self) -> std::result::Result<(), Errno> {
        rustix::fs::fdatasync(&self.0)
    }

    fn lock(&self, bytes: Range<u64>, kind: LockKind) -> std::result::Result<(), Errno> {
        let kind = match kind {
            LockKind::Read => libc::F_RDLCK,
            LockKind::Write => libc::F_WRLCK,
        };
        set_lock(&self.0, bytes, kind)
    }

    fn unlock(&self, bytes: Range<u64>) -> std::result::Result<(), Errno> {
        set_lock(&self.0, bytes, libc::F_UNLCK)
    }

    fn flush(&self) -> std::result::Result<(), Errno> {
        // Each close of a descriptor asks the file system, not the last alone.
        let other = match rustix::io::fcntl_dupfd_cloexec(self.0.as_fd(), 0) {
            // At the limit of descriptors (getrlimit(2)): the storage says what it has kept back, too.
            Err(Errno::MFILE | Errno::NFILE) => {
                return match rustix::fs::fdatasync(&self.0) {
                    // A file without storage keeps nothing back (fdatasync(2)).
                    Err(Errno::INVAL | Errno::ROFS) => Ok(()),
                    synced => synced,
                };
            }
            other => other?,
        };
        // SAFETY: the descriptor was made above, and is nobody else's.
        let closed = unsafe { libc::close(other.into_raw_fd()) };
        match (closed, last_error()) {
            // It is closed where that was interrupted, too.
            (0, _) | (_, Errno::INTR) => Ok(()),
            (_, errno) => Err(errno),
        }
    }
}

/// Takes a lock of the open file, or gives it back (`F_OFD_SETLKW`).
fn set_lock(
    file: &OwnedFd,
    bytes: Range<u64>,
    kind: libc::c_int,
) -> std::result::Result<(), Errno> {
    let offset = |at: u64| i64::try_from(at).map_err(|_| Errno::OVERFLOW);
    let (start, end) = (offset(bytes.start)?, offset(bytes.end)?);
    let lock = libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: start,
        l_len: end.saturating_sub(start),
        l_pid: 0,
    };
    // SAFETY: the descriptor is open, and the structure lives through the call, which this command only reads.
    let done = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLKW, &raw const lock) };
    match done {
        0 => Ok(()),
        _ => Err(last_error()),
    }
}

/// Returns the error of the system call that this thread has just made.
fn last_error() -> Errno {
    let error = std::io::Error::last_os_error();
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}

/// Returns the permissions of a file that is made, which the process's mask still restricts (umask(2)).
pub(crate) const PERMISSIONS: u32 = 0o666;

/// Returns permissions in octal digits: the hint `file_perm`.
pub(crate) fn permissions(text: &str) -> Option<u32> {
    u32::from_str_radix(text, 8)
        .ok()
        .filter(|bits| *bits <= 0o7777)
}
