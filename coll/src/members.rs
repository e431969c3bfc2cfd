//! Who belongs to a group, and by which ids its ranks know the group's context.

use std::ops::Range;
use std::sync::Arc;

use tagwire_base::{ContextId, Rank};

/// The members of a group, by their numbers in it. Clones share what there is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Members {
    size: usize,
    ranks: Ranks,
    contexts: Ids,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Ranks {
    /// Member `n` is rank `n` of the job.
    Identity(usize),
    Table(Arc<[Rank]>),
}

/// The id that each member has assigned to the context.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Ids {
    Uniform(ContextId),
    Each(Arc<[ContextId]>),
}

impl Members {
    /// Returns all ranks of a job of `size`, in the context that all have from the start.
    #[must_use]
    pub const fn world(size: usize) -> Self {
        Self {
            size,
            ranks: Ranks::Identity(size),
            contexts: Ids::Uniform(ContextId::WORLD),
        }
    }

    /// Returns the members with these ranks of the job and these ids.
    pub(crate) fn new(ranks: Vec<Rank>, contexts: Vec<ContextId>) -> Self {
        debug_assert_eq!(ranks.len(), contexts.len());
        let is_identity = ranks
            .iter()
            .enumerate()
            .all(|(n, rank)| rank.as_u32() as usize == n);
        let first = contexts.first().copied().unwrap_or(ContextId::WORLD);
        Self {
            size: ranks.len(),
            ranks: match is_identity {
                true => Ranks::Identity(ranks.len()),
                false => Ranks::Table(ranks.into()),
            },
            contexts: match contexts.iter().all(|id| *id == first) {
                true => Ids::Uniform(first),
                false => Ids::Each(contexts.into()),
            },
        }
    }

    /// Returns some that follow each other, by their numbers.
    #[must_use]
    pub fn part(&self, numbers: Range<usize>) -> Self {
        let ranks = numbers.clone().filter_map(|member| self.rank(member));
        let contexts = numbers.clone().filter_map(|member| self.context(member));
        Self::new(ranks.collect(), contexts.collect())
    }

    /// Returns how many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.size
    }

    /// Returns whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the rank in the job of a member.
    #[inline]
    #[must_use]
    pub fn rank(&self, member: usize) -> Option<Rank> {
        match &self.ranks {
            Ranks::Identity(size) => (member < *size).then(|| Rank::new(member as u32)),
            Ranks::Table(ranks) => ranks.get(member).copied(),
        }
    }

    /// Returns the number of the member that is this rank of the job. Takes as long as there are members.
    #[must_use]
    pub fn member(&self, rank: Rank) -> Option<usize> {
        match &self.ranks {
            Ranks::Identity(size) => {
                let member = rank.as_u32() as usize;
                (member < *size).then_some(member)
            }
            Ranks::Table(ranks) => ranks.iter().position(|other| *other == rank),
        }
    }

    /// Returns the id that a member has assigned to the context.
    #[inline]
    #[must_use]
    pub fn context(&self, member: usize) -> Option<ContextId> {
        match &self.contexts {
            Ids::Uniform(id) => Some(*id),
            Ids::Each(ids) => ids.get(member).copied(),
        }
    }

    pub(crate) fn ranks(&self) -> impl Iterator<Item = Rank> + '_ {
        (0..self.len()).filter_map(|member| self.rank(member))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u16) -> ContextId {
        ContextId::new(number)
    }

    #[test]
    fn the_world_needs_no_table() {
        let ranks: Vec<_> = (0..3).map(Rank::new).collect();
        assert_eq!(Members::new(ranks, vec![id(0); 3]), Members::world(3));
        let world = Members::world(3);
        assert_eq!(world.rank(2), Some(Rank::new(2)));
        assert_eq!(world.rank(3), None);
        assert_eq!(world.member(Rank::new(3)), None);
    }

    #[test]
    fn members_have_ranks_and_ids_of_their_own() {
        let ranks = vec![Rank::new(5), Rank::new(1)];
        let members = Members::new(ranks.clone(), vec![id(4), id(9)]);
        assert_eq!(members.ranks().collect::<Vec<_>>(), ranks);
        assert_eq!(members.context(1), Some(id(9)));
        assert_eq!(members.member(Rank::new(1)), Some(1));
        assert_eq!(members.member(Rank::new(0)), None);
        assert_eq!(members.part(0..2), members);
        let second = members.part(1..2);
        assert_eq!(
            (second.rank(0), second.context(0)),
            (members.rank(1), Some(id(9)))
        );
        assert!(members.part(2..2).is_empty());
    }
}
