//! Changes of the memory of this process, as userfaultfd(2) tells them. No page is protected by it, and no fault is taken.
//!
//! The kernel counts the changes whose event was not read yet, from before the memory changes (`mmap_changing`), and whoever
//! makes one waits until its event was read. So where that count is 0, the events of all changes so far were read.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Once;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering, fence};
use std::{io, ptr};

use rustix::io::Errno;
use rustix::ioctl::{Opcode, Setter, Updater, ioctl, opcode};
use rustix::mm::{UserfaultfdFlags, userfaultfd};

use super::ranges::Change;

/// The structures of linux/userfaultfd.h.
#[repr(C)]
struct Api {
    api: u64,
    features: u64,
    ioctls: u64,
}

#[repr(C)]
struct Bytes {
    start: u64,
    len: u64,
}

#[repr(C)]
struct Register {
    range: Bytes,
    mode: u64,
    ioctls: u64,
}

#[repr(C)]
struct WriteProtect {
    range: Bytes,
    mode: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Message {
    event: u8,
    reserved: [u8; 7],
    words: [u64; 3],
}

const API: u64 = 0xaa;
const REMAPPED: u8 = 0x14;
const REMOVED: u8 = 0x15;
const UNMAPPED: u8 = 0x16;

/// The events, and what kernels have since 5.19 (`UFFD_FEATURE_WP_HUGETLBFS_SHMEM`): those count changes as said above, where older
/// ones had a flag that the first of several cleared.
const FEATURES: u64 = 1 << 2 | 1 << 3 | 1 << 6 | 1 << 12;

/// Only faults of the user's would be handled: that needs no privilege (`UFFD_USER_MODE_ONLY`).
const USER_MODE_ONLY: u32 = 1;

/// Watching, of which nothing is protected (`UFFDIO_REGISTER_MODE_WP`).
const WATCH: u64 = 1 << 1;

const DO_API: Opcode = opcode::read_write::<Api>(API as u8, 0x3f);
const DO_REGISTER: Opcode = opcode::read_write::<Register>(API as u8, 0x00);
const DO_UNREGISTER: Opcode = opcode::read::<Bytes>(API as u8, 0x01);
const DO_WRITE_PROTECT: Opcode = opcode::read_write::<WriteProtect>(API as u8, 0x06);

/// Events that are read at once.
const BATCH: usize = 16;

/// The descriptor of the process, or -1. A forked child closes it: the kernel goes on counting, and has the parent wait, for as long as
/// anybody has it open, and the child reads nothing.
static OPEN: AtomicI32 = AtomicI32::new(-1);

/// How often a fork led to this process.
static FORKS: AtomicU32 = AtomicU32::new(0);

extern "C" fn close_in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    let fd = OPEN.swap(-1, Ordering::Relaxed);
    if fd >= 0 {
        // SAFETY: the child's own copy of the descriptor, which nothing there uses from now on.
        unsafe { libc::close(fd) };
    }
}

impl Bytes {
    fn of(range: &Range<usize>) -> Self {
        Self {
            start: range.start as u64,
            len: range.len() as u64,
        }
    }
}

/// A descriptor by which the kernel tells changes of memory.
#[derive(Debug)]
pub(super) struct Changes {
    fd: ManuallyDrop<OwnedFd>,
    /// [`FORKS`] of the process that opened it.
    forks: u32,
}

impl Changes {
    pub(super) fn open() -> io::Result<Self> {
        static AT_FORK: Once = Once::new();
        // SAFETY: the handler closes a descriptor of ours, and does nothing else.
        AT_FORK.call_once(|| unsafe {
            libc::pthread_atfork(None, None, Some(close_in_child));
        });
        let flags = UserfaultfdFlags::CLOEXEC
            | UserfaultfdFlags::NONBLOCK
            | UserfaultfdFlags::from_bits_retain(USER_MODE_ONLY);
        // SAFETY: of what it can do to memory, nothing is asked for below.
        let fd = unsafe { userfaultfd(flags) }?;
        let mut api = Api {
            api: API,
            features: FEATURES,
            ioctls: 0,
        };
        // SAFETY: the structure that this operation reads and writes.
        unsafe { ioctl(&fd, Updater::<DO_API, _>::new(&mut api)) }?;
        OPEN.store(fd.as_raw_fd(), Ordering::Relaxed);
        Ok(Self {
            fd: ManuallyDrop::new(fd),
            forks: FORKS.load(Ordering::Relaxed),
        })
    }

