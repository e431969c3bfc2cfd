//! What a short message back and forth takes at least, by how often its reader looks: two threads hand lines of two rings over in turn, and pause
//! so many times between two looks (`std::hint::spin_loop`). Each look at a line that has not come takes it away from its writer.
//! Half a round trip in nanoseconds, the median of several runs with the extremes.
//!
//! ```text
//! cargo run --release -p tagwire-bench-loops --example polls [CORE CORE]
//! ```

use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Release};
use std::time::Instant;

use tagwire_base::prefetch;

/// Lines of each ring.
const LINES: usize = 256;
const MESSAGES: u64 = 200_000;
const RUNS: usize = 7;
const PAUSES: [u32; 8] = [0, 1, 2, 3, 4, 6, 8, 12];
/// Lines are taken over so far ahead.
const AHEAD: usize = 4;

#[repr(align(64))]
struct Line(AtomicU64);

/// Lines that one thread writes and the other reads.
struct Ring(Vec<Line>);

impl Ring {
    fn new() -> Self {
        Self((0..LINES).map(|_| Line(AtomicU64::new(0))).collect())
    }

    fn write(&self, number: u64) {
        self.0[number as usize % LINES].0.store(number, Release);
        prefetch::for_write(&self.0[(number as usize + AHEAD) % LINES]);
    }

    fn read(&self, number: u64, pauses: u32) {
        while self.0[number as usize % LINES].0.load(Acquire) != number {
            (0..pauses).for_each(|_| std::hint::spin_loop());
        }
    }
}

/// Returns nanoseconds of half a round trip.
fn run(pauses: u32, cores: [u32; 2]) -> f64 {
    let rings = [Ring::new(), Ring::new()];
    let bind = |core| tagwire_base::topology::bind_to(core).expect("a core that may be used");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            bind(cores[1]);
            for number in 1..=MESSAGES {
                rings[0].read(number, pauses);
                rings[1].write(number);
            }
        });
        bind(cores[0]);
        let begun = Instant::now();
        for number in 1..=MESSAGES {
            rings[0].write(number);
            rings[1].read(number, pauses);
        }
        begun.elapsed().as_secs_f64() * 1e9 / (2 * MESSAGES) as f64
    })
}

fn main() {
    let cores = tagwire_bench_loops::cores();
    println!("pauses between two looks: ns");
    let mut times = PAUSES.map(|_| [0.0; RUNS]);
    // By turns: the machine changes meanwhile.
    for turn in 0..RUNS {
        for (times, pauses) in times.iter_mut().zip(PAUSES) {
            times[turn] = run(pauses, cores);
        }
    }
    for (mut times, pauses) in times.into_iter().zip(PAUSES) {
        times.sort_unstable_by(f64::total_cmp);
        let [least, .., most] = times;
        println!(
            "{pauses:>2} {:>7.1} ({least:.1}..{most:.1})",
            times[RUNS / 2]
        );
    }
}
