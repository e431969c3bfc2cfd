//! Partitioned channels over transports that write into a peer's memory.
//!
//! ```text
//!   sender                                          receiver
//!   post: queue -> bell                                              any thread, no lock
//!   drive: put, with a number   ------------------>  notice: landed  where notices are wide enough
//!          put, fence, put flag ------------------>  look: landed    where writes keep their order
//!          put, flush; Landed   ------------------>  landed          elsewhere
//!                               <------------------  Opened: the credit for a round
//! ```
//!
//! Whoever drives the rank takes what was posted out of the channels' queues, and puts neighbours
//! together into one write. The numbers of a channel name its runs of transport partitions, so that a
//! notice says all that there is to say; 32 bits are enough, which is what every network with notices has.
//!
//! **Flags** are words that the receiver looks at as often as it makes progress, and every millisecond while it
//! sleeps: a network does not wake for a write that says nothing.
//!
//! **Two rooms.** A receiver's buffer may have room for two rounds, which use it by turns: each round then
//! opens the next one too, and which of both a write is of shows in its number.
//!
//! **Buffers.** The receiver's is registered from the opening of the channel to its closing, since networks
//! take milliseconds for that; its sender writes in rounds that the receiver has opened, and not after. The
//! sender's are lent to single puts.
//!
//! **Trust.** A number or a range from a peer is checked against the channels that are open. What a peer can
//! do is make bytes count as arrived that are not.

mod ends;
mod flags;
mod key;
mod owner;

pub(super) use owner::is_write;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crossbeam_queue::SegQueue;
use tagwire_transport::byte::RegistrationHandle;
use tagwire_transport::{
    Buffering, ByteTransport, Capabilities, EndpointId, Limits, OpenChannel, Ordering, ReadRegion,
    RecvBuffer, SendBuffer, SendChannel,
};

use self::ends::{Line, Receiver, Sender};
use self::flags::{Sources, Targets};
use self::key::{Key, Numbers, Run, Told};
use super::Ob1;
use super::core::Core;
use super::peer::PeerIndex;
use crate::error::{Error, Result};
use crate::slab::{Handle, Slab};

/// Most of what peers may say of channels that this rank has not joined yet.
const MOST_EARLY: usize = 1 << 16;

/// Most bytes of one put: longer runs are cut between partitions, where they can be.
const LONGEST_PUT: u64 = 1 << 30;

/// How long a rank sleeps at most while flags may be set that nobody tells it of.
const FLAG_NAP: Duration = Duration::from_millis(1);

/// A call for whoever drives the rank.
#[derive(Debug, Clone, Copy)]
enum Call {
    Sender(Handle),
    Receiver(Handle),
}

/// The calls of all channels of a rank. A channel calls once until it is heard.
#[derive(Debug, Default)]
struct Bell(SegQueue<Call>);

/// A sending end, as its rank drives it.
#[derive(Debug)]
struct Outgoing {
    end: Arc<Sender>,
    peer: PeerIndex,
    endpoint: EndpointId,
    /// The receiver's name for the channel.
    remote: Handle,
    /// Where the receiver's buffer is, and what opens it.
    address: u64,
    key: Box<[u8]>,
    tells: Telling<Sources>,
    region: ReadRegion,
    /// Most bytes of one put.
    longest: u64,
    /// Where each transport partition ends, in bytes.
    ends: Box<[u64]>,
    /// Runs that were posted, and that the transport has not taken.
    waiting: VecDeque<Run>,
    /// Runs that the transport has taken since it was last asked to flush.
    unflushed: Vec<Run>,
    /// Runs that a flush under way covers.
    flushing: Vec<Run>,
    /// Runs that the transport has taken, and whose flags it has not.
    unflagged: VecDeque<Run>,
    /// Puts under way.
    puts: u32,
    /// The receiver was told that this end has closed.
    said: bool,
}

/// How a receiver hears of writes, with what its end needs for that.
#[derive(Debug)]
enum Telling<F> {
    Numbers(Numbers),
    Flags(F),
    Messages,
}

