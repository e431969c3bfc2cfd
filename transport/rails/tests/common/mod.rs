//! A rail that can be slowed down and cut, around another transport; and what a rank was told.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(unsafe_code, reason = "buffers are lent to transports")]

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tagwire_base::Rank;
use tagwire_transport::data::WriteRegion;
use tagwire_transport::{
    AmHeader, Arrival, Body, ByteTransport, Capabilities, Class, CooperativeTransfers, EndpointId,
    Lane, Limits, Outcome, Payload, PeerEvent, Post, RecvBuffer, RegistrationHandle, RemoteAccess,
    RemoteMemory, Result, SendBuffer, Token, Transport, Upcalls, Waiter,
};

pub const LANE: Lane = Lane(0);

/// What is done to a rail, from outside.
#[derive(Debug, Default)]
pub struct Knobs {
    /// Nothing passes any more; what is under way is lost.
    pub is_cut: AtomicBool,
    /// The rail does not notice that it is cut.
    pub is_silent: AtomicBool,
    /// Calls of progress that a get takes.
    pub delay: AtomicU64,
    /// Bytes that were got.
    pub got: AtomicU64,
    /// Messages that were sent.
    pub sent: AtomicU64,
    /// The rail says that it has threads of its own.
    pub has_threads: AtomicBool,
}

impl Knobs {
    pub fn cut(&self) {
        self.is_cut.store(true, Ordering::Relaxed);
    }

    fn is_cut(&self) -> bool {
        self.is_cut.load(Ordering::Relaxed)
    }

    fn is_silent(&self) -> bool {
        self.is_silent.load(Ordering::Relaxed)
    }

    pub fn got(&self) -> u64 {
        self.got.load(Ordering::Relaxed)
    }
}

/// A get whose end is held back.
struct Held {
    when: u64,
    token: Token,
    outcome: Outcome,
}

/// A rail with knobs.
pub struct Line {
    inner: Box<dyn ByteTransport>,
    pub knobs: Arc<Knobs>,
    peers: Vec<(EndpointId, Rank, bool)>,
    now: u64,
    gets: HashMap<Token, WriteRegion>,
    held: VecDeque<Held>,
}

impl Line {
    pub fn new(inner: Box<dyn ByteTransport>, knobs: Arc<Knobs>) -> Self {
        Self {
            inner,
            knobs,
            peers: Vec::new(),
            now: 0,
            gets: HashMap::new(),
            held: VecDeque::new(),
        }
    }

    fn know(&mut self, endpoint: EndpointId, rank: Rank) {
        if !self.peers.iter().any(|(known, ..)| *known == endpoint) {
            self.peers.push((endpoint, rank, false));
        }
    }

    /// What a rail reports at its end: no get has brought what it was to bring, and each peer is lost.
    fn tell_cut(&mut self, of: impl Fn(Rank) -> bool, upcalls: &mut dyn Upcalls) -> usize {
        let mut told = 0;
        for place in 0..self.peers.len() {
            let (endpoint, rank, gone) = self.peers[place];
            if gone || !of(rank) {
                continue;
            }
            self.peers[place].2 = true;
            self.held.clear();
            for (token, region) in self.gets.drain() {
                // SAFETY: the get has not ended: its buffer is lent. The rail below is cut, and does not write.
                unsafe { RecvBuffer::of(region) }
                    .write(0, Payload::from_slice(&vec![0xee; region.len()]));
                upcalls.complete(token, Outcome::PeerFailed);
            }
            upcalls.peer(PeerEvent::Failed(endpoint));
            told += 1;
        }
        told
    }

    fn tell_ends(&mut self, upcalls: &mut dyn Upcalls) -> usize {
        let mut told = 0;
        while self.held.front().is_some_and(|held| held.when <= self.now)
            && let Some(held) = self.held.pop_front()
        {
            if let Some(region) = self.gets.remove(&held.token) {
                self.knobs
                    .got
                    .fetch_add(region.len() as u64, Ordering::Relaxed);
            }
            upcalls.complete(held.token, held.outcome);
            told += 1;
        }
        told
    }
}

/// Stands between the rail inside and the bundle.
struct Tap<'a> {
    is_cut: bool,
    when: u64,
    held: &'a mut VecDeque<Held>,
    ups: Vec<(EndpointId, Rank)>,
    above: &'a mut dyn Upcalls,
}

impl Upcalls for Tap<'_> {
    fn deliver(&mut self, arrival: Arrival<'_>) {
        if self.is_cut {
            return;
        }
        self.above.deliver(arrival);
    }

    fn complete(&mut self, token: Token, outcome: Outcome) {
        self.held.push_back(Held {
            when: self.when,
            token,
            outcome,
        });
    }

    fn peer(&mut self, event: PeerEvent) {
        if let PeerEvent::Up { endpoint, rank } = event {
            self.ups.push((endpoint, rank));
        }
        if !self.is_cut {
            self.above.peer(event);
        }
    }
}

