//! Traces: what an engine was given, call by call, so that the same can be given to others.
//!
//! A trace has a page of header and records of 16 bytes. Only inputs are in it: an exact engine answers the same to the same
//! calls, and one bit of each record, whether it matched at once, lets whoever repeats the calls check that. Words are
//! little-endian:
//!
//! ```text
//!   header   4096 bytes: the line "tagwire match trace 2", lines "name: value" (see [`Header`]), zeros
//!   record   0  u8   call: 0 end, 1 post, 2 arrive, 3 arrive_expected, 4 expects, 5 probe, 6 claim, 7 cancel, 8 discard,
//!                    9 promise, 10 time, 11 lost, 12 begin, 13 lengths, 14 queued; bit 6: it matched, found or withdrew at once
//!            1  u8   size: 0 where there are no bytes or nobody knows; else 1 + 4 log2(bytes), rounded down
//!            2  u16  context
//!            4  u32  source, 0xffffffff: any
//!            8  i32  tag, the least number: any
//!           12  u32  nanoseconds since the record before
//! ```
//!
//! A cancel and a discard have in place of a source the number of the entry among those of its queue, from 0. A promise has
//! there a bit for each of [`ContextAssertions`]. `time` and `lost` have a number of 64 bits in place of source and tag: the
//! nanoseconds that passed where they fit in no record, and how many calls are missing behind the last one.
//!
//! The last record is `end`, of which the other bytes are 0, or `lost`: a file that ends without was cut.
//!
//! Records that begin with `begin` lie in parts of [`PART`] bytes each, in any order. Each begins so, with how many calls came
//! before it as a number of 64 bits, and with `lengths` and `queued`, which have in place of source and tag how many receives and
//! messages are queued then, and how many were so far. Parts are in the order of these numbers; one that does not begin so has
//! nothing, and of two with the same number the one that comes first in the file counts. A *ring* keeps the last calls: its oldest
//! part is written over. A part that is full needs no end. Nothing here reads or writes files, or knows a clock.

use tagwire_base::{ContextId, SourceSelector, Tag, TagSelector};

use crate::engine::ContextAssertions;
use crate::envelope::{Envelope, Pattern};

mod header;

pub use crate::recorded::Recorded;
pub use header::{BadHeader, Header};

/// Bytes of a record.
pub const RECORD: usize = 16;

/// Bytes before the first record.
pub const HEADER: usize = 4096;

/// Bytes of a part.
pub const PART: usize = 1 << 18;

/// Records that each part begins with.
pub const BEGINNING: usize = 3;

/// One call of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A receive was posted.
    Post(Pattern),
    /// A message of this size arrived.
    Arrive(Envelope, Size),
    /// A message arrived that was not to be queued.
    ArriveExpected(Envelope),
    /// Whether a receive waits for such a message.
    Expects(Envelope),
    /// Which message such a receive would take.
    Probe(Pattern),
    /// The message that such a receive would take was taken.
    Claim(Pattern),
    /// The receive of this number, among those that were queued, was taken back.
    Cancel(u32),
    /// The message of this number, among those that were queued, was thrown away.
    Discard(u32),
    /// Something was promised of a context.
    Promise(ContextId, ContextAssertions),
    /// So many nanoseconds passed.
    Time(u64),
    /// So many calls behind this record are missing: the trace was at its limit, or there was no room on the disk.
    Lost(u64),
    /// A part begins, before which came so many calls.
    Begin(u64),
    /// So many entries are in the queues.
    Lengths(Both),
    /// So many entries were put into the queues until now.
    Queued(Both),
}

/// A number for each of the two queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Both {
    /// Posted receives.
    pub posted: u32,
    /// Unexpected messages.
    pub unexpected: u32,
}

/// What is and was in the queues of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Queues {
    /// Entries now.
    pub lengths: Both,
    /// Entries that were ever put into them, of which only the low 32 bits count.
    pub queued: Both,
}

/// The size of a message, in quarters of powers of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Size(u8);

/// A call with its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// The call.
    pub event: Event,
    /// Whether it matched, found or withdrew something at once.
    pub matched: bool,
    /// Nanoseconds since the record before.
    pub after: u32,
}

/// Why a record is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadRecord {
    /// No call has this number, or bits are set that no version sets.
    #[error("no call has the number {0}")]
    Call(u8),
    /// A message of any source or any tag.
    #[error("a message without one source and one tag")]
    Message,
}

