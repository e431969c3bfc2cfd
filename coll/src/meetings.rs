//! The tags under which the members of subsets meet.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use tagwire_base::Tag;

/// The meetings by which members of a group have made subsets of it: how many, by the members.
#[derive(Debug, Default)]
pub(crate) struct Meetings(Mutex<HashMap<u32, u32>>);

impl Meetings {
    /// Returns the tag of the messages of the next meeting of `members`. They are of no collective, so that those who are left
    /// after a failure can meet; other members and later meetings have another tag, so that what is left of one that failed is taken
    /// by none of them.
    pub(crate) fn next_tag(&self, members: &[usize]) -> Tag {
        // FNV-1a, of the numbers.
        let hash = members
            .iter()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, member| {
                (hash ^ *member as u64).wrapping_mul(0x0100_0000_01b3)
            });
        let hash = (hash >> 32) as u32 % Tag::COLLECTIVES;
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = held.entry(hash).or_default();
        // Far from those of neighbours, whose count is small too.
        let number = hash.wrapping_add(count.wrapping_mul(2_654_435_761)) % Tag::COLLECTIVES;
        *count = count.wrapping_add(1);
        Tag::internal(Tag::COLLECTIVES + number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_members_and_later_meetings_have_other_tags() {
        let meetings = Meetings::default();
        let mut tags: Vec<_> = (0..20).map(|_| meetings.next_tag(&[0, 2, 3])).collect();
        tags.push(meetings.next_tag(&[0, 3]));
        assert!(
            tags.iter()
                .all(|tag| tag.is_internal() && !tag.is_collective())
        );
        assert_eq!(Meetings::default().next_tag(&[0, 2, 3]), tags[0]);
        tags.sort_unstable();
        tags.dedup();
        assert_eq!(tags.len(), 21);
    }
}
