//! Which CPU each rank may run on.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use rustix::thread::{CpuSet, sched_getaffinity};
use tagwire_base::topology::{CoreId, CpuList, core_of, ranges};

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
        self.place_among(ranks, &allowed, |cpu| {
            core_of(u32::try_from(cpu).unwrap_or(u32::MAX))
        })
    }

    fn place_among(
        &self,
        ranks: u32,
        allowed: &BTreeSet<usize>,
        core_of: impl Fn(usize) -> CoreId,
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

fn usage(message: String) -> Error {
    Error::Usage(message)
}

fn parse_list(text: &str) -> Result<Vec<usize>> {
    let bad = || {
        usage(format!(
            "binding '{text}' is none of: none, core, or a list of CPUs such as 0,1,4-7"
        ))
    };
    let list = CpuList::in_order(text).map_err(|_| bad())?;
    let list: Vec<usize> = list.into_iter().map(|cpu| cpu as usize).collect();
    if list.is_empty() || list.iter().any(|&cpu| cpu >= CpuSet::MAX_CPU) {
        return Err(bad());
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
            let number = |&cpu: &usize| u32::try_from(cpu).ok();
            let have = ranges(allowed.iter().filter_map(number));
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
fn cores_first(allowed: &BTreeSet<usize>, core_of: impl Fn(usize) -> CoreId) -> Vec<usize> {
    let mut taken: BTreeMap<CoreId, usize> = BTreeMap::new();
    let mut order: Vec<(usize, CoreId, usize)> = allowed
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

#[cfg(test)]
mod tests {
    use super::*;

    fn place(binding: &str, ranks: u32, allowed: &[usize]) -> Result<Placement> {
        let allowed = allowed.iter().copied().collect();
        // Two hardware threads per core: 0 and 4, 1 and 5, ...
        binding
            .parse::<Binding>()?
            .place_among(ranks, &allowed, |cpu| CoreId(0, cpu as i64 % 4))
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
