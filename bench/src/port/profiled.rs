//! A port that keeps account of the calls of another one: what `--profile` puts in between.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tagwire_base::{Rank, Tag};
use tagwire_pml::Counters;
use tagwire_transport::Allocation;

use super::Port;
use super::collective::{Collectives, Form};
use super::group::{Divide, Group};
use crate::body::compute::look_ns;
use crate::buffer::{Incoming, Outgoing};
use crate::error::Result;
use crate::profile::{Call, Messages, Profile};

/// The calls there are, as they are named in a profile.
const CALLS: [&str; 5] = ["isend", "irecv", "wait_all", "send", "recv"];

/// Each call costs two looks at the clock more than without.
pub(crate) struct Profiled<'a, P> {
    port: &'a P,
    start: Instant,
    look_ns: f64,
    calls: [Account; CALLS.len()],
    sent: Account,
    received: Account,
}

/// How many, and what they come to: nanoseconds or bytes.
#[derive(Debug, Default)]
struct Account {
    count: AtomicU64,
    sum: AtomicU64,
}

impl Account {
    fn add(&self, amount: u64) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(amount, Ordering::Relaxed);
    }

    fn read(&self) -> (u64, u64) {
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        (read(&self.count), read(&self.sum))
    }
}

impl<'a, P: Port> Profiled<'a, P> {
    pub(crate) fn new(port: &'a P) -> Self {
        Self {
            port,
            look_ns: look_ns(),
            calls: Default::default(),
            sent: Account::default(),
            received: Account::default(),
            start: Instant::now(),
        }
    }

    #[inline]
    fn timed<T>(&self, call: usize, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let start = Instant::now();
        let result = work();
        let time = start.elapsed().as_nanos();
        self.calls[call].add(u64::try_from(time).unwrap_or(u64::MAX));
        result
    }
}

impl<P: Port> Port for Profiled<'_, P> {
    type Request = P::Request;

    fn rank(&self) -> Rank {
        self.port.rank()
    }

    fn size(&self) -> u32 {
        self.port.size()
    }

    fn isend(&self, data: Outgoing, to: Rank, tag: Tag) -> Result<P::Request> {
        self.sent.add(data.len() as u64);
        self.timed(0, || self.port.isend(data, to, tag))
    }

    fn irecv(&self, data: Incoming, from: Rank, tag: Tag) -> Result<P::Request> {
        self.received.add(data.len() as u64);
        self.timed(1, || self.port.irecv(data, from, tag))
    }

    fn wait_all(&self, requests: &mut Vec<P::Request>) -> Result<()> {
        self.timed(2, || self.port.wait_all(requests))
    }

    fn send(&self, data: Outgoing, to: Rank, tag: Tag) -> Result<()> {
        self.sent.add(data.len() as u64);
        self.timed(3, || self.port.send(data, to, tag))
    }

    fn ssend(&self, data: Outgoing, to: Rank, tag: Tag) -> Result<()> {
        self.sent.add(data.len() as u64);
        self.timed(3, || self.port.ssend(data, to, tag))
    }

    fn recv(&self, data: Incoming, from: Rank, tag: Tag) -> Result<()> {
        self.received.add(data.len() as u64);
        self.timed(4, || self.port.recv(data, from, tag))
    }

    fn collectives(&self, form: Form) -> Result<Box<dyn Collectives + '_>> {
        self.port.collectives(form)
    }

    fn group(&self, divide: Divide) -> Result<Box<dyn Group + '_>> {
        self.port.group(divide)
    }

    fn allocate(&self, len: usize) -> Result<Option<Allocation>> {
        self.port.allocate(len)
    }

    fn counters(&self) -> Option<Counters> {
        self.port.counters()
    }

    fn profile(&self) -> Option<Profile> {
        let wall_ns = self.start.elapsed().as_nanos() as f64;
        let call = |(name, account): (&&str, &Account)| {
            let (calls, ns) = account.read();
            Call::new(
                name,
                calls,
                (ns as f64 - calls as f64 * self.look_ns).max(0.0),
            )
        };
        let calls = CALLS.iter().zip(&self.calls).map(call);
        let messages = Messages::new(self.sent.read(), self.received.read(), self.counters());
        Some(Profile::new(self.rank(), wall_ns, calls, messages))
    }
}
