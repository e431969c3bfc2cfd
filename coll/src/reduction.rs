//! What a reduction does.

use std::borrow::Cow;

use tagwire_layout::{Basic, Layout, Operation};

use crate::error::{Error, Result};

/// What a reduction does: an operation on values of a layout.
#[derive(Debug, Clone, Copy)]
pub struct Reduction<'a> {
    /// What combines two values.
    pub operation: &'a Operation,
    /// How a value lies in memory.
    pub layout: &'a Layout,
}

/// What a reduction does, borrowed, or owned by an operation that goes on after the call that started it.
#[derive(Debug, Clone)]
pub struct Operator<'a> {
    operation: Cow<'a, Operation>,
    layout: Cow<'a, Layout>,
}

impl Operator<'static> {
    /// Returns the reduction by `operation` on values of `layout`.
    #[must_use]
    pub const fn owned(operation: Operation, layout: Layout) -> Self {
        Self {
            operation: Cow::Owned(operation),
            layout: Cow::Owned(layout),
        }
    }
}

impl Operator<'_> {
    pub(crate) fn reduction(&self) -> Reduction<'_> {
        Reduction {
            operation: &self.operation,
            layout: &self.layout,
        }
    }

    /// Returns the name of the operation.
    pub(crate) fn name(&self) -> &str {
        self.operation.name()
    }
}

impl<'a> From<Reduction<'a>> for Operator<'a> {
    fn from(reduction: Reduction<'a>) -> Self {
        Self {
            operation: Cow::Borrowed(reduction.operation),
            layout: Cow::Borrowed(reduction.layout),
        }
    }
}

impl Reduction<'_> {
    /// Checks that the operation is defined for the type, and that `bytes` are whole values.
    pub(crate) fn check(&self, bytes: usize) -> Result<()> {
        let checked = self.operation.check(self.layout);
        checked.map_err(|error| Error::Operation(error.to_string()))?;
        let extent = self.layout.extent();
        match extent > 0 && bytes.is_multiple_of(extent) {
            true => Ok(()),
            false => Err(Error::Argument(format!(
                "{bytes} bytes are no whole number of values of {extent} bytes"
            ))),
        }
    }

    /// Whether another tree over the same operands may give other bits: it rounds, or nobody knows what it does.
    pub(crate) fn depends_on_tree(&self) -> bool {
        let rounds = |basic| {
            use Basic::{Complex32, Complex64, F32, F32Int, F64, F64Int};
            matches!(basic, F32 | F64 | Complex32 | Complex64 | F32Int | F64Int)
        };
        matches!(self.operation, Operation::User(_)) || self.layout.basic().is_none_or(rounds)
    }

    /// `into` becomes `left` combined with it; `left` is of lower ranks.
    pub(crate) fn left(&self, left: &[u8], into: &mut [u8]) -> Result<()> {
        let combined = self.operation.combine(self.layout, left, into);
        combined.map_err(|error| Error::Operation(error.to_string()))
    }

    /// `into` becomes itself combined with `right`, which is of higher ranks.
    pub(crate) fn right(&self, into: &mut [u8], right: &[u8]) -> Result<()> {
        let combined = self.operation.combine_right(self.layout, into, right);
        combined.map_err(|error| Error::Operation(error.to_string()))
    }

    /// `out` becomes `left` combined with `right`, which is of higher ranks.
    pub(crate) fn to(&self, left: &[u8], right: &[u8], out: &mut [u8]) -> Result<()> {
        let combined = self.operation.combine_to(self.layout, left, right, out);
        combined.map_err(|error| Error::Operation(error.to_string()))
    }

    /// Combines `into` with what came from another rank.
    pub(crate) fn with(&self, into: &mut [u8], other: &[u8], is_lower: bool) -> Result<()> {
        match is_lower {
            true => self.left(other, into),
            false => self.right(into, other),
        }
    }
}
