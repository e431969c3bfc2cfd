//! `tagwire mpi install`, and C programs that are compiled and run with what it has written.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::installed::{has_command, program, said, tree};
use crate::process::launchers::{Launcher, Slurm, of_intel_mpi, of_mpich, of_open_mpi};
use crate::process::{Job, KILLED, Line, Outcome, has, run_line, wheels};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

fn good(name: &str, ranks: u32, outcome: &Outcome) {
    assert_eq!(outcome.status, 0, "{name}, {ranks} ranks: {outcome:#?}");
    outcome.line(&format!("{name}: {ranks} ranks"));
}

#[test]
fn programs_run_with_any_number_of_ranks() {
    for name in [
        "messages",
        "heat",
        "threads",
        "attributes",
        "partitions",
        "operations",
        "sessions",
        "groups",
        "inplace",
        "probes",
        "callbacks",
        "persistent",
        "neighbours",
        "edges",
        "windows",
        "removed",
    ] {
        let program = program(name);
        for ranks in [1, 2, 3, 5] {
            let outcome = run_line(ranks, &[]).args([&program]).finish();
            good(name, ranks, &outcome);
        }
    }
}

/// Each call that finds nothing is done before any progress, and yields now and then all the same: one that has the core until its
/// slice ends tests millions of times.
#[test]
fn ranks_that_test_and_probe_take_turns() {
    let cores = std::thread::available_parallelism().unwrap().get();
    let ranks = cores as u32 + 1;
    let program = program("turns");
    for how in ["test", "probe"] {
        let outcome = run_line(ranks, &[]).args([&program]).args([how]).finish();
        assert_eq!(outcome.status, 0, "{how}: {outcome:#?}");
        for number in 0..ranks {
            let line = outcome.line(&format!("{number} tested in vain "));
            let tests: u64 = line.split(' ').nth(4).unwrap().parse().unwrap();
            assert!(tests < 50 * 1_000, "{how}: {line}");
        }
    }
}

/// What `match stats` counts of the traces in a folder, for each rank and part.
fn counted(traces: &Path) -> Vec<Value> {
    let line = ["match", "stats", "--by", "rank", "--format", "json"];
    let outcome = Line::new(line).args([traces]).finish();
    assert_eq!(outcome.status, 0, "{outcome:#?}");
    let document: Value = serde_json::from_str(&outcome.stdout.join("\n")).unwrap();
    document["rows"].as_array().unwrap().clone()
}

/// The row of a rank and a part; null where there is none.
fn row(rows: &[Value], rank: u32, part: &str) -> Value {
    let is_it = |row: &&Value| row["rank"] == rank && row["part"] == part;
    rows.iter().find(is_it).cloned().unwrap_or_default()
}

/// What a recorded program's own receives are like is what it does; those of its broadcasts are the library's.
#[test]
fn a_recorded_program_is_told_apart_from_the_library() {
    let program = program("matching");
    let recorded = |broadcasts: &str| {
        let traces = tempfile::tempdir().unwrap();
        let options = [
            "--record",
            traces.path().to_str().unwrap(),
            // Ranks on one host share a board otherwise.
            "--coll-algorithm",
            "broadcast:binomial",
        ];
        let job = run_line(3, &options).args([program.as_os_str(), OsStr::new(broadcasts)]);
        let outcome = job.finish();
        assert_eq!(outcome.status, 0, "{outcome:#?}");
        outcome.line(&format!("matching: {broadcasts} broadcasts"));
        counted(traces.path())
    };
    let (without, with) = (recorded("0"), recorded("5"));
    for of in [&without, &with] {
        let first = row(of, 0, "program");
        assert_eq!(
            (&first["posts"], &first["arrivals"]),
            (&7.into(), &7.into()),
            "{first}"
        );
        // The messages of rank 1 come in the reverse order of their receives.
        let depth = &first["receives"]["hit_depth"];
        assert_eq!(
            (&depth["count"], &depth["mean"], &depth["max"]),
            (&4.into(), &2.5.into(), &4.into()),
            "{first}"
        );
        // Receives take the last of three messages, the last of two, and the one that is left.
        assert_eq!(first["unexpected_share"], 3.0 / 7.0, "{first}");
        assert_eq!(
            (&first["any_source"], &first["any_tag"]),
            (&1.into(), &1.into()),
            "{first}"
        );
        assert_eq!(row(of, 1, "program")["posts"], 1);
        assert_eq!(row(of, 2, "program")["posts"], Value::Null);
    }
    let posts = |row: Value| row["posts"].as_u64().unwrap_or_default();
    for (rank, receives) in [(0, 0), (1, 5), (2, 5)] {
        let [before, after] = [&without, &with].map(|of| posts(row(of, rank, "internal")));
        assert_eq!(after - before, receives, "rank {rank}");
    }
}

