//! One rank, as the network keeps it: its peers, what has come for it, its clock.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use tagwire_base::{ManualClock, Rank};
use tagwire_transport::message::{EndpointId, Outcome, Token};

use crate::flight::{Message, OperationId};
use crate::leaving::Leaving;
use crate::memory::{Exposed, Writable};
use crate::place::Place;
use crate::threads::Threads;
use crate::time::{Moment, Span};

/// How a rank is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Status {
    #[default]
    Open,
    Left,
    Failed,
}

/// A peer in contact, as a rank has it.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) rank: Rank,
    pub(crate) peer: Place,
    /// This rank, at the peer.
    pub(crate) back: EndpointId,
    /// Messages of this rank that are under way to the peer, or that it has not taken.
    pub(crate) untaken: u32,
    /// This rank was told that there is no room, and hears of some.
    pub(crate) is_starved: bool,
    /// The first contact is entered for this rank's progress.
    pub(crate) is_up: bool,
    /// The end of the peer was reported: nothing goes or comes any more.
    pub(crate) is_closed: bool,
    /// The next operation is fenced off from those before.
    pub(crate) is_fenced: bool,
    /// When the last packet to the peer is at its NIC.
    pub(crate) last: Moment,
    /// When the stream of messages to the peer may go on.
    pub(crate) streamed: Moment,
}

/// What has come for a rank.
#[derive(Debug)]
pub(crate) enum Item {
    Up(EndpointId),
    Message(EndpointId, Message),
    Left(EndpointId),
}

/// An operation that ends when an answer comes.
#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) id: OperationId,
    pub(crate) token: Token,
    pub(crate) link: EndpointId,
    /// What a get fills.
    pub(crate) target: Option<Writable>,
}

/// One rank.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) rank: Rank,
    pub(crate) status: Status,
    /// Messages that it has sent.
    pub(crate) sent: u64,
    /// In the order of first contact; never removed, so that endpoints stay.
    pub(crate) links: Vec<Link>,
    pub(crate) by_peer: HashMap<Place, EndpointId>,
    pub(crate) inbox: VecDeque<Item>,
    /// Ends of operations, for the next progress.
    pub(crate) completions: VecDeque<(Token, Outcome)>,
    /// Of puts that came, likewise.
    pub(crate) notices: VecDeque<u64>,
    pub(crate) operations: Vec<Operation>,
    /// Peers whose failure is told once what they sent has come.
    pub(crate) failing: Vec<EndpointId>,
    pub(crate) exposed: HashMap<u64, Exposed>,
    pub(crate) writable: HashMap<u64, Writable>,
    pub(crate) threads: Threads,
    clock: ManualClock,
    /// What the clock shows.
    shown: Moment,
    /// Up to when its own part of its node's memory is.
    pub(crate) copying: Moment,
    /// When the stream of its messages, to all peers together, may go on.
    pub(crate) moving: Moment,
    pub(crate) leaving: Leaving,
    /// Counts what came: a sleeper that has armed looks at it.
    pub(crate) epoch: u32,
    /// The schedule has killed it.
    pub(crate) is_killed: bool,
    /// Where ranks take turns: what had come when it found nothing to do last.
    pub(crate) idle: Option<u32>,
    /// Until when it sleeps then.
    pub(crate) asleep: Option<Moment>,
}

impl Member {
    pub(crate) fn new(rank: Rank, clock: ManualClock) -> Self {
        Self {
            rank,
            status: Status::Open,
            sent: 0,
            links: Vec::new(),
            by_peer: HashMap::new(),
            inbox: VecDeque::new(),
            completions: VecDeque::new(),
            notices: VecDeque::new(),
            operations: Vec::new(),
            failing: Vec::new(),
            exposed: HashMap::new(),
            writable: HashMap::new(),
            threads: Threads::default(),
            clock,
            shown: Moment::default(),
            copying: Moment::default(),
            moving: Moment::default(),
            leaving: Leaving::default(),
            epoch: 0,
            is_killed: false,
            idle: None,
            asleep: None,
        }
    }

    /// The thread whose turn it is is busy for `span` from `now` on, or from when it is free. Returns when it is free again.
    pub(crate) fn occupy(&mut self, now: Moment, span: Span) -> Moment {
        let thread = self.threads.current();
        thread.local = thread.local.max(now) + span;
        let until = thread.local;
        self.show(until)
    }

    /// The same in the library, which one thread of a rank enters at a time.
    pub(crate) fn occupy_library(&mut self, now: Moment, span: Span, handover: Span) -> Moment {
        let until = self.threads.enter_library(now, span, handover);
        self.show(until)
    }

    /// The rank's clock shows at least `moment`. The clock is of all its threads, and never goes back.
    fn show(&mut self, moment: Moment) -> Moment {
        let passed = moment.as_nanos().saturating_sub(self.shown.as_nanos());
        if passed > 0 {
            self.shown = moment;
            self.clock.advance(Duration::from_nanos(passed));
        }
        moment
    }

    /// Returns what its clock shows.
    pub(crate) const fn shown(&self) -> Moment {
        self.shown
    }

    /// It sends a message, which is counted among all.
    pub(crate) const fn count_message(&mut self, all: &mut u64) {
        self.sent += 1;
        *all += 1;
    }

    /// Returns the link of an endpoint whose end was not reported.
    pub(crate) fn open_link(&mut self, endpoint: EndpointId) -> Option<&mut Link> {
        let link = self.links.get_mut(endpoint.index());
        link.filter(|link| !link.is_closed)
    }

    /// Takes the operation that an answer is for, if it is still waited for.
    pub(crate) fn take_operation(&mut self, id: OperationId) -> Option<Operation> {
        let place = self.operations.iter().position(|of| of.id == id)?;
        Some(self.operations.swap_remove(place))
    }

    /// Returns whether there is something for its progress.
    pub(crate) fn has_something(&self) -> bool {
        !self.inbox.is_empty() || !self.completions.is_empty() || !self.notices.is_empty()
    }
}
