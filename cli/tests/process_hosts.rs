//! Ranks on two hosts: network namespaces of this machine with a cable between them.
use std::ffi::OsString;
use std::time::Instant;

use crate::process::hosts::Hosts;
use crate::process::installed::program;
use crate::process::launchers::of_hosts;
use crate::process::{Job, Outcome, example, has, has_libfabric, secret, tagwire};

/// What both sides end within: the store's connection is given up after four seconds of silence, which
/// the system looks at once a second, and a rank ten times a second; goodbyes take half a second at most.
/// docs/failures.md and docs/benchmarking.md state it.
const STATED_SECONDS: f64 = 6.0;
/// For machines that do ten other things.
const SLACK: f64 = 2.0;

/// Over a network, and over shared memory for ranks of one host with a network for the others.
#[test]
fn a_benchmark_runs_between_two_hosts() {
    let test = "a_benchmark_runs_between_two_hosts";
    let Some(hosts) = Hosts::make(test, 1, 1) else {
        return;
    };
    let place = format!("{}:7471", hosts.address(0));
    for (transport, network) in [
        ("ofi:tcp;ofi_rxm", "ofi:tcp;ofi_rxm"),
        ("ucx:tcp", "ucx:tcp"),
        ("shm+ucx:tcp,self", "ucx:tcp,self"),
    ] {
        if !has(test, network) {
            continue;
        }
        let options = ["-t", transport, "-m", "8,64K,1M", "-i", "5", "-c"];
        let listener = hosts.listens(&place, &options);
        let connector = hosts.connects(&place, &[]);
        let outcome = listener.finish();
        assert_eq!(outcome.status, 0, "{transport}: {outcome:#?}");
        let rows = outcome.stdout.iter().filter(|line| !line.starts_with('#'));
        assert_eq!(rows.count(), 3, "{transport}: {outcome:#?}");
        let outcome = connector.finish();
        assert_eq!(outcome.status, 0, "{transport}: {outcome:#?}");
    }
}

/// Returns a benchmark of two sizes, with its bytes checked.
fn bench(test: &str) -> Vec<OsString> {
    let words = [
        "bench", test, "-m", "8,64K", "-i", "20", "-c", "--bind", "none",
    ];
    let words = words.map(OsString::from).into_iter();
    [tagwire().into()].into_iter().chain(words).collect()
}

/// Under launchers that start ranks on all hosts, by a remote shell of this test's own. Nobody names a transport: ranks of
/// a host share memory, and a network is between the hosts.
fn jobs_span(test: &str, hosts: &Hosts) {
    let folder = tempfile::tempdir().unwrap();
    let shell = hosts.remote_shell(folder.path());
    let count = hosts.addresses().len();
    let run = |ranks_per_host: usize, program: &[OsString], check: &dyn Fn(&str, &Outcome)| {
        for (name, line) in of_hosts(test, hosts, &shell, ranks_per_host) {
            let outcome = line.args(program).finish();
            assert_eq!(outcome.status, 0, "{name}: {outcome:#?}");
            check(name, &outcome);
        }
    };
    run(2, &[example("ring").into(), "100".into()], &|_, outcome| {
        outcome.line(&format!("{} ranks, {} hops", 2 * count, 200 * count));
    });
    run(2, &[example("halo").into()], &|_, _| ());
    // Latency is of two ranks.
    let (ranks_per_host, benchmark) = if count == 2 {
        (1, "latency")
    } else {
        (2, "ring")
    };
    if count == 2 {
        // Both the layer and the bare transport put their addresses, and choose the network.
        let layers = [bench("latency"), vec!["--layers".into()]].concat();
        run(1, &layers, &|_, _| ());
    }
    run(ranks_per_host, &bench(benchmark), &|name, outcome| {
        let header = outcome.line("# Transport: ");
        let chosen = "# Transport: shm+ofi:tcp;ofi_rxm (the default";
        assert!(header.starts_with(chosen), "{name}: {header}");
        let rows = outcome.stdout.iter().filter(|line| !line.starts_with('#'));
        assert_eq!(rows.count(), 2, "{name}: {outcome:#?}");
    });
}

#[test]
fn a_job_of_another_launcher_spans_two_hosts() {
    let test = "a_job_of_another_launcher_spans_two_hosts";
    if let Some(hosts) = Hosts::make(test, 3, 1).filter(|_| has_libfabric(test)) {
        jobs_span(test, &hosts);
    }
}

#[test]
fn a_job_of_another_launcher_spans_three_hosts() {
    let test = "a_job_of_another_launcher_spans_three_hosts";
    if let Some(hosts) = Hosts::switched(test, 5, 3).filter(|_| has_libfabric(test)) {
        jobs_span(test, &hosts);
    }
}

