//! The patterns of `tagwire bench sweep3d` and `halo3d`, as a simulation runs them: what their threads call is recorded from the
//! programs of the tests themselves.

use std::sync::Arc;

use crate::args::BenchArgs;
use crate::body::compute::Computation;
use crate::error::{Error, Result};
use crate::pattern::exchange::Memories;
use crate::pattern::grid::Grid;
use crate::pattern::measure::{Done, rows_of};
use crate::pattern::motif::Series;
use crate::pattern::recorded::{PatternEdge, PatternEdges, PatternStep, Recorder};
use crate::pattern::{Context, Own, Pattern, Prepared};
use crate::port::null::NullPort;
use crate::record::{Figures, PatternKeys, Row};
use crate::suite::halo3d::Halo3d;
use crate::suite::sweep3d::Sweep3d;

use super::row_of;

/// Iterations, where the command does not say.
const ITERATIONS: u64 = 3;

/// What the threads of a rank do in a region: the first thread begins, all work, the first one ends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PatternRegion {
    /// What the first thread does before the others begin.
    pub before: Vec<PatternStep>,
    /// What each thread does.
    pub threads: Vec<Vec<PatternStep>>,
    /// What the first thread does once all have ended.
    pub after: Vec<PatternStep>,
}

/// What a rank does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PatternScript {
    /// The edges that it sets up.
    pub exchanges: Vec<PatternEdges>,
    /// Its regions, of all iterations.
    pub regions: Vec<PatternRegion>,
}

/// A size and a series of a pattern.
#[derive(Debug, Clone)]
pub struct SimulatedPattern {
    /// Bytes, as rows have them.
    pub size: usize,
    /// Ranks of the grid.
    pub ranks: u32,
    /// Threads of each.
    pub threads: u32,
    /// How often the pattern is gone through.
    pub iterations: u64,
    /// How often a script's bytes are in those of this size.
    scale: usize,
    scripts: Arc<[PatternScript]>,
    bytes: Vec<f64>,
    partitions: u32,
    keys: PatternKeys,
    series: Series,
    own: Arc<Own>,
    figures: fn(&mut Figures),
}

/// What a recorded series comes to, whatever its size.
struct Recording {
    threads: u32,
    partitions: u32,
    keys: PatternKeys,
    bytes: Vec<f64>,
    scripts: Vec<PatternScript>,
}

impl SimulatedPattern {
    /// Returns the cases of a command: those of a size behind each other; none where it is of another test.
    ///
    /// # Errors
    /// What of the command cannot be simulated.
    pub(super) fn all(args: &BenchArgs) -> std::result::Result<Vec<Self>, String> {
        let all = match args.test.name {
            "sweep3d" => cases::<Sweep3d>(args),
            "halo3d" => cases::<Halo3d>(args),
            _ => return Ok(Vec::new()),
        };
        all.map_err(|error| error.to_string())
    }

    /// Returns what a rank does.
    #[must_use]
    pub fn script(&self, rank: u32) -> PatternScript {
        let script = self.scripts.get(rank as usize).cloned();
        let mut script = script.unwrap_or_default();
        let scaled = |edges: &mut Vec<PatternEdge>| {
            for edge in edges {
                *edge = edge.times(self.scale);
            }
        };
        for edges in &mut script.exchanges {
            scaled(&mut edges.outs);
            scaled(&mut edges.ins);
        }
        script
    }

    /// Returns the rows of all series of a size, each with what its iterations took each rank together, in nanoseconds.
    #[must_use]
    pub fn rows(transport: &str, pml: &str, timed: &[(Self, Vec<u64>)]) -> Vec<Row> {
        let Some((first, _)) = timed.first() else {
            return Vec::new();
        };
        let done: Vec<Done> = timed
            .iter()
            .map(|(of, times)| Done {
                series: of.series.clone(),
                threads: of.threads,
                partitions: of.partitions,
                keys: of.keys.clone(),
                bytes: of
                    .bytes
                    .iter()
                    .map(|bytes| bytes * of.scale as f64)
                    .collect(),
                iterations: of.iterations,
                times: times
                    .iter()
                    .map(|time| *time as f64 / of.iterations as f64)
                    .collect(),
            })
            .collect();
        let row = || row_of(first.size, transport, pml, first.ranks);
        let mut rows = rows_of(&first.own, &done, row, first.figures);
        for row in &mut rows {
            row.sampling.set(first.iterations, 1);
        }
        rows
    }
}

