//! What two processes take at least that read each other's memory by the system (process_vm_readv(2)), each byte once. In an exchange each
//! reads the other's block and copies its own: the limit of an allgather or an alltoall of two ranks by a single copy. In a reduction to both, each
//! reads half of the other's block, adds its own half of doubles, and reads the other's half of the sums: that of an allreduce. Each shows
//! that its block may be read, reads, shows that it has read, and waits for the other. Microseconds of an exchange and of a reduction, the
//! medians of several runs with the extremes.
//!
//! ```text
//! cargo run --release -p tagwire-bench-loops --example exchange [CORE CORE]
//! ```
#![allow(unsafe_code)]

use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Bytes of a block.
const LENGTHS: [usize; 6] = [8 << 10, 16 << 10, 32 << 10, 64 << 10, 256 << 10, 1 << 20];
/// Bytes that each process reads in a run.
const BYTES: usize = 256 << 20;
/// Bytes that are read at once of what is added.
const AT_ONCE: usize = 64 << 10;
const RUNS: usize = 5;

/// What a process shows to the other.
#[repr(align(128))]
struct Side {
    /// The last exchange for which its block is there.
    shown: AtomicU64,
    /// The last exchange in which it has read the other's.
    read: AtomicU64,
    /// Where its block lies.
    block: AtomicU64,
    /// Where its sums lie.
    sums: AtomicU64,
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

/// Copies what lies so many bytes behind an address of the other process.
fn read_from(other: &Side, address: &AtomicU64, behind: usize, into: &mut [u8]) {
    let local = libc::iovec {
        iov_base: into.as_mut_ptr().cast(),
        iov_len: into.len(),
    };
    let address = address.load(Ordering::Relaxed) as usize + behind;
    let remote = libc::iovec {
        iov_base: ptr::without_provenance_mut(address),
        iov_len: into.len(),
    };
    let process = other.process.load(Ordering::Relaxed) as libc::pid_t;
    // SAFETY: the local vector is writable memory of that length; the other one is the system's to check.
    let read = unsafe { libc::process_vm_readv(process, &local, 1, &remote, 1, 0) };
    assert_eq!(
        read,
        into.len() as isize,
        "{}",
        std::io::Error::last_os_error()
    );
}

/// What a process has: its block, and room for what comes of it.
struct Buffers {
    block: Vec<u8>,
    /// Both blocks, or the sums in the first half.
    both: Vec<u8>,
    /// What is read at once.
    piece: Vec<u8>,
}

/// What two processes do together.
type Body = fn(&[Side; 2], usize, &mut Buffers, u64);

fn exchange(sides: &[Side; 2], me: usize, buffers: &mut Buffers, number: u64) {
    let (own, other) = (&sides[me], &sides[1 - me]);
    own.shown.store(number, Ordering::Release);
    wait_for(&other.shown, number);
    let (mine, theirs) = buffers.both.split_at_mut(buffers.block.len());
    read_from(other, &other.block, 0, theirs);
    own.read.store(number, Ordering::Release);
    mine.copy_from_slice(&buffers.block);
    wait_for(&other.read, number);
}

fn reduce(sides: &[Side; 2], me: usize, buffers: &mut Buffers, number: u64) {
    let (own, other) = (&sides[me], &sides[1 - me]);
    let half = buffers.block.len() / 2;
    let (from, to) = (me * half, (1 - me) * half);
    // A number for what was given, and the next one for the sums.
    let (given, summed) = (2 * number, 2 * number + 1);
    own.shown.store(given, Ordering::Release);
    wait_for(&other.shown, given);
    for start in (0..half).step_by(AT_ONCE) {
        let piece = &mut buffers.piece[..AT_ONCE.min(half - start)];
        read_from(other, &other.block, from + start, piece);
        let place = from + start..from + start + piece.len();
        let (mine, sums) = (&buffers.block[place.clone()], &mut buffers.both[place]);
        let (mine, _) = mine.as_chunks::<8>();
        let (theirs, _) = piece.as_chunks::<8>();
        let (sums, _) = sums.as_chunks_mut::<8>();
        for (sum, (one, two)) in sums.iter_mut().zip(mine.iter().zip(theirs)) {
            *sum = (f64::from_ne_bytes(*one) + f64::from_ne_bytes(*two)).to_ne_bytes();
        }
    }
    own.shown.store(summed, Ordering::Release);
    wait_for(&other.shown, summed);
    read_from(other, &other.sums, to, &mut buffers.both[to..][..half]);
    own.read.store(number, Ordering::Release);
    wait_for(&other.read, number);
}

/// Runs `body` as often as a run has it. Returns the microseconds of each.
fn run(sides: &[Side; 2], me: usize, len: usize, body: Body, numbers: &mut u64) -> f64 {
    let mut buffers = Buffers {
        block: vec![me as u8; len],
        both: vec![0; 2 * len],
        piece: vec![0; AT_ONCE],
    };
    let address = |bytes: &[u8]| bytes.as_ptr().expose_provenance() as u64;
    let Side { block, sums, .. } = &sides[me];
    block.store(address(&buffers.block), Ordering::Relaxed);
    sums.store(address(&buffers.both), Ordering::Relaxed);
    let times = (BYTES / len).min(20_000) as u64;
    let warm = times / 10;
    let mut start = Instant::now();
    for time in 0..warm + times {
        if time == warm {
            start = Instant::now();
        }
        *numbers += 1;
        body(sides, me, &mut buffers, *numbers);
    }
    start.elapsed().as_secs_f64() * 1e6 / times as f64
}

fn main() -> tagwire_base::Result<()> {
    let cores = tagwire_bench_loops::cores();
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
    let mut numbers = 0;
    for len in LENGTHS {
        let mut line = format!("{:>5} KiB", len >> 10);
        for body in [exchange as Body, reduce] {
            // Numbers only grow, whoever counts them in twos.
            numbers *= 4;
            let mut times = [0.0; RUNS];
            for time in &mut times {
                *time = run(sides, me, len, body, &mut numbers);
            }
            times.sort_unstable_by(f64::total_cmp);
            let [least, .., most] = times;
            line += &format!(" {:>8.2} ({least:.2}..{most:.2})", times[RUNS / 2]);
        }
        if me == 0 {
            println!("{line}");
        }
    }
    Ok(())
}
