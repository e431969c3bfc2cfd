//! The options that people type who know another `mpiexec`: those of the standard (MPI-5.0, section 11.5), of MPICH's Hydra, and
//! of Open MPI. A new one is a line.

/// An option of another `mpiexec`, by its names without the dashes: one or two are the same.
#[derive(Debug)]
pub(super) struct Habit {
    names: &'static [&'static str],
    /// How many words behind it are its values.
    pub(super) values: usize,
    pub(super) means: Means,
}

/// What it means here.
#[derive(Debug, Clone, Copy)]
pub(super) enum Means {
    /// An option of `tagwire run`, with the same value or a fixed one.
    Run(&'static str, Option<&'static str>),
    /// Something that is worked out.
    Work(Work),
    /// What is so anyway.
    Already,
    /// Nothing, and that is said.
    NoEffect,
    /// Something that there is not; what there is instead.
    Refused(&'static str),
}

/// What is worked out of an option.
#[derive(Debug, Clone, Copy)]
pub(super) enum Work {
    Help,
    Version,
    /// Sets a variable for the ranks of the program; of all programs where it is global.
    Variable {
        is_global: bool,
    },
    Bind,
    Hosts,
    HostFile,
    Output,
    PerHost,
    Path,
    Architecture,
    Soft,
    ErrorHandler,
    Lines,
}

const fn habit(names: &'static [&'static str], values: usize, means: Means) -> Habit {
    Habit {
        names,
        values,
        means,
    }
}

const fn run(names: &'static [&'static str], option: &'static str) -> Habit {
    habit(names, 1, Means::Run(option, None))
}

const fn flag(
    names: &'static [&'static str],
    option: &'static str,
    value: Option<&'static str>,
) -> Habit {
    habit(names, 0, Means::Run(option, value))
}

const fn work(names: &'static [&'static str], values: usize, work: Work) -> Habit {
    habit(names, values, Means::Work(work))
}

const fn refused(names: &'static [&'static str], values: usize, instead: &'static str) -> Habit {
    habit(names, values, Means::Refused(instead))
}

const DEBUGGER: &str = "start the debugger as the program, as in 'mpiexec -n 2 xterm -e gdb ./program', or attach it to a rank by its process id";
const ENVIRONMENT: &str =
    "ranks have this command's environment: 'env -i NAME=VALUE mpiexec ...' starts it with less";
const PATTERN: &str = "'--output-dir DIR' writes what rank N says to DIR/rank-N.txt";
const ELSEWHERE: &str = "ranks are started on this host: leave it out, or bring ranks of other hosts by --listen and --connect ('mpiexec --help')";