impl<F> Telling<F> {
    const fn way(&self) -> ChannelWay {
        match self {
            Self::Numbers(_) => ChannelWay::Notified,
            Self::Flags(_) => ChannelWay::Flagged,
            Self::Messages => ChannelWay::Flushed,
        }
    }

    const fn numbers(&self) -> Option<Numbers> {
        match self {
            Self::Numbers(numbers) => Some(*numbers),
            _ => None,
        }
    }

    /// Writes of each transport partition: of its bytes, and of its flag where there are such.
    const fn writes(&self) -> u64 {
        match self {
            Self::Flags(_) => 2,
            _ => 1,
        }
    }
}

impl Telling<Targets> {
    /// As the sender is told of it.
    fn told(&self) -> Told<'_> {
        match self {
            Self::Numbers(numbers) => Told::Numbers(numbers.first()),
            Self::Flags(flags) => {
                let (address, key) = flags.remote();
                Told::Words(address, key)
            }
            Self::Messages => Told::Messages,
        }
    }
}

/// A receiving end, as its rank drives it.
#[derive(Debug)]
struct Incoming {
    end: Arc<Receiver>,
    peer: PeerIndex,
    hears: Telling<Targets>,
    registration: RegistrationHandle,
    /// The last round of which the sender was told.
    told: u64,
    /// The sender was told that this end closes.
    said: bool,
}

/// A put or a flush under way.
#[derive(Debug, Clone, Copy)]
struct Flight {
    channel: Handle,
    what: Operation,
}

#[derive(Debug, Clone, Copy)]
enum Operation {
    /// Of so many transport partitions.
    Put(u32),
    /// Of the flags of so many.
    Flags(u32),
    Flush,
}

/// What a receiver has said of its channel.
#[derive(Debug, Clone, Copy, Default)]
struct Said {
    opened: u64,
    closed: Option<u64>,
}

/// The channels of a rank.
#[derive(Debug, Default)]
pub(super) struct Writes {
    bell: Arc<Bell>,
    outgoing: Slab<Outgoing>,
    incoming: Slab<Incoming>,
    /// The sending ends, by what their receivers call them.
    by_remote: HashMap<(PeerIndex, u64), Handle>,
    /// The receiving ends, by the first of their numbers.
    by_number: BTreeMap<u32, Handle>,
    /// The receiving ends that have flags.
    flagged: Vec<Handle>,
    next_number: u32,
    flights: Slab<Flight>,
    /// What receivers said of channels before this rank joined them.
    early: HashMap<(PeerIndex, u64), Said>,
}

impl Writes {
    /// Numbers for a channel of so many transport partitions, if so many in a row are free.
    fn take_numbers(&mut self, units: u32, buffering: Buffering) -> Option<Numbers> {
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

    /// Channels that are about to close, or have something to tell.
    pub(super) fn unfinished(&self) -> usize {
        let outgoing = self.outgoing.iter().map(|(_, out)| out);
        let outgoing = outgoing.filter(|out| out.end.line.is_closing() || !out.has_told());
        let incoming = self.incoming.iter().map(|(_, one)| one);
        let incoming = incoming.filter(|one| one.end.line.is_closing());
        outgoing.count() + incoming.count()
    }

    /// A peer is gone: what waits for a word from it does not wait any more.
    pub(super) fn lose(&self, peer: PeerIndex) {
        let outgoing = self.outgoing.iter().filter(|(_, out)| out.peer == peer);
        outgoing.for_each(|(_, out)| out.end.line.call());
        let incoming = self.incoming.iter().filter(|(_, one)| one.peer == peer);
        incoming.for_each(|(_, one)| one.end.line.call());
    }
}

impl Outgoing {
    /// Whether the receiver was told, or the transport asked to tell it, of all that was put.
    fn has_told(&self) -> bool {
        self.flushing.is_empty() && self.unflushed.is_empty() && self.unflagged.is_empty()
    }

