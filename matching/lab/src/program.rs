//! Programs for an engine: what is done to it, and random ones.

use std::fmt;

use tagwire_base::{ContextId, Rank, SourceSelector, Tag, TagSelector};
use tagwire_matching::{Capacity, ContextAssertions, Envelope, Pattern};

use crate::random::Random;

/// One call of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// A receive is posted.
    Post(Pattern),
    /// A message of so many bytes arrives.
    Arrive(Envelope, usize),
    /// A message arrives that may not be queued.
    ArriveExpected(Envelope),
    /// Which receive such a message would go to.
    Expects(Envelope),
    /// Which message such a receive would take.
    Probe(Pattern),
    /// Takes the message that such a receive would take.
    Claim(Pattern),
    /// Takes a receive back: that of this number, modulo how many were queued, also one that has left.
    Cancel(u32),
    /// Throws a message away, by its number likewise.
    Discard(u32),
    /// Promises something of a context.
    Promise(ContextId, ContextAssertions),
}

/// Calls of an engine of some capacity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// How many entries the engine may hold.
    pub capacity: Capacity,
    /// Whether the engine may also refuse a message for its bytes, while others are queued.
    pub is_bounded_by_bytes: bool,
    /// The calls in their order.
    pub operations: Vec<Operation>,
}

impl Program {
    /// Returns a program that leans to one of the queues for a while, then to the other.
    pub(crate) fn random(random: &mut Random) -> Self {
        let mut operations = Vec::new();
        for _ in 0..random.between(1, 4) {
            let world = World::random(random);
            let (posts, arrivals) = [(30, 4), (4, 30), (15, 15)][random.below(3) as usize];
            for _ in 0..random.below(300) {
                operations.push(world.operation(random, posts, arrivals));
            }
        }
        let capacity = match random.percent(50) {
            true => Capacity::default(),
            false => Capacity::new(random.below(80), random.below(80)),
        };
        Self {
            capacity,
            is_bounded_by_bytes: false,
            operations,
        }
    }
}

/// Bytes of messages: none, few, and on both sides of what is eager.
const BYTES: [usize; 5] = [0, 8, 1000, 8 << 10, 1 << 20];

/// How many sources, tags and contexts there are: few make matches, many make long queues.
#[derive(Debug, Clone, Copy)]
struct World {
    sources: u32,
    tags: u32,
    contexts: u32,
    /// In percent, of sources and of tags.
    wildcards: u32,
}

impl World {
    fn random(random: &mut Random) -> Self {
        match random.percent(50) {
            true => Self {
                sources: random.between(1, 4),
                tags: random.between(1, 4),
                contexts: random.between(1, 3),
                wildcards: random.below(60),
            },
            false => Self {
                sources: random.between(1, 40),
                tags: random.between(1, 200),
                contexts: random.between(1, 4),
                wildcards: random.below(40),
            },
        }
    }

    fn operation(self, random: &mut Random, posts: u32, arrivals: u32) -> Operation {
        const RARE: u32 = 13;
        let envelope = self.envelope(random);
        let pattern = self.pattern(envelope, random);
        match random.below(posts + arrivals + RARE) {
            0 | 1 => Operation::ArriveExpected(envelope),
            2 | 3 => Operation::Expects(envelope),
            4 | 5 => Operation::Probe(pattern),
            6 | 7 => Operation::Claim(pattern),
            8 | 9 => Operation::Cancel(random.below(1 << 16)),
            10 | 11 => Operation::Discard(random.below(1 << 16)),
            12 => Operation::Promise(
                envelope.context,
                ContextAssertions {
                    no_any_source: random.percent(50),
                    no_any_tag: random.percent(50),
                    // An engine may then match out of order, which is what is checked here.
                    overtaking: false,
                },
            ),
            other if other < RARE + posts => Operation::Post(pattern),
            _ => Operation::Arrive(envelope, BYTES[random.below(BYTES.len() as u32) as usize]),
        }
    }

    fn envelope(self, random: &mut Random) -> Envelope {
        // About a fifth of the tags is internal.
        let tag = random.below(self.tags + self.tags / 4 + 1);
        Envelope {
            source: Rank::new(random.below(self.sources)),
            tag: match tag.checked_sub(self.tags) {
                Some(internal) => Tag::internal(internal),
                None => Tag::user(tag as i32).unwrap_or_else(|| Tag::internal(tag)),
            },
            // Contexts on both sides of those that `bins` keeps promises of.
            context: ContextId::new(random.below(self.contexts) as u16 * 63),
        }
    }

    fn pattern(self, envelope: Envelope, random: &mut Random) -> Pattern {
        let mut pattern = Pattern::exact(envelope);
        if random.percent(self.wildcards) {
            pattern.source = SourceSelector::ANY;
        }
        if random.percent(self.wildcards) {
            pattern.tag = TagSelector::ANY;
        }
        pattern
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Post(pattern) => write!(f, "{:<15} {}", "post", Words(pattern)),
            Self::Arrive(envelope, bytes) => {
                write!(f, "{:<15} {}", "arrive", Words(envelope))?;
                match bytes {
                    0 => Ok(()),
                    bytes => write!(f, ", {bytes} bytes"),
                }
            }
            Self::ArriveExpected(envelope) => {
                write!(f, "{:<15} {}", "arrive_expected", Words(envelope))
            }
            Self::Expects(envelope) => write!(f, "{:<15} {}", "expects", Words(envelope)),
            Self::Probe(pattern) => write!(f, "{:<15} {}", "probe", Words(pattern)),
            Self::Claim(pattern) => write!(f, "{:<15} {}", "claim", Words(pattern)),
            Self::Cancel(_) => f.write_str("cancel"),
            Self::Discard(_) => f.write_str("discard"),
            Self::Promise(context, promise) => {
                write!(f, "{:<15} context {}", "promise", context.as_u16())?;
                for (given, word) in [
                    (promise.no_any_source, "no any-source"),
                    (promise.no_any_tag, "no any-tag"),
                    (promise.overtaking, "overtaking"),
                ] {
                    if given {
                        write!(f, ", {word}")?;
                    }
                }
                Ok(())
            }
        }
    }
}

/// An envelope or a pattern as users write it.
pub(crate) struct Words<'a, T>(pub(crate) &'a T);

impl fmt::Display for Words<'_, Envelope> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Envelope {
            source,
            tag,
            context,
        } = self.0;
        write!(
            f,
            "source {source}, tag {}, context {}",
            tag.as_i32(),
            context.as_u16()
        )
    }
}

impl fmt::Display for Words<'_, Pattern> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Pattern {
            source,
            tag,
            context,
        } = self.0;
        match source.rank() {
            Some(source) => write!(f, "source {source}, ")?,
            None => f.write_str("any source, ")?,
        }
        match tag.is_any() {
            true => f.write_str("any tag, ")?,
            false => write!(f, "tag {}, ", tag.as_i32())?,
        }
        write!(f, "context {}", context.as_u16())
    }
}
