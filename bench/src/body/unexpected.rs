//! The time of a receive whose message has arrived already, behind others that nobody has
//! received.

use std::time::{Duration, Instant};

use tagwire_base::{Rank, Tag};

use super::{Body, Measured, Repeat, Traffic, other};
use crate::buffer::Incoming;
use crate::error::Result;
use crate::port::{Port, tags};
use crate::position::{Position, Turns};
use crate::spread::Sources;

/// How many messages of one iteration are received in one go: the clock is read once for all.
const BATCH: usize = 16;

/// One unit is one receive. Rank 1 sends, rank 0 receives; others send what lies ahead, where that is from several sources.
pub(crate) struct Unexpected<P: Port> {
    traffic: Traffic,
    /// The messages that lie ahead.
    before: Traffic,
    /// How many messages lie ahead.
    ahead: u32,
    /// Whose they are; without, rank 1's, with another tag.
    sources: Option<Sources>,
    /// How many of them rank 0 has received from each rank.
    received: Vec<u64>,
    requests: Vec<P::Request>,
}

impl<P: Port> Unexpected<P> {
    /// `traffic` has a window of at least [`BATCH`] messages, `before` one of `ahead` on the ranks that send them.
    pub(crate) const fn new(traffic: Traffic, before: Traffic, ahead: u32) -> Self {
        Self {
            traffic,
            before,
            ahead,
            sources: None,
            received: Vec::new(),
            requests: Vec::new(),
        }
    }

    /// Has the messages ahead be from these ranks, with the tag of the others.
    pub(crate) fn with_sources(self, sources: Option<Sources>) -> Self {
        Self { sources, ..self }
    }

    /// Returns how many of the messages ahead this rank sends, and with which tag.
    fn share(&self, rank: Rank) -> (u32, Tag) {
        match self.sources {
            Some(sources) => (sources.share(rank, self.ahead), tags::DATA),
            None if rank.as_u32() == 1 => (self.ahead, tags::AHEAD),
            None => (0, tags::AHEAD),
        }
    }
}

impl<P: Port> Batches<P> for Unexpected<P> {
    fn receive_batch(&mut self, port: &P, size: usize) -> Result<Duration> {
        let peer = other(port.rank());
        let elapsed = timed(port, self.traffic.incoming(0, 0), |_| {
            self.traffic.recv(port, size, peer, tags::DATA)
        })?;
        port.send(self.traffic.empty(), peer, tags::ACK)?;
        Ok(elapsed)
    }

    fn send_batch(&mut self, port: &P, size: usize) -> Result<()> {
        let peer = other(port.rank());
        let mut batch = Vec::with_capacity(BATCH);
        for slot in 0..BATCH {
            batch.push(port.isend(self.traffic.outgoing(slot, size), peer, tags::DATA)?);
        }
        port.send(self.traffic.empty(), peer, tags::SENT)?;
        port.recv(self.traffic.incoming(0, 0), peer, tags::ACK)?;
        port.wait_all(&mut batch)
    }
}

impl<P: Port> Body<P> for Unexpected<P> {
    fn begin(&mut self, port: &P, size: usize) -> Result<()> {
        let zero = Rank::new(0);
        if port.rank() == zero {
            self.received.resize(port.size() as usize, 0);
            let others = || (1..port.size()).map(Rank::new);
            for other in others() {
                port.recv(self.traffic.incoming(0, 0), other, tags::SENT)?;
            }
            return others().try_for_each(|it| port.send(self.traffic.empty(), it, tags::ACK));
        }
        let (share, tag) = self.share(port.rank());
        for slot in 0..share as usize {
            let data = self.before.outgoing(slot, size);
            self.requests.push(port.isend(data, zero, tag)?);
        }
        port.send(self.traffic.empty(), zero, tags::SENT)?;
        port.recv(self.traffic.incoming(0, 0), zero, tags::ACK)
    }

    fn block(&mut self, port: &P, block: Repeat<'_>) -> Result<Measured> {
        match port.rank().as_u32() {
            0 | 1 => in_batches(self, port, block),
            _ => Ok(Measured::NOTHING),
        }
    }

    fn end(&mut self, port: &P, size: usize) -> Result<()> {
        if port.rank().as_u32() != 0 {
            return port.wait_all(&mut self.requests);
        }
        for from in (1..port.size()).map(Rank::new) {
            let (share, tag) = self.share(from);
            for _ in 0..share {
                port.recv(self.before.incoming(0, size), from, tag)?;
                let sent = &mut self.received[from.index()];
                self.before.check_sent(0, size, from, *sent)?;
                *sent += 1;
            }
        }
        Ok(())
    }
}

/// Receives in batches, of messages that have arrived already.
trait Batches<P: Port> {
    /// On rank 0: receives a batch. Returns how long that took.
    fn receive_batch(&mut self, port: &P, size: usize) -> Result<Duration>;

    /// On rank 1: sends what belongs to a batch.
    fn send_batch(&mut self, port: &P, size: usize) -> Result<()>;
}

