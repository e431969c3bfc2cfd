//! Programs in Fortran, compiled by the tree's `mpifort`, and what it says where it cannot.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::process::installed::{has_command, said, tree};
use crate::process::{Line, run_line, wheels};

fn has_compiler(test: &str) -> bool {
    has_command(test, "gfortran")
}

fn source(name: &str) -> String {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/fortran");
    sources.join(name).to_str().unwrap().to_owned()
}

/// A program of `tests/programs/fortran`, with objects of other languages.
fn program(name: &str, with: &[&str]) -> PathBuf {
    let folder = tree().join("fortran").join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let program = folder.join(name);
    let (source, out) = (source(&format!("{name}.f90")), program.to_str().unwrap());
    let modules = format!("-J{}", folder.display());
    let mut words = vec!["-O1", "-Wall", "-fallow-argument-mismatch", &modules];
    words.extend([&source, "-o", out]);
    words.extend(with);
    said("mpifort", &words);
    program
}

#[test]
fn each_binding_does_what_the_standard_says() {
    if !has_compiler("each_binding_does_what_the_standard_says") {
        return;
    }
    for name in ["header", "module", "sections", "removed"] {
        let program = program(name, &[]);
        for ranks in [1, 2, 3] {
            let file = program.with_extension(format!("{ranks}.tmp"));
            let outcome = run_line(ranks, &[]).args([&program, &file]).finish();
            assert_eq!(outcome.status, 0, "{name}, {ranks} ranks: {outcome:#?}");
            outcome.line(&format!("{name}: {ranks} ranks"));
        }
    }
}

/// Compiled as Nek5000 and Nekbone are: `DOUBLE PRECISION` has 16 bytes then, and the clock has 8. The library for Fortran calls
/// whatever library of the interface is loaded.
#[test]
fn a_program_with_other_reals_runs_and_so_it_does_over_the_library_of_mpich() {
    let test = "a_program_with_other_reals_runs_and_so_it_does_over_the_library_of_mpich";
    if !has_compiler(test) {
        return;
    }
    let program = program("reals", &["-fdefault-real-8"]);
    let outcome = run_line(1, &[]).args([&program]).finish();
    assert_eq!(outcome.status, 0, "{outcome:#?}");
    outcome.line("reals: good");
    let Some(library) = wheels::wheel("mpich", "libmpi_abi.so.1") else {
        eprintln!("SKIPPED: the second half of {test} needs `ci/peers mpich`");
        return;
    };
    let output = Command::new(program)
        .env("LD_LIBRARY_PATH", library.parent().unwrap())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:#?}");
    assert_eq!(output.stdout, b"reals: good\n", "{output:#?}");
}

/// A rank of a launcher that cannot be joined, and ranks that would load another library and be jobs of one, are told by name.
#[test]
fn a_program_under_another_library_is_refused_by_name() {
    if !has_compiler("a_program_under_another_library_is_refused_by_name") {
        return;
    }
    let program = program("header", &[]);
    let alone = Line::of(&program, ["header.tmp"])
        .env("OMPI_COMM_WORLD_RANK", "1")
        .env("OMPI_COMM_WORLD_SIZE", "4")
        .finish();
    let said = "tagwire: MPI_Init: this process is one of 4 that mpiexec of Open MPI has started";
    assert_ne!(alone.status, 0, "{alone:#?}");
    assert!(alone.errors().starts_with(said), "{alone:#?}");
    let folder = tree().join("another");
    std::fs::create_dir_all(&folder).unwrap();
    let library = folder.join("libmpi_abi.so.1");
    let library = library.to_str().unwrap();
    let words = ["-shared", "-x", "c", "/dev/null", "-o", library];
    let made = Command::new("gfortran").args(words).status();
    assert!(made.unwrap().success());
    let other = run_line(2, &[])
        .args([&program])
        .env("LD_LIBRARY_PATH", folder.to_str().unwrap())
        .finish();
    let said = format!(
        "tagwire: run: {} would load {library}, which is not Tagwire's",
        program.display()
    );
    assert_ne!(other.status, 0, "{other:#?}");
    assert!(other.errors().starts_with(&said), "{other:#?}");
}

#[test]
fn a_tool_in_fortran_sees_the_calls() {
    if !has_compiler("a_tool_in_fortran_sees_the_calls") {
        return;
    }
    let outcome = run_line(2, &[]).args([&program("tool", &[])]).finish();
    assert_eq!(outcome.status, 0, "{outcome:#?}");
    outcome.line("the tool has seen all");
}