fn cases<T: Pattern>(args: &BenchArgs) -> Result<Vec<SimulatedPattern>> {
    let missing = || Error::Usage(format!("{} is no pattern", args.test));
    let own = Arc::new(args.pattern_plan().ok_or_else(missing)?);
    let motif = args.test.motif.as_ref().ok_or_else(missing)?;
    let sizes = args.size_list();
    let sizes: Vec<usize> = sizes.as_slice().iter().map(|size| *size as usize).collect();
    // What threads call is the same at every size that divides as these do.
    let common = sizes.iter().copied().fold(0, common_divisor);
    let parts = own.pattern.slices as usize * args.thread_count() as usize;
    let least = if common.is_multiple_of(parts) {
        parts
    } else {
        common
    };
    let policies = &own.partitioned.policies;
    let all = (motif.series)(&own.pattern, policies);
    let iterations = args.iterations.unwrap_or(ITERATIONS);
    let seed = args.seed.unwrap_or_default();
    let mut series = Vec::new();
    for one in all {
        let recording = record::<T>(&own, &one, least, iterations, args.thread_count(), seed)?;
        let scripts: Arc<[PatternScript]> = recording.scripts.into();
        series.push(SimulatedPattern {
            size: least,
            ranks: Grid::new(&own.pattern.grid).ranks(),
            threads: recording.threads,
            iterations,
            scale: 1,
            scripts,
            bytes: recording.bytes,
            partitions: recording.partitions,
            keys: recording.keys,
            series: one,
            own: Arc::clone(&own),
            figures: T::figures,
        });
    }
    let of_size = |size: &usize| {
        let size = *size;
        let with = move |one: &SimulatedPattern| SimulatedPattern {
            size,
            scale: size / least.max(1),
            ..one.clone()
        };
        series.iter().map(with).collect::<Vec<_>>()
    };
    Ok(sizes.iter().flat_map(of_size).collect())
}

/// The greatest number that divides both; 0 is divided by all.
const fn common_divisor(one: usize, other: usize) -> usize {
    match other {
        0 => one,
        _ => common_divisor(other, one % other),
    }
}

/// Has the program of each rank go through its regions, and writes down what its threads call.
fn record<T: Pattern>(
    own: &Own,
    series: &Series,
    size: usize,
    iterations: u64,
    threads: u32,
    seed: u64,
) -> Result<Recording> {
    let memories = Memories::new(T::room(&own.pattern, size))?;
    let single = own.partitioned.single();
    let grid = Grid::new(&own.pattern.grid);
    let mut recording = Recording {
        threads: 1,
        partitions: 1,
        keys: PatternKeys::default(),
        bytes: Vec::new(),
        scripts: Vec::new(),
    };
    for rank in 0..grid.ranks() {
        let port = NullPort::new(rank, grid.ranks());
        let recorder = Recorder::default();
        let context = Context {
            port: &port,
            windows: None,
            seed,
            threads,
            pattern: &own.pattern,
            partitioned: &own.partitioned,
            grid: grid.clone(),
            memories: &memories,
            time: single.time,
            checked: None,
            computation: Computation::none(),
            recorder: Some(&recorder),
        };
        let prepared = T::open(&context, series, size)?;
        let regions = regions(&prepared, iterations, &recorder)?;
        recording.threads = prepared.threads;
        recording.partitions = prepared.partitions;
        recording.keys = prepared.keys;
        recording.bytes = prepared.bytes;
        recording.scripts.push(PatternScript {
            exchanges: recorder.exchanges(),
            regions,
        });
    }
    Ok(recording)
}

