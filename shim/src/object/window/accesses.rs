//! Accesses to memory that has no address in this process: by the rank's remote memory access.
//!
//! They are started, and have ended at the target when the window is flushed. What they read is kept until then. A call that starts
//! several and cannot start all waits for the others: no access outlives its buffers.

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
    /// Returns whether one region has all of a range of positions.
    pub(super) fn have(&self, (start, end): (i64, i64)) -> bool {
        let mut parts = self.0.iter();
        parts.any(|part| part.start <= start && end <= part.end)
    }

    /// Calls `each` with the parts of all blocks of elements that begin at an offset, in their order.
    ///
    /// # Errors
    /// Those of [`pieces`](Self::pieces).
    fn each_of(
        &self,
        (span, offset): (&Span, i64),
        each: &mut dyn FnMut(&Target, u64, usize) -> Result,
    ) -> Result {
        for block in span.program.blocks(span.count)? {
            let start = offset + block.offset;
            let range = (start, start + block.length as i64);
            self.pieces(range, each)?;
        }
        Ok(())
    }

    /// Calls `each` with the region, the offset there, and the length, of all parts of a range of positions, in their order.
    ///
    /// # Errors
    /// Those of `each`; `MPI_ERR_RMA_RANGE` where there is no region.
    fn pieces(
        &self,
        (mut start, end): (i64, i64),
        each: &mut dyn FnMut(&Target, u64, usize) -> Result,
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

/// Where elements of a target are.
#[derive(Debug, Clone)]
pub(crate) enum At {
    /// From an address of this process on.
    Here(Out),
    /// In regions, from a position on; what is accessed was checked to be inside.
    There(Parts, i64),
    /// Nowhere: there are no bytes.
    Nowhere,
}

/// Who takes the ends of accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    /// The next flush.
    Flushed,
    /// Who [finishes](Accesses::finish) them, and no flush.
    Taken,
}

/// What a flush needs of accesses to a member.
#[derive(Debug)]
struct Started {
    member: usize,
    target: Target,
    /// When the last of them was noted.
    number: usize,
    /// What they read, and they.
    kept: Option<(StagingBuffer, Vec<AccessId>)>,
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

    /// Starts to write packed data into regions. `kept` is kept until they have ended.
    ///
    /// # Errors
    /// When the member is gone; then none is under way.
    pub(super) fn write(
        &self,
        (member, ends): (usize, Ends),
        parts: &Parts,
        (span, offset): (&Span, i64),
        (data, kept): (In, Option<StagingBuffer>),
    ) -> Result<Vec<AccessId>> {
        let each = |start: &mut dyn FnMut(&Target, u64, usize) -> Result| {
            parts.each_of((span, offset), start)
        };
        self.write_each((member, ends), parts, each, (data, kept))
    }

    /// The same of the parts for which `each` calls what it is given.
    fn write_each(
        &self,
        (member, ends): (usize, Ends),
        parts: &Parts,
        each: impl FnOnce(&mut dyn FnMut(&Target, u64, usize) -> Result) -> Result,
        (data, kept): (In, Option<StagingBuffer>),
    ) -> Result<Vec<AccessId>> {
        let window = self.door(ends);
        let (mut position, mut started) = (0, Vec::new());
        let all = each(&mut |target, at, bytes| {
            started.push(window.put(data.buffer(position, bytes), target, at)?);
            position += bytes as i64;
            self.progress_with(started.len())
        });
        // Those that were started before an error too.
        let kept = kept.map(|data| (data, started.clone()));
        let noted = self.note(member, parts, kept);
        self.end_unless(all.and(noted), started)
    }