/// `ci/match-programs` makes the table of docs/engines.md: it builds a program, has it recorded, and prints its row.
#[test]
fn the_table_of_programs_has_a_row_for_one_that_is_described() {
    if !has_command(
        "the_table_of_programs_has_a_row_for_one_that_is_described",
        "python3",
    ) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let sources = folder.path().join("suites/apps/own");
    let list = folder.path().join("list");
    for made in [&sources, &list] {
        fs::create_dir_all(made).unwrap();
    }
    for file in ["matching.c", "check.h"] {
        let from = root.join("cli/tests/programs/mpi").join(file);
        fs::copy(from, sources.join(file)).unwrap();
    }
    let description = format!(
        "what = \"a program\"\nlanguages = [\"C\"]\nsource = {{ git = \"none\", revision = \"{}\" }}\n\
         build = [\"mpicc matching.c -o own\"]\n[[run]]\nranks = [3]\nline = \"$MPIEXEC -n $N ./own 0\"\nright = [\"0 broadcasts\"]\n",
        "0".repeat(40)
    );
    fs::write(list.join("own.toml"), description).unwrap();
    let output = Command::new(root.join("ci/match-programs"))
        .args(["--only", "^own$", "--list"])
        .arg(&list)
        .arg("--prefix")
        .arg(tree())
        .env("MPI_SUITES", folder.path().join("suites"))
        .env("CARGO_TARGET_DIR", folder.path().join("target"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    let rows: Vec<&str> = text.lines().collect();
    // Eight receives of three ranks, two of them wildcards.
    assert_eq!(rows.len(), 3, "{text}");
    assert!(rows[2].starts_with("| own | 3 | 3 | "), "{text}");
    assert!(rows[2].contains(" | 25.0 % | "), "{text}");
}

/// The program never initializes the world model: its ranks leave the job at their exit.
#[test]
fn programs_may_have_sessions_alone() {
    let program = program("sessions");
    for ranks in [1, 2, 3] {
        let alone = [program.as_os_str(), OsStr::new("alone")];
        let outcome = run_line(ranks, &[]).args(alone).finish();
        good("sessions", ranks, &outcome);
    }
}

/// Without a launcher a program is a job of one.
#[test]
fn a_program_runs_alone() {
    let output = Command::new(program("messages")).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    assert_eq!(text, "messages: 1 ranks, good\n");
}

#[test]
fn programs_run_over_networks_and_where_the_transport_matches() {
    for name in ["messages", "windows"] {
        let program = program(name);
        for options in [
            &["-t", "ofi:tcp;ofi_rxm"][..],
            &["-t", "ucx:tcp"],
            &["-t", "shm", "--pml", "cm"],
            &["-t", "ofi:tcp;ofi_rxm", "--pml", "cm"],
            &["-t", "shm", "--shm-cma", "off"],
        ] {
            if has("programs_run_over_networks", options[1]) {
                let outcome = run_line(3, options).args([&program]).finish();
                good(name, 3, &outcome);
            }
        }
    }
}

/// A rank is killed in each synchronization of a window, and in the midst of accumulates: the others' calls end, and they go on.
#[test]
fn a_rank_dies_in_each_synchronization_of_a_window() {
    let test = "a_rank_dies_in_each_synchronization_of_a_window";
    let program = program("window_death");
    let calls = ["fence", "lock", "start", "wait", "free", "changes"];
    for (turn, call) in calls.into_iter().enumerate() {
        let kinds = [("allocate", "shm"), ("create", "shm")];
        let networks = ["ofi:tcp;ofi_rxm", "ucx:tcp,self"];
        let network = ("allocate", networks[turn % networks.len()]);
        for (kind, transport) in kinds.into_iter().chain([network]) {
            if !has(test, transport) {
                continue;
            }
            let options = ["--on-failure", "continue", "-t", transport];
            let line = run_line(3, &options).args([program.as_os_str()]);
            // Over a network each change takes several messages there and back.
            let changes = if transport == "shm" { "20000" } else { "200" };
            let outcome = line.args([call, kind, changes]).finish();
            let what = format!("{call}, {kind}, {transport}");
            assert_eq!(outcome.status, KILLED, "{what}: {outcome:#?}");
            for rank in [0, 2] {
                outcome.line(&format!("{rank} went on"));
            }
        }
    }
}

/// Hydra, gforker and PRRTE, as far as they are here.
#[test]
fn programs_run_under_other_launchers() {
    let programs = ["messages", "heat"].map(|name| (name, program(name)));
    let mut all = of_mpich("MPI programs under other launchers");
    all.extend(of_open_mpi("MPI programs under other launchers"));
    for launcher in all {
        for (name, program) in &programs {
            let outcome = launcher.line(3).args([program]).finish();
            assert_eq!(outcome.status, 0, "{}: {outcome:#?}", launcher.name);
            good(name, 3, &outcome);
        }
    }
}

/// `srun`, by its plugins for both interfaces and without any. Ranks that hang say there too what they wait for.
#[test]
fn programs_run_under_slurm() {
    let Some(slurm) = Slurm::start("MPI programs under Slurm") else {
        return;
    };
    let (messages, hang) = (program("messages"), program("hang"));
    for launcher in slurm.launchers() {
        let outcome = launcher.line(2).args([&messages]).finish();
        assert_eq!(outcome.status, 0, "{}: {outcome:#?}", launcher.name);
        good("messages", 2, &outcome);
        ranks_answer_under(&launcher, &hang);
    }
}

#[test]
fn errors_are_as_the_standard_says() {
    let program = program("misplaced");
    let run = |what: &str| run_line(1, &[]).args([&program]).args([what]).finish();
    for what in ["", "return", "unsupported"] {
        let outcome = run(what);
        assert_eq!(outcome.status, 0, "{what}: {outcome:#?}");
        outcome.line("good");
    }
    for (what, says) in [
        ("before", "MPI_Comm_rank was called before MPI_Init"),
        ("after", "MPI_Barrier was called after MPI_Finalize"),
        ("fatal", "MPI_Send: there is no rank 99 in a group of 1"),
    ] {
        let outcome = run(what);
        assert_ne!(outcome.status, 0, "{what}: {outcome:#?}");
        assert!(outcome.errors().contains(says), "{what}: {outcome:#?}");
    }
    // Whose message was cut off, and both lengths, once.
    let says = "rank 0: MPI_Wait: the message from rank 0 with tag 9 has 40 bytes, and the receive had room for 16 bytes: the rest is lost (MPI_ERR_TRUNCATE): ending the job";
    let outcome = run("truncated");
    assert!(outcome.errors().contains(says), "{outcome:#?}");
    let outcome = run_line(2, &[]).args([&program]).args(["counts"]).finish();
    let errors = outcome.errors();
    for part in [
        "MPI_Allreduce: rank ",
        "bytes to a collective",
        "--coll-check on",
    ] {
        assert!(errors.contains(part), "{part}: {outcome:#?}");
    }
    let mut refused = Command::new(&program);
    refused
        .arg("session")
        .env("TAGWIRE_TRANSPORT", "no-such-transport");
    let refused = refused.output().unwrap();
    assert!(refused.status.success(), "{refused:?}");
    assert_eq!(refused.stdout, b"good\n");
    assert_eq!(run("abort").status, 7);
    let outcome = run("leave");
    assert_eq!(outcome.status, 3, "{outcome:#?}");
}

/// What ranks have printed when one ends the job is not lost, nor what that one prints while it leaves.
#[test]
fn the_output_of_a_job_that_aborts_is_not_lost() {
    let program = program("abort");
    for (how, status) in [("abort", 3), ("error", 6)] {
        for _ in 0..4 {
            let outcome = run_line(2, &[]).args([&program]).args([how]).finish();
            assert_eq!(outcome.status, status, "{how}: {outcome:#?}");
            outcome.line("bad input: giving up");
            outcome.line("written at the exit");
            outcome.line("printed by another");
        }
    }
    let mut all = of_mpich("an MPI program that aborts");
    all.extend(of_open_mpi("an MPI program that aborts"));
    for launcher in all {
        let line = launcher.line(2).args([&program]).args(["abort"]);
        line.finish().line("bad input: giving up");
    }
}

/// A rank of Fortran prints each record at once, as one of C does each line, unless the user says otherwise.
#[test]
fn ranks_of_fortran_print_each_record() {
    const PRINTED: &str = "GFORTRAN_UNBUFFERED_PRECONNECTED";
    let said = format!("echo said ${PRINTED}");
    for (own, expected) in [(None, "said y"), (Some("n"), "said n")] {
        let mut line = run_line(1, &[]).args(["sh", "-c", &said]);
        if let Some(own) = own {
            line = line.env(PRINTED, own);
        }
        line.finish().line(expected);
    }
}

/// Exceptions leave error handlers and functions of attributes for the program; out of an operation they end it with a sentence.
#[test]
fn exceptions_reach_the_program_where_they_can() {
    if !has_command("exceptions_reach_the_program_where_they_can", "c++") {
        return;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/mpi/throwing.cpp");
    let folder = TempDir::new().unwrap();
    let program = folder.path().join("throwing");
    let files = [source.to_str().unwrap(), "-o", program.to_str().unwrap()];
    said("mpicxx", &files);
    let run = |what: &str| run_line(2, &[]).args([&program]).args([what]).finish();
    for what in ["handler", "attribute"] {
        let outcome = run(what);
        assert_eq!(outcome.status, 0, "{what}: {outcome:#?}");
        outcome.line(&format!("{what}: 2 ranks, good"));
    }
    let outcome = run("operation");
    assert_ne!(outcome.status, 0, "{outcome:#?}");
    let errors = outcome.errors();
    assert!(
        errors.contains("an exception left the function of a reduction"),
        "{outcome:#?}"
    );
    assert!(!errors.contains("panic"), "{outcome:#?}");
}

/// A rank of MPI that hangs says what it waits for when it is asked: by the signal, by the launcher, and at the job's bound.
/// Whoever handles the signal already keeps it, and once a rank has left the job the signal ends its process.
#[test]
fn ranks_that_hang_say_what_they_wait_for() {
    let program = program("hang");
    let mut job = run_line(2, &[]).args([&program]).args(["hang"]).start();
    answers(&mut job, 1);
    // Before then the signal finds nobody who would answer.
    job.hear("rank 0 is process ");
    kill_process(job.launcher(), Signal::USR1).unwrap();
    job.hear(&waits(0));
    kill_process(job.launcher(), Signal::TERM).unwrap();
    assert_eq!(job.finish().status, 128 + 15);

    let late = run_line(2, &["--timeout", "1s"]).args([&program]);
    let outcome = late.args(["hang"]).finish();
    for number in [0, 1] {
        assert!(outcome.errors().contains(&waits(number)), "{outcome:#?}");
    }
    let late = run_line(2, &["--timeout", "1s"]).args([&program]);
    let outcome = late.args(["mixed"]).finish();
    for part in [
        "Synchronous send to rank 1, tag 9, ocean, 64 bytes",
        "    Allreduce of ocean",
        "waits for the others in a collective operation of MPI_COMM_WORLD: Allreduce",
        "--coll-check on",
    ] {
        assert!(outcome.errors().contains(part), "{part}: {outcome:#?}");
    }
    let end = |how| {
        run_line(2, &[])
            .args([&program])
            .args([how])
            .finish()
            .status
    };
    assert_eq!((end("own"), end("after")), (0, 128 + 10));
}

/// What rank `number` of two that hang waits for.
fn waits(number: u32) -> String {
    format!("receive from rank {}, tag 7, MPI_COMM_WORLD", 1 - number)
}

/// Asks a rank that hangs by the signal, hears what it waits for, and returns its process.
fn answers(job: &mut Job, number: u32) -> Pid {
    let begun = job.hear(&format!("rank {number} is process "));
    let process = begun.rsplit(' ').next().unwrap().parse().unwrap();
    let process = Pid::from_raw(process).unwrap();
    kill_process(process, Signal::USR1).unwrap();
    job.hear(&format!("tagwire: rank {number} of 2"));
    job.hear(&waits(number));
    process
}

/// The ranks' processes answer the signal, whoever has started them.
fn ranks_answer_under(launcher: &Launcher, program: &Path) {
    let mut job = launcher.line(2).args([program]).args(["hang"]).start();
    let processes = [0, 1].map(|number| answers(&mut job, number));
    kill_process(processes[0], Signal::KILL).unwrap();
    // With which status is the launcher's affair.
    job.finish();
}

/// Hydra of MPICH and of Intel MPI, gforker and PRRTE, as far as they are here.
#[test]
fn ranks_that_hang_answer_under_other_launchers() {
    let test = "what MPI programs wait for under other launchers";
    let program = program("hang");
    let mut all = of_mpich(test);
    all.extend(of_intel_mpi(test));
    all.extend(of_open_mpi(test));
    for launcher in all {
        ranks_answer_under(&launcher, &program);
    }
}

/// Compiles with the system's compiler.
fn cc(arguments: &[&OsStr]) {
    let output = Command::new("cc").args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
}

/// A program for another library's interface would be as many jobs as it has ranks.
#[test]
fn a_program_of_another_interface_is_refused() {
    let folder = TempDir::new().unwrap();
    let source = folder.path().join("program.c");
    fs::write(&source, "int main(void) { return 0; }").unwrap();
    for (name, maker, compiler) in [
        ("libmpi.so.12", "MPICH", "mpicc"),
        ("libmpi.so.40", "Open MPI", "mpicc"),
        // Fortran, linked with --as-needed.
        ("libmpifort.so.12", "MPICH", "mpifort"),
        ("libmpi_mpifh.so.40", "Open MPI", "mpifort"),
    ] {
        let library = folder.path().join(name);
        let soname = format!("-Wl,-soname,{name}");
        let shared = ["-shared", "-x", "c", "/dev/null", &soname, "-o"].map(OsStr::new);
        cc(&[&shared[..], &[library.as_os_str()]].concat());
        let program = folder.path().join("program");
        let path = format!("-Wl,-rpath,{}", folder.path().display());
        let options = ["-Wl,--no-as-needed", &path, "-o"].map(OsStr::new);
        let files = [&program, &source, &library].map(|file| file.as_os_str());
        cc(&[&options[..], &files[..]].concat());
        let refused = run_line(2, &[]).args([&program]).finish();
        assert_eq!(refused.status, 1, "{refused:#?}");
        for part in [name, maker, compiler] {
            assert!(refused.errors().contains(part), "{part}: {refused:#?}");
        }
        // Alone it is a job of one anyway.
        assert_eq!(run_line(1, &[]).args([&program]).finish().status, 0);
        fs::remove_file(&library).unwrap();
        let refused = run_line(1, &[]).args([&program]).finish();
        assert_eq!(refused.status, 1, "{refused:#?}");
        assert!(refused.errors().contains(name), "{refused:#?}");
    }
}

/// Without a run path, and without `LD_LIBRARY_PATH`.
#[test]
fn a_library_that_the_loader_does_not_find_is_named() {
    let folder = TempDir::new().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/mpi/messages.c");
    let program = folder.path().join("messages");
    let include = format!("-I{}", tree().join("include").display());
    let search = format!("-L{}", tree().join("lib").display());
    let files = [source.as_os_str(), OsStr::new("-o"), program.as_os_str()];
    let options = [include.as_ref(), search.as_ref(), OsStr::new("-lmpi_abi")];
    cc(&[&files[..], &options[..]].concat());
    // By a relative name, from the folder of the job.
    let directory = folder.path().to_str().unwrap();
    let refused = run_line(2, &["--wdir", directory]);
    let refused = refused.args(["./messages"]).finish();
    assert_eq!(refused.status, 1, "{refused:#?}");
    for part in ["libmpi_abi.so.1", "not found", "LD_LIBRARY_PATH"] {
        assert!(refused.errors().contains(part), "{part}: {refused:#?}");
    }
    let set = format!("LD_LIBRARY_PATH={}", tree().join("lib").display());
    let found = run_line(2, &["--wdir", directory, "-x", &set]);
    let outcome = found.args(["./messages"]).finish();
    good("messages", 2, &outcome);
}

/// Runs the tree's `mpiexec` on two ranks of a program.
fn by_the_tree(program: &Path) -> Outcome {
    let options = [OsStr::new("-n"), OsStr::new("2"), program.as_os_str()];
    Line::of(&tree().join("bin/mpiexec"), options).finish()
}

/// Compiles `messages.c` without the tree's `mpicc`, with these options of the linker.
fn by_another_compiler(folder: &Path, options: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/mpi/messages.c");
    let program = folder.join("messages");
    let include = format!("-I{}", tree().join("include").display());
    let search = format!("-L{}", tree().join("lib").display());
    let files = [source.as_os_str(), OsStr::new("-o"), program.as_os_str()];
    let own = [include.as_ref(), search.as_ref(), OsStr::new("-lmpi_abi")];
    let options: Vec<_> = options.iter().map(OsStr::new).collect();
    cc(&[&files[..], &own[..], &options].concat());
    program
}

/// As `rustc` links it, or a compiler with `-L` alone.
#[test]
fn the_trees_mpiexec_has_its_library_found() {
    let folder = TempDir::new().unwrap();
    let program = by_another_compiler(folder.path(), &[]);
    good("messages", 2, &by_the_tree(&program));
    // What a shell starts is no program of MPI to anybody who looks.
    let line = format!("exec {}", program.display());
    let words = ["-n", "2", "sh", "-c", &line];
    let outcome = Line::of(&tree().join("bin/mpirun"), words).finish();
    good("messages", 2, &outcome);
}

/// A program that another library's compiler made for the same interface has that library in its run path: with it each rank
/// would be a job of its own.
#[test]
fn another_library_of_the_interface_does_not_make_jobs_of_one() {
    let folder = TempDir::new().unwrap();
    let library = folder.path().join("libmpi_abi.so.1");
    let shared = [
        "-shared",
        "-x",
        "c",
        "/dev/null",
        "-Wl,-soname,libmpi_abi.so.1",
        "-o",
    ];
    cc(&[&shared.map(OsStr::new)[..], &[library.as_os_str()]].concat());
    let path = format!("-Wl,-rpath,{}", folder.path().display());
    let (program, library) = (
        by_another_compiler(folder.path(), &[&path, "-Wl,--enable-new-dtags"]),
        library.display(),
    );
    good("messages", 2, &by_the_tree(&program));
    // Outside of a tree there is no other library to be found.
    let shown = program.display();
    let said = format!(
        "tagwire: run: {shown} would load {library}, which is not Tagwire's, and each rank here would be a job of its own: "
    );
    let refused = run_line(2, &[]).args([&program]).finish();
    let way_out = "start it by the mpiexec beside PREFIX/bin/mpicc, which 'tagwire mpi install PREFIX' writes, or set LD_LIBRARY_PATH to the 'lib' beside that 'bin'";
    assert_eq!(
        (refused.status, refused.errors()),
        (1, said.clone() + way_out)
    );
    // An older kind of run path comes before all else.
    let program = by_another_compiler(folder.path(), &[&path, "-Wl,--disable-new-dtags"]);
    let refused = by_the_tree(&program);
    let way_out =
        "its run path (DT_RPATH) comes before LD_LIBRARY_PATH: link it with -Wl,--enable-new-dtags";
    let said = said.replace("tagwire: run:", "mpiexec:") + way_out;
    assert_eq!((refused.status, refused.errors()), (1, said));
}

/// The same with MPICH's own compiler for the interface.
#[test]
fn programs_of_mpichs_compiler_are_one_job() {
    let compiler = wheels::environment("mpich").map(|root| root.join("bin/mpicc_abi"));
    let Some(compiler) = compiler.filter(|compiler| compiler.is_file()) else {
        eprintln!("SKIPPED: programs_of_mpichs_compiler_are_one_job: no mpicc_abi of MPICH");
        return;
    };
    let folder = TempDir::new().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/mpi/messages.c");
    let program = folder.path().join("messages");
    let compiled = Command::new(&compiler)
        .args([source.as_os_str(), OsStr::new("-o"), program.as_os_str()])
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{compiled:?}");
    good("messages", 2, &by_the_tree(&program));
}

/// A rank that is missing is named by the launcher. What the others would say of it is no news.
#[test]
fn one_cause_is_one_line() {
    let program = program("messages");
    let line = format!(
        "[ $TAGWIRE_RANK = 1 ] && exit 3; exec {}",
        program.display()
    );
    let words = ["-n", "4", "sh", "-c", &line];
    let outcome = Line::of(&tree().join("bin/mpiexec"), words).finish();
    assert_eq!(outcome.status, 3, "{outcome:#?}");
    let lines = outcome.stderr.iter();
    let lines: Vec<_> = lines
        .filter(|line| !line.contains("they take turns"))
        .collect();
    assert_eq!(lines.len(), 1, "{outcome:#?}");
    assert!(lines[0].ends_with(" ended with status 3: ending the job"));
}

#[test]
fn each_program_of_a_job_knows_its_number() {
    let program = program("applications");
    let program = program.to_str().unwrap();
    let line = [
        "-n", "1", program, ":", "-n", "2", program, ":", "-n", "1", program,
    ];
    let outcome = Line::of(&tree().join("bin/mpiexec"), line).finish();
    assert_eq!(outcome.status, 0, "{outcome:#?}");
    assert_eq!(outcome.stdout, ["applications: 0 1 1 2"]);
}

/// What build systems ask for.
#[test]
fn compilers_say_what_they_do() {
    let prefix = tree().to_str().unwrap();
    let shown = said("mpicc", &["-show", "a.c"]);
    assert!(
        shown.starts_with("cc ") && shown.contains("-lmpi_abi"),
        "{shown}"
    );
    assert_eq!(
        said("mpicc", &["-showme:incdirs"]),
        format!("{prefix}/include\n")
    );
    assert_eq!(
        said("mpicxx", &["-showme:libdirs"]),
        format!("{prefix}/lib\n")
    );
    assert!(said("mpicxx", &["-showme:link"]).contains("-rpath"));
    assert!(said("mpicc", &["-compile-info"]).starts_with("cc -I"));
    assert!(said("mpicc", &["--version"]).contains("cc"));
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        said("mpicxx", &["--showme:version"]),
        format!("mpicxx: Tagwire {version} (Language: C++)\n")
    );
    assert_eq!(
        said("mpicc", &["-v"]),
        format!("mpicc of Tagwire {version}\n")
    );
    assert!(said("mpicc", &["-cc=gcc-x", "-show"]).starts_with("gcc-x -I"));
    for name in ["mpi", "mpi_abi"] {
        let file = tree().join(format!("lib/pkgconfig/{name}.pc"));
        let text = fs::read_to_string(file).unwrap();
        assert!(text.contains(&format!("Name: {name}\n")), "{text}");
    }
    assert!(tree().join("share/man/man1/mpiexec.1").is_file());
    // Anywhere among the options, and as a shell reads it again.
    let shown = said(
        "mpicc",
        &["-O2", "a.c", "-show", "-DA=\"it's\"", "-o", "b c"],
    );
    assert!(!shown.contains("-show"), "{shown}");
    let words = Command::new("sh")
        .args(["-c", &format!("printf '<%s>' {shown}")])
        .output();
    let words = String::from_utf8(words.unwrap().stdout).unwrap();
    assert!(
        words.contains("<-O2><a.c><-DA=\"it's\"><-o><b c><-L"),
        "{words}"
    );
    assert!(!said("mpicc", &["-c", "a.c", "-show"]).contains("-lmpi_abi"));
    for (name, named) in [("mpicc", "-cc=c-x"), ("mpicxx", "-cxx=c-x")] {
        for option in [
            "-showme:compile",
            "--showme:libs",
            "-compile-info",
            "-link_info",
        ] {
            let answer = said(name, &[option, named]);
            let words = ["-O2", "a.c", named, "-c", option, "-DA"];
            assert_eq!(said(name, &words), answer, "{name} {option}");
        }
        let shown = said(name, &["a.c", "-showme:command", named]);
        assert_eq!(shown, "c-x\n", "{name}");
    }
    // The name of a file.
    let shown = said("mpicc", &["a.c", "-o", "-showme:libs", "-show"]);
    assert!(shown.contains(" -o -showme:libs "), "{shown}");
    let outcome = Command::new(tree().join("bin/mpiexec"))
        .args(["-n", "2", "--hostfile", "hosts", "true"])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&outcome.stderr);
    assert!(!outcome.status.success());
    assert_eq!(
        errors,
        "mpiexec: hosts: No such file or directory (os error 2)\n"
    );
}

/// A program that comes by a pipe is linked.
#[test]
fn a_source_may_come_by_a_pipe() {
    let folder = TempDir::new().unwrap();
    let (source, program) = (folder.path().join("a.c"), folder.path().join("a"));
    let text = "#include <mpi.h>\nint main(void) { return MPI_Init(0, 0) || MPI_Finalize(); }\n";
    fs::write(&source, text).unwrap();
    let compiled = Command::new(tree().join("bin/mpicc"))
        .args(["-x", "c", "-", "-o"])
        .arg(&program)
        .stdin(fs::File::open(&source).unwrap())
        .status();
    assert!(compiled.unwrap().success());
    assert!(Command::new(&program).status().unwrap().success());
}

/// The tree is moved, and programs are compiled and started by what is in it.
#[test]
fn a_tree_can_be_moved() {
    let folder = TempDir::new().unwrap();
    let moved = folder.path().join("elsewhere");
    let copied = Command::new("cp")
        .args([OsStr::new("-a"), tree().as_os_str(), moved.as_os_str()])
        .status();
    assert!(copied.unwrap().success());
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/mpi/heat.c");
    let program = folder.path().join("heat");
    let compiled = Command::new(moved.join("bin/mpicc"))
        .args([source.as_os_str(), OsStr::new("-o"), program.as_os_str()])
        .arg("-lm")
        .status();
    assert!(compiled.unwrap().success());
    let output = Command::new(moved.join("bin/mpiexec"))
        .args(["-n", "2"])
        .arg(&program)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("heat: 2 ranks"), "{output:?}");
}

#[test]
fn a_library_that_is_not_there_is_named() {
    let folder = TempDir::new().unwrap();
    let refused = Line::new(["mpi", "install"])
        .args([folder.path()])
        .args(["--library", "/no/such/libmpi_abi.so"])
        .finish();
    assert_eq!(refused.status, 1, "{refused:#?}");
    assert!(refused.errors().contains("/no/such/libmpi_abi.so"));
}
