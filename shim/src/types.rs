//! Making datatypes, and what is asked of them (MPI-5.0, chapter 5).

use tagwire_layout::{Datatype as Tree, Member, Order, Slice};

use crate::abi::{Comm, Datatype, MAX_OBJECT_NAME};
use crate::error::{Class, Error, Result};
use crate::process::Process;
use crate::raw::{CountOut, Counts, In, List, Out, Ref, Text, TextOut};

/// `MPI_ORDER_C`.
const ORDER_C: i32 = 12;
/// `MPI_ORDER_FORTRAN`.
const ORDER_FORTRAN: i32 = 15;

fn length(count: i64) -> Result<u64> {
    u64::try_from(count).map_err(|_| Error::new(Class::Arg, format!("the count is {count}")))
}

fn lengths(counts: Counts, count: u64) -> Result<Vec<u64>> {
    (0..count as usize)
        .map(|place| length(counts.get(place)))
        .collect()
}

fn displacements(of: Counts, count: u64) -> Vec<i64> {
    (0..count as usize).map(|place| of.get(place)).collect()
}

fn made(process: &Process, tree: tagwire_layout::Result<Tree>, new: Ref<Datatype>) -> Result {
    new.set(process.types.enter(tree?)?);
    Ok(())
}

/// `MPI_Type_commit`.
pub fn type_commit(process: &Process, datatype: Ref<Datatype>) -> Result {
    process.types.get(datatype.get()?)?.commit();
    Ok(())
}

/// `MPI_Type_free`.
pub fn type_free(process: &Process, datatype: Ref<Datatype>) -> Result {
    let given = datatype.get()?;
    if process.types.is_predefined(given) {
        let text = "a predefined datatype cannot be freed";
        return Err(Error::new(Class::Type, text));
    }
    let one = process.types.get(given)?;
    one.attributes().delete_all(given.0)?;
    process.types.free(given)?;
    datatype.set(Datatype::NULL);
    Ok(())
}

/// `MPI_Type_dup`.
pub fn type_dup(process: &Process, of: Datatype, new: Ref<Datatype>) -> Result {
    new.set(Datatype::NULL);
    let given = process.types.get(of)?;
    let is_committed = given.program().is_ok();
    let handle = process.types.enter(given.tree.duplicate()?)?;
    let made = process.types.get(handle)?;
    if is_committed {
        made.commit();
    }
    let copied = given
        .attributes()
        .copy_to(of.0, handle.0, made.attributes());
    if let Err(error) = copied {
        process.types.free(handle)?;
        return Err(error);
    }
    new.set(handle);
    Ok(())
}

/// `MPI_Type_contiguous`.
pub fn type_contiguous(process: &Process, count: i64, of: Datatype, new: Ref<Datatype>) -> Result {
    let of = process.types.get(of)?;
    made(process, of.tree.contiguous(length(count)?), new)
}

/// `MPI_Type_vector`.
pub fn type_vector(
    process: &Process,
    count: i64,
    block: i64,
    stride: i64,
    of: Datatype,
    new: Ref<Datatype>,
) -> Result {
    let of = process.types.get(of)?;
    let tree = of.tree.vector(length(count)?, length(block)?, stride);
    made(process, tree, new)
}

/// `MPI_Type_create_hvector`.
pub fn type_create_hvector(
    process: &Process,
    count: i64,
    block: i64,
    stride: i64,
    of: Datatype,
    new: Ref<Datatype>,
) -> Result {
    let of = process.types.get(of)?;
    let tree = of.tree.hvector(length(count)?, length(block)?, stride);
    made(process, tree, new)
}

/// `MPI_Type_indexed`.
pub fn type_indexed(
    process: &Process,
    count: i64,
    blocks: Counts,
    at: Counts,
    of: Datatype,
    new: Ref<Datatype>,
) -> Result {
    let (of, count) = (process.types.get(of)?, length(count)?);
    let tree = of
        .tree
        .indexed(&lengths(blocks, count)?, &displacements(at, count));
    made(process, tree, new)
}

/// `MPI_Type_create_hindexed`.
pub fn type_create_hindexed(
    process: &Process,
    count: i64,
    blocks: Counts,
    at: Counts,
    of: Datatype,
    new: Ref<Datatype>,
) -> Result {
    let (of, count) = (process.types.get(of)?, length(count)?);
    let tree = of
        .tree
        .hindexed(&lengths(blocks, count)?, &displacements(at, count));
    made(process, tree, new)
}

/// `MPI_Type_create_indexed_block`.
pub fn type_create_indexed_block(
    process: &Process,
    count: i64,
    block: i64,
    at: Counts,
    of: Datatype,
    new: Ref<Datatype>,
) -> Result {
    let (of, count) = (process.types.get(of)?, length(count)?);
    let tree = of
        .tree
        .indexed_block(length(block)?, &displacements(at, count));
    made(process, tree, new)
}

/// `MPI_Type_create_hindexed_block`.
pub fn type_create_hindexed_block(
    process: &Process,
    count: i64,
    block: i64,
    at: Counts,
    of: Datatype,
    new: Ref<Datatype>,
) -> Result {
    let (of, count) = (process.types.get(of)?, length(count)?);
    let tree = of
        .tree
        .hindexed_block(length(block)?, &displacements(at, count));
    made(process, tree, new)
}

