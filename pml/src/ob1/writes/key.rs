//! The key of a channel, and the numbers by which its writes are told.
//!
//! ```text
//!   0  channel    u64   the receiver's handle
//!   8  flags      u32   1 where writes have numbers, 2 where the buffer has room for two rounds
//!  12  first      u32   the first of them
//!  16  address    u64   of the receiver's buffer
//!  24  key              of its registration: the rest
//! ```

use std::ops::Range;

use tagwire_transport::Buffering;

use crate::slab::Handle;

/// What a sender needs to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key<'a> {
    pub channel: Handle,
    /// The first number, where writes have numbers.
    pub first: Option<u32>,
    pub buffering: Buffering,
    pub address: u64,
    /// Of the registration.
    pub memory: &'a [u8],
}

const NUMBERED: u64 = 1;
const DOUBLE: u64 = 2;

/// Bytes in front of the registration's key.
const FRONT: usize = 24;

/// The longest key of a registration that a reply has room for.
const LONGEST: usize = 71;

impl<'a> Key<'a> {
    pub(super) const fn has_room_for(memory: &[u8]) -> bool {
        memory.len() <= LONGEST
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let numbers = self
            .first
            .map_or(0, |first| NUMBERED | u64::from(first) << 32);
        let double = match self.buffering {
            Buffering::Single => 0,
            Buffering::Double => DOUBLE,
        };
        let words = [self.channel.to_wire(), numbers | double, self.address];
        let mut out: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        out.extend_from_slice(self.memory);
        out
    }

    pub(super) fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (front, memory) = bytes.split_first_chunk::<FRONT>()?;
        let mut words = [0; FRONT / 8];
        for (word, bytes) in words.iter_mut().zip(front.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().ok()?);
        }
        let [channel, numbers, address] = words;
        let buffering = match numbers & DOUBLE {
            0 => Buffering::Single,
            _ => Buffering::Double,
        };
        let first = (numbers >> 32) as u32;
        let first = match u64::from(numbers as u32) & !DOUBLE {
            0 if first == 0 => None,
            NUMBERED => Some(first),
            _ => return None,
        };
        Some(Self {
            channel: Handle::from_wire(channel),
            first,
            buffering,
            address,
            memory,
        })
    }
}

/// Neighbouring transport partitions, in one of the buffer's rooms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run {
    pub room: usize,
    pub units: Range<u32>,
}

/// The numbers of a channel: one for each run of neighbouring transport partitions, or, where that would
/// be too many, one for each partition; and so for each room of the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Numbers {
    first: u32,
    units: u32,
    buffering: Buffering,
}

impl Numbers {
    /// Most transport partitions of which runs have numbers: a million numbers of four thousand million.
    const MOST_IN_RUNS: u32 = 1 << 10;

    pub(super) const fn new(first: u32, units: u32, buffering: Buffering) -> Self {
        Self {
            first,
            units,
            buffering,
        }
    }

    pub(super) const fn first(self) -> u32 {
        self.first
    }

    /// How many a channel of `units` transport partitions takes.
    pub(super) const fn count(units: u32, buffering: Buffering) -> u32 {
        Self::in_room(units) * buffering.rooms() as u32
    }

    /// How many each room takes.
    const fn in_room(units: u32) -> u32 {
        if units <= Self::MOST_IN_RUNS {
            units * units
        } else {
            units
        }
    }

    /// The number after the last.
    pub(super) const fn end(self) -> u32 {
        self.first + Self::count(self.units, self.buffering)
    }

    /// The longest run that has a number.
    pub(super) const fn longest(self) -> u32 {
        if self.units <= Self::MOST_IN_RUNS {
            self.units
        } else {
            1
        }
    }

    /// The number of a run, which is not empty and not too long.
    pub(super) fn number(self, run: &Run) -> u64 {
        let Range { start, end } = run.units;
        let place = match self.longest() {
            1 => start,
            longest => start * longest + (end - start - 1),
        };
        let room = run.room as u32 * Self::in_room(self.units);
        u64::from(self.first.wrapping_add(room).wrapping_add(place))
    }

    /// The run with this number.
    pub(super) fn run(self, number: u32) -> Option<Run> {
        let place = number.checked_sub(self.first)?;
        let in_room = Self::in_room(self.units).max(1);
        let (room, place) = ((place / in_room) as usize, place % in_room);
        let (start, len) = match self.longest() {
            1 => (place, 1),
            longest => (place / longest, place % longest + 1),
        };
        let end = start.checked_add(len)?;
        (room < self.buffering.rooms() && end <= self.units).then_some(Run {
            room,
            units: start..end,
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use super::*;

    #[test]
    fn runs_come_back_by_their_numbers() {
        for units in [1, 2, 3, 17, 1024, 1025, 70_000] {
            let numbers = Numbers::new(1000, units, Buffering::Double);
            let starts = (0..units).step_by(1 + units as usize / 40);
            for (start, room) in starts.chain([units - 1]).zip([0, 1].into_iter().cycle()) {
                for len in [1, 2, 3, units / 2, units] {
                    let run = start..start.saturating_add(len);
                    if run.is_empty() || run.end > units || len > numbers.longest() {
                        continue;
                    }
                    let run = Run { room, units: run };
                    let number = numbers.number(&run) as u32;
                    assert!((numbers.first()..numbers.end()).contains(&number));
                    assert_eq!(numbers.run(number), Some(run));
                }
            }
            assert_eq!(numbers.run(999), None);
            assert_eq!(numbers.run(numbers.end()), None);
        }
    }

    #[test]
    fn numbers_name_runs_inside_or_none() {
        for buffering in [Buffering::Single, Buffering::Double] {
            let numbers = Numbers::new(0, 7, buffering);
            let runs: Vec<_> = (0..120).filter_map(|number| numbers.run(number)).collect();
            let rooms = buffering.rooms();
            assert_eq!(runs.len(), rooms * 7 * 8 / 2, "each run once");
            let exists =
                |run: &Run| run.units.end <= 7 && !run.units.is_empty() && run.room < rooms;
            assert!(runs.iter().all(exists));
        }
    }

    #[test]
    fn keys_come_back() {
        let firsts = [None, Some(0), Some(u32::MAX)];
        let bufferings = [Buffering::Single, Buffering::Double];
        for (first, buffering) in firsts
            .into_iter()
            .flat_map(|first| bufferings.map(|one| (first, one)))
        {
            let key = Key {
                channel: Handle::from_wire(0x0012_3456_0000_0007),
                first,
                buffering,
                address: u64::MAX - 3,
                memory: b"a key",
            };
            let bytes = key.encode();
            assert_eq!(Key::decode(&bytes), Some(key));
            for len in 0..FRONT {
                assert_eq!(Key::decode(&bytes[..len]), None, "{len} bytes");
            }
        }
        let mut odd = [0; FRONT];
        odd[8] = 4;
        assert_eq!(Key::decode(&odd), None);
    }
}
