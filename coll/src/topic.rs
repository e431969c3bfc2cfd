//! What a meeting is about.
//!
//! ```text
//!      0         4         8        12                      12 + 8 runs
//!     +---------+---------+---------+----------------------+------+
//!     | purpose |  runs   |  name   | first, count (4 + 4) | name |
//!     +---------+---------+---------+----------------------+------+
//!               how many   in bytes   for each run
//! ```
//!
//! Numbers are little-endian. A run is of members that follow each other: first, and how many.

/// What a meeting is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Its members become a group.
    Subset = 0,
    /// Its members lead the sides of a group.
    Bridge = 1,
}

/// What a meeting is about, as its members say it in their messages: what it is for, who they are, in their order, and its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Topic(Box<[u8]>);

const HEAD: usize = 12;

const RUN: usize = 8;

impl Topic {
    pub(crate) fn new(purpose: Purpose, members: &[usize], name: &str) -> Self {
        let mut runs: Vec<[u32; 2]> = Vec::new();
        for member in members.iter().map(|member| *member as u32) {
            match runs.last_mut() {
                Some([first, count]) if first.checked_add(*count) == Some(member) => *count += 1,
                _ => runs.push([member, 1]),
            }
        }
        let head = [purpose as u32, runs.len() as u32, name.len() as u32];
        let words = head.iter().chain(runs.as_flattened());
        let words = words.flat_map(|word| word.to_le_bytes());
        Self(words.chain(name.bytes()).collect())
    }

    /// Returns a message about it.
    pub(crate) fn with(&self, data: &[u8]) -> Vec<u8> {
        [&self.0, data].concat()
    }

    /// Returns what a message is about, and its data; `None` of one that no member in order sends.
    pub(crate) fn of(message: &[u8]) -> Option<(Self, Vec<u8>)> {
        let word = |place: usize| {
            let bytes = message.get(place..place + 4)?;
            Some(u32::from_le_bytes(bytes.try_into().ok()?) as usize)
        };
        let (runs, name) = (word(4)?, word(8)?);
        let len = HEAD + runs.checked_mul(RUN)?.checked_add(name)?;
        let (topic, data) = message.split_at_checked(len)?;
        Some((Self(topic.into()), data.to_vec()))
    }

    /// Returns whether this member takes part.
    pub(crate) fn has(&self, member: usize) -> bool {
        let words = self.0.as_chunks::<4>().0.iter();
        let mut words = words.map(|word| u32::from_le_bytes(*word) as usize);
        let runs = words.nth(1).unwrap_or(0);
        let words: Vec<_> = words.skip(1).take(2 * runs).collect();
        let mut runs = words.as_chunks::<2>().0.iter();
        runs.any(|[first, count]| (*first..first + count).contains(&member))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_say_what_they_are_about() {
        let lists: [&[usize]; 6] = [
            &[],
            &[3],
            &[0, 1, 2, 5],
            &[2, 1, 0],
            &[7, 8, 3],
            &[0, 1, 2, 3],
        ];
        let mut all = Vec::new();
        for purpose in [Purpose::Subset, Purpose::Bridge] {
            for members in lists {
                for name in ["", "one", "on"] {
                    let topic = Topic::new(purpose, members, name);
                    for data in [&[][..], &[1, 2, 3]] {
                        let (told, rest) = Topic::of(&topic.with(data)).unwrap();
                        assert_eq!((&told, &rest[..]), (&topic, data));
                    }
                    for member in 0..10 {
                        assert_eq!(topic.has(member), members.contains(&member), "{topic:?}");
                    }
                    assert!(!all.contains(&topic), "{topic:?}");
                    all.push(topic);
                }
            }
        }
    }

    #[test]
    fn what_is_cut_short_is_about_nothing() {
        let whole = Topic::new(Purpose::Subset, &[0, 2, 4], "name").with(&[]);
        for len in 0..whole.len() {
            assert_eq!(Topic::of(&whole[..len]), None);
        }
        for word in [4, 8] {
            let mut wrong = whole.clone();
            wrong[word..word + 4].fill(0xff);
            assert_eq!(Topic::of(&wrong), None);
        }
    }
}