#[test]
fn objects_and_attributes_go_from_language_to_language() {
    if !has_compiler("objects_and_attributes_go_from_language_to_language") {
        return;
    }
    let object = tree().join("languages.o");
    let object = object.to_str().unwrap();
    let c = source("languages.c");
    said(
        "mpicc",
        &["-Wall", "-Wextra", "-Werror", "-c", &c, "-o", object],
    );
    let outcome = run_line(1, &[])
        .args([&program("languages", &[object])])
        .finish();
    assert_eq!(outcome.status, 0, "{outcome:#?}");
    outcome.line("languages agree");
}

fn mpifort(words: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(tree().join("bin/mpifort"));
    command.args(words).envs(variables.iter().copied());
    command.output().unwrap()
}

#[test]
fn the_wrapper_answers_what_configure_scripts_ask() {
    if !has_compiler("the_wrapper_answers_what_configure_scripts_ask") {
        return;
    }
    let prefix = tree().display();
    let modules = said("mpifort", &["--rebuild"]);
    assert!(modules.starts_with(&format!("{prefix}/lib/fortran/gfortran-")));
    let modules = modules.trim();
    let shown = said("mpif90", &["-show", "a.f90"]);
    assert!(shown.starts_with(&format!("gfortran -I{prefix}/include -I{modules} a.f90 -L")));
    let link = "-lmpifort_mod -lmpifort_abi -lmpi_abi";
    assert!(shown.trim().ends_with(link), "{shown}");
    assert!(!said("mpif77", &["-c", "a.f", "-show"]).contains(link));
    for (option, answer) in [
        ("-showme:incdirs", format!("{prefix}/include {modules}")),
        ("-showme:libdirs", format!("{modules} {prefix}/lib")),
        ("-showme:libs", "mpifort_mod mpifort_abi mpi_abi".to_owned()),
        ("-showme:compile", format!("-I{prefix}/include -I{modules}")),
        (
            "-compile_info",
            format!("gfortran -I{prefix}/include -I{modules}"),
        ),
    ] {
        assert_eq!(said("mpifort", &[option]).trim(), answer, "{option}");
        let words = ["-O2", "a.f90", "-fc=gfortran", "-c", option, "-Wall"];
        assert_eq!(said("mpifort", &words).trim(), answer, "{option}");
    }
    assert!(said("mpifort", &["-link_info"]).trim().ends_with(link));
    assert!(said("mpifort", &["--version"]).starts_with("GNU Fortran"));
    assert!(said("mpifort", &["-showme:version"]).contains("(Language: Fortran)"));
}

#[test]
fn what_cannot_be_compiled_is_told() {
    if !has_compiler("what_cannot_be_compiled_is_told") {
        return;
    }
    let none = mpifort(&["a.f90"], &[("MPI_FC", "no-fortran-here")]);
    assert_eq!(none.status.code(), Some(127));
    let error = String::from_utf8_lossy(&none.stderr);
    assert!(error.contains("'no-fortran-here' is no Fortran compiler here: install one"));
    let long = mpifort(&["-fdefault-integer-8", "a.f90"], &[]);
    assert_eq!(long.status.code(), Some(1));
    let error = String::from_utf8_lossy(&long.stderr);
    assert!(error.contains("-fdefault-integer-8: INTEGER has 4 bytes"));
    // With mpif.h a call has no size to tell.
    let folder = tree().join("unlinked");
    std::fs::create_dir_all(&folder).unwrap();
    let source = folder.join("a.f90");
    let text = "include 'mpif.h'\ninteger :: n, ierror\ncall MPI_SIZEOF(1d0, n, ierror)\nend\n";
    std::fs::write(&source, text).unwrap();
    let program = folder.join("a");
    let words = [&source, Path::new("-o"), &program].map(|word| word.to_str().unwrap());
    let unlinked = mpifort(&words, &[]);
    let error = String::from_utf8_lossy(&unlinked.stderr);
    assert!(
        !unlinked.status.success() && error.contains("mpi_sizeof_"),
        "{error}"
    );
}

/// Writes a compiler that is gfortran with an option, and says that it is of another version; returns how `mpifort` takes it.
fn compiler(version: u32, option: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    let path = tree().join(format!("gfortran-{version}"));
    let script = format!(
        "#!/bin/sh\ncase $1 in\n\
         --version) echo 'GNU Fortran (GCC) {version}.1.0' ;;\n\
         -dumpversion) echo {version}.1.0 ;;\n\
         *) exec gfortran {option} \"$@\" ;;\nesac\n"
    );
    std::fs::write(&path, script).unwrap();
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&path, executable).unwrap();
    format!("-fc={}", path.display())
}

