//! What the processor counts of matches, where the kernel has its counters: beside the model, whose misses are the same everywhere.

use std::hint::black_box;
use std::io;

use perf_event::events::{Cache as CacheEvent, CacheOp, CacheResult, Event, Hardware, WhichCache};
use perf_event::{Builder, Counter, Group};
use tagwire_matching::{Capacity, EngineName};

use super::axes::Cache;
use super::scenario::Scenario;
use super::time::{COLD, HOT, Sweep};
use crate::error::{Error, Result};

/// Events of one match, outside of the kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Events {
    pub instructions: f64,
    /// Reads that missed the first level.
    pub first: f64,
    /// Accesses that missed the caches.
    pub all: f64,
}

/// Refuses where the kernel has no counters of the processor.
pub(super) fn require() -> Result<()> {
    Meter::of(&EVENTS).map(|_| ()).map_err(Error::Counters)
}

/// Returns the events of a match: in a row, or each after so many bytes were written.
pub(super) fn per_match(
    engine: &EngineName,
    scenario: &Scenario,
    cache: Cache,
    blocks: u32,
    sweep: usize,
) -> Result<Events> {
    let mut meter = Meter::of(&EVENTS).map_err(Error::Counters)?;
    let count = match cache {
        Cache::Hot => hot(&mut meter, engine, scenario, blocks),
        Cache::Cold => cold(&mut meter, engine, scenario, blocks, sweep),
    };
    let counts = count.and_then(|count| Ok((count, meter.read()?)));
    let (count, counts) = counts.map_err(Error::Counters)?;
    let of = |place: usize| {
        let events = counts.get(place).copied().unwrap_or_default();
        events as f64 / f64::from(count.max(1))
    };
    Ok(Events {
        instructions: of(0),
        first: of(1),
        all: of(2),
    })
}

/// Does matches in a row, in blocks that each have an engine of their own. Returns how many.
fn hot(
    meter: &mut Meter,
    engine: &EngineName,
    scenario: &Scenario,
    blocks: u32,
) -> io::Result<u32> {
    let matches = scenario.matches(HOT);
    for _ in 0..blocks {
        let mut engine = engine.open(Capacity::default());
        scenario.prepare(&mut engine, matches);
        meter.during(|| {
            for index in 0..matches {
                black_box(scenario.operate(black_box(&mut engine), index));
            }
        })?;
    }
    Ok(blocks * matches)
}

/// Does single matches, each after a sweep of the caches. Returns how many.
fn cold(
    meter: &mut Meter,
    engine: &EngineName,
    scenario: &Scenario,
    blocks: u32,
    bytes: usize,
) -> io::Result<u32> {
    let matches = blocks.clamp(1, COLD);
    let mut sweep = Sweep::of(bytes);
    let mut engine = engine.open(Capacity::default());
    scenario.prepare(&mut engine, matches);
    for index in 0..matches {
        sweep.write();
        meter.during(|| {
            black_box(scenario.operate(black_box(&mut engine), index));
        })?;
    }
    Ok(matches)
}

/// What is counted, in the order of [`Events`].
const EVENTS: [Event; 3] = [
    Event::Hardware(Hardware::INSTRUCTIONS),
    Event::Cache(CacheEvent {
        which: WhichCache::L1D,
        operation: CacheOp::READ,
        result: CacheResult::MISS,
    }),
    Event::Hardware(Hardware::CACHE_MISSES),
];

/// Counters of this thread that run together.
struct Meter {
    group: Group,
    counters: Vec<Counter>,
}

impl Meter {
    fn of(events: &[Event]) -> io::Result<Self> {
        let mut group = Group::new()?;
        let mut counters = Vec::with_capacity(events.len());
        for event in events {
            let builder = Builder::new().group(&mut group).kind(event.clone());
            counters.push(builder.build()?);
        }
        Ok(Self { group, counters })
    }

    /// Counts while `call` runs, on top of what was counted before.
    fn during(&mut self, call: impl FnOnce()) -> io::Result<()> {
        self.group.enable()?;
        call();
        self.group.disable()
    }

    /// Returns what each has counted. Counters that others use as well have run for a part of the time, and tell what they would have
    /// counted in all of it.
    fn read(&mut self) -> io::Result<Vec<u64>> {
        let counts = self.group.read()?;
        let (enabled, running) = (counts.time_enabled(), counts.time_running());
        if running == 0 && enabled != 0 {
            return Err(io::Error::other("others use all of them"));
        }
        let whole = |count: u64| {
            let scaled = u128::from(count) * u128::from(enabled) / u128::from(running.max(1));
            u64::try_from(scaled).unwrap_or(u64::MAX)
        };
        let counters = self.counters.iter();
        Ok(counters.map(|counter| whole(counts[counter])).collect())
    }
}

#[cfg(test)]
mod tests {
    use perf_event::events::Software;

    use super::super::axes::Queue;
    use super::*;

    /// Counters of the kernel are there where the processor's are not.
    #[test]
    fn a_meter_counts_what_happens_while_it_runs() {
        // More than the C library keeps, and however large a page is: it takes at least one fault for each 2 MiB.
        const BYTES: usize = 40 << 20;
        const FAULTS: u64 = 16;
        let events = [Event::Software(Software::PAGE_FAULTS)];
        let mut meter = match Meter::of(&events) {
            Ok(meter) => meter,
            Err(error) => {
                eprintln!("not checked: perf_event_open(2) is forbidden here: {error}");
                return;
            }
        };
        let touch = || {
            // Memory that nobody has touched: as much is mapped anew.
            let mut memory = vec![0_u8; BYTES];
            for byte in memory.iter_mut().step_by(4096) {
                *byte = 1;
            }
            black_box(&mut memory);
        };
        touch();
        let before = meter.read().unwrap();
        assert_eq!(before, [0]);
        meter.during(touch).unwrap();
        let once = meter.read().unwrap()[0];
        assert!(once >= FAULTS, "{once}");
        touch();
        assert_eq!(meter.read().unwrap(), [once]);
        meter.during(touch).unwrap();
        assert!(meter.read().unwrap()[0] >= once + FAULTS);
    }

    #[test]
    fn matches_are_counted_or_the_reason_is_told() {
        let engine: EngineName = "list".parse().unwrap();
        let scenario = Scenario::behind(Queue::Posted, 16);
        for cache in [Cache::Hot, Cache::Cold] {
            match per_match(&engine, &scenario, cache, 3, 1 << 16) {
                // A match looks at 17 entries.
                Ok(events) => assert!(events.instructions > 17.0, "{events:?}"),
                Err(error) => {
                    assert!(require().is_err());
                    let told = error.to_string();
                    assert!(told.contains("no counters of the processor"), "{told}");
                }
            }
        }
    }
}
