//! Layouts: how values lie in memory.

use crate::{Basic, Error, Result};

/// How the values of one element lie in memory: what MPI calls a datatype (MPI-5.0, section 5.1).
///
/// A layout is a basic type or a contiguous block of one. A clone is cheap.
///
/// ```
/// use tagwire_layout::{Basic, Layout};
///
/// let row = Layout::of(Basic::F64).contiguous(100)?;
/// assert_eq!((row.size(), row.extent(), row.basic()), (800, 800, Some(Basic::F64)));
/// # Ok::<(), tagwire_layout::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Layout {
    /// Derived types will need more; what is asked of a layout is asked by its methods only.
    basic: Basic,
    count: usize,
}

impl Layout {
    /// Returns the layout of one value.
    #[must_use]
    pub const fn of(basic: Basic) -> Self {
        Self { basic, count: 1 }
    }

    /// Returns the layout of `count` neighbours of this one (MPI-5.0, section 5.1.2).
    ///
    /// # Errors
    ///
    /// [`Error::TooLong`] if the extent is more than an object in memory can have.
    pub fn contiguous(&self, count: usize) -> Result<Self> {
        let extent = self.extent();
        match extent.checked_mul(count) {
            Some(bytes) if isize::try_from(bytes).is_ok() => Ok(Self {
                basic: self.basic,
                count: self.count * count,
            }),
            _ => Err(Error::TooLong { count, extent }),
        }
    }

    /// Returns how many bytes of data an element has, without gaps and padding.
    #[must_use]
    pub const fn size(&self) -> usize {
        self.basic.size() * self.count
    }

    /// Returns how many bytes lie between the beginnings of two neighbours.
    #[must_use]
    pub const fn extent(&self) -> usize {
        self.basic.extent() * self.count
    }

    /// Returns the basic type of all values, where they have the same.
    #[must_use]
    pub const fn basic(&self) -> Option<Basic> {
        Some(self.basic)
    }

    /// Returns whether the data is one block without gaps, also from an element to its neighbour.
    ///
    /// The pairs with padding are not contiguous.
    #[must_use]
    pub const fn is_contiguous(&self) -> bool {
        self.size() == self.extent()
    }
}

impl From<Basic> for Layout {
    fn from(basic: Basic) -> Self {
        Self::of(basic)
    }
}
