//! Jobs that several hosts have parts of.

use tagwire_base::JobSecret;

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
