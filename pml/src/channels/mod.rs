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
mod opening;
mod service;
mod state;

use std::collections::VecDeque;
use std::sync::Arc;

use tagwire_transport::{
    Buffering, Capabilities, Limits, OpenChannel, RecvBuffer, RemoteAccess, SendBuffer, SendChannel,
};

use self::ends::{Line, Receiver, Sender};
use self::flags::{Sources, Targets};
pub(crate) use self::key::LONGEST_KEY;
use self::key::{Key, Notification, Numbers};
pub use self::state::ChannelWay;
pub(crate) use self::state::Channels;
use self::state::{Call, Incoming, LONGEST_PUT, Notifying, Outgoing, flags, notifies};
use crate::error::{Error, Result};
use crate::packet::{Kind, PacketKinds};
use crate::service::Terms;

/// Flags for a channel of so many transport partitions, where they serve and the key has room for theirs.
fn open_flags(
    rail: &mut dyn RemoteAccess,
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

/// Which path partitions take, for people.
fn describe(transport: &str, way: ChannelWay) -> String {
    format!("{transport}: {}", way.about())
}

impl Kind {
    /// To the sender of a channel: its receiver has opened a round. Handle: the channel, as the receiver
    /// calls it; argument: the round.
    const CHANNEL_OPENED: Self = Self::control(27);
    /// To the receiver of a channel: partitions were written. Argument: the first, and the one after the last.
    const CHANNEL_LANDED: Self = Self::control(28);
    /// To the receiver of a channel: its sender has closed it. Argument: the rounds that it has sent.
    const CHANNEL_ENDED: Self = Self::control(29);
    /// To the sender of a channel: its receiver has closed it. Argument: the rounds that it has received.
    const CHANNEL_CLOSED: Self = Self::control(30);
}

impl Channels {
    /// The packets of channels.
    const KINDS: PacketKinds = &[
        Kind::CHANNEL_OPENED,
        Kind::CHANNEL_LANDED,
        Kind::CHANNEL_ENDED,
        Kind::CHANNEL_CLOSED,
    ];

    /// Opens a receiving end for writes of the peer; `None` where the transport has none.
    pub(crate) fn open(
        &mut self,
        rail: &mut dyn RemoteAccess,
        terms: &Terms,
        data: &RecvBuffer,
        ends: &[u64],
        buffering: Buffering,
    ) -> Option<OpenChannel> {
        let (capabilities, limits) = terms.access.as_ref()?;
        let writes = terms.carries_partitions && capabilities.contains(Capabilities::PUT);
        let region = data.region()?;
        let total = ends.last().copied().unwrap_or(0);
        let fits = region.len() as u64 == total * buffering.rooms() as u64;
        // A partition of no bytes gives nothing to write, and none is cut.
        let goes = lengths(ends).all(|len| (1..=limits.max_remote_access).contains(&len));
        if !writes || !fits || !goes {
            return None;
        }
        let registration = rail.register(data).ok()?;
        if !Key::has_room_for(&registration.key) {
            rail.deregister(registration);
            return None;
        }
        let units = ends.len() as u32;
        let hears = match notifies(*capabilities, limits) {
            true => self
                .take_numbers(units, buffering)
                .map_or(Notifying::Messages, Notifying::Numbers),
            false => open_flags(rail, limits, &registration.key, (units, buffering))
                .map_or(Notifying::Messages, Notifying::Flags),
        };
        let how = describe(rail.name(), hears.way());
        let memory: Box<[u8]> = registration.key.as_slice().into();
        let bell = Arc::clone(&self.doorbell);
        let handle = self.incoming.insert_with(|handle| Incoming {
            end: Arc::new(Receiver::new(
                Line::new(bell, Call::Receiver(handle), how),
                units,
                buffering,
            )),
            peer: terms.peer,
            hears,
            registration,
            notification: 0,
            said: false,
        });
        let one = self.incoming.get(handle)?;
        match &one.hears {
            Notifying::Numbers(numbers) => drop(self.by_number.insert(numbers.first(), handle)),
            Notifying::Flags(_) => self.flagged.push(handle),
            Notifying::Messages => {}
        }
        let end = Arc::clone(&one.end);
        let key = Key {
            channel: handle,
            notification: one.hears.notification(),
            buffering,
            address: region.address(),
            memory: &memory,
        };
        Some(OpenChannel {
            key: key.encode(),
            end,
        })
    }

    /// Joins the channel that the peer opened.
    pub(crate) fn join(
        &mut self,
        rail: &dyn RemoteAccess,
        terms: &Terms,
        data: &SendBuffer,
        ends: &[u64],
        key: &[u8],
    ) -> Result<Arc<dyn SendChannel>> {
        let key = Key::decode(key).ok_or(Error::BadRound("was answered with half a key"))?;
        let region = data
            .region()
            .ok_or(Error::BadRound("needs a contiguous buffer"))?;
        if ends.last() != Some(&(region.len() as u64)) {
            return Err(Error::BadRound("has partitions beyond its buffer"));
        }
        let units = ends.len() as u32;
        let (capabilities, limits) = terms.access.as_ref().ok_or(Error::BadRound(
            "was answered with a key of another transport",
        ))?;
        let (to, endpoint) = (terms.peer, terms.endpoint);
        let tells = match key.notification {
            Notification::Numbers(first) if notifies(*capabilities, limits) => {
                Notifying::Numbers(Numbers::new(first, units, key.buffering))
            }
            Notification::Words(address, words) if flags(limits) => {
                Notifying::Flags(Sources::new(units, key.buffering, address, words))
            }
            _ => Notifying::Messages,
        };
        let how = describe(rail.name(), tells.way());
        let name = (to, key.channel.to_wire());
        let said = self.early.remove(&name).unwrap_or_default();
        let bell = Arc::clone(&self.doorbell);
        let handle = self.outgoing.insert_with(|handle| Outgoing {
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
        self.by_remote.insert(name, handle);
        let out = self.outgoing.get(handle).ok_or(Error::StaleRequest)?;
        out.end.heed(said.opened, said.closed);
        if said.closed.is_some() {
            // It waits for the word that nothing is written.
            out.end.line.call();
        }
        Ok(Arc::clone(&out.end) as Arc<dyn SendChannel>)
    }
}
