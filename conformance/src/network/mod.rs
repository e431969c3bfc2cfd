//! A network inside one process: ranks are plain objects that share queues.
//!
//! This is the bed on which protocols are tested. Nothing happens in it but by calls, in the
//! order of the calls: a test that drives its ranks by turns from one thread sees the same run
//! every time. Ranks may also live on threads of their own.
//!
//! ```text
//!     MemoryNetwork ── members ─┬─ rank 0: inbound [ from 1 | from 2 ], completions, waiter
//!                               ├─ rank 1: inbound [ from 0 ], ...
//!                               └─ transfers: offered and claimed cooperative copies
//! ```
//!
//! Queues are bounded and return [`Post::Busy`](tagwire_transport::Post::Busy), a sleeper is woken by what arrives, ranks leave
//! and fail. What a real transport may or may not have (cooperative transfers,
//! detection of failures) is switched by [`MemoryOptions`], so that each way a protocol can take
//! is tested. It is no transport for measurements: each message costs a lock and an allocation.
//!
//! ```
//! use tagwire_base::Rank;
//! use tagwire_conformance::network::{MemoryNetwork, MemoryOptions};
//! use tagwire_transport::{AmHeader, ByteTransport, Class, Lane, Post, Transport};
//!
//! let network = MemoryNetwork::new(2, MemoryOptions::default());
//! let mut a = network.rank(Rank::new(0));
//! let b = network.rank(Rank::new(1));
//! let to = a.connect(Rank::new(1), &b.address())?;
//! let header = AmHeader([1, 2]);
//! assert_eq!(a.send(Lane(0), to, Class::Data, header, b"hello"), Post::Posted);
//! # Ok::<(), tagwire_transport::Error>(())
//! ```

mod config;
pub mod matching;
mod progress;
mod rank;
mod state;
mod transfer;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tagwire_base::Rank;

pub use config::MemoryOptions;
pub use rank::MemoryTransport;
pub use state::Puts;

use state::{Member, State, Status};

/// The name in reports.
const NAME: &str = "memory";

/// A job's worth of ranks in one process. Cloning names the same network again.
#[derive(Debug, Clone)]
pub struct MemoryNetwork {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    size: u32,
    options: MemoryOptions,
    state: Mutex<State>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MemoryNetwork {
    /// A network for the ranks from 0 to `size - 1`. Only ranks that are opened cost memory.
    #[must_use]
    pub fn new(size: u32, options: MemoryOptions) -> Self {
        Self {
            shared: Arc::new(Shared {
                size,
                options: options.made_consistent(),
                state: Mutex::new(State::default()),
            }),
        }
    }

    /// Opens `rank`.
    ///
    /// # Panics
    /// When `rank` is not one of this network's, or was opened before.
    #[must_use]
    pub fn rank(&self, rank: Rank) -> MemoryTransport {
        assert!(
            rank.as_u32() < self.shared.size,
            "{rank:?} is not in the network"
        );
        let member = Member::default();
        let waiter = Arc::clone(&member.waiter);
        let earlier = self.shared.state().members.insert(rank, member);
        assert!(earlier.is_none(), "{rank:?} was opened before");
        MemoryTransport::new(Arc::clone(&self.shared), rank, waiter)
    }

    /// Lets `rank` die on the spot, as a killed process does: its calls do nothing from now on,
    /// what it has sent can still be read, and nobody touches its buffers any more. The others
    /// learn of it when they [look after their peers](tagwire_transport::ByteTransport::look_after_peers)
    /// (with [`MemoryOptions::detect_failures`]) or are
    /// [told](tagwire_transport::ByteTransport::peer_failed).
    pub fn fail(&self, rank: Rank) {
        self.shared.state().end(rank, Status::Failed);
    }

    /// How many pieces of memory peers may read just now.
    #[must_use]
    pub fn exposed(&self) -> usize {
        self.shared.state().exposed.len()
    }

    /// How many pieces of memory peers may write just now.
    #[must_use]
    pub fn registered(&self) -> usize {
        self.shared.state().writable.len()
    }

    /// Returns what ranks have written so far.
    #[must_use]
    pub fn puts(&self) -> Puts {
        self.shared.state().puts
    }

    /// Lets nothing that is exposed or registered now be read or written any more: gets and puts of it fail.
    pub fn hide_all(&self) {
        let mut state = self.shared.state();
        state.exposed.clear();
        state.writable.clear();
    }

    /// How many ranks the network has room for.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.shared.size
    }

    /// How many ranks it keeps anything of: a rank that has not been opened, and to whom nobody has sent, costs nothing.
    #[must_use]
    pub fn known(&self) -> usize {
        self.shared.state().members.len()
    }
}
