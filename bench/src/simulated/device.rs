//! The cases of `tagwire bench allreduce` whose vectors come from a device, as a simulation runs them.

use std::time::Duration;

use crate::args::BenchArgs;
use crate::args::device::{Algorithm, Callback, CopyStream, EnginePlan, Series};
use crate::device::measure::{Done, rows_of};
use crate::device::parts::parts;
use crate::record::Row;

use super::row_of;

/// Iterations, where the command does not say.
const ITERATIONS: u64 = 2;

/// How vectors are reduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reduced {
    /// By the library's own allreduce.
    Native,
    /// By lanes.
    Multilane,
    /// By partitions, each of which the thread that waits starts.
    Deferred,
    /// By partitions, each of which the thread of the device starts.
    Direct,
}

/// A size and a series of reductions.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulatedReduction {
    /// Bytes of a vector.
    pub size: usize,
    /// Ranks.
    pub ranks: u32,
    /// Ranks of a group.
    pub group: u32,
    /// How vectors are reduced.
    pub way: Reduced,
    /// When the device has copied each part, from the start on, and its bytes.
    pub copied: Vec<(Duration, usize)>,
    /// How often.
    pub iterations: u64,
    engine: EnginePlan,
    series: Series,
}

impl SimulatedReduction {
    /// Returns the cases of a command: those of a size behind each other; none where it is of another test.
    ///
    /// # Errors
    /// Where the command names no algorithm, or a group does not divide the ranks.
    pub(super) fn all(args: &BenchArgs) -> Result<Vec<Self>, String> {
        if args.test.name != "allreduce" {
            return Ok(Vec::new());
        }
        let missing = "an algorithm is missing: --algorithm native,multilane,pr";
        let plan = args.device_plan().ok_or(missing)?;
        let ranks = args.rank_count();
        let group = plan.group_among(ranks).map_err(|error| error.to_string())?;
        let mut all = Vec::new();
        for &size in args.size_list().as_slice() {
            for series in plan.series() {
                let (way, count) = match series {
                    Series::Reduced(Algorithm::Native, _) => (Reduced::Native, 1),
                    Series::Reduced(Algorithm::Multilane, _) => (Reduced::Multilane, 1),
                    Series::Reduced(_, Some(Callback::Direct)) => (Reduced::Direct, group),
                    Series::Reduced(..) => (Reduced::Deferred, group),
                    Series::Copied(_) => continue,
                };
                let cut = parts(size as usize, count as usize);
                let lengths: Vec<usize> = cut.iter().map(std::ops::Range::len).collect();
                all.push(Self {
                    size: size as usize,
                    ranks,
                    group,
                    way,
                    copied: copied(&plan.engine, size as usize, &lengths),
                    iterations: args.iterations.unwrap_or(ITERATIONS),
                    engine: plan.engine,
                    series,
                });
            }
        }
        Ok(all)
    }

    /// Returns the rows of all series of a size, each with what its iterations took the slowest rank, in nanoseconds.
    #[must_use]
    pub fn rows(transport: &str, pml: &str, timed: &[(Self, Vec<u64>)]) -> Vec<Row> {
        let Some((first, _)) = timed.first() else {
            return Vec::new();
        };
        let done: Vec<Done> = timed
            .iter()
            .map(|(of, times)| Done {
                series: of.series,
                times: times.iter().map(|time| *time as f64).collect(),
                copies: of
                    .copied
                    .iter()
                    .map(|(_, len)| copy(&of.engine, *len))
                    .sum(),
            })
            .collect();
        let row = || row_of(first.size, transport, pml, first.ranks);
        let mut rows = rows_of(&first.engine, first.group, &done, row);
        for row in &mut rows {
            row.sampling.set(first.iterations, 1);
        }
        rows
    }
}

/// Nanoseconds to copy so many bytes, with the call that begins it.
fn copy(engine: &EnginePlan, len: usize) -> f64 {
    engine.latency.as_nanos() as f64 + len as f64 * 1e9 / engine.rate.0
}

/// When an engine has copied each part, by its model: it takes the input, computes part after part, and copies each back while it computes
/// the next, or before.
fn copied(engine: &EnginePlan, input: usize, parts: &[usize]) -> Vec<(Duration, usize)> {
    let compute = |len: usize| match engine.flops_per_element {
        0 => 0.0,
        flops => {
            let each = f64::from(flops) * 1e9 / engine.rate.0;
            engine.latency.as_nanos() as f64 + len as f64 * each
        }
    };
    let (mut computed, mut end) = (copy(engine, input), 0.0_f64);
    let mut all = Vec::with_capacity(parts.len());
    for &len in parts {
        computed += compute(len);
        end = computed.max(end) + copy(engine, len);
        if engine.copy_stream == CopyStream::Same {
            computed = end;
        }
        all.push((Duration::from_nanos(end as u64), len));
    }
    all
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use super::super::Simulated;
    use super::*;

    #[test]
    fn parts_are_copied_while_the_next_is_computed() {
        let command = "allreduce -n 8 --group-size 4 --algorithm native,multilane,pr --callback direct,deferred -m 3200 \
                       --engine-rate 1GB/s --engine-latency 1us --flops-per-element 2 -i 2";
        let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
        let all = Simulated::parse(&words).unwrap().reductions().unwrap();
        let ways: Vec<_> = all.iter().map(|one| one.way).collect();
        assert_eq!(
            ways,
            [
                Reduced::Native,
                Reduced::Multilane,
                Reduced::Direct,
                Reduced::Deferred
            ]
        );
        let micros = |one: &SimulatedReduction| {
            let times = one.copied.iter().map(|(time, _)| time.as_nanos());
            times.collect::<Vec<_>>()
        };
        // In: 1 + 3.2 us. Computed: 1 + 6.4 us. Back: 1 + 3.2 us.
        assert_eq!(micros(&all[0]), [15_800]);
        // In parts of 800 bytes each takes 2.6 us to compute and 1.8 us back.
        assert_eq!(micros(&all[2]), [8600, 11_200, 13_800, 16_400]);
        let timed: Vec<_> = all
            .into_iter()
            .zip([
                vec![4000, 4000],
                vec![2000, 2000],
                vec![1000, 1000],
                vec![1500, 1500],
            ])
            .collect();
        let rows = SimulatedReduction::rows("sim:power9", "ob1", &timed);
        assert_eq!(
            rows[2].series.pattern.series.as_deref(),
            Some("pr:direct/2")
        );
        assert_eq!(
            rows[2].figures.named("speedup_vs_multilane_pct"),
            Some(50.0)
        );
        let gain = rows[3].figures.named("speedup_vs_native").unwrap();
        assert!((gain - 4000.0 / 1500.0).abs() < 1e-5, "{gain}");
    }
}
