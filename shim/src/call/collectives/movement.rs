//! Barriers, and the collectives that move data (MPI-5.0, sections 6.3 to 6.8). One body serves the calls of a family: those of
//! equal, varying and typed blocks, in one group and between two.

use std::borrow::Cow;

use tagwire_coll::Collective;
use tagwire_coll::operations::{
    Allgather, Allgatherv, Alltoall, Alltoallv, Barrier, Broadcast, Gather, Gatherv,
    InterAllgather, InterAlltoall, InterBroadcast, InterGather, InterRoot, InterScatter, Scatter,
    Scatterv,
};

use super::buffers::Pair;
use super::data::{Data, Side};
use super::fast;
use super::run::{Call, Root};
use crate::error::Result;

pub(super) fn barrier(call: &Call<'_>) -> Result {
    if let Some(done) = fast::barrier(call) {
        return done;
    }
    call.run(Pair::none(), |_| Barrier)
}

pub(super) fn broadcast(call: &Call<'_>, buffer: Side, root: i32) -> Result {
    let Some(root) = call.root(root)? else {
        return call.take_no_part(Collective::Broadcast);
    };
    if let Some(done) = fast::broadcast(call, buffer, root) {
        return done;
    }
    let data = buffer.block(call.process, 0)?;
    let buffers = match call.is_root(root) {
        true => Pair::sent(data),
        false => Pair::received(data),
    };
    match root {
        Root::Member(root) => call.run(buffers, move |(_, data)| Broadcast { data, root }),
        Root::Inter(root) => call.run(buffers, move |(_, data)| InterBroadcast { data, root }),
    }
}

/// Gathers the `own` blocks of the members in `all` of the root.
pub(super) fn gather(call: &Call<'_>, own: Side, all: Side, root: i32) -> Result {
    let Some(root) = call.root(root)? else {
        return call.take_no_part(Collective::Gather);
    };
    let is_root = call.is_root(root);
    let input = match root {
        Root::Inter(InterRoot::Here) => Data::none(),
        _ => call.own(own, is_root.then_some(all))?,
    };
    let output = match is_root {
        true => call.all(all)?,
        false => Data::none(),
    };
    let is_equal = all.equal_blocks().is_some();
    let buffers = Pair::new(input, output)?;
    match root {
        Root::Member(root) if is_equal => call.run(buffers, move |(own, out)| Gather {
            own,
            out: is_root.then_some(out),
            root,
        }),
        Root::Member(root) => {
            let lengths = buffers.output().lengths(call.members());
            call.run(buffers, move |(own, out)| Gatherv {
                own,
                lengths: Cow::Owned(lengths.clone()),
                out: is_root.then_some(out),
                root,
            })
        }
        Root::Inter(root) => {
            let lengths = buffers.output().lengths(call.members());
            call.run(buffers, move |(own, out)| InterGather {
                own,
                lengths: Cow::Owned(lengths.clone()),
                out: is_root.then_some(out),
                root,
            })
        }
    }
}

/// Scatters `all` of the root to the members, a block to each.
pub(super) fn scatter(call: &Call<'_>, all: Side, own: Side, root: i32) -> Result {
    let Some(root) = call.root(root)? else {
        return call.take_no_part(Collective::Scatter);
    };
    let (is_root, members) = (call.is_root(root), call.members());
    let input = match is_root {
        true => call.all(all)?,
        false => Data::none(),
    };
    let output = match root {
        Root::Inter(InterRoot::Here) => Data::none(),
        // Its block stays where it is.
        Root::Member(root) if is_root && own.is_in_place() => {
            Data::unused(input.block_len(root, members))
        }
        _ => own.block(call.process, 0)?,
    };
    let is_equal = all.equal_blocks().is_some();
    let buffers = Pair::new(input, output)?;
    match root {
        Root::Member(root) if is_equal => call.run(buffers, move |(input, own)| Scatter {
            input: is_root.then_some(input),
            own,
            root,
        }),
        Root::Member(root) => {
            let lengths = buffers.input().lengths(members);
            call.run(buffers, move |(input, own)| Scatterv {
                input: is_root.then_some(input),
                lengths: Cow::Owned(lengths.clone()),
                own,
                root,
            })
        }
        Root::Inter(root) => {
            let lengths = buffers.input().lengths(members);
            call.run(buffers, move |(input, own)| InterScatter {
                input: is_root.then_some(input),
                lengths: Cow::Owned(lengths.clone()),
                own,
                root,
            })
        }
    }
}

/// Gathers the `own` blocks of the members in `all` of each.
pub(super) fn allgather(call: &Call<'_>, own: Side, all: Side) -> Result {
    if let Some(done) = fast::allgather(call, own, all) {
        return done;
    }
    let input = call.own(own, Some(all))?;
    let buffers = Pair::new(input, call.all(all)?)?;
    if call.is_intra() && all.equal_blocks().is_some() {
        return call.run(buffers, |(own, out)| Allgather { own, out });
    }
    let lengths = buffers.output().lengths(call.members());
    match call.is_intra() {
        true => call.run(buffers, move |(own, out)| Allgatherv {
            own,
            lengths: Cow::Owned(lengths.clone()),
            out,
        }),
        false => call.run(buffers, move |(own, out)| InterAllgather {
            own,
            lengths: Cow::Owned(lengths.clone()),
            out,
        }),
    }
}

/// Exchanges a block with each member.
pub(super) fn alltoall(call: &Call<'_>, send: Side, recv: Side) -> Result {
    if let Some(done) = fast::alltoall(call, send, recv) {
        return done;
    }
    let (members, output) = (call.members(), call.all(recv)?);
    let input = match send.is_in_place() && call.is_intra() {
        true => recv.copy_of_all(call.process, members)?,
        false => call.all(send)?,
    };
    let buffers = Pair::new(input, output)?;
    if call.is_intra() && recv.equal_blocks().is_some() {
        return call.run(buffers, |(input, out)| Alltoall { input, out });
    }
    let to = buffers.input().lengths(members);
    let from = buffers.output().lengths(members);
    match call.is_intra() {
        true => call.run(buffers, move |(input, out)| Alltoallv {
            input,
            to: Cow::Owned(to.clone()),
            out,
            from: Cow::Owned(from.clone()),
        }),
        false => call.run(buffers, move |(input, out)| InterAlltoall {
            input,
            to: Cow::Owned(to.clone()),
            out,
            from: Cow::Owned(from.clone()),
        }),
    }
}
