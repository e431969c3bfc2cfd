//! One collective operation of a team.

use std::ops::Range;

use tagwire_base::Tag;

use crate::algorithms::{Algorithm, Collective, Group};
use crate::error::{Error, Result};
use crate::levels::{Among, Levels};
use crate::reduction::Reduction;
use crate::scratch::Scratch;
use crate::selection::SEGMENT;
use crate::sides::Sides;
use crate::team::Team;
use crate::transfer::{Part, Transfer};

/// One operation under way: what its algorithm sends and receives is apart from everything else.
#[derive(Debug, Clone, Copy)]
pub struct Call<'t> {
    team: &'t Team,
    tag: Tag,
    /// It is on one of the group's levels.
    among: Option<Among<'t>>,
}

impl<'t> Call<'t> {
    pub(crate) const fn new(team: &'t Team, tag: Tag) -> Self {
        Self {
            team,
            tag,
            among: None,
        }
    }

    /// Returns the part of the operation that is among some of the members, whose numbers are their places there.
    pub(crate) const fn among(self, among: Among<'t>) -> Self {
        Self {
            among: Some(among),
            ..self
        }
    }

    /// Returns the levels of its group, where it is on none of them.
    pub(crate) fn levels(&self) -> Option<&'t Levels> {
        match self.among {
            Some(_) => None,
            None => self.team.levels(),
        }
    }

    /// Returns the same, for an algorithm that needs them.
    ///
    /// # Errors
    /// Where there are none.
    pub(crate) fn all_levels(&self) -> Result<&'t Levels> {
        let none = || Error::Argument("the group has no levels".to_owned());
        self.levels().ok_or_else(none)
    }

    /// Returns its group.
    pub(crate) const fn team(&self) -> &'t Team {
        self.team
    }

    /// Returns the sides of its group, where it has two.
    pub(crate) const fn sides(&self) -> Option<&'t Sides> {
        self.team.sides()
    }

    /// Begins the next operation of a group.
    ///
    /// # Errors
    /// When the group is broken, or this thread may not call: then no operation is counted.
    pub(crate) fn begin(team: &'t Team) -> Result<Self> {
        team.check()?;
        team.messenger().check_thread()?;
        Ok(Self::new(team, team.tags.next()))
    }

    /// Returns the tag of its messages.
    pub(crate) const fn tag(&self) -> Tag {
        self.tag
    }

    /// Returns the algorithm for so many bytes.
    pub(crate) fn choose(
        &self,
        what: Collective,
        bytes: usize,
        may_reorder: bool,
    ) -> &'static Algorithm {
        let group = Group {
            size: self.size(),
            has_levels: self.levels().is_some(),
        };
        let selection = self.team.selection();
        selection.choose(what, group, bytes, may_reorder)
    }

    /// Whether any algorithm gives the result that is asked for.
    pub(crate) fn may_reorder(&self, reduction: &Reduction<'_>) -> bool {
        self.team.may_reorder(reduction)
    }

    /// Returns this rank's number among the members.
    pub(crate) const fn me(&self) -> usize {
        match self.among {
            Some(among) => among.me,
            None => self.team.me(),
        }
    }

    /// Returns how many members there are.
    pub(crate) const fn size(&self) -> usize {
        match self.among {
            Some(among) => among.members.len(),
            None => self.team.size(),
        }
    }

    /// Returns the number in the whole group.
    fn member(&self, number: usize) -> usize {
        match self.among {
            Some(among) => among.members.get(number).copied().unwrap_or(usize::MAX),
            None => number,
        }
    }

    /// Returns the member `distance` after this one, around the end.
    pub(crate) const fn after(&self, distance: usize) -> usize {
        (self.me() + distance) % self.size()
    }

    /// Returns the member `distance` before this one, around the start.
    pub(crate) const fn before(&self, distance: usize) -> usize {
        (self.me() + self.size() - distance % self.size()) % self.size()
    }

    /// Lends `len` bytes of memory for this operation; what is in them is left from before.
    pub(crate) fn scratch(&self, len: usize) -> Scratch<'t> {
        self.team.scratch(len)
    }

    /// Lends a copy of `data`.
    pub(crate) fn copy(&self, data: &[u8]) -> Scratch<'t> {
        self.team.copy(data)
    }

    /// Returns a list of messages, with room for `most`.
    pub(crate) fn list(&self, most: usize) -> Transfer<'t, Vec<Part>> {
        Transfer::list(self.team, most)
    }

    /// Sends `data` to a member, in one message: a long one waits for its receiver, which a sender that runs ahead
    /// would flood with pieces.
    pub(crate) async fn send(&self, data: &[u8], to: usize) -> Result<()> {
        let to = self.member(to);
        let transfer = Transfer::<[_; 1]>::new(self.team);
        transfer.send(data, to, self.tag).await
    }

    /// Receives `data.len()` bytes from a member, in one message.
    pub(crate) async fn recv(&self, data: &mut [u8], from: usize) -> Result<()> {
        let from = self.member(from);
        let transfer = Transfer::<[_; 1]>::new(self.team);
        transfer.recv(data, from, self.tag).await
    }

    /// As [`send`](Self::send), in pieces where messages are short: for a receiver that works on each.
    pub(crate) async fn send_pieces(&self, data: &[u8], to: usize) -> Result<()> {
        let to = self.member(to);
        if data.len() < self.segment() {
            let transfer = Transfer::<[_; 1]>::new(self.team);
            return transfer.send(data, to, self.tag).await;
        }
        let (segment, messages) = (self.segment(), self.messages(data.len()));
        for group in 0..messages.div_ceil(WINDOW) {
            let mut transfer = Transfer::<[_; WINDOW]>::new(self.team);
            for index in 0..WINDOW.min(messages - group * WINDOW) {
                let start = (group * WINDOW + index) * segment;
                let piece = &data[start..data.len().min(start + segment)];
                transfer = transfer.send(piece, to, self.tag);
            }
            transfer.await?;
        }
        Ok(())
    }

    /// Receives what [`send_pieces`](Self::send_pieces) has sent.
    pub(crate) async fn recv_pieces(&self, data: &mut [u8], from: usize) -> Result<()> {
        let from = self.member(from);
        if data.len() < self.segment() {
            let transfer = Transfer::<[_; 1]>::new(self.team);
            return transfer.recv(data, from, self.tag).await;
        }
        let (segment, messages) = (self.segment(), self.messages(data.len()));
        let mut rest = data;
        for group in 0..messages.div_ceil(WINDOW) {
            let mut transfer = Transfer::<[_; WINDOW]>::new(self.team);
            for _ in 0..WINDOW.min(messages - group * WINDOW) {
                let (piece, after) = rest.split_at_mut(segment.min(rest.len()));
                rest = after;
                transfer = transfer.recv(piece, from, self.tag);
            }
            transfer.await?;
        }
        Ok(())
    }

    /// Sends to one member while it receives from another, or from the same.
    pub(crate) async fn exchange(
        &self,
        out: &[u8],
        to: usize,
        into: &mut [u8],
        from: usize,
    ) -> Result<()> {
        let (to, from) = (self.member(to), self.member(from));
        let segment = self.segment();
        if out.len() < segment && into.len() < segment {
            let transfer = Transfer::<[_; 2]>::new(self.team).recv(into, from, self.tag);
            return transfer.send(out, to, self.tag).await;
        }
        // Each direction by its own length: that of the other says nothing to the peer.
        let (leaving, coming) = (self.messages(out.len()), self.messages(into.len()));
        let groups = leaving.max(coming).div_ceil(WINDOW);
        let mut rest = into;
        for group in 0..groups {
            let mut transfer = Transfer::<[_; 2 * WINDOW]>::new(self.team);
            for index in 0..WINDOW {
                if group * WINDOW + index < coming {
                    let (piece, after) = rest.split_at_mut(segment.min(rest.len()));
                    rest = after;
                    transfer = transfer.recv(piece, from, self.tag);
                }
            }
            for index in 0..WINDOW {
                let number = group * WINDOW + index;
                if number < leaving {
                    let start = number * segment;
                    let piece = &out[start..out.len().min(start + segment)];
                    transfer = transfer.send(piece, to, self.tag);
                }
            }
            transfer.await?;
        }
        Ok(())
    }

    /// Returns how many messages carry `len` bytes. The last one is shorter than the others, and empty if need be: a
    /// receiver that expects another length finds out.
    const fn messages(&self, len: usize) -> usize {
        match len < self.segment() {
            true => 1,
            false => len / self.segment() + 1,
        }
    }

    /// Returns the length of a message at most.
    const fn segment(&self) -> usize {
        match self.among {
            Some(among) if among.is_host => SEGMENT,
            _ => self.team.segment(),
        }
    }

    /// Returns the range of `block` among blocks of `lengths`.
    pub(crate) fn range(lengths: &[usize], block: usize) -> Range<usize> {
        Self::range_of(lengths, block..block + 1)
    }

    /// Returns the range of several that are side by side.
    pub(crate) fn range_of(lengths: &[usize], blocks: Range<usize>) -> Range<usize> {
        let start: usize = lengths[..blocks.start].iter().sum();
        start..start + lengths[blocks].iter().sum::<usize>()
    }
}

