//! The conformance kit: what every byte transport has to do, as checks that run on any of them.
//!
//! A transport, in this repository or elsewhere, brings a [`Factory`] that opens jobs of
//! connected ranks inside one process, and gets a test for each check:
//!
//! ```
//! use tagwire_conformance::byte::{Factory, Job};
//! use tagwire_conformance::network::{MemoryNetwork, MemoryOptions};
//! use tagwire_conformance::transport_conformance;
//! use tagwire_transport::ByteTransport;
//!
//! fn factory() -> Factory {
//!     Factory::new(16, |size| {
//!         let network = MemoryNetwork::new(size, MemoryOptions::default());
//!         let open = |rank| Box::new(network.rank(rank)) as Box<dyn ByteTransport>;
//!         Ok(Job::new((0..size).map(tagwire_base::Rank::new).map(open).collect()))
//!     })
//! }
//!
//! transport_conformance!(memory, factory());
//! # fn main() {
//! # use tagwire_conformance::{Verdict, byte::CHECKS};
//! # assert_eq!(CHECKS[1].run(&factory()), Verdict::Passed);
//! # }
//! ```
//!
//! Checks come in [tiers](Tier): the core for all, the others where the transport claims the
//! capability. A check that does not apply says why, and [`tiers`](crate::tiers) lists which do, so that a
//! test can pin what a transport is expected to offer. Nothing here asserts how long things
//! take; what never happens is given up on after a while.

mod cooperative;
mod failure;
mod log;
mod messages;
mod peers;
mod pressure;
mod remote;
mod rig;
mod wake;

use std::fmt;

use tagwire_base::Rank;
use tagwire_transport::ByteTransport;

use tagwire_transport::capability::Capabilities;

use crate::{Check, Subject};

/// Ends a rank the hard way.
type KillRank = Box<dyn FnMut(Rank, Box<dyn ByteTransport>)>;

/// The ranks of one job, all in this process.
pub struct Job {
    pub(crate) ranks: Vec<Box<dyn ByteTransport>>,
    pub(crate) kill: Option<KillRank>,
}

impl Job {
    /// The transports of ranks 0, 1, and so on.
    #[must_use]
    pub fn new(ranks: Vec<Box<dyn ByteTransport>>) -> Self {
        Self { ranks, kill: None }
    }

    /// How a rank dies without a goodbye, in a way that the transport's failure detection
    /// notices. Without this, a dead rank is one that is not driven any more, and detection is
    /// not checked.
    #[must_use]
    pub fn with_kill(mut self, kill: impl FnMut(Rank, Box<dyn ByteTransport>) + 'static) -> Self {
        self.kill = Some(Box::new(kill));
        self
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Job({} ranks)", self.ranks.len())
    }
}

/// Opens a job of so many ranks.
type OpenJob = Box<dyn Fn(u32) -> Result<Job, String>>;

/// Opens the jobs that checks run on.
pub struct Factory {
    most_ranks: u32,
    absent: Option<String>,
    allocates: bool,
    open: OpenJob,
}

impl Factory {
    /// A factory for jobs of up to `most_ranks`; `open` is given the size. With one rank, the
    /// checks of the core that need a pair let the rank talk to itself.
    pub fn new(most_ranks: u32, open: impl Fn(u32) -> Result<Job, String> + 'static) -> Self {
        Self {
            most_ranks: most_ranks.max(1),
            absent: None,
            allocates: false,
            open: Box::new(open),
        }
    }

    /// A factory for a transport that this machine does not have: no check applies, and each says
    /// for what `reason`.
    #[must_use]
    pub fn absent(reason: impl Into<String>) -> Self {
        Self {
            absent: Some(format!("SKIPPED: {}", reason.into())),
            ..Self::new(1, |_| Err("the transport is absent".to_owned()))
        }
    }

    /// Lets cooperative transfers use memory that the transports [allocate](tagwire_transport::Transport::allocate): then
    /// [`Capabilities::ALLOCATION`] does for [`Capabilities::COOPERATIVE`].
    #[must_use]
    pub const fn allocating(mut self) -> Self {
        self.allocates = true;
        self
    }

