//! Partitioned operations with data of any datatype (MPI-5.0, chapter 4).
//!
//! Partitions with gaps are packed when they are ready, and unpacked when they have arrived.

use std::fmt;
use std::mem;

use tagwire_pml::{PartitionedRecv, PartitionedSend};

use crate::abi::Status;
use crate::error::{Class, Error, Result};
use crate::lock::Lock;
use crate::object::datatype::Span;
use crate::object::pending::{End, PendingOperation};
use crate::raw::{Out, StagingBuffer};

/// The partitions of a buffer.
#[derive(Debug)]
pub(crate) struct Partitions {
    address: Out,
    /// One of them.
    span: Span,
    count: u32,
    /// Where they do not follow each other as one block.
    staging: Option<StagingBuffer>,
}

impl Partitions {
    pub(crate) fn new(address: Out, span: Span, count: u32) -> Self {
        let whole = Span {
            count: span.count * u64::from(count),
            bytes: span.bytes * count as usize,
            program: span.program.clone(),
        };
        let staging = whole
            .block()
            .is_none()
            .then(|| StagingBuffer::new(whole.bytes));
        Self {
            address,
            span,
            count,
            staging,
        }
    }

    /// Returns where they are sent from or received into.
    pub(crate) fn place(&self) -> Out {
        match &self.staging {
            Some(staging) => staging.address(),
            None => self.address.moved(self.span.block().unwrap_or(0)),
        }
    }

    /// Returns how many bytes of data they are.
    pub(crate) const fn bytes(&self) -> usize {
        self.span.bytes * self.count as usize
    }

    /// Returns where the program has a partition, and where it is packed.
    fn part(&self, staging: &StagingBuffer, partition: u32) -> (Out, Out) {
        let distance = self.span.extent() * self.span.count as i64 * i64::from(partition);
        let start = self.span.bytes * partition as usize;
        let packed = staging.part(start, self.span.bytes);
        (self.address.moved(distance), packed)
    }

    /// Packs one.
    fn pack(&self, partition: u32) -> Result {
        if let Some(staging) = self.staging.as_ref().filter(|_| partition < self.count) {
            let (address, packed) = self.part(staging, partition);
            self.span.pack(address.read(), packed)?;
        }
        Ok(())
    }

    /// Unpacks one.
    fn unpack(&self, partition: u32) -> Result {
        if let Some(staging) = &self.staging {
            let (address, packed) = self.part(staging, partition);
            self.span.unpack(packed.read(), address)?;
        }
        Ok(())
    }
}

/// How a round ended, once it has, until that is taken.
#[derive(Debug, Default)]
struct Ended(Lock<Option<Result>>);

impl Ended {
    /// Looks with `test` whether the round has ended.
    fn look(&self, test: impl FnOnce() -> tagwire_pml::Result<bool>) -> bool {
        let mut held = self.0.lock();
        if held.is_none() {
            *held = match test() {
                Ok(false) => None,
                Ok(true) => Some(Ok(())),
                Err(error) => Some(Err(error.into())),
            };
        }
        held.is_some()
    }
}

/// A partitioned send.
pub(crate) struct Send {
    inner: PartitionedSend,
    partitions: Partitions,
    ended: Ended,
}

/// A partitioned receive.
pub(crate) struct Recv {
    inner: PartitionedRecv,
    partitions: Partitions,
    /// Which were unpacked in this round. Who unpacks one holds it, so that nobody is told before that it has arrived.
    unpacked: Box<[Lock<bool>]>,
    ended: Ended,
    /// Where it receives from: it names a process and a tag, and all of the data arrives.
    status: Status,
}

impl fmt::Debug for Send {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl fmt::Debug for Recv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl Send {
    pub(crate) const fn new(inner: PartitionedSend, partitions: Partitions) -> Self {
        Self {
            inner,
            partitions,
            ended: Ended(Lock::new(None)),
        }
    }

