//! The internal tags of a group's operations.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tagwire_base::Tag;

/// How many tags operations take in turn.
const IN_TURN: u32 = Tag::COLLECTIVES - PERSISTENT - 2;

/// The tag of messages by which a member reports that it has broken off. As one of collectives it is dropped by those who have too.
pub(crate) const BROKEN: Tag = Tag::internal(IN_TURN);

/// The tag of messages by which members agree on tags of persistent operations.
pub(crate) const AGREE: Tag = Tag::internal(IN_TURN + 1);

/// So many of the tags are for persistent operations, which have one for as long as they are there: others take turns, and
/// would come round to it.
pub(crate) const PERSISTENT: u32 = Tag::COLLECTIVES / 4;

/// Tags of persistent operations: a bit for each.
pub(crate) type Bits = [u8; PERSISTENT as usize / 8];

/// The tags that a group's operations have, and how many it has begun.
#[derive(Debug, Default)]
pub(crate) struct Tags {
    begun: AtomicU32,
    persistent: Mutex<Option<Box<Persistent>>>,
}

/// The tags of persistent operations. Members make these in the same order, and free them in any.
#[derive(Debug)]
struct Persistent {
    /// Those that no member had when they agreed the last time, and that were not given since: the same on all members.
    free: Bits,
    /// Those that operations of this member have.
    taken: Bits,
}

impl Tags {
    /// Returns the tag of the next operation.
    pub(crate) fn next(&self) -> Tag {
        Tag::internal(self.begun.fetch_add(1, Relaxed) % IN_TURN)
    }

    /// Returns the tag of the next persistent operation, which has it until it is [given back](Self::give_back): the same on all
    /// members. `None` on all of them when they have to [agree](Self::agree) first.
    pub(crate) fn take(&self) -> Option<Tag> {
        let mut held = self.persistent();
        let tags = held.get_or_insert_with(|| Box::new(Persistent::ALL_FREE));
        let place = tags.free.iter().position(|byte| *byte != 0)?;
        let bit = tags.free[place].trailing_zeros();
        tags.free[place] ^= 1 << bit;
        tags.taken[place] |= 1 << bit;
        Some(Tag::internal(FIRST + 8 * place as u32 + bit))
    }

    /// Returns the tags that operations of this member have.
    pub(crate) fn taken(&self) -> Bits {
        let held = self.persistent();
        held.as_ref().map_or([0; _], |tags| tags.taken)
    }

    /// Has those tags given out from now on that are not among `taken`: those of any member.
    pub(crate) fn agree(&self, taken: &Bits) {
        if let Some(tags) = &mut *self.persistent() {
            tags.free = taken.map(|byte| !byte);
        }
    }

    /// Takes the tag of a persistent operation back.
    pub(crate) fn give_back(&self, tag: Tag) {
        let number = (-1 - tag.as_i32()) as u32 - FIRST;
        if let Some(tags) = &mut *self.persistent() {
            tags.taken[number as usize / 8] &= !(1 << (number % 8));
        }
    }

    fn persistent(&self) -> MutexGuard<'_, Option<Box<Persistent>>> {
        let tags = self.persistent.lock();
        tags.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Persistent {
    const ALL_FREE: Self = Self {
        free: [0xff; _],
        taken: [0; _],
    };
}

/// The first tag of persistent operations: theirs are the last ones of collectives.
const FIRST: u32 = Tag::COLLECTIVES - PERSISTENT;

#[cfg(test)]
mod tests {
    use super::*;

    /// The members agree.
    fn agree(members: [&Tags; 2]) {
        let [one, other] = members.map(Tags::taken);
        let all = std::array::from_fn(|place| one[place] | other[place]);
        members.into_iter().for_each(|tags| tags.agree(&all));
    }

    #[test]
    fn each_kind_of_operation_has_tags_of_its_own() {
        let tags = Tags::default();
        let turn: Vec<_> = (0..IN_TURN).map(|_| tags.next()).collect();
        assert_eq!(tags.next(), turn[0]);
        let persistent = std::iter::from_fn(|| tags.take());
        let mut all: Vec<_> = turn.into_iter().chain(persistent).collect();
        all.extend([BROKEN, AGREE]);
        assert!(all.iter().all(|tag| tag.is_collective()));
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), Tag::COLLECTIVES as usize);
    }

    #[test]
    fn a_tag_that_any_member_has_is_given_to_no_other() {
        let (one, other) = (Tags::default(), Tags::default());
        let kept = one.take().unwrap();
        assert_eq!(other.take(), Some(kept));
        other.give_back(kept);
        let mut rounds = 0;
        for _ in 0..3 * PERSISTENT {
            if one.take().is_none() {
                assert_eq!(other.take(), None);
                agree([&one, &other]);
                rounds += 1;
                let tag = one.take().unwrap();
                assert_eq!(other.take(), Some(tag));
                one.give_back(tag);
                other.give_back(tag);
                continue;
            }
            let taken = one.taken();
            let place = (0..PERSISTENT).rev();
            let bit = |number: &u32| taken[*number as usize / 8] & 1 << (number % 8) != 0;
            let last = Tag::internal(FIRST + place.clone().find(bit).unwrap());
            assert_ne!(last, kept);
            assert_eq!(other.take(), Some(last));
            // In either order.
            other.give_back(last);
            one.give_back(last);
        }
        assert_eq!(rounds, 3);
        // All are taken: there are none to agree on, until one is given back.
        agree([&one, &other]);
        let mut made: Vec<_> = std::iter::from_fn(|| one.take()).collect();
        assert_eq!(made.len(), PERSISTENT as usize - 1);
        agree([&one, &other]);
        assert_eq!(one.take(), None);
        let last = made.pop().unwrap();
        one.give_back(last);
        agree([&one, &other]);
        assert_eq!((one.take(), one.take()), (Some(last), None));
    }
}
