//! The sources and tags of the entries that do not match.
//!
//! The key of the match is [`SOURCE`] and tag 0. No other entry has both, and each has a number, which its key follows from:
//!
//! | keys | source | tag | what it is for |
//! |---|---|---|---|
//! | `tags` | the same | each its own | one peer, many messages; lists for each source are one list |
//! | `sources` | each its own | the same | many peers, one kind of message; a hash by tag has one bin |
//! | `grid` | one of about the root of the entries | likewise | a stencil: a few peers, a few tags |
//! | `random` | by lot | by lot | keys that no hash is unlucky with |
//! | `collide-ucx` | the same | multiples of 1,021 | one bin of the 1,024 of UCX |
//! | `collide-fuzzy` | the match's source XOR the tag | each its own | one partial key of `fuzzy`, of any width |

use super::axes::{Keys, Queue, WildKind};
use crate::random::Random;

impl Keys {
    /// Returns the source and the tag of the entry of this number, one of `others`.
    pub(super) fn of(self, index: u32, others: u32, seed: u64) -> (u32, u32) {
        match self {
            Self::Tags => (SOURCE, 1 + index % LARGEST_TAG),
            Self::Sources => (SOURCE + 1 + index, TAG),
            Self::Grid => {
                // The match is the first corner; a tag goes round all sources before the next one comes.
                let (place, side) = (index + 1, others.isqrt() + 1);
                (SOURCE + place % side, place / side)
            }
            Self::Random => {
                let mut random = Random::new(seed ^ ((u64::from(index) + 1) << 32));
                (
                    random.between(SOURCE + 1, MANY_SOURCES),
                    random.between(TAG + 1, LARGEST_TAG),
                )
            }
            Self::CollideUcx => (SOURCE, UCX_PRIME * (1 + index % UCX_TAGS)),
            Self::CollideFuzzy => {
                let tag = 1 + index % LARGEST_TAG;
                (SOURCE ^ tag, tag)
            }
        }
    }

    /// Returns why such keys cannot be those of messages, where receives of this kind of wildcard are to take the match: they
    /// would take others before.
    pub(super) fn why_not(self, queue: Queue, kind: WildKind) -> Option<&'static str> {
        let is_unexpected = queue == Queue::Unexpected;
        match kind {
            WildKind::Source if is_unexpected && matches!(self, Self::Sources | Self::Grid) => {
                Some(
                    "have the tag of the match, so that a receive of any source takes another message first",
                )
            }
            WildKind::Tag if is_unexpected && matches!(self, Self::Grid | Self::CollideUcx) => {
                Some(
                    "have the source of the match, so that a receive of any tag takes another message first",
                )
            }
            _ => None,
        }
    }
}