/// The program that tries a compiler finds the compiler's libraries by `LD_LIBRARY_PATH`, as its own programs do.
#[test]
fn modules_are_built_where_the_compiler_has_libraries_elsewhere() {
    if !has_compiler("modules_are_built_where_the_compiler_has_libraries_elsewhere") {
        return;
    }
    let folder = tree().join("elsewhere");
    std::fs::create_dir_all(&folder).unwrap();
    let folder = folder.to_str().unwrap();
    let (source, library) = (
        format!("{folder}/a.f90"),
        format!("{folder}/libelsewhere.so"),
    );
    std::fs::write(&source, "subroutine elsewhere\nend subroutine\n").unwrap();
    let words = ["-shared", "-fPIC", &source, "-o", &library];
    let made = Command::new("gfortran").args(words).status();
    assert!(made.unwrap().success());
    let option = format!("-Wl,--no-as-needed -L{folder} -lelsewhere");
    let other = compiler(98, &option);
    let built = mpifort(&[&other, "-show"], &[("LD_LIBRARY_PATH", folder)]);
    let error = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success() && error.is_empty(), "{error}");
    assert!(tree().join("lib/fortran/gfortran-98/mpi.mod").exists());
}

/// A compiler of another version has no modules, and those that it builds pass arguments in another form.
#[test]
fn modules_are_of_one_compiler() {
    if !has_compiler("modules_are_of_one_compiler") {
        return;
    }
    let other = compiler(99, "-fdefault-integer-8");
    let told = mpifort(&[&other, "--version"], &[]);
    let error = String::from_utf8_lossy(&told.stderr);
    assert!(
        error.contains("no modules mpi and mpi_f08 for gfortran-99 (built: gfortran-")
            && error.contains("bin/mpifort --rebuild -fc='")
            && error.contains("gfortran-99' builds them"),
        "{error}"
    );
    assert!(!tree().join("lib/fortran/gfortran-99").exists());
}

/// An option counts wherever it is given: with the program, or in the command of the compiler.
#[test]
fn an_integer_of_8_bytes_is_refused() {
    if !has_compiler("an_integer_of_8_bytes_is_refused") {
        return;
    }
    for option in ["-i8", "-fdefault-integer-8", "-finteger-4-integer-8"] {
        let command = format!("gfortran -O2 {option}");
        let named = format!("-fc={command}");
        for (words, variables) in [
            (["-show", "a.f90", option], vec![]),
            (["-show", "a.f90", &named], vec![]),
            (["-show", "a.f90", "-c"], vec![("MPI_FC", command.as_str())]),
        ] {
            let refused = mpifort(&words, &variables);
            let error = String::from_utf8_lossy(&refused.stderr);
            assert_eq!(refused.status.code(), Some(1), "{words:?}: {error}");
            let said = format!("mpifort: {option}: INTEGER has 4 bytes in MPI of Tagwire\n");
            assert_eq!(error, said, "{words:?}");
        }
    }
    // The option of a compiler that is not asked.
    let other = [("MPI_FC", "gfortran -fdefault-integer-8")];
    let shown = mpifort(&["-show", "a.f90", "-fc=gfortran -O2"], &other);
    assert!(shown.stdout.starts_with(b"gfortran -O2 -I"), "{shown:#?}");
}

