//! The bench on which checks run: a job's ranks, driven by turns from one thread.

use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tagwire_base::Rank;

use super::{Allocates, Factory, Wanted};
use crate::closing::Closing;
use crate::common::{LANE, Patience, ensure, pattern};
use crate::job::KillRank;
use crate::memory::Memory;
use tagwire_transport::allocation::Allocation;
use tagwire_transport::capability::Capabilities;
use tagwire_transport::data::{RecvBuffer, SendBuffer};
use tagwire_transport::matching::{
    Cancel, Found, MatchEnvelope, MatchLimits, MatchPattern, MatchTransport, MatchUpcalls, Posted,
    Probed, ReceiveEnd, Sent,
};
use tagwire_transport::message::{EndpointId, Outcome, PeerEvent, Token};

pub(super) type Checked<T = ()> = Result<T, String>;

/// How long a rig waits for the end of happenings.
const SETTLE_TIME: Duration = Duration::from_secs(10);

/// What a transport said of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    Up(EndpointId, Rank),
    Left(EndpointId),
    Failed(EndpointId),
    Protocol,
    Unknown,
}

/// What a transport told.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) sent: HashMap<Token, Vec<Outcome>>,
    pub(super) received: HashMap<Token, Vec<ReceiveEnd>>,
    pub(super) probed: HashMap<Token, Option<Found>>,
    pub(super) words: Vec<Word>,
    pub(super) count: usize,
}

impl MatchUpcalls for Log {
    fn sent(&mut self, token: Token, outcome: Outcome) {
        self.count += 1;
        self.sent.entry(token).or_default().push(outcome);
    }

    fn received(&mut self, token: Token, end: ReceiveEnd) {
        self.count += 1;
        self.received.entry(token).or_default().push(end);
    }

    fn probed(&mut self, token: Token, found: Option<Found>) {
        self.count += 1;
        self.probed.insert(token, found);
    }

    fn peer(&mut self, event: PeerEvent) {
        self.count += 1;
        self.words.push(match event {
            PeerEvent::Up { endpoint, rank } => Word::Up(endpoint, rank),
            PeerEvent::Left(endpoint) => Word::Left(endpoint),
            PeerEvent::Failed(endpoint) => Word::Failed(endpoint),
            PeerEvent::Protocol(..) => Word::Protocol,
            _ => Word::Unknown,
        });
    }
}

struct Node {
    transport: Option<Box<dyn MatchTransport>>,
    log: Log,
    endpoints: HashMap<usize, EndpointId>,
    rounds: u64,
}

/// A send under way or complete.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sending {
    pub(super) at: usize,
    pub(super) token: Token,
}

/// A receive under way or complete.
#[derive(Debug, Clone)]
pub(super) struct Receiving {
    pub(super) at: usize,
    pub(super) token: Token,
    pub(super) memory: Rc<Memory>,
}

/// The pattern for just these bits, from anyone.
pub(super) const fn exact(bits: u64) -> MatchPattern {
    MatchPattern {
        bits,
        ignore: 0,
        source: None,
    }
}

/// The same, from `source` alone.
pub(super) const fn from(source: usize, pattern: MatchPattern) -> MatchPattern {
    MatchPattern {
        source: Some(Rank::new(source as u32)),
        ..pattern
    }
}

/// A job under check.
pub(super) struct Rig {
    nodes: Vec<Node>,
    kill: Option<KillRank<dyn MatchTransport>>,
    /// Ranks that are closing.
    closing: Closing,
    allocates: Allocates,
    next_token: u64,
    limits: MatchLimits,
    /// Outlives the transports.
    memories: Vec<Rc<Memory>>,
}

