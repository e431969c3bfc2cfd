//! What members read where it lies, in each other's memory: each byte is copied once.
//!
//! ```text
//!     round 1        each shows where its data lies, and reads that of others
//!     last round     each shows whether it could read all, and waits for all others: then its data may change again
//! ```
//!
//! Whether all could read is known to all, so that all do the operation another way where one could not: a program may give memory
//! that the system lets no other process read, such as that of a device.
//!
//! A member that fails returns to its program, which may change the data, while others still read it. So who has read looks whether
//! all still take part, before it shows that it has: no member ends an operation well without that word of each.

use std::ops::Range;
use std::sync::atomic::{Ordering::Acquire, fence};

use super::call::{BoardCall, MOST};
use super::memories::Memories;
use crate::error::{Error, Result};

/// Most bytes that are read at once of what is combined: they stay in the nearest caches.
const READ_AT_ONCE: usize = 64 << 10;

/// Where a member says that its data lies.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    member: usize,
    address: u64,
}

impl Place {
    /// Returns the place so many bytes further on.
    pub(super) const fn after(self, bytes: usize) -> Self {
        let address = self.address.wrapping_add(bytes as u64);
        Self { address, ..self }
    }
}

impl BoardCall<'_> {
    /// Whether members read each other's memory. It is the same on all.
    pub(super) fn reads_memory(&self) -> bool {
        (self.team.board.memories()).is_some_and(Memories::are_read)
    }

    /// Shows in `round` where `data` lies, if there is any: it is to stay until [all have read](Self::have_all_read) it.
    pub(super) fn show_place(&mut self, round: u64, data: Option<&[u8]>) -> Result<()> {
        self.head = self.head.of_single_copy();
        // Exposed: others read it from now on.
        let address = data.map_or(0, |data| data.as_ptr().expose_provenance() as u64);
        self.show(round, &[&address.to_le_bytes()])
    }

    /// Waits until a member has shown its place in `round`. Returns it, where that member has data.
    pub(super) fn place_of(&mut self, member: usize, round: u64) -> Result<Option<Place>> {
        self.wait_for(member, round)?;
        let mut bytes = [0; size_of::<u64>()];
        self.copy(member, round, &mut bytes)?;
        let address = u64::from_le_bytes(bytes);
        Ok((address != 0).then_some(Place { member, address }))
    }

    /// Waits for all others. Returns their places, by member.
    pub(super) fn places(&mut self, round: u64) -> Result<[Option<Place>; MOST]> {
        let mut places = [None; MOST];
        for member in self.others() {
            places[member] = self.place_of(member, round)?;
        }
        Ok(places)
    }

    /// Copies what lies at `place`. Returns whether it could be read.
    pub(super) fn read_memory(&self, place: Option<Place>, into: &mut [u8]) -> bool {
        let both = self.team.board.memories().zip(place);
        both.is_some_and(|(memories, place)| memories.read(place.member, place.address, into))
    }

    /// Shows in `round`, the last one, whether this member could read all. What it does before it [waits](Self::have_all_read) for others
    /// it does while they still read.
    pub(super) fn show_whether_read(&mut self, round: u64, could_read: bool) -> Result<()> {
        // What was read was read before this look.
        fence(Acquire);
        let mut others = self.others();
        if let Some(left) = others.find(|member| self.board.has_left(*member)) {
            let member = self.board.broken().unwrap_or(left);
            return Err(Error::Gone { member });
        }
        self.show(round, &[&[u8::from(could_read)]])
    }

    /// Waits until all others have shown that in `round`. Returns whether all could: if not, members read no memory of each other any more.
    pub(super) fn have_all_read(&mut self, round: u64, could_read: bool) -> Result<bool> {
        self.wait_for_all(round)?;
        let mut have_all = could_read;
        for member in self.others() {
            let mut has_read = [0];
            self.copy(member, round, &mut has_read)?;
            have_all &= has_read == [1];
        }
        self.finish(round);
        self.head = self.head.of_slots();
        if !have_all && let Some(memories) = self.team.board.memories() {
            memories.refuse();
            self.team.board.found.forget_reads(self.size());
        }
        Ok(have_all)
    }

    /// Copies a block of each member to its place in `out`: it lies so many bytes behind where the data of that member begins. What this
    /// member gives is `given`, or its block of `out`. Returns whether all members could read all.
    pub(super) fn read_blocks(
        &mut self,
        given: Option<&[u8]>,
        at: usize,
        out: &mut [u8],
    ) -> Result<bool> {
        let block = out.len() / self.size();
        let place = |member: usize| member * block..(member + 1) * block;
        let (first, mine) = (self.begin(2), place(self.me()));
        let own = match given {
            Some(given) => given,
            None => &out[mine.clone()],
        };
        self.show_place(first, Some(own))?;
        let mut could_read = true;
        for member in self.others_from_next() {
            let from = self.place_of(member, first)?.map(|from| from.after(at));
            could_read &= self.read_memory(from, &mut out[place(member)]);
        }
        self.show_whether_read(first + 1, could_read)?;
        if let Some(given) = given {
            out[mine].copy_from_slice(&given[at..][..block]);
        }
        self.have_all_read(first + 1, could_read)
    }

    /// Returns the other members, from the one after this on: so not all read the same one at once.
    pub(super) fn others_from_next(&self) -> impl Iterator<Item = usize> + use<> {
        let (me, size) = (self.me(), self.size());
        (1..size).map(move |step| (me + step) % size)
    }
}

/// Returns `total` bytes in pieces of whole `unit`s that are read at once.
pub(super) fn pieces_of(total: usize, unit: usize) -> impl Iterator<Item = Range<usize>> {
    let piece = (READ_AT_ONCE / unit * unit).max(unit);
    (0..total)
        .step_by(piece)
        .map(move |start| start..total.min(start + piece))
}

#[cfg(test)]
mod tests;