/// Without modules a program with `mpif.h` is linked, and one with `use mpi` is told how to have them.
#[test]
fn without_modules_mpif_h_is_there() {
    if !has_compiler("without_modules_mpif_h_is_there") {
        return;
    }
    // Only what the wrapper compiles for itself has this option: the modules end as a trial by a signal does.
    let other = compiler(97, "");
    let path = tree().join("gfortran-97");
    let script = std::fs::read_to_string(&path).unwrap();
    let crash = "echo 'Program received signal SIGSEGV'; echo 'Backtrace for this error:'; exit 1";
    let refused = format!("case \" $* \" in *' -fPIC '*) {crash} ;; esac\n");
    std::fs::write(&path, script.replacen("case", &format!("{refused}case"), 1)).unwrap();
    let folder = tree().join("without");
    std::fs::create_dir_all(&folder).unwrap();
    let (source, program) = (folder.join("a.f90"), folder.join("a"));
    let [from, out] = [&source, &program].map(|path| path.to_str().unwrap());
    let calls = "integer :: ierror\ncall MPI_INIT(ierror)\ncall MPI_FINALIZE(ierror)\nprint '(a)', 'mpif.h alone'\nend\n";
    std::fs::write(&source, format!("include 'mpif.h'\n{calls}")).unwrap();
    let built = mpifort(&[&other, "-Wall", from, "-o", out], &[]);
    let error = String::from_utf8_lossy(&built.stderr);
    assert!(
        built.status.success() && error.contains("lib/fortran") && !error.contains("Warning"),
        "{error}"
    );
    assert!(
        error.contains("): Program received signal SIGSEGV\n"),
        "{error}"
    );
    assert!(!tree().join("lib/fortran/gfortran-97").exists());
    let outcome = run_line(1, &[]).args([&program]).finish();
    assert_eq!(outcome.status, 0, "{outcome:#?}");
    outcome.line("mpif.h alone");
    let asked = mpifort(&["-showme:libs"], &[("MPI_FC", path.to_str().unwrap())]);
    assert_eq!(asked.stdout, b"mpifort_abi mpi_abi\n", "{asked:#?}");
    std::fs::write(&source, format!("use mpi\n{calls}")).unwrap();
    let unbuilt = mpifort(&[&other, from, "-o", out], &[]);
    let error = String::from_utf8_lossy(&unbuilt.stderr);
    assert!(
        !unbuilt.status.success()
            && error.contains("no modules mpi and mpi_f08 for gfortran-97")
            && error.contains("bin/mpifort --rebuild -fc='"),
        "{error}"
    );
}

/// Modules that cannot be built again stay as they are, and it is said why.
#[test]
fn a_rebuild_that_fails_says_why_and_leaves_the_modules() {
    if !has_compiler("a_rebuild_that_fails_says_why_and_leaves_the_modules") {
        return;
    }
    let folder = tree().join("lib/fortran/gfortran-94");
    let built = mpifort(&["--rebuild", &compiler(94, "")], &[]);
    let place = format!("{}\n", folder.display());
    assert!(built.status.success() && built.stdout == place.into_bytes());
    let before = std::fs::read(folder.join("mpi.mod")).unwrap();
    let failed = mpifort(&["--rebuild", &compiler(94, "-fdefault-integer-8")], &[]);
    let error = String::from_utf8_lossy(&failed.stderr);
    assert!(
        failed.status.code() == Some(1) && failed.stdout.is_empty(),
        "{failed:#?}"
    );
    assert!(
        error.contains("Error") || error.contains("probe: "),
        "{error}"
    );
    let last = "mpifort: the modules of gfortran-94 have not been built\n";
    assert!(error.ends_with(last), "{error}");
    assert_eq!(std::fs::read(folder.join("mpi.mod")).unwrap(), before);
}

/// A compiler without modules where none can be written: a program with `mpif.h` is compiled all the same.
#[test]
fn modules_that_cannot_be_written_are_told() {
    if !has_compiler("modules_that_cannot_be_written_are_told") {
        return;
    }
    let prefix = tree().join("unwritten");
    let library = tree().join("lib/libmpi_abi.so");
    let outcome = Line::new(["mpi", "install"])
        .args([&prefix, Path::new("--library"), &library])
        .args(["--fortran", "no-fortran-here"])
        .finish();
    assert_eq!(outcome.status, 0, "{outcome:#?}");
    // An administrator may write into every folder, but not into one that is not there.
    let folder = prefix.join("lib/fortran");
    std::os::unix::fs::symlink("nowhere", &folder).unwrap();
    let wrapper = |words: &[&str]| {
        let mut command = Command::new(prefix.join("bin/mpifort"));
        command.args(words).env("MPI_FC", "gfortran");
        command.output().unwrap()
    };
    let asked = wrapper(&["-showme:libs"]);
    let error = String::from_utf8_lossy(&asked.stderr);
    assert_eq!(asked.stdout, b"mpifort_abi mpi_abi\n", "{error}");
    let told = format!("(built: none): {} cannot be written\n", folder.display());
    assert!(error.contains(&told), "{error}");
    let how = format!(
        "mpifort: {}/bin/mpifort --rebuild -fc='gfortran' builds them, where lib/fortran may be written; mpif.h needs none\n",
        prefix.display()
    );
    assert!(error.ends_with(&how), "{error}");
    let rebuilt = wrapper(&["--rebuild"]);
    let error = String::from_utf8_lossy(&rebuilt.stderr);
    assert_eq!(rebuilt.status.code(), Some(1), "{error}");
    assert!(
        error.contains("lib/fortran") && error.ends_with(" have not been built\n"),
        "{error}"
    );
}

