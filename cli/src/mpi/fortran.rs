//! Fortran in the tree: its library, `mpif.h`, the modules' sources, and `mpifort`.

use std::path::Path;
use std::process::{Command, Stdio};

use tagwire_mpi_api::Api;

use super::Tree;
use super::wrapper::FORTRAN;
use crate::failure::Failure;

/// The names by which programs want the library, and are linked with it.
const SONAME: &str = "libmpifort_abi.so.1";
const NAME: &str = "libmpifort_abi.so";

const MODULES: &str = include_str!("../../mpi/modules.sh");
const PROBE: &str = include_str!("../../mpi/probe.f90");

/// Other names of `mpifort`.
const NAMES: [&str; 2] = ["mpif90", "mpif77"];

/// Where the modules are, and what they are built from.
const MODULES_FOLDER: &str = "lib/fortran";
const SOURCES: &str = "share/tagwire/fortran";

/// Writes what Fortran needs, builds the modules where their compiler is there, and returns what was done of it.
pub(super) fn install(tree: &Tree<'_>, beside: &Path, compiler: &str) -> Result<String, Failure> {
    let folder = beside.parent().unwrap_or_else(|| Path::new("."));
    let places = [folder.join(NAME), folder.join(SONAME)];
    let Some(library) = places.iter().find(|place| place.is_file()) else {
        let removed = match remove(tree)? {
            true => ". What the tree had of another version is removed",
            false => "",
        };
        return Ok(format!(
            "No Fortran: {NAME} is not beside the library of C; 'cargo build --release -p mpifort_abi' builds it{removed}"
        ));
    };
    let failed = |error| Failure::run(format!("the tables of MPI: {error}"));
    let api = Api::load().map_err(failed)?;
    let fortran = api.fortran().map_err(failed)?;
    tree.copy(library, &format!("lib/{SONAME}"))?;
    tree.link(SONAME, &format!("lib/{NAME}"))?;
    tree.write("include/mpif.h", &fortran.include())?;
    for (name, text) in [
        ("mpi", fortran.module().as_str()),
        ("mpi_f08", fortran.module_2008().as_str()),
        ("probe", PROBE),
    ] {
        tree.write(&format!("{SOURCES}/{name}.f90"), text)?;
    }
    tree.script("bin/mpifort", &FORTRAN.script(compiler, MODULES))?;
    for name in NAMES {
        tree.link("mpifort", &format!("bin/{name}"))?;
    }
    // Of another version of this library.
    tree.remove(MODULES_FOLDER)?;
    build(&tree.0.join("bin/mpifort"), compiler)
}

/// Removes what an installation of another version has written, and returns whether there was one: its library and its modules do
/// not fit to the library of C that is in the tree now.
fn remove(tree: &Tree<'_>) -> Result<bool, Failure> {
    // Without these sources, Fortran in the tree is another library's.
    if !tree.0.join(SOURCES).exists() {
        return Ok(false);
    }
    for name in NAMES.iter().chain(&["mpifort"]) {
        tree.remove(&format!("bin/{name}"))?;
    }
    for name in [NAME, SONAME] {
        tree.remove(&format!("lib/{name}"))?;
    }
    tree.remove("include/mpif.h")?;
    tree.remove(MODULES_FOLDER)?;
    // The last: what a removal that is interrupted leaves is removed by the next one.
    tree.remove(SOURCES)?;
    Ok(true)
}

/// Builds the modules.
fn build(wrapper: &Path, compiler: &str) -> Result<String, Failure> {
    let is_there = Command::new(compiler)
        .arg("--version")
        .stdin(Stdio::null())
        .output()
        .is_ok();
    if !is_there {
        return Ok(format!(
            "No modules for Fortran: '{compiler}' is not there; mpifort builds them when it is first used"
        ));
    }
    let output = Command::new(wrapper)
        .arg("--rebuild")
        .env_remove("MPI_FC")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Failure::run(format!("{}: {error}", wrapper.display())))?;
    if output.status.success() {
        let modules = String::from_utf8_lossy(&output.stdout);
        return Ok(format!("Fortran's modules are in {}", modules.trim()));
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Ok(format!(
        "No modules for Fortran by '{compiler}': {}",
        said.trim()
    ))
}
