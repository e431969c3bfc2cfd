//! A port that keeps account of the calls of another one: what `--profile` puts in between.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tagwire_base::{Rank, Tag};
use tagwire_pml::Counters;
use tagwire_transport::Allocation;

use super::collective::{Collectives, Form};
use super::group::{Divide, Group};
use super::partitioned::{Operation, PartitionedPort, Partner, RecvEnd, Rounds, SendEnd};
use super::{Endpoint, Port};
use crate::args::partitioned::PartitionedPlan;
use crate::body::compute::look_ns;
use crate::buffer::{Incoming, Outgoing};
use crate::error::Result;
use crate::profile::{Call, Matching, Messages, Profile};

/// The calls there are, as they are named in a profile.
const CALLS: [&str; 9] = [
    "isend", "irecv", "wait_all", "send", "recv", "pstart", "pready", "parrived", "pwait",
];

/// Each call costs two looks at the clock more than without.
pub(crate) struct Profiled<'a, P> {
    port: &'a P,
    start: Instant,
    look_ns: f64,
    calls: Accounts,
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

/// Of each call.
#[derive(Debug, Default)]
struct Accounts([Account; CALLS.len()]);

impl Accounts {
    #[inline]
    fn timed<T>(&self, call: usize, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let start = Instant::now();
        let result = work();
        let time = start.elapsed().as_nanos();
        self.0[call].add(u64::try_from(time).unwrap_or(u64::MAX));
        result
    }
}

impl<'a, P: Port> Profiled<'a, P> {
    pub(crate) fn new(port: &'a P) -> Self {
        Self {
            port,
            look_ns: look_ns(),
            calls: Accounts::default(),
            sent: Account::default(),
            received: Account::default(),
            start: Instant::now(),
        }
    }

    #[inline]
    fn timed<T>(&self, call: usize, work: impl FnOnce() -> Result<T>) -> Result<T> {
        self.calls.timed(call, work)
    }

    /// Returns where the time went.
    pub(crate) fn profile(&self) -> Profile {
        let wall_ns = self.start.elapsed().as_nanos() as f64;
        let call = |(name, account): (&&str, &Account)| {
            let (calls, ns) = account.read();
            Call::new(
                name,
                calls,
                (ns as f64 - calls as f64 * self.look_ns).max(0.0),
            )
        };
        let calls = CALLS.iter().zip(&self.calls.0).map(call);
        let messages = Messages::new(self.sent.read(), self.received.read(), self.counters());
        Profile {
            ways: self.port.ways(),
            matching: self.port.matching().map(Matching::of),
            ..Profile::new(self.rank(), wall_ns, calls, messages)
        }
    }
}

impl<P: Port> Endpoint for Profiled<'_, P> {
    fn rank(&self) -> Rank {
        self.port.rank()
    }

    fn size(&self) -> u32 {
        self.port.size()
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

    fn recv_looking(&self, data: Incoming, from: Rank, tag: Tag) -> Result<()> {
        self.received.add(data.len() as u64);
        self.timed(4, || self.port.recv_looking(data, from, tag))
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
}

impl<P: Port> Port for Profiled<'_, P> {
    type Request = P::Request;

    fn isend(&self, data: Outgoing, to: Rank, tag: Tag) -> Result<P::Request> {
        self.sent.add(data.len() as u64);
        self.timed(0, || self.port.isend(data, to, tag))
    }

    fn irecv(&self, data: Incoming, from: Rank, tag: Tag) -> Result<P::Request> {
        self.received.add(data.len() as u64);
        self.timed(1, || self.port.irecv(data, from, tag))
    }

    fn irecv_any(&self, data: Incoming, tag: Tag) -> Result<P::Request> {
        self.received.add(data.len() as u64);
        self.timed(1, || self.port.irecv_any(data, tag))
    }

    fn wait_all(&self, requests: &mut Vec<P::Request>) -> Result<()> {
        self.timed(2, || self.port.wait_all(requests))
    }
}

/// An end of a partitioned operation, whose calls are accounted for.
pub(crate) struct ProfiledEnd<'p, E> {
    end: E,
    calls: &'p Accounts,
}

impl<P: PartitionedPort> PartitionedPort for Profiled<'_, P> {
    type Send<'p>
        = ProfiledEnd<'p, P::Send<'p>>
    where
        Self: 'p;
    type Recv<'p>
        = ProfiledEnd<'p, P::Recv<'p>>
    where
        Self: 'p;

    fn operations(&self, plan: &PartitionedPlan) -> Vec<Operation> {
        self.port.operations(plan)
    }

    fn psend(&self, data: Outgoing, to: Partner, policy: &str) -> Result<Self::Send<'_>> {
        Ok(ProfiledEnd {
            end: self.port.psend(data, to, policy)?,
            calls: &self.calls,
        })
    }

    fn precv(&self, data: Incoming, from: Partner, buffers: u32) -> Result<Self::Recv<'_>> {
        Ok(ProfiledEnd {
            end: self.port.precv(data, from, buffers)?,
            calls: &self.calls,
        })
    }

    fn wait_ends<'p>(
        &'p self,
        sends: &[&Self::Send<'p>],
        receives: &[&Self::Recv<'p>],
    ) -> Result<()> {
        let sends: Vec<_> = sends.iter().map(|one| &one.end).collect();
        let receives: Vec<_> = receives.iter().map(|one| &one.end).collect();
        self.timed(8, || self.port.wait_ends(&sends, &receives))
    }
}

impl<E: Rounds> Rounds for ProfiledEnd<'_, E> {
    fn start(&self) -> Result<()> {
        self.calls.timed(5, || self.end.start())
    }

    fn wait(&self) -> Result<()> {
        self.calls.timed(8, || self.end.wait())
    }
}

impl<E: SendEnd> SendEnd for ProfiledEnd<'_, E> {
    fn ready(&self, partition: u32) -> Result<()> {
        self.calls.timed(6, || self.end.ready(partition))
    }

    fn describe(&self) -> Option<String> {
        self.end.describe()
    }
}

impl<E: RecvEnd> RecvEnd for ProfiledEnd<'_, E> {
    fn arrived(&self, partition: u32) -> Result<bool> {
        self.calls.timed(7, || self.end.arrived(partition))
    }

    /// All looks until it has are one call.
    fn arrive(&self, partition: u32) -> Result<()> {
        self.calls.timed(7, || self.end.arrive(partition))
    }

    fn room(&self) -> usize {
        self.end.room()
    }
}
