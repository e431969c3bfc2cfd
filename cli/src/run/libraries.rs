//! Which MPI library a program is compiled for, and whether it would be one job with it.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tagwire_launch::{JobSpec, Part};

use super::elf::{self, Executable};
use crate::failure::Failure;

/// The library of the standard's binary interface, Tagwire's or another.
const STANDARD: &str = "libmpi_abi.so";

/// The note by which Tagwire's is told from others.
const NOTE: &str = "Tagwire";

/// Where the loader looks before the run path of a program (`DT_RUNPATH`).
const SEARCH: &str = "LD_LIBRARY_PATH";

/// Has programs of the standard's interface find the library of the tree that this command is in, before any other; what they load
/// themselves too.
///
/// # Errors
/// A program whose ranks would not start, or be jobs of one each, for the MPI library that they are compiled for: names the
/// library, and what to do.
pub(super) fn prepare(spec: &mut JobSpec) -> Result<(), Failure> {
    if let Some(folder) = own_library() {
        put_first(&folder, &mut spec.env);
        for other in &mut spec.others {
            put_first(&folder, &mut other.env);
        }
    }
    let is_several = spec.all_ranks() > 1 || spec.hosts.is_some();
    spec.parts()
        .iter()
        .try_for_each(|part| check(part, is_several))
}

/// Returns the folder of the library in the tree that this command is in. The loader takes none with a colon in its name.
fn own_library() -> Option<PathBuf> {
    let own = env::current_exe().ok()?;
    let folder = own.parent()?.parent()?.join("lib");
    let is_taken = !folder.as_os_str().as_encoded_bytes().contains(&b':');
    (is_taken && elf::has_note(&folder.join("libmpi_abi.so.1"), NOTE)).then_some(folder)
}

/// Puts a folder in front of those that the loader looks at.
fn put_first(folder: &Path, env: &mut Vec<(OsString, OsString)>) {
    let set = env.iter().rev().find(|(name, _)| name == SEARCH);
    let others = set
        .map(|(_, others)| others.clone())
        .or_else(|| env::var_os(SEARCH))
        .filter(|others| !others.is_empty());
    let mut all = folder.as_os_str().to_owned();
    if let Some(others) = others {
        all.push(":");
        all.push(others);
    }
    env.push((SEARCH.into(), all));
}

fn check(part: &Part, is_several: bool) -> Result<(), Failure> {
    let Some(program) = place(part) else {
        return Ok(());
    };
    let Some(executable) = Executable::read(&program) else {
        return Ok(());
    };
    let Some(name) = executable.needed.iter().find(|name| is_mpi(name)) else {
        return Ok(());
    };
    let shown = Path::new(&part.program).display();
    let found = find(part, &executable, &program, name);
    if !name.starts_with(STANDARD) {
        return match is_several || found == Found::Missing {
            true => Err(Failure::usage(format!(
                "run: {shown} is compiled for {name}{}, with which each rank here would be a job of its own: compile it with {}, or start it by that library's mpiexec",
                maker(name),
                compiler(name),
            ))),
            false => Ok(()),
        };
    }
    match found {
        Found::Missing => Err(Failure::usage(format!(
            "run: {shown} needs {name}, which is not found: start it by the mpiexec beside {}, or set LD_LIBRARY_PATH to the 'lib' beside that 'bin'",
            compiler(name),
        ))),
        Found::At(place) if is_several && !elf::has_note(&place, NOTE) => {
            let way_out = match executable.has_first_path {
                true => "its run path (DT_RPATH) comes before LD_LIBRARY_PATH: link it with -Wl,--enable-new-dtags".to_owned(),
                false => format!("start it by the mpiexec beside {}, or set LD_LIBRARY_PATH to the 'lib' beside that 'bin'", compiler(name)),
            };
            Err(Failure::usage(format!(
                "run: {shown} would load {}, which is not Tagwire's, and each rank here would be a job of its own: {way_out}",
                place.display(),
            )))
        }
        Found::At(_) | Found::Unknown => Ok(()),
    }
}