/// Who sends the messages of the matches, and their tag.
pub(super) const SOURCE: u32 = 1;
pub(super) const TAG: u32 = 0;
/// Tags of the others go up to this one.
const LARGEST_TAG: u32 = 1 << 22;
/// Random sources are below this one.
const MANY_SOURCES: u32 = 1 << 16;
/// What UCX takes both halves of its 64-bit tag by. The tag lies in the upper half alone, shifted by 8 bits.
const UCX_PRIME: u32 = 1021;
/// Its multiples that the 24 bits of a tag hold.
const UCX_TAGS: u32 = 16_000;

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use clap::ValueEnum;
    use tagwire_matching::EngineName;

    use super::super::axes::word;
    use super::super::count::{Looked, attempts};
    use super::super::scenario::Scenario;
    use super::*;

    /// What a match behind so many entries looks at.
    fn looked(engine: &str, keys: Keys, queue: Queue, ahead: u32) -> Looked {
        let engine: EngineName = engine.parse().unwrap();
        let scenario = Scenario {
            keys,
            ..Scenario::behind(queue, ahead)
        };
        attempts(&engine, &scenario)
    }

    /// The same of receives in the queue, and of messages: they agree.
    fn entries(engine: &str, keys: Keys) -> f64 {
        let posted = looked(engine, keys, Queue::Posted, AHEAD).attempts;
        let unexpected = looked(engine, keys, Queue::Unexpected, AHEAD).attempts;
        assert_eq!(posted, unexpected, "{engine}, {keys:?}");
        posted
    }

    #[test]
    fn no_entry_has_the_key_of_the_match_and_a_seed_gives_the_same_keys() {
        for &keys in Keys::value_variants() {
            let all = |seed| (0..20_000).map(move |index| keys.of(index, 20_000, seed));
            assert!(all(7).all(|key| key != (SOURCE, TAG)), "{keys:?}");
            assert!(all(7).eq(all(7)));
            assert_eq!(all(7).eq(all(8)), keys != Keys::Random, "{keys:?}");
            // A list compares one after the other whatever they are.
            assert_eq!(entries("list", keys), f64::from(AHEAD + 1));
        }
        assert_eq!(word(Keys::CollideUcx), "collide-ucx");
        assert_eq!(serde_json::json!(Keys::CollideUcx), "collide-ucx");
    }

    #[test]
    fn tags_are_one_list_of_a_source_and_many_bins() {
        assert_eq!(entries("source", Keys::Tags), f64::from(AHEAD + 1));
        assert_eq!(
            entries("flajslik:key=source", Keys::Tags),
            f64::from(AHEAD + 1)
        );
        assert!(entries("ucx", Keys::Tags) <= 2.0);
    }

    #[test]
    fn sources_are_lists_of_their_own_and_one_bin_of_a_tag() {
        assert_eq!(entries("source", Keys::Sources), 1.0);
        assert_eq!(
            entries("flajslik:key=tag", Keys::Sources),
            f64::from(AHEAD + 1)
        );
        assert!(entries("flajslik:key=source", Keys::Sources) < f64::from(AHEAD) / 100.0);
    }

    /// 1,023 entries and the match are 32 sources with 32 tags each.
    #[test]
    fn a_grid_has_the_root_of_its_entries_of_a_source_and_of_a_tag() {
        assert_eq!(AHEAD, 1023);
        assert_eq!(entries("source", Keys::Grid), 32.0);
        // Beside those of its own tag a bin has what the hash puts there.
        let of_a_tag = entries("flajslik:key=tag", Keys::Grid);
        assert!((32.0..=128.0).contains(&of_a_tag), "{of_a_tag}");
        let distinct: HashSet<_> = (0..AHEAD)
            .map(|index| Keys::Grid.of(index, AHEAD, 1))
            .collect();
        assert_eq!(distinct.len() as u32, AHEAD);
    }

    #[test]
    fn random_keys_leave_the_bins_of_ucx_and_the_false_hits_of_fuzzy_few() {
        assert!(entries("ucx", Keys::Random) <= 5.0);
        assert_eq!(entries("source", Keys::Random), 1.0);
        // Keys that are spread evenly: n / 2^bits.
        let false_hits = looked("fuzzy", Keys::Random, Queue::Posted, AHEAD).false_hits;
        assert!(false_hits <= 12.0, "{false_hits}");
        assert!(looked("fuzzy:bits=16", Keys::Random, Queue::Posted, AHEAD).false_hits <= 1.0);
    }

    #[test]
    fn colliding_tags_lie_in_one_bin_of_ucx_which_is_then_a_list() {
        assert_eq!(entries("ucx", Keys::CollideUcx), f64::from(AHEAD + 1));
        // The hash alone: of other bins, and of another hash, there are many.
        assert!(entries("ucx:bins=4096", Keys::CollideUcx) <= 5.0);
        assert!(entries("flajslik", Keys::CollideUcx) < f64::from(AHEAD) / 20.0);
    }

    #[test]
    fn colliding_partial_keys_are_false_hits_of_fuzzy_of_any_width() {
        for engine in ["fuzzy", "fuzzy:bits=16", "fuzzy:bits=32"] {
            for queue in [Queue::Posted, Queue::Unexpected] {
                let looked = looked(engine, Keys::CollideFuzzy, queue, AHEAD);
                assert_eq!(looked.false_hits, f64::from(AHEAD), "{engine}, {queue:?}");
            }
        }
        assert_eq!(
            looked("lanes", Keys::CollideFuzzy, Queue::Posted, AHEAD).false_hits,
            0.0
        );
        assert!(entries("ucx", Keys::CollideFuzzy) <= 5.0);
    }

    const AHEAD: u32 = 1023;
}
