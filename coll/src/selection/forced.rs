//! Whether a group of the job can take an algorithm that the setting `coll-algorithm` names. One that none can take is refused when a
//! rank opens.

use tagwire_base::config::Config;
use tagwire_transport::shm;

use super::Selection;
use crate::algorithms::{Algorithm, Collective, Needs};

/// The setting that names them.
pub(super) const SETTING: &str = "coll-algorithm";

impl Selection {
    /// Returns whether ranks of a host share memory in a job that `config` opens; in one that `is_local`, all are on one host.
    #[must_use]
    pub fn shares_memory_by(config: &Config, is_local: bool) -> bool {
        // Over several hosts a job that matches in the transport takes one network for all.
        let matches = config.choice("pml") == "cm";
        let first = config.stack("transport").first();
        first.is_some_and(|part| match part.name {
            "auto" => is_local || !matches,
            name => name == "shm",
        })
    }

    /// Returns why no group can take an algorithm in a job that `config` opens, whose hosts this choice knows; nothing where one can.
    #[must_use]
    pub fn why_not(&self, algorithm: &Algorithm, config: &Config) -> Option<String> {
        let has_neighbours = || {
            let mut hosts = self.hosts()?.to_vec();
            hosts.sort_unstable();
            Some(hosts.windows(2).any(|pair| pair[0] == pair[1]))
        };
        match algorithm.needs {
            Needs::Nothing => None,
            Needs::Levels => match has_neighbours() {
                None => Some("it needs several hosts, and all ranks are on one".to_owned()),
                Some(false) => Some("it needs a host with several ranks".to_owned()),
                Some(true) => None,
            },
            Needs::Board if !self.shares_memory => Some(not_shared(config)),
            Needs::Board if has_neighbours() == Some(false) => Some(
                "it needs memory that ranks share, and each is on a host of its own".to_owned(),
            ),
            Needs::Board => boards_are_off(config).or_else(|| {
                let reads = algorithm.reads_memory.then(|| reads_memory(config));
                let forbidden = reads?.err()?;
                Some(format!("members read each other's memory, and {forbidden}"))
            }),
        }
    }

    /// Refuses a setting that names what no group of the job can take.
    ///
    /// # Errors
    /// With the setting, the algorithm and the reason.
    pub(crate) fn check_forced(&self, config: &Config, ranks: u32) -> tagwire_base::Result<()> {
        // A rank that is alone takes no algorithm.
        let forced = self.forced.iter().filter(|_| ranks > 1);
        let mut refused = forced.filter_map(|it| Some((it, self.why_not(it, config)?)));
        match refused.next() {
            Some((algorithm, reason)) => Err(tagwire_base::Error::BadSetting {
                name: SETTING.to_owned(),
                value: algorithm.to_string(),
                expected: reason,
            }),
            None => Ok(()),
        }
    }

    /// Returns the algorithms that the setting names, the first of each operation.
    pub fn forced(&self) -> impl Iterator<Item = &'static Algorithm> {
        let first = |what: &Collective| self.forced.iter().find(|it| it.collective == *what);
        Collective::ALL.iter().filter_map(first).copied()
    }
}

/// Returns why ranks share no memory.
fn not_shared(config: &Config) -> String {
    let over = match config.stack("transport").first() {
        Some(part) if part.name != "auto" => format!("over {part}"),
        _ => "on several hosts with pml=cm".to_owned(),
    };
    format!("it needs memory that ranks share, and there is none {over}")
}

/// Returns which setting leaves groups without boards.
fn boards_are_off(config: &Config) -> Option<String> {
    let off = match config.choice("pml") {
        _ if config.flag("coll-check") => "with coll-check, which compares calls by messages",
        _ if !config.text("fault").is_empty() => "with faults around messages (fault)",
        "dr" => "with pml=dr, by which all goes in messages",
        _ => return None,
    };
    Some(format!("there are no boards {off}"))
}

/// Returns whether ranks may read each other's memory here, else the reason.
fn reads_memory(config: &Config) -> Result<(), String> {
    match config.choice("shm-cma") {
        "off" => Err("shm-cma is off".to_owned()),
        _ => shm::attaches().map_err(|reason| format!("this system forbids that ({reason})")),
    }
}

#[cfg(test)]
mod tests {
    use tagwire_base::Registry;

    use super::*;

    fn config(settings: &[(&str, &str)]) -> Config {
        let mut config = Config::defaults(&Registry::new(&crate::settings()));
        for (name, value) in settings {
            config.set(name, value).unwrap();
        }
        config
    }

    fn refused(selection: &Selection, settings: &[(&str, &str)], ranks: u32) -> Option<String> {
        let checked = selection.check_forced(&config(settings), ranks);
        checked.err().map(|error| error.to_string())
    }

    #[test]
    fn what_no_group_of_the_job_can_take_is_refused() {
        let board = || Selection::parse("allgather:ring,allreduce:board").unwrap();
        let copy = || Selection::parse("allreduce:single-copy").unwrap();
        let levels = || Selection::parse("allreduce:two-level").unwrap();
        for (selection, settings, parts) in [
            (
                board(),
                &[("transport", "ofi:tcp")][..],
                &["allreduce:board", "share", "ofi:tcp"][..],
            ),
            (
                board().with_hosts(&[0, 1, 2], true),
                &[],
                &["host of its own"],
            ),
            (
                board().on_one_host(true),
                &[("coll-check", "on")],
                &["coll-check"],
            ),
            (board().on_one_host(true), &[("pml", "dr")], &["pml=dr"]),
            (
                board().on_one_host(true),
                &[("fault", "seed=1,loss=0.1")],
                &["fault"],
            ),
            (
                copy().on_one_host(true),
                &[("shm-cma", "off")],
                &["allreduce:single-copy", "shm-cma is off"],
            ),
            (
                levels().on_one_host(true),
                &[],
                &["allreduce:two-level", "several hosts"],
            ),
            (
                levels().with_hosts(&[0, 1, 2], true),
                &[],
                &["a host with several ranks"],
            ),
        ] {
            let error = refused(&selection, settings, 3).unwrap();
            let parts = [parts, &["coll-algorithm"]].concat();
            assert!(parts.iter().all(|part| error.contains(part)), "{error}");
            assert_eq!(
                refused(&selection, settings, 1),
                None,
                "a rank that is alone"
            );
        }
        for selection in [
            board().on_one_host(true),
            board().with_hosts(&[0, 1, 0], true),
            levels().with_hosts(&[0, 1, 0], false),
            Selection::default(),
        ] {
            assert_eq!(refused(&selection, &[], 3), None, "{selection}");
        }
    }
}