/// Returns which compiler is meant, for a program with that library: that of the tree that this command is in, if it is in one.
fn compiler(library: &str) -> String {
    let wrapper = match is_fortran(library) {
        true => "mpifort",
        false => "mpicc",
    };
    let tree = env::current_exe().ok().and_then(|own| {
        let compiler = own.parent()?.join(wrapper);
        compiler.is_file().then_some(compiler)
    });
    match tree {
        Some(compiler) => compiler.display().to_string(),
        None => format!("PREFIX/bin/{wrapper}, which 'tagwire mpi install PREFIX' writes"),
    }
}

/// Whether it is a library of MPI. A program in Fortran that is linked with --as-needed names the one for Fortran alone.
fn is_mpi(name: &str) -> bool {
    ["libmpi.so", "libmpich.so", "libmpi_", "libmpifort.so"]
        .iter()
        .any(|start| name.starts_with(start))
}

/// Whether it is one for Fortran: of MPICH and Intel MPI, or one of Open MPI's.
fn is_fortran(name: &str) -> bool {
    ["libmpifort.so", "libmpi_mpifh.so", "libmpi_usempi"]
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
fn place(part: &Part) -> Option<PathBuf> {
    let program = Path::new(&part.program);
    let directory = part.directory.as_deref().unwrap_or_else(|| Path::new(""));
    if program.as_os_str().as_encoded_bytes().contains(&b'/') {
        return Some(directory.join(program));
    }
    let set = part.env.iter().rev().find(|(name, _)| name == "PATH");
    let path = set
        .map(|(_, value)| value.clone())
        .or_else(|| env::var_os("PATH"))?;
    let mut places = env::split_paths(&path).map(|folder| directory.join(folder).join(program));
    places.find(|place| place.is_file())
}

/// Where the loader finds a library.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    At(PathBuf),
    Missing,
    /// It does not say.
    Unknown,
}

/// Asks the program's loader, in the environment of the ranks. What it does not say is not missing.
fn find(part: &Part, executable: &Executable, program: &Path, name: &str) -> Found {
    let mut loader = Command::new(&executable.interpreter);
    // It lists what it would load, and starts nothing. With --list it would end at the first that is missing.
    loader
        .env("LD_TRACE_LOADED_OBJECTS", "1")
        .arg(std::path::absolute(program).as_deref().unwrap_or(program))
        .envs(part.env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    if let Some(directory) = &part.directory {
        loader.current_dir(directory);
    }
    let Ok(output) = loader.output() else {
        return Found::Unknown;
    };
    listed(&output.stdout, name)
}

/// Reads `name => place (address)`, or `name => not found`.
fn listed(lines: &[u8], name: &str) -> Found {
    use std::os::unix::ffi::OsStrExt;
    let lines = lines.split(|byte| *byte == b'\n');
    let start = [b"\t", name.as_bytes(), b" => "].concat();
    let mut places = lines.filter_map(|line| line.strip_prefix(start.as_slice()));
    match places.next() {
        None => Found::Unknown,
        Some(place) if place.starts_with(b"not found") => Found::Missing,
        Some(place) => {
            let end = place.windows(4).rposition(|part| part == b" (0x");
            let place = &place[..end.unwrap_or(place.len())];
            Found::At(OsStr::from_bytes(place).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loaders_list_is_read() {
        let list = b"\tlinux-vdso.so.1 (0x00007ffd)\n\tlibmpi_abi.so.1 => /a (0x1)/b c/libmpi_abi.so.1 (0x00007f00)\n\tlibx.so => not found\n";
        let place = "/a (0x1)/b c/libmpi_abi.so.1".into();
        assert_eq!(listed(list, "libmpi_abi.so.1"), Found::At(place));
        assert_eq!(listed(list, "libx.so"), Found::Missing);
        assert_eq!(listed(list, "libmpi_abi.so"), Found::Unknown);
    }

    #[test]
    fn a_folder_is_put_first() {
        let first = |before: &[(&str, &str)]| {
            let mut env: Vec<(OsString, OsString)> = before
                .iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect();
            put_first(Path::new("/tree/lib"), &mut env);
            env.pop().unwrap().1
        };
        let set = [(SEARCH, "/a"), (SEARCH, "/b:/c"), ("OTHER", "/d")];
        assert_eq!(first(&set), "/tree/lib:/b:/c");
        assert_eq!(first(&[(SEARCH, "")]), "/tree/lib");
    }
}
