use std::time::Duration;

use super::*;
use crate::clock::{Clock, ManualClock};

/// A machine made of files.
fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}

fn cpu_files(cpu: u32, package: u32, core: u32, siblings: &str) -> Vec<(String, String)> {
    let below = |file: &str| format!("sys/devices/system/cpu/cpu{cpu}/{file}");
    vec![
        (
            below("topology/physical_package_id"),
            format!("{package}\n"),
        ),
        (below("topology/core_id"), format!("{core}\n")),
        (
            below("topology/thread_siblings_list"),
            format!("{siblings}\n"),
        ),
        (
            below("cpufreq/scaling_governor"),
            "performance\n".to_owned(),
        ),
    ]
}

#[test]
fn a_machine_of_two_packages_with_two_threads_per_core() {
    let mut files = vec![
        ("proc/sys/kernel/hostname", "node7\n"),
        ("proc/sys/kernel/osrelease", "6.1.2-test\n"),
        (
            "proc/cpuinfo",
            "processor\t: 0\nmodel name\t: Fast(R) CPU\nflags\t\t: fpu hypervisor sse\n\n\
             processor\t: 1\nmodel name\t: Fast(R) CPU\n",
        ),
        (
            "proc/thread-self/status",
            "Name:\tx\nSeccomp:\t2\nCpus_allowed_list:\t1-2\n",
        ),
        ("proc/meminfo", "MemTotal:       1024 kB\nMemFree: 7 kB\n"),
        ("sys/devices/system/cpu/online", "0-3\n"),
        ("proc/sys/kernel/yama/ptrace_scope", "1\n"),
        ("sys/devices/system/cpu/isolated", "\n"),
        ("sys/devices/system/cpu/intel_pstate/no_turbo", "1\n"),
        ("sys/devices/system/node/node1/cpulist", "1,3\n"),
        ("sys/devices/system/node/node0/cpulist", "0,2\n"),
        ("sys/devices/system/node/possible", "0-1\n"),
        (
            "sys/devices/system/clocksource/clocksource0/current_clocksource",
            "tsc\n",
        ),
    ];
    let cpus: Vec<_> = [(0, 0, "0,2"), (1, 1, "1,3"), (2, 0, "0,2"), (3, 1, "1,3")]
        .into_iter()
        .flat_map(|(cpu, package, siblings)| cpu_files(cpu, package, 0, siblings))
        .collect();
    files.extend(
        cpus.iter()
            .map(|(path, text)| (path.as_str(), text.as_str())),
    );
    let root = machine(&files);

    let topology = Topology::read(root.path());
    let list = |text: &str| text.parse::<CpuList>().unwrap();
    let expected = Topology {
        host: Some("node7".to_owned()),
        kernel: Some("6.1.2-test".to_owned()),
        cpu_model: Some("Fast(R) CPU".to_owned()),
        virtual_machine: Some(true),
        online: Some(list("0-3")),
        allowed: Some(list("1-2")),
        isolated: None,
        cores: Some(2),
        smt: Some(true),
        numa: vec![
            NumaNode {
                number: 0,
                cpus: list("0,2"),
            },
            NumaNode {
                number: 1,
                cpus: list("1,3"),
            },
        ],
        governors: vec!["performance".to_owned()],
        boost: Some(false),
        clock_source: Some("tsc".to_owned()),
        memory: Some(1 << 20),
        ptrace_scope: Some(1),
        seccomp: Some(2),
    };
    assert_eq!(topology, expected);
}

#[test]
fn an_empty_machine_tells_nothing_and_breaks_nothing() {
    let root = machine(&[]);
    assert_eq!(Topology::read(root.path()), Topology::default());
}

#[test]
fn garbage_is_as_good_as_nothing() {
    let root = machine(&[
        ("sys/devices/system/cpu/online", "every one\n"),
        ("sys/devices/system/cpu/smt/active", "maybe\n"),
        ("sys/devices/system/node/nodeX/cpulist", "0\n"),
        ("proc/meminfo", "MemTotal: 99999999999999999999 kB\n"),
        ("proc/thread-self/status", "Cpus_allowed_list:\t-\n"),
        ("proc/cpuinfo", ":::\n\n"),
    ]);
    assert_eq!(Topology::read(root.path()), Topology::default());
}

#[test]
fn arm_processors_are_named_by_their_numbers() {
    let root = machine(&[(
        "proc/cpuinfo",
        "CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n",
    )]);
    let model = Topology::read(root.path()).cpu_model;
    assert_eq!(model.as_deref(), Some("implementer 0x41 part 0xd0c"));
}

#[test]
fn switched_off_threads_are_no_smt() {
    let root = machine(&[("sys/devices/system/cpu/smt/active", "0\n")]);
    assert_eq!(Topology::read(root.path()).smt, Some(false));
}

#[test]
fn this_machine_has_a_cpu_and_we_may_use_it() {
    let topology = Topology::of_machine();
    let allowed = topology.allowed.unwrap();
    assert!(!allowed.is_empty());
    if let Some(online) = topology.online {
        assert!(allowed.iter().all(|cpu| online.contains(cpu)));
    }
}

#[test]
fn a_bound_thread_knows_its_binding() {
    // In a thread of its own: the binding of the test's thread is nobody's to change.
    let last = binding().unwrap().iter().next_back().unwrap();
    let bound = std::thread::spawn(move || {
        bind_to(last).unwrap();
        (binding(), Topology::of_machine().allowed)
    });
    let only: CpuList = [last].into_iter().collect();
    assert_eq!(bound.join().unwrap(), (Some(only.clone()), Some(only)));
}

#[test]
fn a_cpu_that_is_not_there_is_refused_by_name() {
    for cpu in [1023, 1 << 20] {
        let error = bind_to(cpu).unwrap_err().to_string();
        assert!(error.contains(&format!("CPU {cpu} (allowed: ")), "{error}");
    }
}

#[test]
fn the_cost_of_a_clock_is_its_cheapest_series() {
    // Costs 7 ns a look, except in its first series, where it stumbles.
    let hand = ManualClock::default();
    let clock = hand.clock();
    let cost = clock_cost_ns(|| {
        let step = if clock.now().as_nanos() < 100 { 900 } else { 7 };
        hand.advance(Duration::from_nanos(step));
        clock.now()
    });
    assert!((cost - 7.0).abs() < 1e-9, "{cost}");
    let real = clock_cost_ns(|| Clock::default().now());
    assert!(real > 0.0 && real < 1e6, "{real}");
}
