//! The data of collectives: in the caller's memory where they follow each other there, else packed in memory of this crate.

use std::ops::Range;

use crate::abi::Datatype;
use crate::error::{Class, Error, Result};
use crate::object::datatype::{Span, no_buffer};
use crate::process::Process;
use crate::raw::{Counts, Elements, List, Out, StagingBuffer};

/// The blocks of a buffer: one for each member, or for each neighbour.
#[derive(Debug, Clone, Copy)]
pub(super) enum Blocks {
    /// Of as many elements each, one after the other.
    Equal(i64, Datatype),
    /// Their counts, and their displacements in extents of the datatype.
    Varying(Counts, Counts, Datatype),
    /// Their counts, their displacements in bytes, and a datatype for each.
    Typed(Counts, Counts, List<Datatype>),
}

/// One side of a call: a buffer, and the blocks in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Side {
    address: Out,
    blocks: Blocks,
}

impl<A: Into<Out>> From<Elements<A>> for Side {
    /// Returns a buffer of equal blocks of such elements; for a buffer of one block, that block.
    fn from(block: Elements<A>) -> Self {
        let blocks = Blocks::Equal(block.count, block.datatype);
        Self::new(block.address, blocks)
    }
}

impl Side {
    pub(super) fn new(address: impl Into<Out>, blocks: Blocks) -> Self {
        Self {
            address: address.into(),
            blocks,
        }
    }

    pub(super) const fn address(self) -> Out {
        self.address
    }

    pub(super) fn is_in_place(self) -> bool {
        self.address.is_in_place()
    }

    /// Returns the number of elements of a block, and their datatype, where all blocks are equal.
    pub(super) const fn equal_blocks(self) -> Option<(i64, Datatype)> {
        match self.blocks {
            Blocks::Equal(count, datatype) => Some((count, datatype)),
            _ => None,
        }
    }

    /// Returns block `number`.
    ///
    /// # Errors
    /// `MPI_ERR_BUFFER` where it lies in place. Those of its count, datatype and displacement.
    pub(super) fn block(self, process: &Process, number: usize) -> Result<Data> {
        match self.blocks {
            Blocks::Equal(count, datatype) if number == 0 => {
                Data::of(process, self.address.of(count, datatype))
            }
            _ => Data::new(self.address, vec![self.part(process, number)?]),
        }
    }

    /// Returns the blocks of all `members`.
    ///
    /// # Errors
    /// As [`block`](Self::block).
    pub(super) fn all(self, process: &Process, members: usize) -> Result<Data> {
        match self.blocks {
            Blocks::Equal(count, datatype) => {
                let all = self.address.of(times(count, members)?, datatype);
                Data::of(process, all)
            }
            _ => Data::new(self.address, self.parts(process, members)?),
        }
    }

    fn parts(self, process: &Process, members: usize) -> Result<Vec<Part>> {
        if let Blocks::Equal(count, datatype) = self.blocks {
            let span = process.types.span(times(count, members)?, datatype)?;
            return Ok(vec![Part { offset: 0, span }]);
        }
        let numbers = 0..members;
        numbers.map(|number| self.part(process, number)).collect()
    }

    fn part(self, process: &Process, number: usize) -> Result<Part> {
        let (count, datatype) = match self.blocks {
            Blocks::Equal(count, datatype) => (count, datatype),
            Blocks::Varying(counts, _, datatype) => (counts.get(number), datatype),
            Blocks::Typed(counts, _, datatypes) => (counts.get(number), datatypes.get(number)?),
        };
        let span = process.types.span(count, datatype)?;
        let extent = span.extent();
        let offset = match self.blocks {
            Blocks::Equal(..) => {
                let block = extent.checked_mul(count);
                let offset = block.and_then(|block| block.checked_mul(number as i64));
                offset.ok_or_else(|| Error::new(Class::Count, "the data is longer than memory"))
            }
            Blocks::Varying(_, displacements, _) => {
                let offset = displacements.get(number).checked_mul(extent);
                offset.ok_or_else(|| Error::new(Class::Arg, "a displacement does not fit 64 bits"))
            }
            Blocks::Typed(_, displacements, _) => Ok(displacements.get(number)),
        }?;
        Ok(Part { offset, span })
    }
}

/// Data that an operation reads or writes.
#[derive(Debug)]
pub(super) struct Data {
    address: Out,
    parts: Vec<Part>,
    bytes: usize,
    place: Place,
}

/// Elements of one datatype, somewhere in a buffer.
#[derive(Debug)]
struct Part {
    offset: i64,
    span: Span,
}

/// Where an operation finds data.
#[derive(Debug)]
enum Place {
    /// In one block of the caller's memory, at an offset.
    Direct(i64),
    Staged(StagingBuffer),
}

impl Data {
    /// Returns nothing.
    pub(super) const fn none() -> Self {
        Self::direct(Out::EMPTY, 0)
    }

    const fn direct(address: Out, bytes: usize) -> Self {
        Self {
            address,
            parts: Vec::new(),
            bytes,
            place: Place::Direct(0),
        }
    }

    /// Returns elements at an address.
    pub(super) fn of(process: &Process, elements: Elements<Out>) -> Result<Self> {
        let Elements {
            address,
            count,
            datatype,
        } = elements;
        if let Some(bytes) = process.types.simple_bytes(count, datatype) {
            return Self::array(address, bytes);
        }
        let span = process.types.span(count, datatype)?;
        Self::new(address, vec![Part { offset: 0, span }])
    }

