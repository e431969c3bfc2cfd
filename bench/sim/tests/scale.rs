//! How large and how fast: by command, since it takes minutes and gigabytes.
//!
//! ```text
//! cargo test --release -p tagwire-bench-sim --test scale -- --ignored --nocapture --test-threads 1
//! ```
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use clap::Parser;
use tagwire_bench_sim::{SimArgs, simulate};

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    args: SimArgs,
}

/// Runs `tagwire sim` with these options, shows what it has cost, and returns the rows.
fn sim(options: &str) -> String {
    let words = ["sim"].into_iter().chain(options.split(' '));
    let command = Command::try_parse_from(words).unwrap();
    let report = simulate(&command.args).unwrap();
    println!("{options}: {}", report.cost);
    assert!(!report.has_failed);
    report.rows
}

/// Returns the most memory that this process has had, in bytes (man 5 `proc_pid_status`).
fn most_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: u64 = line
        .unwrap()
        .split_whitespace()
        .next()
        .unwrap()
        .parse()
        .unwrap();
    kib << 10
}

#[test]
#[ignore = "by command"]
fn sixty_four_ranks() {
    let rows = sim("stencil -n 64 --rounds 300");
    assert_eq!(
        rows.lines().filter(|row| !row.starts_with('#')).count(),
        300
    );
}

/// Each talks to eight neighbours, and all take part in a barrier.
#[test]
#[ignore = "by command"]
fn sixty_five_thousand_ranks_in_twelve_gibibytes() {
    let rows = sim("stencil -n 65536 --rounds 3");
    println!("{rows}");
    assert!(most_memory() < 12 << 30, "{}", most_memory());
}
