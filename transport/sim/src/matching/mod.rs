//! A network inside one process that matches messages itself: the bed on which layers over
//! [`MatchTransport`](tagwire_transport::MatchTransport) are tested. By itself nothing happens in it but by calls, in the order of the
//! calls. [On](MatchNetwork::on) a [`SimNetwork`] its messages travel as that one's do, in virtual time where it has a machine.
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
//! only the envelope travels, and the bytes are fetched after the match, by the NICs where there are such. What a real network
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

mod carried;
mod config;
mod lists;
mod progress;
mod rank;
mod state;

use std::sync::Arc;

use tagwire_base::{Clock, Rank};
use tagwire_transport::EpochWaiter;
use tagwire_transport::wait::Waiter;

pub use config::MatchOptions;
pub use rank::MatchMemory;

use crate::due::Carried;
use crate::member::Status;
use crate::network::SimNetwork;
use crate::shared::SimWaiter;
use carried::{Lists, Locked};
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
    state: Arc<Lists>,
    /// What the messages travel by.
    carrier: Option<SimNetwork>,
}

impl Shared {
    /// Locks the state. What was done is carried out once it is unlocked.
    fn state(&self) -> Locked<'_> {
        self.state.locked(self.carrier.as_ref())
    }

    /// A rank ends, in good order or not.
    fn end(&self, rank: Rank, status: Status) {
        let Some(carrier) = &self.carrier else {
            return self.state().end(rank, status);
        };
        carrier.shared.with(|state| {
            if let Some(place) = state.find(rank) {
                state.end(place, status);
            }
        });
    }

    /// A call of progress has found nothing: the next event happens, where ranks are driven by calls.
    fn pass_time(&self, rank: Rank) {
        let Some(carrier) = &self.carrier else {
            return;
        };
        carrier.shared.with(|state| {
            if let Some(place) = state.find(rank) {
                state.pass_time(place);
            }
        });
    }
}

impl MatchNetwork {
    /// A network for the ranks from 0 to `size - 1`.
    #[must_use]
    pub fn new(size: u32, options: MatchOptions) -> Self {
        Self::over(size, options, None)
    }

    /// A network whose ranks are those of `network`, by which its messages travel. The ranks of `network` are opened by it alone.
    #[must_use]
    pub fn on(network: &SimNetwork, options: MatchOptions) -> Self {
        Self::over(network.size(), options, Some(network.clone()))
    }

    fn over(size: u32, options: MatchOptions, carrier: Option<SimNetwork>) -> Self {
        let options = options.made_consistent();
        let trace = options.trace.clone().filter(|_| carrier.is_none());
        let mut state = MatchState::scheduled(options.seed, trace);
        state.is_carried = carrier.is_some();
        state.helping = options.helping;
        state.drops = options.drops && options.helping && carrier.is_some();
        state.hollow = options.hollow;
        let state = Arc::new(Lists::new(state));
        if let Some(carrier) = &carrier {
            let lists: Arc<dyn Carried> = Arc::<Lists>::clone(&state);
            carrier.shared.with(|state| state.carried = Some(lists));
        }
        Self {
            shared: Arc::new(Shared {
                size,
                options,
                state,
                carrier,
            }),
        }
    }

    /// Opens `rank`.
    ///
    /// # Panics
    /// When `rank` is not one of this network's, or was opened before.
    #[must_use]
    pub fn rank(&self, rank: Rank) -> MatchMemory {
        self.open(rank).0
    }

    /// Opens `rank`, and returns its clock too: that of the network [on](Self::on) which this one is, else that of the machine that this
    /// runs on.
    ///
    /// # Panics
    /// As [`rank`](Self::rank).
    #[must_use]
    pub fn open(&self, rank: Rank) -> (MatchMemory, Clock) {
        assert!(
            rank.as_u32() < self.shared.size,
            "{rank:?} is not in the network"
        );
        let member = Member::default();
        let own: Arc<dyn Waiter> = Arc::<EpochWaiter>::clone(&member.waiter);
        let (waiter, clock) = match &self.shared.carrier {
            None => (own, Clock::default()),
            Some(carrier) => {
                let (place, clock) = carrier.enter(rank);
                let shared = Arc::clone(&carrier.shared);
                let waiter: Arc<dyn Waiter> = Arc::new(SimWaiter { shared, place });
                (waiter, clock)
            }
        };
        let earlier = self.shared.state().members.insert(rank, member);
        assert!(earlier.is_none(), "{rank:?} was opened before");
        let memory = MatchMemory::new(Arc::clone(&self.shared), rank, waiter);
        (memory, clock)
    }

    /// Returns whether nothing is under way by the network [on](Self::on) which this one is. Without one nothing ever is, but by calls.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        self.shared
            .carrier
            .as_ref()
            .is_none_or(SimNetwork::is_at_rest)
    }

    /// Lets `rank` die on the spot, as a killed process does; see
    /// [`SimNetwork::fail`](crate::SimNetwork::fail).
    pub fn fail(&self, rank: Rank) {
        self.shared.end(rank, Status::Failed);
    }
}
