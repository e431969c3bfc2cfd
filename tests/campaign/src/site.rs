//! The hosts of a job: this machine, or two network namespaces of it with cables between them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long the kernel has to see that a cable carries.
const CARRIER: Duration = Duration::from_secs(5);

/// Where the ranks of a job run.
#[derive(Debug)]
pub struct Site {
    /// The namespaces; none for this machine as it is.
    names: Vec<String>,
}

/// A part of a job: what its launcher is to be told.
#[derive(Debug)]
pub struct Part {
    /// What comes before the launcher's program, on the command line.
    pub before: Vec<OsString>,
    /// How many ranks it starts.
    pub ranks: u32,
    /// Variables of it and its ranks.
    pub variables: Vec<(&'static str, OsString)>,
}

/// `listen ADDRESS TOTAL` or `connect ADDRESS`: which part of a job a launcher has.
pub const MEETING: &str = "CAMPAIGN_MEETING";
/// The first rank that a launcher has.
pub const FIRST: &str = "CAMPAIGN_FIRST_RANK";
/// The file with the secret of a job of several parts.
pub const SECRET: &str = "CAMPAIGN_SECRET_FILE";

impl Site {
    /// Returns this machine.
    pub const fn here() -> Self {
        Self { names: Vec::new() }
    }

    /// Makes two hosts with so many cables, `eth0` and on at each.
    ///
    /// # Errors
    /// Says why they cannot be made: it takes root, and the command `ip`.
    pub fn of_two_hosts(cables: u8) -> Result<Self, String> {
        static CLEANED: Once = Once::new();
        CLEANED.call_once(|| {
            for name in names_of_nobody() {
                let _ = ip(&format!("netns delete {name}"));
            }
        });
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = |letter| format!("campaign-{}-{number}{letter}", std::process::id());
        let site = Self {
            names: vec![name('a'), name('b')],
        };
        let [a, b] = [&site.names[0], &site.names[1]];
        for host in [a, b] {
            ip(&format!("netns add {host}"))?;
            ip(&format!("-n {host} link set lo up"))?;
        }
        for cable in 0..cables {
            ip(&format!(
                "-n {a} link add eth{cable} type veth peer name eth{cable} netns {b}"
            ))?;
            for (host, name) in site.names.iter().enumerate() {
                let address = address(host, cable);
                ip(&format!(
                    "-n {name} address add {address}/24 dev eth{cable}"
                ))?;
                ip(&format!("-n {name} link set eth{cable} up"))?;
            }
        }
        let deadline = Instant::now() + CARRIER;
        for cable in 0..cables {
            while !ip(&format!("-n {b} -o link show eth{cable}"))?.contains("state UP") {
                if Instant::now() > deadline {
                    return Err(format!("cable {cable} does not carry"));
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        Ok(site)
    }

    /// Returns the parts of a job of so many ranks, the one that others connect to first. A file for them lies in a folder.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn parts(&self, ranks: u32, folder: &Path) -> Result<Vec<Part>, String> {
        if self.names.is_empty() {
            return Ok(vec![Part {
                before: Vec::new(),
                ranks,
                variables: Vec::new(),
            }]);
        }
        let secret = secret(folder)?;
        let place = format!("{}:7471", address(0, 0));
        let first = ranks.div_ceil(2);
        let meetings = [
            format!("listen {place} {ranks}"),
            format!("connect {place}"),
        ];
        let hosts = self
            .names
            .iter()
            .zip(meetings)
            .zip([(0, first), (first, ranks - first)]);
        let parts = hosts.map(|((name, meeting), (first, ranks))| Part {
            before: ["ip", "netns", "exec", name].map(OsString::from).into(),
            ranks,
            variables: vec![
                (MEETING, meeting.into()),
                (FIRST, first.to_string().into()),
                (SECRET, secret.clone().into()),
                ("TAGWIRE_HOST", name.into()),
            ],
        });
        Ok(parts.collect())
    }

    /// Pulls a cable out, or plugs it in again.
    ///
    /// # Errors
    /// When there is none.
    pub fn set_cable(&self, cable: u64, is_up: bool) -> Result<(), String> {
        let host = self
            .names
            .first()
            .ok_or("this machine has no cable to another")?;
        let state = if is_up { "up" } else { "down" };
        ip(&format!("-n {host} link set eth{cable} {state}")).map(drop)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = ip(&format!("netns delete {name}"));
        }
    }
}

/// Returns the namespaces of campaigns that have ended and could not delete them.
fn names_of_nobody() -> Vec<String> {
    let entries = std::fs::read_dir("/run/netns")
        .into_iter()
        .flatten()
        .flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let is_of_nobody = |name: &String| {
        let parts = name
            .strip_prefix("campaign-")
            .and_then(|rest| rest.split_once('-'));
        let process = parts.and_then(|(process, _)| process.parse::<u32>().ok());
        process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists())
    };
    names.filter(is_of_nobody).collect()
}

fn address(host: usize, cable: u8) -> String {
    format!("10.{}.77.{}", 241 + cable, host + 1)
}

/// Runs the command `ip`. Returns what it says.
fn ip(line: &str) -> Result<String, String> {
    let output = Command::new("ip").args(line.split_whitespace()).output();
    let output = output.map_err(|why| format!("the command ip (package iproute2): {why}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!(
            "ip {line}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
    }
}

/// Writes a secret that its owner alone may read.
fn secret(folder: &Path) -> Result<PathBuf, String> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let place = folder.join("secret");
    let file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&place);
    let written = file.and_then(|mut file| file.write_all(b"of this campaign"));
    written.map_err(|why| format!("{}: {why}", place.display()))?;
    Ok(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_a_campaign_that_was_killed_go() {
        // No process has this number: numbers end before it.
        let left = "campaign-4194305-0a";
        if ip(&format!("netns add {left}")).is_err() {
            eprintln!("no namespaces here");
            return;
        }
        assert!(names_of_nobody().contains(&left.to_owned()));
        let site = Site::of_two_hosts(1).unwrap();
        let there = ip("netns list").unwrap();
        assert!(!there.contains(left), "{there}");
        for name in &site.names {
            assert!(there.contains(name), "{there}");
        }
    }
}
