//! Memory without a name: memfds, which their makers seal against resizing.

use std::fs::File;
use std::io;

use rustix::fs::{MemfdFlags, Mode, SealFlags};
use rustix::process::{Resource, getrlimit};
use tagwire_base::config::parse::format_bytes;

/// What nobody can do any more: a peer cannot make accesses of others fault.
pub(super) const SEALS: SealFlags = SealFlags::SHRINK
    .union(SealFlags::GROW)
    .union(SealFlags::SEAL);

/// Makes `len` bytes that are zero and take memory once they are touched.
///
/// # Errors
/// When the system has no memory or descriptor, or `len` is above the [limit](limit).
pub(super) fn create(name: &str, len: u64) -> io::Result<File> {
    // The kernel ends a process that goes beyond the limit by a signal (SIGXFSZ), before it returns an error.
    if let Some(limit) = limit()
        && len > limit
    {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            shortfall(len, limit),
        ));
    }
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = File::from(rustix::fs::memfd_create(name, flags)?);
    // The kernel makes it everybody's (memfd_create(2)), and asks of who opens it below /proc for the rights of a debugger. Here its
    // owner alone may open it, whatever else others may do with this process.
    rustix::fs::fchmod(&file, Mode::RUSR | Mode::WUSR)?;
    file.set_len(len)?;
    rustix::fs::fcntl_add_seals(&file, SEALS)?;
    Ok(file)
}

/// Returns where the descriptor of another process is opened.
pub(super) fn path(pid: u32, descriptor: u32) -> String {
    format!("/proc/{pid}/fd/{descriptor}")
}

/// Opens memory of `len` bytes that process `pid` has made, by the number of its descriptor there, or reports what is wrong with it,
/// which is to be a `what`.
pub(super) fn open(pid: u32, descriptor: u32, len: u64, what: &str) -> Result<File, String> {
    let path = path(pid, descriptor);
    let named = |error: io::Error| format!("{path}: {error}");
    let file = File::options().read(true).write(true).open(&path);
    let file = file.map_err(named)?;
    let seals = rustix::fs::fcntl_get_seals(&file)
        .map_err(|error| format!("{path} is no memfd: {error}"))?;
    let found = file.metadata().map_err(named)?.len();
    match seals.contains(SEALS) && found == len {
        true => Ok(file),
        false => Err(format!("{path} is no {what}")),
    }
}

/// Returns a number by which memory is told from other memory, whose descriptor came to have the same number. Not 0.
///
/// # Errors
/// When the system has no randomness.
pub(super) fn nonce() -> io::Result<u64> {
    let random = tagwire_base::JobSecret::generate().map_err(io::Error::other)?;
    let mut nonce = [0; 8];
    nonce.copy_from_slice(&random.as_bytes()[..8]);
    Ok(u64::from_ne_bytes(nonce) | 1)
}

/// The most bytes that a file of this process may have, shared memory included; `None` where nothing limits it.
pub(super) fn limit() -> Option<u64> {
    getrlimit(Resource::Fsize).current
}

/// What is wrong where `len` bytes are above `limit`, and what changes it.
pub(super) fn shortfall(len: u64, limit: u64) -> String {
    format!(
        "{} of shared memory are needed, and the limit of file sizes is {} (RLIMIT_FSIZE: raise it by 'ulimit -f')",
        format_bytes(len.next_multiple_of(1024)),
        format_bytes(limit),
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn memory_is_its_owners_alone_and_keeps_its_size() {
        let file = create("test", 4096).unwrap();
        assert_eq!(file.metadata().unwrap().mode() & 0o7777, 0o600);
        assert!(file.set_len(8192).is_err() && file.set_len(0).is_err());
        let flags = rustix::io::fcntl_getfd(&file).unwrap();
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    }
}
