//! Prints how fast checksums are computed here: GB/s of a core, by length.
//!
//! ```text
//! cargo run --release -p tagwire-dr --example crc
//! ```

use std::hint::black_box;
use std::time::Instant;

use tagwire_dr::crc;

/// Bytes of each measurement.
const BYTES: usize = 1 << 30;

fn main() {
    println!("CRC-32C by {}", crc::means());
    for len in [8, 64, 256, 1024, 1400, 4096, 8192, 65_536, 1 << 20] {
        let data = vec![0x5a; len];
        let rounds = (BYTES / len).min(10_000_000);
        let start = Instant::now();
        let mut crc = 0;
        for _ in 0..rounds {
            crc = crc::extend(crc, black_box(&data));
        }
        let seconds = start.elapsed().as_secs_f64();
        black_box(crc);
        let rate = (rounds * len) as f64 / seconds / 1e9;
        let each = seconds / rounds as f64 * 1e9;
        println!("{len:>8} bytes: {rate:>6.1} GB/s, {each:>9.1} ns each");
    }
}
