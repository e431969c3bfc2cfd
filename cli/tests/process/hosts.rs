//! Hosts: network namespaces of this machine with cables between them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::{Job, Line, eventually, is_root, secret, tagwire};

/// Hosts, named after this process so that tests of others do not meet them. Cable `n` of each is its `ethn`.
pub struct Hosts {
    names: Vec<String>,
    /// Where the cables of more than two hosts meet.
    switch: Option<String>,
    net: u8,
}

fn ip(arguments: &str) -> Output {
    let words = arguments.split_whitespace();
    Command::new("ip").args(words).output().unwrap()
}

impl Hosts {
    /// Returns two hosts with so many cables between them; `None`, said aloud, where no hosts can be made.
    pub fn make(test: &str, net: u8, cables: u8) -> Option<Self> {
        let hosts = Self::named(test, net, 2, false)?;
        let [a, b] = [0, 1].map(|host| hosts.names[host].clone());
        for cable in 0..cables {
            let eth = format!("eth{cable}");
            hosts.ip(
                test,
                &format!("-n {a} link add {eth} type veth peer name {eth} netns {b}"),
            )?;
        }
        hosts.plugged(test, cables)
    }

    /// Returns `count` hosts with a cable each to one switch; `None`, said aloud, where no hosts can be made.
    pub fn switched(test: &str, net: u8, count: usize) -> Option<Self> {
        let hosts = Self::named(test, net, count, true)?;
        let switch = hosts.switch.clone().unwrap_or_default();
        hosts.ip(test, &format!("-n {switch} link add bridge type bridge"))?;
        hosts.ip(test, &format!("-n {switch} link set bridge up"))?;
        for (host, name) in hosts.names.iter().enumerate() {
            let port = format!("port{host}");
            hosts.ip(
                test,
                &format!("-n {name} link add eth0 type veth peer name {port} netns {switch}"),
            )?;
            hosts.ip(
                test,
                &format!("-n {switch} link set {port} master bridge up"),
            )?;
        }
        hosts.plugged(test, 1)
    }

    /// Returns hosts without cables.
    fn named(test: &str, net: u8, count: usize, is_switched: bool) -> Option<Self> {
        if !is_root(test) {
            return None;
        }
        if Command::new("ip").arg("-V").output().is_err() {
            eprintln!("SKIPPED: {test} needs the command ip (package iproute2)");
            return None;
        }
        let id = std::process::id();
        let name = |letter: char| format!("tagwire-{id}-{net}{letter}");
        let hosts = Self {
            names: ('a'..).map(name).take(count).collect(),
            switch: is_switched.then(|| name('s')),
            net,
        };
        for name in hosts.names.iter().chain(&hosts.switch) {
            hosts.ip(test, &format!("netns add {name}"))?;
            hosts.ip(test, &format!("-n {name} link set lo up"))?;
        }
        Some(hosts)
    }

    /// Gives the ends of cables their addresses, and waits until each carries.
    fn plugged(self, test: &str, cables: u8) -> Option<Self> {
        for (host, name) in self.names.iter().enumerate() {
            for cable in 0..cables {
                let address = self.address_by(host, cable);
                self.ip(
                    test,
                    &format!("-n {name} address add {address}/24 dev eth{cable}"),
                )?;
                self.ip(test, &format!("-n {name} link set eth{cable} up"))?;
            }
        }
        // The kernel takes its time to see a carrier.
        for name in &self.names {
            for cable in 0..cables {
                eventually("the cable carries", || {
                    let shown = ip(&format!("-n {name} -o link show eth{cable}")).stdout;
                    String::from_utf8_lossy(&shown).contains("state UP")
                });
            }
        }
        Some(self)
    }

    /// Runs a command of `ip`; `None`, said aloud, where it fails.
    #[expect(
        clippy::unused_self,
        reason = "commands are run for hosts that are deleted when one fails"
    )]
    fn ip(&self, test: &str, line: &str) -> Option<()> {
        let output = ip(line);
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            eprintln!("SKIPPED: {test} needs network namespaces: ip {line}: {said}");
            return None;
        }
        Some(())
    }

    /// Returns the addresses of all by their first cables.
    pub fn addresses(&self) -> Vec<String> {
        (0..self.names.len())
            .map(|host| self.address(host))
            .collect()
    }

    /// Where a host is by its first cable.
    pub fn address(&self, host: usize) -> String {
        self.address_by(host, 0)
    }

    fn address_by(&self, host: usize, cable: u8) -> String {
        format!("10.{}.{}.{}", 231 + cable, self.net, host + 1)
    }

    /// A command line on a host.
    pub fn line(&self, host: usize) -> Line {
        Line::of(Path::new("ip"), ["netns", "exec", &self.names[host]])
    }

    /// A remote shell, as launchers want one: `FILE [OPTIONS] ADDRESS COMMAND...`. What it starts is on a host of its own by
    /// the setting `host`.
    pub fn remote_shell(&self, folder: &Path) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let file = folder.join("rsh");
        let cases: Vec<_> = (self.names.iter().zip(self.addresses()))
            .map(|(name, address)| format!("{address}) host={name} ;;"))
            .collect();
        let text = format!(
            "#!/bin/sh\n\
             while [ \"${{1#-}}\" != \"$1\" ]; do shift; done\n\
             case $1 in {cases} esac\n\
             shift\n\
             exec ip netns exec $host env TAGWIRE_HOST=$host sh -c \"$*\"\n",
            cases = cases.join(" "),
        );
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        file
    }

    pub fn tagwire(&self, host: usize, arguments: &[&str]) -> Job {
        self.line(host).args([tagwire()]).args(arguments).start()
    }

    /// The side of a latency test that listens on host 0, once it does.
    pub fn listens(&self, place: &str, options: &[&str]) -> Job {
        let secret = secret("ours");
        let line = ["bench", "latency", "--listen", place, "--secret", &secret];
        let mut job = self.tagwire(0, &[&line[..], options].concat());
        job.hear("listening at");
        job
    }

    /// The side of a latency test that connects from host 1.
    pub fn connects(&self, place: &str, options: &[&str]) -> Job {
        let secret = secret("ours");
        let line = ["bench", "latency", "--connect", place, "--secret", &secret];
        self.tagwire(1, &[&line[..], options].concat())
    }

    pub fn cut_the_cable(&self, cable: u8) {
        let line = format!("-n {} link set eth{cable} down", self.names[0]);
        assert!(ip(&line).status.success());
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in self.names.iter().chain(&self.switch) {
            let _ = ip(&format!("netns delete {name}"));
        }
    }
}