/// So many messages of one transfer are under way at once: the receives are posted before what comes for them.
const WINDOW: usize = 4;

/// Returns the sides of a group.
pub(crate) fn sides_of(team: &Team) -> Result<&Sides> {
    let sides = team.sides();
    sides.ok_or_else(|| Error::Argument("the group is not one of two sides".to_owned()))
}

/// Checks that `root` is a member.
pub(crate) fn check_root(team: &Team, root: usize) -> Result<()> {
    match root < team.size() {
        true => Ok(()),
        false => Err(Error::Argument(format!(
            "there is no rank {root} in a group of {}",
            team.size()
        ))),
    }
}

/// Checks the length of a buffer.
pub(crate) fn check_length(what: &str, given: usize, expected: usize) -> Result<()> {
    match given == expected {
        true => Ok(()),
        false => Err(Error::Argument(format!(
            "{what} has {given} bytes where {expected} are needed"
        ))),
    }
}

/// Cuts `total` bytes into `parts` of whole elements of `unit` bytes, as equal as they can be.
pub(crate) fn cut(total: usize, parts: usize, unit: usize) -> Vec<usize> {
    let unit = unit.max(1);
    let (elements, rest) = (total / unit, total % unit);
    debug_assert_eq!(rest, 0, "whole elements");
    (0..parts)
        .map(|part| (elements * (part + 1) / parts - elements * part / parts) * unit)
        .collect()
}

