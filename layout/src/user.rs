//! Operations that users define (MPI-5.0, section 6.9.5).

use std::fmt;

use crate::Layout;

/// What a user's operation does: the values of the lower rank, and those that it is to be combined into.
type Function = dyn Fn(&Layout, &[u8], &mut [u8]) + Send + Sync;

/// An operation that a user defines.
///
/// The function gets the layout of an element, the values of the lower rank, and those of the higher rank, which it
/// replaces by the results. It is called with any number of whole elements, and for parts of a buffer in any order.
/// It must be associative, as MPI-5.0, section 6.9.5 asks for.
pub struct UserOperation {
    name: Box<str>,
    commutative: bool,
    function: Box<Function>,
}

impl UserOperation {
    /// Makes an operation of a function. `commutative` says that the order of ranks makes no difference to it.
    #[must_use]
    pub fn new(
        name: impl Into<Box<str>>,
        commutative: bool,
        function: impl Fn(&Layout, &[u8], &mut [u8]) + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            commutative,
            function: Box::new(function),
        }
    }

    /// Returns the name, as it was given.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether the order of ranks makes no difference.
    #[must_use]
    pub const fn is_commutative(&self) -> bool {
        self.commutative
    }

    /// `into[i] = left[i] op into[i]`.
    pub(crate) fn combine(&self, layout: &Layout, left: &[u8], into: &mut [u8]) {
        if !into.is_empty() {
            (self.function)(layout, left, into);
        }
    }

    /// `into[i] = into[i] op right[i]`: the function writes to its second argument, so that takes a copy.
    pub(crate) fn combine_right(&self, layout: &Layout, into: &mut [u8], right: &[u8]) {
        /// How many bytes are copied at once: what stays in the first-level cache.
        const PIECE: usize = 16 * 1024;
        /// A user's function may ask for the alignment that its types have in C.
        const ALIGNMENT: usize = 64;

        if into.is_empty() {
            return;
        }
        let element = layout.extent();
        let piece = (PIECE / element)
            .max(1)
            .saturating_mul(element)
            .min(into.len());
        let mut memory = vec![0; piece + ALIGNMENT];
        let start = memory.as_ptr().addr().wrapping_neg() % ALIGNMENT;
        for (into, right) in into.chunks_mut(piece).zip(right.chunks(piece)) {
            let copy = &mut memory[start..start + right.len()];
            copy.copy_from_slice(right);
            (self.function)(layout, into, copy);
            into.copy_from_slice(copy);
        }
    }
}

impl fmt::Debug for UserOperation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("UserOperation")
            .field("name", &self.name)
            .field("commutative", &self.commutative)
            .finish_non_exhaustive()
    }
}
