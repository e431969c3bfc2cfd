//! Operations: how two ranks' values become one (MPI-5.0, section 6.9).

use std::sync::Arc;

use crate::kernel::Kernel;
use crate::{Basic, Error, Layout, Result, UserOperation};

/// An operation of reductions and of accumulation.
///
/// Each is a function of a left value, of the lower rank, and a right value. The three `combine` methods differ in where
/// the result goes and in nothing else. All work element by element: a buffer may be cut anywhere between elements, and
/// processors with other instructions get the same bytes.
///
/// | operation | integers | floating point | complex | `Bool`, logicals | `Byte` | pairs |
/// |---|---|---|---|---|---|---|
/// | `Sum`, `Product` | wrap | yes | yes | | | |
/// | `Min`, `Max` | yes | yes | | | | |
/// | `LogicalAnd`, `LogicalOr`, `LogicalXor` | 0 or 1 | | | 0 or 1 | | |
/// | `BitAnd`, `BitOr`, `BitXor` | yes | | | | yes | |
/// | `MinLoc`, `MaxLoc` | | | | | | yes |
/// | `Replace`, `NoOp`, `User` | yes | yes | yes | yes | yes | yes |
///
/// - `Min` is C's `left < right ? left : right`, and `Max` its mirror image. Where neither is less, as with a NaN or
///   with zeros of both signs, the result is the right value.
/// - `MinLoc` and `MaxLoc` take the lower index where the values are equal, and the right pair where one is a NaN. They
///   set the padding of their results to 0.
/// - Integers are also `Long` and `UnsignedLong`. For `Char` and `WideChar` no column holds.
/// - `LongDouble`, its complex number and its pair have their operations on x86-64 only.
/// - Which NaN a `Sum` or `Product` gives, of the two that it may have got, is not fixed.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Operation {
    /// The sum.
    Sum,
    /// The product.
    Product,
    /// The lesser value.
    Min,
    /// The greater value.
    Max,
    /// 1 if both values are true, which is: not 0.
    LogicalAnd,
    /// 1 if one of both values is true.
    LogicalOr,
    /// 1 if exactly one of both values is true.
    LogicalXor,
    /// The bits that both values have.
    BitAnd,
    /// The bits that one of both values has.
    BitOr,
    /// The bits that exactly one of both values has.
    BitXor,
    /// The lesser value of two pairs, with its index.
    MinLoc,
    /// The greater value of two pairs, with its index.
    MaxLoc,
    /// The right value (MPI-5.0, section 12.3.4). The right value is the origin's, the left one the target's.
    Replace,
    /// The left value (MPI-5.0, section 12.3.4).
    NoOp,
    /// What a user's function does.
    User(Arc<UserOperation>),
}

/// What an operation without a kernel does with two buffers.
enum Other<'a> {
    KeepLeft,
    KeepRight,
    User(&'a UserOperation),
}

impl Operation {
    /// Those that need no function of a user.
    pub const PREDEFINED: [Self; 14] = [
        Self::Sum,
        Self::Product,
        Self::Min,
        Self::Max,
        Self::LogicalAnd,
        Self::LogicalOr,
        Self::LogicalXor,
        Self::BitAnd,
        Self::BitOr,
        Self::BitXor,
        Self::MinLoc,
        Self::MaxLoc,
        Self::Replace,
        Self::NoOp,
    ];

