//! `tagwire mpi`: MPI programs on Tagwire.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::failure::Failure;

mod fortran;
mod wrapper;

use wrapper::WRAPPERS;

/// The options of `tagwire mpi`.
#[derive(Debug, Args)]
pub struct MpiOptions {
    #[command(subcommand)]
    action: MpiAction,
}

/// What is asked for.
#[derive(Debug, Subcommand)]
enum MpiAction {
    /// Write a tree in which MPI programs are compiled and run: mpicc, mpifort, mpi.h, libmpi_abi.so.1, mpiexec
    Install(InstallOptions),
}

/// The options of `tagwire mpi install`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_INSTALL)]
struct InstallOptions {
    /// The directory of the tree; it is made where it is not there, and may be moved later
    prefix: PathBuf,

    /// The shared library, where it is not beside this command
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,

    /// The Fortran compiler of mpifort, for which its modules are built
    #[arg(long, value_name = "FC", default_value = FORTRAN)]
    fortran: String,
}

const AFTER_INSTALL: &str = "\
The shared libraries are built by 'cargo build --release -p tagwire-cli -p mpi_abi -p mpifort_abi', which leaves them beside this command.
Without mpifort_abi, or a Fortran compiler, the rest is written.

Examples:
  tagwire mpi install ~/tagwire-mpi
  ~/tagwire-mpi/bin/mpicc program.c -o program
  ~/tagwire-mpi/bin/mpifort program.f90 -o program
  ~/tagwire-mpi/bin/mpiexec -n 4 ./program      or srun --mpi=pmi2, prterun, mpiexec of MPICH";

/// The name by which programs want the library.
const SONAME: &str = "libmpi_abi.so.1";

/// The name by which they are linked, and by which it is built.
const NAME: &str = "libmpi_abi.so";

const HEADER: &str = include_str!("../../shim/include/mpi.h");
const MPIEXEC: &str = include_str!("../mpi/mpiexec.sh");
const PKG_CONFIG: &str = include_str!("../mpi/mpi_abi.pc");
const CMAKE: &str = include_str!("../mpi/mpi_abi-config.cmake");

/// The Fortran compiler that is asked where none is named.
const FORTRAN: &str = "gfortran";

/// What starts programs in the tree.
pub const LAUNCHERS: [&str; 2] = ["mpiexec", "mpirun"];

/// Gives the manual pages, each with the name of its file.
pub type Pages = fn() -> Result<Vec<(String, String)>, Failure>;

/// Does what is asked for.
pub fn mpi(options: &MpiOptions, manual: Pages) -> Result<ExitCode, Failure> {
    match &options.action {
        MpiAction::Install(options) => install(options, manual),
    }
}

fn install(options: &InstallOptions, manual: Pages) -> Result<ExitCode, Failure> {
    let own = std::env::current_exe()
        .map_err(|error| Failure::run(format!("this command does not find itself: {error}")))?;
    let library = match &options.library {
        Some(file) => file.clone(),
        None => beside(&own)?,
    };
    let prefix = absolute(&options.prefix)?;
    let tree = Tree(&prefix);
    let _turn = tree.take_turn()?;
    let version = env!("CARGO_PKG_VERSION");
    tree.copy(&library, &format!("lib/{SONAME}"))?;
    tree.link(SONAME, &format!("lib/{NAME}"))?;
    tree.copy(&own, "bin/tagwire")?;
    tree.write("include/mpi.h", HEADER)?;
    for wrapper in &WRAPPERS {
        tree.script(
            &format!("bin/{}", wrapper.name),
            &wrapper.script(wrapper.compiler, ""),
        )?;
    }
    for name in LAUNCHERS {
        tree.script(&format!("bin/{name}"), &MPIEXEC.replace("@NAME@", name))?;
    }
    for name in ["mpi_abi", "mpi"] {
        let page = PKG_CONFIG.replace("@NAME@", name);
        let page = page.replace("@VERSION@", version);
        tree.write(&format!("lib/pkgconfig/{name}.pc"), &page)?;
    }
    for (name, page) in manual()? {
        tree.write(&format!("share/man/man1/{name}"), &page)?;
    }
    tree.write("lib/cmake/mpi_abi/mpi_abi-config.cmake", CMAKE)?;
    let said = fortran::install(&tree, &library, &options.fortran)?;
    let prefix = options.prefix.display();
    let _ = writeln!(
        std::io::stdout(),
        "MPI on Tagwire is in {prefix}: {prefix}/bin/mpicc program.c -o program, then {prefix}/bin/mpiexec -n 4 ./program\n{said}"
    );
    Ok(ExitCode::SUCCESS)
}