/// Lends two parts of one buffer: `read` and `write` do not overlap.
pub(crate) fn two_parts(
    buffer: &mut [u8],
    read: Range<usize>,
    write: Range<usize>,
) -> (&[u8], &mut [u8]) {
    if read.end <= write.start {
        let (low, high) = buffer.split_at_mut(write.start);
        (&low[read], &mut high[..write.end - write.start])
    } else {
        debug_assert!(write.end <= read.start, "parts overlap");
        let (low, high) = buffer.split_at_mut(read.start);
        (&high[..read.end - read.start], &mut low[write])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_whole_elements_and_all_of_them() {
        for (total, parts, unit) in [(0, 3, 8), (8, 3, 8), (800, 7, 8), (10, 4, 1), (24, 5, 12)] {
            let lengths = cut(total, parts, unit);
            assert_eq!(lengths.len(), parts);
            assert_eq!(lengths.iter().sum::<usize>(), total);
            assert!(lengths.iter().all(|length| length.is_multiple_of(unit)));
            let (least, most) = (lengths.iter().min(), lengths.iter().max());
            assert!(most.unwrap() - least.unwrap() <= unit);
        }
    }

    #[test]
    fn two_parts_are_lent_in_either_order() {
        let mut bytes = [0, 1, 2, 3, 4, 5];
        let (read, write) = two_parts(&mut bytes, 0..2, 3..5);
        write.copy_from_slice(read);
        let (read, write) = two_parts(&mut bytes, 5..6, 2..3);
        write.copy_from_slice(read);
        assert_eq!(bytes, [0, 1, 5, 0, 1, 5]);
    }
}
