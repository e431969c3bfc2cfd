//! `tagwire sim predict`: parameters that two ranks here measure predict programs here.
//!
//! ```text
//!     bench latency, message-rate  ->  fit: L, o, g, and what bytes take  ->  sim ring, faces, sweep3d, allreduce
//!     bench ring, halo3d, sweep3d, allreduce  ------------------------------>  beside each other
//! ```

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tagwire_bench::Here;
use tagwire_bench_sim::{Measured, STREAM_WINDOW, SimArgs, fit, grid, predict, program};
use tagwire_papers::{QUIET_PCT, disturbed};
use tagwire_sim::{Machine, PerByte};

use crate::failure::Failure;
use crate::reproduce::{ATTEMPTS, write};
use crate::{output, stamp};

/// The program's name that asks for it.
pub const NAME: &str = "predict";

/// Sizes that parameters are fitted at.
const FITTED: &str = "8,256,1K,4K,16K,32K,64K";

/// The option that says what communicates.
const UNITS: &str = "--units";

/// How often all is measured, by turns: what disturbs the machine for some seconds disturbs a part of each.
const PASSES: usize = 3;

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
    /// Whether ranks send at once, so that no message answers another.
    at_once: bool,
    /// How often a simulated rank computes in a round: what the test itself takes, without its messages, is shared out among these.
    computes: f64,
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
        at_once: false,
        computes: 1.0,
    },
    Pattern {
        name: "halo3d",
        words: &["halo3d", "--mode", "single", "--threads", "1"],
        sizes: "4K,64K",
        simulated: "faces",
        message: |size, _| size,
        // Each of two ranks has one face, which it sends and receives.
        round: |row, ranks| of_throughput(row, 2.0 * faces(ranks)),
        at_once: true,
        computes: 1.0,
    },
    Pattern {
        name: "sweep3d",
        words: &["sweep3d", "--mode", "single", "--threads", "1"],
        sizes: "4K,64K",
        simulated: "sweep3d",
        // In 16 slices.
        message: |size, _| size / 16,
        round: |row, ranks| of_throughput(row, 8.0 * sides(ranks)),
        at_once: false,
        // In each slice of 8 sweeps.
        computes: 8.0 * 16.0,
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
        at_once: false,
        computes: 1.0,
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
    for transport in &args.transport {
        let known = transport.parse::<tagwire_bench::TransportChoice>();
        known.map_err(|reason| Failure::usage(format!("-t {transport}: {reason}")))?;
    }
    let build = stamp::build();
    let environment = Here::now(build.version, build.commit, build.profile);
    let (mut text, mut transports) = (String::new(), Vec::new());
    for transport in &args.transport {
        let passes = (0..PASSES).map(|_| Pass::measure(transport, ranks));
        let compared = Compared::of(passes.collect::<Result<_, _>>()?, ranks)?;
        text += &compared.text(transport)?;
        transports.push(compared.json(transport)?);
    }
    if let Some(file) = &args.output {
        let whole = json!({
            "schema": SCHEMA,
            "command": tagwire_bench::command_line(),
            "environment": environment,
            "ranks": ranks,
            "transports": transports,
        });
        write(file, &format!("{whole:#}\n"))?;
    }
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// The schema of what is written.
const SCHEMA: &str = "tagwire.predict/1";

/// A round of a pattern with messages of a size, in nanoseconds.
struct Round {
    pattern: &'static str,
    size: u64,
    /// Of each pass that has it.
    passes: Vec<f64>,
    here: f64,
    simulated: f64,
}

impl Round {
    /// By how many percent the simulated one is longer.
    fn off(&self) -> f64 {
        100.0 * (self.simulated - self.here) / self.here
    }
}

/// Rounds here and on the machine that is fitted.
struct Compared {
    measured: Measured,
    rounds: Vec<Round>,
    /// What other load ran beside whenever it was measured: a test, and a size.
    left_out: Vec<(String, u64)>,
}

impl Compared {
    fn of(passes: Vec<Pass>, ranks: u32) -> Result<Self, Failure> {
        let all = |of: fn(&Pass) -> &Vec<(u64, f64)>| medians(passes.iter().map(of));
        let measured = Measured {
            latency: all(|pass| &pass.measured.latency),
            message: all(|pass| &pass.measured.message),
        };
        if measured.latency.is_empty() || measured.message.is_empty() {
            return Err(Failure::run(format!(
                "other load took more than {QUIET_PCT} % of the cores in each of {ATTEMPTS} attempts to measure two ranks: nothing can be fitted"
            )));
        }
        let at_once = Measured {
            latency: all(|pass| &pass.one_way),
            ..measured.clone()
        };
        let mut rounds = Vec::new();
        for (place, pattern) in PATTERNS.iter().enumerate() {
            let here = medians(passes.iter().map(|pass| &pass.here[place]));
            let harness = medians(passes.iter().map(|pass| &pass.harness[place]));
            for ((size, here), (_, harness)) in here.into_iter().zip(harness) {
                let compute = harness / pattern.computes;
                let measured = match pattern.at_once {
                    true => &at_once,
                    false => &measured,
                };
                let of_size = passes.iter().flat_map(|pass| &pass.here[place]);
                let of_size = of_size.filter(|(of, _)| *of == size);
                rounds.push(Round {
                    pattern: pattern.name,
                    size,
                    passes: of_size.map(|(_, nanos)| *nanos).collect(),
                    here,
                    simulated: simulated(pattern, ranks, measured, size, compute)?,
                });
            }
        }
        let left_out = passes.into_iter().flat_map(|pass| pass.left_out);
        Ok(Self {
            measured,
            rounds,
            left_out: left_out.collect(),
        })
    }

    fn text(&self, transport: &str) -> Result<String, Failure> {
        let mut text = described(transport, &self.measured)?;
        let _ = writeln!(
            text,
            "  {:<10} {:>8} {:>12} {:>12} {:>8}",
            "pattern", "bytes", "here (us)", "sim (us)", "off (%)"
        );
        for round in &self.rounds {
            let _ = writeln!(
                text,
                "  {:<10} {:>8} {:>12.3} {:>12.3} {:>8.1}",
                round.pattern,
                round.size,
                round.here / 1e3,
                round.simulated / 1e3,
                round.off()
            );
        }
        if !self.left_out.is_empty() {
            let all = self.left_out.iter();
            let all: Vec<String> = all.map(|(test, size)| format!("{test} {size} B")).collect();
            let _ = writeln!(
                text,
                "  other load took more than {QUIET_PCT} % of the cores in each of {ATTEMPTS} attempts, which are left out: {}",
                all.join(", ")
            );
        }
        Ok(text)
    }

    fn json(&self, transport: &str) -> Result<Value, Failure> {
        let link = fit(&self.measured, 0).map_err(Failure::run)?.network;
        let micros = |points: &[(u64, f64)]| -> Vec<Value> {
            let points = points.iter();
            points
                .map(|(size, nanos)| json!({"size": size, "us": nanos / 1e3}))
                .collect()
        };
        let rounds = self.rounds.iter().map(|round| {
            let passes = round.passes.iter().map(|nanos| nanos / 1e3);
            json!({
                "pattern": round.pattern, "size": round.size, "passes_us": passes.collect::<Vec<_>>(),
                "here_us": round.here / 1e3, "sim_us": round.simulated / 1e3, "off_pct": round.off(),
            })
        });
        let left_out = self.left_out.iter();
        let left_out = left_out.map(|(test, size)| json!({"test": test, "size": size}));
        Ok(json!({
            "transport": transport,
            "latency": link.latency.to_string(),
            "overhead": link.send.to_string(),
            "gap": link.gap.to_string(),
            "half_round_trips": micros(&self.measured.latency),
            "between_messages": micros(&self.measured.message),
            "rounds": rounds.collect::<Vec<_>>(),
            "left_out": left_out.collect::<Vec<_>>(),
        }))
    }
}

/// What was measured once: bytes, and nanoseconds.
#[derive(Default)]
struct Pass {
    measured: Measured,
    /// What messages take that only an empty one answers.
    one_way: Vec<(u64, f64)>,
    /// A round of each pattern.
    here: Vec<Vec<(u64, f64)>>,
    /// What a round takes the test itself, where nothing moves; nothing where its row has no such figure.
    harness: Vec<Vec<(u64, f64)>>,
    /// What other load ran beside whenever it was measured: a test, and a size.
    left_out: Vec<(String, u64)>,
}

impl Pass {
    fn measure(transport: &str, ranks: u32) -> Result<Self, Failure> {
        // Programs call as this does: they wait for each send. The simulated stream has an answer after as many.
        let every = STREAM_WINDOW.to_string();
        let blocking = [
            "message-rate",
            "--style",
            "blocking",
            "--ack-every",
            &every,
            UNITS,
            "processes:1",
        ];
        let single = ["bandwidth", "--window", "1"];
        let mut left_out = Vec::new();
        let mut bench = |words: &[&str], sizes: &str, ranks: u32| {
            let (rows, disturbed) = quiet(sizes, |sizes| bench(words, sizes, ranks, transport))?;
            let test = words.first().copied().unwrap_or_default();
            left_out.extend(disturbed.into_iter().map(|size| (test.to_owned(), size)));
            Ok::<_, Failure>(rows)
        };
        let mut of = |words: &[&str], nanos: &dyn Fn(&Row<'_>) -> Option<f64>| {
            let rows = bench(words, FITTED, 2)?;
            Ok::<_, Failure>(points(&rows, nanos))
        };
        let mut pass = Self {
            measured: Measured {
                latency: of(&["latency"], &|row| Some(row.figure("latency_us")? * 1e3))?,
                message: of(&blocking, &|row| Some(1e9 / row.figure("rate_msg_s")?))?,
            },
            ..Self::default()
        };
        // An empty message takes about as long as the shortest.
        let empty = pass
            .measured
            .latency
            .first()
            .map_or(0.0, |(_, nanos)| *nanos);
        let windows = of(&single, &|row| Some(1e9 / row.figure("rate_msg_s")?))?;
        let one_way = windows
            .into_iter()
            .map(|(size, nanos)| (size, nanos - empty));
        pass.one_way = one_way.collect();
        for pattern in &PATTERNS {
            let rows = bench(pattern.words, pattern.sizes, ranks)?;
            let here = points(&rows, &|row| (pattern.round)(row, ranks));
            let harness = |row: &Row<'_>| Some(row.figure("harness_us").unwrap_or(0.0) * 1e3);
            pass.here.push(here);
            pass.harness.push(points(&rows, &harness));
        }
        pass.left_out = left_out;
        Ok(pass)
    }
}

/// Returns rows of sizes that nothing else ran beside, and the sizes beside which other load ran in each of some attempts. `run` measures
/// sizes as `-m` names them.
fn quiet(
    sizes: &str,
    mut run: impl FnMut(&str) -> Result<Vec<Value>, Failure>,
) -> Result<(Vec<Value>, Vec<u64>), Failure> {
    let (mut kept, mut wanted, mut left) = (Vec::new(), sizes.to_owned(), Vec::new());
    for _ in 0..ATTEMPTS {
        let rows = run(&wanted)?;
        let beside = disturbed(&rows);
        left = Vec::new();
        for (row, is_disturbed) in rows.into_iter().zip(beside) {
            match row["size"].as_u64() {
                Some(size) if is_disturbed => left.push(size),
                _ => kept.push(row),
            }
        }
        if left.is_empty() {
            break;
        }
        wanted = left
            .iter()
            .map(u64::to_string)
            .collect::<Vec<_>>()
            .join(",");
    }
    Ok((kept, left))
}

/// Returns what rows of sizes come to; those without it are left out.
fn points(rows: &[Value], nanos: &dyn Fn(&Row<'_>) -> Option<f64>) -> Vec<(u64, f64)> {
    let points = rows.iter().filter_map(|row| {
        let row = Row(row.as_object()?);
        Some((row.size()?, nanos(&row)?))
    });
    points.collect()
}

/// Returns the median of each size.
fn medians<'a>(passes: impl Iterator<Item = &'a Vec<(u64, f64)>>) -> Vec<(u64, f64)> {
    let mut sizes: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for (size, value) in passes.flatten() {
        sizes.entry(*size).or_default().push(*value);
    }
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        f64::midpoint(values[(values.len() - 1) / 2], values[middle])
    };
    let all = sizes.into_iter();
    all.map(|(size, values)| (size, median(values))).collect()
}

