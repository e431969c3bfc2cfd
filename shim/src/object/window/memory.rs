//! The memory of a target: where an access goes, and how bytes get there and back.
//!
//! An access is *here* where the memory has an address in this process: it is over when it returns. Elsewhere it is started, and
//! has ended at the target when the window is flushed; until then what it reads is kept.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::fence;

use tagwire_pml::AccessId;

use crate::error::{Class, Error, Result};
use crate::object::datatype::Span;
use crate::object::window::accesses::{Ends, Parts};
use crate::object::window::exchange::{self, BYTES, What};
use crate::object::window::run::{Run, SHORT};
use crate::object::window::{Data, Member, Open, Window};
use crate::raw::{In, Out, StagingBuffer};

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

/// The epochs whose accesses a flush completes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Epoch {
    /// The target comes to the same synchronization, and waits there for nothing but it: it is asked for no access meanwhile.
    Active,
    /// The target may wait for anything.
    Passive,
}

impl Window {
    /// Returns where elements are that begin at a displacement of a member.
    ///
    /// # Errors
    /// `MPI_ERR_DISP` where the displacement is none, `MPI_ERR_RMA_RANGE` where not all of them are in the window.
    #[inline]
    pub(crate) fn place(&self, member: usize, displacement: i64, span: &Span) -> Result<At> {
        let range = span.program.span(span.count)?;
        match self.members[member].data {
            Data::Attached => self.find_attached(member, displacement, range, Some(span)),
            _ => self.place_of(member, displacement, (range.start, range.end)),
        }
    }

    /// The same of bytes from the first of a range to its last, counted from the displacement.
    #[inline]
    pub(crate) fn place_of(
        &self,
        member: usize,
        displacement: i64,
        (first, end): (i64, i64),
    ) -> Result<At> {
        let to = &self.members[member];
        if matches!(to.data, Data::Attached) {
            return self.find_attached(member, displacement, first..end, None);
        }
        if displacement < 0 {
            return Err(negative(displacement));
        }
        if first == end {
            return Ok(At::Nowhere);
        }
        let offset = displacement.checked_mul(to.unit);
        let inside = offset.filter(|offset| {
            let start = offset.checked_add(first);
            let end = offset.checked_add(end);
            start.is_some_and(|start| start >= 0)
                && end.is_some_and(|end| end >= 0 && end as u64 <= to.size)
        });
        let offset = inside.ok_or_else(|| self.outside(member, displacement, end - first))?;
        Ok(match &to.data {
            Data::Mapped(start) => At::Here(start.moved(offset)),
            Data::Remote(parts) => At::There(parts.clone(), offset),
            Data::Attached | Data::Empty => At::Nowhere,
        })
    }

    /// Returns a member, and where so many bytes of it are, in mapped memory that the open epoch allows accesses to; notes that
    /// there is an access. `None` where anything is otherwise, or wrong.
    #[inline(always)]
    pub(crate) fn mapped(
        &self,
        rank: i32,
        displacement: i64,
        bytes: usize,
    ) -> Option<(&Member, Out)> {
        let member = self.members.get(rank as u32 as usize)?;
        if member.open.load(Relaxed) == Open::None as u8 {
            return None;
        }
        // Units are positive: that of a negative displacement is a number beyond all sizes, or overflows.
        let offset = displacement.checked_mul(member.unit)?;
        let end = (offset as u64).checked_add(bytes as u64)?;
        if end > member.size {
            return None;
        }
        self.is_accessed.store(true, Relaxed);
        Some((member, member.start.inside(offset)))
    }

    #[cold]
    fn outside(&self, member: usize, displacement: i64, bytes: i64) -> Error {
        let to = &self.members[member];
        let text = format!(
            "{bytes} bytes at the displacement {displacement} are not all in the window of {} bytes of rank {member} (of {} bytes a unit)",
            to.size, to.unit
        );
        Error::new(Class::RmaRange, text)
    }

    /// Writes elements into the memory of a member.
    ///
    /// # Errors
    /// Those of the data; when the member is gone.
    pub(crate) fn put(
        &self,
        (member, ends): (usize, Ends),
        (origin, from): (&Span, In),
        (target, at): (&Span, At),
    ) -> Result<Vec<AccessId>> {
        match at {
            At::Nowhere => Ok(Vec::new()),
            At::Here(to) => {
                copy((origin, from), (target, to))?;
                Ok(Vec::new())
            }
            At::There(parts, offset) => {
                if let Some((data, position)) = self.short(member, ends, (origin, from), target) {
                    let to = (&parts, offset + position);
                    let before = self.gathered.add(member, to, (data, origin.bytes));
                    before.map_or(Ok(()), |run| self.write_run(run, Epoch::Passive))?;
                    return Ok(Vec::new());
                }
                let (data, kept) = match origin.block() {
                    Some(block) => (from.moved(block), None),
                    None => {
                        let kept = StagingBuffer::new(origin.bytes);
                        origin.pack(from, kept.address())?;
                        (kept.address().read(), Some(kept))
                    }
                };
                self.accesses
                    .write((member, ends), &parts, (target, offset), (data, kept))
            }
        }
    }

