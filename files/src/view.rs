//! Views: which bytes of a file are counted (MPI-5.0, section 14.3).

use tagwire_layout::{Basic, Blocks, Datatype, Program};

use crate::{Error, Extents, Result};

/// Which bytes of a file an access counts: those of a filetype that is repeated from a displacement on.
///
/// ```text
///     displacement   tile 0      tile 1      tile 2
///     |.............|##..##....|##..##....|##..##....| ..      #: the data of the filetype, which is counted
/// ```
///
/// A position is a number of bytes of the data, from the displacement on; a multiple of the length of the etype.
///
/// ```
/// use tagwire_files::{Extent, View};
/// use tagwire_layout::{Basic, Datatype, Program};
///
/// let int = Datatype::of(Basic::I32);
/// let every_second = int.resized(0, 8)?;
/// let view = View::new(100, &Program::of(&int), &Program::of(&every_second))?;
/// let extents: Vec<_> = view.extents(4, 8)?.collect();
/// assert_eq!(extents, [Extent { offset: 108, len: 4 }, Extent { offset: 116, len: 4 }]);
/// assert_eq!(view.position_of(112)?, 8);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct View {
    displacement: u64,
    unit: u64,
    filetype: Program,
    size: u64,
    extent: u64,
    /// All bytes from here on are data.
    start: Option<u64>,
    /// A tile begins behind the end of the one before.
    has_ordered_tiles: bool,
    /// A byte of the file is several times in a tile; else its bytes are in the order of the data, since displacements do not decrease.
    overlaps: bool,
    /// Two tiles share a byte of the file.
    has_overlapping_tiles: bool,
}

impl View {
    /// Returns the view that a file has when it was opened: all of its bytes.
    #[must_use]
    pub fn bytes() -> Self {
        Self {
            displacement: 0,
            unit: 1,
            filetype: Program::of(&Datatype::of(Basic::Byte)),
            size: 1,
            extent: 1,
            start: Some(0),
            has_ordered_tiles: true,
            overlaps: false,
            has_overlapping_tiles: false,
        }
    }

    /// Returns the view of a displacement in bytes, an etype, whose elements are what positions count, and a filetype.
    ///
    /// # Errors
    /// [`Error::Argument`] where the etype has no data, or the filetype is not made of whole etypes; [`Error::Filetype`] where its
    /// displacements are negative or do not increase (MPI-5.0, section 14.3).
    pub fn new(displacement: u64, etype: &Program, filetype: &Program) -> Result<Self> {
        let (unit, size) = (etype.size(), filetype.size());
        let wrong = |text: &str| Err(Error::Argument(text.to_owned()));
        if i64::try_from(displacement).is_err() {
            return wrong("the displacement is longer than files are");
        }
        if unit == 0 {
            return wrong("the etype has no data");
        }
        if !size.is_multiple_of(unit) {
            return wrong("the filetype is not made of whole etypes");
        }
        let refused = |text| Err(Error::Filetype(text));
        let Ok(extent) = u64::try_from(filetype.datatype().extent()) else {
            return refused("the extent of the filetype is negative");
        };
        let mut end = 0;
        let mut before = None;
        for block in filetype.blocks(1)? {
            if block.offset < 0 {
                return refused("the filetype has negative displacements");
            }
            if before.is_some_and(|before| block.offset < before) {
                return refused("the displacements of the filetype do not increase");
            }
            before = Some(block.offset);
            end = end.max(block.offset as u64 + block.length);
        }
        let first = filetype.blocks(1)?.next().map_or(0, |block| block.offset);
        let start = filetype
            .contiguous(2)
            .and_then(|block| displacement.checked_add_signed(block.offset));
        let overlaps = has_overlap(filetype.blocks(1)?);
        let has_ordered_tiles = end - first as u64 <= extent;
        let has_overlapping_tiles =
            !has_ordered_tiles && (size > extent || have_overlap(filetype.blocks(1)?, extent));
        Ok(Self {
            displacement,
            unit,
            filetype: filetype.clone(),
            size,
            extent,
            start: start.filter(|_| size > 0),
            has_ordered_tiles,
            overlaps,
            has_overlapping_tiles,
        })
    }

    /// Returns how many bytes an etype has.
    #[must_use]
    pub const fn unit(&self) -> u64 {
        self.unit
    }

    /// Returns the displacement.
    #[must_use]
    pub const fn displacement(&self) -> u64 {
        self.displacement
    }

    /// Returns whether the bytes of the file are in the order of the data, each once.
    #[must_use]
    pub const fn is_ordered(&self) -> bool {
        !self.overlaps && self.has_ordered_tiles
    }

    /// Returns the same of `len` bytes of data from a position on: within one tile it does not matter where the next begins.
    #[must_use]
    pub const fn is_ordered_in(&self, position: u64, len: u64) -> bool {
        self.is_ordered() || !self.overlaps && self.is_in_one_tile(position, len)
    }

    /// Returns whether the filetype has some byte of the file several times: such a view is only to be read (MPI-5.0, section 14.3).
    #[must_use]
    pub const fn overlaps(&self) -> bool {
        self.overlaps
    }

    /// Returns whether `len` bytes of data from a position on have some byte of the file several times, in the filetype or in two tiles.
    /// Tiles share bytes where the extent of the filetype is short; an access within one of them does not meet that.
    #[must_use]
    pub const fn overlaps_in(&self, position: u64, len: u64) -> bool {
        self.overlaps || self.has_overlapping_tiles && !self.is_in_one_tile(position, len)
    }

    /// Returns whether an access is within one tile. One of nothing is.
    const fn is_in_one_tile(&self, position: u64, len: u64) -> bool {
        let Some(before) = position.checked_rem(self.size) else {
            return true;
        };
        len <= self.size - before
    }

