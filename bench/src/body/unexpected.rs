//! The time of a receive whose message has arrived already, behind others that nobody has
//! received.

use std::time::{Duration, Instant};

use super::{Body, Measured, Repeat, Traffic, other};
use crate::buffer::Incoming;
use crate::error::Result;
use crate::port::{Port, tags};
use crate::position::{Position, Turns};

/// How many messages of one iteration are received in one go: the clock is read once for all.
const BATCH: usize = 16;

/// One unit is one receive. Rank 1 sends, rank 0 receives.
pub(crate) struct Unexpected<P: Port> {
    traffic: Traffic,
    /// The messages that lie ahead.
    before: Traffic,
    /// How many messages lie ahead.
    ahead: u32,
    requests: Vec<P::Request>,
}

impl<P: Port> Unexpected<P> {
    /// `traffic` has a window of at least [`BATCH`] messages, `before` one of `ahead` on rank 1.
    pub(crate) const fn new(traffic: Traffic, before: Traffic, ahead: u32) -> Self {
        Self {
            traffic,
            before,
            ahead,
            requests: Vec::new(),
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
        let peer = other(port.rank());
        if port.rank().as_u32() == 0 {
            port.recv(self.traffic.incoming(0, 0), peer, tags::SENT)?;
            return port.send(self.traffic.empty(), peer, tags::ACK);
        }
        for slot in 0..self.ahead as usize {
            let data = self.before.outgoing(slot, size);
            self.requests.push(port.isend(data, peer, tags::AHEAD)?);
        }
        port.send(self.traffic.empty(), peer, tags::SENT)?;
        port.recv(self.traffic.incoming(0, 0), peer, tags::ACK)
    }

    fn block(&mut self, port: &P, block: Repeat<'_>) -> Result<Measured> {
        in_batches(self, port, block)
    }

    fn end(&mut self, port: &P, size: usize) -> Result<()> {
        let peer = other(port.rank());
        if port.rank().as_u32() != 0 {
            return port.wait_all(&mut self.requests);
        }
        for _ in 0..self.ahead {
            self.before.recv(port, size, peer, tags::AHEAD)?;
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
