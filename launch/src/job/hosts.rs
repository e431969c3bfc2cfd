//! Jobs that several hosts have parts of.

use tagwire_base::JobSecret;

use crate::error::{Error, Result};

/// More ranks than a machine could hold processes.
pub(super) const MAX_RANKS: u32 = 32_768;

/// A host's part in a job of which each host has its user start one. One host listens, and has the first ranks; the others
/// connect, and have the next ones in the order in which they come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hosts {
    /// This one listens.
    Listen {
        /// Where, as `HOST:PORT`.
        address: String,
        /// How many ranks the job has on all hosts.
        total: u32,
        /// What all hosts know and nobody else; `None`: one is drawn, and said.
        secret: Option<JobSecret>,
    },
    /// This one connects to the one that listens.
    Connect {
        /// Where that is, as `HOST:PORT`.
        address: String,
        /// What that one has said.
        secret: JobSecret,
    },
}

impl Hosts {
    /// Checks that `ranks` ranks on this host are a part of the job.
    pub(super) fn check(&self, ranks: u32) -> Result<()> {
        match self {
            Self::Listen { address, total, .. } => {
                if *total <= ranks || *total > MAX_RANKS {
                    return Err(Error::Usage(format!(
                        "{ranks} ranks on this host of {total} in all: other hosts are to have some, and {MAX_RANKS} are the most"
                    )));
                }
                check_address("--listen", address)
            }
            Self::Connect { address, .. } => check_address("--connect", address),
        }
    }
}

/// Returns whether an address has a host and a port: one without would be looked for in vain.
#[must_use]
pub fn has_host_and_port(address: &str) -> bool {
    address.rsplit_once(':').is_some_and(|(host, port)| {
        let is_bracketed = host.starts_with('[') && host.ends_with(']');
        !host.is_empty() && (is_bracketed || !host.contains(':')) && port.parse::<u16>().is_ok()
    })
}

fn check_address(option: &str, address: &str) -> Result<()> {
    if has_host_and_port(address) {
        return Ok(());
    }
    Err(Error::Usage(format!(
        "{option} is '{address}', and takes HOST:PORT, such as 10.0.0.1:7471 or [fe80::1]:7471"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_host_and_a_port() {
        for whole in ["10.0.0.1:7471", "node-3:0", "[::1]:7471"] {
            check_address("--connect", whole).unwrap();
        }
        for part in [
            "10.0.0.1",
            "node-3:",
            ":7471",
            "node:99999",
            "::1",
            "fe80::1:7471",
            "",
        ] {
            let error = check_address("--connect", part).unwrap_err().to_string();
            assert!(
                error.contains("--connect") && error.contains(part),
                "{error}"
            );
        }
    }
}
