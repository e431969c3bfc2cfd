//! The tree that `tagwire mpi install` writes, for the tests of it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use super::{Line, tagwire};

/// A tree that was installed, for all tests of this program. Nothing is dropped at the end of a program of tests, so that the next
/// one removes it.
pub fn tree() -> &'static Path {
    static TREE: OnceLock<PathBuf> = OnceLock::new();
    TREE.get_or_init(|| {
        let trees = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mpi");
        for left in trees.read_dir().into_iter().flatten().flatten() {
            if !Path::new("/proc").join(left.file_name()).exists() {
                // Another program of tests may do the same.
                let _ = std::fs::remove_dir_all(left.path());
            }
        }
        let folder = trees.join(std::process::id().to_string());
        let library = library();
        let outcome = Line::new(["mpi", "install"])
            .args([&folder])
            .args([OsStr::new("--library"), library.as_os_str()])
            .finish();
        assert_eq!(outcome.status, 0, "{outcome:#?}");
        folder
    })
}

/// The shared library of C of this build, with that of Fortran beside it. `cargo test` does not build them.
fn library() -> PathBuf {
    let profile_folder = tagwire().parent().unwrap().to_owned();
    let library = profile_folder.join("libmpi_abi.so");
    let is_there = library.is_file() && profile_folder.join("libmpifort_abi.so").is_file();
    if std::env::var_os("CI_ARTIFACTS").is_some() && is_there {
        return library;
    }
    let profile = match profile_folder.file_name().and_then(OsStr::to_str) {
        Some("debug") | None => "dev",
        Some(name) => name,
    };
    let built = Command::new(env!("CARGO"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["build", "--quiet", "--profile", profile])
        .args(["--package", "mpi_abi", "--package", "mpifort_abi"])
        .arg("--target-dir")
        .arg(profile_folder.parent().unwrap())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "cannot build the library: {said}");
    library
}

/// A program of `tests/programs/mpi`, compiled by the tree's `mpicc`.
pub fn program(name: &str) -> PathBuf {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/mpi");
    let source = sources.join(name).with_extension("c");
    let folder = tree().join("programs");
    std::fs::create_dir_all(&folder).unwrap();
    // Several tests may compile the same one.
    static COUNT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let program = folder.join(format!("{name}-{number}"));
    let (source, out) = (source.to_str().unwrap(), program.to_str().unwrap());
    said(
        "mpicc",
        &[
            "-Wall",
            "-Wextra",
            "-Werror",
            // Constants that stand for arrays are no memory.
            "-Wno-stringop-overread",
            "-O1",
            source,
            "-o",
            out,
            "-lm",
            "-lpthread",
        ],
    );
    program
}

/// Runs a command of the tree, and returns what it says.
pub fn said(name: &str, arguments: &[&str]) -> String {
    said_by(&tree().join("bin").join(name), arguments)
}

/// The same of any command.
pub fn said_by(program: &Path, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let name = program.display();
    assert!(
        output.status.success(),
        "{name} {arguments:?}: {said}{errors}"
    );
    said
}

/// Whether a command of the system is there. Where it is not, the test is skipped and says so.
pub fn has_command(test: &str, name: &str) -> bool {
    let is_there = Command::new(name).arg("--version").output().is_ok();
    if !is_there {
        eprintln!("SKIPPED: {test} needs {name}");
    }
    is_there
}