    /// Where transport partition `unit` begins, in bytes.
    fn start_of(&self, unit: u32) -> u64 {
        match unit {
            0 => 0,
            unit => self.ends[unit as usize - 1],
        }
    }
}

/// The width of notices from which on they name runs of partitions.
const WIDE_ENOUGH: usize = size_of::<u32>();

/// Whether notices serve.
fn notifies(capabilities: Capabilities, limits: &Limits) -> bool {
    capabilities.contains(Capabilities::NOTICE) && limits.immediate_width >= WIDE_ENOUGH
}

/// Whether flags serve, where notices do not.
fn flags(limits: &Limits) -> bool {
    limits.ordering == Ordering::WriteAfterWrite
}

/// Flags for a channel of so many transport partitions, where they serve and the key has room for theirs.
fn open_flags(
    rail: &mut dyn ByteTransport,
    limits: &Limits,
    memory: &[u8],
    (units, buffering): (u32, Buffering),
) -> Option<Targets> {
    if !flags(limits) {
        return None;
    }
    let targets = Targets::register(rail, units, buffering)?;
    if !Key::has_room_for_words(memory, targets.remote().1) {
        targets.end(rail);
        return None;
    }
    Some(targets)
}

/// How many bytes each transport partition has, by where they end.
fn lengths(ends: &[u64]) -> impl Iterator<Item = u64> {
    let starts = std::iter::once(&0).chain(ends);
    ends.iter()
        .zip(starts)
        .map(|(end, start)| end.saturating_sub(*start))
}

impl Ob1 {
    /// Opens a receiving end for writes of rank `from`'s; `None` where the transport has none.
    pub(super) fn open_written(
        &mut self,
        from: PeerIndex,
        data: &RecvBuffer,
        ends: &[u64],
        buffering: Buffering,
    ) -> Option<OpenChannel> {
        let endpoint = self.core.peers.get(from)?.endpoint;
        let (capabilities, limits) = self.rail.towards(endpoint);
        let region = data.region()?;
        let total = ends.last().copied().unwrap_or(0);
        let fits = region.len() as u64 == total * buffering.rooms() as u64;
        // A partition of no bytes gives nothing to write, and none is cut.
        let goes = lengths(ends).all(|len| (1..=limits.max_remote_access).contains(&len));
        if !capabilities.contains(Capabilities::PUT) || !fits || !goes {
            return None;
        }
        let registration = self.rail.register(data).ok()?;
        if !Key::has_room_for(&registration.key) {
            self.rail.deregister(registration);
            return None;
        }
        let units = ends.len() as u32;
        let writes = self.core.writes.get_or_insert_default();
        let hears = match notifies(capabilities, &limits) {
            true => writes
                .take_numbers(units, buffering)
                .map_or(Telling::Messages, Telling::Numbers),
            false => open_flags(
                &mut *self.rail,
                &limits,
                &registration.key,
                (units, buffering),
            )
            .map_or(Telling::Messages, Telling::Flags),
        };
        let how = describe(self.rail.name(), hears.way());
        let memory: Box<[u8]> = registration.key.as_slice().into();
        let bell = Arc::clone(&writes.bell);
        let handle = writes.incoming.insert_with(|handle| Incoming {
            end: Arc::new(Receiver::new(
                Line::new(bell, Call::Receiver(handle), how),
                units,
                buffering,
            )),
            peer: from,
            hears,
            registration,
            told: 0,
            said: false,
        });
        let one = writes.incoming.get(handle)?;
        match &one.hears {
            Telling::Numbers(numbers) => drop(writes.by_number.insert(numbers.first(), handle)),
            Telling::Flags(_) => writes.flagged.push(handle),
            Telling::Messages => {}
        }
        let end = Arc::clone(&one.end);
        let key = Key {
            channel: handle,
            told: one.hears.told(),
            buffering,
            address: region.address(),
            memory: &memory,
        };
        Some(OpenChannel {
            key: key.encode(),
            end,
        })
    }

