//! The conformance suite: what every [`Pml`] does on every transport, as checks that run on any
//! pair of them.
//!
//! A pair brings a [`Factory`] that opens [`Job`]s of ranks inside one process, and gets a test
//! for each check:
//!
//! ```
//! use tagwire_conformance::pml::{Factory, MemoryJob};
//! use tagwire_conformance::pml_conformance;
//! use tagwire_conformance::network::MemoryOptions;
//!
//! fn factory() -> Factory {
//!     Factory::ob1(|size, options| MemoryJob::open(size, MemoryOptions::default(), options))
//! }
//!
//! pml_conformance!(ob1_memory, factory());
//! # fn main() {
//! # use tagwire_conformance::{Verdict, pml::CHECKS};
//! # assert_eq!(CHECKS[0].run(&factory()), Verdict::Passed);
//! # }
//! ```
//!
//! Checks come in [tiers](Tier): the core for all, the others for pairs that claim the tier's
//! capability. Most drive their ranks by turns from one thread; those about waiting, threads and
//! closing open a [`Messenger`] per thread. Nothing here asserts how long things take; what never
//! happens is given up on after a while. Seeds of random checks are in their failures, and
//! `TAGWIRE_CONFORMANCE_SEED` runs one of them again.

mod buffers;
mod cancel;
mod checks;
mod close;
mod eight;
mod failure;
mod flow;
pub mod history;
mod jobs;
mod lengths;
mod matching;
mod partitioned;
mod persistent;
mod probes;
mod random;
mod refusals;
mod rig;
mod rma;
mod threads;
mod waits;

use std::sync::Arc;
use std::time::Duration;

use tagwire_base::{Bootstrap, Rank};
use tagwire_transport::{MatchTransport, Preference};

pub use checks::CHECKS;
pub use jobs::{MatchJob, MatchRails, MemoryJob, RailJob, Rails};

use tagwire_pml::cm::CmOptions;
use tagwire_pml::guard::ThreadLevel;
use tagwire_pml::messenger::Messenger;
use tagwire_pml::ob1::Ob1Options;
use tagwire_pml::pml::Pml;
use tagwire_pml::wait::WaitPolicy;

use crate::network::matching::{MatchNetwork, MatchOptions};
use crate::network::{MemoryNetwork, MemoryOptions};
use crate::{Check, Kit, Subject};

/// The ranks of one job, all in this process. Each is opened once, on a thread of its own.
pub trait Job: Send + Sync {
    /// Opens `rank` to be driven by turns. May wait for the other ranks to be opened.
    ///
    /// # Errors
    /// What went wrong, in words.
    fn open(&self, rank: Rank) -> Result<Box<dyn Pml>, String>;

    /// Opens `rank` for threads. May wait for the other ranks to be opened.
    ///
    /// # Errors
    /// What went wrong, in words.
    fn port(&self, rank: Rank, level: ThreadLevel, policy: WaitPolicy)
    -> Result<Messenger, String>;

    /// Lets `rank`, whose object is `victim`, die without a goodbye, in a way that the others
    /// notice. Returns whether the object is gone; else it keeps hold of the buffers that it was lent.
    fn kill(&self, rank: Rank, victim: Box<dyn Send>) -> bool;

    /// Returns whether nothing is under way that has nobody's progress to wait for. In virtual time ranks may have nothing to do while
    /// messages travel, and messages may come that nobody is told of.
    fn is_at_rest(&self) -> bool {
        true
    }
}

/// What a check wants of its ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Setup {
    /// Budgets, where the defaults would need too large a test.
    pub budget: Option<Budget>,
}

/// Bounds of a rank's memory, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// For the payload of unexpected messages.
    pub payload: usize,
    /// For the envelopes of unexpected messages.
    pub headers: usize,
    /// For buffered sends that wait.
    pub buffered: usize,
}

/// What a sender may have under way to one receiver before the receiver's budget counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slack {
    /// Messages.
    pub envelopes: usize,
    /// Bytes of payload.
    pub bytes: usize,
}

/// The kit of layers.
#[derive(Debug)]
pub enum Layers {}

