//! Ranks on two hosts: network namespaces of this machine with a cable between them.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod process;

use std::path::Path;
use std::process::{Command, Output};
use std::time::Instant;

use process::{Job, Line, eventually, has_libfabric, is_root, tagwire};

/// What a rank has to know of the other's end within: the store's connection is given up after
/// four seconds of silence and looked at ten times a second.
const STATED_SECONDS: f64 = 6.0;

/// Two hosts, named after this process so that tests of others do not meet them.
struct Hosts {
    names: [String; 2],
    addresses: [String; 2],
}

fn ip(arguments: &str) -> Output {
    let words = arguments.split_whitespace();
    Command::new("ip").args(words).output().unwrap()
}

impl Hosts {
    /// `None`, said aloud, where no hosts can be made.
    fn make(test: &str, net: u8) -> Option<Self> {
        if !is_root(test) {
            return None;
        }
        if Command::new("ip").arg("-V").output().is_err() {
            eprintln!("SKIPPED: {test} needs the command ip (package iproute2)");
            return None;
        }
        let id = std::process::id();
        let hosts = Self {
            names: [
                format!("tagwire-{id}-{net}a"),
                format!("tagwire-{id}-{net}b"),
            ],
            addresses: [format!("10.231.{net}.1"), format!("10.231.{net}.2")],
        };
        let [a, b] = &hosts.names;
        let [first, second] = &hosts.addresses;
        for line in [
            format!("netns add {a}"),
            format!("netns add {b}"),
            format!("-n {a} link add eth0 type veth peer name eth0 netns {b}"),
            format!("-n {a} address add {first}/24 dev eth0"),
            format!("-n {b} address add {second}/24 dev eth0"),
            format!("-n {a} link set eth0 up"),
            format!("-n {b} link set eth0 up"),
            format!("-n {a} link set lo up"),
            format!("-n {b} link set lo up"),
        ] {
            let output = ip(&line);
            if !output.status.success() {
                let said = String::from_utf8_lossy(&output.stderr);
                eprintln!("SKIPPED: {test} needs network namespaces: ip {line}: {said}");
                return None;
            }
        }
        // The kernel takes its time to see a carrier.
        for name in &hosts.names {
            eventually("the cable carries", || {
                let shown = ip(&format!("-n {name} -o link show eth0")).stdout;
                String::from_utf8_lossy(&shown).contains("state UP")
            });
        }
        Some(hosts)
    }

    fn tagwire(&self, host: usize, arguments: &[&str]) -> Job {
        let inside = ["netns", "exec", &self.names[host]];
        Line::of(Path::new("ip"), inside)
            .args([tagwire()])
            .args(arguments)
            .start()
    }

    fn cut_the_cable(&self) {
        assert!(
            ip(&format!("-n {} link set eth0 down", self.names[0]))
                .status
                .success()
        );
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = ip(&format!("netns delete {name}"));
        }
    }
}

#[test]
fn a_benchmark_runs_between_two_hosts() {
    let test = "a_benchmark_runs_between_two_hosts";
    let Some(hosts) = Hosts::make(test, 1).filter(|_| has_libfabric(test)) else {
        return;
    };
    let place = format!("{}:7471", hosts.addresses[0]);
    let options = ["-t", "ofi:tcp;ofi_rxm", "-m", "8,64K,1M", "-i", "5", "-c"];
    let mut listener = hosts.tagwire(
        0,
        &[&["bench", "latency", "--listen", &place], &options[..]].concat(),
    );
    listener.hear("listening at");
    let connector = hosts.tagwire(1, &["bench", "latency", "--connect", &place]);
    let outcome = listener.finish();
    assert_eq!(outcome.status, 0, "{outcome:#?}");
    let rows = outcome.stdout.iter().filter(|line| !line.starts_with('#'));
    assert_eq!(rows.count(), 3, "{outcome:#?}");
    let outcome = connector.finish();
    assert_eq!(outcome.status, 0, "{outcome:#?}");
}

#[test]
fn a_cut_cable_ends_the_run_on_both_sides() {
    let test = "a_cut_cable_ends_the_run_on_both_sides";
    let Some(hosts) = Hosts::make(test, 2).filter(|_| has_libfabric(test)) else {
        return;
    };
    let place = format!("{}:7471", hosts.addresses[0]);
    let options = ["-t", "ofi:tcp;ofi_rxm", "-m", "8:64K", "-i", "30000"];
    let mut listener = hosts.tagwire(
        0,
        &[&["bench", "latency", "--listen", &place], &options[..]].concat(),
    );
    listener.hear("listening at");
    let connector = hosts.tagwire(1, &["bench", "latency", "--connect", &place]);
    listener.hear("# Size");
    hosts.cut_the_cable();
    let cut = Instant::now();
    for (side, job) in [("listens", listener), ("connects", connector)] {
        let outcome = job.finish();
        let seconds = cut.elapsed().as_secs_f64();
        println!(
            "the side that {side} ended {seconds:.1} s after the cut; {STATED_SECONDS} are stated"
        );
        assert_eq!(outcome.status, 2, "{outcome:#?}");
        assert!(outcome.errors().contains("failed"), "{outcome:#?}");
    }
}
