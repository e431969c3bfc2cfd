//! What the machine itself takes to hand a cache line from one core to another: the floor under
//! every small message through shared memory. Prints half a round trip in nanoseconds, the best
//! of several runs.
//!
//! ```text
//! cargo run --release -p tagwire-bench --example cacheline [CORE CORE]
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

const ROUNDS: u64 = 200_000;
const RUNS: usize = 10;
/// As in a ring of slots, each message goes into the next line.
const LINES: usize = 16;

#[repr(align(128))]
#[derive(Default)]
struct Line(AtomicU64);

#[derive(Default)]
struct Lines([Line; LINES]);

impl Lines {
    fn store(&self, number: u64) {
        self.0[number as usize % LINES]
            .0
            .store(number, Ordering::Release);
    }

    fn wait_for(&self, number: u64) {
        while self.0[number as usize % LINES].0.load(Ordering::Acquire) != number {}
    }
}

/// One run: half a round trip in nanoseconds.
fn run(cores: [u32; 2]) -> tagwire_base::Result<f64> {
    let shared = Arc::new([Lines::default(), Lines::default()]);
    let echo = {
        let shared = Arc::clone(&shared);
        std::thread::spawn(move || {
            tagwire_base::topology::bind_to(cores[1])?;
            for number in 1..=ROUNDS {
                shared[0].wait_for(number);
                shared[1].store(number);
            }
            tagwire_base::Result::Ok(())
        })
    };
    tagwire_base::topology::bind_to(cores[0])?;
    let start = Instant::now();
    for number in 1..=ROUNDS {
        shared[0].store(number);
        shared[1].wait_for(number);
    }
    let half = start.elapsed().as_nanos() as f64 / (2 * ROUNDS) as f64;
    echo.join().expect("the echo does not panic")?;
    Ok(half)
}

fn main() -> tagwire_base::Result<()> {
    let mut cores = std::env::args()
        .skip(1)
        .map(|text| text.parse().unwrap_or(0));
    let cores = [cores.next().unwrap_or(0), cores.next().unwrap_or(1)];
    let mut best = f64::INFINITY;
    for _ in 0..RUNS {
        best = best.min(run(cores)?);
    }
    println!(
        "{best:.1} ns from core {} to core {}, half a round trip",
        cores[0], cores[1]
    );
    Ok(())
}