/// Runs a block, of which an iteration is a batch.
fn in_batches<P: Port>(
    body: &mut impl Batches<P>,
    port: &P,
    mut block: Repeat<'_>,
) -> Result<Measured> {
    let mut elapsed = Duration::ZERO;
    for _ in 0..block.count {
        if port.rank().as_u32() != 0 {
            body.send_batch(port, block.size)?;
            continue;
        }
        let took = body.receive_batch(port, block.size)?;
        elapsed += took;
        if let Some(times) = &mut block.times {
            times.record(took, BATCH as u64);
        }
    }
    Ok(Measured {
        elapsed,
        units: block.count * BATCH as u64,
    })
}

/// Returns the time of a batch of receives, all of whose messages have arrived.
#[inline]
fn timed<P: Port>(
    port: &P,
    empty: Incoming,
    receive: impl FnMut(usize) -> Result<()>,
) -> Result<Duration> {
    // Whatever was sent before this one has arrived when it has.
    port.recv(empty, other(port.rank()), tags::SENT)?;
    let start = Instant::now();
    (0..BATCH).try_for_each(receive)?;
    Ok(start.elapsed())
}

/// The same for receives whose messages lie at a chosen place among others that nobody receives meanwhile. Messages that are
/// received are sent again, and lie behind all others then.
pub(crate) struct UnexpectedAt<P: Port> {
    traffic: Traffic,
    turns: Turns,
    /// As they are when a queue begins.
    first: Turns,
    /// Of rank 1: the sends of messages, by their numbers.
    sends: Vec<Option<P::Request>>,
    /// How many messages were sent before each one, by their numbers.
    order: Vec<u64>,
    sent: u64,
}

impl<P: Port> UnexpectedAt<P> {
    /// Returns how many messages are under way at once, with `others` that are not received meanwhile.
    pub(crate) const fn window(others: u32) -> u32 {
        others + BATCH as u32
    }

    /// `traffic` has a [window](Self::window) of messages on rank 1.
    pub(crate) fn new(traffic: Traffic, position: Position, others: u32) -> Self {
        let first = Turns::new(position, others, BATCH as u32);
        Self {
            traffic,
            turns: first.clone(),
            first,
            sends: Vec::new(),
            order: Vec::new(),
            sent: 0,
        }
    }

    /// Notes that a message is sent.
    fn note(&mut self, number: u32) {
        self.order[number as usize] = self.sent;
        self.sent += 1;
    }

    fn receive(&self, port: &P, number: u32, size: usize) -> Result<()> {
        let peer = other(port.rank());
        let room = self.traffic.incoming(0, size);
        port.recv(room, peer, tags::never(number))?;
        let sent = self.order[number as usize];
        self.traffic.check_sent(0, size, peer, sent)
    }

    fn send(&mut self, port: &P, number: u32, size: usize) -> Result<()> {
        let slot = number as usize;
        let mut before: Vec<P::Request> = self.sends[slot].take().into_iter().collect();
        port.wait_all(&mut before)?;
        let data = self.traffic.outgoing(slot, size);
        let tag = tags::never(number);
        self.sends[slot] = Some(port.isend(data, other(port.rank()), tag)?);
        Ok(())
    }
}

impl<P: Port> Batches<P> for UnexpectedAt<P> {
    fn receive_batch(&mut self, port: &P, size: usize) -> Result<Duration> {
        let peer = other(port.rank());
        let batch: [u32; BATCH] = std::array::from_fn(|_| self.turns.take());
        let elapsed = timed(port, self.traffic.incoming(0, 0), |place| {
            self.receive(port, batch[place], size)
        })?;
        batch.iter().for_each(|number| self.note(*number));
        port.send(self.traffic.empty(), peer, tags::ACK)?;
        Ok(elapsed)
    }

    /// Says that all messages are there, and sends those again that were received since.
    fn send_batch(&mut self, port: &P, size: usize) -> Result<()> {
        let peer = other(port.rank());
        port.send(self.traffic.empty(), peer, tags::SENT)?;
        let batch: [u32; BATCH] = std::array::from_fn(|_| self.turns.take());
        port.recv(self.traffic.incoming(0, 0), peer, tags::ACK)?;
        batch
            .into_iter()
            .try_for_each(|number| self.send(port, number, size))
    }
}

impl<P: Port> Body<P> for UnexpectedAt<P> {
    fn begin(&mut self, port: &P, size: usize) -> Result<()> {
        self.turns = self.first.clone();
        let entries = self.turns.entries();
        self.order = vec![0; entries as usize];
        if port.rank().as_u32() == 0 {
            (0..entries).for_each(|number| self.note(number));
            return Ok(());
        }
        self.sends = (0..entries).map(|_| None).collect();
        (0..entries).try_for_each(|number| self.send(port, number, size))
    }

    fn block(&mut self, port: &P, block: Repeat<'_>) -> Result<Measured> {
        in_batches(self, port, block)
    }

    fn end(&mut self, port: &P, size: usize) -> Result<()> {
        if port.rank().as_u32() != 0 {
            let mut sends: Vec<P::Request> = self.sends.drain(..).flatten().collect();
            return port.wait_all(&mut sends);
        }
        (0..self.turns.entries()).try_for_each(|number| self.receive(port, number, size))
    }
}
