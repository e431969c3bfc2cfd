//! Whether the processors have something else to do: what is late beside other load says nothing.

use std::time::{Duration, Instant};

/// How idle the processors are to be, and how long that is waited for.
const IDLE: f64 = 0.6;
const PATIENCE: Duration = Duration::from_secs(20);

/// Waits until the processors have little to do; not for ever. Returns whether they have.
pub fn wait_for_idle_processors() -> bool {
    let deadline = Instant::now() + PATIENCE;
    let mut last = processors();
    while Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(500));
        let now = processors();
        let (idle, all) = (now.0.saturating_sub(last.0), now.1.saturating_sub(last.1));
        if idle as f64 >= IDLE * all as f64 {
            return true;
        }
        last = now;
    }
    false
}

/// Returns for how long the processors were idle, and were there, by proc_stat(5).
fn processors() -> (u64, u64) {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let first = text.lines().next().unwrap_or_default();
    let ticks: Vec<u64> = first
        .split_whitespace()
        .skip(1)
        .map_while(|word| word.parse().ok())
        .collect();
    let idle = ticks.iter().skip(3).take(2).sum();
    (idle, ticks.iter().take(8).sum())
}