    /// Asks a member for an access at an offset of its memory. Returns what was there, or `None` where the access is still to be
    /// done.
    ///
    /// # Errors
    /// When the member fails while it does the access.
    pub(crate) fn ask(
        &self,
        member: usize,
        offset: i64,
        what: What,
        data: &exchange::Data,
    ) -> Result<Option<exchange::Data>> {
        let to = &self.members[member];
        let (Data::Remote(_), Some(lines)) = (&to.data, to.block.lines(self.me())) else {
            return Ok(None);
        };
        let serve = || self.serve();
        let wait = |is_over: &dyn Fn() -> bool| {
            self.wait(member, "an access that its target does", || Ok(is_over()))
        };
        let (clock, waker) = (self.messenger.clock(), to.waker.as_deref());
        let mut asker = to.asker.lock();
        asker.ask(lines, (what, offset, data), (clock, waker), serve, wait)
    }

    /// Writes what was gathered: its target does, where the epoch is passive, or this process starts it.
    fn write_run(&self, run: Run, by: Epoch) -> Result {
        let (start, data) = run.data();
        let mut line = [0; BYTES];
        if let (Epoch::Passive, Some(room)) = (by, line.get_mut(..data.len())) {
            room.copy_from_slice(data);
            let what = What::Put(data.len());
            if self.ask(run.member(), start, what, &line)?.is_some() {
                return Ok(());
            }
        }
        let (member, parts, range, data) = run.into_parts();
        self.accesses.write_range(member, (&parts, range), data)
    }

    /// Writes what was gathered for members that are meant, and waits until all accesses to these have ended.
    fn flush_where(&self, by: Epoch, is_meant: impl Fn(usize) -> bool) -> Result {
        let run = self.gathered.take(&is_meant);
        let written = run.map_or(Ok(()), |run| self.write_run(run, by));
        let flushed = self.accesses.flush(is_meant);
        written.and(flushed)
    }

    /// Returns where short data is, and where it goes: of a put that is a call of the system, and that no request waits for. What goes
    /// through a network is under way the sooner the better.
    fn short(
        &self,
        member: usize,
        ends: Ends,
        (origin, from): (&Span, In),
        target: &Span,
    ) -> Option<(In, i64)> {
        let is_short = (1..=SHORT).contains(&origin.bytes);
        if !is_short || ends != Ends::Flushed || !self.members[member].block.is_mapped() {
            return None;
        }
        Some((from.moved(origin.block()?), target.block()?))
    }

    /// Reads elements out of the memory of a member. Those that are elsewhere, and are no block here, are waited for.
    ///
    /// # Errors
    /// Those of the data; when the member is gone.
    pub(crate) fn get(
        &self,
        (member, ends): (usize, Ends),
        (origin, to): (&Span, Out),
        (target, at): (&Span, At),
    ) -> Result<Vec<AccessId>> {
        match at {
            At::Nowhere => Ok(Vec::new()),
            At::Here(from) => {
                copy((target, from.read()), (origin, to))?;
                Ok(Vec::new())
            }
            At::There(parts, offset) => match origin.block() {
                Some(block) => {
                    let to = to.moved(block);
                    if let (1..=BYTES, Some(position)) = (origin.bytes, target.block()) {
                        let what = What::Get(origin.bytes);
                        let got = self.ask(member, offset + position, what, &[0; BYTES])?;
                        if let Some(got) = got {
                            to.copy(In::over(&got), origin.bytes);
                            return Ok(Vec::new());
                        }
                    }
                    let from = (target, offset);
                    self.accesses.read((member, ends), &parts, from, to)
                }
                None => {
                    let packed = self.accesses.fetch(member, &parts, (target, offset))?;
                    origin.unpack(packed.address().read(), to)?;
                    Ok(Vec::new())
                }
            },
        }
    }

    /// Waits until the accesses to a member have ended, and are to be seen there.
    ///
    /// # Errors
    /// When the member is gone.
    #[inline]
    pub(crate) fn flush(&self, member: usize) -> Result {
        // Orders what was written here before what others are told of it.
        fence(SeqCst);
        self.flush_started(member, Epoch::Passive)
    }

    /// The same of accesses to memory that is not mapped.
    ///
    /// # Errors
    /// When the member is gone.
    #[inline]
    pub(crate) fn flush_started(&self, member: usize, by: Epoch) -> Result {
        if matches!(self.members[member].data, Data::Mapped(_) | Data::Empty) {
            return Ok(());
        }
        self.flush_where(by, |other| other == member)
    }

    /// The same of all members.
    ///
    /// # Errors
    /// When one is gone.
    pub(crate) fn flush_all(&self, by: Epoch) -> Result {
        fence(SeqCst);
        self.flush_where(by, |_| true)
    }
}

/// Copies elements from an address of this process to another.
///
/// # Errors
/// Those of the datatypes.
pub(crate) fn copy((from, data): (&Span, In), (to, room): (&Span, Out)) -> Result {
    match (from.block(), to.block()) {
        (Some(start), Some(place)) => {
            room.moved(place).copy(data.moved(start), from.bytes);
            Ok(())
        }
        (Some(start), None) => to.unpack(data.moved(start), room),
        (None, Some(place)) => from.pack(data, room.moved(place)),
        (None, None) => {
            let packed = StagingBuffer::new(from.bytes);
            from.pack(data, packed.address())?;
            to.unpack(packed.address().read(), room)
        }
    }
}

#[cold]
fn negative(displacement: i64) -> Error {
    Error::new(
        Class::Disp,
        format!("the displacement {displacement} is negative"),
    )
}
