//! How a file is opened.

use std::ops::BitOr;

use crate::{Error, Result};

/// How a file is opened (MPI-5.0, section 14.2.1). The bits are this crate's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mode(u32);

impl Mode {
    /// Reads.
    pub const READ: Self = Self(1);
    /// Writes.
    pub const WRITE: Self = Self(2);
    /// Makes the file where there is none.
    pub const CREATE: Self = Self(4);
    /// Fails where there is one.
    pub const EXCLUSIVE: Self = Self(8);
    /// All file pointers begin at the end.
    pub const APPEND: Self = Self(16);
    /// Nobody seeks.
    pub const SEQUENTIAL: Self = Self(32);
    /// The file is removed when it is closed.
    pub const DELETE_ON_CLOSE: Self = Self(64);

    /// Returns whether it has all of these.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns whether the file is read.
    #[must_use]
    pub const fn reads(self) -> bool {
        self.contains(Self::READ)
    }

    /// Returns whether the file is written.
    #[must_use]
    pub const fn writes(self) -> bool {
        self.contains(Self::WRITE)
    }

    /// Returns it without some.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(crate) const fn bits(self) -> u32 {
        self.0
    }

    /// Checks that a file can be opened so.
    ///
    /// # Errors
    /// [`Error::Mode`] where it is neither read nor written, where one that is only read is to be made, and where one that nobody
    /// seeks in is both.
    pub fn check(self) -> Result<()> {
        let makes = self.contains(Self::CREATE) || self.contains(Self::EXCLUSIVE);
        let wrong = match (self.reads(), self.writes()) {
            (false, false) => "the mode says neither that the file is read nor that it is written",
            (true, false) if makes => "a file that is only read cannot be created",
            (true, true) if self.contains(Self::SEQUENTIAL) => {
                "a sequential file cannot be both read and written"
            }
            _ => return Ok(()),
        };
        Err(Error::Mode(wrong.to_owned()))
    }
}

impl BitOr for Mode {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
