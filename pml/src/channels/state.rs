//! The channels of a rank, as its calls find them.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crossbeam_queue::SegQueue;
use tagwire_base::Clock;
use tagwire_transport::{
    Buffering, Capabilities, EndpointId, Limits, MatchTransport, Ordering, ReadRegion,
    RegistrationHandle, Token,
};

use super::ends::{Receiver, Sender};
use super::flags::{Sources, Targets};
use super::key::{Notification, Numbers, Run};
use crate::peers::PeerIndex;
use crate::service::Tokens;
use crate::slab::{Handle, Slab};

/// Most of what peers may say of channels that this rank has not joined yet.
pub(super) const MOST_EARLY: usize = 1 << 16;

/// Most bytes of one put: longer runs are cut between partitions, where they can be.
pub(super) const LONGEST_PUT: u64 = 1 << 30;

/// How long a rank sleeps at most while flags may be set without a notice.
pub(super) const FLAG_SLEEP: Duration = Duration::from_millis(1);

/// A call for whoever drives the rank.
#[derive(Debug, Clone, Copy)]
pub(super) enum Call {
    Sender(Handle),
    Receiver(Handle),
}

/// The calls of all channels of a rank, and its clock. A channel calls once until it is heard.
#[derive(Debug, Default)]
pub(super) struct Doorbell {
    pub(super) calls: SegQueue<Call>,
    pub(super) clock: Clock,
}

/// A sending end, as its rank drives it.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) end: Arc<Sender>,
    pub(super) peer: PeerIndex,
    pub(super) endpoint: EndpointId,
    /// The receiver's name for the channel.
    pub(super) remote: Handle,
    /// Where the receiver's buffer is, and what opens it.
    pub(super) address: u64,
    pub(super) key: Box<[u8]>,
    pub(super) tells: Notifying<Sources>,
    pub(super) region: ReadRegion,
    /// Most bytes of one put.
    pub(super) longest: u64,
    /// Where each transport partition ends, in bytes.
    pub(super) ends: Box<[u64]>,
    /// Runs that were posted, and that the transport has not taken.
    pub(super) waiting: VecDeque<Run>,
    /// Runs that the transport has taken since it was last asked to flush.
    pub(super) unflushed: Vec<Run>,
    /// Runs that a flush under way covers.
    pub(super) flushing: Vec<Run>,
    /// Runs that the transport has taken, and whose flags it has not.
    pub(super) unflagged: VecDeque<Run>,
    /// Puts under way.
    pub(super) puts: u32,
    /// The receiver was told that this end has closed.
    pub(super) said: bool,
}

/// How a receiver hears of writes, with what its end needs for that.
#[derive(Debug)]
pub(super) enum Notifying<F> {
    Numbers(Numbers),
    Flags(F),
    Messages,
}

impl<F> Notifying<F> {
    pub(super) const fn way(&self) -> ChannelWay {
        match self {
            Self::Numbers(_) => ChannelWay::Notified,
            Self::Flags(_) => ChannelWay::Flagged,
            Self::Messages => ChannelWay::Flushed,
        }
    }

    pub(super) const fn numbers(&self) -> Option<Numbers> {
        match self {
            Self::Numbers(numbers) => Some(*numbers),
            _ => None,
        }
    }

    /// Writes of each transport partition: of its bytes, and of its flag where there are such.
    pub(super) const fn writes(&self) -> u64 {
        match self {
            Self::Flags(_) => 2,
            _ => 1,
        }
    }
}

impl Notifying<Targets> {
    /// As the sender is told of it.
    pub(super) fn notification(&self) -> Notification<'_> {
        match self {
            Self::Numbers(numbers) => Notification::Numbers(numbers.first()),
            Self::Flags(flags) => {
                let (address, key) = flags.remote();
                Notification::Words(address, key)
            }
            Self::Messages => Notification::Messages,
        }
    }
}

/// A receiving end, as its rank drives it.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) end: Arc<Receiver>,
    pub(super) peer: PeerIndex,
    pub(super) hears: Notifying<Targets>,
    pub(super) registration: RegistrationHandle,
    /// The last round of which the sender was told.
    pub(super) notification: u64,
    /// The sender was told that this end closes.
    pub(super) said: bool,
}

/// A put or a flush under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flight {
    pub(super) channel: Handle,
    pub(super) what: Operation,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Operation {
    /// Of so many transport partitions.
    Put(u32),
    /// Of the flags of so many.
    Flags(u32),
    Flush,
}

/// The puts and flushes under way.
#[derive(Debug)]
pub(super) struct Flights {
    slab: Slab<Flight>,
    tokens: Tokens,
}

impl Flights {
    /// Enters one. Returns its handle and its token.
    pub(super) fn begin(&mut self, flight: Flight) -> (Handle, Token) {
        let handle = self.slab.insert(flight);
        (handle, self.tokens.of(handle))
    }

    /// Takes out one that has ended, or has not begun.
    pub(super) fn end(&mut self, handle: Handle) -> Option<Flight> {
        self.slab.remove(handle)
    }
}

/// What a receiver has said of its channel.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ReceiverState {
    pub(super) opened: u64,
    pub(super) closed: Option<u64>,
}

