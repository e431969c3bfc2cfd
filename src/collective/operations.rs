//! Operations of collectives, made of typed arguments.

use std::borrow::Cow;

use tagwire_coll::Operator;
use tagwire_coll::operations::{Allreduce, Alltoallv, Gatherv, Reduce, ReduceScatter, Scatterv};

use crate::plain::{Plain, bytes, bytes_mut};

/// Returns the reduction to all of data that lies in place.
pub(crate) const fn allreduce<'a>(operator: Operator<'a>, data: &'a mut [u8]) -> Allreduce<'a> {
    Allreduce {
        input: None,
        operator,
        data,
    }
}

/// Returns the reduction to `root` of data that lies in place.
pub(crate) fn in_place<'a>(
    operator: Operator<'a>,
    data: &'a mut [u8],
    rank: u32,
    root: u32,
) -> Reduce<'a> {
    let (input, out) = match rank == root {
        true => (None, Some(data)),
        false => (Some(&*data), None),
    };
    Reduce {
        operator,
        input,
        out,
        root: root as usize,
    }
}

/// Returns the reduction whose result is cut into equal parts for `size` ranks.
pub(crate) fn reduce_scatter<'a>(
    operator: Operator<'a>,
    data: &'a [u8],
    own: &'a mut [u8],
    size: u32,
) -> ReduceScatter<'a> {
    ReduceScatter {
        operator,
        input: data,
        lengths: Cow::Owned(vec![own.len(); size as usize]),
        out: own,
    }
}

pub(crate) fn gatherv<'a, T: Plain>(
    own: &'a [T],
    all: &'a mut [T],
    counts: &[usize],
    root: u32,
) -> Gatherv<'a> {
    Gatherv {
        own: bytes(own),
        lengths: Cow::Owned(lengths::<T>(counts)),
        out: Some(bytes_mut(all)),
        root: root as usize,
    }
}

pub(crate) fn scatterv<'a, T: Plain>(
    all: &'a [T],
    counts: &[usize],
    own: &'a mut [T],
    root: u32,
) -> Scatterv<'a> {
    Scatterv {
        input: Some(bytes(all)),
        lengths: Cow::Owned(lengths::<T>(counts)),
        own: bytes_mut(own),
        root: root as usize,
    }
}

pub(crate) fn alltoallv<'a, T: Plain>(
    data: &'a [T],
    to: &[usize],
    from_all: &'a mut [T],
    from: &[usize],
) -> Alltoallv<'a> {
    Alltoallv {
        input: bytes(data),
        to: Cow::Owned(lengths::<T>(to)),
        out: bytes_mut(from_all),
        from: Cow::Owned(lengths::<T>(from)),
    }
}

/// Lengths in bytes. One that is beyond memory fits no buffer, and is refused by that.
pub(crate) fn lengths<T>(counts: &[usize]) -> Vec<usize> {
    let length = |count: &usize| count.saturating_mul(size_of::<T>());
    counts.iter().map(length).collect()
}
