//! Parts as writes into the memory of their receivers.
//!
//! ```text
//!   receiver                                    sender of an edge
//!   start: the edge's room is free, a flag  --> ready waits for the flag, and writes the part
//!                                           <-- flush, then a flag: of each part, or of the edge at its end
//!   arrive, finish: wait for the flag
//! ```
//!
//! Flags are words with the number of the round, written like the parts. This is the synchronisation of single ranks
//! (post, start, complete, wait) of MPI-5.0, section 12.5.2: nobody waits for ranks that it has no edge with.

use std::sync::atomic::{AtomicU64, Ordering};

use tagwire_base::Rank;

use super::exchange::{Edge, Edges, Exchange};
use crate::buffer::{Incoming, Memory};
use crate::error::{Error, Result};
use crate::port::window::{Window, Windows};
use crate::port::{Port, tags};

/// Bytes of a flag.
const FLAG: usize = 8;

/// Which parts are flagged when they are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flags {
    /// Each, once it is visible there: for receivers that wait for single parts.
    Parts,
    /// All of an edge together, at its end.
    Edges,
}

impl Flags {
    const fn of(self, edge: &Edge) -> usize {
        match self {
            Self::Parts => edge.parts as usize,
            Self::Edges => 1,
        }
    }
}

/// Where an edge's receiver has it.
#[derive(Debug, Clone, Copy)]
struct Target {
    /// Its bytes.
    place: usize,
    /// Its first flag.
    flags: usize,
}

/// Parts of all edges are written by whoever makes them ready.
pub(crate) struct Remote<'p> {
    edges: Edges,
    /// The ranks at the other ends, each once.
    peers: Vec<Rank>,
    flagged: Flags,
    data: Box<dyn Window + 'p>,
    flags: Box<dyn Window + 'p>,
    /// Of each outgoing edge.
    targets: Vec<Target>,
    /// Where the sender of each incoming edge finds that its room is free.
    free_at: Vec<usize>,
    /// The first flag of each incoming edge in this rank's memory. Those of rooms that are free lie before all, by outgoing edge.
    first: Vec<usize>,
    /// What is written as flags: of each outgoing edge, and then of each incoming one.
    words: Incoming,
    round: AtomicU64,
}

impl<'p> Remote<'p> {
    pub(crate) fn open<P: Port>(
        port: &P,
        windows: &'p dyn Windows,
        edges: Edges,
        flagged: Flags,
    ) -> Result<Self> {
        let (outs, ins) = (edges.outs().len(), edges.ins().len());
        let mut next = outs * FLAG;
        let mut first = Vec::new();
        for edge in edges.ins() {
            first.push(next);
            next += flagged.of(edge) * FLAG;
        }
        let words = |count: usize| -> Result<Incoming> {
            let mut memory = Memory::new(count * FLAG)?;
            memory.write_words(&vec![0; count]);
            Ok(memory.incoming(0..count * FLAG))
        };
        let room = words((next / FLAG).max(1))?;
        let peers = peers(&edges);
        let mut give = |key: &[u8]| give(port, &peers, key);
        let data = windows.open(edges.room(), &mut give)?;
        let flags = windows.open(room, &mut give)?;
        let (targets, free_at) = places(port, &edges, &first)?;
        Ok(Self {
            flagged,
            data,
            flags,
            targets,
            free_at,
            first,
            words: words((outs + ins).max(1))?,
            round: AtomicU64::new(0),
            peers,
            edges,
        })
    }

    fn round(&self) -> u64 {
        self.round.load(Ordering::Acquire)
    }

    /// Writes the number of the round at a peer.
    fn flag(&self, word: usize, to: Rank, offset: usize) -> Result<()> {
        let word = self.words.part(word * FLAG..(word + 1) * FLAG);
        word.set_shared_word(0, self.round());
        self.flags.put(word.outgoing(), to, offset)
    }

    /// Returns once a flag of this rank has the number of the round.
    fn wait(&self, offset: usize) -> Result<()> {
        let (round, mut looks) = (self.round(), 0_u32);
        while !self.flags.has_reached(offset, round)? {
            looks = looks.wrapping_add(1);
            match looks % 16 {
                0 => std::thread::yield_now(),
                _ => std::hint::spin_loop(),
            }
        }
        Ok(())
    }

    /// The edge's bytes are at its receiver: tells it, where parts were not flagged one by one.
    fn complete(&self, edge: usize) -> Result<()> {
        let (peer, target) = (self.edges.outs()[edge].peer, self.targets[edge]);
        match self.flagged {
            Flags::Parts => Ok(()),
            Flags::Edges => self.flag(edge, peer, target.flags),
        }
    }
}

