//! The short ways of blocking collectives: whose data is one block of a predefined datatype each, so that nothing is packed and
//! nothing is kept.
//!
//! Each returns `None`, with nothing done, where anything else is asked for, errors in the arguments too: the long ways have all.

use tagwire_coll::operations::{Allreduce, Reduce};
use tagwire_coll::{Reduction, Team};
use tagwire_layout::{Layout, Operation};

use crate::abi::{Datatype, Op};
use crate::call::collectives::run::Form;
use crate::error::Result;
use crate::object::operation::predefined;
use crate::process::Process;
use crate::raw::{In, Out};

/// Elements at an address.
pub(crate) type At<A> = (A, i64, Datatype);

/// Returns how many bytes `times` as many elements are.
#[inline]
fn bytes_of(process: &Process, count: i64, datatype: Datatype, times: usize) -> Option<usize> {
    let bytes = process.types.simple_bytes(count, datatype)?;
    bytes.checked_mul(times)
}

/// Returns the room for `times` as many elements.
#[inline]
fn room<'a>(
    process: &Process,
    (room, count, datatype): At<Out>,
    times: usize,
) -> Option<&'a mut [u8]> {
    let bytes = bytes_of(process, count, datatype, times)?;
    (!room.is_constant()).then(|| room.bytes(0, bytes))
}

/// Returns the data and the room for so many times as many elements, where these are in different memory.
#[inline]
fn both<'a>(
    process: &Process,
    (data, count, datatype): At<In>,
    times: usize,
    (room, room_count, room_type): At<Out>,
    room_times: usize,
) -> Option<(&'a [u8], &'a mut [u8])> {
    let read = bytes_of(process, count, datatype, times)?;
    let written = bytes_of(process, room_count, room_type, room_times)?;
    let is_there = !data.is_constant() && !room.is_constant();
    (is_there && data.is_apart(read, room, written))
        .then(|| (data.bytes(0, read), room.bytes(0, written)))
}

const fn is_blocking(form: Form) -> Option<()> {
    match form {
        Form::Blocking => Some(()),
        _ => None,
    }
}

/// What a reduction does with a predefined operation and datatype.
fn reduction(process: &Process, op: Op, datatype: Datatype) -> Option<(Operation, Layout)> {
    let (operation, basic) = (predefined(op)?, process.types.basic(datatype)?);
    let layout = Layout::of(basic);
    operation.check(&layout).ok()?;
    Some((operation, layout))
}

pub(crate) fn barrier(team: &Team, form: Form) -> Option<Result> {
    is_blocking(form)?;
    Some(team.barrier().map_err(Into::into))
}

pub(crate) fn broadcast(
    process: &Process,
    team: &Team,
    form: Form,
    all: At<Out>,
    root: usize,
) -> Option<Result> {
    is_blocking(form)?;
    let all = room(process, all, 1)?;
    Some(team.broadcast(all, root).map_err(Into::into))
}

pub(crate) fn reduce(
    process: &Process,
    team: &Team,
    form: Form,
    (input, out): (In, Out),
    (count, datatype, op): (i64, Datatype, Op),
    root: usize,
) -> Option<Result> {
    is_blocking(form)?;
    let (input, out) = match team.me() == root {
        true => {
            let (input, out) = ((input, count, datatype), (out, count, datatype));
            let (input, out) = both(process, input, 1, out, 1)?;
            (input, Some(out))
        }
        // The others' rooms mean nothing, and may be null.
        false if input.is_constant() => return None,
        false => {
            let bytes = bytes_of(process, count, datatype, 1)?;
            (input.bytes(0, bytes), None)
        }
    };
    let (operation, layout) = reduction(process, op, datatype)?;
    let (operation, layout) = (&operation, &layout);
    let reduced = team.call(Reduce {
        operator: Reduction { operation, layout }.into(),
        input: Some(input),
        out,
        root,
    });
    Some(reduced.map_err(Into::into))
}

pub(crate) fn allreduce(
    process: &Process,
    team: &Team,
    form: Form,
    (input, out): (In, Out),
    (count, datatype, op): (i64, Datatype, Op),
) -> Option<Result> {
    is_blocking(form)?;
    let (input, out) = ((input, count, datatype), (out, count, datatype));
    let (input, out) = both(process, input, 1, out, 1)?;
    let (operation, layout) = reduction(process, op, datatype)?;
    let (operation, layout) = (&operation, &layout);
    let reduced = team.call(Allreduce {
        operator: Reduction { operation, layout }.into(),
        input: Some(input),
        data: out,
    });
    Some(reduced.map_err(Into::into))
}

pub(crate) fn allgather(
    process: &Process,
    team: &Team,
    form: Form,
    own: At<In>,
    all: At<Out>,
) -> Option<Result> {
    is_blocking(form)?;
    let (own, all) = both(process, own, 1, all, team.size())?;
    Some(team.allgather(own, all).map_err(Into::into))
}

pub(crate) fn alltoall(
    process: &Process,
    team: &Team,
    form: Form,
    input: At<In>,
    out: At<Out>,
) -> Option<Result> {
    is_blocking(form)?;
    let size = team.size();
    let (input, out) = both(process, input, size, out, size)?;
    Some(team.alltoall(input, out).map_err(Into::into))
}
