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
pub(super) mod state;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tagwire_transport::{
    Buffering, ByteTransport, Capabilities, Limits, OpenChannel, RecvBuffer, SendBuffer,
    SendChannel,
};

use self::ends::{Line, Receiver, Sender};
use self::flags::{Sources, Targets};
use self::key::{Key, Numbers, Told};
use self::state::{
    Call, ChannelWay, FLAG_NAP, Incoming, LONGEST_PUT, Outgoing, Telling, flags, notifies,
};
use super::Ob1;
use super::core::Core;
use super::peer::PeerIndex;
use crate::error::{Error, Result};

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

/// Which path partitions take, for people.
fn describe(transport: &str, way: ChannelWay) -> String {
    format!("{transport}: {}", way.about())
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