/// A record without its time, as the two words that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packed {
    first: u64,
    tag: u32,
}

/// What keeps records, with their times.
///
/// It is called within the call that is recorded, by the thread that does it: it must not block for long.
pub trait Sink: Send {
    /// Takes the place of the next record, where it is at hand and the record is to have no time of its own. The bytes of a record
    /// are to be stored into it at once.
    fn place(&mut self) -> Option<&mut [u8; RECORD]>;

    /// Keeps a record of now where that takes little, and returns whether it did. Else nothing is kept.
    ///
    /// It is asked where there is no [`place`](Sink::place), and before [`note`](Sink::note).
    fn keep(&mut self, record: Packed) -> bool;

    /// Keeps a record of now. What is in the queues behind the call can be asked for.
    fn note(&mut self, record: Packed, queues: impl Fn() -> Queues);
}

impl Size {
    /// Returns the size of a message of so many bytes, fewer than 2^62. (More have the size of fewer.)
    #[inline]
    #[must_use]
    pub const fn of(bytes: u64) -> Self {
        Self(class(bytes) as u8)
    }

    /// Returns the bytes of the shortest message of this size.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        match self.0.checked_sub(1) {
            None => 0,
            Some(class) => (((4 + (class as u128 & 3)) << (class >> 2)) >> 2) as u64,
        }
    }
}

impl Packed {
    /// Returns the record of a posted receive or of another call with a pattern.
    #[inline]
    pub(crate) const fn pattern(call: u8, pattern: Pattern, matched: bool) -> Self {
        Self {
            first: first(call, matched, 0, pattern.context)
                | (pattern.source.as_u32() as u64) << 32,
            tag: pattern.tag.as_i32() as u32,
        }
    }

    /// Returns the record of a call with an envelope.
    #[inline]
    pub(crate) const fn envelope(call: u8, envelope: Envelope, size: Size, matched: bool) -> Self {
        Self {
            first: first(call, matched, size.0, envelope.context)
                | (envelope.source.as_u32() as u64) << 32,
            tag: envelope.tag.as_i32() as u32,
        }
    }

    /// Returns the record of a message of so many bytes that arrived.
    ///
    /// As [`Packed::envelope`] with its [`Size`], in fewer instructions: nothing is cut off on the way.
    #[inline]
    pub(crate) const fn arrival(envelope: Envelope, bytes: u64, matched: bool) -> Self {
        let Self { first, tag } = Self::envelope(ARRIVE, envelope, Size(0), matched);
        Self {
            first: first | class(bytes) << 8,
            tag,
        }
    }

    /// Returns the record of a call with a number.
    pub(crate) const fn number(call: u8, context: ContextId, number: u64, matched: bool) -> Self {
        Self {
            first: first(call, matched, 0, context) | number << 32,
            tag: (number >> 32) as u32,
        }
    }

    /// Returns the record of nanoseconds that passed.
    #[must_use]
    pub const fn time(nanos: u64) -> Self {
        Self::number(TIME, ContextId::WORLD, nanos, false)
    }

    /// Returns the record of calls that are missing.
    #[must_use]
    pub const fn lost(calls: u64) -> Self {
        Self::number(LOST, ContextId::WORLD, calls, false)
    }

    /// Returns the record of the beginning of a part, before which came so many calls.
    #[must_use]
    pub const fn begin(calls: u64) -> Self {
        Self::number(BEGIN, ContextId::WORLD, calls, false)
    }

    /// Returns the records of what is in the queues.
    #[must_use]
    pub const fn queues(queues: Queues) -> [Self; 2] {
        [
            Self::both(LENGTHS, queues.lengths),
            Self::both(QUEUED, queues.queued),
        ]
    }

    const fn both(call: u8, both: Both) -> Self {
        let number = both.posted as u64 | (both.unexpected as u64) << 32;
        Self::number(call, ContextId::WORLD, number, false)
    }

    /// Returns the bytes of the record, so many nanoseconds after the one before.
    #[inline]
    #[must_use]
    pub const fn after(self, nanos: u32) -> [u8; RECORD] {
        let second = self.tag as u64 | (nanos as u64) << 32;
        (self.first as u128 | (second as u128) << 64).to_le_bytes()
    }
}

