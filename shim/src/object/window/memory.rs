//! The memory of a target: where an access goes, and how bytes get there and back.
//!
//! An access is *here* where the memory has an address in this process: it is over when it returns. Elsewhere it is started, and
//! has ended at the target when the window is flushed; until then what it reads is kept.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::fence;

use tagwire_pml::AccessId;

use crate::error::{Class, Error, Result};
use crate::object::datatype::Span;
use crate::object::window::accesses::{At, Ends};
use crate::object::window::elsewhere::Epoch;
use crate::object::window::{Data, Member, Open, Window};
use crate::raw::{In, Out, StagingBuffer};

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
                let to = (target, &parts, offset);
                self.elsewhere().put((member, ends), (origin, from), to)
            }
        }
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
            At::There(parts, offset) => {
                let from = (target, &parts, offset);
                self.elsewhere().get((member, ends), (origin, to), from)
            }
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
        self.elsewhere().flush(by, |other| other == member)
    }

    /// The same of all members.
    ///
    /// # Errors
    /// When one is gone.
    pub(crate) fn flush_all(&self, by: Epoch) -> Result {
        fence(SeqCst);
        self.elsewhere().flush(by, |_| true)
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