impl Transport for Line {
    fn name(&self) -> &'static str {
        "line"
    }

    fn capabilities(&self) -> Capabilities {
        let mut all = self.inner.capabilities();
        let has_threads = self.knobs.has_threads.load(Ordering::Relaxed);
        all.set(Capabilities::THREADS, has_threads);
        all
    }

    fn address(&self) -> Vec<u8> {
        self.inner.address()
    }

    fn connect(&mut self, peer: Rank, address: &[u8]) -> Result<EndpointId> {
        let endpoint = self.inner.connect(peer, address)?;
        self.know(endpoint, peer);
        Ok(endpoint)
    }

    fn leave(&mut self) {
        self.inner.leave();
    }

    fn waiter(&self) -> Arc<dyn Waiter> {
        self.inner.waiter()
    }

    fn describe(&self, out: &mut dyn fmt::Write) {
        self.inner.describe(out);
    }
}

impl RemoteAccess for Line {
    fn get(
        &mut self,
        lane: Lane,
        from: EndpointId,
        data: &RecvBuffer,
        source: RemoteMemory<'_>,
        token: Token,
    ) -> Post {
        let region = data.region().expect("the bundle reads into regions");
        let posted = match (self.knobs.is_cut(), self.knobs.is_silent()) {
            (true, true) => Post::Posted,
            (true, false) => Post::Gone,
            _ => self.inner.get(lane, from, data, source, token),
        };
        if posted == Post::Posted {
            self.gets.insert(token, region);
        }
        posted
    }

    fn expose(&mut self, data: &SendBuffer) -> Result<RegistrationHandle> {
        self.inner.expose(data)
    }

    fn deregister(&mut self, handle: RegistrationHandle) {
        self.inner.deregister(handle);
    }
}

impl Line {
    /// Sends a message by the transport inside, unless the line is cut.
    fn message(&mut self, send: impl FnOnce(&mut dyn ByteTransport) -> Post) -> Post {
        match (self.knobs.is_cut(), self.knobs.is_silent()) {
            (true, true) => Post::Posted,
            (true, false) => Post::Gone,
            _ => {
                self.knobs.sent.fetch_add(1, Ordering::Relaxed);
                send(&mut *self.inner)
            }
        }
    }
}

impl CooperativeTransfers for Line {}

impl ByteTransport for Line {
    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    fn send(
        &mut self,
        lane: Lane,
        to: EndpointId,
        class: Class,
        header: AmHeader,
        data: &[u8],
    ) -> Post {
        self.message(|inner| inner.send(lane, to, class, header, data))
    }

    fn send_from(&mut self, lane: Lane, to: EndpointId, header: AmHeader, body: &Body<'_>) -> Post {
        self.message(|inner| inner.send_from(lane, to, header, body))
    }

    fn progress(&mut self, lane: Lane, upcalls: &mut dyn Upcalls) -> usize {
        self.now += 1;
        let is_cut = self.knobs.is_cut();
        let mut tap = Tap {
            is_cut,
            when: self.now + self.knobs.delay.load(Ordering::Relaxed),
            held: &mut self.held,
            ups: Vec::new(),
            above: upcalls,
        };
        let mut told = self.inner.progress(lane, &mut tap);
        for (endpoint, rank) in tap.ups {
            self.know(endpoint, rank);
        }
        if !is_cut {
            told += self.tell_ends(upcalls);
        } else if !self.knobs.is_silent() {
            told += self.tell_cut(|_| true, upcalls);
        }
        told
    }

    fn look_after_peers(&mut self, upcalls: &mut dyn Upcalls) {
        if !self.knobs.is_cut() {
            self.inner.look_after_peers(upcalls);
        }
    }

    fn peer_failed(&mut self, rank: Rank, upcalls: &mut dyn Upcalls) {
        if self.knobs.is_cut() {
            self.tell_cut(|of| of == rank, upcalls);
        } else {
            self.inner.peer_failed(rank, upcalls);
            self.now = u64::MAX / 2;
            self.tell_ends(upcalls);
        }
    }
}

/// Memory that a test keeps, unchanged, for as long as a transport has it.
pub fn readable(memory: &[u8]) -> SendBuffer {
    // SAFETY: tests keep their memory until the transports are dropped.
    unsafe { SendBuffer::contiguous(memory.as_ptr(), memory.len()) }
}

/// Memory that a test keeps, and does not look at, until its token completes.
pub fn writable(memory: &mut Vec<u8>) -> RecvBuffer {
    // SAFETY: tests keep their memory until the tokens complete or the transports are dropped.
    unsafe { RecvBuffer::contiguous(memory.as_mut_ptr(), memory.len()) }
}

/// What a rank was told.
#[derive(Debug, Default)]
pub struct Log {
    pub up: Vec<(EndpointId, Rank)>,
    /// The first word of each header, and the bytes.
    pub messages: Vec<(u64, Vec<u8>)>,
    pub ends: Vec<(Token, Outcome)>,
    pub left: usize,
    pub failed: usize,
    pub protocol: Vec<String>,
}

impl Upcalls for Log {
    fn deliver(&mut self, arrival: Arrival<'_>) {
        let bytes = arrival.payload.to_vec();
        self.messages.push((arrival.header.0[0], bytes));
    }

    fn complete(&mut self, token: Token, outcome: Outcome) {
        self.ends.push((token, outcome));
    }

    fn peer(&mut self, event: PeerEvent) {
        match event {
            PeerEvent::Up { endpoint, rank } => self.up.push((endpoint, rank)),
            PeerEvent::Left(_) => self.left += 1,
            PeerEvent::Failed(_) => self.failed += 1,
            PeerEvent::Protocol(_, error) => self.protocol.push(error.to_string()),
            _ => {}
        }
    }
}