    /// Returns the name, as errors print it.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::User(user) => user.name(),
            predefined => predefined.predefined_name(),
        }
    }

    const fn predefined_name(&self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Product => "product",
            Self::Min => "min",
            Self::Max => "max",
            Self::LogicalAnd => "logical-and",
            Self::LogicalOr => "logical-or",
            Self::LogicalXor => "logical-xor",
            Self::BitAnd => "bit-and",
            Self::BitOr => "bit-or",
            Self::BitXor => "bit-xor",
            Self::MinLoc => "minloc",
            Self::MaxLoc => "maxloc",
            Self::Replace => "replace",
            Self::NoOp => "no-op",
            Self::User(_) => "user",
        }
    }

    /// Returns whether the order of ranks makes no difference, but for NaNs and the sign of zero.
    #[must_use]
    pub fn is_commutative(&self) -> bool {
        match self {
            Self::Replace | Self::NoOp => false,
            Self::User(user) => user.is_commutative(),
            _ => true,
        }
    }

    /// Checks that the operation is defined for the type (MPI-5.0, section 6.9.2).
    ///
    /// # Errors
    ///
    /// [`Error::Undefined`] with the names of both, if it is not.
    pub fn check(&self, layout: &Layout) -> Result<()> {
        match self.kernel(layout) {
            Some(_) => Ok(()),
            None => self.other(layout).map(drop),
        }
    }

    /// Combines two buffers in the second: `into[i] = left[i] op into[i]`. `left` is of the lower rank.
    ///
    /// # Errors
    ///
    /// [`Error::Undefined`] if the operation is not defined for the type. [`Error::Lengths`] if the buffers differ in
    /// length or end within an element: of the basic type, or of the layout for an operation of a user.
    #[inline]
    pub fn combine(&self, layout: &Layout, left: &[u8], into: &mut [u8]) -> Result<()> {
        let kernel = self.kernel(layout);
        self.check_lengths(layout, left.len(), into.len())?;
        match kernel {
            Some(kernel) => kernel.left(into, left),
            None => match self.other(layout)? {
                Other::KeepLeft => into.copy_from_slice(left),
                Other::KeepRight => {}
                Other::User(user) => user.combine(layout, left, into),
            },
        }
        Ok(())
    }

    /// Combines two buffers in a third: `out[i] = left[i] op right[i]`. `left` is of the lower rank.
    ///
    /// # Errors
    ///
    /// As [`combine`](Self::combine).
    #[inline]
    pub fn combine_to(
        &self,
        layout: &Layout,
        left: &[u8],
        right: &[u8],
        out: &mut [u8],
    ) -> Result<()> {
        let kernel = self.kernel(layout);
        self.check_lengths(layout, left.len(), right.len())?;
        self.check_lengths(layout, left.len(), out.len())?;
        match kernel {
            Some(kernel) => kernel.to(out, left, right),
            None => match self.other(layout)? {
                Other::KeepLeft => out.copy_from_slice(left),
                Other::KeepRight => out.copy_from_slice(right),
                Other::User(user) => {
                    out.copy_from_slice(right);
                    user.combine(layout, left, out);
                }
            },
        }
        Ok(())
    }

    /// Combines two buffers in the first: `into[i] = into[i] op right[i]`. `into` is of the lower rank.
    ///
    /// # Errors
    ///
    /// As [`combine`](Self::combine).
    #[inline]
    pub fn combine_right(&self, layout: &Layout, into: &mut [u8], right: &[u8]) -> Result<()> {
        let kernel = self.kernel(layout);
        self.check_lengths(layout, into.len(), right.len())?;
        match kernel {
            Some(kernel) => kernel.right(into, right),
            None => match self.other(layout)? {
                Other::KeepLeft => {}
                Other::KeepRight => into.copy_from_slice(right),
                Other::User(user) => user.combine_right(layout, into, right),
            },
        }
        Ok(())
    }

    #[inline]
    fn kernel(&self, layout: &Layout) -> Option<&'static Kernel> {
        Kernel::of(self.number(), layout.basic()?)
    }

    /// Returns what is to be done with values of a layout for which there is no kernel.
    fn other(&self, layout: &Layout) -> Result<Other<'_>> {
        match self {
            Self::Replace => Ok(Other::KeepRight),
            Self::NoOp => Ok(Other::KeepLeft),
            Self::User(user) => Ok(Other::User(user)),
            _ => Err(Error::Undefined {
                operation: self.predefined_name(),
                basic: layout.basic().map_or("derived", Basic::name),
            }),
        }
    }

    /// Checks that two buffers have the same number of elements, and nothing after them.
    #[inline]
    fn check_lengths(&self, layout: &Layout, first: usize, second: usize) -> Result<()> {
        let is_whole = match (self, layout.basic()) {
            (Self::User(_), _) | (_, None) => first.is_multiple_of(layout.extent()),
            // The extent is a power of two: no division, which would be the longest step of a short call.
            (_, Some(basic)) => first & (basic.extent() - 1) == 0,
        };
        if first == second && is_whole {
            Ok(())
        } else {
            Err(lengths(layout, first, second))
        }
    }

    /// Returns its number among the operations: that of its place in [`PREDEFINED`](Self::PREDEFINED), and one more for a user's.
    #[inline]
    #[must_use]
    pub const fn number(&self) -> usize {
        match self {
            Self::Sum => 0,
            Self::Product => 1,
            Self::Min => 2,
            Self::Max => 3,
            Self::LogicalAnd => 4,
            Self::LogicalOr => 5,
            Self::LogicalXor => 6,
            Self::BitAnd => 7,
            Self::BitOr => 8,
            Self::BitXor => 9,
            Self::MinLoc => 10,
            Self::MaxLoc => 11,
            Self::Replace => 12,
            Self::NoOp => 13,
            Self::User(_) => 14,
        }
    }
}

#[cold]
fn lengths(layout: &Layout, first: usize, second: usize) -> Error {
    let element = layout.extent();
    Error::Lengths {
        first,
        second,
        element,
    }
}