/// `tagwire mpi install` where its Fortran compiler is not there, whose modules the wrapper builds at first use, and with one by name.
#[test]
fn a_tree_has_the_modules_of_the_compiler_that_is_named() {
    let prefix = tree().join("named");
    let install = |compiler: &str| {
        let library = tree().join("lib/libmpi_abi.so");
        let outcome = Line::new(["mpi", "install"])
            .args([&prefix, Path::new("--library"), &library])
            .args(["--fortran", compiler])
            .finish();
        assert_eq!(outcome.status, 0, "{outcome:#?}");
        outcome
    };
    let wrapper = |words: &[&str], compiler: &str| {
        let mut command = Command::new(prefix.join("bin/mpifort"));
        command.args(words).env("MPI_FC", compiler);
        command.output().unwrap()
    };
    let outcome = install("no-fortran-here");
    outcome.line("No modules for Fortran: 'no-fortran-here' is not there; mpifort builds them when it is first used");
    let none = wrapper(&["a.f90"], "");
    let error = String::from_utf8_lossy(&none.stderr);
    assert_eq!(none.status.code(), Some(127), "{error}");
    assert!(
        error.contains("'no-fortran-here' is no Fortran compiler here: install one (gfortran 8 or later), or name one by MPI_FC"),
        "{error}"
    );
    if !has_compiler("a_tree_has_the_modules_of_the_compiler_that_is_named") {
        return;
    }
    assert!(!prefix.join("lib/fortran").exists());
    let first = wrapper(&["-showme:incdirs"], "gfortran");
    assert!(first.status.success() && first.stderr.is_empty());
    let folders = String::from_utf8(first.stdout).unwrap();
    let modules = Path::new(folders.split_whitespace().last().unwrap());
    assert!(
        modules.starts_with(prefix.join("lib/fortran")) && modules.join("mpi_f08.mod").exists()
    );
    // Of another compiler, those of the first are gone with the library that they were built for.
    let named = compiler(96, "");
    let named = named.strip_prefix("-fc=").unwrap();
    let place = prefix.join("lib/fortran/gfortran-96");
    install(named).line(&format!("Fortran's modules are in {}", place.display()));
    assert!(place.join("mpi.mod").exists() && !modules.exists());
    let shown = wrapper(&["-showme:command"], "");
    assert_eq!(shown.stdout, format!("{named}\n").into_bytes());
}

/// `tagwire mpi install` without the library for Fortran leaves none of another version beside the new library of C.
#[test]
fn a_tree_without_the_library_for_fortran_has_none_of_before() {
    let prefix = tree().join("replaced");
    let alone = tree().join("c-alone");
    std::fs::create_dir_all(&alone).unwrap();
    let library = alone.join("libmpi_abi.so");
    std::fs::copy(tree().join("lib/libmpi_abi.so"), &library).unwrap();
    let install = |library: &Path| {
        let outcome = Line::new(["mpi", "install"])
            .args([&prefix, Path::new("--library"), library])
            .args(["--fortran", "no-fortran-here"])
            .finish();
        assert_eq!(outcome.status, 0, "{outcome:#?}");
        outcome
    };
    let said = "No Fortran: libmpifort_abi.so is not beside the library of C; 'cargo build --release -p mpifort_abi' builds it";
    // A wrapper of another library stays.
    let wrapper = prefix.join("bin/mpifort");
    std::fs::create_dir_all(prefix.join("bin")).unwrap();
    std::fs::write(&wrapper, "another").unwrap();
    let outcome = install(&library);
    assert!(outcome.line(said).ends_with(said), "{outcome:#?}");
    assert_eq!(std::fs::read(&wrapper).unwrap(), b"another");
    install(&tree().join("lib/libmpi_abi.so"));
    std::fs::create_dir_all(prefix.join("lib/fortran/gfortran-95")).unwrap();
    install(&library).line(&format!(
        "{said}. What the tree had of another version is removed"
    ));
    for folder in ["bin", "lib", "include", "share", "share/tagwire"] {
        for entry in prefix.join(folder).read_dir().into_iter().flatten() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let is_of_fortran = ["mpif", "libmpifort", "fortran"];
            assert!(
                !is_of_fortran.iter().any(|start| name.starts_with(start)),
                "{folder}/{name}"
            );
        }
    }
    assert!(prefix.join("bin/mpicc").exists());
}
