//! The memory of an access.

use std::ops::Range;

use tagwire_layout::{Packer, Unpacker};

/// The data of a write.
#[derive(Debug)]
pub enum Data<'a> {
    /// One block.
    Bytes(&'a [u8]),
    /// Elements in memory, which are packed as they are written.
    Packed(Packer<'a>),
}

/// The memory of a read.
#[derive(Debug)]
pub enum Room<'a> {
    /// One block.
    Bytes(&'a mut [u8]),
    /// Elements in memory, which are filled as they are read.
    Unpacked(Unpacker<'a>),
}

impl Data<'_> {
    /// Returns how many bytes there are.
    #[must_use]
    pub const fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Packed(packer) => packer.length(),
        }
    }

    /// Returns whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Gives the bytes at positions to `put`, in runs: each goes to a place, and has a length.
    pub(crate) fn scatter(
        &self,
        positions: Range<u64>,
        places: impl Iterator<Item = (u64, u64)>,
        mut put: impl FnMut(u64, &[u8]),
    ) {
        let mut packed = Vec::new();
        let mut rest = match self {
            Self::Bytes(bytes) => &bytes[positions.start as usize..positions.end as usize],
            Self::Packed(_) => {
                packed.resize((positions.end - positions.start) as usize, 0);
                self.copy(positions.start, &mut packed);
                &packed
            }
        };
        for (place, len) in places {
            let (now, after) = rest.split_at(len as usize);
            put(place, now);
            rest = after;
        }
    }

    /// Copies the bytes from a position on, as many as `out` has.
    pub(crate) fn copy(&self, position: u64, out: &mut [u8]) {
        match self {
            Self::Bytes(bytes) => {
                let start = position as usize;
                out.copy_from_slice(&bytes[start..start + out.len()]);
            }
            Self::Packed(packer) => {
                let packed = packer.pack_at(position, out);
                debug_assert_eq!(packed, out.len(), "within the data");
            }
        }
    }
}

impl Room<'_> {
    /// Returns how many bytes there is room for.
    #[must_use]
    pub const fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Unpacked(unpacker) => unpacker.length(),
        }
    }

    /// Returns whether there is room for none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills what is at a position.
    pub(crate) fn fill(&mut self, position: u64, data: &[u8]) {
        match self {
            Self::Bytes(bytes) => {
                let start = position as usize;
                bytes[start..start + data.len()].copy_from_slice(data);
            }
            Self::Unpacked(unpacker) => {
                let unpacked = unpacker.unpack_at(position, data);
                debug_assert_eq!(unpacked, data.len(), "within the room");
            }
        }
    }
}
