//! What whoever drives the rank does for its channels, and what arrives for them.

use std::collections::VecDeque;
use std::ops::Range;

use std::time::Duration;

use tagwire_base::Clock;
use tagwire_transport::{Outcome, Payload, Post, RemoteAccess, RemoteMemory, SendBuffer};

use super::key::{Numbers, Run};
use super::state::{
    Call, Channels, FLAG_SLEEP, Flight, Flights, MOST_EARLY, Notifying, Operation, Outgoing,
    ReceiverState,
};
use crate::packet::{ControlHeader, Kind, PacketKinds};
use crate::peers::LANE;
use crate::peers::{Living, PeerIndex};
use crate::service::{Out, Service, Tokens, Wire, Wrong};
use crate::slab::Handle;
use crate::types::Failure;

/// Set in the word that reports a flushed run in the second room.
const SECOND_ROOM: u64 = 1 << 63;

/// The word that reports a flushed run.
fn landed(room: usize, units: &Range<u32>) -> u64 {
    (room as u64) << 63 | u64::from(units.start) << 32 | u64::from(units.end)
}

/// The run that such a word reports.
fn run_of(word: u64) -> Option<Run> {
    let bounds = word & !SECOND_ROOM;
    let units = (bounds >> 32) as u32..bounds as u32;
    (!units.is_empty()).then(|| Run {
        room: usize::from(word & SECOND_ROOM != 0),
        units,
    })
}

/// Puts a run into a queue; neighbours go together.
fn queue(runs: &mut VecDeque<Run>, run: Run) {
    match runs.back_mut() {
        Some(last) if last.room == run.room && last.units.end == run.units.start => {
            last.units.end = run.units.end;
        }
        _ => runs.push_back(run),
    }
}

impl Service for Channels {
    fn new(clock: &Clock, tokens: Tokens) -> Self {
        Self::of(clock, tokens)
    }

    fn kinds(&self) -> PacketKinds {
        Self::KINDS
    }

    fn is_called(&self) -> bool {
        !self.doorbell.calls.is_empty()
    }

    fn drive(&mut self, Wire { rail, peers, out }: &mut Wire<'_>) -> usize {
        let Some(rail) = rail.as_deref_mut() else {
            debug_assert!(false, "a channel is one of a transport with access");
            return 0;
        };
        let mut done = 0;
        for _ in 0..self.doorbell.calls.len() {
            let Some(call) = self.doorbell.calls.pop() else {
                break;
            };
            done += match call {
                Call::Sender(handle) => self.drive_sender(handle, rail, *peers, *out),
                Call::Receiver(handle) => self.drive_receiver(handle, rail, *peers, *out),
            };
        }
        done
    }

    /// Looks at the flags of the channels that have such.
    fn look(&self) -> usize {
        let mut come = 0;
        let flagged = self.flagged.iter();
        for one in flagged.filter_map(|handle| self.incoming.get(*handle)) {
            let Notifying::Flags(flags) = &one.hears else {
                continue;
            };
            for (room, unit, epoch) in one.end.missing() {
                if flags.get(room, unit) == epoch {
                    let units = unit as u32..unit as u32 + 1;
                    come += usize::from(one.end.land(&Run { room, units }));
                }
            }
        }
        come
    }

    fn packet(
        &mut self,
        from: PeerIndex,
        header: ControlHeader,
        _: Payload<'_>,
        _: &mut dyn Out,
    ) -> Result<(), Wrong> {
        let argument = header.argument;
        match header.kind {
            Kind::CHANNEL_OPENED => {
                self.receiver_said(from, header.handle, |said| said.opened = argument);
            }
            Kind::CHANNEL_CLOSED => {
                self.receiver_said(from, header.handle, |said| said.closed = Some(argument));
            }
            _ => return self.sender_said(from, header),
        }
        Ok(())
    }

