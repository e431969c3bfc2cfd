//! What a benchmark body needs of whatever carries its messages.
//!
//! Bodies are written once, over [`Port`], and compiled for each of its implementations: ours over
//! a pml, the bare transport, and any library of the MPI standard ABI.

use serde::Serialize;
use serde::de::DeserializeOwned;
use tagwire_base::{Rank, Tag};
use tagwire_pml::{Counters, Stats};
use tagwire_transport::Allocation;

use crate::buffer::{Incoming, Memory, Outgoing};
use crate::error::{Error, Result};
use collective::{Collectives, Form};
use group::{Divide, Group};

#[cfg(test)]
pub(crate) mod channel;
pub(crate) mod collective;
pub(crate) mod group;
pub(crate) mod null;
pub(crate) mod partitioned;
pub(crate) mod pml;
pub(crate) mod profiled;
mod rail;
pub(crate) mod raw;
pub(crate) mod remote;
pub(crate) mod window;

/// The tags that bodies use. All are below 32,768, which every MPI library allows, but for those
/// of receives that never match.
pub(crate) mod tags {
    use tagwire_base::Tag;

    pub(crate) const DATA: Tag = tag(1);
    pub(crate) const ACK: Tag = tag(2);
    pub(crate) const SENT: Tag = tag(3);
    pub(crate) const CONTROL: Tag = tag(4);
    pub(crate) const BARRIER: Tag = tag(5);
    pub(crate) const AHEAD: Tag = tag(6);

    /// The tag of a thread's messages, and of their acknowledgements.
    #[inline]
    pub(crate) const fn thread(number: u32) -> (Tag, Tag) {
        (tag(16 + 2 * number as i32), tag(17 + 2 * number as i32))
    }

    /// The tag of the receive number `number` that nothing matches.
    #[inline]
    pub(crate) const fn never(number: u32) -> Tag {
        tag(32_768 + number as i32)
    }

    #[inline]
    const fn tag(value: i32) -> Tag {
        match Tag::user(value) {
            Some(tag) => tag,
            None => panic!("a negative tag"),
        }
    }
}

/// One rank's way to the others, in calls that return once they are done.
///
/// Messages between two ranks arrive in order. What is not timed takes `&dyn Endpoint`, and is compiled once for all ports.
pub(crate) trait Endpoint {
    /// This rank.
    fn rank(&self) -> Rank;

    /// How many ranks there are.
    fn size(&self) -> u32;

    /// Sends.
    fn send(&self, data: Outgoing, to: Rank, tag: Tag) -> Result<()>;

    /// Sends, and returns once the receiver has matched the message.
    ///
    /// # Errors
    /// Where messages are not matched.
    fn ssend(&self, data: Outgoing, to: Rank, tag: Tag) -> Result<()> {
        let _ = (data, to, tag);
        Err(Error::Usage("synchronous sends need a pml".to_owned()))
    }

    /// Receives.
    fn recv(&self, data: Incoming, from: Rank, tag: Tag) -> Result<()>;

    /// Receives, and looks for the message until it is there. A rank that has nothing else to do does not sleep meanwhile: who sends
    /// does not have to wake it. MPI libraries do so in their receives.
    fn recv_looking(&self, data: Incoming, from: Rank, tag: Tag) -> Result<()> {
        self.recv(data, from, tag)
    }

    /// Memory of `len` bytes that peers can reach by a mapping, where there is such.
    fn allocate(&self, len: usize) -> Result<Option<Allocation>> {
        let _ = len;
        Ok(None)
    }

    /// The collective operations of this rank, in one form.
    ///
    /// # Errors
    /// Where it has none.
    fn collectives(&self, form: Form) -> Result<Box<dyn Collectives + '_>> {
        let _ = form;
        Err(Error::Usage("collectives need a pml".to_owned()))
    }

    /// Makes a group of ranks. All ranks call it, in the same order.
    ///
    /// # Errors
    /// Where there are none.
    fn group(&self, divide: Divide) -> Result<Box<dyn Group + '_>> {
        let _ = divide;
        Err(Error::Usage("groups need a pml".to_owned()))
    }

    /// How many messages took which way so far, where that is told.
    fn counters(&self) -> Option<Counters> {
        None
    }

    /// What the matching engine has done, where that is told.
    fn matching(&self) -> Option<Stats> {
        None
    }

    /// A line for each way that long messages go and for each algorithm of collectives that was found by trial, with its figures, and
    /// for those that a setting names, where that is told.
    fn ways(&self) -> Vec<String> {
        Vec::new()
    }
}

