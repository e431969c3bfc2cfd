//! A network, and how its ranks are opened and killed.

use std::sync::Arc;

use tagwire_base::bootstrap::MemberEvent;
use tagwire_base::{Clock, ManualClock, Rank};

use crate::member::Status;
use crate::options::SimOptions;
use crate::place::Place;
use crate::rank::SimTransport;
use crate::shared::Shared;
use crate::state::{Counts, Puts, State};
use crate::time::Moment;

/// The name in reports.
pub(crate) const NAME: &str = "sim";

/// The part that the thread of a rank takes in its network, until it is dropped.
#[derive(Debug)]
#[must_use = "the rank has no turns any more once this is dropped"]
pub struct Turn {
    shared: Arc<Shared>,
    rank: Rank,
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(turns) = self.shared.turns() {
            turns.end(self.rank);
        }
    }
}

/// A job's worth of ranks in one process. Cloning names the same network again.
#[derive(Debug, Clone)]
pub struct SimNetwork {
    pub(crate) shared: Arc<Shared>,
}

impl SimNetwork {
    /// Returns a network for the ranks from 0 to `size - 1`. Only ranks that are opened cost memory.
    #[must_use]
    pub fn new(size: u32, options: SimOptions) -> Self {
        Self {
            shared: Arc::new(Shared::new(size, options)),
        }
    }

    /// Opens `rank`.
    ///
    /// # Panics
    /// When `rank` is not one of this network's, or was opened before.
    #[must_use]
    pub fn rank(&self, rank: Rank) -> SimTransport {
        self.open(rank).0
    }

    /// Opens `rank`, and returns its clock too: virtual time on a machine, else the machine's that this runs on.
    ///
    /// # Panics
    /// As [`rank`](Self::rank).
    #[must_use]
    pub fn open(&self, rank: Rank) -> (SimTransport, Clock) {
        let (place, clock) = self.enter(rank);
        let transport = SimTransport::new(Arc::clone(&self.shared), (rank, place));
        (transport, clock)
    }

    /// Enters a rank that is opened; the same without its transport.
    pub(crate) fn enter(&self, rank: Rank) -> (Place, Clock) {
        assert!(
            rank.as_u32() < self.shared.size,
            "{rank:?} is not in the network"
        );
        let manual = ManualClock::default();
        let clock = match self.shared.options.machine {
            Some(_) => manual.clock(),
            None => Clock::default(),
        };
        let place = self.shared.with(|state| state.open(rank, manual));
        let place = place.unwrap_or_else(|| panic!("{rank:?} was opened before"));
        (place, clock)
    }

    /// Lets the calling thread be that of `rank`, in a network whose ranks take [turns](SimOptions::turns): it returns once all ranks have
    /// called this and it is the turn of this one. A thread has its turn until a call finds nothing, when the seed decides who is next.
    /// So what all of them do follows from the seed, as long as they wait for each other by the network alone. For a rank that has died all
    /// others have, and time goes by in its calls: what it waits for ends.
    pub fn turn(&self, rank: Rank) -> Turn {
        if let Some(turns) = self.shared.turns() {
            turns.begin(rank);
        }
        Turn {
            shared: Arc::clone(&self.shared),
            rank,
        }
    }

    /// Lets `rank` die on the spot, as a killed process does: its calls do nothing from now on,
    /// what it has sent can still be read, and nobody touches its buffers any more. The others
    /// learn of it when they [look after their peers](tagwire_transport::ByteTransport::look_after_peers)
    /// (with [`SimOptions::detect_failures`]) or are
    /// [told](tagwire_transport::ByteTransport::peer_failed).
    pub fn fail(&self, rank: Rank) {
        self.shared.with(|state| {
            if let Some(place) = state.find(rank) {
                state.end(place, Status::Failed);
            }
        });
    }

    /// Whether the [schedule](crate::Schedule::kills) has killed `rank`.
    #[must_use]
    pub fn is_killed(&self, rank: Rank) -> bool {
        self.shared.with(|state| {
            let place = state.find(rank);
            place.is_some_and(|place| state.member(place).is_killed)
        })
    }

    /// Returns how many pieces of memory peers may read just now.
    #[must_use]
    pub fn exposed(&self) -> usize {
        let count = |state: &mut State| {
            let members = state.members.iter();
            members.map(|member| member.exposed.len()).sum()
        };
        self.shared.with(count)
    }

    /// Returns how many pieces of memory peers may write just now.
    #[must_use]
    pub fn registered(&self) -> usize {
        let count = |state: &mut State| {
            let members = state.members.iter();
            members.map(|member| member.writable.len()).sum()
        };
        self.shared.with(count)
    }

    /// Returns what ranks have written so far.
    #[must_use]
    pub fn puts(&self) -> Puts {
        self.shared.with(|state| state.puts)
    }

    /// Lets nothing that is exposed or registered now be read or written any more: gets and puts of it fail.
    pub fn hide_all(&self) {
        self.shared.with(|state| {
            for member in &mut state.members {
                member.exposed.clear();
                member.writable.clear();
            }
        });
    }

    /// Returns how many ranks the network has room for.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.shared.size
    }

    /// Returns how many ranks it keeps anything of: a rank that has not been opened costs nothing.
    #[must_use]
    pub fn known(&self) -> usize {
        self.shared.with(|state| state.members.len())
    }

    /// Returns what has happened so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.shared.with(|state| state.counts)
    }

    /// Returns whether no event is to come: nothing happens any more but by calls of ranks.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        self.shared.with(|state| state.queue.is_empty())
    }

    /// Returns how ranks have ended, without the first so many.
    pub(crate) fn ended(&self, seen: usize) -> Vec<MemberEvent> {
        let rest = |state: &mut State| state.ended.get(seen..).unwrap_or_default().to_vec();
        self.shared.with(rest)
    }

    /// Returns the moment of the last event.
    #[must_use]
    pub fn now(&self) -> Moment {
        self.shared.with(|state| state.now)
    }
}