fn regions(
    prepared: &Prepared<'_>,
    iterations: u64,
    recorder: &Recorder,
) -> Result<Vec<PatternRegion>> {
    let program = &*prepared.program;
    let region = |number| {
        program.before(number)?;
        let before = recorder.take();
        let work = |thread| {
            program.work(number, thread)?;
            Ok(recorder.take())
        };
        let threads = (0..prepared.threads)
            .map(work)
            .collect::<Result<Vec<_>>>()?;
        program.after(number)?;
        Ok(PatternRegion {
            before,
            threads,
            after: recorder.take(),
        })
    };
    (0..iterations * prepared.regions).map(region).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use std::time::Duration;

    use super::super::Simulated;
    use super::*;
    use crate::pattern::recorded::PatternCarrier;

    fn cases(text: &str) -> Vec<SimulatedPattern> {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        Simulated::parse(&words).unwrap().patterns().unwrap()
    }

    #[test]
    fn a_sweep_waits_computes_and_sends_slice_by_slice() {
        let all = cases(
            "sweep3d --grid 2x2 --threads 2 --slices 4 -m 64,256 --mode single,multiple,partitioned --policy default \
             --compute-time 1ms --noise none --compute busy -i 2",
        );
        assert_eq!(all.len(), 6);
        let threads: Vec<_> = all.iter().map(|one| one.threads).collect();
        assert_eq!(threads, [1, 2, 2, 1, 2, 2]);
        let script = all[3].script(0);
        // Two iterations of eight sweeps, an exchange for each corner.
        assert_eq!((script.regions.len(), script.exchanges.len()), (16, 4));
        // From the first corner rank 0 only sends, to both neighbours.
        let first = &script.exchanges[0];
        assert_eq!((first.ins.len(), first.outs.len()), (0, 2));
        assert_eq!((first.outs[0].parts, first.outs[0].len), (4, 64));
        let slice = |part| {
            let ready = |edge| PatternStep::Ready {
                exchange: 0,
                edge,
                part,
            };
            [
                PatternStep::Compute(Duration::from_millis(1)),
                ready(0),
                ready(1),
            ]
        };
        let region = &script.regions[0];
        assert_eq!(
            region.threads[0],
            (0..4).flat_map(slice).collect::<Vec<_>>()
        );
        assert!(region.before.contains(&PatternStep::Start(0)));
        // The rank at the opposite corner waits for both before each slice.
        let last = &all[0].script(3).regions[0].threads[0];
        assert!(matches!(
            last[..2],
            [PatternStep::Arrive { .. }, PatternStep::Arrive { .. }]
        ));
        assert_eq!(all[1].script(0).regions[0].threads.len(), 2);
    }

    #[test]
    fn rows_are_those_of_the_pattern() {
        let all = cases(
            "halo3d --grid 2x1x1 --threads 8 -m 64 --mode single,partitioned --policy messages --compute-time 1ms --compute busy -i 1",
        );
        let script = all[1].script(0);
        let carrier = PatternCarrier::Partitioned("messages".to_owned());
        assert_eq!(script.exchanges[0].carrier, carrier);
        // One neighbour, whose face four threads have a part of.
        assert_eq!(
            (
                script.exchanges[0].outs.len(),
                script.exchanges[0].outs[0].parts
            ),
            (1, 4)
        );
        let timed: Vec<_> = all
            .into_iter()
            .zip([vec![1280, 1280], vec![640, 640]])
            .collect();
        let rows = SimulatedPattern::rows("sim:niagara", "ob1", &timed);
        let names: Vec<_> = rows
            .iter()
            .map(|row| row.series.pattern.series.clone().unwrap())
            .collect();
        assert_eq!(names, ["single@1", "partitioned:messages@8"]);
        assert_eq!(rows[0].figures.named("throughput_mb_s"), Some(100.0));
        assert_eq!(rows[1].figures.named("ratio_to_single"), Some(2.0));
    }

    #[test]
    fn what_cannot_be_recorded_is_refused() {
        let words = "sweep3d --grid 2x2 --mode rma -m 1K --compute busy";
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        let error = Simulated::parse(&words).unwrap().patterns().unwrap_err();
        assert!(error.contains("--mode rma"), "{error}");
    }
}
