//! Datatypes: the derived types of MPI as values (MPI-5.0, section 5.1).

mod array;
pub(crate) mod bounds;
mod constructor;
mod make;

use std::sync::Arc;

use bounds::{Bounds, Span};
pub use constructor::{Constructor, Distributed, Distribution, Member, Order, Slice, VectorShape};

use crate::Basic;

/// A type map, as the constructors of MPI make it: which basic types lie where (MPI-5.0, section 5.1).
///
/// A datatype is the tree of its constructors, kept as given, with its size and its bounds. A clone is cheap. To move data,
/// make a [`Program`](crate::Program) of it, as `MPI_Type_commit` does.
///
/// Displacements and extents have 64 bits and may be negative. Counts have 64 bits and may be 0: then no elements are
/// made, and there is no effect on bounds.
///
/// Bounds follow the definition by type maps and markers (MPI-5.0, section 5.1.6). [`resized`](Self::resized) sets markers
/// in place of those that there were. A type map with markers anywhere has its bounds from them alone. One without has them
/// from its data, with the extent rounded up to the strictest alignment of its basic types. There, parts count with the
/// padding at their end, as in Open MPI and MPICH. It makes a difference to the letter of the standard only where a part's
/// displacement is no multiple of its alignment, or where the lower bound is none.
///
/// ```
/// use tagwire_layout::{Basic, Datatype, Member};
///
/// let column = Datatype::of(Basic::F64).vector(4, 1, 10)?;
/// assert_eq!((column.size(), column.extent()), (32, 248));
///
/// let member = |displacement, basic| Member { count: 1, displacement, of: Datatype::of(basic) };
/// let both = Datatype::structure([member(0, Basic::F64), member(8, Basic::Char)])?;
/// assert_eq!((both.size(), both.extent(), both.true_extent()), (9, 16, 9));
/// # Ok::<(), tagwire_layout::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Datatype(Arc<Node>);

/// What is known of a datatype when it has been made.
#[derive(Debug)]
struct Node {
    constructor: Constructor,
    /// Simpler types that lay out the same, for those that have no program of their own.
    lowered: Option<Datatype>,
    size: i64,
    bounds: Bounds,
    ends: Span,
    depth: u32,
}

impl Datatype {
    /// How many constructors may stand in each other.
    pub const DEPTH: u32 = 500;

    /// Returns how it was made.
    #[must_use]
    pub fn constructor(&self) -> &Constructor {
        &self.0.constructor
    }

    /// Returns the basic type, if it is one and nothing more.
    #[must_use]
    pub fn basic(&self) -> Option<Basic> {
        match self.0.constructor {
            Constructor::Named(basic) => Some(basic),
            _ => None,
        }
    }

    /// Returns how many bytes of data an element has, as `MPI_Type_size`.
    #[must_use]
    pub fn size(&self) -> i64 {
        self.0.size
    }

    /// Returns the lower bound: where the element begins, from the address of the buffer.
    #[must_use]
    pub fn lower(&self) -> i64 {
        self.0.ends.low
    }

    /// Returns the upper bound: where the element ends.
    #[must_use]
    pub fn upper(&self) -> i64 {
        self.0.ends.high
    }

    /// Returns how many bytes lie between two neighbours, as `MPI_Type_get_extent`. It may be negative.
    #[must_use]
    pub fn extent(&self) -> i64 {
        self.upper() - self.lower()
    }

    /// Returns where the data begins, as `MPI_Type_get_true_extent` (MPI-5.0, section 5.1.8): 0 where there is none.
    #[must_use]
    pub fn true_lower(&self) -> i64 {
        self.0.bounds.data().map_or(0, |data| data.low)
    }

    /// Returns where the data ends: 0 where there is none.
    #[must_use]
    pub fn true_upper(&self) -> i64 {
        self.0.bounds.data().map_or(0, |data| data.high)
    }

    /// Returns how many bytes the data spans, gaps included.
    #[must_use]
    pub fn true_extent(&self) -> i64 {
        self.true_upper() - self.true_lower()
    }

    /// Returns whether both are the same object: clones of one datatype, not only equal ones.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the simpler types that an array is made of.
    pub(crate) fn lowered(&self) -> Option<&Self> {
        self.0.lowered.as_ref()
    }

    /// Returns a number that no other datatype has while this one is there.
    pub(crate) fn identity(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }
}

impl From<Basic> for Datatype {
    fn from(basic: Basic) -> Self {
        Self::of(basic)
    }
}
