//! How datatypes were made: envelopes and contents (MPI-5.0, section 5.1.13).

use std::sync::Arc;

use tagwire_layout::{Constructor, Distribution, Order};

use crate::abi::Datatype;
use crate::call::datatypes::{
    DISTRIBUTE_BLOCK, DISTRIBUTE_CYCLIC, DISTRIBUTE_DFLT_DARG, DISTRIBUTE_NONE, ORDER_C,
    ORDER_FORTRAN,
};
use crate::error::{Class, Error, Result};
use crate::object::datatype::{Origin, Type};
use crate::process::Process;
use crate::raw::{Array, CountOut, Ref, Twin};

/// The combiners, in the order of their numbers.
mod combiner {
    pub(super) const NAMED: i32 = 101;
    pub(super) const DUP: i32 = 102;
    pub(super) const CONTIGUOUS: i32 = 103;
    pub(super) const VECTOR: i32 = 104;
    pub(super) const HVECTOR: i32 = 105;
    pub(super) const INDEXED: i32 = 106;
    pub(super) const HINDEXED: i32 = 107;
    pub(super) const INDEXED_BLOCK: i32 = 108;
    pub(super) const HINDEXED_BLOCK: i32 = 109;
    pub(super) const STRUCT: i32 = 110;
    pub(super) const SUBARRAY: i32 = 111;
    pub(super) const DARRAY: i32 = 112;
    pub(super) const RESIZED: i32 = 116;
}

/// The arguments of the call that made a datatype.
#[derive(Debug)]
struct Contents {
    combiner: i32,
    integers: Vec<i32>,
    addresses: Vec<i64>,
    counts: Vec<i64>,
    types: Vec<Arc<Type>>,
}

/// Contents while arguments are added, in the order in which the standard lists them.
struct Adding {
    twin: Twin,
    contents: Contents,
}

impl Adding {
    /// Adds what is an `int` for both twins.
    fn integer(&mut self, value: i64) {
        // It was one when the call was made.
        self.contents.integers.push(value as i32);
    }

    /// Adds what is an `int`, or an `MPI_Count` for the twin of large counts.
    fn count(&mut self, value: i64) {
        match self.twin {
            Twin::Int => self.integer(value),
            Twin::Big => self.contents.counts.push(value),
        }
    }

    /// Adds what is an `MPI_Aint`, or an `MPI_Count` for the twin of large counts.
    fn address(&mut self, value: i64) {
        match self.twin {
            Twin::Int => self.contents.addresses.push(value),
            Twin::Big => self.contents.counts.push(value),
        }
    }

    fn lengths(&mut self, lengths: &[u64]) {
        self.count(lengths.len() as i64);
        lengths.iter().for_each(|length| self.count(*length as i64));
    }

    fn counts(&mut self, values: &[i64]) {
        values.iter().for_each(|value| self.count(*value));
    }

    fn addresses(&mut self, values: &[i64]) {
        values.iter().for_each(|value| self.address(*value));
    }
}

impl Contents {
    fn of(one: &Type) -> Self {
        let none = |combiner| Self {
            combiner,
            integers: Vec::new(),
            addresses: Vec::new(),
            counts: Vec::new(),
            types: Vec::new(),
        };
        match one.origin() {
            Origin::Named => none(combiner::NAMED),
            Origin::Fortran(wanted) => Self {
                integers: wanted.arguments.clone(),
                ..none(wanted.combiner)
            },
            Origin::Made(twin, of) => {
                let mut adding = Adding {
                    twin: *twin,
                    contents: none(combiner::DUP),
                };
                adding.contents.types.clone_from(of);
                adding.contents.combiner = arguments(&mut adding, one.tree.constructor());
                adding.contents
            }
        }
    }
}

/// Adds the arguments of a constructor, and returns its combiner.
fn arguments(to: &mut Adding, constructor: &Constructor) -> i32 {
    match constructor {
        Constructor::Contiguous { count, .. } => {
            to.count(*count as i64);
            combiner::CONTIGUOUS
        }
        Constructor::Vector { shape, .. } => {
            to.counts(&[shape.count as i64, shape.length as i64, shape.stride]);
            combiner::VECTOR
        }
        Constructor::Hvector { shape, .. } => {
            to.counts(&[shape.count as i64, shape.length as i64]);
            to.address(shape.stride);
            combiner::HVECTOR
        }
        Constructor::Indexed {
            lengths,
            displacements,
            ..
        } => {
            to.lengths(lengths);
            to.counts(displacements);
            combiner::INDEXED
        }
        Constructor::Hindexed {
            lengths,
            displacements,
            ..
        } => {
            to.lengths(lengths);
            to.addresses(displacements);
            combiner::HINDEXED
        }
        Constructor::IndexedBlock {
            length,
            displacements,
            ..
        } => {
            to.counts(&[displacements.len() as i64, *length as i64]);
            to.counts(displacements);
            combiner::INDEXED_BLOCK
        }
        Constructor::HindexedBlock {
            length,
            displacements,
            ..
        } => {
            to.counts(&[displacements.len() as i64, *length as i64]);
            to.addresses(displacements);
            combiner::HINDEXED_BLOCK
        }
        Constructor::Struct(members) => {
            let lengths: Vec<_> = members.iter().map(|member| member.count).collect();
            to.lengths(&lengths);
            members
                .iter()
                .for_each(|member| to.address(member.displacement));
            combiner::STRUCT
        }
        Constructor::Resized { lower, extent, .. } => {
            to.addresses(&[*lower, *extent]);
            combiner::RESIZED
        }
        Constructor::Subarray { .. } | Constructor::Darray { .. } => array(to, constructor),
        // Basic types have no arguments.
        _ => combiner::DUP,
    }
}

