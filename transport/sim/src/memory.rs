//! Memory that peers reach: read and written when a packet gets there, and never after its owner took it back.
#![allow(unsafe_code)]

use std::ops::Range;
use std::ptr;

use tagwire_transport::data::{ReadRegion, WriteRegion};

/// Returns where `len` bytes at `address` lie in memory that begins at `start`, unless they begin before it.
fn range(start: u64, address: u64, len: usize) -> Option<Range<usize>> {
    let offset = usize::try_from(address.checked_sub(start)?).ok()?;
    Some(offset..offset.checked_add(len)?)
}

/// Memory that its owner's peers may read.
///
/// The owner lends it until it ends that or ends itself, under the network's lock: then this is dropped, under the same lock.
#[derive(Debug)]
pub(crate) struct Exposed(pub(crate) ReadRegion);

impl Exposed {
    /// Returns a copy of `len` bytes at `address`; `None` where they do not lie inside.
    pub(crate) fn read(&self, address: u64, len: usize) -> Option<Vec<u8>> {
        let part = self.0.slice(range(self.0.address(), address, len)?)?;
        let mut bytes = vec![0; len];
        // SAFETY: the part has `len` bytes, as `bytes` does, which is memory of our own. The owner lends it for as long as
        // this exists (see the type), and nobody writes to it meanwhile.
        unsafe { ptr::copy_nonoverlapping(part.as_ptr(), bytes.as_mut_ptr(), len) };
        Some(bytes)
    }
}

/// Memory that is written: that of an owner whose peers may, or that of a get which is under way.
///
/// Lent as [`Exposed`] is, or until the token of the get completes, under the network's lock, which drops this.
#[derive(Debug)]
pub(crate) struct Writable(pub(crate) WriteRegion);

impl Writable {
    /// Writes `bytes` to `address`; returns whether they fit inside.
    pub(crate) fn write(&self, address: u64, bytes: &[u8]) -> bool {
        let range = range(self.0.address(), address, bytes.len());
        let Some(part) = range.and_then(|range| self.0.slice(range)) else {
            return false;
        };
        // SAFETY: the part has as many bytes. It is lent for as long as this exists (see the type), so that nobody has a
        // reference to it, and `bytes` does not overlap it.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), part.as_ptr(), bytes.len()) };
        true
    }

    /// Fills it from its start; returns whether the bytes fit inside.
    pub(crate) fn fill(&self, bytes: &[u8]) -> bool {
        self.write(self.0.address(), bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_lie_inside_has_no_range() {
        assert_eq!(range(100, 100, 4), Some(0..4));
        assert_eq!(range(100, 104, 0), Some(4..4));
        assert_eq!(range(100, 99, 4), None);
        assert_eq!(range(100, u64::MAX, usize::MAX), None);
    }
}