/// Returns the shared library beside this command: where it was built, or in a tree that was installed.
fn beside(own: &Path) -> Result<PathBuf, Failure> {
    let folder = own.parent().unwrap_or_else(|| Path::new("."));
    let places = [folder.join(NAME), folder.join("../lib").join(SONAME)];
    let found = places.into_iter().find(|place| place.is_file());
    found.ok_or_else(|| {
        Failure::usage(format!(
            "{NAME} is not beside this command, in {}; 'cargo build --release -p mpi_abi' builds it, --library FILE names it",
            folder.display()
        ))
    })
}

/// A tree that is being written.
struct Tree<'a>(&'a Path);

impl Tree<'_> {
    /// Waits until nobody else writes into it, and keeps others waiting while what is returned lives: one would rename
    /// what another is writing. A file system without locks has no turns.
    fn take_turn(&self) -> Result<fs::File, Failure> {
        let failed = |error| unwritten(self.0, &error);
        fs::create_dir_all(self.0).map_err(failed)?;
        let folder = fs::File::open(self.0).map_err(failed)?;
        // Without it the tree is as good, if nobody else writes.
        let _ = folder.lock();
        Ok(folder)
    }

    /// Returns a place in it, whose directory is there.
    fn place(&self, name: &str) -> Result<PathBuf, Failure> {
        let place = self.0.join(name);
        if let Some(folder) = place.parent() {
            fs::create_dir_all(folder).map_err(|error| unwritten(folder, &error))?;
        }
        Ok(place)
    }

    /// Puts what `make` writes into its place at once: a program that uses what is there keeps it.
    fn put(
        &self,
        name: &str,
        mode: u32,
        make: impl FnOnce(&Path) -> std::io::Result<()>,
    ) -> Result<(), Failure> {
        let place = self.place(name)?;
        let mut new = place.clone().into_os_string();
        new.push(".new");
        let new = PathBuf::from(new);
        let made = make(&new)
            .and_then(|()| fs::set_permissions(&new, fs::Permissions::from_mode(mode)))
            .and_then(|()| fs::rename(&new, &place));
        made.map_err(|error| {
            let _ = fs::remove_file(&new);
            unwritten(&place, &error)
        })
    }

    fn copy(&self, from: &Path, name: &str) -> Result<(), Failure> {
        let bytes = fs::read(from)
            .map_err(|error| Failure::usage(format!("{}: {error}", from.display())))?;
        self.put(name, 0o755, |new| fs::write(new, &bytes))
    }

    fn write(&self, name: &str, text: &str) -> Result<(), Failure> {
        self.put(name, 0o644, |new| fs::write(new, text))
    }

    fn script(&self, name: &str, text: &str) -> Result<(), Failure> {
        self.put(name, 0o755, |new| fs::write(new, text))
    }

    /// Removes a file, a link, or a directory with all that is in it, where it is there.
    fn remove(&self, name: &str) -> Result<(), Failure> {
        let place = self.0.join(name);
        let removed = match fs::symlink_metadata(&place) {
            Ok(there) if there.is_dir() => fs::remove_dir_all(&place),
            Ok(_) => fs::remove_file(&place),
            Err(error) => Err(error),
        };
        match removed {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(unwritten(&place, &error))
            }
            _ => Ok(()),
        }
    }

    fn link(&self, to: &str, name: &str) -> Result<(), Failure> {
        let place = self.place(name)?;
        // What was there before.
        let _ = fs::remove_file(&place);
        symlink(to, &place).map_err(|error| unwritten(&place, &error))
    }
}

/// Returns a path that holds in other directories.
fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| unwritten(path, &error))
}

fn unwritten(place: &Path, error: &std::io::Error) -> Failure {
    Failure::run(format!("{}: {error}", place.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn installs_into_one_tree_at_once_take_turns() {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join(NAME);
        fs::write(&library, vec![7; 1 << 20]).unwrap();
        let options = InstallOptions {
            prefix: folder.path().join("tree"),
            library: Some(library),
            fortran: "no-fortran-here".to_owned(),
        };
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| install(&options, || Ok(Vec::new())).unwrap());
            }
        });
        let there = fs::read(options.prefix.join("lib").join(SONAME)).unwrap();
        assert_eq!(there.len(), 1 << 20);
        assert!(options.prefix.join("lib").join(NAME).exists());
    }
}
