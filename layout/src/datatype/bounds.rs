//! Bounds: where the data of a type begins and ends, and where the type does (MPI-5.0, section 5.1.6).

use crate::{Basic, Error, Result};

/// Bytes from a first one to the one behind the last, counted from the address of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) low: i64,
    pub(crate) high: i64,
}

impl Span {
    /// Returns the span of all copies that are displaced by what lies in `by`, both ends included.
    fn spread(self, by: Self) -> Result<Self> {
        Ok(Self {
            low: sum(self.low, by.low)?,
            high: sum(self.high, by.high)?,
        })
    }

    fn union(self, other: Self) -> Self {
        Self {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
        }
    }
}

/// The bounds of a type map: of its data, with its padding, and of its markers if it has any.
///
/// A marker stands for a bound that `resized` set. Where a type map has markers, they alone make its bounds. Without
/// them, the padded data does: parts with their padding, and the extent rounded up to the strictest alignment of a basic
/// type. A part at a displacement that is no multiple of its alignment thus keeps its padding, as in Open MPI and MPICH.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    data: Option<Span>,
    padded: Option<Span>,
    markers: Option<Span>,
    alignment: i64,
}

impl Bounds {
    /// Those of a type map without entries.
    pub(crate) const EMPTY: Self = Self {
        data: None,
        padded: None,
        markers: None,
        alignment: 1,
    };

    pub(crate) fn of(basic: Basic) -> Self {
        let high = match basic.pair() {
            Some((_, index)) => index_offset(basic) + index.size(),
            None => basic.size(),
        };
        Self {
            data: Some(Span {
                low: 0,
                high: high as i64,
            }),
            padded: Some(Span {
                low: 0,
                high: basic.extent() as i64,
            }),
            markers: None,
            alignment: basic.alignment() as i64,
        }
    }

    /// Returns the bounds of all copies that are displaced by what lies in `by`, both ends included.
    pub(crate) fn spread(self, by: Span) -> Result<Self> {
        Ok(Self {
            data: self.data.map(|data| data.spread(by)).transpose()?,
            padded: self.padded.map(|padded| padded.spread(by)).transpose()?,
            markers: self.markers.map(|markers| markers.spread(by)).transpose()?,
            alignment: self.alignment,
        })
    }

    /// Returns the bounds of two type maps that are made one.
    pub(crate) fn union(self, other: Self) -> Self {
        let both = |one: Option<Span>, other: Option<Span>| match (one, other) {
            (Some(one), Some(other)) => Some(one.union(other)),
            (one, other) => one.or(other),
        };
        Self {
            data: both(self.data, other.data),
            padded: both(self.padded, other.padded),
            markers: both(self.markers, other.markers),
            alignment: self.alignment.max(other.alignment),
        }
    }

    /// Returns the same with markers in place of all that there were.
    pub(crate) fn resized(self, lower: i64, extent: i64) -> Result<Self> {
        let markers = Span {
            low: lower,
            high: sum(lower, extent)?,
        };
        Ok(Self {
            markers: Some(markers),
            ..self
        })
    }

    /// Returns the span of the data; none where there is no data.
    pub(crate) const fn data(self) -> Option<Span> {
        self.data
    }

    /// Returns the bounds of a type map that is complete: with the padding at its end.
    pub(crate) fn complete(self) -> Result<Self> {
        let Some(Span { low, high }) = self.padded else {
            return Ok(self);
        };
        let bytes = i128::from(high) - i128::from(low);
        let alignment = i128::from(self.alignment);
        let extent = (bytes + alignment - 1) / alignment * alignment;
        let high = narrow(i128::from(low) + extent)?;
        Ok(Self {
            padded: Some(Span { low, high }),
            ..self
        })
    }

    /// Returns the lower bound and the upper one.
    pub(crate) fn ends(self) -> Span {
        let nothing = Span { low: 0, high: 0 };
        self.markers.or(self.padded).unwrap_or(nothing)
    }
}

/// Returns where the second part of a pair begins, as C lays it out.
pub(crate) fn index_offset(pair: Basic) -> usize {
    match pair.pair() {
        Some((value, index)) => value.size().next_multiple_of(index.alignment()),
        None => 0,
    }
}

/// Returns a number of bytes, if 64 bits hold it.
pub(crate) fn narrow(bytes: i128) -> Result<i64> {
    i64::try_from(bytes).map_err(|_| Error::Overflow)
}

pub(crate) fn sum(one: i64, other: i64) -> Result<i64> {
    one.checked_add(other).ok_or(Error::Overflow)
}

/// Returns the product of a displacement or an extent with a number of times.
pub(crate) fn times(one: i64, other: i64) -> Result<i64> {
    one.checked_mul(other).ok_or(Error::Overflow)
}

/// Returns a count as a number that displacements are computed with.
pub(crate) fn signed(count: u64) -> Result<i64> {
    i64::try_from(count).map_err(|_| Error::Overflow)
}

/// Returns the displacements of the first and the last of `count` copies that are `stride` apart, the lower one first.
pub(crate) fn row(count: u64, stride: i64) -> Result<Span> {
    let last = times(stride, signed(count.saturating_sub(1))?)?;
    Ok(Span {
        low: last.min(0),
        high: last.max(0),
    })
}