impl Rig {
    pub(super) fn open(factory: &Factory, size: u32, wanted: Wanted) -> Checked<Self> {
        let job = factory.open(size, wanted)?;
        let limits = job.ranks[0].match_limits();
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
            next_token: 0,
            limits,
            memories: Vec::new(),
        })
    }

    pub(super) fn plenty(factory: &Factory, size: u32) -> Checked<Self> {
        Self::open(factory, size, Wanted::PLENTY)
    }

    pub(super) const fn limits(&self) -> &MatchLimits {
        &self.limits
    }

    /// What accepts any message whose other bits are those of `bits`: whatever may be ignored in
    /// the lower 31.
    pub(super) const fn wild(&self, bits: u64) -> MatchPattern {
        let ignore = if self.limits.ignorable_in_part {
            self.limits.ignorable & 0x7fff_ffff
        } else {
            self.limits.ignorable
        };
        MatchPattern {
            bits: bits & !ignore,
            ignore,
            source: None,
        }
    }

    pub(super) fn log(&self, rank: usize) -> &Log {
        &self.nodes[rank].log
    }

    pub(super) fn transport(&mut self, rank: usize) -> &mut dyn MatchTransport {
        self.nodes[rank]
            .transport
            .as_deref_mut()
            .expect("checks do not use a rank that they ended")
    }

    pub(super) fn take(&mut self, rank: usize) -> Box<dyn MatchTransport> {
        self.nodes[rank]
            .transport
            .take()
            .expect("checks take a rank once")
    }

    pub(super) fn token(&mut self) -> Token {
        self.next_token += 1;
        Token(self.next_token)
    }

    pub(super) fn patterned(&mut self, seed: u64, len: usize) -> Rc<Memory> {
        self.keep(Memory::patterned(seed, len, None))
    }

    pub(super) fn zeroed(&mut self, len: usize) -> Rc<Memory> {
        self.keep(Memory::zeroed(len, None))
    }

    fn allocate(&mut self, at: usize, len: usize) -> Option<Allocation> {
        let memory = self.transport(at).allocate(Memory::with_guards(len));
        Some(memory.expect("the factory promised memory for checks"))
    }

    fn keep(&mut self, memory: Memory) -> Rc<Memory> {
        let memory = Rc::new(memory);
        self.memories.push(Rc::clone(&memory));
        memory
    }

    /// The endpoint of `from` for `to`.
    pub(super) fn connect(&mut self, from: usize, to: usize) -> Checked<EndpointId> {
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

    /// Progress of one rank; returns how many things happened.
    pub(super) fn progress(&mut self, rank: usize) -> usize {
        let node = &mut self.nodes[rank];
        node.rounds += 1;
        let look = node.rounds.is_multiple_of(64);
        let Some(transport) = node.transport.as_deref_mut() else {
            return 0;
        };
        let before = node.log.count;
        let told = transport.progress(LANE, &mut node.log);
        if look {
            transport.look_after_peers(&mut node.log);
        }
        told.max(node.log.count - before)
    }

    pub(super) fn round(&mut self) -> usize {
        (0..self.nodes.len()).map(|rank| self.progress(rank)).sum()
    }

    /// Drives all ranks until `done`.
    pub(super) fn drive(&mut self, what: &str, done: impl FnMut(&Self) -> bool) -> Checked {
        let everyone: Vec<usize> = (0..self.nodes.len()).collect();
        self.drive_only(&everyone, what, done)
    }

    /// As [`drive`](Self::drive), with progress of the ranks in `who` alone.
    pub(super) fn drive_only(
        &mut self,
        who: &[usize],
        what: &str,
        mut done: impl FnMut(&Self) -> bool,
    ) -> Checked {
        let mut patience = Patience::new();
        while !done(self) {
            let events = who.iter().map(|rank| self.progress(*rank)).sum();
            if !patience.goes_on(events) {
                let mut text = format!("never seen: {what}\n");
                for node in &self.nodes {
                    if let Some(transport) = &node.transport {
                        transport.describe(&mut text);
                    }
                }
                return Err(text);
            }
        }
        Ok(())
    }

    /// Drives all ranks until nothing happens any more.
    pub(super) fn settle(&mut self) -> Checked {
        let start = Instant::now();
        let mut quiet = 0;
        while quiet < 100 {
            let events = self.round();
            quiet = if events == 0 { quiet + 1 } else { 0 };
            if events > 0 && start.elapsed() > SETTLE_TIME {
                return Err("progress never comes to rest".to_owned());
            }
        }
        Ok(())
    }

    /// Sends `data`, with progress while the transport is busy.
    pub(super) fn send_buffer(
        &mut self,
        at: usize,
        to: usize,
        bits: u64,
        data: &SendBuffer,
        synchronous: bool,
    ) -> Checked<(Sending, Sent)> {
        let endpoint = self.connect(at, to)?;
        let token = self.token();
        let mut patience = Patience::new();
        loop {
            let answer = self
                .transport(at)
                .send(LANE, endpoint, bits, data, synchronous, token);
            match answer {
                Sent::Busy => {}
                Sent::Done => {
                    let outcome = Outcome::Done(data.len() as u64);
                    self.nodes[at].log.sent(token, outcome);
                    return Ok((Sending { at, token }, answer));
                }
                other => return Ok((Sending { at, token }, other)),
            }
            let events = self.round();
            if !patience.goes_on(events) {
                return Err(format!("rank {at}: a send to rank {to} stays busy"));
            }
        }
    }

    /// Sends message `seed` of `len` bytes.
    pub(super) fn send(
        &mut self,
        at: usize,
        to: usize,
        bits: u64,
        seed: u64,
        len: usize,
    ) -> Checked<Sending> {
        self.send_as(at, to, bits, seed, len, false)
    }

    pub(super) fn send_as(
        &mut self,
        at: usize,
        to: usize,
        bits: u64,
        seed: u64,
        len: usize,
        synchronous: bool,
    ) -> Checked<Sending> {
        let from = self.allocates.sends.then(|| self.allocate(at, len));
        let memory = self.keep(Memory::patterned(seed, len, from.flatten()));
        match self.send_buffer(at, to, bits, &memory.send_buffer(), synchronous)? {
            (sending, Sent::Done) if !synchronous => {
                // The buffer is the sender's again: the transport must not look at it.
                let index = self.memories.len() - 1;
                self.memories[index] = Rc::new(Memory::zeroed(0, None));
                Ok(sending)
            }
            (sending, Sent::Done | Sent::Open) => Ok(sending),
            (_, other) => Err(format!("a send of {len} bytes was answered {other:?}")),
        }
    }

    /// Posts a receive into `data`, with progress while the transport is busy.
    pub(super) fn post_buffer(
        &mut self,
        at: usize,
        pattern: MatchPattern,
        data: &RecvBuffer,
        token: Token,
    ) -> Checked<Posted> {
        let mut patience = Patience::new();
        loop {
            let answer = self.transport(at).post(LANE, pattern, data, token);
            if answer != Posted::Busy {
                return Ok(answer);
            }
            let events = self.progress(at);
            if !patience.goes_on(events) {
                return Err(format!("rank {at}: a receive stays busy"));
            }
        }
    }

    /// Posts a receive with room for `len` bytes.
    pub(super) fn post(
        &mut self,
        at: usize,
        pattern: MatchPattern,
        len: usize,
    ) -> Checked<Receiving> {
        let from = self.allocates.receives.then(|| self.allocate(at, len));
        let memory = self.keep(Memory::zeroed(len, from.flatten()));
        let token = self.token();
        let answer = self.post_buffer(at, pattern, &memory.recv_buffer(), token)?;
        self.note(at, token, answer)?;
        Ok(Receiving { at, token, memory })
    }

    fn note(&mut self, at: usize, token: Token, answer: Posted) -> Checked {
        match answer {
            Posted::Done(end) => self.nodes[at].log.received(token, end),
            Posted::Open => {}
            other => return Err(format!("rank {at}: a receive was answered {other:?}")),
        }
        Ok(())
    }

    /// What a probe finds.
    pub(super) fn probe(
        &mut self,
        at: usize,
        pattern: MatchPattern,
        claim: bool,
    ) -> Checked<Option<Found>> {
        let token = self.token();
        let mut patience = Patience::new();
        loop {
            match self.transport(at).probe(LANE, pattern, claim, token) {
                Probed::Found(found) => return Ok(Some(found)),
                Probed::Nothing => return Ok(None),
                Probed::Pending => {
                    self.drive_only(&[at], "the answer to a probe", |rig| {
                        rig.log(at).probed.contains_key(&token)
                    })?;
                    return Ok(self.log(at).probed[&token]);
                }
                Probed::Busy => {}
                Probed::Refused(why) => return Err(format!("a probe was refused: {why:?}")),
            }
            let events = self.progress(at);
            if !patience.goes_on(events) {
                return Err(format!("rank {at}: a probe stays busy"));
            }
        }
    }

    /// Drives all until a probe finds something.
    pub(super) fn see(&mut self, at: usize, pattern: MatchPattern, claim: bool) -> Checked<Found> {
        let mut patience = Patience::new();
        loop {
            if let Some(found) = self.probe(at, pattern, claim)? {
                return Ok(found);
            }
            let events = self.round();
            if !patience.goes_on(events) {
                return Err(format!("rank {at}: a probe never finds {pattern:?}"));
            }
        }
    }

    /// Receives what a probe claimed.
    pub(super) fn receive(&mut self, at: usize, found: Found, len: usize) -> Checked<Receiving> {
        let claim = found.claim.ok_or("a claim has no name")?;
        let (memory, token) = (self.zeroed(len), self.token());
        let data = memory.recv_buffer();
        let mut patience = Patience::new();
        loop {
            let answer = self
                .transport(at)
                .receive_claimed(LANE, claim, &data, token);
            if answer != Posted::Busy {
                self.note(at, token, answer)?;
                return Ok(Receiving { at, token, memory });
            }
            let events = self.progress(at);
            if !patience.goes_on(events) {
                return Err(format!("rank {at}: a claimed receive stays busy"));
            }
        }
    }

    /// Cancels; returns whether that was in time.
    pub(super) fn cancel(&mut self, receiving: &Receiving) -> Checked<bool> {
        let (at, token) = (receiving.at, receiving.token);
        match self.transport(at).cancel(LANE, token) {
            Cancel::Cancelled => {
                self.nodes[at].log.received(token, ReceiveEnd::Cancelled);
                Ok(true)
            }
            Cancel::TooLate => Ok(false),
            Cancel::Pending => Ok(self.end(receiving)? == ReceiveEnd::Cancelled),
        }
    }

    pub(super) fn is_received(&self, receiving: &Receiving) -> bool {
        self.log(receiving.at)
            .received
            .contains_key(&receiving.token)
    }

    pub(super) fn is_sent(&self, sending: Sending) -> bool {
        self.log(sending.at).sent.contains_key(&sending.token)
    }

    /// How a receive ends, which it does once.
    pub(super) fn end(&mut self, receiving: &Receiving) -> Checked<ReceiveEnd> {
        self.drive("the end of a receive", |rig| rig.is_received(receiving))?;
        match self.log(receiving.at).received[&receiving.token][..] {
            [end] => Ok(end),
            ref ends => Err(format!("a receive ended more than once: {ends:?}")),
        }
    }

    /// How a send ends, which it does once.
    pub(super) fn outcome(&mut self, sending: Sending) -> Checked<Outcome> {
        self.drive("the end of a send", |rig| rig.is_sent(sending))?;
        match self.log(sending.at).sent[&sending.token][..] {
            [outcome] => Ok(outcome),
            ref outcomes => Err(format!("a send ended more than once: {outcomes:?}")),
        }
    }

    pub(super) fn sent_well(&mut self, sending: Sending) -> Checked {
        match self.outcome(sending)? {
            Outcome::Done(_) => Ok(()),
            other => Err(format!("a send ended with {other:?}")),
        }
    }

    /// A receive gets message `seed` of `len` bytes, or what it has room for of it.
    pub(super) fn got(
        &mut self,
        receiving: &Receiving,
        source: usize,
        bits: u64,
        seed: u64,
        len: usize,
    ) -> Checked {
        let room = receiving.memory.len();
        let all_or_nothing = {
            let capabilities = self.transport(receiving.at).capabilities();
            capabilities.contains(Capabilities::ALL_OR_NOTHING)
        };
        let nothing = len > room && all_or_nothing;
        let gets = if nothing { 0 } else { len.min(room) };
        let wanted = ReceiveEnd::Matched(
            MatchEnvelope {
                source: Rank::new(source as u32),
                bits,
                length: len as u64,
            },
            Outcome::Done(gets as u64),
        );
        let end = self.end(receiving)?;
        ensure(end == wanted, || {
            format!("a receive ended with {end:?} where {wanted:?} is right")
        })?;
        let mut bytes = pattern(seed, len);
        bytes.truncate(gets);
        bytes.resize(room, 0);
        ensure(nothing || receiving.memory.bytes() == bytes, || {
            format!("the {len} bytes are not those that were sent")
        })?;
        ensure(receiving.memory.guards_hold(), || {
            "something was written beside the buffer".to_owned()
        })
    }

    /// Brings two ranks in contact, both ways.
    pub(super) fn acquaint(&mut self, a: usize, b: usize) -> Checked {
        for (x, y) in [(a, b), (b, a)] {
            let receiving = self.post(y, from(x, exact(1)), 4)?;
            let sending = self.send(x, y, 1, 1, 4)?;
            self.got(&receiving, x, 1, 1, 4)?;
            self.sent_well(sending)?;
        }
        Ok(())
    }

    /// Ends `rank` in good order.
    pub(super) fn close(&mut self, rank: usize) -> Checked {
        let mut patience = Patience::new();
        while self.transport(rank).unfinished() > 0 {
            let events = self.round();
            if !patience.goes_on(events) {
                return Err(format!("rank {rank} never finishes"));
            }
        }
        let mut transport = self.take(rank);
        transport.leave();
        self.closing.close(transport);
        Ok(())
    }

    /// Ends `rank` without a goodbye.
    pub(super) fn kill(&mut self, rank: usize) {
        let transport = self.take(rank);
        match &mut self.kill {
            Some(kill) => kill(Rank::new(rank as u32), transport),
            // Closing it would be a goodbye.
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

    /// How often `rank` was told `word`.
    pub(super) fn count(&self, rank: usize, word: Word) -> usize {
        self.log(rank)
            .words
            .iter()
            .filter(|other| **other == word)
            .count()
    }

    /// Nothing is left over anywhere.
    pub(super) fn is_empty(&mut self) -> Checked {
        self.settle()?;
        for rank in 0..self.nodes.len() {
            if self.nodes[rank].transport.is_none() {
                continue;
            }
            let levels = self.transport(rank).levels();
            let sum = levels.posted + levels.unexpected + levels.unexpected_bytes + levels.held;
            ensure(sum == 0, || format!("rank {rank} is left with {levels:?}"))?;
        }
        Ok(())
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