/// The same for parts of arrays.
fn array(to: &mut Adding, constructor: &Constructor) -> i32 {
    let number = |order: &Order| match order {
        Order::C => ORDER_C,
        Order::Fortran => ORDER_FORTRAN,
    };
    match constructor {
        Constructor::Subarray {
            dimensions, order, ..
        } => {
            to.integer(dimensions.len() as i64);
            let all = || dimensions.iter();
            all().for_each(|slice| to.count(slice.size as i64));
            all().for_each(|slice| to.count(slice.length as i64));
            all().for_each(|slice| to.count(slice.start as i64));
            to.integer(i64::from(number(order)));
            combiner::SUBARRAY
        }
        Constructor::Darray {
            processes,
            rank,
            dimensions,
            order,
            ..
        } => {
            let before = [*processes as i64, *rank as i64, dimensions.len() as i64];
            before.iter().for_each(|value| to.integer(*value));
            let all = || dimensions.iter();
            let kinds = || all().map(|dimension| kind(dimension.distribution));
            all().for_each(|dimension| to.count(dimension.size as i64));
            kinds().for_each(|(kind, _)| to.integer(i64::from(kind)));
            kinds().for_each(|(_, argument)| to.integer(argument));
            all().for_each(|dimension| to.integer(dimension.processes as i64));
            to.integer(i64::from(number(order)));
            combiner::DARRAY
        }
        _ => combiner::DUP,
    }
}

/// Returns the number of a distribution, and its argument.
fn kind(distribution: Distribution) -> (i32, i64) {
    let (kind, argument) = match distribution {
        Distribution::Block(argument) => (DISTRIBUTE_BLOCK, argument),
        Distribution::Cyclic(argument) => (DISTRIBUTE_CYCLIC, argument),
        Distribution::None => (DISTRIBUTE_NONE, None),
    };
    let argument = argument.map_or_else(
        || i64::from(DISTRIBUTE_DFLT_DARG),
        |argument| argument as i64,
    );
    (kind, argument)
}

/// Returns what a call of a twin may see of a datatype.
///
/// # Errors
/// `MPI_ERR_TYPE` where the datatype was made with large counts, and the call has none.
fn seen(process: &Process, twin: Twin, datatype: Datatype) -> Result<Contents> {
    let contents = Contents::of(&*process.types.get(datatype)?);
    match twin {
        Twin::Int if !contents.counts.is_empty() => {
            let text = "the datatype was made with large counts, of which the call with _c tells";
            Err(Error::new(Class::Type, text))
        }
        _ => Ok(contents),
    }
}

/// `MPI_Type_get_envelope`.
#[expect(clippy::too_many_arguments, reason = "those of the standard")]
pub fn type_get_envelope(
    process: &Process,
    twin: Twin,
    datatype: Datatype,
    integers: CountOut,
    addresses: CountOut,
    counts: Ref<i64>,
    types: CountOut,
    combiner: Ref<i32>,
) -> Result {
    let contents = seen(process, twin, datatype)?;
    integers.set(contents.integers.len() as i64)?;
    addresses.set(contents.addresses.len() as i64)?;
    counts.set(contents.counts.len() as i64);
    types.set(contents.types.len() as i64)?;
    combiner.set(contents.combiner);
    Ok(())
}

/// `MPI_Type_get_contents`.
#[expect(clippy::too_many_arguments, reason = "those of the standard")]
pub fn type_get_contents(
    process: &Process,
    twin: Twin,
    datatype: Datatype,
    max_integers: i64,
    max_addresses: i64,
    max_counts: i64,
    max_types: i64,
    integers: Array<i32>,
    addresses: Array<i64>,
    counts: Array<i64>,
    types: Array<Datatype>,
) -> Result {
    let contents = seen(process, twin, datatype)?;
    if contents.combiner == combiner::NAMED {
        let text = "a named datatype has no contents";
        return Err(Error::new(Class::Type, text));
    }
    for (room, needed) in [
        (max_integers, contents.integers.len()),
        (max_addresses, contents.addresses.len()),
        (max_counts, contents.counts.len()),
        (max_types, contents.types.len()),
    ] {
        if room < needed as i64 {
            let text = format!("an array of {room} has no room for {needed}");
            return Err(Error::new(Class::Arg, text));
        }
    }
    fill(integers, contents.integers);
    fill(addresses, contents.addresses);
    fill(counts, contents.counts);
    for (place, one) in contents.types.iter().enumerate() {
        types.set(place, process.types.show(one)?);
    }
    Ok(())
}

fn fill<T: Copy>(array: Array<T>, values: Vec<T>) {
    let values = values.into_iter().enumerate();
    values.for_each(|(place, value)| array.set(place, value));
}
