//! Who aggregates which part of a file, in which rounds.

use std::ops::Range;

use crate::hints::Hints;
use crate::plan::{Summary, range};

/// The parts of the file that aggregators have, and their rounds.
///
/// ```text
///     |<------ first ------>|<------ second ----->|<-- third -->|      domains, cut at multiples of the unit
///     | w | w | w | w | w | |                                          a window of each in a round
/// ```
#[derive(Debug)]
pub(super) struct Domains {
    /// The members that aggregate, and their parts.
    parts: Vec<(usize, Range<u64>)>,
    window: u64,
    rounds: u64,
}

impl Domains {
    /// Returns the parts for members with these summaries, which are on these hosts.
    pub(super) fn new(members: &[Summary], hosts: &[u64], hints: &Hints) -> Self {
        let (first, end) = range(members);
        let aggregators = aggregators(hosts, hints);
        let unit = hints.unit.unwrap_or(Hints::UNIT).max(1);
        let low = first / unit * unit;
        let units = (end - low).div_ceil(unit);
        let each = units.div_ceil(aggregators.len() as u64) * unit;
        let cut = |number: u64| {
            low.saturating_add(each.saturating_mul(number))
                .clamp(first, end)
        };
        let parts = (0_u64..).zip(aggregators);
        let parts = parts.map(|(number, member)| (member, cut(number)..cut(number + 1)));
        let parts: Vec<_> = parts.filter(|(_, part)| !part.is_empty()).collect();
        // Where members access the same bytes, an aggregator holds them several times.
        let bytes = members.iter().map(|member| member.bytes);
        let bytes = bytes.fold(0, u64::saturating_add);
        let times = bytes.div_ceil((end - first).max(1)).max(1);
        let runs = members.iter().map(|member| member.runs);
        let runs = runs.fold(0, u64::saturating_add);
        let window = window(hints.buffer, end - first, (times, runs));
        let longest = parts.iter().map(|(_, part)| part.end - part.start).max();
        Self {
            parts,
            window,
            rounds: longest.unwrap_or(0).div_ceil(window),
        }
    }

    pub(super) const fn rounds(&self) -> u64 {
        self.rounds
    }

    /// Returns how many bytes a member and an aggregator send each other for a window at most: a list of extents of a byte each, with
    /// two numbers of up to ten bytes for each of them, and their data.
    pub(super) const fn longest(&self) -> usize {
        self.window.saturating_mul(21).saturating_add(64) as usize
    }

    /// Returns how many aggregators there are.
    pub(super) const fn len(&self) -> usize {
        self.parts.len()
    }

    /// Returns the aggregators with their windows in a round, in the order of the file. Windows may be empty.
    pub(super) fn windows(&self, round: u64) -> impl Iterator<Item = (usize, Range<u64>)> {
        let skipped = self.window.saturating_mul(round);
        self.parts.iter().map(move |(member, part)| {
            let start = part.start.saturating_add(skipped).min(part.end);
            let end = start.saturating_add(self.window).min(part.end);
            (*member, start..end)
        })
    }

    /// Returns the window of a member in a round; an empty one where it does not aggregate.
    pub(super) fn window_of(&self, member: usize, round: u64) -> Range<u64> {
        let mut windows = self.windows(round);
        let found = windows.find(|(other, _)| *other == member);
        found.map_or(0..0, |(_, window)| window)
    }
}

/// Bytes of an aggregator's memory for each run of bytes: as it came, as it was read, in the order of the file, and what became of it.
const EACH_RUN: u128 = 48;

/// Lists of runs that take less than such a part of the memory for data are not counted: a window stays as long as the hint says.
const SMALL: u128 = 32;

/// Returns how many bytes of the file a window has, so that its data, so many times, and the list of its runs take `buffer` bytes of memory,
/// where so many runs are in a range of the file.
fn window(buffer: u64, range: u64, (times, runs): (u64, u64)) -> u64 {
    let (buffer, range) = (u128::from(buffer), u128::from(range.max(1)));
    let data = u128::from(times) * range;
    let lists = EACH_RUN * u128::from(runs);
    let lists = if lists < data / SMALL { 0 } else { lists };
    // It is no longer than the buffer.
    (buffer * range / (data + lists)).max(1) as u64
}

/// Returns which members aggregate: the first ones of each host.
fn aggregators(hosts: &[u64], hints: &Hints) -> Vec<usize> {
    let is_chosen = |member: &usize| {
        let before = hosts[..*member].iter();
        before.filter(|host| **host == hosts[*member]).count() < hints.per_host
    };
    let most = hints.aggregators.unwrap_or(usize::MAX);
    (0..hosts.len()).filter(is_chosen).take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(first: u64, end: u64, bytes: u64) -> Summary {
        Summary {
            bytes,
            first,
            end,
            runs: 2,
            ..Summary::default()
        }
    }

    /// Every byte is in one window of one round, and parts begin at multiples of the unit.
    #[test]
    fn windows_cover_the_range_once() {
        let hosts = [7, 7, 8, 8, 9];
        for (unit, buffer, per_host) in [(16, 10, 1), (1, 7, 2), (1000, 64, 1), (64, 1000, 9)] {
            let hints = Hints {
                unit: Some(unit),
                buffer,
                per_host,
                ..Hints::default()
            };
            let members = [
                summary(13, 600, 100),
                summary(500, 777, 100),
                summary(0, 0, 0),
            ];
            let domains = Domains::new(&members, &hosts, &hints);
            let mut times = vec![0; 800];
            for round in 0..domains.rounds() {
                for (member, window) in domains.windows(round) {
                    assert!(window.end - window.start <= buffer, "{window:?}");
                    assert_eq!(domains.window_of(member, round), window);
                    window.for_each(|byte| times[byte as usize] += 1);
                }
            }
            let is_in = |byte: usize| usize::from((13..777).contains(&byte));
            assert!((0..800).all(|byte| times[byte] == is_in(byte)), "{times:?}");
            let starts = domains.windows(0).skip(1).map(|(_, window)| window.start);
            assert!(starts.into_iter().all(|start| start % unit == 0));
        }
    }

    /// Lists of short runs take their part of the buffer; those of long ones are not counted.
    #[test]
    fn windows_leave_room_for_lists_of_runs() {
        const MIB: u64 = 1 << 20;
        assert_eq!(window(16 * MIB, MIB, (1, MIB / 4096)), 16 * MIB);
        assert_eq!(window(16 * MIB, MIB, (2, MIB / 4096)), 8 * MIB);
        assert_eq!(window(56 * MIB, MIB, (1, MIB / 8)), 8 * MIB);
        assert_eq!(window(MIB, MIB, (1, u64::MAX)), 1);
        assert_eq!(window(u64::MAX, u64::MAX, (u64::MAX, u64::MAX)), 1);
        assert_eq!(window(0, 0, (1, 0)), 1);
    }

    #[test]
    fn the_first_members_of_hosts_aggregate() {
        let hosts = [1, 2, 1, 2, 3, 1];
        let with = |per_host, aggregators| Hints {
            per_host,
            aggregators,
            ..Hints::default()
        };
        assert_eq!(aggregators(&hosts, &with(1, None)), [0, 1, 4]);
        assert_eq!(aggregators(&hosts, &with(2, None)), [0, 1, 2, 3, 4]);
        assert_eq!(aggregators(&hosts, &with(1, Some(2))), [0, 1]);
    }
}
