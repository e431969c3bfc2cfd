//! Hosts: network namespaces of this machine with cables between them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::{Job, Line, eventually, is_root, tagwire};

/// Two hosts, named after this process so that tests of others do not meet them. Cable `n` is
/// `ethn` at both ends.
pub struct Hosts {
    names: [String; 2],
    net: u8,
}

fn ip(arguments: &str) -> Output {
    let words = arguments.split_whitespace();
    Command::new("ip").args(words).output().unwrap()
}

impl Hosts {
    /// `None`, said aloud, where no hosts can be made.
    pub fn make(test: &str, net: u8, cables: u8) -> Option<Self> {
        if !is_root(test) {
            return None;
        }
        if Command::new("ip").arg("-V").output().is_err() {
            eprintln!("SKIPPED: {test} needs the command ip (package iproute2)");
            return None;
        }
        let id = std::process::id();
        let names = [
            format!("tagwire-{id}-{net}a"),
            format!("tagwire-{id}-{net}b"),
        ];
        let hosts = Self { names, net };
        let [a, b] = &hosts.names;
        let mut lines = vec![
            format!("netns add {a}"),
            format!("netns add {b}"),
            format!("-n {a} link set lo up"),
            format!("-n {b} link set lo up"),
        ];
        for cable in 0..cables {
            let eth = format!("eth{cable}");
            lines.push(format!(
                "-n {a} link add {eth} type veth peer name {eth} netns {b}"
            ));
            for (host, name) in hosts.names.iter().enumerate() {
                let address = hosts.address_by(host, cable);
                lines.push(format!("-n {name} address add {address}/24 dev {eth}"));
                lines.push(format!("-n {name} link set {eth} up"));
            }
        }
        for line in lines {
            let output = ip(&line);
            if !output.status.success() {
                let said = String::from_utf8_lossy(&output.stderr);
                eprintln!("SKIPPED: {test} needs network namespaces: ip {line}: {said}");
                return None;
            }
        }
        // The kernel takes its time to see a carrier.
        for name in &hosts.names {
            for cable in 0..cables {
                eventually("the cable carries", || {
                    let shown = ip(&format!("-n {name} -o link show eth{cable}")).stdout;
                    String::from_utf8_lossy(&shown).contains("state UP")
                });
            }
        }
        Some(hosts)
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
        let [a, b] = &self.names;
        let text = format!(
            "#!/bin/sh\n\
             while [ \"${{1#-}}\" != \"$1\" ]; do shift; done\n\
             case $1 in {own}) host={a} ;; *) host={b} ;; esac\n\
             shift\n\
             exec ip netns exec $host env TAGWIRE_HOST=$host sh -c \"$*\"\n",
            own = self.address(0),
        );
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        file
    }

    pub fn tagwire(&self, host: usize, arguments: &[&str]) -> Job {
        self.line(host).args([tagwire()]).args(arguments).start()
    }

    pub fn cut_the_cable(&self, cable: u8) {
        let line = format!("-n {} link set eth{cable} down", self.names[0]);
        assert!(ip(&line).status.success());
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = ip(&format!("netns delete {name}"));
        }
    }
}
