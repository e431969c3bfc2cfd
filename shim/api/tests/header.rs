//! The checked-in `mpi.h`: it is what the tables say, it compiles everywhere, and another MPI's header beside it is refused.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use std::path::Path;
use std::process::{Command, Output};
use std::{env, fs};

use tagwire_mpi_api::Api;
use tempfile::TempDir;

fn header() -> String {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../include/mpi.h").to_owned()
}

/// Compiles a program with `mpi.h` in the include path, after the folder of the program.
fn compile(folder: &Path, language: &[&str], program: &str) -> Output {
    let file = folder.join("program.c");
    fs::write(&file, program).unwrap();
    let include = Path::new(&header()).parent().unwrap().to_owned();
    let cc = env::var_os("CC").unwrap_or_else(|| "cc".into());
    Command::new(cc)
        .args(language)
        .args(["-c", "-o", "/dev/null", "-I"])
        .arg(include)
        .arg(file)
        .output()
        .expect("a C compiler is there")
}

#[test]
fn the_header_is_what_the_tables_say() {
    let is = fs::read_to_string(header()).unwrap();
    let same = is == Api::load().unwrap().header();
    let command = "cargo run -p tagwire-mpi-api --example write header > shim/include/mpi.h";
    assert!(same, "shim/include/mpi.h is out of date: {command}");
}

/// Uses what a header could get wrong: constants in initializers, callbacks, enumerations, varargs.
const PROGRAM: &str = r"
#include <mpi.h>
#include <mpi.h>
static MPI_Comm comm = MPI_COMM_WORLD;
static const int modes = MPI_MODE_CREATE | MPI_MODE_RDWR;
static void fails(MPI_Comm *on, int *code, ...) { (void)on; (void)code; }
static void sums(void *from, void *to, int *n, MPI_Datatype *type) { (void)from; (void)to; (void)n; (void)type; }
#if MPI_VERSION != 5 || MPI_ABI_VERSION != 1
#error version
#endif
int main(int argc, char **argv) {
    int rank = MPI_PROC_NULL, ranges[1][3] = {{0, 1, 1}};
    char name[MPI_MAX_PROCESSOR_NAME];
    MPI_Op op = MPI_OP_NULL;
    MPI_Group group = MPI_GROUP_EMPTY;
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    MPI_T_cb_safety safety = MPI_T_CB_REQUIRE_NONE;
    MPI_Status status;
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Fint plain[MPI_F_STATUS_SIZE];
    MPI_F08_status later;
    MPI_Init(&argc, &argv);
    comm = MPI_Comm_f2c(MPI_Comm_c2f(comm));
    if (MPI_Type_c2f(MPI_INT) != 0x209 || PMPI_Session_f2c(0x120) != MPI_SESSION_NULL) return 2;
    if (MPI_Status_f2c(MPI_F_STATUS_IGNORE, &status) != MPI_ERR_ARG) return 3;
    if (MPI_Status_c2f(&status, plain) + PMPI_Status_f2f08(plain, &later) + MPI_Status_f082c(&later, &status)) return 4;
    MPI_Comm_create_errhandler(fails, &handler);
    MPI_Errhandler_set(comm, handler);
    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &rank, 0);
    MPI_Op_create(sums, modes, &op);
    MPI_Group_range_incl(group, 1, ranges, &group);
    MPI_Get_processor_name(name, &rank);
    MPI_Bcast(MPI_IN_PLACE, 1, MPI_LONG_LONG_INT, 0, comm);
    MPI_Send_c(name, (MPI_Count)1, MPI_BYTE, rank, MPI_ANY_TAG, MPI_COMM_SELF);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Dist_graph_create(comm, 1, &rank, &rank, ranges[0], MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
    MPI_Dist_graph_create_adjacent(comm, 0, ranges[0], MPI_WEIGHTS_EMPTY, 1, &rank, MPI_UNWEIGHTED,
        MPI_INFO_NULL, 0, &comm);
    MPI_Dist_graph_neighbors(comm, 1, &rank, MPI_UNWEIGHTED, 1, ranges[0], MPI_UNWEIGHTED);
    MPI_Recv(name, 1, MPI_BYTE, MPI_ANY_SOURCE, 0, comm, &status);
    PMPI_Pcontrol(1, status.MPI_SOURCE, (int)safety);
    return MPI_Finalize() + (int)MPI_Wtime();
}
";

#[test]
fn it_compiles_in_every_language_without_a_warning() {
    let folder = TempDir::new().unwrap();
    for language in [
        ["-xc", "-std=c99"],
        ["-xc", "-std=c11"],
        ["-xc", "-std=gnu17"],
        ["-xc++", "-std=c++98"],
        ["-xc++", "-std=c++11"],
        ["-xc++", "-std=c++17"],
    ] {
        let mut options = vec![
            "-O2",
            "-Wall",
            "-Wextra",
            "-pedantic",
            "-Wshadow",
            "-Werror",
        ];
        options.extend(language);
        let out = compile(folder.path(), &options, PROGRAM);
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{language:?}: {said}");
    }
}

/// A configure script looks for a function or for a macro. Another binding brings its own, and so does a program that has its own
/// functions of MPI-1.
#[test]
fn what_is_not_of_the_abi_may_be_left_out() {
    let folder = TempDir::new().unwrap();
    let asked = "#include <mpi.h>\n#ifndef MPI_Comm_f2c\n#error none\n#endif\n";
    let own = "#include <mpi.h>\ntypedef long MPI_Fint;\nstatic MPI_Fint MPI_Comm_c2f(MPI_Comm comm) { return (long)comm; }\n\
        int main(void) { return (int)MPI_Comm_c2f(MPI_COMM_NULL); }\n";
    let old = "#include <mpi.h>\nint MPI_Address(void *location, MPI_Aint *address) { return location == address; }\n";
    for (options, program, is_good) in [
        (&["-xc"][..], asked, true),
        (&["-xc", "-DMPI_NO_FORTRAN"], asked, false),
        (&["-xc", "-DMPI_NO_FORTRAN", "-Wall", "-Werror"], own, true),
        (&["-xc"], own, false),
        (&["-xc", "-DMPI_NO_REMOVED", "-Wall", "-Werror"], old, true),
        (&["-xc"], old, false),
    ] {
        let out = compile(folder.path(), options, program);
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.success(), is_good, "{options:?}: {said}");
    }
}

/// The head of a header of another MPI.
const OTHER: &str =
    "#ifndef OTHER_H\n#define OTHER_H\n#define MPI_VERSION 3\ntypedef int MPI_Comm;\n#endif\n";

#[test]
fn the_header_of_another_mpi_is_refused_with_a_message() {
    let folder = TempDir::new().unwrap();
    let other = folder.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("mpi.h"), OTHER).unwrap();
    let (ours, others) = ("#include <mpi.h>\n", "#include \"other/mpi.h\"\n");
    for (program, message) in [
        (
            format!("{others}{ours}"),
            "the mpi.h of another MPI has been included before",
        ),
        (
            format!("{ours}{others}"),
            "a conflict here: another MPI's mpi.h follows Tagwire's",
        ),
    ] {
        for language in ["-xc", "-xc++"] {
            let out = compile(folder.path(), &[language], &program);
            let said = String::from_utf8_lossy(&out.stderr);
            assert!(!out.status.success(), "{language}: {program}");
            assert!(said.contains(message), "{language}: {program}: {said}");
        }
    }
}