/// Started by the user on each host.
#[test]
fn parts_that_users_start_are_one_job() {
    let test = "parts_that_users_start_are_one_job";
    let Some(hosts) = Hosts::switched(test, 4, 3).filter(|_| has_libfabric(test)) else {
        return;
    };
    let place = format!("{}:7471", hosts.address(0));
    let programs = [
        (2, vec![example("ring").into(), "100".into()]),
        (3, vec![example("halo").into()]),
        (3, bench("ring")),
    ];
    for (count, program) in &programs {
        let part = |host: usize, options: &[&str]| {
            hosts
                .line(host)
                .args([tagwire()])
                .args(["run", "-n", "2", "--secret", &secret("ours")])
                .args(options)
                .args(["--host", &format!("host-{host}"), "--"])
                .args(program)
                .start()
        };
        let ranks = (2 * count).to_string();
        let first = part(0, &["--of", &ranks, "--listen", &place]);
        let others = (1..*count).map(|host| part(host, &["--connect", &place]));
        for job in [first].into_iter().chain(others.collect::<Vec<_>>()) {
            let outcome = job.finish();
            assert_eq!(outcome.status, 0, "{outcome:#?}");
        }
    }
}

/// Runs an MPI program on two hosts, so many ranks on each. Returns how the job ended on each.
fn spanning(
    hosts: &Hosts,
    counts: [u32; 2],
    options: &[&str],
    program: &[OsString],
) -> Vec<Outcome> {
    let place = format!("{}:7471", hosts.address(0));
    let ranks = counts.iter().sum::<u32>().to_string();
    let part = |host: usize, meeting: &[&str]| {
        hosts
            .line(host)
            .args([tagwire()])
            .args(["run", "-n", &counts[host].to_string()])
            .args([
                "--secret",
                &secret("ours"),
                "--host",
                &format!("host-{host}"),
            ])
            .args(meeting)
            .args(options)
            .args(["--"])
            .args(program)
            .start()
    };
    let first = part(0, &["--of", &ranks, "--listen", &place]);
    let second = part(1, &["--connect", &place]);
    [first, second].into_iter().map(Job::finish).collect()
}

#[test]
fn windows_span_two_hosts() {
    let transports = ["shm+ofi:tcp;ofi_rxm", "shm+ucx:tcp,self"];
    windows_span("windows_span_two_hosts", 8, transports);
}

#[test]
fn windows_span_two_hosts_by_a_network_alone() {
    let transports = ["ofi:tcp;ofi_rxm", "ucx:tcp"];
    windows_span("windows_span_two_hosts_by_a_network_alone", 10, transports);
}

fn windows_span(test: &str, number: u8, transports: [&str; 2]) {
    let Some(hosts) = Hosts::make(test, number, 1) else {
        return;
    };
    let program = [program("windows").into()];
    for transport in transports {
        if !has(test, transport.trim_start_matches("shm+")) {
            continue;
        }
        let outcomes = spanning(&hosts, [2, 2], &["-t", transport], &program);
        for outcome in &outcomes {
            assert_eq!(outcome.status, 0, "{transport}: {outcome:#?}");
        }
        outcomes[0].line("windows: 4 ranks");
    }
}

/// Rank 1 is killed in each synchronization of a window: the calls of those on its own host and on the other end, and they go on.
#[test]
fn a_rank_dies_in_a_window_of_two_hosts() {
    let test = "a_rank_dies_in_a_window_of_two_hosts";
    let Some(hosts) = Hosts::make(test, 9, 1) else {
        return;
    };
    let program: OsString = program("window_death").into();
    let calls = ["fence", "lock", "start", "wait", "free", "changes"];
    let transports = ["shm+ofi:tcp;ofi_rxm", "ucx:tcp,self"];
    for (call, transport) in calls.into_iter().zip(transports.into_iter().cycle()) {
        if !has(test, transport.trim_start_matches("shm+")) {
            continue;
        }
        let program = [program.clone(), call.into(), "create".into(), "200".into()];
        let options = ["-t", transport, "--on-failure", "continue"];
        let outcomes = spanning(&hosts, [2, 1], &options, &program);
        for (rank, outcome) in [0, 2].into_iter().zip(&outcomes) {
            outcome.line(&format!("{rank} went on"));
        }
    }
}

#[test]
fn a_cut_cable_ends_the_run_on_both_sides() {
    let test = "a_cut_cable_ends_the_run_on_both_sides";
    let Some(hosts) = Hosts::make(test, 2, 1).filter(|_| has_libfabric(test)) else {
        return;
    };
    let place = format!("{}:7471", hosts.address(0));
    let options = ["-t", "ofi:tcp;ofi_rxm", "-m", "8:64K", "-i", "30000"];
    let mut listener = hosts.listens(&place, &options);
    let connector = hosts.connects(&place, &[]);
    listener.hear("# Size");
    hosts.cut_the_cable(0);
    let cut = Instant::now();
    for (side, job) in [("listens", listener), ("connects", connector)] {
        let outcome = job.finish();
        let seconds = cut.elapsed().as_secs_f64();
        println!(
            "the side that {side} ended {seconds:.1} s after the cut; {STATED_SECONDS} are stated"
        );
        assert!(
            seconds < SLACK * STATED_SECONDS,
            "{seconds} s: {outcome:#?}"
        );
        assert_eq!(outcome.status, 2, "{outcome:#?}");
        assert!(outcome.errors().contains("failed"), "{outcome:#?}");
    }
}
