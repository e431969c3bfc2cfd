//! Making datatypes, and what is asked of them (MPI-5.0, chapter 5).

use std::sync::Arc;

use tagwire_layout::{Datatype as Tree, Distributed, Distribution, Member, Order, Slice};

use crate::abi::{Datatype, MAX_OBJECT_NAME, UNDEFINED};
use crate::error::{Class, Error, Result};
use crate::object::datatype::Type;
use crate::object::named::missing;
use crate::process::Process;
use crate::raw::{CountOut, Counts, List, Ref, Text, TextOut, Twin};

/// `MPI_ORDER_C`.
pub(crate) const ORDER_C: i32 = 12;
/// `MPI_ORDER_FORTRAN`.
pub(crate) const ORDER_FORTRAN: i32 = 15;
/// `MPI_DISTRIBUTE_NONE`.
pub(crate) const DISTRIBUTE_NONE: i32 = 16;
/// `MPI_DISTRIBUTE_BLOCK`.
pub(crate) const DISTRIBUTE_BLOCK: i32 = 17;
/// `MPI_DISTRIBUTE_CYCLIC`.
pub(crate) const DISTRIBUTE_CYCLIC: i32 = 18;
/// `MPI_DISTRIBUTE_DFLT_DARG`.
pub(crate) const DISTRIBUTE_DFLT_DARG: i32 = 19;

fn length(count: i64) -> Result<u64> {
    u64::try_from(count).map_err(|_| Error::new(Class::Arg, format!("the count is {count}")))
}

fn lengths(counts: Counts, count: i64) -> Result<Vec<u64>> {
    let places = 0..length(count)? as usize;
    places.map(|place| length(counts.get(place))).collect()
}

fn displacements(of: Counts, count: i64) -> Result<Vec<i64>> {
    let places = 0..length(count)? as usize;
    Ok(places.map(|place| of.get(place)).collect())
}

