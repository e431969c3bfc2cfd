//! The bench on which checks run: a job's ranks, driven by turns from one thread.

use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tagwire_base::Rank;
use tagwire_transport::{ByteTransport, Class, Post};

use super::Factory;
use super::log::{Entry, Log};
use crate::closing::Closing;
use crate::common::{LANE, Patience};
use crate::job::KillRank;
use crate::memory::Memory;
use tagwire_transport::allocation::Allocation;
use tagwire_transport::capability::{Capabilities, Limits};
use tagwire_transport::fault::SplitMix64;
use tagwire_transport::message::{AmHeader, EndpointId, Outcome, Token};

/// How long a rig waits for the end of happenings, where little can be left to happen.
const SETTLE_TIME: Duration = Duration::from_secs(10);

/// How often a post is repeated before `Busy` is taken to mean full: a transport may also be
/// busy for no reason that a test can see.
const BUSY_IN_A_ROW: u32 = 500;

/// The header of message `number`, all of its bits in use.
pub(super) fn header(number: u64) -> AmHeader {
    AmHeader([number, SplitMix64::new(number).next_u64()])
}

struct Node {
    transport: Option<Box<dyn ByteTransport>>,
    log: Log,
    endpoints: HashMap<usize, EndpointId>,
    rounds: u64,
}

/// A job under check.
pub(super) struct Rig {
    nodes: Vec<Node>,
    kill: Option<KillRank<dyn ByteTransport>>,
    /// Ranks that are closing.
    closing: Closing,
    /// Lent memory is the transports' own, where a check says whose.
    allocates: bool,
    next_token: u64,
    /// Outlives the transports.
    memories: Vec<Rc<Memory>>,
}

impl Rig {
    pub(super) fn open(factory: &Factory, size: u32) -> Result<Self, String> {
        let job = factory.open(size)?;
        let node = |transport| Node {
            transport: Some(transport),
            log: Log::default(),
            endpoints: HashMap::new(),
            rounds: 0,
        };
        Ok(Self {
            nodes: job.ranks.into_iter().map(node).collect(),
            kill: job.kill,
            closing: Closing::default(),
            allocates: factory.claims.allocates,
            next_token: 1,
            memories: Vec::new(),
        })
    }

    /// A pair of ranks in contact, or one that talks to itself: the rig, the sender, the
    /// receiver, and the sender's endpoint.
    pub(super) fn pair(factory: &Factory) -> Result<(Self, usize, usize, EndpointId), String> {
        let mut rig = Self::open(factory, 2)?;
        let receiver = rig.size() - 1;
        let to = rig.connect(0, receiver)?;
        Ok((rig, 0, receiver, to))
    }

