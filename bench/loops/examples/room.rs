//! What room is worth to two ranks that copy through memory that both map: one message at a time, half a round trip, by the bytes
//! that the memory has. Each side copies pieces, one in while the other copies another out: of 4 KiB through a room of each direction, and of 16 KiB
//! at most through memory that both directions have in common, where each message lies where the one before it did, or goes round in less. Microseconds,
//! the best of several runs.
//!
//! ```text
//! cargo run --release -p tagwire-bench-loops --example room [CORE CORE]
//! ```
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tagwire_base::prefetch;

/// Bytes of a piece through rooms of their own.
const PIECE: usize = 4096;
/// Bytes of the longest piece through common memory.
const COMMON_PIECE: usize = 16 << 10;
/// Bytes of the room in each direction: that of a ring of the transport first.
const ROOMS: [usize; 6] = [43 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 8 << 20];
/// Most bytes of memory that both directions have in common: without this bound it is as long as the message.
const COMMON: [Option<usize>; 3] = [None, Some(1 << 20), Some(256 << 10)];
/// Bytes of a message.
const LENGTHS: [usize; 7] = [
    8 << 10,
    16 << 10,
    32 << 10,
    64 << 10,
    256 << 10,
    1 << 20,
    4 << 20,
];
/// Bytes that go each way in a run.
const BYTES: usize = 128 << 20;
const RUNS: usize = 5;

#[repr(align(128))]
#[derive(Default)]
struct Line(AtomicU64);

/// Memory that both threads copy through.
struct Bytes(Box<[UnsafeCell<u8>]>);

// SAFETY: the bytes are reached by raw pointers alone; which side may touch which of them follows from the counts of the rooms.
unsafe impl Send for Bytes {}
// SAFETY: as above.
unsafe impl Sync for Bytes {}

impl Bytes {
    fn new(len: usize) -> Arc<Self> {
        Arc::new(Self((0..len).map(|_| UnsafeCell::new(0)).collect()))
    }
}

/// The memory of one direction.
struct Room {
    bytes: Arc<Bytes>,
    piece: usize,
    written: Line,
    read: Line,
}

impl Room {
    fn new(bytes: Arc<Bytes>, piece: usize) -> Self {
        Self {
            bytes,
            piece,
            written: Line::default(),
            read: Line::default(),
        }
    }

    /// The place of the piece that is `count` bytes from the beginning.
    fn place(&self, count: u64) -> *mut u8 {
        let offset = count as usize % self.bytes.0.len();
        UnsafeCell::raw_get(self.bytes.0.as_ptr()).wrapping_add(offset)
    }

    /// Copies a message in, and asks for the lines of what would come next where `ahead`.
    fn send(&self, message: &[u8], ahead: bool) {
        let mut written = self.written.0.load(Ordering::Relaxed);
        for piece in message.chunks_exact(self.piece) {
            let full = (self.bytes.0.len() - self.piece) as u64;
            while written - self.read.0.load(Ordering::Acquire) > full {}
            // SAFETY: the reader has taken what was there, and looks at it again once `written` says so. A piece does not
            // reach beyond the end, since the length is a multiple of a piece.
            unsafe {
                std::ptr::copy_nonoverlapping(piece.as_ptr(), self.place(written), self.piece)
            };
            written += self.piece as u64;
            self.written.0.store(written, Ordering::Release);
            if ahead {
                prefetch::range_for_write(self.place(written), PIECE);
            }
        }
    }

    /// Copies a message out.
    fn receive(&self, message: &mut [u8]) {
        let mut read = self.read.0.load(Ordering::Relaxed);
        for piece in message.chunks_exact_mut(self.piece) {
            while self.written.0.load(Ordering::Acquire) == read {}
            // SAFETY: the writer has written the piece, and writes there again once `read` says so.
            unsafe {
                std::ptr::copy_nonoverlapping(self.place(read), piece.as_mut_ptr(), self.piece);
            };
            read += self.piece as u64;
            self.read.0.store(read, Ordering::Release);
        }
    }
}

/// One run through two rooms: half a round trip in microseconds.
fn through(
    cores: [u32; 2],
    rooms: [Room; 2],
    len: usize,
    ahead: bool,
) -> tagwire_base::Result<f64> {
    let rounds = (BYTES / len).min(20_000);
    let rooms = Arc::new(rooms);
    let echo = {
        let rooms = Arc::clone(&rooms);
        std::thread::spawn(move || {
            tagwire_base::topology::bind_to(cores[1])?;
            let mut message = vec![1; len];
            for _ in 0..rounds {
                rooms[0].receive(&mut message);
                rooms[1].send(&message, ahead);
            }
            Ok::<_, tagwire_base::Error>(())
        })
    };
    tagwire_base::topology::bind_to(cores[0])?;
    let mut message = vec![2; len];
    let start = Instant::now();
    for _ in 0..rounds {
        rooms[0].send(&message, ahead);
        rooms[1].receive(&mut message);
    }
    let half = start.elapsed().as_secs_f64() * 1e6 / (2 * rounds) as f64;
    echo.join().expect("the echo does not panic")?;
    Ok(half)
}

fn best(mut run: impl FnMut() -> tagwire_base::Result<f64>) -> tagwire_base::Result<f64> {
    (0..RUNS).try_fold(f64::INFINITY, |best, _| Ok(run()?.min(best)))
}

fn main() -> tagwire_base::Result<()> {
    let cores = tagwire_bench_loops::cores();
    print!("{:<26}", "room, KiB");
    for len in LENGTHS {
        print!("{:>9}", format!("{} KiB", len >> 10));
    }
    println!();
    for ahead in [false, true] {
        for room in ROOMS {
            let next = if ahead { ", next piece's lines" } else { "" };
            print!("{:<26}", format!("{}{next}", room >> 10));
            for len in LENGTHS {
                let own = || Room::new(Bytes::new(room / PIECE * PIECE), PIECE);
                let half = best(|| through(cores, [own(), own()], len, ahead))?;
                print!("{half:>9.2}");
            }
            println!();
        }
    }
    for most in COMMON {
        let name = match most {
            None => "common, as the message".to_owned(),
            Some(bytes) => format!("common, {} at most", bytes >> 10),
        };
        print!("{name:<26}");
        for len in LENGTHS {
            let piece = COMMON_PIECE.min(len / 2);
            let half = best(|| {
                let bytes = Bytes::new(most.map_or(len, |most| most.min(len)));
                let rooms = [(); 2].map(|()| Room::new(Arc::clone(&bytes), piece));
                through(cores, rooms, len, false)
            })?;
            print!("{half:>9.2}");
        }
        println!();
    }
    Ok(())
}