/// Returns a round of a pattern on the machine that is fitted to what was measured.
fn simulated(
    pattern: &Pattern,
    ranks: u32,
    measured: &Measured,
    size: u64,
    compute: f64,
) -> Result<f64, Failure> {
    let simulated = program(pattern.simulated)
        .ok_or_else(|| Failure::run(format!("there is no program '{}'", pattern.simulated)))?;
    let message = (pattern.message)(size, ranks) as usize;
    let machine = Machine {
        // All are on this host.
        ranks_per_node: ranks,
        ..fit(measured, message).map_err(Failure::run)?
    };
    let compute = Duration::from_nanos(compute.round() as u64);
    predict(simulated, ranks, machine, size as usize, compute).map_err(Failure::run)
}

fn described(transport: &str, measured: &Measured) -> Result<String, Failure> {
    let link = fit(measured, 0).map_err(Failure::run)?.network;
    let mut text = format!(
        "{transport}: latency {}, overhead {} a side, gap {}\n  {:>10} {:>16} {:>16} {:>16}\n",
        link.latency,
        link.send,
        link.gap,
        "bytes",
        "shared (ns/byte)",
        "copied (ns/byte)",
        "after a send",
    );
    for (size, _) in &measured.latency {
        let link = fit(measured, *size as usize).map_err(Failure::run)?.network;
        let nanos = |per_byte: PerByte| per_byte.as_femtos() as f64 / 1e6;
        let _ = writeln!(
            text,
            "  {size:>10} {:>16.4} {:>16.4} {:>16}",
            nanos(link.per_byte),
            nanos(link.copy_out),
            link.after_send.to_string(),
        );
    }
    Ok(text)
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
        .args(["--overwrite", "-o"])
        .arg(&file)
        .stdout(Stdio::null())
        .status();
    let rows = ran
        .map_err(Failure::run)
        .and_then(|ended| match ended.success() {
            true => match crate::results::read(&file)?.remove("rows") {
                Some(Value::Array(rows)) => Ok(rows),
                _ => Ok(Vec::new()),
            },
            false => Err(Failure::run(format!("'bench {}' failed", words.join(" ")))),
        });
    // There is none where it failed.
    let _ = std::fs::remove_file(&file);
    rows
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

    #[test]
    fn what_was_measured_is_compared_and_kept() {
        let sizes = [8, 4096];
        let points = |start: f64, each: f64| {
            let of = |size: u64| (size, start + each * size as f64);
            sizes.map(of).to_vec()
        };
        let pass = || Pass {
            measured: Measured {
                latency: points(1000.0, 0.1),
                message: points(400.0, 0.1),
            },
            one_way: points(1000.0, 0.1),
            here: PATTERNS.iter().map(|_| points(9000.0, 0.5)).collect(),
            harness: PATTERNS.iter().map(|_| points(0.0, 0.0)).collect(),
            left_out: vec![("ring".to_owned(), 8)],
        };
        let compared = Compared::of(vec![pass(), pass()], 4).ok().unwrap();
        assert_eq!(compared.rounds.len(), PATTERNS.len() * sizes.len());
        let text = compared.text("shm").ok().unwrap();
        assert!(text.contains("left out: ring 8 B, ring 8 B"), "{text}");
        let json = compared.json("shm").ok().unwrap();
        let rounds = json["rounds"].as_array().unwrap();
        assert_eq!(rounds[0]["passes_us"].as_array().unwrap().len(), 2);
        assert!(rounds.iter().all(|round| round["off_pct"].is_number()));
        assert_eq!(json["left_out"][0]["size"], 8);
        let nothing = Pass::default();
        assert!(Compared::of(vec![nothing], 2).is_err());
    }

    #[test]
    fn sizes_beside_other_load_are_measured_again() {
        let row = |size: u64, load: f64| serde_json::json!({"size": size, "other_load_pct": load});
        let mut asked = Vec::new();
        let (kept, left) = quiet("8,4K,64K", |sizes| {
            asked.push(sizes.to_owned());
            Ok(match asked.len() {
                1 => vec![row(8, 1.0), row(4096, 9.0), row(65_536, 30.0)],
                2 => vec![row(4096, 2.0), row(65_536, 30.0)],
                _ => vec![row(65_536, 5.1)],
            })
        })
        .unwrap_or_default();
        assert_eq!(asked, ["8,4K,64K", "4096,65536", "65536"]);
        assert_eq!(kept, [row(8, 1.0), row(4096, 2.0)]);
        assert_eq!(left, [65_536]);
    }

    #[test]
    fn passes_have_their_medians_by_size() {
        let passes = [
            vec![(8, 3.0), (64, 1.0)],
            vec![(8, 1.0), (64, 2.0)],
            vec![(8, 2.0)],
        ];
        assert_eq!(medians(passes.iter()), [(8, 2.0), (64, 1.5)]);
    }
}
