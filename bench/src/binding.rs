//! Where ranks run. The list is made here once, so that every job of a run, whoever launches it,
//! has its ranks on the same CPUs.

use std::collections::BTreeMap;

use tagwire_base::topology::{self, CoreId, core_of};
use tagwire_launch::Binding;

use crate::error::{Error, Result};
use crate::line_transfer;

/// The CPUs of a run's ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Placement {
    /// Rank i runs on the i-th, round robin; none when the scheduler chooses.
    pub cpus: Option<Vec<usize>>,
    /// In words, for the report.
    pub text: String,
    /// Cores that the ranks can have to themselves.
    pub cores: usize,
}

impl Placement {
    /// Places `ranks` ranks of `threads` threads as `asked` for, or as is best.
    pub(crate) fn new(asked: Option<&str>, ranks: u32, threads: u32) -> Result<Self> {
        let allowed: Vec<usize> = topology::binding()
            .map(|cpus| cpus.iter().map(|cpu| cpu as usize).collect())
            .unwrap_or_default();
        let cores = one_of_each_core(&allowed, core);
        // Ranks that share cores are shared out evenly, which a scheduler does not do with ranks that yield to each
        // other. The threads of a rank would have to share the one core that it is bound to.
        let binding = match asked {
            Some(text) => text.parse::<Binding>().map_err(Error::Launch)?,
            None if threads == 1 && !cores.is_empty() => Binding::Core,
            None => Binding::None,
        };
        Ok(match binding {
            Binding::None => Self {
                cpus: None,
                text: "none".to_owned(),
                cores: cores.len().max(1),
            },
            Binding::Core if cores.is_empty() => {
                return Err(Error::Usage(
                    "--bind core: this system does not say which CPUs may be used".to_owned(),
                ));
            }
            Binding::Core => Self {
                text: format!("core ({})", join(&cores, ranks)),
                cores: cores.len(),
                cpus: Some(cores),
            },
            Binding::List(list) => {
                if let Some(cpu) = list.iter().find(|cpu| !allowed.contains(cpu)) {
                    return Err(Error::Usage(format!(
                        "--bind: this process may not use CPU {cpu}"
                    )));
                }
                let distinct = one_of_each_core(&list, core).len();
                Self {
                    text: join(&list, ranks),
                    cores: distinct,
                    cpus: Some(list),
                }
            }
        })
    }

    /// Places ranks that are on these nodes: where the nodes share the cores evenly, the ranks of a node have one core; else
    /// the scheduler chooses. So processes and threads have the same cores.
    pub(crate) fn of_nodes(asked: Option<&str>, nodes: &[u32]) -> Result<Self> {
        let ranks = nodes.len() as u32;
        if asked.is_some() {
            return Self::new(asked, ranks, 1);
        }
        let free = Self::new(Some("none"), ranks, 1)?;
        let all = nodes.iter().max().map_or(0, |last| *last as usize + 1);
        let Ok(bound) = Self::new(Some("core"), ranks, 1) else {
            return Ok(free);
        };
        let cores = bound.cpus.unwrap_or_default();
        if cores.is_empty() || !all.is_multiple_of(cores.len()) {
            return Ok(free);
        }
        let nodes = nodes.iter().map(|&node| node as usize);
        let cpus: Vec<usize> = nodes.map(|node| cores[node % cores.len()]).collect();
        Ok(Self {
            text: format!("node ({})", join(&cpus, ranks)),
            cores: cores.len(),
            cpus: Some(cpus),
        })
    }

    /// Returns the CPUs of the first two ranks that have one each, where ranks are bound.
    pub(crate) fn first_two(&self) -> Option<[u32; 2]> {
        line_transfer::first_two(self.cpus.as_deref()?)
    }

    /// As the launcher takes it.
    pub(crate) fn binding(&self) -> Binding {
        self.cpus.clone().map_or(Binding::None, Binding::List)
    }
}

fn join(cpus: &[usize], ranks: u32) -> String {
    let used = cpus.iter().cycle().take(ranks.min(64) as usize);
    used.map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// Of `cpus`, the first of each core.
fn one_of_each_core(cpus: &[usize], core_of: impl Fn(usize) -> CoreId) -> Vec<usize> {
    let mut first: BTreeMap<CoreId, usize> = BTreeMap::new();
    for &cpu in cpus {
        first.entry(core_of(cpu)).or_insert(cpu);
    }
    let mut cores: Vec<usize> = first.into_values().collect();
    cores.sort_unstable();
    cores
}

fn core(cpu: usize) -> CoreId {
    core_of(u32::try_from(cpu).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_cpu_of_each_core_is_taken() {
        let two_threads = |cpu| CoreId(0, cpu as i64 % 2);
        assert_eq!(one_of_each_core(&[0, 1, 2, 3], two_threads), [0, 1]);
        assert_eq!(one_of_each_core(&[2, 3], two_threads), [2, 3]);
    }

    #[test]
    fn ranks_are_bound_and_threads_are_not() {
        let one = Placement::new(None, 1, 1).unwrap();
        let many = Placement::new(None, 60_000, 1).unwrap();
        assert_eq!(many.cpus, one.cpus, "the same cores, round robin");
        assert!(many.cpus.is_some());
        let threaded = Placement::new(None, 1, 8).unwrap();
        assert_eq!((threaded.cpus, threaded.text.as_str()), (None, "none"));
        assert!(Placement::new(Some("core"), 1, 1).unwrap().cpus.is_some());
        let error = Placement::new(Some("0-4000"), 2, 1).unwrap_err();
        assert_eq!(error.exit_status().code(), 1);
    }
}
