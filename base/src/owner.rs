//! Which process an object belongs to.

use crate::error::{Error, Result};

/// The process that made an object which shares memory, sockets or descriptors with others.
///
/// A forked child inherits a copy of the object and all that it shares. What the child then does with it, the
/// others would take for the doing of the owner: so objects keep their owner, and look before they act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner(u32);

impl Owner {
    /// The calling process.
    #[must_use]
    pub fn here() -> Self {
        Self(std::process::id())
    }

    /// Whether the calling process is the owner. A system call: not for hot paths.
    #[must_use]
    pub fn is_here(self) -> bool {
        self == Self::here()
    }

    /// Passes for the owner alone.
    ///
    /// # Errors
    /// [`Error::OtherProcess`] in a forked child.
    pub fn check(self) -> Result<()> {
        if self.is_here() {
            return Ok(());
        }
        Err(self.refusal())
    }

    /// The error that another process gets.
    #[must_use]
    pub const fn refusal(self) -> Error {
        Error::OtherProcess { owner: self.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_owner_passes() {
        assert!(Owner::here().check().is_ok());
        let parent = rustix::process::getppid().unwrap();
        let other = Owner(parent.as_raw_nonzero().get().unsigned_abs());
        let refused = other.check().unwrap_err();
        assert!(refused.to_string().contains(&format!("process {parent}")));
    }
}
