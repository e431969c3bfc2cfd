//! `tagwire sim predict`: parameters that two ranks here measure predict programs here.
//!
//! ```text
//!     bench latency, message-rate  ->  fit: L, o, g, and G of a size  ->  sim ring, faces, sweep3d, allreduce
//!     bench ring, halo3d, sweep3d, allreduce  -------------------------->  beside each other
//! ```

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use serde_json::{Map, Value};
use tagwire_bench_sim::{Measured, SimArgs, fit, grid, predict, program};
use tagwire_sim::Machine;

use crate::failure::Failure;
use crate::output;

/// The program's name that asks for it.
pub const NAME: &str = "predict";

/// Sizes that parameters are fitted at.
const FITTED: &str = "8,256,1K,4K,16K,32K,64K";

/// The option that says what communicates.
const UNITS: &str = "--units";

/// A pattern, and how one of its rounds here follows from a row.
struct Pattern {
    name: &'static str,
    /// The words behind `bench`, but for sizes, ranks and transport.
    words: &'static [&'static str],
    sizes: &'static str,
    /// The simulated program.
    simulated: &'static str,
    /// How long its messages are, of a row's size and so many ranks.
    message: fn(u64, u32) -> u64,
    /// Of a row with so many ranks, in nanoseconds.
    round: fn(&Row<'_>, u32) -> Option<f64>,
}

/// A flat row.
struct Row<'r>(&'r Map<String, Value>);

impl Row<'_> {
    fn figure(&self, name: &str) -> Option<f64> {
        self.0.get(name)?.as_f64()
    }

    fn size(&self) -> Option<u64> {
        self.0.get("size")?.as_u64()
    }
}

/// The time of an iteration in which a rank moves `times` the bytes of a row's size, from its throughput in 10^6 bytes per second.
fn of_throughput(row: &Row<'_>, times: f64) -> Option<f64> {
    let bytes = times * row.size()? as f64;
    Some(bytes / row.figure("throughput_mb_s")? * 1e3)
}

const PATTERNS: [Pattern; 4] = [
    Pattern {
        name: "ring",
        words: &["ring"],
        sizes: "8,4K,64K",
        simulated: "ring",
        message: |size, _| size,
        // The row has the time of a hop.
        round: |row, ranks| Some(row.figure("latency_us")? * 1e3 * f64::from(ranks)),
    },
    Pattern {
        name: "halo3d",
        words: &["halo3d", "--mode", "single", "--threads", "1"],
        sizes: "4K,64K",
        simulated: "faces",
        message: |size, _| size,
        // Each of two ranks has one face, which it sends and receives.
        round: |row, ranks| of_throughput(row, 2.0 * faces(ranks)),
    },
    Pattern {
        name: "sweep3d",
        words: &["sweep3d", "--mode", "single", "--threads", "1"],
        sizes: "4K,64K",
        simulated: "sweep3d",
        // In 16 slices.
        message: |size, _| size / 16,
        round: |row, ranks| of_throughput(row, 8.0 * sides(ranks)),
    },
    Pattern {
        name: "allreduce",
        words: &["allreduce"],
        sizes: "8,4K,64K",
        simulated: "allreduce",
        // Vectors of 32 KiB go around in pieces, shorter ones as a whole.
        message: |size, ranks| match size < 32 << 10 {
            true => size,
            false => size / u64::from(ranks),
        },
        round: |row, _| Some(row.figure("latency_us")? * 1e3),
    },
];

/// The neighbours that a rank has on average, where they lie in space.
fn faces(ranks: u32) -> f64 {
    neighbours(grid::<3>(ranks), ranks)
}

/// The same in a plane.
fn sides(ranks: u32) -> f64 {
    neighbours(grid::<2>(ranks), ranks)
}

fn neighbours<const N: usize>(sides: [u32; N], ranks: u32) -> f64 {
    let pairs = |side: u32| f64::from(ranks / side * (side - 1));
    2.0 * sides.into_iter().map(pairs).sum::<f64>() / f64::from(ranks)
}

/// Measures, fits, predicts and compares on each transport, and prints the table.
pub fn run(args: &SimArgs) -> Result<ExitCode, Failure> {
    let ranks = args.ranks.unwrap_or(2);
    let mut text = String::new();
    for transport in &args.transport {
        let known = transport.parse::<tagwire_bench::TransportChoice>();
        known.map_err(|reason| Failure::usage(format!("-t {transport}: {reason}")))?;
        let measured = measured(transport)?;
        text += &described(transport, &measured)?;
        let _ = writeln!(
            text,
            "  {:<10} {:>8} {:>12} {:>12} {:>8}",
            "pattern", "bytes", "here (us)", "sim (us)", "off (%)"
        );
        for pattern in &PATTERNS {
            compare(transport, ranks, &measured, pattern, &mut text)?;
        }
    }
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// What two ranks measure.
fn measured(transport: &str) -> Result<Measured, Failure> {
    let of = |words: &[&str], figure: &'static str, nanos: fn(f64) -> f64| {
        let rows = bench(words, FITTED, 2, transport)?;
        let points = rows.iter().filter_map(|row| {
            let row = Row(row.as_object()?);
            Some((row.size()?, nanos(row.figure(figure)?)))
        });
        Ok::<Vec<(u64, f64)>, Failure>(points.collect())
    };
    // Programs call as this does: they wait for each send.
    let blocking = ["message-rate", "--style", "blocking", UNITS, "processes:1"];
    Ok(Measured {
        latency: of(&["latency"], "latency_us", |us| us * 1e3)?,
        message: of(&blocking, "rate_msg_s", |rate| 1e9 / rate)?,
    })
}

