//! Which MPI library a program is compiled for, and whether it would be one job with it.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tagwire_launch::JobSpec;

use super::elf::Executable;
use crate::failure::Failure;

/// The library of the standard's binary interface, Tagwire's or another.
const STANDARD: &str = "libmpi_abi.so";

/// Refuses a program whose ranks would not start, or be jobs of one each, for the MPI library that they are compiled for.
///
/// # Errors
/// Names the library, and what to do.
pub(super) fn check(spec: &JobSpec) -> Result<(), Failure> {
    let Some(program) = place(spec) else {
        return Ok(());
    };
    let Some(executable) = Executable::read(&program) else {
        return Ok(());
    };
    let Some(name) = executable.needed.iter().find(|name| is_mpi(name)) else {
        return Ok(());
    };
    let shown = Path::new(&spec.program).display();
    if !name.starts_with(STANDARD) {
        let is_several = spec.ranks > 1 || spec.hosts.is_some();
        return match is_several || !is_found(spec, &executable, &program, name) {
            true => Err(Failure::usage(format!(
                "run: {shown} is compiled for {name}{}, with which each rank here would be a job of its own: compile it with {}, or start it by that library's mpiexec",
                maker(name),
                compiler(),
            ))),
            false => Ok(()),
        };
    }
    match is_found(spec, &executable, &program, name) {
        true => Ok(()),
        false => Err(Failure::usage(format!(
            "run: {shown} needs {name}, which is not found: compile it with {}, or set LD_LIBRARY_PATH to the 'lib' beside that 'bin'",
            compiler(),
        ))),
    }
}

/// Returns which compiler is meant: that of the tree that this command is in, if it is in one.
fn compiler() -> String {
    let tree = env::current_exe().ok().and_then(|own| {
        let compiler = own.parent()?.join("mpicc");
        compiler.is_file().then_some(compiler)
    });
    match tree {
        Some(compiler) => compiler.display().to_string(),
        None => "PREFIX/bin/mpicc, which 'tagwire mpi install PREFIX' writes".to_owned(),
    }
}

fn is_mpi(name: &str) -> bool {
    ["libmpi.so", "libmpich.so", "libmpi_"]
        .iter()
        .any(|start| name.starts_with(start))
}

/// Whose library it is, by the number of its interface.
fn maker(name: &str) -> &'static str {
    match name.rsplit_once(".so.") {
        Some((_, "12")) => " (MPICH, Intel MPI and others of their interface)",
        Some((_, "40")) => " (Open MPI)",
        _ => "",
    }
}

/// Returns the file of the program; `None` where there is none, which the launch will say.
fn place(spec: &JobSpec) -> Option<PathBuf> {
    let program = Path::new(&spec.program);
    let directory = spec.directory.as_deref().unwrap_or_else(|| Path::new(""));
    if program.as_os_str().as_encoded_bytes().contains(&b'/') {
        return Some(directory.join(program));
    }
    let set = spec.env.iter().rev().find(|(name, _)| name == "PATH");
    let path = set
        .map(|(_, value)| value.clone())
        .or_else(|| env::var_os("PATH"))?;
    let mut places = env::split_paths(&path).map(|folder| directory.join(folder).join(program));
    places.find(|place| place.is_file())
}

/// Asks the program's loader, in the environment of the ranks. What it does not say is not missing.
fn is_found(spec: &JobSpec, executable: &Executable, program: &Path, name: &str) -> bool {
    let mut loader = Command::new(&executable.interpreter);
    // It lists what it would load, and starts nothing. With --list it would end at the first that is missing.
    loader
        .env("LD_TRACE_LOADED_OBJECTS", "1")
        .arg(std::path::absolute(program).as_deref().unwrap_or(program))
        .envs(spec.env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    if let Some(directory) = &spec.directory {
        loader.current_dir(directory);
    }
    let Ok(output) = loader.output() else {
        return true;
    };
    let listed = String::from_utf8_lossy(&output.stdout);
    !listed.lines().any(|line| {
        let words = line.split_once("=>");
        words.is_some_and(|(library, place)| {
            library.trim() == name && OsStr::new(place.trim()) == "not found"
        })
    })
}
