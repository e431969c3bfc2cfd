//! Jobs that several hosts have parts of.

use tagwire_base::JobSecret;

/// A job of which each host has its user start a part. One host listens, and has the first ranks; the others connect, and
/// have the next ones in the order in which they come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hosts {
    /// How many ranks the job has on all hosts: what the host that listens says. Others are told.
    pub total: u32,
    /// Which part this host has.
    pub side: Side,
    /// What all hosts know and nobody else. The host that listens draws one where there is none, and says it.
    pub secret: Option<JobSecret>,
}

/// The part of a host in a job of several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Side {
    /// It listens at this address, as `HOST:PORT`.
    Listen(String),
    /// It connects to the one that listens at this address.
    Connect(String),
}
