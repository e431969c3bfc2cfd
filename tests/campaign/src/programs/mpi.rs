//! Programs in C, by the MPI library: compiled by the `mpicc` of this build before the first of their trials.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::Program;
use crate::stage::{Stage, Trouble};

/// A program in C.
#[derive(Debug)]
pub struct Mpi {
    name: &'static str,
    about: &'static str,
    file: &'static str,
    source: &'static str,
}

/// Messages of derived types.
pub const MESSAGES: Mpi = Mpi {
    name: "mpi",
    about: "MPI in C: messages of a derived type between all pairs, standard and synchronous",
    file: "messages.c",
    source: include_str!("c/messages.c"),
};
/// Windows.
pub const WINDOWS: Mpi = Mpi {
    name: "one-sided",
    about: "MPI in C: put, get and additions to the windows of all, under shared locks",
    file: "windows.c",
    source: include_str!("c/windows.c"),
};

const HEADER: &str = include_str!("c/campaign.h");
/// What the library of this build is called; `libmpi_abi.so.1` is made of it.
const LIBRARY: &str = "libmpi_abi.so";

impl Program for Mpi {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn why_not(&self) -> Option<String> {
        static TREE: OnceLock<Result<(), String>> = OnceLock::new();
        let made = TREE.get_or_init(|| {
            install()?;
            [&MESSAGES, &WINDOWS]
                .into_iter()
                .try_for_each(Self::compile)
        });
        made.clone().err()
    }

    fn is_in_c(&self) -> bool {
        true
    }

    fn run(&self, stage: &Stage) -> Result<(), Trouble> {
        stage.before_opening();
        let (seed, end) = stage.of_trial();
        let why = Command::new(self.program()?)
            .arg(seed.to_string())
            .arg(end)
            .args(stage.of_steps().map(|one| one.to_string()))
            .exec();
        Err(Trouble::Wrong(format!("{}: {why}", self.name)))
    }
}

impl Mpi {
    fn program(&self) -> Result<PathBuf, String> {
        Ok(tree()?.join(self.name))
    }

    /// Compiles it. Another campaign may do the same.
    fn compile(&self) -> Result<(), String> {
        let tree = tree()?;
        let folder = tempfile::tempdir_in(&tree).map_err(|why| why.to_string())?;
        let (source, out) = (folder.path().join(self.file), folder.path().join(self.name));
        for (path, text) in [
            (&source, self.source),
            (&folder.path().join("campaign.h"), HEADER),
        ] {
            std::fs::write(path, text).map_err(|why| format!("{}: {why}", path.display()))?;
        }
        let mut compiler = Command::new(tree.join("bin/mpicc"));
        compiler
            .args(["-Wall", "-Wextra", "-Werror", "-O1", "-o"])
            .arg(&out)
            .arg(&source);
        said(&mut compiler)?;
        std::fs::rename(&out, self.program()?).map_err(|why| why.to_string())
    }
}

/// Returns the folder of this program.
fn beside() -> Result<PathBuf, String> {
    let program = std::env::current_exe().map_err(|why| why.to_string())?;
    let folder = program.parent().map(Path::to_owned);
    folder.ok_or_else(|| "this program is in no folder".to_owned())
}

/// Returns the folder where the MPI library is installed for trials.
fn tree() -> Result<PathBuf, String> {
    Ok(beside()?.join("campaign-mpi"))
}

/// Installs the MPI library of this build, by its command.
fn install() -> Result<(), String> {
    let (folder, tree) = (beside()?, tree()?);
    let library = folder.join(LIBRARY);
    let fortran = folder.join("libmpifort_abi.so");
    for needed in [&folder.join("tagwire"), &library, &fortran] {
        if !needed.exists() {
            return Err(format!(
                "{} is not built (cargo build --workspace)",
                needed.display()
            ));
        }
    }
    said(
        Command::new(folder.join("tagwire"))
            .args(["mpi", "install"])
            .arg(&tree)
            .arg("--library")
            .arg(&library),
    )
}

/// Runs a command.
fn said(command: &mut Command) -> Result<(), String> {
    let output = command
        .output()
        .map_err(|why| format!("{}: {why}", command.get_program().display()))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}