/// `MPI_Type_create_struct`.
pub fn type_create_struct(
    process: &Process,
    count: i64,
    blocks: Counts,
    at: Counts,
    types: List<Datatype>,
    new: Ref<Datatype>,
) -> Result {
    let count = length(count)?;
    let (blocks, at) = (lengths(blocks, count)?, displacements(at, count));
    let of = types.slice(count as usize).iter();
    let members = of.zip(blocks.into_iter().zip(at));
    let members = members.map(|(of, (count, displacement))| {
        Ok(Member {
            count,
            displacement,
            of: process.types.get(*of)?.tree.clone(),
        })
    });
    let members = members.collect::<Result<Vec<_>>>()?;
    made(process, Tree::structure(members), new)
}

/// `MPI_Type_create_resized`.
pub fn type_create_resized(
    process: &Process,
    of: Datatype,
    lower: i64,
    extent: i64,
    new: Ref<Datatype>,
) -> Result {
    let of = process.types.get(of)?;
    made(process, of.tree.resized(lower, extent), new)
}

/// `MPI_Type_create_subarray`.
#[expect(clippy::too_many_arguments, reason = "those of the standard")]
pub fn type_create_subarray(
    process: &Process,
    dimensions: i32,
    sizes: Counts,
    parts: Counts,
    starts: Counts,
    order: i32,
    of: Datatype,
    new: Ref<Datatype>,
) -> Result {
    let of = process.types.get(of)?;
    let count = length(i64::from(dimensions))?;
    let slices = (0..count as usize).map(|place| {
        Ok(Slice {
            size: length(sizes.get(place))?,
            length: length(parts.get(place))?,
            start: length(starts.get(place))?,
        })
    });
    let slices = slices.collect::<Result<Vec<_>>>()?;
    let order = match order {
        ORDER_C => Order::C,
        ORDER_FORTRAN => Order::Fortran,
        _ => return Err(Error::new(Class::Arg, format!("{order} is no order"))),
    };
    made(process, of.tree.subarray(&slices, order), new)
}

/// `MPI_Type_size`.
pub fn type_size(process: &Process, datatype: Datatype, size: CountOut) -> Result {
    size.set(process.types.get(datatype)?.tree.size())
}

/// `MPI_Type_get_extent`.
pub fn type_get_extent(
    process: &Process,
    datatype: Datatype,
    lower: Ref<i64>,
    extent: Ref<i64>,
) -> Result {
    let one = process.types.get(datatype)?;
    lower.set(one.tree.lower());
    extent.set(one.tree.extent());
    Ok(())
}

/// `MPI_Type_get_true_extent`.
pub fn type_get_true_extent(
    process: &Process,
    datatype: Datatype,
    lower: Ref<i64>,
    extent: Ref<i64>,
) -> Result {
    let one = process.types.get(datatype)?;
    lower.set(one.tree.true_lower());
    extent.set(one.tree.true_extent());
    Ok(())
}

/// `MPI_Type_set_name`.
pub fn type_set_name(process: &Process, datatype: Datatype, name: Text) -> Result {
    let (one, mut name) = (process.types.get(datatype)?, name.get()?);
    while name.len() >= MAX_OBJECT_NAME {
        name.pop();
    }
    one.set_name(name);
    Ok(())
}

/// `MPI_Type_get_name`.
pub fn type_get_name(
    process: &Process,
    datatype: Datatype,
    name: TextOut,
    length: Ref<i32>,
) -> Result {
    let held = match datatype {
        Datatype::NULL => "MPI_DATATYPE_NULL".to_owned(),
        _ => process.types.get(datatype)?.name().unwrap_or_default(),
    };
    length.set(name.set(&held, MAX_OBJECT_NAME));
    Ok(())
}

/// `MPI_Pack`.
#[expect(clippy::too_many_arguments, reason = "those of the standard")]
pub fn pack(
    process: &Process,
    data: In,
    count: i64,
    datatype: Datatype,
    out: Out,
    size: i64,
    position: CountOut,
    comm: Comm,
) -> Result {
    process.comm(comm)?;
    let span = process.types.span(count, datatype)?;
    let start = position.get()?;
    let end = end_of(start, span.bytes, size)?;
    let room = out.bytes(start, span.bytes);
    span.packer(data)?.pack(room);
    position.set(end)
}

/// `MPI_Unpack`.
#[expect(clippy::too_many_arguments, reason = "those of the standard")]
pub fn unpack(
    process: &Process,
    input: In,
    size: i64,
    position: CountOut,
    room: Out,
    count: i64,
    datatype: Datatype,
    comm: Comm,
) -> Result {
    process.comm(comm)?;
    let span = process.types.span(count, datatype)?;
    let start = position.get()?;
    let end = end_of(start, span.bytes, size)?;
    let packed = input.bytes(start, span.bytes);
    span.unpacker(room)?.unpack(packed);
    position.set(end)
}

/// `MPI_Pack_size`.
pub fn pack_size(
    process: &Process,
    count: i64,
    datatype: Datatype,
    comm: Comm,
    size: CountOut,
) -> Result {
    process.comm(comm)?;
    size.set(process.types.span(count, datatype)?.bytes as i64)
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
