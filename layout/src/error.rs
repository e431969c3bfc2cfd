//! The errors of this crate.

/// What can go wrong with a layout, a datatype or an operation.
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
    /// A size, a bound or a displacement of a datatype does not fit 64 bits.
    #[error("a size or a displacement of the datatype does not fit 64 bits")]
    Overflow,
    /// A constructor of datatypes was called with arguments that it does not allow (MPI-5.0, section 5.1).
    #[error("{0}")]
    Argument(&'static str),
    /// Too many constructors of datatypes stand in each other.
    #[error(
        "more than {} constructors of datatypes stand in each other",
        crate::Datatype::DEPTH
    )]
    TooDeep,
    /// The data of a datatype does not lie within the memory that was given.
    #[error("the data lies at bytes {low} to {high}, outside of the memory that was given")]
    Outside {
        /// Where the data begins, from the address of the buffer.
        low: i64,
        /// Where the data ends.
        high: i64,
    },
    /// A position lies behind the end of the packed data, or a buffer is too short for it.
    #[error("position {position} lies behind the end at {length}")]
    Position {
        /// The position that was asked for.
        position: u64,
        /// How many bytes there are.
        length: u64,
    },
    /// The type has no form in external32 (MPI-5.0, section 14.5.2).
    #[error("the type {basic} has no form in external32")]
    NotExternal {
        /// The name of the type.
        basic: &'static str,
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
            Self::Overflow => 703,
            Self::Argument(_) => 704,
            Self::TooDeep => 705,
            Self::Outside { .. } => 706,
            Self::Position { .. } => 707,
            Self::NotExternal { .. } => 708,
        }
    }
}

/// This crate's results.
pub type Result<T, E = Error> = std::result::Result<T, E>;
