//! Virtual time: moments and spans in picoseconds, costs of bytes in femtoseconds.

use std::fmt;
use std::ops::{Add, AddAssign};
use std::time::Duration;

/// A span of virtual time. The unit is the picosecond: the bytes of fast links take tens of them each.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

impl Span {
    /// No time.
    pub const ZERO: Self = Self(0);

    /// Returns a span of so many picoseconds.
    #[must_use]
    pub const fn picos(picos: u64) -> Self {
        Self(picos)
    }

    /// Returns a span of so many nanoseconds.
    #[must_use]
    pub const fn nanos(nanos: u64) -> Self {
        Self(nanos.saturating_mul(1000))
    }

    /// Returns what is left of it after `other`.
    pub(crate) const fn less(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Returns its length in picoseconds.
    #[must_use]
    pub const fn as_picos(self) -> u64 {
        self.0
    }
}

impl From<Duration> for Span {
    fn from(time: Duration) -> Self {
        Self::nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl Add for Span {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

/// In the largest unit in which it is a number without a fraction: `900 ns`.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(1_000_000, "us"), (1000, "ns")];
        let unit = units.iter().find(|(size, _)| self.0.is_multiple_of(*size));
        match unit {
            Some(&(size, name)) => write!(f, "{} {name}", self.0 / size),
            None => write!(f, "{} ps", self.0),
        }
    }
}

/// What each byte of a message costs: a time per byte, in femtoseconds (1000 are a picosecond per byte, which is
/// 1000 GB/s).
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct PerByte(u64);

impl PerByte {
    /// Bytes cost nothing.
    pub const ZERO: Self = Self(0);

    /// Returns so many femtoseconds per byte.
    #[must_use]
    pub const fn femtos(femtos: u64) -> Self {
        Self(femtos)
    }

    /// Returns the femtoseconds per byte.
    #[must_use]
    pub const fn as_femtos(self) -> u64 {
        self.0
    }

    /// Returns how long `bytes` take, rounded down to a picosecond.
    #[must_use]
    pub const fn of(self, bytes: usize) -> Span {
        let femtos = self.0 as u128 * bytes as u128;
        Span((femtos / 1000) as u64)
    }
}

/// A moment of virtual time. The default is the start.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(u64);

impl Moment {
    /// Later than all that comes.
    pub(crate) const MAX: Self = Self(u64::MAX);

    /// Returns how long before this moment the start was.
    #[must_use]
    pub const fn since_start(self) -> Span {
        Span(self.0)
    }

    /// Returns the time since a moment; nothing where that is later.
    pub(crate) const fn since(self, before: Self) -> Span {
        Span(self.0.saturating_sub(before.0))
    }

    /// Returns the whole nanoseconds since the start, which a rank's clock shows.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0 / 1000
    }
}

impl Add<Span> for Moment {
    type Output = Self;

    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Moment {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_take_their_time() {
        // 12.1 GB/s.
        let rate = PerByte::femtos(82_600);
        assert_eq!(rate.of(1), Span::picos(82));
        assert_eq!(rate.of(10_000), Span::picos(826_000));
        assert_eq!(PerByte::femtos(u64::MAX).of(0), Span::ZERO);
    }

    #[test]
    fn spans_are_shown_without_fractions() {
        let shown = [
            Span::nanos(900),
            Span::nanos(2000),
            Span::picos(1),
            Span::ZERO,
        ];
        assert_eq!(
            shown.map(|span| span.to_string()),
            ["900 ns", "2 us", "1 ps", "0 us"]
        );
    }
}
