//! The conformance kit for transports that match: what every [`MatchTransport`] has to do, as
//! checks that run on any of them.
//!
//! As for byte transports, whose [tiers](Tier) it has, a transport brings a [`Factory`] that opens jobs of connected ranks
//! inside one process, and gets a test for each check:
//!
//! ```
//! use tagwire_conformance::match_conformance;
//! use tagwire_conformance::matching::{Factory, Job};
//! use tagwire_conformance::network::matching::{MatchNetwork, MatchOptions};
//! use tagwire_transport::MatchTransport;
//!
//! fn factory() -> Factory {
//!     Factory::new(8, |size, wanted| {
//!         let options = MatchOptions {
//!             unexpected_bytes: wanted.unexpected_bytes,
//!             unexpected_messages: wanted.unexpected_messages,
//!             ..MatchOptions::default()
//!         };
//!         let network = MatchNetwork::new(size, options);
//!         let open = |rank| Box::new(network.rank(rank)) as Box<dyn MatchTransport>;
//!         Ok(Job::new((0..size).map(tagwire_base::Rank::new).map(open).collect()))
//!     })
//! }
//!
//! match_conformance!(memory, factory());
//! # fn main() {
//! # use tagwire_conformance::{Verdict, matching::CHECKS};
//! # assert_eq!(CHECKS[0].run(&factory()), Verdict::Passed);
//! # }
//! ```
//!
//! Checks bring all ranks forward by turns from one thread, but for those of races and of sleep.
//! Seeds of random checks are in their failures.

mod alone;
mod cancel;
mod checks;
mod failure;
mod flow;
mod order;
mod peers;
mod probes;
mod races;
mod random;
mod rig;
mod shapes;

pub use checks::CHECKS;

use crate::byte::{Tier, inapplicable};
use crate::{Check, Kit, Subject};
use tagwire_transport::matching::MatchTransport;

/// The kit of transports that match.
#[derive(Debug)]
pub enum Matches {}

impl Kit for Matches {
    type Job = Job;
    type Wanted = Wanted;
    type Claims = Claims;
}

/// The ranks of one job, all in this process.
pub type Job = crate::Job<dyn MatchTransport>;

/// What a check wants of its ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// Bytes of unexpected payload that a rank may keep.
    pub unexpected_bytes: usize,
    /// Envelopes of unexpected messages that it may keep.
    pub unexpected_messages: usize,
}

impl Wanted {
    /// More than any check needs.
    pub const PLENTY: Self = Self {
        unexpected_bytes: 16 << 20,
        unexpected_messages: 1 << 16,
    };

    /// Little, so that floods are short.
    pub const LITTLE: Self = Self {
        unexpected_bytes: 16 << 10,
        unexpected_messages: 200,
    };
}

/// What may be kept beyond what was wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Slack {
    /// Bytes of payload.
    pub bytes: usize,
    /// Messages.
    pub messages: usize,
}

/// What a factory claims of its transports.
#[derive(Debug, Clone)]
pub struct Claims {
    slack: Slack,
    lengths: Vec<usize>,
    allocates: Allocates,
}

impl Default for Claims {
    fn default() -> Self {
        Self {
            slack: Slack::default(),
            lengths: vec![0, 1, 7, 8, 9, 40, 1023, 1024, 1025, 5000, 70_001, 300_000],
            allocates: Allocates::default(),
        }
    }
}

/// Opens the jobs that checks run on.
pub type Factory = crate::Factory<Matches>;

/// Which buffers of checks are memory that the transports [allocate](tagwire_transport::Transport::allocate).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Allocates {
    /// Those of sends.
    pub sends: bool,
    /// Those of receives.
    pub receives: bool,
}

impl Factory {
    /// A factory for jobs of up to `most_ranks`, at least 3; `open` is given the size and the
    /// bounds of each rank.
    pub fn new(
        most_ranks: u32,
        open: impl Fn(u32, Wanted) -> Result<Job, String> + 'static,
    ) -> Self {
        Self::of(most_ranks, move |size, wanted| open(size, *wanted))
    }

    /// Says what may be kept beyond the bounds.
    #[must_use]
    pub const fn slack(mut self, slack: Slack) -> Self {
        self.claims.slack = slack;
        self
    }

    /// Says which buffers the transports allocate; else none.
    #[must_use]
    pub const fn allocating(mut self, allocates: Allocates) -> Self {
        self.claims.allocates = allocates;
        self
    }

    /// Says at which lengths the transport changes its ways.
    #[must_use]
    pub fn boundaries(mut self, lengths: &[usize]) -> Self {
        for length in lengths {
            self.claims
                .lengths
                .extend([length.saturating_sub(1), *length, length + 1]);
        }
        self.claims.lengths.sort_unstable();
        self.claims.lengths.dedup();
        self
    }

    fn open(&self, size: u32, wanted: Wanted) -> Result<Job, String> {
        self.job(size, &wanted)?.of(size)
    }
}

impl Subject for Factory {
    type Tier = Tier;

    const TIERS: &'static [Tier] = &[Tier::Core, Tier::Detection, Tier::Cooperative, Tier::Wake];

    const CHECKS: &'static [Check<Self>] = CHECKS;

    fn refuses(&self, check: &Check<Self>) -> Result<Option<String>, String> {
        if self.absent.is_some() {
            return Ok(self.absent.clone());
        }
        let job = self.open(1, Wanted::PLENTY)?;
        let has = job.ranks[0].capabilities();
        Ok(inapplicable(
            check,
            self.most_ranks,
            has,
            job.kill.is_some(),
        ))
    }
}