    /// Returns the runs of `len` bytes of data from a position on.
    ///
    /// # Errors
    /// [`Error::Argument`] where they are beyond what files can have, 2^63 - 1 bytes, or the filetype has no data.
    pub fn extents(&self, position: u64, len: u64) -> Result<Extents> {
        if len == 0 {
            return Ok(Extents::one(0, 0));
        }
        if self.size == 0 {
            let text = "the filetype of the view has no data";
            return Err(Error::Argument(text.to_owned()));
        }
        if let Some(start) = self.start {
            let offset = start.checked_add(position);
            let end = offset.and_then(|offset| offset.checked_add(len));
            end.filter(|end| i64::try_from(*end).is_ok())
                .ok_or_else(too_far)?;
            return Ok(Extents::one(start + position, len));
        }
        let (tile, rest) = (position / self.size, position % self.size);
        let tiles = rest.checked_add(len).ok_or_else(too_far)?;
        let tiles = tiles.div_ceil(self.size);
        let base = tile.checked_mul(self.extent);
        let base = base.and_then(|base| base.checked_add(self.displacement));
        let base = base.ok_or_else(too_far)?;
        let end = self.filetype.span(tiles).map_err(|_| too_far())?.end;
        base.checked_add_signed(end)
            .filter(|end| i64::try_from(*end).is_ok())
            .ok_or_else(too_far)?;
        let mut blocks = self.filetype.blocks(tiles).map_err(|_| too_far())?;
        blocks.seek(rest);
        Ok(Extents::of(blocks, base, len))
    }

    /// Returns where the byte of the data at a position is in the file.
    ///
    /// # Errors
    /// As [`extents`](Self::extents).
    pub fn offset_of(&self, position: u64) -> Result<u64> {
        let mut extents = self.extents(position, 1)?;
        extents
            .next()
            .map(|extent| extent.offset)
            .ok_or_else(too_far)
    }

    /// Returns how many bytes of data lie before an offset of the file, which is the position of the first that does not.
    ///
    /// # Errors
    /// [`Error::Argument`] where the view is not [in order](Self::is_ordered).
    pub fn position_of(&self, offset: u64) -> Result<u64> {
        if let Some(start) = self.start {
            return Ok(offset.saturating_sub(start));
        }
        if self.size == 0 {
            return Ok(0);
        }
        if !self.is_ordered() {
            let text = "the filetype of the view overlaps itself";
            return Err(Error::Argument(text.to_owned()));
        }
        // Nothing is behind the end of the longest file, and nothing below overflows before it.
        let offset = offset.min(i64::MAX as u64);
        let offset = offset.saturating_sub(self.displacement);
        let last = self.filetype.span(1)?.end as u64;
        // Tiles that lie before the offset as a whole.
        let whole = match offset.checked_sub(last) {
            Some(behind) => behind / self.extent + 1,
            None => 0,
        };
        let Some(inside) = offset.checked_sub(whole.saturating_mul(self.extent)) else {
            return Ok(whole.saturating_mul(self.size));
        };
        let before = self.data_before(inside)?;
        Ok(whole.saturating_mul(self.size).saturating_add(before))
    }

    /// Returns the same as [`position_of`](Self::position_of), where only `len` bytes of data from a position on are asked for.
    ///
    /// # Errors
    /// [`Error::Argument`] where these are not [in order](Self::is_ordered_in).
    pub(crate) fn position_in(&self, position: u64, len: u64, offset: u64) -> Result<u64> {
        if self.is_ordered() || !self.is_ordered_in(position, len) {
            return self.position_of(offset);
        }
        let tile = position.checked_div(self.size).unwrap_or(0);
        let start = tile.saturating_mul(self.extent);
        let start = start.saturating_add(self.displacement);
        let before = self.data_before(offset.saturating_sub(start))?;
        Ok(tile.saturating_mul(self.size).saturating_add(before))
    }

    /// Returns how many bytes of data of one tile lie before an offset in it.
    fn data_before(&self, inside: u64) -> Result<u64> {
        let mut blocks = self.filetype.blocks(1)?;
        // Of the byte at each position it is known where it is; those positions are in order.
        let (mut low, mut high) = (0, self.size);
        while low < high {
            let middle = low + (high - low) / 2;
            blocks.seek(middle);
            let Some(block) = blocks.next() else { break };
            let (first, end) = (block.offset as u64, block.offset as u64 + block.length);
            if first >= inside {
                high = middle;
            } else if end >= inside {
                return Ok(middle + (inside - first));
            } else {
                low = middle + block.length;
            }
        }
        Ok(low)
    }
}

/// Returns whether one of the blocks begins before the end of one that comes before it.
fn has_overlap(blocks: Blocks) -> bool {
    let mut end = 0;
    blocks.into_iter().any(|block| {
        let overlaps = block.offset < end;
        end = end.max(block.offset + block.length as i64);
        overlaps
    })
}

/// Returns whether tiles of these blocks, which are so far apart, share bytes: the same byte of a tile's extent is in two blocks.
fn have_overlap(blocks: Blocks, extent: u64) -> bool {
    if extent == 0 {
        return true;
    }
    let inside = blocks.map(|block| (block.offset as u64 % extent, block.length));
    let mut inside: Vec<_> = inside.collect();
    inside.sort_unstable();
    let [first, .., last] = &inside[..] else {
        return inside.iter().any(|(_, length)| *length > extent);
    };
    inside
        .windows(2)
        .any(|pair| pair[0].0 + pair[0].1 > pair[1].0)
        || last.0 + last.1 > first.0 + extent
}

/// Returns the error of an access beyond what files can have.
fn too_far() -> Error {
    Error::Argument("the access is beyond the longest file, of 2^63 - 1 bytes".to_owned())
}