impl Kit for Layers {
    type Job = Arc<dyn Job>;
    type Wanted = Setup;
    type Claims = Claims;
}

/// What a factory claims of its pair.
#[derive(Debug, Clone)]
pub struct Claims {
    boundaries: Vec<usize>,
    slack: Slack,
    tiers: Vec<Tier>,
    latency: Duration,
    quiet: u32,
    tries: u32,
    all_or_nothing: bool,
}

impl Default for Claims {
    fn default() -> Self {
        Self {
            boundaries: Vec::new(),
            slack: Slack {
                envelopes: 0,
                bytes: 0,
            },
            tiers: Tier::ALL.to_vec(),
            latency: Duration::ZERO,
            quiet: 64,
            tries: 1,
            all_or_nothing: false,
        }
    }
}

/// Opens the jobs that checks run on, and says what the pair claims.
pub type Factory = crate::Factory<Layers>;

impl Factory {
    /// A factory whose `open` is given the size of a job and what is wanted of it; it claims
    /// every tier, and jobs of up to 8 ranks.
    pub fn new(open: impl Fn(u32, &Setup) -> Result<Arc<dyn Job>, String> + 'static) -> Self {
        Self::of(8, open)
    }

    /// Says that a receive that is cut short gets none of the bytes
    /// ([`ALL_OR_NOTHING`](tagwire_transport::Capabilities::ALL_OR_NOTHING)).
    #[must_use]
    pub const fn all_or_nothing(mut self) -> Self {
        self.claims.all_or_nothing = true;
        self
    }

    /// Of a network whose own threads and timers now and then end a connection: a check that fails
    /// is tried so often, and says so.
    #[must_use]
    pub fn tried(mut self, tries: u32) -> Self {
        self.claims.tries = tries.max(1);
        self
    }

    /// Says after how many rounds of calls that find nothing ranks are at rest; 64 unless it is said. More than any message is held back, and
    /// where messages are lost in virtual time, more than it takes until they are sent again.
    #[must_use]
    pub const fn quiet(mut self, rounds: u32) -> Self {
        self.claims.quiet = rounds;
        self
    }

    /// Says how long something may be under way while no rank has anything to do: over a network
    /// of the system, connections are made meanwhile, say.
    #[must_use]
    pub const fn latency(mut self, latency: Duration) -> Self {
        self.claims.latency = latency;
        self
    }

