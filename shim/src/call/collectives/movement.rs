//! Barriers, and the collectives that move data (MPI-5.0, sections 6.3 to 6.8). One body serves the calls of a family: those of
//! equal, varying and typed blocks, in one group and between two.

use tagwire_coll::operations::{
    Allgather, Alltoall, Barrier, Blocks, Broadcast, Gather, Root, Scatter,
};

use super::buffers::Pair;
use super::data::{Data, Side};
use super::fast;
use super::run::Call;
use crate::error::Result;

pub(super) fn barrier(call: &Call<'_>) -> Result {
    if let Some(done) = fast::barrier(call) {
        return done;
    }
    call.run(Pair::none(), |_| Barrier)
}

pub(super) fn broadcast(call: &Call<'_>, buffer: Side, root: i32) -> Result {
    let root = call.root(root)?;
    if let Some(done) = fast::broadcast(call, buffer, root) {
        return done;
    }
    let buffers = match root {
        Root::Beside => Pair::none(),
        _ if call.is_root(root) => Pair::sent(buffer.block(call.process, 0)?),
        _ => Pair::received(buffer.block(call.process, 0)?),
    };
    call.run(buffers, move |(_, data)| Broadcast { data, root })
}

/// Gathers the `own` blocks of the members in `all` of the root.
pub(super) fn gather(call: &Call<'_>, own: Side, all: Side, root: i32) -> Result {
    let root = call.root(root)?;
    let is_root = call.is_root(root);
    let input = match root {
        Root::Here | Root::Beside => Some(Data::none()),
        _ if is_root => call.input(own, |own| own.block(call.process, 0))?,
        _ => Some(own.block(call.process, 0)?),
    };
    let output = match is_root {
        true => call.all(all)?,
        false => Data::none(),
    };
    let parts = call.parts(all, &output);
    call.run(Pair::of(input, output)?, move |(own, out)| Gather {
        own,
        parts: parts.clone(),
        out: is_root.then_some(out),
        root,
    })
}

/// Scatters `all` of the root to the members, a block to each.
pub(super) fn scatter(call: &Call<'_>, all: Side, own: Side, root: i32) -> Result {
    let root = call.root(root)?;
    let is_root = call.is_root(root);
    let input = match is_root {
        true => call.all(all)?,
        false => Data::none(),
    };
    // In place the root's block stays where it is.
    let has_own = !(is_root && call.is_in_place(own));
    let output = match root {
        Root::Here | Root::Beside => Data::none(),
        _ if has_own => own.block(call.process, 0)?,
        _ => Data::none(),
    };
    let parts = call.parts(all, &input);
    call.run(Pair::new(input, output)?, move |(input, own)| Scatter {
        input: input.filter(|_| is_root),
        parts: parts.clone(),
        own: has_own.then_some(own),
        root,
    })
}

/// Gathers the `own` blocks of the members in `all` of each.
pub(super) fn allgather(call: &Call<'_>, own: Side, all: Side) -> Result {
    if let Some(done) = fast::allgather(call, own, all) {
        return done;
    }
    let input = call.input(own, |own| own.block(call.process, 0))?;
    let output = call.all(all)?;
    let parts = call.parts(all, &output);
    call.run(Pair::of(input, output)?, move |(own, out)| Allgather {
        own,
        parts: parts.clone(),
        out,
    })
}

/// Exchanges a block with each member.
pub(super) fn alltoall(call: &Call<'_>, send: Side, recv: Side) -> Result {
    if let Some(done) = fast::alltoall(call, send, recv) {
        return done;
    }
    let output = call.all(recv)?;
    let input = call.input(send, |send| call.all(send))?;
    let to = input.as_ref().map(|input| call.parts(send, input));
    let from = call.parts(recv, &output);
    call.run(Pair::of(input, output)?, move |(input, out)| Alltoall {
        input: input
            .zip(to.clone())
            .map(|(input, to)| Blocks::Together(input, to)),
        out: Blocks::Together(out, from.clone()),
    })
}
