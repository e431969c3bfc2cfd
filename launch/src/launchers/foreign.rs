//! Launchers whose marks are known and whose jobs cannot be joined: a process of theirs is never a job of its own.

use std::ffi::OsStr;

use crate::environment::{Environment, LAUNCHER};
use crate::error::{Error, Result};

/// How such a launcher says of how many a process is one.
struct Foreign {
    name: &'static str,
    /// All of them are set.
    marks: &'static [&'static str],
    /// The variable with the number of processes, where there is one.
    size: Option<&'static str>,
    way_out: &'static str,
}

/// Those that say of how many come first: one of one is settled by that.
const FOREIGN: [Foreign; 3] = [
    Foreign {
        name: "mpiexec of Open MPI",
        marks: &["OMPI_COMM_WORLD_RANK"],
        size: Some("OMPI_COMM_WORLD_SIZE"),
        way_out: "start it with Open MPI 5 (prterun), with tagwire run, or with mpiexec of MPICH",
    },
    Foreign {
        name: "PALS",
        marks: &["PALS_RANKID", "PALS_APID"],
        size: Some("PALS_SIZE"),
        way_out: "start it with tagwire run",
    },
    Foreign {
        name: "torchrun",
        marks: &["TORCHELASTIC_RUN_ID", "RANK"],
        size: Some("WORLD_SIZE"),
        way_out: "set MASTER_ADDR and MASTER_PORT too",
    },
];

/// How the variables begin by which other launchers give a process its place in their job.
const FOREIGN_PREFIXES: [&str; 13] = [
    "PMI_",
    "PMIX_",
    "HYDRA_",
    "HYDI_",
    "MPI_LOCAL",
    "OMPI_COMM_WORLD_",
    "OMPI_UNIVERSE_SIZE",
    "PALS_",
    "SLURM_PROCID",
    "SLURM_LOCALID",
    "SLURM_NODEID",
    "SLURM_STEP",
    "TORCHELASTIC_",
];

/// Those of torchrun have names that others use too: they go where the first two are there.
const TORCHRUN: [&str; 6] = [
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
];

/// Whether a variable is one by which another launcher gives a process its place in its job.
pub(crate) fn is_of_foreign_launcher(name: &OsStr) -> bool {
    let bytes = name.as_encoded_bytes();
    let has_prefix = |prefix: &&str| bytes.starts_with(prefix.as_bytes());
    FOREIGN_PREFIXES.iter().any(has_prefix)
        || TORCHRUN.iter().any(|of_torchrun| name == *of_torchrun)
            && TORCHRUN[..2]
                .iter()
                .all(|name| std::env::var_os(name).is_some())
}

/// Checks that this process is not one of several that a launcher has started and that cannot find each other: each
/// would be a job of one.
///
/// # Errors
/// When it is, with the launcher's name and what to do.
pub(crate) fn one_of_several(environment: &Environment<'_>) -> Result<()> {
    for launcher in &FOREIGN {
        if !launcher.marks.iter().all(|name| environment.has(name)) {
            continue;
        }
        let size = launcher.size.and_then(|name| environment.text(name));
        let size = size.and_then(|size| size.parse::<u32>().ok());
        if size == Some(1) {
            return Ok(());
        }
        let of = size.map_or_else(String::new, |size| format!(" of {size}"));
        let Foreign { name, way_out, .. } = launcher;
        return Err(Error::Environment(format!(
            "this process is one{of} that {name} has started, and Tagwire cannot join them by what that sets ({}): {way_out}; {LAUNCHER}=single runs each as a job of its own",
            launcher.marks.join(", ")
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn check(variables: &HashMap<&str, &str>) -> Result<()> {
        one_of_several(&Environment(&|name| variables.get(name).map(Into::into)))
    }

    #[test]
    fn one_of_several_is_never_a_job_of_one() {
        for launcher in FOREIGN {
            let marks = launcher.marks.iter().map(|name| (*name, "3"));
            let mut all: HashMap<_, _> = marks.collect();
            all.extend(launcher.size.map(|size| (size, "4")));
            let error = check(&all).unwrap_err().to_string();
            for part in [launcher.name, launcher.way_out, LAUNCHER] {
                assert!(error.contains(part), "{error}");
            }
            if let Some(size) = launcher.size {
                all.insert(size, "1");
                check(&all).unwrap();
            }
        }
    }
}
