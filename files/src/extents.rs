//! Runs of bytes of a file.

use tagwire_layout::Blocks;

/// A run of bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Where it begins.
    pub offset: u64,
    /// How many bytes it has; never none.
    pub len: u64,
}

impl Extent {
    /// Returns where it ends.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.offset + self.len
    }
}

/// The runs of bytes of an access, in the order of its data: [`View::extents`](crate::View::extents). Neighbours that touch each
/// other are one.
#[derive(Debug, Clone)]
pub struct Extents {
    state: State,
}

#[derive(Debug, Clone)]
enum State {
    /// One run, which was not taken yet.
    One(Option<Extent>),
    Blocks {
        blocks: Blocks,
        /// What is added to the offsets of blocks.
        base: u64,
        /// Bytes that are left of the blocks.
        left: u64,
        /// What was taken of the blocks, and may go on.
        next: Option<Extent>,
    },
}

impl Extents {
    /// Returns one run.
    pub(crate) const fn one(offset: u64, len: u64) -> Self {
        let extent = Extent { offset, len };
        let state = State::One(if len == 0 { None } else { Some(extent) });
        Self { state }
    }

    /// Returns the next so many bytes of blocks that begin at `base`: their offsets were checked not to overflow.
    pub(crate) const fn of(blocks: Blocks, base: u64, left: u64) -> Self {
        Self {
            state: State::Blocks {
                blocks,
                base,
                left,
                next: None,
            },
        }
    }
}

impl Iterator for Extents {
    type Item = Extent;

    fn next(&mut self) -> Option<Extent> {
        let (blocks, base, left, pending) = match &mut self.state {
            State::One(extent) => return extent.take(),
            State::Blocks {
                blocks,
                base,
                left,
                next,
            } => (blocks, *base, left, next),
        };
        let mut taken = || {
            if *left == 0 {
                return None;
            }
            let block = blocks.next()?;
            let len = block.length.min(*left);
            *left -= len;
            let offset = base.wrapping_add_signed(block.offset);
            Some(Extent { offset, len })
        };
        let mut extent = pending.take().or_else(&mut taken)?;
        while let Some(block) = taken() {
            if block.offset != extent.end() {
                *pending = Some(block);
                break;
            }
            extent.len += block.len;
        }
        Some(extent)
    }
}