/// Returns the number of a [`Size`].
#[inline]
const fn class(bytes: u64) -> u64 {
    if bytes == 0 {
        return 0;
    }
    let exponent = bytes.ilog2();
    // The highest three bits, of which the first is one: 4 to 7.
    let quarters = bytes << 2 >> exponent;
    4 * exponent as u64 + quarters - 3
}

#[inline]
const fn first(call: u8, matched: bool, size: u8, context: ContextId) -> u64 {
    (call | (matched as u8) << MATCHED.ilog2()) as u64
        | (size as u64) << 8
        | (context.as_u16() as u64) << 16
}

impl Record {
    /// Returns the record as it is written.
    #[must_use]
    pub fn to_bytes(self) -> [u8; RECORD] {
        let matched = self.matched;
        let packed = match self.event {
            Event::Post(pattern) => Packed::pattern(POST, pattern, matched),
            Event::Arrive(envelope, size) => Packed::envelope(ARRIVE, envelope, size, matched),
            Event::ArriveExpected(envelope) => {
                Packed::envelope(ARRIVE_EXPECTED, envelope, Size::default(), matched)
            }
            Event::Expects(envelope) => {
                Packed::envelope(EXPECTS, envelope, Size::default(), matched)
            }
            Event::Probe(pattern) => Packed::pattern(PROBE, pattern, matched),
            Event::Claim(pattern) => Packed::pattern(CLAIM, pattern, matched),
            Event::Cancel(number) => entry(CANCEL, number, matched),
            Event::Discard(number) => entry(DISCARD, number, matched),
            Event::Promise(context, promise) => promised(context, promise),
            Event::Time(nanos) => Packed::time(nanos),
            Event::Lost(calls) => Packed::lost(calls),
            Event::Begin(calls) => Packed::begin(calls),
            Event::Lengths(both) => Packed::both(LENGTHS, both),
            Event::Queued(both) => Packed::both(QUEUED, both),
        };
        packed.after(self.after)
    }

    /// Reads a record; `None` where there is none: the trace ends here.
    ///
    /// # Errors
    /// [`BadRecord`] for bytes that [`Record::to_bytes`] does not make.
    pub fn from_bytes(bytes: [u8; RECORD]) -> Result<Option<Self>, BadRecord> {
        let words = u128::from_le_bytes(bytes);
        let (first, second) = (words as u64, (words >> 64) as u64);
        if bytes[0] == 0 {
            return Ok(None);
        }
        let context = ContextId::new((first >> 16) as u16);
        let (source, tag) = ((first >> 32) as u32, second as u32 as i32);
        let number = u64::from(source) | u64::from(tag as u32) << 32;
        let both = Both {
            posted: source,
            unexpected: tag as u32,
        };
        let pattern = Pattern {
            source: SourceSelector::from_u32(source),
            tag: TagSelector::from_i32(tag),
            context,
        };
        let envelope = || match (pattern.source.rank(), Tag::from_wire(tag)) {
            (Some(source), Some(tag)) => Ok(Envelope {
                source,
                tag,
                context,
            }),
            _ => Err(BadRecord::Message),
        };
        let event = match bytes[0] & !MATCHED {
            POST => Event::Post(pattern),
            ARRIVE => Event::Arrive(envelope()?, Size(bytes[1])),
            ARRIVE_EXPECTED => Event::ArriveExpected(envelope()?),
            EXPECTS => Event::Expects(envelope()?),
            PROBE => Event::Probe(pattern),
            CLAIM => Event::Claim(pattern),
            CANCEL => Event::Cancel(source),
            DISCARD => Event::Discard(source),
            PROMISE => Event::Promise(
                context,
                ContextAssertions {
                    no_any_source: source & 1 != 0,
                    no_any_tag: source & 2 != 0,
                    overtaking: source & 4 != 0,
                },
            ),
            TIME => Event::Time(number),
            LOST => Event::Lost(number),
            BEGIN => Event::Begin(number),
            LENGTHS => Event::Lengths(both),
            QUEUED => Event::Queued(both),
            other => return Err(BadRecord::Call(other)),
        };
        Ok(Some(Self {
            event,
            matched: bytes[0] & MATCHED != 0,
            after: (second >> 32) as u32,
        }))
    }
}

/// The record of a withdrawal.
pub(crate) const fn entry(call: u8, number: u32, matched: bool) -> Packed {
    Packed::number(call, ContextId::WORLD, number as u64, matched)
}

