//! Accesses to memory that has no address in this process: short ones are gathered, or done by their target; all others are those of
//! the rank's remote memory access.

use std::sync::atomic::Ordering::Relaxed;

use tagwire_pml::AccessId;

use crate::error::Result;
use crate::object::datatype::Span;
use crate::object::window::accesses::{Ends, Parts};
use crate::object::window::delegated;
use crate::object::window::exchange::{self, BYTES, What};
use crate::object::window::run::{Run, SHORT};
use crate::object::window::served::serve;
use crate::object::window::{Data, Window};
use crate::raw::{In, Out, StagingBuffer};

/// The epochs whose accesses a flush completes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Epoch {
    /// The target comes to the same synchronization, and is asked for accesses where it waits there already.
    Active,
    /// The target may wait for anything.
    Passive,
}

/// A window's memory at members where it is not mapped.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Elsewhere<'w> {
    window: &'w Window,
}

impl Window {
    pub(crate) const fn elsewhere(&self) -> Elsewhere<'_> {
        Elsewhere { window: self }
    }
}

impl Elsewhere<'_> {
    /// Writes elements into regions of a member, from an offset on.
    ///
    /// # Errors
    /// Those of the data; when the member is gone.
    pub(super) fn put(
        self,
        (member, ends): (usize, Ends),
        (origin, from): (&Span, In),
        (target, parts, offset): (&Span, &Parts, i64),
    ) -> Result<Vec<AccessId>> {
        if let Some((data, position)) = self.short(member, ends, (origin, from), target) {
            let to = (parts, offset + position);
            let write = |run| self.write_run(run, Epoch::Passive);
            let data = (data, origin.bytes);
            self.window.gathered.add(member, to, data, write)?;
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
        let accesses = &self.window.accesses;
        accesses.write((member, ends), parts, (target, offset), (data, kept))
    }

    /// Reads elements out of regions of a member, from an offset on. Those that are no block here are waited for.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub(super) fn get(
        self,
        (member, ends): (usize, Ends),
        (origin, to): (&Span, Out),
        (target, parts, offset): (&Span, &Parts, i64),
    ) -> Result<Vec<AccessId>> {
        let accesses = &self.window.accesses;
        let Some(block) = origin.block() else {
            let packed = accesses.fetch(member, parts, (target, offset))?;
            origin.unpack(packed.address().read(), to)?;
            return Ok(Vec::new());
        };
        let to = to.moved(block);
        if let (1..=BYTES, Some(position)) = (origin.bytes, target.block()) {
            let what = What::Get(origin.bytes);
            let got = self.ask(member, offset + position, what, &[0; BYTES], Epoch::Passive)?;
            if let Some(got) = got {
                to.copy(In::over(&got), origin.bytes);
                return Ok(Vec::new());
            }
        }
        accesses.read((member, ends), parts, (target, offset), to)
    }

    /// Asks a member for an access at an offset of its memory. Returns what was there, or `None` where the access is still to be
    /// done.
    ///
    /// # Errors
    /// When the member fails while it does the access.
    pub(crate) fn ask(
        self,
        member: usize,
        offset: i64,
        what: What,
        data: &exchange::Data,
        epoch: Epoch,
    ) -> Result<Option<exchange::Data>> {
        let to = &self.window.members[member];
        let (Data::Remote(_), Some(lines)) = (&to.data, to.block.lines(self.window.me())) else {
            return Ok(None);
        };
        if epoch == Epoch::Active && lines.attends.load(Relaxed) == 0 {
            return Ok(None);
        }
        let serve = || serve(self.window);
        let wait = |is_over: &dyn Fn() -> bool| {
            self.window
                .wait(member, "an access that its target does", || Ok(is_over()))
        };
        let (clock, waker) = (self.window.messenger.clock(), to.waker.as_deref());
        let mut asker = to.asker.lock();
        asker.ask(lines, (what, offset, data), (clock, waker), serve, wait)
    }

    /// Writes what was gathered for members that are meant, and waits until all accesses to these have ended.
    ///
    /// # Errors
    /// When one is gone.
    pub(super) fn flush(self, by: Epoch, is_meant: impl Fn(usize) -> bool) -> Result {
        let write = |run| self.write_run(run, by);
        let written = self.window.gathered.spill(&is_meant, write);
        let flushed = self.window.accesses.flush(&is_meant);
        let delegated = delegated::flush(self.window, is_meant);
        written.and(flushed).and(delegated)
    }

    /// Writes what was gathered: its target does, where the epoch is passive, or this process starts it.
    fn write_run(self, run: Run, by: Epoch) -> Result {
        let (start, data) = run.data();
        let mut line = [0; BYTES];
        if let Some(room) = line.get_mut(..data.len()) {
            room.copy_from_slice(data);
            let what = What::Put(data.len());
            if self.ask(run.member(), start, what, &line, by)?.is_some() {
                return Ok(());
            }
        }
        let (member, parts, range, data) = run.into_parts();
        self.window
            .accesses
            .write_range(member, (&parts, range), data)
    }

    /// Returns where short data is, and where it goes: of a put that is a call of the system, and that no request waits for. What goes
    /// through a network is under way the sooner the better.
    fn short(
        self,
        member: usize,
        ends: Ends,
        (origin, from): (&Span, In),
        target: &Span,
    ) -> Option<(In, i64)> {
        let is_short = (1..=SHORT).contains(&origin.bytes);
        if !is_short || ends != Ends::Flushed || !self.window.members[member].block.is_mapped() {
            return None;
        }
        Some((from.moved(origin.block()?), target.block()?))
    }
}
