//! Programs: what a datatype becomes when it is committed.

mod compile;
mod op;
mod run;
mod sequence;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use compile::Compiler;
pub use op::Block;
pub(crate) use op::{List, Op};
pub(crate) use run::Mover;
use sequence::Sequence;

use crate::datatype::bounds::{Span, row, sum};
use crate::{Constructor, Datatype, Error, Layout, Result, Signature};

/// A datatype that is ready to move data: its blocks as a short list of steps, and its signature (MPI-5.0, section 5.1.9).
///
/// There are five kinds of steps: a block, equal blocks equally spaced, equal rows of such, a list of blocks, and a loop over
/// steps. They are brought to their simplest form, and their order is that of the type map. The bytes that they name, one
/// after the other, are the packed data. The steps have random access: any position of the packed data is found by a division
/// in a loop and a search in a list.
///
/// A clone is cheap.
///
/// ```
/// use tagwire_layout::{Basic, Block, Datatype, Program};
///
/// let column = Program::of(&Datatype::of(Basic::I32).vector(3, 1, 5)?);
/// let blocks: Vec<Block> = column.blocks(1)?.collect();
/// assert_eq!(blocks, [0, 20, 40].map(|offset| Block { offset, length: 4 }));
/// assert_eq!((column.size(), column.is_contiguous()), (12, false));
/// # Ok::<(), tagwire_layout::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Program(Arc<Committed>);

#[derive(Debug)]
struct Committed {
    datatype: Datatype,
    sequence: Arc<Sequence>,
    signature: Signature,
}

impl Program {
    /// Returns the program of a datatype.
    #[must_use]
    pub fn of(datatype: &Datatype) -> Self {
        let committed = Committed {
            datatype: datatype.clone(),
            sequence: Compiler::default().sequence(datatype),
            signature: Signature::of(datatype),
        };
        debug_assert_eq!(committed.sequence.packed() as i64, datatype.size());
        Self(Arc::new(committed))
    }

    /// Returns the datatype.
    #[must_use]
    pub fn datatype(&self) -> &Datatype {
        &self.0.datatype
    }

    /// Returns the sequence of basic types.
    #[must_use]
    pub fn signature(&self) -> &Signature {
        &self.0.signature
    }

    /// Returns how many bytes of data an element has.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.0.sequence.packed()
    }

    /// Returns whether the data is one block without gaps, also from an element to its neighbour.
    #[must_use]
    pub fn is_contiguous(&self) -> bool {
        self.contiguous(2).is_some()
    }

    /// Returns the block that `count` elements are, if they are one: then nothing needs to be packed.
    #[must_use]
    pub fn contiguous(&self, count: u64) -> Option<Block> {
        match self.step(count) {
            Ok(Op::Block(block)) => Some(block),
            _ => None,
        }
    }

    /// Returns how many bytes of data `count` elements have.
    ///
    /// # Errors
    ///
    /// [`Error::Overflow`] if they do not fit 63 bits.
    pub fn packed(&self, count: u64) -> Result<u64> {
        let packed = self.size().checked_mul(count);
        let fits = packed.filter(|bytes| i64::try_from(*bytes).is_ok());
        fits.ok_or(Error::Overflow)
    }

    /// Returns where the data of `count` elements lies: from its first byte to the one behind its last, counted from the
    /// address of the buffer.
    ///
    /// # Errors
    ///
    /// [`Error::Overflow`] if a bound does not fit 64 bits.
    pub fn span(&self, count: u64) -> Result<Range<i64>> {
        if self.packed(count)? == 0 {
            return Ok(0..0);
        }
        let Span { low, high } = row(count, self.0.datatype.extent())?;
        let datatype = &self.0.datatype;
        Ok(sum(datatype.true_lower(), low)?..sum(datatype.true_upper(), high)?)
    }

    /// Returns the blocks of `count` elements, in the order of the packed data.
    ///
    /// # Errors
    ///
    /// As [`span`](Self::span).
    pub fn blocks(&self, count: u64) -> Result<Blocks> {
        let step = self.step(count)?;
        Ok(Blocks {
            length: step.packed(),
            step,
            position: 0,
        })
    }

    /// Returns the layout by which reductions combine such elements, if all values have one basic type and lie as those of
    /// an array.
    #[must_use]
    pub fn layout(&self) -> Option<Layout> {
        layout_of(&self.0.datatype).or_else(|| {
            let (basic, count) = self.0.signature.uniform()?;
            let count = usize::try_from(count).ok()?;
            let layout = Layout::of(basic).contiguous(count).ok()?;
            let block = self.contiguous(2)?;
            let is_array = block.offset == 0 && layout.size() == layout.extent();
            is_array.then_some(layout)
        })
    }

    /// Returns `count` elements as one step, of which the data fits 64 bits in length and place.
    fn step(&self, count: u64) -> Result<Op> {
        self.placed(count).map(|(step, _)| step)
    }

    /// Returns `count` elements as one step, and where their data lies.
    #[inline]
    pub(crate) fn placed(&self, count: u64) -> Result<(Op, Range<i64>)> {
        let span = self.span(count)?;
        let step = self.0.sequence.times(count, self.0.datatype.extent());
        Ok((step, span))
    }
}

/// Returns the layout of what is made by constructors that a layout has too.
fn layout_of(datatype: &Datatype) -> Option<Layout> {
    match datatype.constructor() {
        Constructor::Named(basic) => Some(Layout::of(*basic)),
        Constructor::Duplicate(of) => layout_of(of),
        Constructor::Contiguous { count, of } => {
            let count = usize::try_from(*count).ok().filter(|count| *count > 0)?;
            layout_of(of)?.contiguous(count).ok()
        }
        _ => None,
    }
}

/// The blocks of a number of elements. [`Program::blocks`] makes it.
///
/// Neighbours that touch each other may come as two.
#[derive(Debug, Clone)]
pub struct Blocks {
    step: Op,
    position: u64,
    length: u64,
}

impl Blocks {
    /// Goes to a position of the packed data. The next block begins there, or the iterator is at its end.
    pub fn seek(&mut self, position: u64) {
        self.position = position.min(self.length);
    }

    /// Returns the position in the packed data of what comes next.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.position
    }
}

impl Iterator for Blocks {
    type Item = Block;

    fn next(&mut self) -> Option<Block> {
        if self.position >= self.length {
            return None;
        }
        let block = self.step.block_at(0, self.position);
        self.position += block.length;
        Some(block)
    }
}