/// All that are known.
const HABITS: &[Habit] = &[
    work(&["h", "help", "?"], 0, Work::Help),
    work(&["V", "version"], 0, Work::Version),
    run(&["n", "np", "c", "ranks", "nranks"], "--ranks"),
    run(&["wdir", "wd", "dir"], "--wdir"),
    run(&["x"], "-x"),
    run(&["timeout"], "--timeout"),
    run(&["s"], "--stdin"),
    run(&["output-filename", "output-dir"], "--output-dir"),
    run(&["cpu-list", "cpu-set", "cpuset", "slot-list"], "--bind"),
    flag(&["l", "prepend-rank", "tag-output"], "--tag-output", None),
    flag(
        &["disable-auto-cleanup", "enable-recovery", "continuous"],
        "--on-failure",
        Some("continue"),
    ),
    flag(&["bind-to-core"], "--bind", Some("core")),
    flag(&["bind-to-none"], "--bind", Some("none")),
    work(&["bind-to", "binding"], 1, Work::Bind),
    work(&["env"], 1, Work::Variable { is_global: false }),
    work(&["genv"], 1, Work::Variable { is_global: true }),
    work(&["host", "hosts", "H"], 1, Work::Hosts),
    work(
        &["f", "hostfile", "machinefile", "default-hostfile"],
        1,
        Work::HostFile,
    ),
    work(&["output"], 1, Work::Output),
    work(
        &["ppn", "perhost", "npernode", "N", "grr"],
        1,
        Work::PerHost,
    ),
    work(&["path"], 1, Work::Path),
    work(&["arch"], 1, Work::Architecture),
    work(&["soft"], 1, Work::Soft),
    work(&["initial-errhandler"], 1, Work::ErrorHandler),
    work(&["configfile", "app"], 1, Work::Lines),
    // So it is anyway: all variables are the ranks', a failure ends the job, and root may start one.
    habit(
        &[
            "genvall",
            "envall",
            "allow-run-as-root",
            "oversubscribe",
            "abort-on-non-zero-status",
            "enable-auto-cleanup",
            "report-state-on-timeout",
            "q",
            "quiet",
        ],
        0,
        Means::Already,
    ),
    habit(&["genvlist", "envlist"], 1, Means::Already),
    habit(
        &[
            "nooversubscribe",
            "no-oversubscribe",
            "use-hwthread-cpus",
            "report-bindings",
            "display-map",
            "display-allocation",
            "display-topo",
            "display-devel-map",
            "bycore",
            "byslot",
            "bynode",
            "by-core",
            "by-slot",
            "by-node",
            "v",
            "verbose",
            "d",
            "debug-devel",
            "timestamp-output",
            "merge-stderr-to-stdout",
            "noprefix",
            "novm",
            "print-rank-map",
            "print-all-exitcodes",
            "disable-hostname-propagation",
            "enable-hostname-propagation",
            "order-nodes",
            "get-stack-traces",
            "pmi-port",
            "leave-session-attached",
        ],
        0,
        Means::NoEffect,
    ),
    habit(
        &[
            "map-by",
            "rank-by",
            "ranking",
            "mapping",
            "display",
            "cpus-per-proc",
            "cpus-per-rank",
            "npersocket",
            "prefix",
            "tune",
            "am",
            "runtime-options",
            "rtos",
            "personality",
            "dvm",
            "memory-alloc-kinds",
            "launcher",
            "launcher-exec",
            "bootstrap",
            "bootstrap-exec",
            "rmk",
            "iface",
            "membind",
            "demux",
            "topolib",
            "usize",
            "localhost",
            "nameserver",
            "gpus-per-proc",
            "prepend-pattern",
            "max-restarts",
        ],
        1,
        Means::NoEffect,
    ),
    habit(
        &["mca", "gmca", "omca", "prtemca", "pmixmca", "gpmixmca"],
        2,
        Means::NoEffect,
    ),
    refused(&["genvnone", "envnone"], 0, ENVIRONMENT),
    refused(
        &["genvexcl", "envexcl", "genvexcllist", "envexcllist"],
        1,
        ENVIRONMENT,
    ),
    refused(
        &["outfile-pattern", "errfile-pattern", "outfile", "errfile"],
        1,
        PATTERN,
    ),
    refused(
        &["gdb", "gdba", "tv", "ddt", "debug", "valgrind"],
        0,
        DEBUGGER,
    ),
    refused(&["xterm", "debugger"], 1, DEBUGGER),
    refused(&["nolocal"], 0, ELSEWHERE),
    refused(
        &["add-host", "add-hostfile", "rankfile", "rf"],
        1,
        ELSEWHERE,
    ),
    refused(
        &["file"],
        1,
        "its format is each implementation's own: '--configfile FILE' reads lines of 'mpiexec'",
    ),
];

/// Returns the option of this name, without dashes.
pub(super) fn find(name: &str) -> Option<&'static Habit> {
    HABITS.iter().find(|habit| habit.names.contains(&name))
}

/// Returns all names.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    HABITS.iter().flat_map(|habit| habit.names).copied()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_name_is_there_twice() {
        let mut seen = BTreeSet::new();
        assert!(names().all(|name| seen.insert(name)));
    }
}
