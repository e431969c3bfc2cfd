//! What an exchange takes at least in which each of two processes copies a block of the other once, by the system
//! (process_vm_readv(2)), and its own in memory: the limit of an allgather or an alltoall of two ranks by a single copy. Each shows
//! that its block may be read, reads, shows that it has read, and waits for the other. Microseconds of an exchange, the median of several
//! runs.
//!
//! ```text
//! cargo run --release -p tagwire-bench --example exchange [CORE CORE]
//! ```
#![allow(unsafe_code)]

use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Bytes of a block.
const LENGTHS: [usize; 6] = [8 << 10, 16 << 10, 32 << 10, 64 << 10, 256 << 10, 1 << 20];
/// Bytes that each process reads in a run.
const BYTES: usize = 256 << 20;
const RUNS: usize = 5;

/// What a process shows to the other.
#[repr(align(128))]
struct Side {
    /// The last exchange for which its block is there.
    shown: AtomicU64,
    /// The last exchange in which it has read the other's.
    read: AtomicU64,
    address: AtomicU64,
    process: AtomicU64,
}

/// Waits until the other process has shown that it has come to an exchange.
///
/// # Panics
/// Where it does not for seconds: it has ended.
fn wait_for(word: &AtomicU64, exchange: u64) {
    if word.load(Ordering::Acquire) >= exchange {
        return;
    }
    let begun = Instant::now();
    let mut looks = 0_u32;
    while word.load(Ordering::Acquire) < exchange {
        looks = looks.wrapping_add(1);
        let is_late = looks.is_multiple_of(1 << 20) && begun.elapsed().as_secs() > 10;
        assert!(!is_late, "the other process is gone");
    }
}

/// Makes the exchanges of a run. Returns the microseconds of each.
fn run(sides: &[Side; 2], me: usize, len: usize, first: u64) -> f64 {
    let (own, other) = (&sides[me], &sides[1 - me]);
    let block = vec![me as u8; len];
    let mut both = vec![0_u8; 2 * len];
    own.address
        .store(block.as_ptr().addr() as u64, Ordering::Relaxed);
    let exchanges = (BYTES / len).min(20_000) as u64;
    let warm = exchanges / 10;
    let mut start = Instant::now();
    for exchange in first..first + warm + exchanges {
        if exchange == first + warm {
            start = Instant::now();
        }
        own.shown.store(exchange, Ordering::Release);
        wait_for(&other.shown, exchange);
        let (mine, theirs) = both.split_at_mut(len);
        let local = libc::iovec {
            iov_base: theirs.as_mut_ptr().cast(),
            iov_len: len,
        };
        let remote = libc::iovec {
            iov_base: ptr::without_provenance_mut(other.address.load(Ordering::Relaxed) as usize),
            iov_len: len,
        };
        let process = other.process.load(Ordering::Relaxed) as libc::pid_t;
        // SAFETY: the local vector is writable memory of that length; the other one is the system's to check.
        let read = unsafe { libc::process_vm_readv(process, &local, 1, &remote, 1, 0) };
        assert_eq!(read, len as isize, "{}", std::io::Error::last_os_error());
        own.read.store(exchange, Ordering::Release);
        mine.copy_from_slice(&block);
        wait_for(&other.read, exchange);
    }
    start.elapsed().as_secs_f64() * 1e6 / exchanges as f64
}

fn main() -> tagwire_base::Result<()> {
    let mut cores = std::env::args()
        .skip(1)
        .map(|text| text.parse().unwrap_or(0));
    let cores = [cores.next().unwrap_or(0), cores.next().unwrap_or(1)];
    let (protection, flags) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_SHARED | libc::MAP_ANONYMOUS,
    );
    let bytes = size_of::<[Side; 2]>();
    // SAFETY: the system chooses the place of a new mapping.
    let memory = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, -1, 0) };
    assert_ne!(
        memory,
        libc::MAP_FAILED,
        "{}",
        std::io::Error::last_os_error()
    );
    // SAFETY: the mapping is as long, begins at a page, is zero and stays; all fields are atomics.
    let sides = unsafe { &*memory.cast::<[Side; 2]>() };
    // SAFETY: there is one thread. The child uses what it has of the parent's memory, and ends below.
    let child = unsafe { libc::fork() };
    let me = usize::from(child == 0);
    tagwire_base::topology::bind_to(cores[me])?;
    let process = u64::from(std::process::id());
    sides[me].process.store(process, Ordering::Relaxed);
    // Where the Yama module asks for it, each lets the other read its memory.
    let _ = rustix::process::set_ptracer(rustix::process::PTracer::Any);
    let mut first = 1;
    for len in LENGTHS {
        let mut times = [0.0; RUNS];
        for time in &mut times {
            *time = run(sides, me, len, first);
            first += 2 * (BYTES / len) as u64;
        }
        times.sort_unstable_by(f64::total_cmp);
        if me == 0 {
            let [least, .., most] = times;
            println!(
                "{:>5} KiB {:>8.2} ({least:.2}..{most:.2})",
                len >> 10,
                times[RUNS / 2]
            );
        }
    }
    Ok(())
}
