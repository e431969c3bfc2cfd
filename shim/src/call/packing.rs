//! Packing and unpacking (MPI-5.0, sections 5.2 and 5.3).

use crate::abi::{Comm, Datatype};
use crate::call::on_comm;
use crate::error::{Class, Error, Result};
use crate::object::datatype::{Span, no_buffer};
use crate::process::Process;
use crate::raw::{CountOut, Elements, In, Out, Ref, Text};

/// `MPI_Pack`.
pub fn pack(
    process: &Process,
    data: Elements<In>,
    out: Out,
    size: i64,
    position: CountOut,
    comm: Comm,
) -> Result {
    on_comm(process, comm, |_| {
        let span = process.types.span(data.count, data.datatype)?;
        let start = position.get()?;
        let end = end_of(start, span.bytes, size)?;
        check_packed(out.is_constant(), span.bytes)?;
        span.pack(data.address, out.moved(start))?;
        position.set(end)
    })
}

/// `MPI_Unpack`.
pub fn unpack(
    process: &Process,
    input: In,
    size: i64,
    position: CountOut,
    data: Elements<Out>,
    comm: Comm,
) -> Result {
    on_comm(process, comm, |_| {
        let span = process.types.span(data.count, data.datatype)?;
        let start = position.get()?;
        let end = end_of(start, span.bytes, size)?;
        check_packed(input.is_constant(), span.bytes)?;
        span.unpack(input.moved(start), data.address)?;
        position.set(end)
    })
}

/// `MPI_Pack_size`.
pub fn pack_size(
    process: &Process,
    count: i64,
    datatype: Datatype,
    comm: Comm,
    size: CountOut,
) -> Result {
    on_comm(process, comm, |_| {
        size.set(process.types.span(count, datatype)?.bytes as i64)
    })
}

/// Elements of a datatype, of which it is known how long they are in external32.
fn external(
    process: &Process,
    representation: Text,
    count: i64,
    datatype: Datatype,
) -> Result<(Span, usize)> {
    let representation = representation.get()?;
    if representation != "external32" {
        let text = format!("data is not packed as \"{representation}\"");
        return Err(Error::new(Class::Arg, text));
    }
    let span = process.types.span(count, datatype)?;
    let bytes = span.program.external_size(span.count)?;
    let bytes = usize::try_from(bytes);
    let bytes = bytes.map_err(|_| Error::new(Class::Count, "the data is longer than memory"))?;
    Ok((span, bytes))
}

/// `MPI_Pack_external`.
pub fn pack_external(
    process: &Process,
    representation: Text,
    data: Elements<In>,
    out: Out,
    size: i64,
    position: Ref<i64>,
) -> Result {
    let (span, bytes) = external(process, representation, data.count, data.datatype)?;
    let start = position.get()?;
    let end = end_of(start, bytes, size)?;
    check_packed(out.is_constant(), bytes)?;
    span.pack_external(data.address, out.moved(start), bytes)?;
    position.set(end);
    Ok(())
}

/// `MPI_Unpack_external`.
pub fn unpack_external(
    process: &Process,
    representation: Text,
    input: In,
    size: i64,
    position: Ref<i64>,
    data: Elements<Out>,
) -> Result {
    let (span, bytes) = external(process, representation, data.count, data.datatype)?;
    let start = position.get()?;
    let end = end_of(start, bytes, size)?;
    check_packed(input.is_constant(), bytes)?;
    span.unpack_external(input.moved(start), bytes, data.address)?;
    position.set(end);
    Ok(())
}

/// `MPI_Pack_external_size`.
pub fn pack_external_size(
    process: &Process,
    representation: Text,
    count: i64,
    datatype: Datatype,
    size: Ref<i64>,
) -> Result {
    let (_, bytes) = external(process, representation, count, datatype)?;
    size.set(bytes as i64);
    Ok(())
}

/// Checks that there can be packed data at an address.
fn check_packed(is_constant: bool, bytes: usize) -> Result {
    match is_constant && bytes > 0 {
        true => Err(no_buffer()),
        false => Ok(()),
    }
}

/// Returns where packed data ends that begins at a position of a buffer.
fn end_of(start: i64, bytes: usize, size: i64) -> Result<i64> {
    let end = start.checked_add(bytes as i64).filter(|end| *end <= size);
    let end = end.filter(|_| start >= 0);
    end.ok_or_else(|| {
        let text = format!("{bytes} bytes at position {start} of a buffer of {size}");
        Error::new(Class::Arg, text)
    })
}
