//! Random schedules: the same suite on many seeds, each of which can be run again alone.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::thread::LocalKey;
use std::time::Duration;

use crate::network::{Link, Machine, PerByte, Span, Trace};

/// How many seeds a test runs on, where that is said.
pub const SEEDS: &str = "TAGWIRE_SIM_SEEDS";

/// The one seed that a test is to run on.
pub const SEED: &str = "TAGWIRE_SIM_SEED";

/// How many seconds of processor time a test runs on seeds from 0 on, where that is said. With [`SEEDS`] it ends with the first of both.
pub const SECONDS: &str = "TAGWIRE_SIM_SECONDS";

/// Where a seed that fails leaves a picture of its last network: who sent to whom, and who waited for whom.
pub const PICTURE: &str = "TAGWIRE_SIM_PICTURE";

thread_local! {
    /// Of the networks that a test of this thread makes.
    static TRACE: Trace = Trace::default();
}

/// Returns a machine with so many ranks on a node, whose links are alike, on a node and between nodes: messages take some time, and
/// their bytes little.
#[must_use]
pub fn machine(ranks_per_node: u32) -> Machine {
    let link = Link {
        latency: Span::nanos(1000),
        send: Span::nanos(200),
        recv: Span::nanos(200),
        gap: Span::nanos(100),
        per_byte: PerByte::femtos(100_000),
        ..Link::default()
    };
    Machine {
        network: link,
        local: link,
        ranks_per_node,
        ..Machine::default()
    }
}

/// Returns what networks of a test take note with, where a [picture](PICTURE) is wanted.
#[must_use]
pub fn trace() -> Option<Trace> {
    std::env::var_os(PICTURE).map(|_| TRACE.with(Trace::clone))
}

/// Leaves a picture where one is wanted, and says so.
fn drawn(file: Option<&Path>, trace: &Trace) -> String {
    let Some(file) = file else {
        return String::new();
    };
    let left = match trace.svg() {
        Some(picture) => std::fs::write(file, picture).map_err(|error| error.to_string()),
        None => Err("nothing has travelled in its last network".to_owned()),
    };
    match left {
        Ok(()) => format!("picture: {}\n", file.display()),
        Err(reason) => format!("no picture in {}: {reason}\n", file.display()),
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{variable} is '{text}', which is no number")))
}

/// Returns how long this thread has had a processor; nothing where the kernel does not tell.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split(' ').next().and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(nanos.unwrap_or_default())
}

/// Runs `check` on the seeds from 0 to `few - 1`, or on those that [`SEEDS`], [`SECONDS`] and [`SEED`] say, and prints how many there were
/// and what they took. `again` is the command that runs the test, to be printed with the seed that fails.
///
/// # Panics
/// When `check` fails, or panics, on a seed.
pub fn on_seeds(few: u64, again: &str, check: impl Fn(u64) -> Result<(), String>) {
    let budget = number(SECONDS).map(Duration::from_secs);
    let few = if budget.is_some() { u64::MAX } else { few };
    let seeds = match number(SEED) {
        Some(seed) => seed..seed + 1,
        None => 0..number(SEEDS).unwrap_or(few),
    };
    let (began, mut count) = (processor_time(), 0);
    let took = || processor_time().saturating_sub(began);
    for seed in seeds {
        if budget.is_some_and(|budget| took() >= budget) {
            break;
        }
        count += 1;
        if let Err(reason) = outcome(|| check(seed)) {
            let file = std::env::var_os(PICTURE).map(PathBuf::from);
            let drawn = TRACE.with(|trace| drawn(file.as_deref(), trace));
            panic!(
                "seed {seed}: {reason}\n{drawn}again: {SEED}={seed} {again}\nas a picture: {PICTURE}=seed-{seed}.svg {SEED}={seed} {again}"
            );
        }
    }
    println!(
        "{again}: {count} seeds, {:.2} s of processor time",
        took().as_secs_f64()
    );
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

#[cfg(test)]
mod tests {
    use tagwire_base::Rank;
    use tagwire_transport::{AmHeader, ByteTransport, Class, Lane, Transport};

    use super::*;
    use crate::network::{MemoryNetwork, MemoryOptions};

    #[test]
    fn seeds_are_run_from_the_first_on() {
        let seen = Cell::new(0);
        on_seeds(5, "here", |seed| {
            assert_eq!(seed, seen.replace(seed + 1));
            Ok(())
        });
        assert_eq!(seen.get(), 5);
        let began = processor_time();
        while processor_time() == began {
            std::hint::spin_loop();
        }
        assert!(processor_time() > began);
    }

    #[test]
    fn a_picture_is_left_of_what_has_travelled() {
        let file = std::env::temp_dir().join(format!("tagwire-seed-{}.svg", std::process::id()));
        let trace = Trace::default();
        assert_eq!(drawn(None, &trace), "");
        assert!(drawn(Some(&file), &trace).contains("nothing has travelled"));
        let options = MemoryOptions {
            trace: Some(trace.clone()),
            ..MemoryOptions::default()
        };
        let network = MemoryNetwork::new(2, options);
        let (mut a, b) = (network.rank(Rank::new(0)), network.rank(Rank::new(1)));
        let to = a.connect(Rank::new(1), &b.address()).expect("it is there");
        let _ = a.send(Lane(0), to, Class::Data, AmHeader([1, 2]), b"hello");
        assert_eq!(
            drawn(Some(&file), &trace),
            format!("picture: {}\n", file.display())
        );
        let picture = std::fs::read_to_string(&file).expect("it was left");
        let _ = std::fs::remove_file(&file);
        assert!(
            picture.contains("message of 5 bytes, rank 0 to rank 1"),
            "{picture}"
        );
    }
}
