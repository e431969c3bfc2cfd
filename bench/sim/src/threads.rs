//! The threads of a simulated job, each with a task of its own.

use std::cell::RefCell;
use std::rc::Rc;

use tagwire_base::Rank;
use tagwire_sim::{Actor, SimNetwork, SimOptions, Simulation};

use crate::error::{Error, Result};
use crate::job::{Opener, Pml};
use crate::rank::SimRank;

/// A job whose threads have tasks.
pub(crate) struct Threads {
    opener: Opener,
    simulation: Simulation,
    /// The first error of a task.
    failed: Rc<RefCell<Option<Error>>>,
}

impl Threads {
    /// Returns the job of a network of `ranks` ranks, none of which is open.
    pub(crate) fn new(ranks: u32, options: SimOptions) -> Self {
        let network = SimNetwork::new(ranks, options);
        Self::of(&network, Opener::new(Pml::Ob1, &network))
    }

    /// Returns the job of a network, none of whose ranks is open.
    pub(crate) fn of(network: &SimNetwork, opener: Opener) -> Self {
        Self {
            opener,
            simulation: Simulation::new(network),
            failed: Rc::default(),
        }
    }

    /// Opens a rank.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub(crate) fn open(&self, rank: u32) -> Result<SimRank> {
        self.opener.open(Rank::new(rank))
    }

    /// Opens so many ranks, before any of them sends.
    ///
    /// # Errors
    /// When one cannot be opened.
    pub(crate) fn open_all(&self, ranks: u32) -> Result<Vec<SimRank>> {
        (0..ranks).map(|rank| self.open(rank)).collect()
    }

    /// Gives the thread of a rank its task.
    pub(crate) fn spawn(
        &mut self,
        thread: &Actor,
        task: impl Future<Output = Result<()>> + 'static,
    ) {
        let failed = Rc::clone(&self.failed);
        self.simulation.spawn(thread, async move {
            if let Err(error) = task.await {
                failed.borrow_mut().get_or_insert(error);
            }
        });
    }

    /// Runs all tasks to their ends.
    ///
    /// # Errors
    /// The first error of a task; when ranks wait for ever.
    pub(crate) fn run(mut self) -> Result<()> {
        let ended = self.simulation.run();
        drop(self.simulation);
        match self.failed.take() {
            Some(error) => Err(error),
            None => Ok(ended?),
        }
    }
}
