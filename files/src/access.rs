//! Which part of a file an access is of.

use crate::{Extents, Result, View};

/// Which part of a file an access is of: so many bytes of the data of a view, from a position on.
#[derive(Debug, Clone, Copy)]
pub struct Access<'v> {
    /// Which bytes are counted.
    pub view: &'v View,
    /// How many bytes of data lie before.
    pub position: u64,
}

impl<'v> Access<'v> {
    /// Returns the part from a position on.
    #[must_use]
    pub const fn new(view: &'v View, position: u64) -> Self {
        Self { view, position }
    }

    /// Returns the runs of `len` bytes of data, of which `skipped` are passed over.
    pub(crate) fn extents(&self, skipped: u64, len: u64) -> Result<Extents> {
        self.view
            .extents(self.position.saturating_add(skipped), len)
    }

    /// Returns whether the bytes of the file are in the order of `len` bytes of data, each once.
    pub(crate) const fn is_ordered(&self, len: u64) -> bool {
        self.view.is_ordered_in(self.position, len)
    }

    /// Returns how many of the first `len` bytes lie before an offset of the file.
    pub(crate) fn before(&self, offset: u64, len: u64) -> Result<u64> {
        let position = self.view.position_in(self.position, len, offset)?;
        Ok(position.saturating_sub(self.position).min(len))
    }
}
