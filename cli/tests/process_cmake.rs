//! A project of CMake that finds the tree by CMake's own FindMPI, and by the package that the tree has.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::process::installed::tree;

/// Runs a command of CMake, and returns what it says.
fn said(name: &str, arguments: &[&str]) -> String {
    let output = Command::new(name).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{name} {arguments:?}: {said}{errors}"
    );
    said
}

#[test]
fn projects_find_the_tree_and_run_their_tests() {
    for needed in ["cmake", "gfortran"] {
        if Command::new(needed).arg("--version").output().is_err() {
            eprintln!("SKIPPED: projects_find_the_tree_and_run_their_tests needs {needed}");
            return;
        }
    }
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/cmake");
    let (folder, tree) = (TempDir::new().unwrap(), tree().display());
    let (project, folder) = (project.to_str().unwrap(), folder.path().to_str().unwrap());
    let home = format!("-DMPI_HOME={tree}");
    let prefix = format!("-DCMAKE_PREFIX_PATH={tree}");
    let configured = said("cmake", &["-S", project, "-B", folder, &home, &prefix]);
    for language in ["C", "CXX", "Fortran"] {
        let found = format!("MPI of {language}: 5.0, {tree}/include");
        assert!(configured.contains(&found), "{configured}");
    }
    said("cmake", &["--build", folder]);
    let tested = said("ctest", &["--test-dir", folder, "--output-on-failure"]);
    assert!(
        tested.contains("100% tests passed, 0 tests failed out of 4"),
        "{tested}"
    );
}