/// Takes in what a constructor has made of some datatypes.
fn made(
    process: &Process,
    twin: Twin,
    of: Vec<Arc<Type>>,
    tree: tagwire_layout::Result<Tree>,
    new: Ref<Datatype>,
) -> Result {
    new.set(process.types.enter(tree?, twin, of)?);
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
    let tree = given.tree.duplicate()?;
    let parts = vec![Arc::clone(&given)];
    let handle = process.types.enter(tree, Twin::Int, parts)?;
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

/// Makes the calls that make a datatype of another: `name(parameters before it), name in MPI: the tree, made of the other's`.
macro_rules! constructors {
    ($($name:ident($($parameter:ident: $Type:ty),*), $Name:literal: |$tree:ident| $made:expr;)*) => {$(
        #[doc = concat!("`MPI_", $Name, "`.")]
        pub fn $name(
            process: &Process,
            twin: Twin,
            $($parameter: $Type,)*
            of: Datatype,
            new: Ref<Datatype>,
        ) -> Result {
            let of = process.types.get(of)?;
            let $tree = &of.tree;
            let tree = $made;
            made(process, twin, vec![of], tree, new)
        }
    )*};
}

constructors! {
    type_contiguous(count: i64), "Type_contiguous":
        |of| of.contiguous(length(count)?);
    type_vector(count: i64, block: i64, stride: i64), "Type_vector":
        |of| of.vector(length(count)?, length(block)?, stride);
    type_create_hvector(count: i64, block: i64, stride: i64), "Type_create_hvector":
        |of| of.hvector(length(count)?, length(block)?, stride);
    type_indexed(count: i64, blocks: Counts, at: Counts), "Type_indexed":
        |of| of.indexed(&lengths(blocks, count)?, &displacements(at, count)?);
    type_create_hindexed(count: i64, blocks: Counts, at: Counts), "Type_create_hindexed":
        |of| of.hindexed(&lengths(blocks, count)?, &displacements(at, count)?);
    type_create_indexed_block(count: i64, block: i64, at: Counts), "Type_create_indexed_block":
        |of| of.indexed_block(length(block)?, &displacements(at, count)?);
    type_create_hindexed_block(count: i64, block: i64, at: Counts), "Type_create_hindexed_block":
        |of| of.hindexed_block(length(block)?, &displacements(at, count)?);
}

/// `MPI_Type_create_struct`.
pub fn type_create_struct(
    process: &Process,
    twin: Twin,
    count: i64,
    blocks: Counts,
    at: Counts,
    types: List<Datatype>,
    new: Ref<Datatype>,
) -> Result {
    let (blocks, at) = (lengths(blocks, count)?, displacements(at, count)?);
    let of = types.slice(count as usize).iter();
    let of = of.map(|of| process.types.get(*of));
    let of = of.collect::<Result<Vec<_>>>()?;
    let members = of.iter().zip(blocks.into_iter().zip(at));
    let members = members.map(|(of, (count, displacement))| Member {
        count,
        displacement,
        of: of.tree.clone(),
    });
    let tree = Tree::structure(members.collect::<Vec<_>>());
    made(process, twin, of, tree, new)
}

/// `MPI_Type_create_resized`.
pub fn type_create_resized(
    process: &Process,
    twin: Twin,
    of: Datatype,
    lower: i64,
    extent: i64,
    new: Ref<Datatype>,
) -> Result {
    let of = process.types.get(of)?;
    let tree = of.tree.resized(lower, extent);
    made(process, twin, vec![of], tree, new)
}

/// `MPI_Type_create_subarray`.
#[expect(clippy::too_many_arguments, reason = "those of the standard")]
pub fn type_create_subarray(
    process: &Process,
    twin: Twin,
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
    let order = order_of(order)?;
    let tree = of.tree.subarray(&slices, order);
    made(process, twin, vec![of], tree, new)
}

fn order_of(number: i32) -> Result<Order> {
    match number {
        ORDER_C => Ok(Order::C),
        ORDER_FORTRAN => Ok(Order::Fortran),
        _ => Err(Error::new(Class::Arg, format!("{number} is no order"))),
    }
}

/// `MPI_Type_create_darray`.
#[expect(clippy::too_many_arguments, reason = "those of the standard")]
pub fn type_create_darray(
    process: &Process,
    twin: Twin,
    size: i32,
    rank: i32,
    dimensions: i32,
    sizes: Counts,
    kinds: List<i32>,
    arguments: List<i32>,
    grid: List<i32>,
    order: i32,
    of: Datatype,
    new: Ref<Datatype>,
) -> Result {
    let of = process.types.get(of)?;
    let count = length(i64::from(dimensions))? as usize;
    let given = kinds.slice(count).iter().zip(arguments.slice(count));
    let given = given.zip(grid.slice(count)).enumerate();
    let all = given.map(|(place, ((kind, argument), processes))| {
        Ok(Distributed {
            size: length(sizes.get(place))?,
            distribution: distribution(*kind, *argument)?,
            processes: length(i64::from(*processes))?,
        })
    });
    let all = all.collect::<Result<Vec<_>>>()?;
    let (size, rank) = (length(i64::from(size))?, length(i64::from(rank))?);
    let tree = of.tree.darray(size, rank, &all, order_of(order)?);
    made(process, twin, vec![of], tree, new)
}

/// Returns how a dimension is distributed (MPI-5.0, section 5.1.4).
fn distribution(kind: i32, argument: i32) -> Result<Distribution> {
    let block = match argument {
        DISTRIBUTE_DFLT_DARG => None,
        _ => Some(length(i64::from(argument))?),
    };
    match kind {
        DISTRIBUTE_NONE => Ok(Distribution::None),
        DISTRIBUTE_BLOCK => Ok(Distribution::Block(block)),
        DISTRIBUTE_CYCLIC => Ok(Distribution::Cyclic(block)),
        _ => Err(Error::new(Class::Arg, format!("{kind} is no distribution"))),
    }
}

/// `MPI_Type_size`.
pub fn type_size(process: &Process, datatype: Datatype, size: CountOut) -> Result {
    if missing(datatype.0).is_some() {
        return size.set(i64::from(UNDEFINED));
    }
    size.set(process.types.get(datatype)?.tree.size())
}

/// `MPI_Type_size_x`.
pub fn type_size_x(process: &Process, datatype: Datatype, size: Ref<i64>) -> Result {
    type_size(process, datatype, CountOut::wide(size))
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
    let held = match (datatype, missing(datatype.0)) {
        (Datatype::NULL, _) => "MPI_DATATYPE_NULL".to_owned(),
        (_, Some(name)) => name.to_owned(),
        _ => process.types.get(datatype)?.name().unwrap_or_default(),
    };
    length.set(name.set(&held, MAX_OBJECT_NAME));
    Ok(())
}