/// The record of a promise.
pub(crate) const fn promised(context: ContextId, promise: ContextAssertions) -> Packed {
    let bits = promise.no_any_source as u64
        | (promise.no_any_tag as u64) << 1
        | (promise.overtaking as u64) << 2;
    Packed::number(PROMISE, context, bits, false)
}

impl Event {
    /// Returns the rank that a message came from; `None` for other calls.
    #[must_use]
    pub const fn message(&self) -> Option<Envelope> {
        match self {
            Self::Arrive(envelope, _) | Self::ArriveExpected(envelope) => Some(*envelope),
            _ => None,
        }
    }
}

pub(crate) const POST: u8 = 1;
pub(crate) const ARRIVE: u8 = 2;
pub(crate) const ARRIVE_EXPECTED: u8 = 3;
pub(crate) const EXPECTS: u8 = 4;
pub(crate) const PROBE: u8 = 5;
pub(crate) const CLAIM: u8 = 6;
pub(crate) const CANCEL: u8 = 7;
pub(crate) const DISCARD: u8 = 8;
const PROMISE: u8 = 9;
const TIME: u8 = 10;
const LOST: u8 = 11;
const BEGIN: u8 = 12;
const LENGTHS: u8 = 13;
const QUEUED: u8 = 14;

/// The bit of what matched at once.
const MATCHED: u8 = 1 << 6;

#[cfg(test)]
mod tests {
    use tagwire_base::Rank;

    use super::*;

    #[test]
    fn powers_of_two_have_sizes_of_their_own_and_others_lie_between() {
        assert_eq!(Size::of(0).bytes(), 0);
        for exponent in 0..62 {
            let bytes = 1 << exponent;
            assert_eq!(Size::of(bytes).bytes(), bytes);
            assert!(Size::of(bytes + bytes / 2) >= Size::of(bytes));
        }
        for bytes in 4..5_000_u64 {
            let (from, step) = (Size::of(bytes).bytes(), 1 << (bytes.ilog2() - 2));
            assert!((from..from + step).contains(&bytes), "{bytes}");
        }
        assert_eq!(Size::of(7).bytes(), 7);
        assert_eq!(Size::of(1279).bytes(), 1024);
        assert_eq!(Size::of(1280).bytes(), 1280);
        assert!(Size::of(u64::MAX).bytes() > 1 << 62);
    }

    #[test]
    fn what_is_written_is_read_and_the_rest_is_refused() {
        let envelope = Envelope {
            source: Rank::new(70_000),
            tag: Tag::internal(5),
            context: ContextId::new(0x1234),
        };
        let any = Pattern {
            source: SourceSelector::ANY,
            tag: TagSelector::ANY,
            context: ContextId::new(9),
        };
        let promise = ContextAssertions {
            no_any_source: true,
            no_any_tag: false,
            overtaking: true,
        };
        let both = Both {
            posted: u32::MAX,
            unexpected: 1 << 31,
        };
        for (event, matched, after) in [
            (Event::Post(any), false, 0),
            (Event::Post(Pattern::exact(envelope)), true, u32::MAX),
            (Event::Arrive(envelope, Size::of(4096)), true, 1),
            (Event::ArriveExpected(envelope), false, 2),
            (Event::Expects(envelope), true, 3),
            (Event::Probe(any), true, 4),
            (Event::Claim(any), false, 5),
            (Event::Cancel(u32::MAX), true, 6),
            (Event::Discard(0), false, 7),
            (Event::Promise(ContextId::new(9), promise), false, 8),
            (Event::Time(1 << 40 | 5), false, 0),
            (Event::Lost(1 << 33), false, 0),
            (Event::Begin(1 << 40 | 7), false, 0),
            (Event::Lengths(both), false, 0),
            (Event::Queued(both), false, 0),
        ] {
            let record = Record {
                event,
                matched,
                after,
            };
            let bytes = record.to_bytes();
            assert_eq!(Record::from_bytes(bytes), Ok(Some(record)));
            for bit in [4, 5, 7] {
                let mut other = bytes;
                other[0] |= 1 << bit;
                assert!(matches!(Record::from_bytes(other), Err(BadRecord::Call(_))));
            }
        }
        assert_eq!(Record::from_bytes([0; RECORD]), Ok(None));
        let mut nobody = [0; RECORD];
        nobody[0] = ARRIVE;
        nobody[4..8].fill(0xff);
        assert_eq!(Record::from_bytes(nobody), Err(BadRecord::Message));
    }
}