fn described(transport: &str, measured: &Measured) -> Result<String, Failure> {
    let link = fit(measured, 0).map_err(Failure::run)?.network;
    let mut text = format!(
        "{transport}: latency {}, overhead {} a side, gap {}; ns a byte:",
        link.latency, link.send, link.gap,
    );
    for (size, _) in measured.latency.iter().filter(|(size, _)| *size > 8) {
        let link = fit(measured, *size as usize).map_err(Failure::run)?.network;
        let per_byte = link.per_byte.as_femtos() as f64 / 1e6;
        let _ = write!(text, " {per_byte:.4} of {size}");
    }
    text.push('\n');
    Ok(text)
}

fn compare(
    transport: &str,
    ranks: u32,
    measured: &Measured,
    pattern: &Pattern,
    text: &mut String,
) -> Result<(), Failure> {
    let simulated = program(pattern.simulated)
        .ok_or_else(|| Failure::run(format!("there is no program '{}'", pattern.simulated)))?;
    for row in bench(pattern.words, pattern.sizes, ranks, transport)? {
        let Some(row) = row.as_object().map(Row) else {
            continue;
        };
        let (Some(size), Some(here)) = (row.size(), (pattern.round)(&row, ranks)) else {
            continue;
        };
        let message = (pattern.message)(size, ranks) as usize;
        let machine = Machine {
            // All are on this host.
            ranks_per_node: ranks,
            ..fit(measured, message).map_err(Failure::run)?
        };
        let sim = predict(simulated, ranks, machine, size as usize).map_err(Failure::run)?;
        let _ = writeln!(
            text,
            "  {:<10} {size:>8} {:>12.3} {:>12.3} {:>8.1}",
            pattern.name,
            here / 1e3,
            sim / 1e3,
            100.0 * (sim - here) / here
        );
    }
    Ok(())
}

/// Runs `tagwire bench`, and returns its rows.
fn bench(words: &[&str], sizes: &str, ranks: u32, transport: &str) -> Result<Vec<Value>, Failure> {
    let own = std::env::current_exe().map_err(Failure::run)?;
    let file = std::env::temp_dir().join(format!("tagwire-predict-{}.json", std::process::id()));
    let ranks = ranks.to_string();
    let ran = Command::new(own)
        .arg("bench")
        .args(words)
        .args(["-m", sizes, "-t", transport])
        // Of units the ranks follow.
        .args(["-n", &ranks].iter().filter(|_| !words.contains(&UNITS)))
        .args(["--launches", "3", "--overwrite", "-o"])
        .arg(&file)
        .stdout(Stdio::null())
        .status();
    let rows = ran
        .map_err(Failure::run)
        .and_then(|ended| match ended.success() {
            true => rows_of(&file),
            false => Err(Failure::run(format!("'bench {}' failed", words.join(" ")))),
        });
    // There is none where it failed.
    let _ = std::fs::remove_file(&file);
    rows
}

/// The medians over launches, by size.
fn rows_of(file: &Path) -> Result<Vec<Value>, Failure> {
    let mut found = crate::results::read(file)?;
    let mut rows = |key: &str| match found.remove(key) {
        Some(Value::Array(rows)) => rows,
        _ => Vec::new(),
    };
    let summary = rows("summary");
    Ok(match summary.is_empty() {
        true => rows("rows"),
        false => summary,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_follow_from_rows() {
        let row = serde_json::json!({"size": 1000, "throughput_mb_s": 4.0, "latency_us": 2.0});
        let row = Row(row.as_object().unwrap());
        let of = |name: &str, ranks| {
            let pattern = PATTERNS.iter().find(|pattern| pattern.name == name);
            (pattern.unwrap().round)(&row, ranks).unwrap()
        };
        assert_eq!(of("ring", 2), 4000.0);
        // A face there and one back.
        assert_eq!(of("halo3d", 2), 500_000.0);
        assert_eq!(of("sweep3d", 2), 2_000_000.0);
        assert_eq!(of("allreduce", 2), 2000.0);
        assert_eq!((faces(8), sides(4)), (3.0, 2.0));
    }
}
