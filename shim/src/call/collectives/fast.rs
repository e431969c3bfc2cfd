//! The fast path of blocking collectives in one group: buffers are one block of a predefined datatype each, so that nothing is
//! packed and nothing is kept.
//!
//! Each function returns `None`, with nothing done, where anything else is asked for, errors in the arguments too: the bodies of
//! the families have all.
#![allow(unsafe_code)]

use tagwire_coll::operations::{Allreduce, Reduce, Root};
use tagwire_coll::{self as coll, Operator};
use tagwire_layout::Layout;

use super::data::Side;
use super::run::Call;
use crate::abi::Op;
use crate::error::Result;
use crate::object::operation::predefined;

/// Returns how many bytes `blocks` equal blocks are.
#[inline]
fn bytes_of(call: &Call<'_>, side: Side, blocks: usize) -> Option<usize> {
    let (count, datatype) = side.equal_blocks()?;
    let bytes = call.process.types.simple_bytes(count, datatype)?;
    bytes.checked_mul(blocks)
}

/// Runs an operation that reads `sent` blocks and writes `received`, where these are in different memory.
#[inline]
fn with_both(
    call: &Call<'_>,
    send: Side,
    sent: usize,
    recv: Side,
    received: usize,
    operation: impl FnOnce(&[u8], &mut [u8]) -> coll::Result<()>,
) -> Option<Result> {
    let read = bytes_of(call, send, sent)?;
    let written = bytes_of(call, recv, received)?;
    let (send, recv) = (send.address(), recv.address());
    let is_there = !send.is_constant() && !recv.is_constant();
    (is_there && send.read().is_disjoint(read, recv, written)).then(|| {
        // SAFETY: the program has promised that the operation has both to itself, they are in different memory, and the
        // operation is over when the call returns.
        let (send, recv) = unsafe { (send.read().bytes(0, read), recv.bytes(0, written)) };
        operation(send, recv).map_err(Into::into)
    })
}

/// What a reduction does with a predefined operation and datatype.
fn reduction(call: &Call<'_>, of: Side, op: Op) -> Option<Operator<'static>> {
    let (operation, (_, datatype)) = (predefined(op)?, of.equal_blocks()?);
    let layout = Layout::of(call.process.types.basic(datatype)?);
    operation.check(&layout).ok()?;
    Some(Operator::owned(operation, layout))
}

pub(super) fn barrier(call: &Call<'_>) -> Option<Result> {
    call.is_blocking()
        .then(|| call.comm.team.barrier().map_err(Into::into))
}

pub(super) fn broadcast(call: &Call<'_>, buffer: Side, root: Root) -> Option<Result> {
    let (Root::Member(root), true) = (root, call.is_blocking()) else {
        return None;
    };
    let bytes = bytes_of(call, buffer, 1)?;
    let address = buffer.address();
    (!address.is_constant()).then(|| {
        // SAFETY: the program has promised that the operation has the buffer to itself, which is over when the call returns.
        let data = unsafe { address.bytes(0, bytes) };
        call.comm.team.broadcast(data, root).map_err(Into::into)
    })
}

pub(super) fn reduce(
    call: &Call<'_>,
    send: Side,
    recv: Side,
    op: Op,
    root: Root,
) -> Option<Result> {
    let (Root::Member(member), true) = (root, call.is_blocking()) else {
        return None;
    };
    let operator = reduction(call, recv, op)?;
    let reduce = |input: &[u8], out: Option<&mut [u8]>| {
        call.comm.team.call(Reduce {
            operator,
            input: Some(input),
            out,
            root,
        })
    };
    if call.comm.team.me() == member {
        return with_both(call, send, 1, recv, 1, |input, out| {
            reduce(input, Some(out))
        });
    }
    // The others' receive buffers mean nothing, and may be null.
    let bytes = bytes_of(call, send, 1)?;
    let send = send.address();
    (!send.is_constant()).then(|| {
        // SAFETY: the program has promised that nobody writes the input until the operation is over, as it is when the call
        // returns.
        let input = unsafe { send.read().bytes(0, bytes) };
        reduce(input, None).map_err(Into::into)
    })
}

pub(super) fn allreduce(call: &Call<'_>, send: Side, recv: Side, op: Op) -> Option<Result> {
    if !call.is_fast() {
        return None;
    }
    let operator = reduction(call, recv, op)?;
    with_both(call, send, 1, recv, 1, |input, data| {
        call.comm.team.call(Allreduce {
            operator,
            input: Some(input),
            data,
        })
    })
}

pub(super) fn allgather(call: &Call<'_>, own: Side, all: Side) -> Option<Result> {
    if !call.is_fast() {
        return None;
    }
    let team = &call.comm.team;
    with_both(call, own, 1, all, team.size(), |own, all| {
        team.allgather(own, all)
    })
}

pub(super) fn alltoall(call: &Call<'_>, send: Side, recv: Side) -> Option<Result> {
    if !call.is_fast() {
        return None;
    }
    let team = &call.comm.team;
    let size = team.size();
    with_both(call, send, size, recv, size, |send, recv| {
        team.alltoall(send, recv)
    })
}
