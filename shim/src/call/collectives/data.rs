//! The data of collectives: in the caller's memory where they follow each other there, else packed beside.

use std::ops::Range;

use crate::abi::Datatype;
use crate::error::{Class, Error, Result};
use crate::object::datatype::{Span, no_buffer};
use crate::process::Process;
use crate::raw::{Counts, In, Out, Staging};

/// Data that an operation reads or writes.
#[derive(Debug)]
pub(crate) struct Data {
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

#[derive(Debug)]
enum Place {
    /// One block of the caller's memory.
    Direct(i64),
    Staged(Staging),
}

/// The blocks of a `v` operation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Blocks {
    pub(crate) counts: Counts,
    /// In extents of the datatype.
    pub(crate) displacements: Counts,
    pub(crate) datatype: Datatype,
}

impl Blocks {
    fn part(self, process: &Process, number: usize) -> Result<Part> {
        let span = process.types.span(self.counts.get(number), self.datatype)?;
        let offset = self.displacements.get(number).checked_mul(span.extent());
        let offset =
            offset.ok_or_else(|| Error::new(Class::Arg, "a displacement does not fit 64 bits"))?;
        Ok(Part { offset, span })
    }
}

impl Data {
    /// Returns nothing.
    pub(crate) fn none() -> Self {
        Self {
            address: Out::of_input(In::of(&[])),
            parts: Vec::new(),
            bytes: 0,
            place: Place::Direct(0),
        }
    }

    /// Returns `count` elements at an address.
    pub(crate) fn of(
        process: &Process,
        address: Out,
        count: i64,
        datatype: Datatype,
    ) -> Result<Self> {
        if let Some(bytes) = process.types.simple_bytes(count, datatype) {
            if address.is_constant() && bytes > 0 {
                return Err(no_buffer());
            }
            return Ok(Self {
                address,
                parts: Vec::new(),
                bytes,
                place: Place::Direct(0),
            });
        }
        let span = process.types.span(count, datatype)?;
        Self::new(address, vec![Part { offset: 0, span }])
    }

    /// Returns block `number` of equal ones, which follow each other.
    pub(crate) fn block(
        process: &Process,
        address: Out,
        (count, datatype): (i64, Datatype),
        number: usize,
    ) -> Result<Self> {
        let span = process.types.span(count, datatype)?;
        let whole = span.extent().checked_mul(count);
        let offset = whole.and_then(|whole| whole.checked_mul(number as i64));
        let offset =
            offset.ok_or_else(|| Error::new(Class::Count, "the data is longer than memory"))?;
        Self::new(address, vec![Part { offset, span }])
    }

    /// Returns block `number` of a `v` operation.
    pub(crate) fn block_of(
        process: &Process,
        address: Out,
        blocks: Blocks,
        number: usize,
    ) -> Result<Self> {
        let part = blocks.part(process, number)?;
        Self::new(address, vec![part])
    }

    /// Returns `count` elements at a displacement in bytes.
    pub(crate) fn displaced(
        process: &Process,
        address: Out,
        (count, datatype): (i64, Datatype),
        offset: i64,
    ) -> Result<Self> {
        let span = process.types.span(count, datatype)?;
        Self::new(address, vec![Part { offset, span }])
    }

    /// Returns a block for each of `size` members.
    pub(crate) fn blocks(
        process: &Process,
        address: Out,
        blocks: Blocks,
        size: usize,
    ) -> Result<Self> {
        let parts = (0..size).map(|member| blocks.part(process, member));
        Self::new(address, parts.collect::<Result<_>>()?)
    }

    /// Returns a block of a type of its own for each of `size` members, at displacements in bytes.
    pub(crate) fn blocks_of_types(
        process: &Process,
        address: Out,
        (counts, displacements): (Counts, Counts),
        types: &[Datatype],
    ) -> Result<Self> {
        let parts = types.iter().enumerate().map(|(member, datatype)| {
            let span = process.types.span(counts.get(member), *datatype)?;
            let offset = displacements.get(member);
            Ok(Part { offset, span })
        });
        Self::new(address, parts.collect::<Result<_>>()?)
    }

