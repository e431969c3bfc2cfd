//! Which ranks of a job have put the same.

use std::time::Duration;

use super::Bootstrap;
use crate::error::{Error, Result};
use crate::ids::Rank;

/// Ranks that each find out for themselves. In larger jobs rank 0 does, and reports: each by itself would be a request for
/// every pair of ranks.
const EACH: u32 = 16;

/// What rank 0 reports is under the key of the values with this at its end.
const REPORT: &str = "s";

/// Returns the group of each rank, as a number: ranks that have put the same value under `key` are in one. Every rank calls
/// it, after a fence that follows the puts.
///
/// # Errors
/// As [`Bootstrap::get`] and [`Bootstrap::fence`].
pub fn groups(job: &mut dyn Bootstrap, key: &str, timeout: Duration) -> Result<Vec<u32>> {
    if job.size() <= EACH {
        return collect(job, key, timeout);
    }
    let report = format!("{key}{REPORT}");
    let first = Rank::new(0);
    if job.rank() == first {
        let groups = collect(job, key, timeout)?;
        job.put(&report, pack(&groups).as_bytes())?;
        job.fence(timeout)?;
        return Ok(groups);
    }
    job.fence(timeout)?;
    let text = job.get(first, &report, timeout)?;
    let text = String::from_utf8_lossy(&text);
    unpack(&text, job.size()).ok_or_else(|| {
        let size = job.size();
        Error::Bootstrap(format!(
            "rank 0 put '{text}' under '{report}' where the groups of {size} ranks should be"
        ))
    })
}

/// Returns the group of each rank.
fn collect(job: &mut dyn Bootstrap, key: &str, timeout: Duration) -> Result<Vec<u32>> {
    let mut known: Vec<Vec<u8>> = Vec::new();
    let ranks = (0..job.size()).map(Rank::new);
    ranks
        .map(|rank| {
            let value = job.get(rank, key, timeout)?;
            let number = known.iter().position(|other| *other == value);
            let number = number.unwrap_or_else(|| {
                known.push(value);
                known.len() - 1
            });
            Ok(number as u32)
        })
        .collect()
}

/// Returns groups as text: `2x3,1x2` is five ranks, three in group 2 and two in group 1.
fn pack(groups: &[u32]) -> String {
    let runs = groups.chunk_by(|a, b| a == b);
    let runs: Vec<String> = runs
        .map(|run| format!("{}x{}", run[0], run.len()))
        .collect();
    runs.join(",")
}

/// Returns the groups of `size` ranks that [`pack`] wrote.
fn unpack(text: &str, size: u32) -> Option<Vec<u32>> {
    let mut groups = Vec::new();
    for run in text.split(',') {
        let (group, count) = run.split_once('x')?;
        let (group, count): (u32, usize) = (group.parse().ok()?, count.parse().ok()?);
        if count > size as usize - groups.len() {
            return None;
        }
        groups.resize(groups.len() + count, group);
    }
    (groups.len() == size as usize).then_some(groups)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap::LocalJob;

    #[test]
    fn groups_come_back_and_nonsense_does_not() {
        for groups in [&[0; 300][..], &[0, 1, 0, 1], &[2, 2, 1]] {
            let packed = pack(groups);
            assert_eq!(unpack(&packed, groups.len() as u32).unwrap(), groups);
        }
        for (text, size) in [
            ("", 1),
            ("0x2", 1),
            ("0x2", 3),
            ("0", 1),
            ("ax1", 1),
            ("0x99999999999", 4),
        ] {
            assert_eq!(unpack(text, size), None, "{text}");
        }
    }

    #[test]
    fn ranks_with_one_value_are_one_group_however_many() {
        for size in [1, EACH, EACH + 1] {
            let job = LocalJob::new(size).unwrap();
            let threads: Vec<_> = (0..size)
                .map(|rank| {
                    let mut member = job.member(Rank::new(rank));
                    std::thread::spawn(move || {
                        let patience = Duration::from_secs(10);
                        member.put("parity", &[rank as u8 % 2]).unwrap();
                        member.fence(patience).unwrap();
                        groups(&mut member, "parity", patience).unwrap()
                    })
                })
                .collect();
            let expected: Vec<_> = (0..size).map(|rank| rank % 2).collect();
            for thread in threads {
                assert_eq!(thread.join().unwrap(), expected);
            }
        }
    }
}
