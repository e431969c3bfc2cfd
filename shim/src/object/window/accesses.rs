//! Accesses to memory that has no address in this process: by the rank's remote memory access.
//!
//! They are started, and have ended at the target when the window is flushed. What they read is kept until then.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use tagwire_pml::{AccessId, Messenger, Target};

use crate::error::{Class, Error, Result};
use crate::lock::Lock;
use crate::object::datatype::Span;
use crate::raw::{In, Out, StagingBuffer};

/// Every so many accesses make progress, so that those which have ended do not gather in the transport.
const ACCESSES_PER_PROGRESS: usize = 64;

/// A region of a member.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) target: Target,
    /// The position of its first byte, and of that behind its last.
    pub(crate) start: i64,
    pub(crate) end: i64,
}

/// Regions of a member.
#[derive(Debug, Clone)]
pub(crate) struct Parts(Arc<[Part]>);

impl From<Vec<Part>> for Parts {
    fn from(parts: Vec<Part>) -> Self {
        Self(parts.into())
    }
}

impl Parts {
    /// Calls `each` with the region, the offset there, and the length, of all parts of a range of positions, in their order.
    ///
    /// # Errors
    /// Those of `each`; `MPI_ERR_RMA_RANGE` where there is no region.
    fn pieces(
        &self,
        (mut start, end): (i64, i64),
        mut each: impl FnMut(&Target, u64, usize) -> Result,
    ) -> Result {
        while start < end {
            let mut parts = self.0.iter();
            let part = parts.find(|part| (part.start..part.end).contains(&start));
            let part =
                part.ok_or_else(|| Error::new(Class::RmaRange, "the memory is not there"))?;
            let until = end.min(part.end);
            let length = (until - start) as usize;
            each(&part.target, (start - part.start) as u64, length)?;
            start = until;
        }
        Ok(())
    }
}

/// What a flush needs of accesses to a member.
#[derive(Debug)]
struct Started {
    member: usize,
    target: Target,
    /// What they read.
    _data: Option<StagingBuffer>,
}

/// The accesses of a window.
pub(crate) struct Accesses {
    messenger: Arc<Messenger>,
    /// Those that have been started, and not been flushed.
    under_way: Lock<Vec<Started>>,
    /// How many were started.
    count: AtomicUsize,
}

impl fmt::Debug for Accesses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} accesses", self.count.load(Relaxed))
    }
}

impl Accesses {
    pub(super) fn new(messenger: &Arc<Messenger>) -> Self {
        Self {
            messenger: Arc::clone(messenger),
            under_way: Lock::default(),
            count: AtomicUsize::new(0),
        }
    }

    /// Starts to write packed data into regions. `kept` is kept until they are flushed.
    ///
    /// # Errors
    /// When the member is gone.
    pub(super) fn write(
        &self,
        member: usize,
        parts: &Parts,
        (span, offset): (&Span, i64),
        (data, kept): (In, Option<StagingBuffer>),
    ) -> Result<Vec<AccessId>> {
        let (window, mut position) = (self.messenger.window(), 0);
        let mut started = Vec::new();
        for block in span.program.blocks(span.count)? {
            let start = offset + block.offset;
            let range = (start, start + block.length as i64);
            parts.pieces(range, |target, at, bytes| {
                started.push(window.put(data.buffer(position, bytes), target, at)?);
                position += bytes as i64;
                self.progress_with(started.len())
            })?;
        }
        self.note(member, parts, kept)?;
        Ok(started)
    }

    /// Starts to read elements of regions, packed.
    ///
    /// # Errors
    /// When the member is gone.
    pub(super) fn read(
        &self,
        member: usize,
        parts: &Parts,
        (span, offset): (&Span, i64),
        to: Out,
    ) -> Result<Vec<AccessId>> {
        let (window, mut position) = (self.messenger.window(), 0);
        let mut started = Vec::new();
        for block in span.program.blocks(span.count)? {
            let start = offset + block.offset;
            let range = (start, start + block.length as i64);
            parts.pieces(range, |target, at, bytes| {
                let room = to.moved(position).buffer(0, bytes);
                started.push(window.get(room, target, at)?);
                position += bytes as i64;
                self.progress_with(started.len())
            })?;
        }
        self.note(member, parts, None)?;
        Ok(started)
    }

    /// Returns elements of regions, packed.
    ///
    /// # Errors
    /// When the member is gone.
    pub(crate) fn fetch(
        &self,
        member: usize,
        parts: &Parts,
        from: (&Span, i64),
    ) -> Result<StagingBuffer> {
        let packed = StagingBuffer::new(from.0.bytes);
        let started = self.read(member, parts, from, packed.address())?;
        self.finish(&started)?;
        Ok(packed)
    }

    /// Writes packed data into regions, and waits until they are there.
    ///
    /// # Errors
    /// When the member is gone.
    pub(crate) fn store(&self, member: usize, parts: &Parts, to: (&Span, i64), data: In) -> Result {
        self.write(member, parts, to, (data, None))?;
        self.flush(|other| other == member)
    }

    /// Waits for the ends of accesses.
    ///
    /// # Errors
    /// When a member is gone.
    pub(crate) fn finish(&self, started: &[AccessId]) -> Result {
        for access in started {
            match self.messenger.window().wait(*access, None) {
                // A flush of another thread has waited for it, and has its error.
                Err(tagwire_pml::Error::StaleRequest) => {}
                ended => drop(ended?),
            }
        }
        Ok(())
    }

    /// Waits until accesses to the members that are meant have ended, and are to be seen there.
    ///
    /// # Errors
    /// When one is gone.
    pub(super) fn flush(&self, is_meant: impl Fn(usize) -> bool) -> Result {
        let mut under_way = self.under_way.lock();
        let all = std::mem::take(&mut *under_way);
        let (meant, rest): (Vec<_>, Vec<_>) = all
            .into_iter()
            .partition(|started| is_meant(started.member));
        *under_way = rest;
        drop(under_way);
        if meant.is_empty() {
            return Ok(());
        }
        let mut targets: Vec<&Target> = Vec::new();
        for started in &meant {
            if !targets
                .iter()
                .any(|known| known.rank() == started.target.rank())
            {
                targets.push(&started.target);
            }
        }
        Ok(self.messenger.window().flush(&targets, None)?)
    }

    /// Makes progress where so many accesses were started.
    fn progress_with(&self, started: usize) -> Result {
        if started.is_multiple_of(ACCESSES_PER_PROGRESS) {
            self.messenger.progress()?;
        }
        Ok(())
    }

    /// Notes accesses that a flush has to complete.
    fn note(&self, member: usize, parts: &Parts, data: Option<StagingBuffer>) -> Result {
        let mut under_way = self.under_way.lock();
        // One entry is enough for all that have left nothing to be kept.
        let is_known = data.is_none() && under_way.iter().any(|known| known.member == member);
        if let (false, Some(part)) = (is_known, parts.0.first()) {
            let started = Started {
                member,
                target: part.target.clone(),
                _data: data,
            };
            under_way.push(started);
        }
        drop(under_way);
        self.progress_with(self.count.fetch_add(1, Relaxed))
    }
}