    /// Watches whole pages, all of which are mapped.
    pub(super) fn watch(&self, range: &Range<usize>) -> io::Result<()> {
        let mut register = Register {
            range: Bytes::of(range),
            mode: WATCH,
            ioctls: 0,
        };
        // SAFETY: the structure that this operation reads and writes. It changes nothing of the memory, since nothing is protected.
        Ok(unsafe { ioctl(&*self.fd, Updater::<DO_REGISTER, _>::new(&mut register)) }?)
    }

    /// Watches them no longer.
    pub(super) fn forget(&self, range: &Range<usize>) {
        // SAFETY: the structure that this operation reads. Where another mapping took the place, the kernel refuses, or finds nothing.
        let _ = unsafe { ioctl(&*self.fd, Setter::<DO_UNREGISTER, _>::new(Bytes::of(range))) };
    }

    /// Returns whether the events of all changes of watched memory so far were read.
    pub(super) fn is_quiet(&self) -> bool {
        if self.is_of_parent() {
            return false;
        }
        let mut nothing = WriteProtect {
            range: Bytes::of(&(0..0)),
            mode: 0,
        };
        // SAFETY: the structure that this operation reads. The range is none, so that it ends without having done anything: with EAGAIN
        // while changes are under way, which it looks at first, else with EINVAL.
        let result = unsafe { ioctl(&*self.fd, Updater::<DO_WRITE_PROTECT, _>::new(&mut nothing)) };
        fence(Ordering::SeqCst);
        result == Err(Errno::INVAL)
    }

    /// Returns whether this is a forked child, which has the descriptor no longer.
    pub(super) fn is_of_parent(&self) -> bool {
        FORKS.load(Ordering::Relaxed) != self.forks
    }

    /// Reads the events that are there, and tells what they say.
    pub(super) fn read(&self, each: &mut dyn FnMut(Change)) {
        let mut messages = [const { MaybeUninit::<Message>::uninit() }; BATCH];
        loop {
            // SAFETY: room for so many messages.
            let read = unsafe {
                libc::read(
                    self.fd.as_raw_fd(),
                    messages.as_mut_ptr().cast(),
                    size_of_val(&messages),
                )
            };
            let count = usize::try_from(read).unwrap_or(0) / size_of::<Message>();
            for message in &messages[..count] {
                // SAFETY: the kernel wrote it whole.
                let Message { event, words, .. } = unsafe { message.assume_init() };
                let [first, second, third] = words.map(|word| word as usize);
                match event {
                    REMAPPED => each(Change::Moved {
                        from: first..first + third,
                        to: second..second + third,
                    }),
                    REMOVED => each(Change::Discarded(first..second)),
                    UNMAPPED => each(Change::Unmapped(first..second)),
                    _ => {}
                }
            }
            if count < BATCH {
                return;
            }
        }
    }
}

impl AsRawFd for Changes {
    fn as_raw_fd(&self) -> i32 {
        self.fd.as_raw_fd()
    }
}

impl std::os::fd::AsFd for Changes {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        if self.is_of_parent() {
            return;
        }
        let own = self.fd.as_raw_fd();
        let _ = OPEN.compare_exchange(own, -1, Ordering::Relaxed, Ordering::Relaxed);
        // SAFETY: open, and closed this once.
        unsafe { ManuallyDrop::drop(&mut self.fd) };
    }
}

/// Runs `spawn` with all signals held back, which a thread that it makes inherits: no handler runs there.
pub(super) fn without_signals<T>(spawn: impl FnOnce() -> T) -> T {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: both are sets of signals with room to be written, and the second is read once it was.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        let code = libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        let made = spawn();
        if code == 0 {
            libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut());
        }
        made
    }
}

/// Returns whether memory that is mapped throughout, and private to this process, may be written to. `None` for other memory: pages of a
/// file, or of memory that processes share, can be taken away through the file, or by another process, which is told nobody.
pub(super) fn private(range: &Range<usize>) -> Option<bool> {
    let mut maps = BufReader::new(File::open("/proc/self/maps").ok()?);
    let (mut line, mut next, mut writable) = (String::new(), range.start, true);
    while next < range.end {
        line.clear();
        if maps.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let [start, end] = [start, end].map(|word| usize::from_str_radix(word, 16));
        let (start, end) = (start.ok()?, end.ok()?);
        if end <= next {
            continue;
        }
        let rights = words.next()?;
        let is_file = words.nth(2)? != "0";
        if start > next || is_file || !rights.ends_with('p') {
            return None;
        }
        writable &= rights.as_bytes().get(1) == Some(&b'w');
        next = end;
    }
    Some(writable)
}