    /// A job of `size` ranks, or as many as there can be.
    pub(crate) fn open(&self, size: u32) -> Result<Job, String> {
        let size = size.min(self.most_ranks);
        let job = (self.open)(size)?;
        if job.ranks.len() == size as usize {
            Ok(job)
        } else {
            Err(format!(
                "the factory opened {} ranks where {size} were asked for",
                job.ranks.len()
            ))
        }
    }
}

impl Subject for Factory {
    type Tier = Tier;

    const TIERS: &'static [Tier] = &Tier::ALL;

    const CHECKS: &'static [Check<Self>] = CHECKS;

    fn refuses(&self, check: &Check<Self>) -> Result<Option<String>, String> {
        if self.absent.is_some() {
            return Ok(self.absent.clone());
        }
        let job = self.open(1)?;
        let mut has = job.ranks[0].capabilities();
        if self.allocates && has.contains(Capabilities::ALLOCATION) {
            has |= Capabilities::COOPERATIVE;
        }
        Ok(inapplicable(
            check,
            self.most_ranks,
            has,
            job.kill.is_some(),
        ))
    }
}

impl fmt::Debug for Factory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Factory(up to {} ranks)", self.most_ranks)
    }
}

/// A group of checks, named by what a transport claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Tier {
    /// What every transport does.
    Core,
    /// What every transport of more than one rank does when a peer has failed.
    Failure,
    /// [`Capabilities::FAILURE_DETECTION`].
    Detection,
    /// [`Capabilities::COOPERATIVE`].
    Cooperative,
    /// [`Capabilities::WAKE`].
    Wake,
    /// [`Capabilities::ZERO_COPY`].
    ZeroCopy,
    /// [`Capabilities::PUT`].
    Put,
    /// [`Capabilities::GET`].
    Get,
    /// [`Capabilities::NOTICE`].
    Notice,
}

impl Tier {
    /// All tiers, in the order of reports.
    pub const ALL: [Self; 9] = [
        Self::Core,
        Self::Failure,
        Self::Detection,
        Self::Cooperative,
        Self::Wake,
        Self::ZeroCopy,
        Self::Put,
        Self::Get,
        Self::Notice,
    ];

    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Failure => "failure",
            Self::Detection => "detection",
            Self::Cooperative => "cooperative",
            Self::Wake => "wake",
            Self::ZeroCopy => "zero-copy",
            Self::Put => "put",
            Self::Get => "get",
            Self::Notice => "notice",
        }
    }

    /// What a transport claims that wants to pass.
    const fn needs(self) -> Capabilities {
        match self {
            Self::Core | Self::Failure => Capabilities::empty(),
            Self::Detection => Capabilities::FAILURE_DETECTION,
            Self::Cooperative => Capabilities::COOPERATIVE,
            Self::Wake => Capabilities::WAKE,
            Self::ZeroCopy => Capabilities::ZERO_COPY,
            Self::Put => Capabilities::PUT,
            Self::Get => Capabilities::GET,
            Self::Notice => Capabilities::NOTICE,
        }
    }
}

/// Returns why a check of a kit for transports does not apply, if it does not. Jobs have up to `most_ranks`, their
/// transports the capabilities `has`, and `can_kill` is whether a rank can be killed.
pub(crate) fn inapplicable<S: Subject<Tier = Tier>>(
    check: &Check<S>,
    most_ranks: u32,
    has: Capabilities,
    can_kill: bool,
) -> Option<String> {
    let missing = (check.tier().needs() | check.claims()) - has;
    if !missing.is_empty() {
        Some(format!("{missing:?} is not claimed"))
    } else if check.ranks() > most_ranks {
        Some(format!("it takes {} ranks", check.ranks()))
    } else if check.tier() == Tier::Detection && !can_kill {
        Some("ranks of this job die with their process: no kill was given".to_owned())
    } else {
        None
    }
}

