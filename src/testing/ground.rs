//! Where the ranks of a job inside of a test are: in shared memory, or on a simulated network.

use tagwire_base::Rank;
use tagwire_base::bootstrap::{Bootstrap, LocalJob};
use tagwire_pml::Given;
use tagwire_sim::{Link, Machine, PerByte, Schedule, SimJob, SimNetwork, SimOptions, Span, Turn};

use crate::error::Result;
use crate::session::{Builder, Session};

/// The job of a test.
#[derive(Debug)]
pub(super) enum Ground {
    Local(LocalJob),
    Simulated { network: SimNetwork, job: SimJob },
}

impl Ground {
    /// Returns the ground of a job of so many ranks.
    pub(super) fn new(size: u32, schedule: Option<&Schedule>) -> Self {
        let Some(schedule) = schedule else {
            let local = LocalJob::new(size).unwrap_or_else(|error| panic!("{error}"));
            return Self::Local(local);
        };
        let machine = Machine {
            // A message of no bytes takes 2 us. What ranks of a test do is to take some virtual time, and how much is of no account.
            network: Link {
                latency: Span::nanos(1_500),
                send: Span::nanos(250),
                recv: Span::nanos(250),
                per_byte: PerByte::femtos(100_000),
                ..Link::default()
            },
            ranks_per_node: 1,
            detection: Span::nanos(1_000_000),
            ..Machine::default()
        };
        let options = SimOptions {
            schedule: schedule.clone(),
            turns: true,
            ..SimOptions::of(machine)
        };
        let network = SimNetwork::new(size, options);
        let job = SimJob::new(&network);
        Self::Simulated { network, job }
    }

    /// The calling thread is that of `rank`, until what is returned is dropped.
    pub(super) fn begin(&self, rank: Rank) -> Option<Turn> {
        match self {
            Self::Local(_) => None,
            Self::Simulated { network, .. } => Some(network.turn(rank)),
        }
    }

    /// Opens the session of `rank`.
    pub(super) fn open(&self, rank: Rank, builder: Builder) -> Result<Session> {
        let (bootstrap, given): (Box<dyn Bootstrap>, _) = match self {
            Self::Local(local) => (Box::new(local.member(rank)), None),
            Self::Simulated { network, job } => {
                let (transport, clock) = network.open(rank);
                let given = Given::new(Box::new(transport));
                (Box::new(job.member(rank, clock)), Some(given))
            }
        };
        builder.open_over(bootstrap, given)
    }

    /// Whether `rank` has been killed.
    pub(super) fn is_killed(&self, rank: Rank) -> bool {
        match self {
            Self::Local(_) => false,
            Self::Simulated { network, .. } => network.is_killed(rank),
        }
    }

    /// Tells the others that `rank` is gone.
    pub(super) fn fail(&self, rank: Rank) {
        match self {
            Self::Local(local) => local.declare_failed(rank),
            Self::Simulated { network, .. } => network.fail(rank),
        }
    }
}
