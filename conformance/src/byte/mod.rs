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

use tagwire_transport::ByteTransport;

use tagwire_transport::capability::Capabilities;

use crate::{Check, Kit, Subject};

/// The kit of byte transports.
#[derive(Debug)]
pub enum Bytes {}

/// What a factory claims of its transports.
#[derive(Debug, Clone, Copy, Default)]
pub struct Claims {
    allocates: bool,
}

impl Kit for Bytes {
    type Job = Job;
    type Wanted = ();
    type Claims = Claims;
}

/// The ranks of one job, all in this process.
pub type Job = crate::Job<dyn ByteTransport>;

/// Opens the jobs that checks run on.
pub type Factory = crate::Factory<Bytes>;

impl Factory {
    /// A factory for jobs of up to `most_ranks`; `open` is given the size. With one rank, the
    /// checks of the core that need a pair let the rank talk to itself.
    pub fn new(most_ranks: u32, open: impl Fn(u32) -> Result<Job, String> + 'static) -> Self {
        Self::of(most_ranks, move |size, &()| open(size))
    }

    /// Lets cooperative transfers use memory that the transports [allocate](tagwire_transport::Transport::allocate): then
    /// [`Capabilities::ALLOCATION`] does for [`Capabilities::COOPERATIVE`].
    #[must_use]
    pub const fn allocating(mut self) -> Self {
        self.claims.allocates = true;
        self
    }

    /// A job of `size` ranks, or as many as there can be.
    pub(crate) fn open(&self, size: u32) -> Result<Job, String> {
        let size = size.min(self.most_ranks);
        self.job(size, &())?.of(size)
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
        if self.claims.allocates && has.contains(Capabilities::ALLOCATION) {
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

crate::kit! {
    /// Makes a module `$name` with one test for each conformance check, on jobs of the
    /// [`Factory`] that `$factory` evaluates to.
    transport_conformance($), checks of Factory:
    Core 1 peers::states_consistent_limits,
    Core 1 messages::delivers_every_size,
    Core 1 messages::sends_gathered_and_packed_data,
    Core 1 messages::delivers_each_message_once + RELIABLE,
    Core 1 messages::keeps_order_per_peer + ORDERED,
    Core 1 messages::goes_on_with_any_length + RELIABLE,
    Core 2 messages::serves_many_peers,
    Core 1 messages::reaches_itself + LOOPBACK,
    Core 1 pressure::full_is_busy_and_recovers,
    Core 1 pressure::control_passes_full_data,
    Core 3 pressure::one_full_peer_leaves_others_alone,
    Core 1 pressure::idle_progress_does_nothing,
    Core 1 peers::connects_to_the_same_endpoint,
    Core 1 peers::greets_once_before_messages,
    Core 2 peers::answers_by_first_contact,
    Core 2 peers::says_goodbye_after_the_last_message,
    Core 2 peers::who_says_no_goodbye_has_failed,
    Core 1 peers::refuses_bad_addresses,
    Core 1 peers::describes_its_peers,
    Failure 2 failure::failure_is_told_once,
    Failure 2 failure::last_words_are_delivered,
    Failure 3 failure::the_living_go_on,
    Failure 2 failure::strangers_may_fail,
    Failure 2 failure::failure_ends_transfers + COOPERATIVE,
    Detection 2 failure::finds_the_dead,
    Cooperative 1 cooperative::transfers_every_size,
    Cooperative 2 cooperative::receiver_alone_transfers,
    Cooperative 2 cooperative::sender_alone_transfers,
    Cooperative 1 cooperative::short_receives_get_what_fits,
    Cooperative 1 cooperative::offers_can_be_withdrawn,
    Cooperative 1 cooperative::many_offers_are_open_at_once,
    Cooperative 2 cooperative::both_ways_at_once,
    Cooperative 2 cooperative::forged_tickets_move_nothing,
    Cooperative 1 cooperative::odd_shapes_are_moved_or_refused,
    Wake 1 wake::arrivals_before_sleep_are_not_slept_over,
    Wake 1 wake::other_threads_wake_a_sleeper,
    Wake 2 wake::messages_wake_a_sleeper,
    Wake 2 wake::contact_wakes_those_who_were_refused,
    ZeroCopy 1 messages::sends_without_a_copy,
    Put 1 remote::puts_exactly_where_told,
    Get 1 remote::gets_exactly_what_was_named,
    Put 1 remote::bad_keys_reach_nothing,
    Notice 1 remote::notices_tell_what_is_there,
    Notice 1 remote::puts_that_fail_give_no_notice,
    Put 1 remote::puts_become_visible_in_the_order_that_is_promised,
}