    pub(crate) fn start(&self) -> Result {
        self.inner.start()?;
        if self.partitions.count == 0 {
            // The one that stands for none.
            self.inner.ready(0)?;
        }
        Ok(())
    }

    pub(crate) fn ready(&self, partition: u32) -> Result {
        self.partitions.pack(partition)?;
        Ok(self.inner.ready(partition)?)
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.ended.look(|| self.inner.test())
    }

    /// Takes how the round ended.
    pub(crate) fn take(&self) -> Option<Result> {
        self.is_complete();
        self.ended.0.lock().take()
    }
}

impl Recv {
    /// Returns one from `source` in its communicator, with a tag.
    pub(crate) fn new(
        inner: PartitionedRecv,
        partitions: Partitions,
        source: i32,
        tag: i32,
    ) -> Self {
        let unpacked = (0..partitions.count).map(|_| Lock::new(false));
        Self {
            inner,
            status: Status::new(source, tag, partitions.bytes() as u64),
            unpacked: unpacked.collect(),
            partitions,
            ended: Ended::default(),
        }
    }

    pub(crate) fn start(&self) -> Result {
        for unpacked in &self.unpacked {
            *unpacked.lock() = false;
        }
        Ok(self.inner.start()?)
    }

    /// Returns whether a partition has arrived, and is where it belongs.
    pub(crate) fn arrived(&self, partition: u32) -> Result<bool> {
        if !self.inner.arrived(partition)? {
            return Ok(false);
        }
        self.unpack(partition)?;
        Ok(true)
    }

    fn unpack(&self, partition: u32) -> Result {
        let Some(unpacked) = self.unpacked.get(partition as usize) else {
            return Ok(());
        };
        let mut is_unpacked = unpacked.lock();
        match mem::replace(&mut *is_unpacked, true) {
            true => Ok(()),
            false => self.partitions.unpack(partition),
        }
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.ended.look(|| {
            let has_ended = self.inner.test()?;
            if has_ended {
                // From now on each has arrived. What was received can be unpacked.
                let _ = (0..self.partitions.count).try_for_each(|one| self.unpack(one));
            }
            Ok(has_ended)
        })
    }

    /// Takes how the round ended.
    pub(crate) fn take(&self) -> Option<Result> {
        self.is_complete();
        self.ended.0.lock().take()
    }

    pub(crate) fn is_active(&self) -> bool {
        self.inner.is_active()
    }
}

/// One end of a partitioned operation.
#[derive(Debug, Clone)]
pub(crate) enum Part {
    /// To or from no process.
    None,
    Send(std::sync::Arc<Send>),
    Recv(std::sync::Arc<Recv>),
}

impl Part {
    pub(crate) fn start(&self) -> Result {
        match self {
            Self::None => Ok(()),
            Self::Send(send) => send.start(),
            Self::Recv(recv) => recv.start(),
        }
    }

    /// Refuses what an operation under way is not for (MPI-5.0, section 4.2).
    fn check_ended(&self, what: &str) -> Result {
        match self.is_complete() {
            true => Ok(()),
            false => Err(Error::new(
                Class::Request,
                format!("a partitioned operation under way cannot be {what}"),
            )),
        }
    }
}

impl PendingOperation for Part {
    fn is_complete(&self) -> bool {
        match self {
            Self::None => true,
            Self::Send(send) => send.is_complete(),
            Self::Recv(recv) => recv.is_complete(),
        }
    }

    fn take(&self) -> Option<End> {
        match self {
            Self::None => Some(End::good(Status::NO_PROC)),
            Self::Send(send) => send.take().map(End::of),
            Self::Recv(recv) => recv.take().map(|outcome| End {
                status: recv.status,
                error: outcome.err(),
            }),
        }
    }

    fn shows_success(&self) -> bool {
        true
    }

    fn cancel(&self) -> Result {
        self.check_ended("cancelled")
    }

    fn check_free(&self) -> Result {
        self.check_ended("freed")
    }
}
