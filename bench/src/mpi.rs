//! Foreign libraries by the MPI standard ABI (MPI-5.0, chapter 20): found, loaded, and called.
//!
//! Handle constants, the meaning of null statuses and the calling convention are the same in
//! every library that has this ABI, so that one binary measures all of them. Open MPI 5 does not have it: its handles
//! are addresses, and all else that is used here is alike.

mod abi;
mod collective;
mod find;
mod group;
mod handles;
mod partitioned;
mod remote;
#[cfg(test)]
mod tests;
mod window;

use std::path::{Path, PathBuf};

use crate::error::Result;

pub(crate) use abi::{Mpi, MpiPort};
pub(crate) use find::{find_launcher, find_library};

/// An MPI library that can be measured here, and the launcher that starts its ranks.
#[derive(Debug, Clone)]
pub struct MpiLibrary {
    /// The first line of its description of itself.
    pub version: String,
    /// Where it lies.
    pub file: PathBuf,
    /// How it was found.
    pub why: String,
    /// Its launcher.
    pub launcher: PathBuf,
}

impl MpiLibrary {
    /// The library at `path`: the file, its folder or its prefix; without a path, the first that this machine has.
    ///
    /// # Errors
    /// When there is none, it cannot be loaded, it lacks a function, or it has no launcher.
    pub fn find(path: Option<&Path>) -> Result<Self> {
        let found = find_library(path)?;
        let library = Mpi::load(&found.file)?;
        Ok(Self {
            version: library.version().to_owned(),
            launcher: find_launcher(&found.file, None)?,
            file: found.file,
            why: found.why,
        })
    }
}

/// Variables by which the launchers of MPI libraries tell a process its number on its machine.
const LOCAL_RANKS: [&str; 5] = [
    "MPI_LOCALRANKID",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "PMIX_LOCAL_RANK",
    "PMI_LOCAL_RANK",
    "PMI_RANK",
];

/// Whether an MPI library's launcher has started this process.
pub(crate) fn was_launched() -> bool {
    ["PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK"]
        .iter()
        .any(|name| std::env::var_os(name).is_some())
}

/// This process's number among those that the launcher started here.
pub(crate) fn local_rank() -> Option<usize> {
    LOCAL_RANKS
        .iter()
        .find_map(|name| std::env::var(name).ok()?.parse().ok())
}

/// Which launcher and library family it is, as far as that matters for starting ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    /// MPICH and those derived from it, started by Hydra.
    Hydra,
    /// Open MPI, started by PRRTE.
    OpenMpi,
    /// MPI on Tagwire, started by `tagwire run`.
    Tagwire,
}

impl Family {
    /// By the library's own description.
    pub(crate) fn of(version: &str) -> Self {
        if version.contains("Open MPI") {
            Self::OpenMpi
        } else if version.starts_with("Tagwire") {
            Self::Tagwire
        } else {
            Self::Hydra
        }
    }

    /// The launcher's arguments before the program. Ranks go to `cpus` in order, where given.
    pub(crate) fn arguments(self, ranks: u32, cpus: Option<&[usize]>) -> Vec<String> {
        let mut arguments = vec!["-n".to_owned(), ranks.to_string()];
        let mut add = |words: &[&str]| arguments.extend(words.iter().map(|&word| word.to_owned()));
        match (self, cpus) {
            (Self::Hydra, Some(cpus)) => {
                // Ranks beyond the list would have all CPUs.
                let cpus = cpus.iter().cycle().take(ranks as usize);
                let list: Vec<String> = cpus.map(ToString::to_string).collect();
                add(&["-bind-to", &format!("user:{}", list.join(","))]);
            }
            (Self::Hydra, None) => add(&["-bind-to", "none"]),
            (Self::Tagwire, Some(cpus)) => {
                let list: Vec<String> = cpus.iter().map(ToString::to_string).collect();
                add(&["--bind", &list.join(",")]);
            }
            (Self::Tagwire, None) => add(&["--bind", "none"]),
            // The ranks bind themselves: its own lists are not in the order of ranks.
            (Self::OpenMpi, _) => {
                add(&["--bind-to", "none", "--map-by", ":oversubscribe"]);
                add(&["-x", crate::plan::VARIABLE]);
                if rustix::process::geteuid().is_root() {
                    add(&["--allow-run-as-root"]);
                }
            }
        }
        arguments
    }
}
