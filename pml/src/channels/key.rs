//! The key of a channel, and the numbers by which its writes are told.
//!
//! ```text
//!   0  channel    u64   the receiver's handle
//!   8  flags      u32   1 where writes have numbers, 2 where the buffer has room for two rounds,
//!                       4 where words behind the bytes tell of them
//!  12  first      u32   the first number; with words the length of their key
//!  16  address    u64   of the receiver's buffer
//! [24  words      u64   the address of the first]
//! [..  key              of the words' registration]
//!  ..  key              of the buffer's registration: the rest
//! ```

use std::ops::Range;

use tagwire_transport::Buffering;

use crate::slab::Handle;

/// What a sender needs to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key<'a> {
    pub channel: Handle,
    pub notification: Notification<'a>,
    pub buffering: Buffering,
    pub address: u64,
    /// Of the registration.
    pub memory: &'a [u8],
}

/// How the receiver hears of what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notification<'a> {
    /// Each write has a number, from this one on.
    Numbers(u32),
    /// By words at this address, under this key.
    Words(u64, &'a [u8]),
    /// By messages.
    Messages,
}

const NUMBERED: u64 = 1;
const DOUBLE: u64 = 2;
const WORDS: u64 = 4;

/// The longest key of a partitioned channel, in bytes: what a handshake has room for.
pub(crate) const LONGEST_KEY: usize = 184;

/// Bytes in front of the registration's key.
const FRONT: usize = 24;

/// The longest key of a registration that a channel's key has room for, behind its first byte.
const LONGEST: usize = LONGEST_KEY - 1 - FRONT;

impl<'a> Key<'a> {
    pub(super) const fn has_room_for(memory: &[u8]) -> bool {
        memory.len() <= LONGEST
    }

    /// Whether there is room for the address of words and their key as well.
    pub(super) const fn has_room_for_words(memory: &[u8], key: &[u8]) -> bool {
        memory.len() + size_of::<u64>() + key.len() <= LONGEST
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let told = match self.notification {
            Notification::Numbers(first) => NUMBERED | u64::from(first) << 32,
            Notification::Words(_, key) => WORDS | (key.len() as u64) << 32,
            Notification::Messages => 0,
        };
        let double = match self.buffering {
            Buffering::Single => 0,
            Buffering::Double => DOUBLE,
        };
        let words = [self.channel.to_wire(), told | double, self.address];
        let mut out: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        if let Notification::Words(address, key) = self.notification {
            out.extend(address.to_le_bytes());
            out.extend_from_slice(key);
        }
        out.extend_from_slice(self.memory);
        out
    }

    pub(super) fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (front, memory) = bytes.split_first_chunk::<FRONT>()?;
        let mut words = [0; FRONT / 8];
        for (word, bytes) in words.iter_mut().zip(front.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().ok()?);
        }
        let [channel, flags, address] = words;
        let buffering = match flags & DOUBLE {
            0 => Buffering::Single,
            _ => Buffering::Double,
        };
        let first = (flags >> 32) as u32;
        let (notification, memory) = match u64::from(flags as u32) & !DOUBLE {
            0 if first == 0 => (Notification::Messages, memory),
            NUMBERED => (Notification::Numbers(first), memory),
            WORDS => {
                let (address, rest) = memory.split_first_chunk()?;
                let (key, memory) = rest.split_at_checked(first as usize)?;
                (
                    Notification::Words(u64::from_le_bytes(*address), key),
                    memory,
                )
            }
            _ => return None,
        };
        Some(Self {
            channel: Handle::from_wire(channel),
            notification,
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
    fn keys_of_two_networks_have_room() {
        let memory = [0; 2 + 2 * (4 + 25)];
        assert!(Key::has_room_for_words(&memory, &memory));
    }

    #[test]
    fn keys_come_back() {
        let ways = [
            Notification::Messages,
            Notification::Numbers(0),
            Notification::Numbers(u32::MAX),
            Notification::Words(u64::MAX, b"of words"),
            Notification::Words(0, b""),
        ];
        let bufferings = [Buffering::Single, Buffering::Double];
        for (told, buffering) in ways
            .into_iter()
            .flat_map(|told| bufferings.map(|one| (told, one)))
        {
            let key = Key {
                channel: Handle::from_wire(0x0012_3456_0000_0007),
                notification: told,
                buffering,
                address: u64::MAX - 3,
                memory: b"a key",
            };
            let bytes = key.encode();
            assert_eq!(Key::decode(&bytes), Some(key));
            let least = match told {
                Notification::Words(_, key) => FRONT + size_of::<u64>() + key.len(),
                _ => FRONT,
            };
            for len in 0..least {
                assert_eq!(Key::decode(&bytes[..len]), None, "{len} bytes");
            }
        }
        for flags in [5, 8] {
            let mut odd = [0; FRONT];
            odd[8] = flags;
            assert_eq!(Key::decode(&odd), None);
        }
    }
}