impl Exchange for Remote<'_> {
    fn start(&self) -> Result<()> {
        self.round.fetch_add(1, Ordering::AcqRel);
        let outs = self.edges.outs().len();
        for (place, (edge, free_at)) in self.edges.ins().iter().zip(&self.free_at).enumerate() {
            self.flag(outs + place, edge.peer, *free_at)?;
        }
        Ok(())
    }

    fn ready(&self, edge: usize, part: u32) -> Result<()> {
        self.wait(edge * FLAG)?;
        let (out, target) = (&self.edges.outs()[edge], self.targets[edge]);
        let offset = target.place + part as usize * out.len;
        self.data
            .put(self.edges.outgoing(out, part), out.peer, offset)?;
        match self.flagged {
            Flags::Edges => Ok(()),
            Flags::Parts => {
                self.data.flush(&[out.peer])?;
                self.flag(edge, out.peer, target.flags + part as usize * FLAG)
            }
        }
    }

    fn arrive(&self, edge: usize, part: u32) -> Result<()> {
        match self.flagged {
            Flags::Parts => self.wait(self.first[edge] + part as usize * FLAG),
            // It comes with the edge's end.
            Flags::Edges => self.wait(self.first[edge]),
        }
    }

    fn finish_out(&self, edge: usize) -> Result<()> {
        let peer = self.edges.outs()[edge].peer;
        self.data.flush(&[peer])?;
        self.complete(edge)?;
        self.flags.flush(&[peer])
    }

    fn finish_in(&self, edge: usize) -> Result<()> {
        let flags = self.flagged.of(&self.edges.ins()[edge]);
        (0..flags).try_for_each(|flag| self.wait(self.first[edge] + flag * FLAG))?;
        // The word that says that the room is free is written again in the next round.
        self.flags.flush(&[self.edges.ins()[edge].peer])
    }

    fn finish(&self) -> Result<()> {
        let (outs, ins) = (self.edges.outs().len(), self.edges.ins().len());
        self.data.flush(&self.peers)?;
        (0..outs).try_for_each(|edge| self.complete(edge))?;
        for edge in 0..ins {
            let flags = self.flagged.of(&self.edges.ins()[edge]);
            (0..flags).try_for_each(|flag| self.wait(self.first[edge] + flag * FLAG))?;
        }
        self.flags.flush(&self.peers)
    }
}

/// The ranks at the other ends of edges, each once.
fn peers(edges: &Edges) -> Vec<Rank> {
    let mut all: Vec<Rank> = edges
        .outs()
        .iter()
        .chain(edges.ins())
        .map(|edge| edge.peer)
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Room for a key with its length.
const ROOM: usize = 1024;

/// Gives a key to all peers, and returns theirs.
fn give<P: Port>(port: &P, peers: &[Rank], key: &[u8]) -> Result<Vec<(Rank, Vec<u8>)>> {
    if 8 + key.len() > ROOM {
        return Err(Error::Peer(format!("a key of {} bytes", key.len())));
    }
    let (mut out, into) = (Memory::new(ROOM)?, Memory::new(ROOM * peers.len())?);
    out.write_words(&[key.len() as u64]);
    out.write_at(8, key);
    let mut requests = Vec::new();
    for (place, peer) in peers.iter().enumerate() {
        let room = into.incoming(place * ROOM..(place + 1) * ROOM);
        requests.push(port.irecv(room, *peer, tags::DATA)?);
    }
    for peer in peers {
        requests.push(port.isend(out.outgoing(0..ROOM), *peer, tags::DATA)?);
    }
    port.wait_all(&mut requests)?;
    let keys = peers.iter().enumerate().map(|(place, peer)| {
        let bytes = into.bytes(place * ROOM..(place + 1) * ROOM);
        let (len, rest) = bytes.split_at(8);
        let len = len
            .iter()
            .rev()
            .fold(0, |sum, byte| sum << 8 | usize::from(*byte));
        (*peer, rest[..len.min(rest.len())].to_vec())
    });
    Ok(keys.collect())
}

/// Tells the sender of each incoming edge where its bytes and flags go, and the receiver of each outgoing one where it finds
/// that there is room; returns what the others tell.
fn places<P: Port>(port: &P, edges: &Edges, first: &[usize]) -> Result<(Vec<Target>, Vec<usize>)> {
    let (outs, ins) = (edges.outs(), edges.ins());
    let mut own: Vec<u64> = (0..outs.len()).map(|out| (out * FLAG) as u64).collect();
    for (edge, first) in ins.iter().zip(first) {
        own.extend([edge.place as u64, *first as u64]);
    }
    let count = outs.len() + 2 * ins.len();
    let told = 2 * outs.len() + ins.len();
    let (mut out, into) = (Memory::new(8 * count)?, Memory::new(8 * told)?);
    out.write_words(&own);
    let mut requests = Vec::new();
    for (place, edge) in outs.iter().enumerate() {
        let room = into.incoming(16 * place..16 * (place + 1));
        requests.push(port.irecv(room, edge.peer, tags::thread(edge.number).0)?);
    }
    let behind = 16 * outs.len();
    for (place, edge) in ins.iter().enumerate() {
        let room = into.incoming(behind + 8 * place..behind + 8 * (place + 1));
        requests.push(port.irecv(room, edge.peer, tags::thread(edge.number).1)?);
    }
    for (place, edge) in outs.iter().enumerate() {
        let data = out.outgoing(8 * place..8 * (place + 1));
        requests.push(port.isend(data, edge.peer, tags::thread(edge.number).1)?);
    }
    let behind = 8 * outs.len();
    for (place, edge) in ins.iter().enumerate() {
        let data = out.outgoing(behind + 16 * place..behind + 16 * (place + 1));
        requests.push(port.isend(data, edge.peer, tags::thread(edge.number).0)?);
    }
    port.wait_all(&mut requests)?;
    let words = into.words(told);
    let (targets, free_at) = words.split_at(2 * outs.len());
    let targets = targets.chunks_exact(2).map(|pair| Target {
        place: pair[0] as usize,
        flags: pair[1] as usize,
    });
    let free_at = free_at.iter().map(|place| *place as usize).collect();
    Ok((targets.collect(), free_at))
}
