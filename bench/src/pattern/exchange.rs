//! What a pattern needs of whatever moves its bytes: its middleware.
//!
//! A pattern is written over [`Exchange`] and does not know which middleware it has:
//!
//! ```text
//!     Exchange          edges to and from peers, each in parts
//!       start           a round begins: receives are posted, channels started
//!       ready           a part may leave, by any thread
//!       arrive          waits until a part is there, in any thread
//!       finish          all edges are complete, or one of them
//!         |
//!   Calls               a part is a blocking send and receive
//!   Posted              a part is a message, received into a posted receive
//!   Channels            an edge is a partitioned operation, of ours with a policy or of an MPI library
//!   Remote              a part is written into the receiver's memory, by remote access of ours or of an MPI library
//! ```

use std::ops::Range;

use tagwire_base::Rank;

use crate::buffer::{Incoming, Memory, Outgoing, Pattern};
use crate::error::Result;

/// Traffic with a peer in one direction: parts of the same length, in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Edge {
    pub peer: Rank,
    /// Tells edges between the same two ranks apart, the same number at both ends.
    pub number: u32,
    pub parts: u32,
    /// Bytes of a part.
    pub len: usize,
    /// Where the edge begins in the memory of all edges of its direction.
    pub place: usize,
}

impl Edge {
    pub(crate) const fn bytes(&self) -> usize {
        self.parts as usize * self.len
    }

    /// The number of a part among all parts between two ranks.
    pub(crate) const fn tag(&self, part: u32) -> u32 {
        self.number * self.parts + part
    }

    const fn range(&self, part: u32) -> Range<usize> {
        let start = self.place + part as usize * self.len;
        start..start + self.len
    }
}

/// The edges of a rank, with its memory.
#[derive(Debug, Clone)]
pub(crate) struct Edges {
    rank: Rank,
    outs: Vec<Edge>,
    ins: Vec<Edge>,
    out: Incoming,
    into: Incoming,
}

/// The memory of all edges that a rank ever has, one direction in each.
pub(crate) struct Memories {
    out: Memory,
    into: Memory,
}

impl Memories {
    /// Makes room for edges of so many bytes together in each direction.
    pub(crate) fn new(bytes: usize) -> Result<Self> {
        Ok(Self {
            out: Memory::new(bytes)?,
            into: Memory::new(bytes)?,
        })
    }

    /// Places edges behind each other, from an offset on. No two rounds of edges in the same place may be under way at once.
    pub(crate) fn place(
        &self,
        rank: Rank,
        mut outs: Vec<Edge>,
        mut ins: Vec<Edge>,
        offset: usize,
    ) -> Edges {
        behind_each_other(&mut outs, offset);
        behind_each_other(&mut ins, offset);
        self.edges(rank, outs, ins)
    }

    /// Places outgoing edges in the same bytes, which all peers get, and incoming ones behind each other.
    pub(crate) fn place_shared(&self, rank: Rank, outs: Vec<Edge>, mut ins: Vec<Edge>) -> Edges {
        behind_each_other(&mut ins, 0);
        self.edges(rank, outs, ins)
    }

    fn edges(&self, rank: Rank, outs: Vec<Edge>, ins: Vec<Edge>) -> Edges {
        let end = |list: &[Edge]| list.last().map_or(0, |edge| edge.place + edge.bytes());
        Edges {
            rank,
            out: self.out.incoming(0..end(&outs)),
            into: self.into.incoming(0..end(&ins)),
            outs,
            ins,
        }
    }
}

fn behind_each_other(list: &mut [Edge], offset: usize) {
    let mut place = offset;
    for edge in list {
        edge.place = place;
        place += edge.bytes();
    }
}

impl Edges {
    pub(crate) fn outs(&self) -> &[Edge] {
        &self.outs
    }

    pub(crate) fn ins(&self) -> &[Edge] {
        &self.ins
    }

    pub(crate) fn outgoing(&self, edge: &Edge, part: u32) -> Outgoing {
        self.out.part(edge.range(part)).outgoing()
    }

    pub(crate) fn incoming(&self, edge: &Edge, part: u32) -> Incoming {
        self.into.part(edge.range(part))
    }

    /// The memory of all incoming edges, in which places are those of edges.
    pub(crate) const fn room(&self) -> Incoming {
        self.into
    }

    pub(crate) fn whole_outgoing(&self, edge: &Edge) -> Outgoing {
        let range = edge.place..edge.place + edge.bytes();
        self.out.part(range).outgoing()
    }

    pub(crate) fn whole_incoming(&self, edge: &Edge) -> Incoming {
        self.into.part(edge.place..edge.place + edge.bytes())
    }

    /// Fills a part that is not under way.
    pub(crate) fn fill(&self, edge: &Edge, part: u32, pattern: Pattern) {
        let start = part as usize * edge.len;
        self.fill_range(edge, start..start + edge.len, pattern);
    }

    /// Fills bytes of an edge that are not under way.
    pub(crate) fn fill_range(&self, edge: &Edge, range: Range<usize>, pattern: Pattern) {
        let piece = self
            .out
            .part(edge.place + range.start..edge.place + range.end);
        piece.with_bytes(|bytes| pattern.fill(bytes));
    }

    /// Returns the first bytes of a part that has arrived, as a word.
    pub(crate) fn first_word(&self, edge: &Edge, part: u32) -> u64 {
        self.incoming(edge, part).with_bytes(|bytes| word(bytes))
    }

    /// Compares a part that has arrived with what it should be.
    ///
    /// # Errors
    /// [`Error::Validation`].
    pub(crate) fn check(&self, edge: &Edge, part: u32, pattern: Pattern, round: u64) -> Result<()> {
        let start = part as usize * edge.len;
        self.check_range(edge, start..start + edge.len, pattern, round)
    }

    /// Compares bytes of an edge that have arrived with what they should be.
    ///
    /// # Errors
    /// [`Error::Validation`].
    pub(crate) fn check_range(
        &self,
        edge: &Edge,
        range: Range<usize>,
        pattern: Pattern,
        round: u64,
    ) -> Result<()> {
        let size = range.len();
        let piece = self
            .into
            .part(edge.place + range.start..edge.place + range.end);
        let compared = piece.with_bytes(|bytes| pattern.check(bytes));
        let (rank, peer) = (self.rank.as_u32(), edge.peer.as_u32());
        compared.map_err(|found| found.of_message(rank, peer, round, size))
    }
}

/// The first eight bytes as a word; missing ones are zero.
pub(crate) fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    let len = bytes.len().min(8);
    word[..len].copy_from_slice(&bytes[..len]);
    u64::from_le_bytes(word)
}

/// What moves the bytes of a rank's edges, round after round.
pub(crate) trait Exchange: Sync {
    /// Begins a round. One thread calls.
    fn start(&self) -> Result<()>;

    /// Lets a part of an outgoing edge leave. Any thread calls, once for each part of a round.
    fn ready(&self, edge: usize, part: u32) -> Result<()>;

    /// Returns once a part of an incoming edge has arrived. Any thread calls, once for each part at most.
    fn arrive(&self, edge: usize, part: u32) -> Result<()>;

    /// Ends the round of an outgoing edge. One thread calls.
    fn finish_out(&self, edge: usize) -> Result<()>;

    /// Ends the round of an incoming edge. One thread calls.
    fn finish_in(&self, edge: usize) -> Result<()>;

    /// Ends the round of all edges that it has not ended for, which make progress together. One thread calls.
    fn finish(&self) -> Result<()>;
}