/// Every check, by tier.
pub const CHECKS: &[Check<Factory>] = &[
    Check::new(
        "states_consistent_limits",
        Tier::Core,
        1,
        peers::states_consistent_limits,
    ),
    Check::new(
        "delivers_every_size",
        Tier::Core,
        1,
        messages::delivers_every_size,
    ),
    Check::new(
        "sends_gathered_and_packed_data",
        Tier::Core,
        1,
        messages::sends_gathered_and_packed_data,
    ),
    Check::new(
        "delivers_each_message_once",
        Tier::Core,
        1,
        messages::delivers_each_message_once,
    )
    .also(Capabilities::RELIABLE),
    Check::new(
        "keeps_order_per_peer",
        Tier::Core,
        1,
        messages::keeps_order_per_peer,
    )
    .also(Capabilities::ORDERED),
    Check::new(
        "serves_many_peers",
        Tier::Core,
        2,
        messages::serves_many_peers,
    ),
    Check::new("reaches_itself", Tier::Core, 1, messages::reaches_itself)
        .also(Capabilities::LOOPBACK),
    Check::new(
        "full_is_busy_and_recovers",
        Tier::Core,
        1,
        pressure::full_is_busy_and_recovers,
    ),
    Check::new(
        "control_passes_full_data",
        Tier::Core,
        1,
        pressure::control_passes_full_data,
    ),
    Check::new(
        "one_full_peer_leaves_others_alone",
        Tier::Core,
        3,
        pressure::one_full_peer_leaves_others_alone,
    ),
    Check::new(
        "idle_progress_does_nothing",
        Tier::Core,
        1,
        pressure::idle_progress_does_nothing,
    ),
    Check::new(
        "connects_to_the_same_endpoint",
        Tier::Core,
        1,
        peers::connects_to_the_same_endpoint,
    ),
    Check::new(
        "greets_once_before_messages",
        Tier::Core,
        1,
        peers::greets_once_before_messages,
    ),
    Check::new(
        "answers_by_first_contact",
        Tier::Core,
        2,
        peers::answers_by_first_contact,
    ),
    Check::new(
        "says_goodbye_after_the_last_message",
        Tier::Core,
        2,
        peers::says_goodbye_after_the_last_message,
    ),
    Check::new(
        "who_says_no_goodbye_has_failed",
        Tier::Core,
        2,
        peers::who_says_no_goodbye_has_failed,
    ),
    Check::new(
        "refuses_bad_addresses",
        Tier::Core,
        1,
        peers::refuses_bad_addresses,
    ),
    Check::new(
        "describes_its_peers",
        Tier::Core,
        1,
        peers::describes_its_peers,
    ),
    Check::new(
        "failure_is_told_once",
        Tier::Failure,
        2,
        failure::failure_is_told_once,
    ),
    Check::new(
        "last_words_are_delivered",
        Tier::Failure,
        2,
        failure::last_words_are_delivered,
    ),
    Check::new(
        "the_living_go_on",
        Tier::Failure,
        3,
        failure::the_living_go_on,
    ),
    Check::new(
        "strangers_may_fail",
        Tier::Failure,
        2,
        failure::strangers_may_fail,
    ),
    Check::new(
        "failure_ends_transfers",
        Tier::Failure,
        2,
        failure::failure_ends_transfers,
    )
    .also(Capabilities::COOPERATIVE),
    Check::new(
        "finds_the_dead",
        Tier::Detection,
        2,
        failure::finds_the_dead,
    ),
    Check::new(
        "transfers_every_size",
        Tier::Cooperative,
        1,
        cooperative::transfers_every_size,
    ),
    Check::new(
        "receiver_alone_transfers",
        Tier::Cooperative,
        2,
        cooperative::receiver_alone_transfers,
    ),
    Check::new(
        "sender_alone_transfers",
        Tier::Cooperative,
        2,
        cooperative::sender_alone_transfers,
    ),
    Check::new(
        "short_receives_get_what_fits",
        Tier::Cooperative,
        1,
        cooperative::short_receives_get_what_fits,
    ),
    Check::new(
        "offers_can_be_withdrawn",
        Tier::Cooperative,
        1,
        cooperative::offers_can_be_withdrawn,
    ),
    Check::new(
        "many_offers_are_open_at_once",
        Tier::Cooperative,
        1,
        cooperative::many_offers_are_open_at_once,
    ),
    Check::new(
        "both_ways_at_once",
        Tier::Cooperative,
        2,
        cooperative::both_ways_at_once,
    ),
    Check::new(
        "forged_tickets_move_nothing",
        Tier::Cooperative,
        2,
        cooperative::forged_tickets_move_nothing,
    ),
    Check::new(
        "odd_shapes_are_moved_or_refused",
        Tier::Cooperative,
        1,
        cooperative::odd_shapes_are_moved_or_refused,
    ),
    Check::new(
        "arrivals_before_sleep_are_not_slept_over",
        Tier::Wake,
        1,
        wake::arrivals_before_sleep_are_not_slept_over,
    ),
    Check::new(
        "other_threads_wake_a_sleeper",
        Tier::Wake,
        1,
        wake::other_threads_wake_a_sleeper,
    ),
    Check::new(
        "messages_wake_a_sleeper",
        Tier::Wake,
        2,
        wake::messages_wake_a_sleeper,
    ),
    Check::new(
        "sends_without_a_copy",
        Tier::ZeroCopy,
        1,
        messages::sends_without_a_copy,
    ),
    Check::new(
        "puts_exactly_where_told",
        Tier::Put,
        1,
        remote::puts_exactly_where_told,
    ),
    Check::new(
        "gets_exactly_what_was_named",
        Tier::Get,
        1,
        remote::gets_exactly_what_was_named,
    ),
    Check::new(
        "bad_keys_reach_nothing",
        Tier::Put,
        1,
        remote::bad_keys_reach_nothing,
    ),
    Check::new(
        "notices_tell_what_is_there",
        Tier::Notice,
        1,
        remote::notices_tell_what_is_there,
    ),
    Check::new(
        "puts_that_fail_give_no_notice",
        Tier::Notice,
        1,
        remote::puts_that_fail_give_no_notice,
    ),
    Check::new(
        "puts_become_visible_in_the_order_that_is_promised",
        Tier::Put,
        1,
        remote::puts_become_visible_in_the_order_that_is_promised,
    ),
];

