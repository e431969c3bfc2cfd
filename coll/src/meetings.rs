//! The tags under which the members of subsets meet.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use tagwire_base::Tag;

/// The meetings by which members of a group have made subsets of it: how many, by the members and the name.
#[derive(Debug, Default)]
pub(crate) struct Meetings(Mutex<HashMap<Topic, u32>>);

/// The members of a meeting, and what it is about.
type Topic = (Box<[usize]>, Box<str>);

impl Meetings {
    /// Returns the tag of the messages of the next meeting of `members` about `name`. They are of no collective, so that those who are left
    /// after a failure can meet; other members and later meetings have another tag, so that what is left of one that failed is taken
    /// by none of them.
    pub(crate) fn next_tag(&self, members: &[usize], name: &str) -> Tag {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = held.entry((members.into(), name.into())).or_default();
        let all = members.iter().map(|member| *member as u64);
        let hash = all
            .chain(name.bytes().map(u64::from))
            .chain([u64::from(*count)])
            .fold(members.len() as u64, |hash, value| mixed(hash ^ value));
        *count = count.wrapping_add(1);
        Tag::internal(Tag::COLLECTIVES + (hash >> 32) as u32 % Tag::COLLECTIVES)
    }
}

/// The step of SplitMix64 (Steele, Lea and Flood, 2014): each bit depends on all.
const fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_members_and_later_meetings_have_other_tags() {
        let meetings = Meetings::default();
        let mut tags: Vec<_> = (0..20).map(|_| meetings.next_tag(&[0, 2, 3], "")).collect();
        tags.push(meetings.next_tag(&[0, 3], ""));
        tags.push(meetings.next_tag(&[0, 2, 3], "one"));
        assert!(
            tags.iter()
                .all(|tag| tag.is_internal() && !tag.is_collective())
        );
        assert_eq!(Meetings::default().next_tag(&[0, 2, 3], ""), tags[0]);
        // What others have met about counts for nothing.
        let (first, second) = (Meetings::default(), Meetings::default());
        first.next_tag(&[0, 3], "");
        for pair in [[1, 3], [2, 3], [0, 1], [6, 7]] {
            assert_eq!(first.next_tag(&pair, ""), second.next_tag(&pair, ""));
        }
        tags.sort_unstable();
        tags.dedup();
        assert_eq!(tags.len(), 22);
    }
}