    fn complete(&mut self, operation: Handle, outcome: Outcome, packets: &mut dyn Out) {
        let flight = self.flights.end(operation);
        let Some((flight, out)) =
            flight.and_then(|flight| Some((flight, self.outgoing.get_mut(flight.channel)?)))
        else {
            return;
        };
        let good = matches!(outcome, Outcome::Done(_));
        if !good {
            tracing::debug!(?outcome, "a write of a channel did not work");
            out.end.line.break_down();
        }
        match flight.what {
            Operation::Put(units) => {
                out.puts -= 1;
                out.end.release(units);
                if good && out.tells.numbers().is_some() {
                    out.end.tell(units);
                }
            }
            Operation::Flags(units) => {
                out.puts -= 1;
                if let Notifying::Flags(flags) = &mut out.tells {
                    flags.ended();
                }
                out.end.release(units);
                if good {
                    out.end.tell(units);
                }
            }
            Operation::Flush => {
                for Run { room, units } in out.flushing.drain(..).filter(|_| good) {
                    out.end.tell(units.end - units.start);
                    let header = ControlHeader {
                        kind: Kind::CHANNEL_LANDED,
                        handle: out.remote,
                        argument: landed(room, &units),
                    };
                    packets.packet(out.peer, header, &[]);
                }
            }
        }
        out.end.line.hold(out.holds());
        if !out.unflushed.is_empty() || out.is_ending() {
            out.end.line.call();
        }
    }

    fn notice(&self, number: u64) -> Result<bool, (PeerIndex, Wrong)> {
        let found = u32::try_from(number).ok().and_then(|number| {
            let (_, channel) = self.by_number.range(..=number).next_back()?;
            let one = self.incoming.get(*channel)?;
            Some((one, one.hears.numbers()?.run(number)?))
        });
        let Some((one, run)) = found else {
            // It may be of a channel that has closed in the middle of a round.
            return Ok(false);
        };
        match one.end.land(&run) {
            true => Ok(true),
            false => Err((one.peer, "a partition was written twice in a round")),
        }
    }

    fn lose(&mut self, peer: PeerIndex, _: Failure) {
        let outgoing = self.outgoing.iter().filter(|(_, out)| out.peer == peer);
        outgoing.for_each(|(_, out)| out.end.line.call());
        let incoming = self.incoming.iter().filter(|(_, one)| one.peer == peer);
        incoming.for_each(|(_, one)| one.end.line.call());
    }

    fn longest_sleep(&self, peers: &dyn Living) -> Duration {
        let mut ends = self
            .flagged
            .iter()
            .filter_map(|handle| self.incoming.get(*handle));
        let waits = ends.any(|one| one.end.waits() && peers.is_alive(one.peer));
        if waits { FLAG_SLEEP } else { Duration::MAX }
    }

    /// Channels that are about to close, or have something to tell.
    fn unfinished(&self) -> usize {
        let outgoing = self.outgoing.iter().map(|(_, out)| out);
        let outgoing = outgoing.filter(|out| out.end.line.is_closing() || !out.has_told());
        let incoming = self.incoming.iter().map(|(_, one)| one);
        let incoming = incoming.filter(|one| one.end.line.is_closing());
        outgoing.count() + incoming.count()
    }
}

impl Channels {
    fn drive_sender(
        &mut self,
        handle: Handle,
        rail: &mut dyn RemoteAccess,
        peers: &dyn Living,
        packets: &mut dyn Out,
    ) -> usize {
        let Self {
            outgoing,
            flights,
            by_remote,
            ..
        } = self;
        let Some(out) = outgoing.get_mut(handle) else {
            return 0;
        };
        // Who looks meanwhile sees one or the other.
        out.end.line.hold(true);
        out.end.line.heard();
        while let Some(run) = out.end.next_post() {
            queue(&mut out.waiting, run);
        }
        let alive = peers.is_alive(out.peer);
        // A receiver that has closed waits for the word that nothing is written any more.
        let ending = out.is_ending();
        if ending || !alive {
            out.waiting.clear();
            out.unflagged.clear();
        }
        let done = out.put(handle, rail, flights);
        out.put_flags(handle, rail, flights);
        if alive {
            out.flush(handle, rail, flights);
        }
        out.end.line.hold(out.holds());
        if ending
            && out.puts == 0
            && out.has_told()
            && alive
            && !std::mem::replace(&mut out.said, true)
        {
            let header = ControlHeader {
                kind: Kind::CHANNEL_ENDED,
                handle: out.remote,
                argument: out.end.rounds(),
            };
            packets.packet(out.peer, header, &[]);
        }
        if out.end.line.is_closing() && out.puts == 0 {
            out.end.line.end();
        }
        // Of one that has not closed over there more may be said: it is to be known until then.
        if out.end.line.is_closed() && (!alive || out.said && out.end.line.has_ended_there()) {
            by_remote.remove(&(out.peer, out.remote.to_wire()));
            outgoing.remove(handle);
        }
        done
    }

