//! The memory of a program that an access of a file is of.
#![allow(unsafe_code)]

use tagwire_files::{Access, Data, File, Outcome, Room};

use crate::error::Result;
use crate::object::datatype::Span;
use crate::object::file::view::Representation;
use crate::raw::{Elements, In, Out};

/// The elements that are read or written.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Memory {
    Read(Elements<Out>),
    Write(Elements<In>),
}

impl Memory {
    pub(crate) fn elements(&self) -> Elements<Out> {
        match self {
            Self::Read(elements) => *elements,
            Self::Write(elements) => (*elements).into(),
        }
    }
}

/// How an access is made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct How {
    pub(crate) representation: Representation,
    pub(crate) is_collective: bool,
}

/// Reads or writes elements, and returns how that ended: in bytes of memory.
pub(crate) fn access(
    file: &File,
    access: Access<'_>,
    (memory, span): (Memory, &Span),
    how: How,
) -> Result<Outcome> {
    match (memory, how.representation) {
        (Memory::Write(from), Representation::Native) => {
            Ok(write(file, access, &data(span, from.address)?, how))
        }
        (Memory::Read(into), Representation::Native) => {
            Ok(read(file, access, &mut room(span, into.address)?, how))
        }
        (Memory::Write(from), Representation::External32) => {
            let mut packed = external(span)?;
            let bytes = packed.len();
            span.pack_external(from.address, Out::over(&mut packed), bytes)?;
            let outcome = write(file, access, &Data::Bytes(&packed), how);
            let bytes = span.program.native_size(span.count, outcome.bytes)?;
            Ok(Outcome { bytes, ..outcome })
        }
        (Memory::Read(into), Representation::External32) => {
            let mut packed = external(span)?;
            let outcome = read(file, access, &mut Room::Bytes(&mut packed), how);
            let filled = &packed[..outcome.bytes as usize];
            let bytes = span.unpack_external_part(filled, into.address)?;
            Ok(Outcome { bytes, ..outcome })
        }
    }
}

/// Takes part in a collective access with nothing: where the arguments are wrong, others do not wait.
pub(crate) fn take_part(file: &File, access: Access<'_>, memory: Memory) {
    let outcome = match memory {
        Memory::Write(_) => file.write_all(access, &Data::Bytes(&[])),
        Memory::Read(_) => file.read_all(access, &mut Room::Bytes(&mut [])),
    };
    // What is wrong with the arguments is the error of the call.
    drop(outcome);
}

fn write(file: &File, access: Access<'_>, data: &Data<'_>, how: How) -> Outcome {
    match how.is_collective {
        true => file.write_all(access, data),
        false => file.write(access, data),
    }
}

fn read(file: &File, access: Access<'_>, room: &mut Room<'_>, how: How) -> Outcome {
    match how.is_collective {
        true => file.read_all(access, room),
        false => file.read(access, room),
    }
}

/// Returns memory for elements in external32.
fn external(span: &Span) -> Result<Vec<u8>> {
    Ok(vec![0; span.program.external_size(span.count)? as usize])
}

/// Returns the data at an address.
fn data(span: &Span, address: In) -> Result<Data<'static>> {
    span.check(address)?;
    match span.block() {
        // SAFETY: the promise of the value's maker: nobody writes the bytes until the call returns, before which the data is used.
        Some(offset) => Ok(Data::Bytes(unsafe { address.bytes(offset, span.bytes) })),
        None => Ok(Data::Packed(span.packer(address)?)),
    }
}

/// Returns the memory at an address.
fn room(span: &Span, address: Out) -> Result<Room<'static>> {
    span.check(address.read())?;
    match span.block() {
        // SAFETY: as above: nobody else uses the bytes.
        Some(offset) => Ok(Room::Bytes(unsafe { address.bytes(offset, span.bytes) })),
        None => Ok(Room::Unpacked(span.unpacker(address)?)),
    }
}
