//! Ranks that know their numbers and one place, where they meet.

use tagwire_base::{JobSecret, Rank};

use super::Place;

/// The variable with what ranks have to know, beside the address, to join a job that meets on a network: a text.
pub const SECRET: &str = "TAGWIRE_RENDEZVOUS_SECRET";

/// Where ranks meet.
#[derive(Debug, Clone)]
pub(crate) enum At {
    /// At a name on this host, which only processes of this user reach.
    Host(String),
    /// At a port of the host of rank 0.
    Network {
        host: String,
        port: u16,
        secret: JobSecret,
    },
}

/// A rank that is to meet the others.
#[derive(Debug)]
pub(crate) struct Meeting {
    pub launcher: &'static str,
    pub rank: Rank,
    pub size: u32,
    pub at: At,
}

impl Place for Meeting {
    fn describe(&self) -> String {
        format!("rank {} of {}", self.rank, self.size)
    }
}
