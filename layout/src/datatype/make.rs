//! The constructors of datatypes, but for those of arrays (MPI-5.0, sections 5.1.2, 5.1.7 and 5.1.10).

use std::sync::Arc;

use super::bounds::{Bounds, Span, row, signed, sum, times};
use super::{Constructor, Datatype, Member, Node, VectorShape};
use crate::{Basic, Error, Result};

impl Datatype {
    /// Returns the datatype of one value.
    #[must_use]
    pub fn of(basic: Basic) -> Self {
        let bounds = Bounds::of(basic);
        let (low, high) = (0, basic.extent() as i64);
        debug_assert_eq!(bounds.ends(), Span { low, high });
        Self(Arc::new(Node {
            constructor: Constructor::Named(basic),
            lowered: None,
            size: basic.size() as i64,
            bounds,
            ends: Span { low, high },
            depth: 1,
        }))
    }

    /// Returns `count` neighbours (MPI-5.0, section 5.1.2).
    ///
    /// # Errors
    ///
    /// [`Error::Overflow`] if the size or a bound does not fit 64 bits. [`Error::TooDeep`] if more than
    /// [`DEPTH`](Self::DEPTH) constructors stand in each other. All constructors have these two.
    pub fn contiguous(&self, count: u64) -> Result<Self> {
        let of = self.clone();
        self.replicated(Constructor::Contiguous { count, of }, 1, count, 0)
    }

    /// Returns `count` blocks of `length` neighbours each. The blocks are `stride` extents apart (MPI-5.0, section 5.1.2).
    ///
    /// # Errors
    ///
    /// As [`contiguous`](Self::contiguous).
    pub fn vector(&self, count: u64, length: u64, stride: i64) -> Result<Self> {
        let shape = VectorShape {
            count,
            length,
            stride,
        };
        let of = self.clone();
        let bytes = times(stride, self.extent())?;
        self.replicated(Constructor::Vector { shape, of }, count, length, bytes)
    }

    /// Returns `count` blocks of `length` neighbours each. The blocks are `stride` bytes apart (MPI-5.0, section 5.1.2).
    ///
    /// # Errors
    ///
    /// As [`contiguous`](Self::contiguous).
    pub fn hvector(&self, count: u64, length: u64, stride: i64) -> Result<Self> {
        let shape = VectorShape {
            count,
            length,
            stride,
        };
        let of = self.clone();
        self.replicated(Constructor::Hvector { shape, of }, count, length, stride)
    }

    /// Returns blocks of neighbours, each with its length and its displacement in extents (MPI-5.0, section 5.1.2).
    ///
    /// # Errors
    ///
    /// As [`contiguous`](Self::contiguous). [`Error::Argument`] if there are not as many displacements as lengths.
    pub fn indexed(&self, lengths: &[u64], displacements: &[i64]) -> Result<Self> {
        self.scattered(lengths, displacements, self.extent())?
            .made(Constructor::Indexed {
                lengths: lengths.into(),
                displacements: displacements.into(),
                of: self.clone(),
            })
    }

    /// Returns blocks of neighbours, each with its length and its displacement in bytes (MPI-5.0, section 5.1.2).
    ///
    /// # Errors
    ///
    /// As [`indexed`](Self::indexed).
    pub fn hindexed(&self, lengths: &[u64], displacements: &[i64]) -> Result<Self> {
        self.scattered(lengths, displacements, 1)?
            .made(Constructor::Hindexed {
                lengths: lengths.into(),
                displacements: displacements.into(),
                of: self.clone(),
            })
    }

    /// Returns blocks of `length` neighbours, each with its displacement in extents (MPI-5.0, section 5.1.2).
    ///
    /// # Errors
    ///
    /// As [`contiguous`](Self::contiguous).
    pub fn indexed_block(&self, length: u64, displacements: &[i64]) -> Result<Self> {
        self.scattered_equally(length, displacements, self.extent())?
            .made(Constructor::IndexedBlock {
                length,
                displacements: displacements.into(),
                of: self.clone(),
            })
    }

    /// Returns blocks of `length` neighbours, each with its displacement in bytes (MPI-5.0, section 5.1.2).
    ///
    /// # Errors
    ///
    /// As [`contiguous`](Self::contiguous).
    pub fn hindexed_block(&self, length: u64, displacements: &[i64]) -> Result<Self> {
        self.scattered_equally(length, displacements, 1)?
            .made(Constructor::HindexedBlock {
                length,
                displacements: displacements.into(),
                of: self.clone(),
            })
    }

    /// Returns a struct of members, in their order (MPI-5.0, section 5.1.2).
    ///
    /// # Errors
    ///
    /// As [`contiguous`](Self::contiguous).
    pub fn structure(members: impl Into<Box<[Member]>>) -> Result<Self> {
        let members = members.into();
        let mut parts = Parts::EMPTY;
        for member in &members {
            parts.add(&member.of, member.count, member.displacement)?;
        }
        parts.made(Constructor::Struct(members))
    }

