//! Where MPI libraries and their launchers lie.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// The names of libraries of the standard ABI, the one with the version first: the other is a linker script in some
/// packages.
const NAMES: &[&str] = &["libmpi_abi.so.1", "libmpi_abi.so"];

/// The name of Open MPI's library, versions 4 and 5, which has an ABI of its own.
const OPEN_MPI: &[&str] = &["libmpi.so.40"];

/// A library, and how it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub file: PathBuf,
    pub why: String,
}

/// The library at `path`, which is the file, its folder, or the prefix that it is installed
/// under; or the first one that the machine has.
///
/// # Errors
/// [`Error::Library`] naming the path, [`Error::NotFound`] naming the places.
pub(crate) fn find_library(path: Option<&Path>) -> Result<Found> {
    match path {
        Some(path) => {
            let file = at(path)?;
            Ok(Found {
                file,
                why: "the path was given".to_owned(),
            })
        }
        None => search(&places()),
    }
}

fn at(path: &Path) -> Result<PathBuf> {
    let missing = |reason: &str| Error::Library {
        file: path.to_path_buf(),
        reason: reason.to_owned(),
    };
    let metadata = fs::metadata(path).map_err(|error| missing(&error.to_string()))?;
    if metadata.is_dir() {
        let places = [path.to_path_buf(), path.join("lib"), path.join("lib64")];
        let both = [NAMES, OPEN_MPI].into_iter();
        let mut found = both.flat_map(|names| places.iter().map(move |place| inside(place, names)));
        return found.find_map(|found| found).ok_or_else(|| {
            missing("there is no libmpi_abi.so in this folder, nor in its lib; nor Open MPI's libmpi.so.40")
        });
    }
    if is_library(path) {
        return Ok(path.to_path_buf());
    }
    // Packages that cannot hold links have a linker script in their place.
    let versioned = ["1", "40"].map(|number| format!("{}.{number}", path.display()));
    let mut versioned = versioned.into_iter().map(PathBuf::from);
    versioned
        .find(|file| is_library(file))
        .ok_or_else(|| missing("not a shared library"))
}

/// A place to look at, and why.
type Place = (PathBuf, String);

fn search(places: &[Place]) -> Result<Found> {
    for names in [NAMES, OPEN_MPI] {
        for (place, why) in places {
            if let Some(file) = inside(place, names) {
                return Ok(Found {
                    file,
                    why: why.clone(),
                });
            }
        }
    }
    let mut names: Vec<String> = Vec::new();
    for (place, _) in places {
        let name = place.display().to_string();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Err(Error::NotFound(format!(
        "no libmpi_abi.so and no libmpi.so.40 in {}; install an MPI library with the standard ABI (such as \
         MPICH 5), or Open MPI 5, or give its path: -t mpi:PATH",
        names.join(", ")
    )))
}

fn inside(folder: &Path, names: &[&str]) -> Option<PathBuf> {
    names
        .iter()
        .map(|name| folder.join(name))
        .find(|file| is_library(file))
}

fn is_library(file: &Path) -> bool {
    let mut magic = [0; 4];
    let read = fs::File::open(file).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && magic == *b"\x7fELF"
}

/// Everywhere that a library may lie.
fn places() -> Vec<Place> {
    let mut places = Vec::new();
    let listed = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    for place in env::split_paths(&listed).filter(|place| !place.as_os_str().is_empty()) {
        places.push((place, "found in LD_LIBRARY_PATH".to_owned()));
    }
    for launcher in on_path("mpiexec") {
        let why = format!("found beside {}", launcher.display());
        let real = fs::canonicalize(&launcher).unwrap_or_else(|_| launcher.clone());
        for launcher in [&launcher, &real] {
            places.extend(
                beside(launcher)
                    .into_iter()
                    .map(|place| (place, why.clone())),
            );
        }
    }
    let mut standard: Vec<PathBuf> = ["/usr/local/lib", "/usr/lib", "/usr/lib64"]
        .map(PathBuf::from)
        .into();
    standard.extend(children(Path::new("/usr/lib"), |name| {
        name.ends_with("-linux-gnu")
    }));
    let why = "found among the system's libraries";
    places.extend(standard.into_iter().map(|place| (place, why.to_owned())));
    places
}

/// The folders of libraries that belong to a launcher.
fn beside(launcher: &Path) -> Vec<PathBuf> {
    let Some(folder) = launcher.parent() else {
        return Vec::new();
    };
    let Some(prefix) = folder.parent() else {
        return Vec::new();
    };
    let mut prefixes = vec![prefix.to_path_buf()];
    // Version managers put a script of the launcher's name into a folder "shims", and the
    // versions beside that.
    if folder.file_name() == Some(OsStr::new("shims")) {
        prefixes.extend(children(&prefix.join("versions"), |_| true));
    }
    let mut places = Vec::new();
    for prefix in prefixes {
        let lib = prefix.join("lib");
        let pythons = children(&lib, |name| name.starts_with("python"));
        places.extend([lib, prefix.join("lib64")]);
        places.extend(
            pythons
                .into_iter()
                .map(|python| python.join("site-packages")),
        );
    }
    places
}

/// The folders in `folder` whose name fits, in order.
fn children(folder: &Path, fits: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().to_str().is_some_and(&fits))
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    found.sort();
    found
}

