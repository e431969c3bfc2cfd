//! The shared library from outside: what it exports, what it needs, and that programs and tools can be linked with it.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod library;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use library::{library, said};
use tagwire_mpi_api::Api;
use tempfile::TempDir;

#[test]
fn the_names_of_the_table_are_exported_and_no_others() {
    let text = said(
        Command::new("nm")
            .args(["-D", "--defined-only"])
            .arg(library()),
    );
    let last = |line: &str| line.split_whitespace().last().map(str::to_owned);
    let exported: BTreeSet<String> = text.lines().filter_map(last).collect();
    let names = Api::load().unwrap().names();
    let both = names
        .iter()
        .flat_map(|name| ["MPI_", "PMPI_"].map(|prefix| format!("{prefix}{name}")));
    let wanted: BTreeSet<String> = both.collect();
    let missing: Vec<_> = wanted.difference(&exported).collect();
    let extra: Vec<_> = exported.difference(&wanted).collect();
    assert!(
        missing.is_empty() && extra.is_empty(),
        "missing {missing:?}, extra {extra:?}"
    );
}

#[test]
fn it_has_the_name_of_the_standard_and_needs_the_system_alone() {
    let text = said(Command::new("readelf").arg("-dW").arg(library()));
    let named = |what: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| line.contains(what));
        let inside = lines.filter_map(|line| line.split(['[', ']']).nth(1));
        inside.map(str::to_owned).collect()
    };
    assert_eq!(named("(SONAME)"), ["libmpi_abi.so.1"]);
    for needed in named("(NEEDED)") {
        let is_system = ["libc.so", "libm.so", "libgcc_s.so", "ld-linux"]
            .iter()
            .any(|known| needed.starts_with(known));
        assert!(is_system, "needs {needed}");
    }
}

/// A tool defines `MPI_X` and calls `PMPI_X`. A call by name inside the library would come back to the tool.
#[test]
fn it_calls_none_of_its_functions_by_name() {
    let text = said(Command::new("readelf").arg("-rW").arg(library()));
    let calls: Vec<_> = text.lines().filter(|line| line.contains("MPI_")).collect();
    assert!(calls.is_empty(), "{calls:?}");
}

/// Works before initialization; fails by its exit status.
const PROGRAM: &str = r"
#include <mpi.h>
int main(void) {
    int version = 0, subversion = 0, at;
    for (at = 0; at < 3; at++)
        if (MPI_Get_version(&version, &subversion) != MPI_SUCCESS) return 2;
    if (version != MPI_VERSION || subversion != MPI_SUBVERSION) return 3;
    if (MPI_Aint_diff(MPI_Aint_add(8, 4), 2) != 10) return 4;
    if (MPI_Comm_toint(MPI_COMM_WORLD) != 0x101 || MPI_Type_fromint(0x209) != MPI_INT) return 5;
    if (MPI_Wtime() > PMPI_Wtime() || MPI_Wtick() <= 0.0) return 6;
    return MPI_Pcontrol(1, 2.0, &at);
}
";

/// Fails when the library has called it back, or was not asked through it.
const TOOL: &str = r#"
#include <mpi.h>
#include <stdlib.h>
static int inside, calls;
int MPI_Get_version(int *version, int *subversion) {
    int code;
    if (inside++) abort();
    calls++;
    code = PMPI_Get_version(version, subversion);
    inside--;
    return code;
}
__attribute__((destructor)) static void end(void) { if (calls != 3) _Exit(9); }
"#;

#[test]
fn programs_in_c_and_in_c_plus_plus_run_with_it_and_under_a_tool() {
    let folder = TempDir::new().unwrap();
    let (here, include) = (
        folder.path(),
        concat!(env!("CARGO_MANIFEST_DIR"), "/../include"),
    );
    for name in ["libmpi_abi.so", "libmpi_abi.so.1"] {
        std::os::unix::fs::symlink(library(), here.join(name)).unwrap();
    }
    let compile = |options: &[&str], source: &str, out: &Path| {
        let file = here.join("source.c");
        fs::write(&file, source).unwrap();
        let cc = env::var_os("CC").unwrap_or_else(|| "cc".into());
        let mut command = Command::new(cc);
        command
            .args([
                "-Wall",
                "-Wextra",
                "-pedantic",
                "-Werror",
                "-I",
                include,
                "-L",
            ])
            .arg(here);
        said(
            command
                .args(options)
                .arg("-o")
                .arg(out)
                .arg(&file)
                .arg("-lmpi_abi"),
        );
    };
    let tool = here.join("tool.so");
    compile(&["-xc", "-shared", "-fPIC"], TOOL, &tool);
    for language in [["-xc", "-std=c99"], ["-xc++", "-std=c++11"]] {
        let program = here.join("program");
        compile(&language, PROGRAM, &program);
        let mut alone = Command::new(&program);
        said(alone.env("LD_LIBRARY_PATH", here));
        let mut watched = Command::new(&program);
        said(
            watched
                .env("LD_LIBRARY_PATH", here)
                .env("LD_PRELOAD", &tool),
        );
    }
}