/// The channels of a rank.
#[derive(Debug)]
pub struct Channels {
    pub(super) doorbell: Arc<Doorbell>,
    pub(super) outgoing: Slab<Outgoing>,
    pub(super) incoming: Slab<Incoming>,
    /// The sending ends, by what their receivers call them.
    pub(super) by_remote: HashMap<(PeerIndex, u64), Handle>,
    /// The receiving ends, by the first of their numbers.
    pub(super) by_number: BTreeMap<u32, Handle>,
    /// The receiving ends that have flags.
    pub(super) flagged: Vec<Handle>,
    pub(super) next_number: u32,
    pub(super) flights: Flights,
    /// What receivers said of channels before this rank joined them.
    pub(super) early: HashMap<(PeerIndex, u64), ReceiverState>,
}

impl Channels {
    /// No channels, of a rank with this clock.
    pub(super) fn of(clock: &Clock, tokens: Tokens) -> Self {
        let bell = Doorbell {
            clock: clock.clone(),
            ..Doorbell::default()
        };
        Self {
            doorbell: Arc::new(bell),
            outgoing: Slab::default(),
            incoming: Slab::default(),
            by_remote: HashMap::new(),
            by_number: BTreeMap::new(),
            flagged: Vec::new(),
            next_number: 0,
            flights: Flights {
                slab: Slab::default(),
                tokens,
            },
            early: HashMap::new(),
        }
    }

    /// Numbers for a channel of so many transport partitions, if so many in a row are free.
    pub(super) fn take_numbers(&mut self, units: u32, buffering: Buffering) -> Option<Numbers> {
        let count = Numbers::count(units, buffering);
        let mut rounds = 0;
        loop {
            let first = self.next_number;
            let Some(end) = first.checked_add(count) else {
                rounds += 1;
                if rounds > 1 {
                    return None;
                }
                self.next_number = 0;
                continue;
            };
            let before = self.by_number.range(..end).next_back();
            let taken =
                before.and_then(|(_, channel)| self.incoming.get(*channel)?.hears.numbers());
            match taken.map(Numbers::end).filter(|taken| *taken > first) {
                // A channel of long ago has them still.
                Some(taken) => self.next_number = taken,
                None => {
                    self.next_number = end;
                    return Some(Numbers::new(first, units, buffering));
                }
            }
        }
    }
}

impl Outgoing {
    /// Whether the receiver was told, or the transport asked to tell it, of all that was put.
    pub(super) fn has_told(&self) -> bool {
        self.flushing.is_empty() && self.unflushed.is_empty() && self.unflagged.is_empty()
    }

    /// Where transport partition `unit` begins, in bytes.
    pub(super) fn start_of(&self, unit: u32) -> u64 {
        match unit {
            0 => 0,
            unit => self.ends[unit as usize - 1],
        }
    }
}

/// The width of notices from which on they name runs of partitions.
pub(super) const WIDE_ENOUGH: usize = size_of::<u32>();

/// Whether notices serve.
pub(super) fn notifies(capabilities: Capabilities, limits: &Limits) -> bool {
    capabilities.contains(Capabilities::NOTICE) && limits.immediate_width >= WIDE_ENOUGH
}

/// Whether flags serve, where notices do not.
pub(super) fn flags(limits: &Limits) -> bool {
    limits.ordering == Ordering::WriteAfterWrite
}

/// How a layer brings the partitions of a channel to their receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChannelWay {
    /// The transport has channels of its own.
    Own,
    /// Written into place, each write with a notice.
    Notified,
    /// Written into place, a flag behind it.
    Flagged,
    /// Written into place and flushed, and told by a message.
    Flushed,
    /// A message for each transport partition.
    Messages,
}

impl ChannelWay {
    /// That of ob1 over a transport with these capabilities and limits. A pair of ranks for which the
    /// transport has none of its own after all takes the next that there is.
    #[must_use]
    pub fn of_ob1(capabilities: Capabilities, limits: &Limits) -> Self {
        match capabilities.contains(Capabilities::CHANNELS) {
            true => Self::Own,
            false => Self::of_access(capabilities, limits),
        }
    }

    /// That of cm over this transport.
    #[must_use]
    pub fn of_cm(transport: &mut dyn MatchTransport) -> Self {
        if transport.capabilities().contains(Capabilities::CHANNELS) {
            return Self::Own;
        }
        transport.remote().map_or(Self::Messages, |remote| {
            Self::of_access(remote.capabilities(), &remote.remote_limits())
        })
    }

    fn of_access(capabilities: Capabilities, limits: &Limits) -> Self {
        if !capabilities.contains(Capabilities::PUT) {
            Self::Messages
        } else if notifies(capabilities, limits) {
            Self::Notified
        } else if flags(limits) {
            Self::Flagged
        } else {
            Self::Flushed
        }
    }

    /// In words, with the reason.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::Own => "by channels of the transport's own",
            Self::Notified => {
                "written into place; each write tells the receiver by its notice, which is wide enough"
            }
            Self::Flagged => {
                "written into place, and a flag behind it, at which the receiver looks: writes have no \
                 notice of 4 bytes, and keep their order"
            }
            Self::Flushed => {
                "written into place and flushed, then a message tells the receiver: writes have no \
                 notice of 4 bytes, and are not known to keep their order"
            }
            Self::Messages => {
                "a message for each transport partition: there is neither a channel nor a write"
            }
        }
    }
}
