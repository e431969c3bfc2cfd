//! One collective operation of a team.

use tagwire_base::Tag;

use crate::error::{Error, Result};
use crate::team::Team;
use crate::transfer::Transfer;

/// One operation under way: what its algorithm sends and receives is apart from everything else.
#[derive(Debug, Clone, Copy)]
pub struct Call<'t> {
    team: &'t Team,
    tag: Tag,
}

impl<'t> Call<'t> {
    pub(crate) const fn new(team: &'t Team, tag: Tag) -> Self {
        Self { team, tag }
    }

    /// Begins the next operation of a group.
    pub(crate) fn begin(team: &'t Team) -> Self {
        Self::new(team, team.next_tag())
    }

    /// Returns this rank's number among the members.
    pub(crate) const fn me(&self) -> usize {
        self.team.me()
    }

    /// Returns how many members there are.
    pub(crate) const fn size(&self) -> usize {
        self.team.size()
    }

    /// Returns the member `distance` after this one, around the end.
    pub(crate) const fn after(&self, distance: usize) -> usize {
        (self.me() + distance) % self.size()
    }

    /// Returns the member `distance` before this one, around the start.
    pub(crate) const fn before(&self, distance: usize) -> usize {
        (self.me() + self.size() - distance % self.size()) % self.size()
    }

    /// Sends `data` to a member.
    pub(crate) async fn send(&self, data: &[u8], to: usize) -> Result<()> {
        let to = self.team.peer(to)?;
        Transfer::<1>::new(self.team)
            .send(0, data, to, self.tag)
            .await
    }

    /// Receives `data.len()` bytes from a member.
    pub(crate) async fn recv(&self, data: &mut [u8], from: usize) -> Result<()> {
        let from = self.team.source(from)?;
        Transfer::<1>::new(self.team)
            .recv(0, data, from, self.tag)
            .await
    }

    /// Sends to one member while it receives from another, or from the same.
    pub(crate) async fn exchange(
        &self,
        out: &[u8],
        to: usize,
        into: &mut [u8],
        from: usize,
    ) -> Result<()> {
        let (to, from) = (self.team.peer(to)?, self.team.source(from)?);
        Transfer::<2>::new(self.team)
            .recv(0, into, from, self.tag)
            .send(1, out, to, self.tag)
            .await
    }

    /// Returns the range of `block` among blocks of `lengths`.
    pub(crate) fn range(lengths: &[usize], block: usize) -> std::ops::Range<usize> {
        let start = lengths[..block].iter().sum();
        start..start + lengths[block]
    }
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
    read: std::ops::Range<usize>,
    write: std::ops::Range<usize>,
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
