//! A project of CMake that finds the tree by CMake's own FindMPI, and by the package that the tree has.

use std::path::Path;

use tempfile::TempDir;

use crate::process::installed::{has_command, said_by, tree};

fn said(name: &str, arguments: &[&str]) -> String {
    said_by(Path::new(name), arguments)
}

#[test]
fn projects_find_the_tree_and_run_their_tests() {
    let test = "projects_find_the_tree_and_run_their_tests";
    if !["cmake", "gfortran"]
        .iter()
        .all(|name| has_command(test, name))
    {
        return;
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