    /// Writes data into a range of positions, and keeps them until they are there.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub(super) fn write_range(
        &self,
        member: usize,
        (parts, range): (&Parts, (i64, i64)),
        data: StagingBuffer,
    ) -> Result {
        let each =
            |start: &mut dyn FnMut(&Target, u64, usize) -> Result| parts.pieces(range, start);
        let data = (data.address().read(), Some(data));
        let written = self.write_each((member, Ends::Flushed), parts, each, data);
        written.map(drop)
    }

    /// Starts to read elements of regions, packed.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub(super) fn read(
        &self,
        (member, ends): (usize, Ends),
        parts: &Parts,
        (span, offset): (&Span, i64),
        to: Out,
    ) -> Result<Vec<AccessId>> {
        let window = self.door(ends);
        let (mut position, mut started) = (0, Vec::new());
        let all = parts.each_of((span, offset), &mut |target, at, bytes| {
            let room = to.moved(position).buffer(0, bytes);
            started.push(window.get(room, target, at)?);
            position += bytes as i64;
            self.progress_with(started.len())
        });
        let noted = self.note(member, parts, None);
        self.end_unless(all.and(noted), started)
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
        let started = self.read((member, Ends::Taken), parts, from, packed.address())?;
        self.finish(&started)?;
        Ok(packed)
    }

    /// Writes packed data into regions, and waits until they are there.
    ///
    /// # Errors
    /// When the member is gone.
    pub(crate) fn store(&self, member: usize, parts: &Parts, to: (&Span, i64), data: In) -> Result {
        let written = self.write((member, Ends::Flushed), parts, to, (data, None));
        // What was started before an error too.
        let flushed = self.flush(|other| other == member);
        written.and(flushed)
    }

    /// Waits for the ends of all of some accesses, and takes them.
    ///
    /// # Errors
    /// Of the first that did not work: when a member is gone.
    pub(crate) fn finish(&self, started: &[AccessId]) -> Result {
        let window = self.messenger.window();
        let mut first = Ok(());
        for access in started {
            let ended = window.wait(*access, None).map(drop);
            first = first.and(ended);
        }
        Ok(first?)
    }

    /// Returns accesses that were started, or, where not all could be, waits for them: their buffers may be gone then.
    fn end_unless(&self, all: Result, started: Vec<AccessId>) -> Result<Vec<AccessId>> {
        if all.is_err() {
            // What is wrong is known; a flush of another thread may have taken their ends.
            let _ = self.finish(&started);
        }
        all.map(|()| started)
    }

    fn door(&self, ends: Ends) -> tagwire_pml::Window<'_> {
        let window = self.messenger.window();
        match ends {
            Ends::Flushed => window,
            Ends::Taken => window.keeping(),
        }
    }

    /// Waits until accesses to the members that are meant have ended, and are to be seen there.
    ///
    /// # Errors
    /// When one is gone.
    pub(super) fn flush(&self, is_meant: impl Fn(usize) -> bool) -> Result {
        if self.count.load(Relaxed) == 0 {
            return Ok(());
        }
        let mut targets: Vec<Target> = Vec::new();
        let under_way = self.under_way.lock();
        let noted = self.count.load(Relaxed);
        for started in under_way.iter().filter(|one| is_meant(one.member)) {
            let mut known = targets.iter();
            if !known.any(|known| known.rank() == started.target.rank()) {
                targets.push(started.target.clone());
            }
        }
        drop(under_way);
        if targets.is_empty() {
            return Ok(());
        }
        let targets: Vec<&Target> = targets.iter().collect();
        let window = self.messenger.window();
        let flushed = window.flush(&targets, None);
        // Others may have noted more meanwhile; and after an error of progress some may be under way.
        let have_ended = |accesses: &[AccessId]| {
            let mut accesses = accesses.iter();
            accesses.all(|access| window.has_ended(*access).unwrap_or(false))
        };
        self.under_way.lock().retain(|one| {
            let is_flushed = is_meant(one.member) && one.number <= noted;
            let kept = one.kept.as_ref();
            !is_flushed || !kept.is_none_or(|(_, accesses)| have_ended(accesses))
        });
        Ok(flushed?)
    }

    /// Makes progress where so many accesses were started.
    fn progress_with(&self, started: usize) -> Result {
        if started.is_multiple_of(ACCESSES_PER_PROGRESS) {
            self.messenger.progress()?;
        }
        Ok(())
    }

    /// Notes accesses that a flush has to complete, with what is kept until they have ended.
    fn note(
        &self,
        member: usize,
        parts: &Parts,
        kept: Option<(StagingBuffer, Vec<AccessId>)>,
    ) -> Result {
        let mut under_way = self.under_way.lock();
        let number = self.count.fetch_add(1, Relaxed) + 1;
        // One entry is enough for all that have left nothing to be kept.
        let mut entries = under_way.iter_mut();
        let known = entries.find(|known| known.member == member && known.kept.is_none());
        match (known, parts.0.first()) {
            (Some(known), _) if kept.is_none() => known.number = number,
            (_, Some(part)) => under_way.push(Started {
                member,
                target: part.target.clone(),
                number,
                kept,
            }),
            (_, None) => {}
        }
        drop(under_way);
        self.progress_with(number)
    }
}