    /// Joins the channel that the peer `to` opened.
    pub(super) fn join_written(
        &mut self,
        to: PeerIndex,
        data: &SendBuffer,
        ends: &[u64],
        key: &[u8],
    ) -> Result<Arc<dyn SendChannel>> {
        let key = Key::decode(key).ok_or(Error::BadRound("was answered with half a key"))?;
        let region = data
            .region()
            .ok_or(Error::BadRound("needs a contiguous buffer"))?;
        let endpoint = self.core.peers.get(to).map(|peer| peer.endpoint);
        let endpoint = endpoint.ok_or(Error::StaleRequest)?;
        if ends.last() != Some(&(region.len() as u64)) {
            return Err(Error::BadRound("has partitions beyond its buffer"));
        }
        let units = ends.len() as u32;
        let (capabilities, limits) = self.rail.towards(endpoint);
        let tells = match key.told {
            Told::Numbers(first) if notifies(capabilities, &limits) => {
                Telling::Numbers(Numbers::new(first, units, key.buffering))
            }
            Told::Words(address, words) if flags(&limits) => {
                Telling::Flags(Sources::new(units, key.buffering, address, words))
            }
            _ => Telling::Messages,
        };
        let how = describe(self.rail.name(), tells.way());
        let writes = self.core.writes.get_or_insert_default();
        let name = (to, key.channel.to_wire());
        let said = writes.early.remove(&name).unwrap_or_default();
        let bell = Arc::clone(&writes.bell);
        let handle = writes.outgoing.insert_with(|handle| Outgoing {
            end: Arc::new(Sender::new(
                Line::new(bell, Call::Sender(handle), how),
                units,
                key.buffering,
                tells.writes(),
            )),
            peer: to,
            endpoint,
            remote: key.channel,
            address: key.address,
            key: key.memory.into(),
            tells,
            region,
            longest: limits.max_remote_access.min(LONGEST_PUT),
            ends: ends.into(),
            waiting: VecDeque::new(),
            unflushed: Vec::new(),
            flushing: Vec::new(),
            unflagged: VecDeque::new(),
            puts: 0,
            said: false,
        });
        writes.by_remote.insert(name, handle);
        let out = writes.outgoing.get(handle).ok_or(Error::StaleRequest)?;
        out.end.heed(said.opened, said.closed);
        if said.closed.is_some() {
            // It waits for the word that nothing is written.
            out.end.line.call();
        }
        Ok(Arc::clone(&out.end) as Arc<dyn SendChannel>)
    }
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
        if capabilities.contains(Capabilities::CHANNELS) {
            Self::Own
        } else if !capabilities.contains(Capabilities::PUT) {
            Self::Messages
        } else if notifies(capabilities, limits) {
            Self::Notified
        } else if flags(limits) {
            Self::Flagged
        } else {
            Self::Flushed
        }
    }

    /// That of cm: a transport that matches writes nothing that was not matched.
    #[must_use]
    pub const fn of_cm(capabilities: Capabilities) -> Self {
        if capabilities.contains(Capabilities::CHANNELS) {
            Self::Own
        } else {
            Self::Messages
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
                 notice of 4 bytes, and keep their order, which was tested"
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

/// Which way partitions take, for people.
fn describe(transport: &str, way: ChannelWay) -> String {
    format!("{transport}: {}", way.about())
}

impl Core {
    /// Whether some channel has something to be done.
    #[inline]
    pub(super) fn writes_call(&self) -> bool {
        self.writes
            .as_ref()
            .is_some_and(|writes| !writes.bell.0.is_empty())
    }

    /// How long the rank may sleep, as far as channels are concerned.
    pub(super) fn longest_nap(&self) -> Duration {
        let waits = self.writes.as_ref().is_some_and(|writes| {
            let flagged = writes.flagged.iter();
            let mut ends = flagged.filter_map(|handle| writes.incoming.get(*handle));
            ends.any(|one| one.end.waits() && self.peers.is_alive(one.peer))
        });
        if waits { FLAG_NAP } else { Duration::MAX }
    }
}
