//! Messages of mixed sizes each way over shared memory that loses some of them: what dr had to do, and how fast it was. Prints a row
//! for each quality, in which the bytes of both ranks are drawn and checked by one thread; a message that is lost, changed or out of order ends it with its number.
//!
//! `cargo run --release -p tagwire-dr --example quality [MESSAGES]`: a million each way, unless it is said.
#![allow(clippy::expect_used, reason = "a measure that cannot be taken ends")]

#[path = "../tests/common/mod.rs"]
mod common;

use std::time::Instant;

use common::stream::{connect, exchange, length};
use common::{faults, on_shm};
use tagwire_base::Rank;
use tagwire_base::bootstrap::LocalJob;

/// What the bars of data reliability say: losses, each with reordering and a thousandth of messages changed.
const LOSSES: [&str; 5] = ["none", "0%", "0.1%", "1%", "10%"];

fn main() {
    let all = std::env::args().nth(1).map_or(1_000_000, |text| {
        text.parse().expect("a number of messages each way")
    });
    println!("| loss | messages/s | MB/s | what dr had to do |");
    println!("|---|---|---|---|");
    for loss in LOSSES {
        let spec = match loss {
            "none" => String::new(),
            _ => format!("reorder=4,corrupt=0.1%,loss={loss}"),
        };
        let job = LocalJob::new(2).expect("two ranks");
        let open = |rank| on_shm(&job, Rank::new(rank), faults(&spec, 1)).expect("shared memory");
        let mut nodes = connect([open(0), open(1)]);
        let most = nodes[0].log.most;
        let start = Instant::now();
        let counters = exchange(&mut nodes, all);
        let took = start.elapsed();
        let moved: u64 = (0..all).map(|number| length(number, most) as u64).sum();
        let per_second = |count: u64| count as f64 / took.as_secs_f64();
        println!(
            "| {loss} | {:.0} | {:.0} | {} |",
            per_second(2 * all),
            per_second(2 * moved) / 1e6,
            counters[0],
        );
    }
}
