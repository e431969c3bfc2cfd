//! The constructors of parts of arrays, which are made of simpler ones (MPI-5.0, sections 5.1.3 and 5.1.4).

use super::bounds::{signed, times};
use super::{Constructor, Datatype, Distributed, Distribution, Member, Order, Slice};
use crate::{Error, Result};

impl Datatype {
    /// Returns a part of an array of several dimensions, with the extent of the whole array (MPI-5.0, section 5.1.3).
    ///
    /// # Errors
    ///
    /// As [`contiguous`](Self::contiguous). [`Error::Argument`] if there is no dimension, or if the part has no element in
    /// one or does not lie within the array.
    pub fn subarray(&self, dimensions: &[Slice], order: Order) -> Result<Self> {
        if dimensions.is_empty() {
            return Err(Error::Argument("an array has at least one dimension"));
        }
        let is_within = |slice: &Slice| {
            slice.length > 0
                && slice.start <= slice.size
                && slice.length <= slice.size - slice.start
        };
        if !dimensions.iter().all(is_within) {
            return Err(Error::Argument(
                "a subarray is not empty and lies within its array",
            ));
        }
        let (mut part, mut stride, mut offset) = (self.clone(), self.extent(), 0_i64);
        for slice in fastest_first(dimensions, order) {
            part = part.hvector(slice.length, 1, stride)?;
            let start = times(signed(slice.start)?, stride)?;
            offset = offset.checked_add(start).ok_or(Error::Overflow)?;
            stride = times(signed(slice.size)?, stride)?;
        }
        let part = part.hindexed_block(1, &[offset])?.resized(0, stride)?;
        let dimensions = dimensions.into();
        let of = self.clone();
        Self::lowered_to(
            part,
            Constructor::Subarray {
                dimensions,
                order,
                of,
            },
        )
    }

    /// Returns the part of a distributed array that one process has, with the extent of the whole array (MPI-5.0, section
    /// 5.1.4).
    ///
    /// The `processes` stand in a grid as those of `MPI_Cart_create`: the last dimension is the fastest, for both orders.
    ///
    /// # Errors
    ///
    /// As [`contiguous`](Self::contiguous). [`Error::Argument`] if there is no dimension, if the grid has not as many
    /// processes as there are or `rank` is none of them, or if a distribution does not cover its dimension.
    pub fn darray(
        &self,
        processes: u64,
        rank: u64,
        dimensions: &[Distributed],
        order: Order,
    ) -> Result<Self> {
        let grid = dimensions
            .iter()
            .try_fold(1_u64, |all, dimension| all.checked_mul(dimension.processes));
        if dimensions.is_empty() || grid != Some(processes) || rank >= processes {
            return Err(Error::Argument(
                "the grid has as many processes as share the array",
            ));
        }
        let mut rest = rank;
        let mut coordinates = vec![0; dimensions.len()];
        for (place, dimension) in coordinates.iter_mut().zip(dimensions).rev() {
            (*place, rest) = (rest % dimension.processes, rest / dimension.processes);
        }
        let placed: Vec<_> = dimensions.iter().copied().zip(coordinates).collect();
        let mut part = self.clone();
        for (dimension, coordinate) in fastest_first(&placed, order) {
            part = part.dealt(dimension, *coordinate)?;
        }
        let dimensions = dimensions.into();
        let of = self.clone();
        Self::lowered_to(
            part,
            Constructor::Darray {
                processes,
                rank,
                dimensions,
                order,
                of,
            },
        )
    }

    /// Returns what one process has of one dimension, with the extent of all of it.
    fn dealt(&self, dimension: &Distributed, coordinate: u64) -> Result<Self> {
        let (size, processes) = (dimension.size, dimension.processes);
        let block = match dimension.distribution {
            Distribution::Block(None) => size.div_ceil(processes).max(1),
            Distribution::Block(Some(block)) if covers(block, processes, size) => block,
            Distribution::Block(Some(_)) => {
                return Err(Error::Argument(
                    "a block for each process does not hold the dimension",
                ));
            }
            Distribution::Cyclic(block) => block.unwrap_or(1),
            Distribution::None if processes == 1 => size.max(1),
            Distribution::None => {
                return Err(Error::Argument(
                    "a dimension that is not distributed has one process",
                ));
            }
        };
        if block == 0 {
            return Err(Error::Argument(
                "a distribution has blocks of at least one element",
            ));
        }
        // A longer block holds no more than the dimension has.
        let block = block.min(size.max(1));
        let whole = size / block;
        // The blocks are dealt out in turn; one that is shorter comes last.
        let mine = match whole.checked_sub(coordinate + 1) {
            Some(after) => after / processes + 1,
            None => 0,
        };
        let tail = if whole % processes == coordinate {
            size % block
        } else {
            0
        };
        let extent = self.extent();
        let bytes = times(signed(block)?, extent)?;
        let turn = times(signed(processes)?, bytes)?;
        let at = |number: u64| times(signed(number)?, bytes);
        let blocks = self.hvector(mine, block, turn)?;
        let member = |count, displacement, of: &Self| Member {
            count,
            displacement,
            of: of.clone(),
        };
        let part = Self::structure([
            member(1, at(coordinate)?, &blocks),
            member(tail, at(whole)?, self),
        ])?;
        part.resized(0, times(signed(size)?, extent)?)
    }
}

/// Whether a block of a length for each process holds `size` elements.
fn covers(block: u64, processes: u64, size: u64) -> bool {
    block.checked_mul(processes).is_none_or(|all| all >= size)
}

/// Returns the dimensions of an array, beginning with the one that has neighbours in memory for neighbours.
fn fastest_first<T>(dimensions: &[T], order: Order) -> Box<dyn Iterator<Item = &T> + '_> {
    match order {
        Order::C => Box::new(dimensions.iter().rev()),
        Order::Fortran => Box::new(dimensions.iter()),
    }
}
