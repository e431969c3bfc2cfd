//! Random schedules: the same suite on many seeds, each of which can be run again alone.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::LocalKey;

/// How many seeds a test runs on, where that is said.
pub const SEEDS: &str = "TAGWIRE_SIM_SEEDS";

/// The one seed that a test is to run on.
pub const SEED: &str = "TAGWIRE_SIM_SEED";

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{variable} is '{text}', which is no number")))
}

/// Runs `check` on the seeds from 0 to `few - 1`, or on those that [`SEEDS`] and [`SEED`] say. `again` is the command that runs the
/// test, to be printed with the seed that fails.
///
/// # Panics
/// When `check` fails, or panics, on a seed.
pub fn on_seeds(few: u64, again: &str, check: impl Fn(u64) -> Result<(), String>) {
    let seeds = match number(SEED) {
        Some(seed) => seed..seed + 1,
        None => 0..number(SEEDS).unwrap_or(few),
    };
    for seed in seeds {
        if let Err(reason) = outcome(|| check(seed)) {
            panic!("seed {seed}: {reason}\nagain: {SEED}={seed} {again}");
        }
    }
}

/// Returns the first of so many seeds on which `check` fails, and how.
pub fn first_failure(
    seeds: u64,
    check: impl Fn(u64) -> Result<(), String>,
) -> Option<(u64, String)> {
    (0..seeds).find_map(|seed| Some((seed, outcome(|| check(seed)).err()?)))
}

/// Checks that `check` fails on one of so many seeds while a fault is planted, and not without it.
///
/// # Panics
/// When it does not.
pub fn assert_found(
    plant: &'static LocalKey<Cell<bool>>,
    seeds: u64,
    check: impl Fn(u64) -> Result<(), String>,
) {
    plant.set(true);
    let found = first_failure(seeds, &check);
    plant.set(false);
    let (seed, how) = found.expect("a fault is found");
    println!("found by seed {seed}: {how}");
    assert_eq!(check(seed), Ok(()), "and nothing else is");
}

/// Returns what a check says, a panic as a failure.
fn outcome(check: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(check)).unwrap_or_else(|panic| Err(words(&*panic)))
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    format!("a panic: {}", text.unwrap_or("of no words"))
}
