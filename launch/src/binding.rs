//! Which CPU each rank may run on.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::str::FromStr;

use rustix::thread::{CpuSet, sched_getaffinity};

use crate::error::{Error, Result};

/// How ranks are bound to CPUs.
///
/// As text: `none`, `core`, or a list such as `0,1,4-7`.
///
/// ```
/// use tagwire_launch::Binding;
/// assert_eq!("0,2-4".parse::<Binding>()?, Binding::List(vec![0, 2, 3, 4]));
/// # Ok::<(), tagwire_launch::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Binding {
    /// The scheduler chooses, among the CPUs that the launcher may use.
    #[default]
    None,
    /// Rank i runs on the i-th core that the launcher may use, round robin. The hardware
    /// threads of a core are taken only after every core has a rank.
    Core,
    /// Rank i runs on the i-th CPU of the list, round robin.
    List(Vec<usize>),
}

impl FromStr for Binding {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "none" => Ok(Self::None),
            "core" => Ok(Self::Core),
            list => parse_list(list).map(Self::List),
        }
    }
}

/// The CPU of each rank, and how many different ones there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Placement {
    pub cpus: Vec<Option<usize>>,
    pub distinct: usize,
}

impl Binding {
    /// The CPU of each of `ranks` ranks on this machine.
    pub(crate) fn place(&self, ranks: u32) -> Result<Placement> {
        let allowed = allowed_cpus()?;
        self.place_among(ranks, &allowed, core_of)
    }

    fn place_among(
        &self,
        ranks: u32,
        allowed: &BTreeSet<usize>,
        core_of: impl Fn(usize) -> Core,
    ) -> Result<Placement> {
        let order = match self {
            Self::None => {
                let cpus = vec![None; ranks as usize];
                return Ok(Placement {
                    cpus,
                    distinct: allowed.len(),
                });
            }
            Self::Core => cores_first(allowed, core_of),
            Self::List(list) => {
                check_list(list, allowed)?;
                list.clone()
            }
        };
        let cpus = order
            .iter()
            .copied()
            .map(Some)
            .cycle()
            .take(ranks as usize)
            .collect();
        let distinct = order.iter().collect::<BTreeSet<_>>().len();
        Ok(Placement { cpus, distinct })
    }
}

/// Names a physical core: package and core number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Core(usize, usize);

fn usage(message: String) -> Error {
    Error::Usage(message)
}

fn parse_list(text: &str) -> Result<Vec<usize>> {
    let bad = |part: &str| {
        usage(format!(
            "binding '{text}': '{part}' is no CPU; expected none, core, or a list such as 0,1,4-7"
        ))
    };
    let number = |part: &str| {
        part.parse::<usize>()
            .ok()
            .filter(|&cpu| cpu < CpuSet::MAX_CPU)
            .ok_or_else(|| bad(part))
    };
    let mut list = Vec::new();
    for part in text.split(',') {
        match part.split_once('-') {
            None => list.push(number(part)?),
            Some((first, last)) => {
                let (first, last) = (number(first)?, number(last)?);
                if first > last {
                    return Err(bad(part));
                }
                list.extend(first..=last);
            }
        }
    }
    Ok(list)
}

fn check_list(list: &[usize], allowed: &BTreeSet<usize>) -> Result<()> {
    if list.is_empty() {
        return Err(usage("the list of CPUs to bind to is empty".to_owned()));
    }
    match list.iter().find(|cpu| !allowed.contains(cpu)) {
        None => Ok(()),
        Some(cpu) => {
            let have = ranges(allowed.iter().copied());
            Err(usage(format!(
                "cannot bind to CPU {cpu}: this process may use {have}"
            )))
        }
    }
}

/// The CPUs that this process may use.
fn allowed_cpus() -> Result<BTreeSet<usize>> {
    let set = sched_getaffinity(None)
        .map_err(|error| Error::system("ask which CPUs may be used", error))?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|&cpu| set.is_set(cpu))
        .collect())
}

/// One CPU of each core, then the second ones, and so on.
fn cores_first(allowed: &BTreeSet<usize>, core_of: impl Fn(usize) -> Core) -> Vec<usize> {
    let mut taken: BTreeMap<Core, usize> = BTreeMap::new();
    let mut order: Vec<(usize, Core, usize)> = allowed
        .iter()
        .map(|&cpu| {
            let core = core_of(cpu);
            let thread = taken.entry(core).or_default();
            *thread += 1;
            (*thread, core, cpu)
        })
        .collect();
    order.sort_unstable();
    order.into_iter().map(|(_, _, cpu)| cpu).collect()
}

/// The core that `cpu` belongs to; where the system does not say, each CPU is its own.
fn core_of(cpu: usize) -> Core {
    let read = |file: &str| {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/{file}");
        fs::read_to_string(path).ok()?.trim().parse::<usize>().ok()
    };
    read("core_id").map_or(Core(usize::MAX, cpu), |core| {
        Core(read("physical_package_id").unwrap_or(0), core)
    })
}

/// Numbers in rising order as text: `0-3,7`.
pub(crate) fn ranges(numbers: impl IntoIterator<Item = usize>) -> String {
    let mut spans: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match spans.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => spans.push((number, number)),
        }
    }
    let text = |&(first, last): &(usize, usize)| match last {
        last if last == first => first.to_string(),
        last => format!("{first}-{last}"),
    };
    spans.iter().map(text).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(binding: &str, ranks: u32, allowed: &[usize]) -> Result<Placement> {
        let allowed = allowed.iter().copied().collect();
        // Two hardware threads per core: 0 and 4, 1 and 5, ...
        binding
            .parse::<Binding>()?
            .place_among(ranks, &allowed, |cpu| Core(0, cpu % 4))
    }

    #[test]
    fn lists_go_round() {
        let placement = place("1,3-4", 5, &[0, 1, 2, 3, 4]).unwrap();
        assert_eq!(
            placement.cpus,
            [Some(1), Some(3), Some(4), Some(1), Some(3)]
        );
        assert_eq!(placement.distinct, 3);
        assert_eq!(place("2,2", 2, &[2]).unwrap().distinct, 1);
    }

    #[test]
    fn cores_come_before_their_second_threads() {
        let placement = place("core", 5, &[0, 1, 4, 5, 6]).unwrap();
        assert_eq!(
            placement.cpus,
            [Some(0), Some(1), Some(6), Some(4), Some(5)]
        );
        assert_eq!(place("none", 2, &[0]).unwrap().cpus, [None, None]);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for text in [
            "",
            "cores",
            "1,",
            "-1",
            "3-1",
            "1-",
            "0x1",
            "99999999999999999999",
            "0-4000",
        ] {
            let error = text.parse::<Binding>().unwrap_err();
            assert_eq!(error.exit_status(), 1);
            assert!(
                error.to_string().contains("none, core, or a list"),
                "{error}"
            );
        }
        let error = place("0,9", 1, &[0, 1, 2, 5]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot bind to CPU 9: this process may use 0-2,5"
        );
        let empty = Binding::List(Vec::new()).place(1).unwrap_err();
        assert_eq!(empty.exit_status(), 1);
    }
}