    fn new(address: Out, parts: Vec<Part>) -> Result<Self> {
        for part in &parts {
            part.span.check(address.moved(part.offset).read())?;
        }
        let bytes = parts.iter().map(|part| part.span.bytes).sum();
        let place = match start_of(&parts) {
            Some(offset) => Place::Direct(offset),
            None => Place::Staged(Staging::new(bytes)),
        };
        Ok(Self {
            address,
            parts,
            bytes,
            place,
        })
    }

    /// Returns values that lie as an array does, with the padding between them.
    pub(crate) fn array(address: Out, bytes: usize) -> Result<Self> {
        if address.is_constant() && bytes > 0 {
            return Err(no_buffer());
        }
        Ok(Self {
            address,
            parts: Vec::new(),
            bytes,
            place: Place::Direct(0),
        })
    }

    /// Returns memory for a copy of as much.
    pub(crate) fn beside(bytes: usize) -> Self {
        Self {
            address: Out::of_input(In::of(&[])),
            parts: Vec::new(),
            bytes,
            place: Place::Staged(Staging::new(bytes)),
        }
    }

    /// Returns how many bytes of data there are.
    pub(crate) const fn len(&self) -> usize {
        self.bytes
    }

    /// Returns whether it is packed beside the caller's memory.
    pub(crate) const fn is_beside(&self) -> bool {
        matches!(self.place, Place::Staged(_))
    }

    /// Returns the lengths of the blocks.
    pub(crate) fn lengths(&self) -> Vec<usize> {
        self.parts.iter().map(|part| part.span.bytes).collect()
    }

    /// Returns the bytes, for an operation that has the data to itself while it goes on.
    pub(crate) fn read<'a>(&self) -> &'a [u8] {
        match &self.place {
            Place::Direct(offset) => self.address.read().bytes(*offset, self.bytes),
            Place::Staged(staging) => staging.bytes(),
        }
    }

    /// The same, to be written.
    pub(crate) fn write<'a>(&self) -> &'a mut [u8] {
        match &self.place {
            Place::Direct(offset) => self.address.bytes(*offset, self.bytes),
            Place::Staged(staging) => staging.bytes(),
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
        let bytes = self.address.read().bytes(offset, bytes).as_ptr_range();
        bytes.start.addr()..bytes.end.addr()
    }

    /// Checks that an operation does not write what it reads (MPI-5.0, section 6.2), as far as both are pieces of memory.
    ///
    /// # Errors
    /// `MPI_ERR_BUFFER` where both are in the same memory.
    pub(crate) fn apart_from(&self, written: &Self) -> Result {
        let is_apart = |number| {
            let (read, written) = (self.piece(number), written.piece(number));
            let is_none = read.is_empty() || written.is_empty();
            is_none || read.end <= written.start || written.end <= read.start
        };
        let blocks = self.parts.len().min(written.parts.len()).max(1);
        match (0..blocks).all(is_apart) {
            true => Ok(()),
            false => Err(aliased()),
        }
    }

    /// Packs what the caller's memory has.
    pub(crate) fn fill(&self) -> Result {
        self.each(|part, staged| {
            let address = self.address.moved(part.offset).read();
            part.span.packer(address)?.pack(staged);
            Ok(())
        })
    }

    /// Unpacks into the caller's memory.
    pub(crate) fn drain(&self) -> Result {
        self.each(|part, staged| {
            let address = self.address.moved(part.offset);
            part.span.unpacker(address)?.unpack(staged);
            Ok(())
        })
    }

    fn each(&self, body: impl Fn(&Part, &mut [u8]) -> Result) -> Result {
        let Place::Staged(staging) = &self.place else {
            return Ok(());
        };
        let mut rest = staging.bytes();
        for part in &self.parts {
            let (own, after) = rest.split_at_mut(part.span.bytes);
            rest = after;
            body(part, own)?;
        }
        Ok(())
    }
}

#[cold]
fn aliased() -> Error {
    let text = "the same memory is read and written: MPI_IN_PLACE is for that";
    Error::new(Class::Buffer, text)
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