    /// A factory for [`Ob1`](tagwire_pml::ob1::Ob1): `open` is given the size and ob1's options.
    pub fn ob1<J: Job + 'static>(
        open: impl Fn(u32, Ob1Options) -> Result<J, String> + 'static,
    ) -> Self {
        Self::new(move |size, setup| {
            let mut options = Ob1Options::default();
            if let Some(budget) = setup.budget {
                options.unexpected_payload = budget.payload;
                options.unexpected_headers = budget.headers;
                options.buffer_limit = budget.buffered;
            }
            Ok(Arc::new(open(size, options)?) as Arc<dyn Job>)
        })
        .boundaries(&[
            32,
            40,
            64,
            Ob1Options::COALESCE,
            Preference::SHARED_MEMORY.packet,
            Preference::SHARED_MEMORY.eager,
            Preference::NETWORK.eager,
        ])
        .slack(Slack {
            envelopes: 64,
            bytes: 64 << 10,
        })
    }

    /// A factory for [`Cm`](tagwire_pml::cm::Cm): `open` is given the size, the budgets if a check wants some,
    /// and cm's options.
    pub fn cm<J: Job + 'static>(
        open: impl Fn(u32, Option<Budget>, CmOptions) -> Result<J, String> + 'static,
    ) -> Self {
        Self::new(move |size, setup| {
            let mut options = CmOptions::default();
            if let Some(budget) = setup.budget {
                options.buffer_limit = budget.buffered;
            }
            Ok(Arc::new(open(size, setup.budget, options)?) as Arc<dyn Job>)
        })
    }

    /// A factory for cm over the network in memory that matches, whose budgets are those that a check wants.
    #[must_use]
    pub fn cm_in_memory(options: MatchOptions) -> Self {
        Self::cm_over(options, MatchNetwork::new)
    }

    /// The same with messages that travel by a network like this, in virtual time where it has a machine.
    #[must_use]
    pub fn cm_in_time(network: MemoryOptions, options: MatchOptions) -> Self {
        Self::cm_over(options, move |size, options| {
            MatchNetwork::on(&MemoryNetwork::new(size, network.clone()), options)
        })
    }

    fn cm_over(
        options: MatchOptions,
        network: impl Fn(u32, MatchOptions) -> MatchNetwork + 'static,
    ) -> Self {
        Self::cm(move |size, budget, cm| {
            let mut options = options.clone();
            if let Some(budget) = budget {
                options.unexpected_bytes = budget.payload;
                options.unexpected_messages = budget.headers / 64;
            }
            let network = network(size, options);
            let (mortal, resting) = (network.clone(), network.clone());
            let rails = MatchRails::new(move |bootstrap| {
                let (rail, clock) = network.open(Bootstrap::rank(bootstrap));
                bootstrap.set_clock(clock);
                Ok(Box::new(rail) as Box<dyn MatchTransport>)
            })
            .with_kill(move |rank| mortal.fail(rank))
            .with_rest(move || resting.is_at_rest());
            MatchJob::open(size, rails, cm)
        })
    }

    /// Says at which lengths, in bytes, the layer changes its protocol.
    #[must_use]
    pub fn boundaries(mut self, lengths: &[usize]) -> Self {
        self.claims.boundaries = lengths.to_vec();
        self
    }

    /// Says what may go beyond a receiver's budgets.
    #[must_use]
    pub fn slack(mut self, slack: Slack) -> Self {
        self.claims.slack = slack;
        self
    }

    /// Takes back the claim to a tier.
    #[must_use]
    pub fn without(mut self, tier: Tier) -> Self {
        self.claims.tiers.retain(|claim| *claim != tier);
        self
    }

    /// The lengths to try: around each boundary, and some far from any.
    fn lengths(&self) -> Vec<usize> {
        let mut lengths = vec![0, 1, 7, 8, 1000, 50_001];
        for boundary in &self.claims.boundaries {
            lengths.extend([boundary.saturating_sub(1), *boundary, boundary + 1]);
        }
        lengths.sort_unstable();
        lengths.dedup();
        lengths
    }

    /// One length for each protocol.
    fn protocols(&self) -> Vec<usize> {
        let mut lengths = vec![5];
        lengths.extend(self.claims.boundaries.iter().map(|boundary| boundary + 3));
        lengths.push(100_000);
        lengths.sort_unstable();
        lengths.dedup();
        lengths
    }
}

impl Subject for Factory {
    type Tier = Tier;

    const TIERS: &'static [Tier] = &Tier::ALL;

    const CHECKS: &'static [Check<Self>] = CHECKS;

    fn refuses(&self, check: &Check<Self>) -> Result<Option<String>, String> {
        Ok(if !self.claims.tiers.contains(&check.tier()) {
            Some(format!("'{}' is not claimed", check.tier().name()))
        } else if check.ranks() > self.most_ranks {
            Some(format!("it takes {} ranks", check.ranks()))
        } else {
            None
        })
    }

    fn tries(&self) -> u32 {
        self.claims.tries
    }
}

/// A group of checks, named by a capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Tier {
    /// What every pair does.
    Core,
    /// Budgets for what nobody has asked for, and no hang on them.
    Flow,
    /// A failed peer fails what involves it, and nothing else.
    Failure,
    /// A rank that waits for long sleeps, and is woken.
    Wake,
    /// Closing flushes, says goodbye, and has a deadline.
    Close,
    /// Thread levels.
    Threads,
    /// A rank says what it waits for.
    Dump,
}

impl Tier {
    /// All tiers, in the order of reports.
    pub const ALL: [Self; 7] = [
        Self::Core,
        Self::Flow,
        Self::Failure,
        Self::Wake,
        Self::Close,
        Self::Threads,
        Self::Dump,
    ];

    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Flow => "flow",
            Self::Failure => "failure",
            Self::Wake => "wake",
            Self::Close => "close",
            Self::Threads => "threads",
            Self::Dump => "dump",
        }
    }
}
