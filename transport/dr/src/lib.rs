//! Data reliability: a transport around any [`ByteTransport`](tagwire_transport::ByteTransport), whose messages come once, whole and
//! in order, whatever the one inside loses, repeats, reorders or changes.
//!
//! ```text
//!    send ─ number, checksum ─ inside ─ check ─ in order ─ deliver        kept until acknowledged,
//!      ^                                              │                   sent again when lost
//!      └──────────── what was consumed, what is missing ┘
//! ```
//!
//! - **Packets** carry a number for each peer, and a [CRC-32C](crc) of both ranks, the header and the payload. What fails
//!   the check is dropped and counted. What passes it and is nothing that a correct peer sends is a failure of that peer.
//! - **Acknowledgements** go with what goes back; alone after a quarter of the [window], when a look at the timers finds
//!   one that did not go, and before the rank sleeps. A gap is reported with what has come behind it.
//! - **Retransmission** is selective: when three later messages have come, when one is overdue, and by time-outs that follow round trips (RFC 6298).
//! - **A peer** that acknowledges nothing for [`DrOptions::patience`] has failed. A rank acknowledges from within progress: one
//!   that computes for longer counts as failed too.
//! - **A goodbye** is the last message: a peer that ends without it has failed. A rank that leaves sends all again until it is
//!   acknowledged, and names who has not ([`Transport::unheard`](tagwire_transport::Transport::unheard)).
//! - **A peer that was given up** is told, wherever packets still pass: contact has ended for both.
//!
//! Not offered, whatever the transport inside has: remote access, zero-copy sends, cooperative transfers, channels and boards. They
//! move bytes without these packets.
//!
//! What it is named after is the layer DR of Open MPI ("An Evaluation of Open MPI's Matching Transport Layer on the Cray XT",
//! Graham and others, 2007), which retransmitted in groups, by timers of seconds, under a sum of 16 bits.
//!
//! ```
//! use tagwire_base::Rank;
//! use tagwire_dr::{Dr, DrOptions};
//! use tagwire_sim::{SimNetwork, SimOptions};
//! use tagwire_transport::Transport;
//!
//! let network = SimNetwork::new(2, SimOptions::default());
//! let inside = Box::new(network.rank(Rank::new(0)));
//! let dr = Dr::new(inside, Rank::new(0), DrOptions::default())?;
//! assert_eq!(dr.counters().retransmitted, 0);
//! # Ok::<(), tagwire_transport::Error>(())
//! ```

mod counters;
pub mod crc;
mod intake;
mod link;
mod options;
mod parting;
mod pending;
mod rail;
mod rank;
mod receiver;
mod rtt;
mod sender;
mod waiter;
pub mod window;
mod wire;

pub use counters::Counters;
pub use options::{DrOptions, SETTINGS};
pub use rank::Dr;

/// The name in settings and reports.
pub const NAME: &str = "dr";