/// Makes a module `$name` with one test for each conformance check, on jobs of the
/// [`Factory`] that `$factory` evaluates to.
#[macro_export]
macro_rules! transport_conformance {
    ($name:ident, $factory:expr) => {
        $crate::each_check!(@module transport_conformance, $name, $factory);
    };
    (@for_each $what:ident) => {
        $crate::each_check! {
            @$what
            states_consistent_limits
            delivers_every_size
            sends_gathered_and_packed_data
            delivers_each_message_once
            keeps_order_per_peer
            serves_many_peers
            reaches_itself
            full_is_busy_and_recovers
            control_passes_full_data
            one_full_peer_leaves_others_alone
            idle_progress_does_nothing
            connects_to_the_same_endpoint
            greets_once_before_messages
            answers_by_first_contact
            says_goodbye_after_the_last_message
            who_says_no_goodbye_has_failed
            refuses_bad_addresses
            describes_its_peers
            failure_is_told_once
            last_words_are_delivered
            the_living_go_on
            strangers_may_fail
            failure_ends_transfers
            finds_the_dead
            transfers_every_size
            receiver_alone_transfers
            sender_alone_transfers
            short_receives_get_what_fits
            offers_can_be_withdrawn
            many_offers_are_open_at_once
            both_ways_at_once
            forged_tickets_move_nothing
            odd_shapes_are_moved_or_refused
            arrivals_before_sleep_are_not_slept_over
            other_threads_wake_a_sleeper
            messages_wake_a_sleeper
            sends_without_a_copy
            puts_exactly_where_told
            gets_exactly_what_was_named
            bad_keys_reach_nothing
            notices_tell_what_is_there
            puts_that_fail_give_no_notice
            puts_become_visible_in_the_order_that_is_promised
        }
    };
}