    /// Returns values that lie as an array does, with the padding between them.
    pub(super) fn array(address: Out, bytes: usize) -> Result<Self> {
        match (address.is_in_place(), address.is_constant()) {
            (true, _) => Err(in_place()),
            (false, true) if bytes > 0 => Err(no_buffer()),
            _ => Ok(Self::direct(address, bytes)),
        }
    }

    fn new(address: Out, parts: Vec<Part>) -> Result<Self> {
        if address.is_in_place() {
            return Err(in_place());
        }
        for part in &parts {
            part.span.check(address.moved(part.offset).read())?;
        }
        let bytes = parts.iter().map(|part| part.span.bytes).sum();
        let place = match start_of(&parts) {
            Some(start) => Place::Direct(start),
            None => Place::Staged(StagingBuffer::new(bytes)),
        };
        Ok(Self {
            address,
            parts,
            bytes,
            place,
        })
    }

    /// Returns memory of this crate that becomes a result which nobody looks at.
    pub(super) fn unused(bytes: usize) -> Self {
        Self {
            place: Place::Staged(StagingBuffer::new(bytes)),
            ..Self::direct(Out::EMPTY, bytes)
        }
    }

    /// Returns how many bytes of data there are.
    pub(super) const fn len(&self) -> usize {
        self.bytes
    }

    /// Returns the lengths of the blocks of all `members`.
    pub(super) fn lengths(&self, members: usize) -> Vec<usize> {
        match self.parts.len() == members {
            true => self.parts.iter().map(|part| part.span.bytes).collect(),
            false => vec![self.bytes / members; members],
        }
    }

    /// Returns where an operation finds the data.
    pub(super) fn place(&self) -> Out {
        match &self.place {
            Place::Direct(offset) => self.address.moved(*offset),
            Place::Staged(staging) => staging.address(),
        }
    }

    /// Returns where the program has block `number`, if it is one piece there; the first of all that is one piece.
    fn piece(&self, number: usize) -> Range<usize> {
        let (offset, bytes) = match (&self.place, self.parts.get(number)) {
            (Place::Direct(offset), _) if number == 0 => (*offset, self.bytes),
            (Place::Staged(_), Some(part)) => match part.span.block() {
                Some(block) => (part.offset.wrapping_add(block), part.span.bytes),
                None => (0, 0),
            },
            _ => (0, 0),
        };
        let start = self.address.moved(offset).read().address().addr();
        start..start.saturating_add(bytes)
    }

    /// Checks that an operation does not write what it reads (MPI-5.0, section 6.2), as far as both are pieces of memory.
    ///
    /// # Errors
    /// `MPI_ERR_BUFFER` where both are in the same memory.
    pub(super) fn check_disjoint(&self, written: &Self) -> Result {
        let is_disjoint = |number| {
            let (read, written) = (self.piece(number), written.piece(number));
            let is_none = read.is_empty() || written.is_empty();
            is_none || read.end <= written.start || written.end <= read.start
        };
        let blocks = self.parts.len().min(written.parts.len()).max(1);
        match (0..blocks).all(is_disjoint) {
            true => Ok(()),
            false => Err(aliased()),
        }
    }

    /// Packs what the caller's memory has, where the operation finds it packed.
    pub(super) fn pack(&self) -> Result {
        self.each_part(|part, packed| {
            let address = self.address.moved(part.offset);
            part.span.pack(address.read(), packed)
        })
    }

    /// Unpacks a result into the caller's memory, where it is packed.
    pub(super) fn unpack(&self) -> Result {
        self.each_part(|part, packed| {
            let address = self.address.moved(part.offset);
            part.span.unpack(packed.read(), address)
        })
    }

    fn each_part(&self, body: impl Fn(&Part, Out) -> Result) -> Result {
        let Place::Staged(staging) = &self.place else {
            return Ok(());
        };
        let mut start = 0;
        for part in &self.parts {
            body(part, staging.part(start, part.span.bytes))?;
            start += part.span.bytes;
        }
        Ok(())
    }
}

/// Returns the error of a call that does not allow `MPI_IN_PLACE`.
#[cold]
pub(super) fn in_place() -> Error {
    Error::new(Class::Buffer, "MPI_IN_PLACE is not allowed here")
}

#[cold]
fn aliased() -> Error {
    let text = "the same memory is read and written: MPI_IN_PLACE is for that";
    Error::new(Class::Buffer, text)
}

/// Returns how many elements the blocks of all `members` are.
fn times(count: i64, members: usize) -> Result<i64> {
    count.checked_mul(members as i64).ok_or_else(too_many)
}

/// Returns the error of counts whose sum is no count.
#[cold]
pub(super) fn too_many() -> Error {
    Error::new(Class::Count, "the counts are too many")
}

/// Returns where parts begin that follow each other as one block.
fn start_of(parts: &[Part]) -> Option<i64> {
    let mut whole: Option<(i64, i64)> = None;
    for part in parts.iter().filter(|part| part.span.bytes > 0) {
        let start = part.offset.checked_add(part.span.block()?)?;
        let end = start.checked_add(part.span.bytes as i64)?;
        whole = match whole {
            None => Some((start, end)),
            Some((first, last)) if last == start => Some((first, end)),
            Some(_) => return None,
        };
    }
    Some(whole.map_or(0, |(start, _)| start))
}
