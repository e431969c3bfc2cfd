//! The ways of copying, and sets of them.

use super::stream::CAN_STREAM;

/// How a copy is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// By plain stores.
    Plain,
    /// Past the caches.
    Stream,
    /// By plain stores into memory that this processor has read last, where there is some.
    Reuse,
}

impl Way {
    pub(crate) const ALL: [Self; 3] = [Self::Plain, Self::Stream, Self::Reuse];

    /// Returns the way with this number, modulo their count.
    pub(super) const fn of(number: u32) -> Self {
        Self::ALL[number as usize % Self::ALL.len()]
    }
}

/// Some of the ways, in the order of [`Way::ALL`]: at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ways(u8);

impl Ways {
    pub(crate) const PLAIN: Self = Self::only(Way::Plain);

    /// Returns the ways of stores that go past the caches always or never, or by trial where there are such.
    pub(crate) const fn of_stores(streams: Option<bool>) -> Self {
        match streams {
            None if CAN_STREAM => Self::PLAIN.and(Way::Stream),
            Some(true) => Self::only(Way::Stream),
            _ => Self::PLAIN,
        }
    }

    /// Returns `way` alone.
    pub(super) const fn only(way: Way) -> Self {
        Self(1 << way as u8)
    }

    /// Returns these and `way`.
    pub(crate) const fn and(self, way: Way) -> Self {
        Self(self.0 | 1 << way as u8)
    }

    /// Returns these without `way`, or where there is no other one, `Plain`.
    pub(super) const fn without(self, way: Way) -> Self {
        match self.0 & !(1 << way as u8) {
            0 => Self::PLAIN,
            left => Self(left),
        }
    }

    const fn has(self, way: Way) -> bool {
        self.0 & 1 << way as u8 != 0
    }

    pub(super) fn iter(self) -> impl Iterator<Item = Way> {
        Way::ALL.into_iter().filter(move |way| self.has(*way))
    }

    pub(super) const fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// The first of them.
    pub(super) fn first(self) -> Way {
        self.nth(0)
    }

    /// Returns the one with number `number`, modulo their count.
    pub(super) fn nth(self, number: u32) -> Way {
        let mut ways = self.iter();
        let way = ways.nth((number % self.count()) as usize);
        way.unwrap_or(Way::Plain)
    }
}
