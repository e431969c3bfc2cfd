//! A message goes back and forth, and its receive lies at a chosen place among others that are posted.

use super::latency::{is_wild, peer};
use super::{Body, Measured, Repeat, Traffic};
use crate::buffer::Incoming;
use crate::error::Result;
use crate::port::{Port, barrier, tags};
use crate::position::{Position, Turns};

/// One unit is half a round trip of each pair of ranks: i and i + n/2.
///
/// All receives of the queue are posted before the first message. The one that a message matches is posted again before its
/// rank sends, so that each is posted when its message comes.
pub(crate) struct Placed<P: Port> {
    traffic: Traffic,
    position: Position,
    others: u32,
    /// How many percent of the receives are of any source.
    wild: u32,
    queue: Option<Queue<P>>,
}

/// The receives of a rank, by number.
struct Queue<P: Port> {
    receives: Vec<Option<P::Request>>,
    wild: u32,
    /// Which of them the next message is for, and which of the peer's.
    own: Turns,
    peers: Turns,
    /// The receive that is waited for.
    awaited: Vec<P::Request>,
}

impl<P: Port> Placed<P> {
    /// `traffic` has a window of `others` and one more.
    pub(crate) const fn new(traffic: Traffic, position: Position, others: u32) -> Self {
        Self {
            traffic,
            position,
            others,
            wild: 0,
            queue: None,
        }
    }

    /// Has so many percent of the receives be of any source: those that match among them, when their turns come.
    pub(crate) fn with_wild(self, percent: u32) -> Self {
        Self {
            wild: percent,
            ..self
        }
    }
}

impl<P: Port> Queue<P> {
    #[inline]
    fn receive(&mut self, port: &P, traffic: &mut Traffic, size: usize) -> Result<()> {
        let (peer, _) = peer(port);
        let number = self.own.take();
        let slot = &mut self.receives[number as usize];
        self.awaited.extend(slot.take());
        port.wait_all(&mut self.awaited)?;
        traffic.check_at(number as usize, size, peer)?;
        let room = traffic.incoming(number as usize, size);
        *slot = Some(post(port, room, number, self.wild)?);
        Ok(())
    }

    #[inline]
    fn send(&mut self, port: &P, traffic: &mut Traffic, size: usize) -> Result<()> {
        let (peer, _) = peer(port);
        traffic.send(port, size, peer, tags::never(self.peers.take()))
    }
}

/// Posts the receive of a number, from the peer or, as the share of these has it, from anybody.
#[inline]
fn post<P: Port>(port: &P, room: Incoming, number: u32, wild: u32) -> Result<P::Request> {
    match is_wild(number, wild) {
        true => port.irecv_any(room, tags::never(number)),
        false => port.irecv(room, peer(port).0, tags::never(number)),
    }
}

impl<P: Port> Body<P> for Placed<P> {
    fn begin(&mut self, port: &P, size: usize) -> Result<()> {
        let turns = Turns::new(self.position, self.others, 1);
        let post = |number| {
            let room = self.traffic.incoming(number as usize, size);
            post(port, room, number, self.wild).map(Some)
        };
        let receives = (0..turns.entries()).map(post).collect::<Result<_>>()?;
        self.queue = Some(Queue {
            receives,
            wild: self.wild,
            own: turns.clone(),
            peers: turns,
            awaited: Vec::with_capacity(1),
        });
        barrier(port)
    }

    fn block(&mut self, port: &P, block: Repeat<'_>) -> Result<Measured> {
        let ((_, leads), size) = (peer(port), block.size);
        let queue = self.queue.as_mut().expect("a block is after the beginning");
        let traffic = &mut self.traffic;
        if leads {
            return block.run(2, || {
                queue.send(port, traffic, size)?;
                queue.receive(port, traffic, size)
            });
        }
        block.timed_if(false).run(2, || {
            queue.receive(port, traffic, size)?;
            queue.send(port, traffic, size)
        })
    }

    /// The receives end the way every port can end them: each gets a message after all. One rank after the other, so that
    /// each sends to a rank that waits.
    fn end(&mut self, port: &P, _size: usize) -> Result<()> {
        let (peer, leads) = peer(port);
        let Some(queue) = self.queue.take() else {
            return Ok(());
        };
        let entries = queue.own.entries();
        let mut receives: Vec<P::Request> = queue.receives.into_iter().flatten().collect();
        for sends in [true, false] {
            if leads != sends {
                port.wait_all(&mut receives)?;
                continue;
            }
            for number in 0..entries {
                port.send(self.traffic.empty(), peer, tags::never(number))?;
            }
        }
        Ok(())
    }
}