/// All programs called `name` in `PATH`.
fn on_path(name: &str) -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .map(|folder| folder.join(name))
        .filter(|file| is_program(file))
        .collect()
}

fn is_program(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// The launcher that belongs to a library: the one `given`, else the one in `bin` of a folder
/// above it, else the first in `PATH`.
///
/// # Errors
/// [`Error::NotFound`].
pub(crate) fn find_launcher(library: &Path, given: Option<&Path>) -> Result<PathBuf> {
    if let Some(given) = given {
        let found = if given.components().count() == 1 {
            on_path(&given.to_string_lossy()).into_iter().next()
        } else {
            is_program(given).then(|| given.to_path_buf())
        };
        return found.ok_or_else(|| {
            Error::NotFound(format!(
                "{}: no such program (option --mpiexec)",
                given.display()
            ))
        });
    }
    let real = fs::canonicalize(library).unwrap_or_else(|_| library.to_path_buf());
    let names = ["mpiexec", "mpiexec.hydra", "mpirun"];
    let above = real.ancestors().skip(1).take(LEVELS);
    let beside = above.flat_map(|folder| names.map(|name| folder.join("bin").join(name)));
    beside
        .into_iter()
        .find(|file| is_program(file))
        .or_else(|| on_path("mpiexec").into_iter().next())
        .ok_or_else(|| {
            Error::NotFound(format!(
                "no mpiexec beside {} nor in PATH; give it with --mpiexec",
                library.display()
            ))
        })
}

/// How far above a library its launcher's folder may lie:
/// `prefix/lib/python3/site-packages/libmpi_abi.so`.
const LEVELS: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(file: &Path, content: &[u8], mode: u32) {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, content).unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_prefix_a_folder_and_a_linker_script_lead_to_the_library() {
        let root = tempfile::tempdir().unwrap();
        let prefix = root.path().join("mpi");
        let file = prefix.join("lib/libmpi_abi.so.1");
        touch(&file, b"\x7fELF rest", 0o644);
        let script = prefix.join("lib/libmpi_abi.so");
        touch(&script, b"INPUT(libmpi_abi.so.1)\n", 0o644);
        for path in [&prefix, &prefix.join("lib"), &file, &script] {
            assert_eq!(find_library(Some(path)).unwrap().file, file);
        }
        touch(&prefix.join("bin/mpiexec"), b"", 0o755);
        assert_eq!(
            find_launcher(&file, None).unwrap(),
            prefix.join("bin/mpiexec")
        );
        let wheel = prefix.join("lib/python3.11/site-packages/libmpi_abi.so.1");
        touch(&wheel, b"\x7fELF", 0o644);
        assert_eq!(
            find_launcher(&wheel, None).unwrap(),
            prefix.join("bin/mpiexec")
        );
    }

    #[test]
    fn open_mpi_is_found_where_no_library_has_the_standard_abi() {
        let root = tempfile::tempdir().unwrap();
        let prefix = root.path().join("openmpi");
        let file = prefix.join("lib/libmpi.so.40");
        touch(&file, b"\x7fELF rest", 0o644);
        let script = prefix.join("lib/libmpi.so");
        touch(&script, b"INPUT(libmpi.so.40)\n", 0o644);
        for path in [&prefix, &prefix.join("lib"), &file, &script] {
            assert_eq!(find_library(Some(path)).unwrap().file, file);
        }
        let standard = prefix.join("lib64/libmpi_abi.so.1");
        touch(&standard, b"\x7fELF rest", 0o644);
        assert_eq!(find_library(Some(&prefix)).unwrap().file, standard);
    }

    #[test]
    fn what_is_missing_is_named() {
        let root = tempfile::tempdir().unwrap();
        let error = |path: &Path| find_library(Some(path)).unwrap_err().to_string();
        assert!(error(root.path()).contains("no libmpi_abi.so in this folder"));
        let nowhere = root.path().join("nowhere.so");
        assert!(error(&nowhere).contains(&*nowhere.to_string_lossy()));
        touch(&nowhere, b"text", 0o644);
        assert!(error(&nowhere).contains("not a shared library"));
        let given = find_launcher(&nowhere, Some(Path::new("/no/mpiexec"))).unwrap_err();
        assert!(given.to_string().contains("/no/mpiexec"), "{given}");
        let places = [(root.path().to_path_buf(), String::new())];
        let error = search(&places).unwrap_err();
        assert!(
            error.to_string().contains(&*root.path().to_string_lossy()),
            "{error}"
        );
        assert_eq!(error.exit_status().code(), 2);
    }

    #[test]
    fn version_managers_shims_are_seen_through() {
        let root = tempfile::tempdir().unwrap();
        let lib = root.path().join("versions/3.11/lib");
        touch(&lib.join("libmpi_abi.so.1"), b"\x7fELF", 0o644);
        let places = beside(&root.path().join("shims/mpiexec"));
        assert!(places.contains(&lib), "{places:?}");
    }
}
