//! A job on a simulated machine: opens its ranks, has them run a program, and returns its outcome.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use clap::ValueEnum;
use tagwire_base::{Clock, Rank};
use tagwire_coll::{Selection, Team};
use tagwire_pml::cm::{Cm, CmOptions};
use tagwire_pml::ob1::{Ob1, Ob1Options};
use tagwire_pml::{Layer, Messenger, ThreadLevel, WaitPolicy};
use tagwire_sim::matching::{MatchNetwork, MatchOptions};
use tagwire_sim::{Counts, Moment, SimJob, SimNetwork, SimOptions, Simulation};

use crate::cost::kibibytes;
use crate::error::{Error, Result};
use crate::programs::{Arguments, Program};
use crate::rank::SimRank;
use crate::rounds::{Clockwork, Round};

/// What came of a job.
#[derive(Debug)]
pub struct Outcome {
    /// The rounds of the program.
    pub rounds: Vec<Round>,
    /// What has happened in the network.
    pub counts: Counts,
    /// When the last event was.
    pub end: Moment,
    /// Ranks that have ended early, and why: peers of those that were killed, say.
    pub failed: Vec<(u32, String)>,
}

/// Which layer sends the messages of ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
#[non_exhaustive]
pub enum Pml {
    /// Matches in software
    #[default]
    Ob1,
    /// Leaves matching to the network
    Cm,
}

/// Runs `program` on `ranks` ranks of ob1.
///
/// # Errors
/// When a rank cannot be opened, there is not enough memory, or ranks wait for ever.
pub fn run(
    program: &Program,
    ranks: u32,
    options: &SimOptions,
    arguments: Arguments,
) -> Result<Outcome> {
    run_on(Pml::Ob1, program, ranks, options, arguments)
}

/// The same over a layer.
///
/// # Errors
/// As [`run`].
pub fn run_on(
    pml: Pml,
    program: &Program,
    ranks: u32,
    options: &SimOptions,
    arguments: Arguments,
) -> Result<Outcome> {
    if ranks < program.least {
        return Err(Error::TooFew {
            program: program.name,
            takes: program.least,
        });
    }
    check_memory(ranks, (program.peers)(ranks), 0)?;
    let network = SimNetwork::new(ranks, options.clone());
    let opener = Opener::new(pml, &network);
    let clockwork = Rc::new(Clockwork::default());
    let failed = Rc::new(RefCell::new(Vec::new()));
    let mut simulation = Simulation::new(&network);
    for rank in (0..ranks).map(Rank::new) {
        let rank = opener.open(rank)?;
        let actor = rank.actor().clone();
        let (clockwork, failed) = (Rc::clone(&clockwork), Rc::clone(&failed));
        let body = program.body;
        simulation.spawn(&actor, async move {
            let number = rank.rank();
            let end = body(&rank, arguments, &clockwork).await;
            if let Err(error) = end.and_then(|()| rank.close()) {
                failed.borrow_mut().push((number, error.to_string()));
            }
        });
    }
    simulation.run()?;
    drop(simulation);
    Ok(Outcome {
        rounds: clockwork.rounds(),
        counts: network.counts(),
        end: network.now(),
        failed: failed.take(),
    })
}

/// What a rank takes that has spoken with nobody, in bytes, about: `tests/memory.rs` compares.
pub const RANK: u64 = 8 << 10;

/// What each of its peers takes more, with messages under way to and from it.
pub const BUSY_PEER: u64 = 3 << 10;

/// Checks that there is room for ranks, each with so many peers and bytes in buffers.
///
/// # Errors
/// [`Error::Memory`] where the machine that this runs on has less than the job takes.
pub(crate) fn check_memory(ranks: u32, peers: u32, buffers: usize) -> Result<()> {
    let each = RANK + BUSY_PEER * u64::from(peers) + buffers as u64;
    let needed = u64::from(ranks) * each;
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    // Where it cannot be read, nobody is refused.
    let available = kibibytes(&text, "MemAvailable:").map_or(u64::MAX, |kib| kib << 10);
    if needed > available {
        return Err(Error::Memory {
            ranks,
            needed: needed >> 20,
            available: available >> 20,
        });
    }
    Ok(())
}

/// Opens the ranks of a job, each with a port and the group of all.
pub(crate) struct Opener {
    network: SimNetwork,
    job: SimJob,
    selection: Arc<Selection>,
    /// Where it matches messages itself.
    matching: Option<MatchNetwork>,
}

/// Longest message that the network keeps where it matches, and no receive waits for it. That of Open MPI's transport over Portals
/// (Graham and others, EuroPVM/MPI 2007).
const SHORT: usize = 32 << 10;

impl Opener {
    pub(crate) fn new(pml: Pml, network: &SimNetwork) -> Self {
        Self::with(pml, network, false)
    }

    /// The same for programs that do not look at what they receive. Where the network matches, it does not copy long messages.
    pub(crate) fn hollow(pml: Pml, network: &SimNetwork) -> Self {
        Self::with(pml, network, true)
    }

    fn with(pml: Pml, network: &SimNetwork, hollow: bool) -> Self {
        let options = MatchOptions {
            helping: true,
            drops: true,
            hollow,
            max_short: SHORT,
            ..MatchOptions::default()
        };
        Self {
            network: network.clone(),
            job: SimJob::new(network),
            selection: Arc::new(Selection::default()),
            matching: (pml == Pml::Cm).then(|| MatchNetwork::on(network, options)),
        }
    }

    pub(crate) fn open(&self, rank: Rank) -> Result<SimRank> {
        let policy = WaitPolicy::adaptive(true);
        let bootstrap = |clock: &Clock| Box::new(self.job.member(rank, clock.clone()));
        let (layer, clock): (Layer, Clock) = match &self.matching {
            None => {
                let (rail, clock) = self.network.open(rank);
                let ob1 = Ob1::open(&Ob1Options::default(), Box::new(rail), bootstrap(&clock))?;
                (ob1.into(), clock)
            }
            Some(network) => {
                let (rail, clock) = network.open(rank);
                let cm = Cm::open(&CmOptions::default(), Box::new(rail), bootstrap(&clock))?;
                (cm.into(), clock)
            }
        };
        let messenger = Messenger::new(layer, ThreadLevel::Single, policy).with_clock(clock);
        let messenger = Arc::new(messenger);
        let team = Arc::new(Team::world(&messenger, Arc::clone(&self.selection)));
        Ok(SimRank::new(team, messenger, self.network.actor(rank)))
    }
}
