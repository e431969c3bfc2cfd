//! A network inside one process that matches messages itself: the bed on which layers over
//! [`MatchTransport`](tagwire_transport::MatchTransport) are tested. As [`SimNetwork`](crate::SimNetwork), nothing
//! happens in it but by calls, in the order of the calls.
//!
//! ```text
//!     MatchNetwork ── members ─┬─ rank 0: inbound [ from 1 | from 2 ]   under way, bounded
//!                              │          posted, unexpected, claimed    the match lists
//!                              │          ends, waiter
//!                              ├─ rank 1: ...
//!                              └─ moving: long messages that have matched, copied in chunks
//! ```
//!
//! Short messages are copied when they are sent, while their receiver has the budget; of others
//! only the envelope travels, and the bytes are fetched after the match. What a real network
//! may or may not do (senders that match, late reports, few match bits, no directed receives) is
//! switched by [`MatchOptions`].
//!
//! ```
//! use tagwire_base::Rank;
//! use tagwire_sim::matching::{MatchNetwork, MatchOptions};
//! use tagwire_transport::{Lane, MatchTransport, SendBuffer, Sent, Token, Transport};
//!
//! let network = MatchNetwork::new(2, MatchOptions::default());
//! let mut a = network.rank(Rank::new(0));
//! let b = network.rank(Rank::new(1));
//! let to = a.connect(Rank::new(1), &b.address())?;
//! let nothing = SendBuffer::EMPTY;
//! assert_eq!(a.send(Lane(0), to, 7, &nothing, false, Token(1)), Sent::Done);
//! # Ok::<(), tagwire_transport::Error>(())
//! ```

mod config;
mod lists;
mod progress;
mod rank;
mod state;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tagwire_base::Rank;

pub use config::MatchOptions;
pub use rank::MatchMemory;

use crate::member::Status;
use state::{MatchState, Member};

/// The name in reports.
const NAME: &str = "memory-match";

/// A job's worth of ranks in one process. Cloning names the same network again.
#[derive(Debug, Clone)]
pub struct MatchNetwork {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    size: u32,
    options: MatchOptions,
    state: Mutex<MatchState>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, MatchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MatchNetwork {
    /// A network for the ranks from 0 to `size - 1`.
    #[must_use]
    pub fn new(size: u32, options: MatchOptions) -> Self {
        Self {
            shared: Arc::new(Shared {
                size,
                state: Mutex::new(MatchState::scheduled(options.seed)),
                options: options.made_consistent(),
            }),
        }
    }

    /// Opens `rank`.
    ///
    /// # Panics
    /// When `rank` is not one of this network's, or was opened before.
    #[must_use]
    pub fn rank(&self, rank: Rank) -> MatchMemory {
        assert!(
            rank.as_u32() < self.shared.size,
            "{rank:?} is not in the network"
        );
        let member = Member::default();
        let waiter = Arc::clone(&member.waiter);
        let earlier = self.shared.state().members.insert(rank, member);
        assert!(earlier.is_none(), "{rank:?} was opened before");
        MatchMemory::new(Arc::clone(&self.shared), rank, waiter)
    }

    /// Lets `rank` die on the spot, as a killed process does; see
    /// [`SimNetwork::fail`](crate::SimNetwork::fail).
    pub fn fail(&self, rank: Rank) {
        self.shared.state().end(rank, Status::Failed);
    }
}
