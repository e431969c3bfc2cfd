//! What the machine itself takes to hand a cache line from one core to another: the floor under
//! every small message through shared memory. Prints half a round trip in nanoseconds, the best
//! of several runs.
//!
//! ```text
//! cargo run --release -p tagwire-bench-loops --example cacheline [CORE CORE]
//! ```

use tagwire_bench::line_transfer;

fn main() {
    let cores = tagwire_bench_loops::cores();
    let [from, to] = cores;
    match line_transfer::measure(cores) {
        Some(ns) => println!("{ns:.1} ns from core {from} to core {to}, half a round trip"),
        None => println!("core {from} or core {to} cannot be used, or is too busy to tell"),
    }
}
