//! The Fortran columns and the module `mpi_f08` against the machine-readable standard, where its package is installed.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

#[path = "../../../ci/wheels.rs"]
mod wheels;

use std::process::Command;

use tagwire_mpi_api::Api;

#[test]
fn fortran_is_as_the_standard_has_it() {
    let environment = wheels::environment("pympistandard");
    let python = environment.map_or_else(|| "python3".into(), |root| root.join("bin/python"));
    let found = Command::new(&python)
        .args(["-c", "import pympistandard"])
        .output();
    if !found.is_ok_and(|output| output.status.success()) {
        eprintln!(
            "SKIPPED: fortran_is_as_the_standard_has_it needs `ci/peers pympistandard==0.2.0`"
        );
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let module = folder.path().join("mpi_f08.f90");
    let text = Api::load().unwrap().fortran().unwrap().module_2008();
    std::fs::write(&module, text).unwrap();
    let output = Command::new(python)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/fortran.py"))
        .arg("--module")
        .arg(module)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:#?}");
}
