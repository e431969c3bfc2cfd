//! The errors of this crate.

/// What can go wrong with a layout or an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operation has no meaning for the type (MPI-5.0, section 6.9.2).
    #[error("the operation {operation} is not defined for the type {basic}")]
    Undefined {
        /// The name of the operation.
        operation: &'static str,
        /// The name of the type.
        basic: &'static str,
    },
    /// The buffers of one call differ in length, or end within an element.
    #[error(
        "buffers of {first} and {second} bytes are not the same number of elements of {element} bytes"
    )]
    Lengths {
        /// The length of the first buffer that differs, or of all.
        first: usize,
        /// The length of the buffer that it was compared with.
        second: usize,
        /// The extent of an element.
        element: usize,
    },
    /// The layout would be longer than memory can be.
    #[error("{count} times {extent} bytes is more than memory can hold")]
    TooLong {
        /// How many elements were asked for.
        count: usize,
        /// The extent of each.
        extent: usize,
    },
}

impl Error {
    /// Returns a stable number for this kind of error, for C callers and exit reports.
    #[must_use]
    pub const fn code(&self) -> u32 {
        match self {
            Self::Undefined { .. } => 700,
            Self::Lengths { .. } => 701,
            Self::TooLong { .. } => 702,
        }
    }
}

/// This crate's results.
pub type Result<T, E = Error> = std::result::Result<T, E>;