    fn drive_receiver(
        &mut self,
        handle: Handle,
        rail: &mut dyn RemoteAccess,
        peers: &dyn Living,
        packets: &mut dyn Out,
    ) -> usize {
        let Some(one) = self.incoming.get_mut(handle) else {
            return 0;
        };
        one.end.line.heard();
        let opened = one.end.opened();
        if opened > one.notification {
            one.notification = opened;
            let header = ControlHeader {
                kind: Kind::CHANNEL_OPENED,
                handle,
                argument: opened,
            };
            packets.packet(one.peer, header, &[]);
        }
        if one.end.line.is_closing() {
            let alive = peers.is_alive(one.peer);
            if alive && !std::mem::replace(&mut one.said, true) {
                let header = ControlHeader {
                    kind: Kind::CHANNEL_CLOSED,
                    handle,
                    argument: one.end.rounds(),
                };
                packets.packet(one.peer, header, &[]);
            }
            // In the middle of a round the sender may be writing until it says that it does not.
            let quiet = !alive || one.end.is_at_rest() || one.end.line.has_ended_there();
            if let Some(one) = quiet.then(|| self.incoming.remove(handle)).flatten() {
                match one.hears {
                    Notifying::Numbers(numbers) => drop(self.by_number.remove(&numbers.first())),
                    Notifying::Flags(flags) => {
                        self.flagged.retain(|flagged| *flagged != handle);
                        flags.end(rail);
                    }
                    Notifying::Messages => {}
                }
                rail.deregister(one.registration);
                one.end.line.end();
            }
        }
        1
    }
}

impl Outgoing {
    /// Whether either end has closed: nothing more is to be written.
    fn is_ending(&self) -> bool {
        !self.end.line.is_open() || self.end.line.has_ended_there()
    }

    /// Whether the rank's progress may be needed until the receiver has heard of all that was posted.
    fn holds(&self) -> bool {
        !(self.waiting.is_empty() && self.has_told() && self.puts == 0)
    }

    /// The longest run at the start of `run` that one put may be.
    fn cut(&self, run: &Run) -> Run {
        let Range { start, end } = run.units;
        let most = self.tells.numbers().map_or(u32::MAX, Numbers::longest);
        let mut last = end.min(start.saturating_add(most));
        let from = self.start_of(start);
        while last > start + 1 && self.start_of(last) - from > self.longest {
            last = start + (last - start) / 2;
        }
        Run {
            room: run.room,
            units: start..last,
        }
    }