    /// Returns the same data with a lower bound and an extent that are given (MPI-5.0, section 5.1.7).
    ///
    /// # Errors
    ///
    /// As [`contiguous`](Self::contiguous).
    pub fn resized(&self, lower: i64, extent: i64) -> Result<Self> {
        let of = self.clone();
        let parts = Parts {
            size: self.0.size,
            bounds: self.0.bounds.resized(lower, extent)?,
            depth: self.0.depth,
        };
        parts.made(Constructor::Resized { lower, extent, of })
    }

    /// Returns another datatype with the same type map (MPI-5.0, section 5.1.10). Duplicates of duplicates stand in no deeper
    /// nest than one.
    ///
    /// # Errors
    ///
    /// As [`contiguous`](Self::contiguous).
    pub fn duplicate(&self) -> Result<Self> {
        let of = match self.constructor() {
            Constructor::Duplicate(of) => of,
            _ => self,
        };
        Parts::of(of).made(Constructor::Duplicate(of.clone()))
    }

    /// Returns what a constructor of arrays makes: a datatype that is laid out as `lowered`.
    pub(super) fn lowered_to(lowered: Self, constructor: Constructor) -> Result<Self> {
        let mut made = Parts::of(&lowered).node(constructor)?;
        made.lowered = Some(lowered);
        Ok(Self(Arc::new(made)))
    }

    /// Returns `count` blocks, `stride` bytes apart, of `length` neighbours.
    fn replicated(
        &self,
        constructor: Constructor,
        count: u64,
        length: u64,
        stride: i64,
    ) -> Result<Self> {
        let mut parts = Parts::EMPTY;
        parts.depth = self.0.depth;
        if count > 0 && length > 0 {
            let blocks = row(count, stride)?;
            let block = Parts::neighbours(self, length)?;
            parts.size = times(block.size, signed(count)?)?;
            parts.bounds = block.bounds.spread(blocks)?;
        }
        parts.made(constructor)
    }

    fn scattered(&self, lengths: &[u64], displacements: &[i64], unit: i64) -> Result<Parts> {
        if lengths.len() != displacements.len() {
            return Err(Error::Argument(
                "lengths and displacements differ in number",
            ));
        }
        let mut parts = Parts::EMPTY;
        parts.depth = self.0.depth;
        for (length, displacement) in lengths.iter().zip(displacements) {
            parts.add(self, *length, times(*displacement, unit)?)?;
        }
        Ok(parts)
    }

    fn scattered_equally(&self, length: u64, displacements: &[i64], unit: i64) -> Result<Parts> {
        let mut parts = Parts::EMPTY;
        parts.depth = self.0.depth;
        let ends = (displacements.iter().min(), displacements.iter().max());
        if let (Some(low), Some(high), 1..) = (ends.0, ends.1, length) {
            let (one, other) = (times(*low, unit)?, times(*high, unit)?);
            let block = Parts::neighbours(self, length)?;
            parts.size = times(block.size, signed(displacements.len() as u64)?)?;
            parts.bounds = block.bounds.spread(Span {
                low: one.min(other),
                high: one.max(other),
            })?;
        }
        Ok(parts)
    }
}

/// What is known of a type map while its parts are added.
struct Parts {
    size: i64,
    bounds: Bounds,
    depth: u32,
}

impl Parts {
    const EMPTY: Self = Self {
        size: 0,
        bounds: Bounds::EMPTY,
        depth: 0,
    };

    fn of(of: &Datatype) -> Self {
        Self {
            size: of.0.size,
            bounds: of.0.bounds,
            depth: of.0.depth,
        }
    }

    /// `count` neighbours, of which there is at least one.
    fn neighbours(of: &Datatype, count: u64) -> Result<Self> {
        Ok(Self {
            size: times(of.0.size, signed(count)?)?,
            bounds: of.0.bounds.spread(row(count, of.extent())?)?,
            depth: of.0.depth,
        })
    }

    /// Adds `count` neighbours at a displacement.
    fn add(&mut self, of: &Datatype, count: u64, displacement: i64) -> Result<()> {
        self.depth = self.depth.max(of.0.depth);
        if count > 0 {
            let block = Self::neighbours(of, count)?;
            let place = Span {
                low: displacement,
                high: displacement,
            };
            self.size = sum(self.size, block.size)?;
            self.bounds = self.bounds.union(block.bounds.spread(place)?);
        }
        Ok(())
    }

    fn node(self, constructor: Constructor) -> Result<Node> {
        let bounds = self.bounds.complete()?;
        let ends = bounds.ends();
        let extents = [Some(ends), bounds.data()];
        for span in extents.into_iter().flatten() {
            span.high.checked_sub(span.low).ok_or(Error::Overflow)?;
        }
        if self.depth >= Datatype::DEPTH {
            return Err(Error::TooDeep);
        }
        Ok(Node {
            constructor,
            lowered: None,
            size: self.size,
            bounds,
            ends,
            depth: self.depth + 1,
        })
    }

    fn made(self, constructor: Constructor) -> Result<Datatype> {
        Ok(Datatype(Arc::new(self.node(constructor)?)))
    }
}