/// An endpoint with operations that are under way beside others.
///
/// The memory of an operation is the port's until the operation is complete.
pub(crate) trait Port: Endpoint {
    /// An operation under way, which any thread may wait for.
    type Request: Send;

    /// Starts to send.
    fn isend(&self, data: Outgoing, to: Rank, tag: Tag) -> Result<Self::Request>;

    /// Starts to receive.
    fn irecv(&self, data: Incoming, from: Rank, tag: Tag) -> Result<Self::Request>;

    /// Starts to receive from any rank.
    ///
    /// # Errors
    /// Where nothing matches.
    fn irecv_any(&self, data: Incoming, tag: Tag) -> Result<Self::Request> {
        let _ = (data, tag);
        Err(Error::Usage("receives of any source need a pml".to_owned()))
    }

    /// Returns once all of `requests` are complete, and leaves the list empty.
    fn wait_all(&self, requests: &mut Vec<Self::Request>) -> Result<()>;
}

/// The few bytes with which ranks agree on what to do, next to the measured messages.
#[derive(Debug)]
pub(crate) struct Control {
    out: Memory,
    into: Memory,
}

/// How many bytes a control message has: a value as JSON, and spaces behind it.
const BYTES: usize = 512;

impl Control {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self {
            out: Memory::new(BYTES)?,
            into: Memory::new(BYTES)?,
        })
    }

    /// Gives rank 0's value to all others.
    pub(crate) fn announce(&mut self, port: &dyn Endpoint, value: &impl Serialize) -> Result<()> {
        self.write(&text_of(value)?);
        let mut others = (1..port.size()).map(Rank::new);
        others.try_for_each(|rank| port.send(self.out.outgoing(0..BYTES), rank, tags::CONTROL))
    }

    /// Returns the value that rank 0 announces, on another rank.
    pub(crate) fn hear<T: DeserializeOwned>(&self, port: &dyn Endpoint) -> Result<T> {
        self.value_of(port, Rank::new(0))
    }

    /// Returns the values of all ranks, in order, on rank 0; on the others their own.
    pub(crate) fn gather<T: Serialize + DeserializeOwned>(
        &mut self,
        port: &dyn Endpoint,
        own: T,
    ) -> Result<Vec<T>> {
        let zero = Rank::new(0);
        if port.rank() != zero {
            self.write(&text_of(&own)?);
            port.send(self.out.outgoing(0..BYTES), zero, tags::CONTROL)?;
            return Ok(vec![own]);
        }
        let others = (1..port.size()).map(|rank| self.value_of(port, Rank::new(rank)));
        std::iter::once(Ok(own)).chain(others).collect()
    }

    fn write(&mut self, text: &str) {
        let padded = format!("{text:BYTES$}");
        debug_assert_eq!(padded.len(), BYTES, "a control message is too long");
        self.out.write(&padded.as_bytes()[..BYTES]);
    }

    fn value_of<T: DeserializeOwned>(&self, port: &dyn Endpoint, from: Rank) -> Result<T> {
        port.recv(self.into.incoming(0..BYTES), from, tags::CONTROL)?;
        let text: [u8; BYTES] = self.into.read();
        serde_json::from_slice(&text).map_err(|error| {
            Error::Peer(format!(
                "rank {from} sent a step that does not exist: {error}"
            ))
        })
    }
}

fn text_of(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::Job(error.to_string()))
}

/// Returns once every rank has called it.
pub(crate) fn barrier<P: Endpoint + ?Sized>(port: &P) -> Result<()> {
    let empty = Memory::new(0)?;
    let others = || (1..port.size()).map(Rank::new);
    let zero = Rank::new(0);
    if port.rank() == zero {
        for rank in others() {
            port.recv(empty.incoming(0..0), rank, tags::BARRIER)?;
        }
        for rank in others() {
            port.send(empty.outgoing(0..0), rank, tags::BARRIER)?;
        }
        return Ok(());
    }
    port.send(empty.outgoing(0..0), zero, tags::BARRIER)?;
    port.recv(empty.incoming(0..0), zero, tags::BARRIER)
}

/// The error of a port whose peer is gone.
pub(crate) fn peer_gone(rank: Rank) -> Error {
    Error::Peer(format!("rank {rank} ended before the benchmark did"))
}