    /// Gives the transport what waits; returns how many puts it has taken.
    #[allow(unsafe_code, reason = "parts of a buffer are lent that is lent itself")]
    fn put(&mut self, handle: Handle, rail: &mut dyn RemoteAccess, flights: &mut Flights) -> usize {
        let mut done = 0;
        while let Some(next) = self.waiting.front() {
            let (run, end) = (self.cut(next), next.units.end);
            let units = run.units.clone();
            let bytes = self.start_of(units.start)..self.start_of(units.end);
            let Some(part) = self.region.slice(bytes.start as usize..bytes.end as usize) else {
                break;
            };
            let (flight, token) = flights.begin(Flight {
                channel: handle,
                what: Operation::Put(units.end - units.start),
            });
            let room = (run.room * self.region.len()) as u64;
            let target = RemoteMemory {
                address: self.address.wrapping_add(room + bytes.start),
                key: &self.key,
            };
            let number = self.tells.numbers().map(|numbers| numbers.number(&run));
            // SAFETY: the partitions were posted, so that they are lent until all writes of their round have
            // ended, of which this is one: until then the end is neither complete nor closed.
            let data = unsafe { SendBuffer::of(part) };
            match rail.put(LANE, self.endpoint, &data, target, number, token) {
                Post::Posted => {}
                Post::Busy => {
                    flights.end(flight);
                    // Once more with the next progress: nobody reports when there is room.
                    self.end.line.call();
                    break;
                }
                Post::Gone | Post::Unsupported => {
                    flights.end(flight);
                    self.waiting.clear();
                    self.end.line.break_down();
                    break;
                }
            }
            self.puts += 1;
            done += 1;
            match self.tells {
                Notifying::Numbers(_) => {}
                Notifying::Flags(_) => queue(&mut self.unflagged, run),
                Notifying::Messages => self.unflushed.push(run),
            }
            match self.waiting.front_mut() {
                Some(first) if units.end < end => first.units.start = units.end,
                _ => drop(self.waiting.pop_front()),
            }
        }
        done
    }

    /// Gives the transport the flags of what it has taken.
    fn put_flags(&mut self, handle: Handle, rail: &mut dyn RemoteAccess, flights: &mut Flights) {
        let Notifying::Flags(flags) = &mut self.tells else {
            return;
        };
        while let Some(run) = self.unflagged.front() {
            let (flight, token) = flights.begin(Flight {
                channel: handle,
                what: Operation::Flags(run.units.end - run.units.start),
            });
            match flags.put(rail, self.endpoint, (run, self.end.epoch()), token) {
                Post::Posted => {
                    self.puts += 1;
                    self.unflagged.pop_front();
                }
                Post::Busy => {
                    flights.end(flight);
                    return self.end.line.call();
                }
                Post::Gone | Post::Unsupported => {
                    flights.end(flight);
                    self.unflagged.clear();
                    return self.end.line.break_down();
                }
            }
        }
    }

    /// Asks for the word that what was put is there, unless that is under way.
    fn flush(&mut self, handle: Handle, rail: &mut dyn RemoteAccess, flights: &mut Flights) {
        if self.unflushed.is_empty() || !self.flushing.is_empty() {
            return;
        }
        let (flight, token) = flights.begin(Flight {
            channel: handle,
            what: Operation::Flush,
        });
        match rail.flush(LANE, self.endpoint, token) {
            Post::Posted => std::mem::swap(&mut self.flushing, &mut self.unflushed),
            Post::Busy => {
                flights.end(flight);
                self.end.line.call();
            }
            Post::Gone | Post::Unsupported => {
                flights.end(flight);
                self.end.line.break_down();
            }
        }
    }
}

impl Channels {
    fn receiver_said(
        &mut self,
        from: PeerIndex,
        channel: Handle,
        note: impl FnOnce(&mut ReceiverState),
    ) {
        let name = (from, channel.to_wire());
        match self.by_remote.get(&name) {
            Some(handle) => {
                let mut said = ReceiverState::default();
                note(&mut said);
                if let Some(out) = self.outgoing.get(*handle) {
                    out.end.heed(said.opened, said.closed);
                    if said.closed.is_some() {
                        out.end.line.call();
                    }
                }
            }
            // Its reply to the handshake was sent before, and is still to be looked at.
            None if self.early.len() < MOST_EARLY => {
                note(self.early.entry(name).or_default());
            }
            None => tracing::debug!("a word on one channel too many is dropped"),
        }
    }

    fn sender_said(&self, from: PeerIndex, header: ControlHeader) -> Result<(), &'static str> {
        let Some(one) = self.incoming.get(header.handle) else {
            // It has closed meanwhile.
            return Ok(());
        };
        if one.peer != from {
            return Err("a word on another's channel");
        }
        if header.kind == Kind::CHANNEL_ENDED {
            one.end.line.ended_there(header.argument);
            one.end.line.call();
            return Ok(());
        }
        let landed = run_of(header.argument).is_some_and(|run| one.end.land(&run));
        landed
            .then_some(())
            .ok_or("a partition was written that cannot be")
    }
}