    pub(super) fn size(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn log(&self, rank: usize) -> &Log {
        &self.nodes[rank].log
    }

    /// The transport of `rank`, which has neither left nor died.
    pub(super) fn transport(&mut self, rank: usize) -> &mut dyn ByteTransport {
        self.nodes[rank]
            .transport
            .as_deref_mut()
            .expect("checks do not use a rank that they ended")
    }

    /// Takes the transport of `rank` out, for another thread.
    pub(super) fn take(&mut self, rank: usize) -> Box<dyn ByteTransport> {
        self.nodes[rank]
            .transport
            .take()
            .expect("checks take a rank once")
    }

    pub(super) fn capabilities(&mut self, rank: usize) -> Capabilities {
        self.transport(rank).capabilities()
    }

    pub(super) fn limits(&mut self, rank: usize) -> Limits {
        self.transport(rank).limits()
    }

    pub(super) fn token(&mut self) -> Token {
        self.next_token += 1;
        Token(self.next_token)
    }

    /// Lends memory that holds the pattern of `seed`.
    pub(super) fn patterned(&mut self, seed: u64, len: usize) -> Rc<Memory> {
        self.keep(Memory::patterned(seed, len, None))
    }

    /// As [`patterned`](Self::patterned), to be sent by `rank`.
    pub(super) fn patterned_at(&mut self, rank: usize, seed: u64, len: usize) -> Rc<Memory> {
        let memory = Memory::patterned(seed, len, self.allocate(rank, len));
        self.keep(memory)
    }

    /// As [`zeroed`](Self::zeroed), to be filled by `rank`.
    pub(super) fn zeroed_at(&mut self, rank: usize, len: usize) -> Rc<Memory> {
        let memory = Memory::zeroed(len, self.allocate(rank, len));
        self.keep(memory)
    }

    fn allocate(&mut self, rank: usize, len: usize) -> Option<Allocation> {
        if !self.allocates {
            return None;
        }
        let memory = self.transport(rank).allocate(Memory::with_guards(len));
        Some(memory.expect("the factory promised memory for checks"))
    }

    /// Lends memory to be filled.
    pub(super) fn zeroed(&mut self, len: usize) -> Rc<Memory> {
        self.keep(Memory::zeroed(len, None))
    }

    fn keep(&mut self, memory: Memory) -> Rc<Memory> {
        let memory = Rc::new(memory);
        self.memories.push(Rc::clone(&memory));
        memory
    }

    /// The endpoint of `from` for `to`.
    pub(super) fn connect(&mut self, from: usize, to: usize) -> Result<EndpointId, String> {
        if let Some(known) = self.nodes[from].endpoints.get(&to) {
            return Ok(*known);
        }
        let address = self.transport(to).address();
        let rank = Rank::new(to as u32);
        let endpoint = self
            .transport(from)
            .connect(rank, &address)
            .map_err(|error| format!("rank {from} cannot connect to rank {to}: {error}"))?;
        self.nodes[from].endpoints.insert(to, endpoint);
        Ok(endpoint)
    }

    /// Brings two ranks in contact, both ways, and forgets what was said. Returns the endpoint of
    /// each for the other.
    pub(super) fn contact(
        &mut self,
        a: usize,
        b: usize,
    ) -> Result<(EndpointId, EndpointId), String> {
        let there = self.connect(a, b)?;
        let back = self.connect(b, a)?;
        self.send(a, there, header(0), b"")?;
        self.send(b, back, header(0), b"")?;
        let wanted = if a == b { 2 } else { 1 };
        self.drive("the first messages both ways arrive", |rig| {
            rig.log(a).message_count() >= wanted && rig.log(b).message_count() >= wanted
        })?;
        for rank in [a, b] {
            self.nodes[rank].log.entries.clear();
        }
        Ok((there, back))
    }

    /// Progress of one rank; returns how many things happened.
    pub(super) fn progress(&mut self, rank: usize) -> usize {
        let node = &mut self.nodes[rank];
        node.rounds += 1;
        let look = node.rounds.is_multiple_of(64);
        let Some(transport) = node.transport.as_deref_mut() else {
            return 0;
        };
        let before = node.log.entries.len();
        let told = transport.progress(LANE, &mut node.log);
        if look {
            transport.look_after_peers(&mut node.log);
        }
        told.max(node.log.entries.len() - before)
    }

    /// Progress of every rank.
    pub(super) fn round(&mut self) -> usize {
        (0..self.size()).map(|rank| self.progress(rank)).sum()
    }

    /// Drives all ranks until `done`.
    ///
    /// # Errors
    /// When nothing happens any more, saying that `what` did not.
    pub(super) fn drive(
        &mut self,
        what: &str,
        done: impl FnMut(&Self) -> bool,
    ) -> Result<(), String> {
        let everyone: Vec<usize> = (0..self.size()).collect();
        self.drive_only(&everyone, what, done)
    }

    /// As [`drive`](Self::drive), with progress of the ranks in `who` alone.
    pub(super) fn drive_only(
        &mut self,
        who: &[usize],
        what: &str,
        mut done: impl FnMut(&Self) -> bool,
    ) -> Result<(), String> {
        let mut patience = Patience::new();
        while !done(self) {
            let events = who.iter().map(|rank| self.progress(*rank)).sum();
            if !patience.goes_on(events) {
                return Err(format!("never seen: {what}{}", self.oddities()));
            }
        }
        Ok(())
    }

    /// Drives all ranks until nothing happens any more, so that what comes too often or too late
    /// is seen.
    pub(super) fn settle(&mut self) -> Result<(), String> {
        let start = Instant::now();
        let mut quiet = 0;
        while quiet < 100 {
            let events = self.round();
            quiet = if events == 0 { quiet + 1 } else { 0 };
            if events > 0 && start.elapsed() > SETTLE_TIME {
                return Err("progress never comes to rest".to_owned());
            }
        }
        match self.oddities() {
            none if none.is_empty() => Ok(()),
            odd => Err(odd),
        }
    }

    fn oddities(&self) -> String {
        self.nodes
            .iter()
            .enumerate()
            .filter_map(|(rank, node)| Some(format!("; rank {rank} saw {}", node.log.oddity()?)))
            .collect()
    }

    /// Posts once, as often as it takes to tell full from busy for no reason.
    pub(super) fn post(
        &mut self,
        from: usize,
        to: EndpointId,
        class: Class,
        header: AmHeader,
        data: &[u8],
    ) -> Post {
        for _ in 0..BUSY_IN_A_ROW {
            let post = self.transport(from).send(LANE, to, class, header, data);
            if post != Post::Busy {
                return post;
            }
        }
        Post::Busy
    }

    /// Posts a verb until it is not busy, with progress in between.
    pub(super) fn insist(
        &mut self,
        from: usize,
        what: &str,
        mut verb: impl FnMut(&mut dyn ByteTransport) -> Post,
    ) -> Result<(), String> {
        let mut patience = Patience::new();
        loop {
            match verb(self.transport(from)) {
                Post::Posted => return Ok(()),
                Post::Busy => {}
                other => return Err(format!("rank {from}: {what} was answered {other:?}")),
            }
            let events = self.round();
            if !patience.goes_on(events) {
                return Err(format!("rank {from}: {what} stays busy"));
            }
        }
    }

    /// Sends data, with progress while the transport is busy.
    pub(super) fn send(
        &mut self,
        from: usize,
        to: EndpointId,
        header: AmHeader,
        data: &[u8],
    ) -> Result<(), String> {
        self.insist(from, "a send", |transport| {
            transport.send(LANE, to, Class::Data, header, data)
        })
    }

    /// Ends `rank` in good order.
    pub(super) fn close(&mut self, rank: usize) {
        let mut transport = self.take(rank);
        transport.leave();
        self.closing.close(transport);
    }

    /// Drops `rank`, which has not said that it leaves.
    pub(super) fn drop_without_goodbye(&mut self, rank: usize) {
        let transport = self.take(rank);
        self.closing.close(transport);
    }

    /// Ends `rank` without a goodbye.
    pub(super) fn kill(&mut self, rank: usize) {
        let transport = self.take(rank);
        match &mut self.kill {
            Some(kill) => kill(Rank::new(rank as u32), transport),
            // Dropped, it would tell: no rank that is killed does.
            None => std::mem::forget(transport),
        }
    }

    /// Tells `rank` that `peer` has failed.
    pub(super) fn tell_failed(&mut self, rank: usize, peer: usize) {
        let node = &mut self.nodes[rank];
        if let Some(transport) = node.transport.as_deref_mut() {
            transport.peer_failed(Rank::new(peer as u32), &mut node.log);
        }
    }

    /// Compares how `token` of `rank` ended, which it does once.
    pub(super) fn expect_outcome(
        &self,
        rank: usize,
        token: Token,
        expected: Outcome,
    ) -> Result<(), String> {
        match self.log(rank).outcomes(token)[..] {
            [outcome] if outcome == expected => Ok(()),
            ref outcomes => Err(format!(
                "rank {rank}: {token:?} ended with {outcomes:?}, once {expected:?} was expected"
            )),
        }
    }

    /// How often `rank` was told something like `wanted`.
    pub(super) fn count(&self, rank: usize, wanted: impl Fn(&Entry) -> bool) -> usize {
        self.log(rank).count(wanted)
    }
}

/// The ranks end before the memory that was lent to them.
impl Drop for Rig {
    fn drop(&mut self) {
        for rank in 0..self.nodes.len() {
            if let Some(transport) = self.nodes[rank].transport.take() {
                self.closing.close(transport);
            }
        }
        self.closing.wait();
    }
}
