//! Exchanges of blocks with any members, whose messages are all under way at once.
//!
//! A block is one message, also a long one: both sides know its length, and nobody works on its pieces. Pieces would only multiply
//! the requests, and where two members have several edges one that has another length than expected would take the pieces of the
//! next. An empty block is a message too: a peer that expects more finds out. Receives are posted first; a long message waits for its
//! receive.

use crate::call::Call;
use crate::neighbours::Neighbours;
use crate::sides::Sides;
use crate::transfer::{Part, Transfer};

/// Exchanges the blocks of a neighbourhood: of each destination in `input`, of each source in `out`. They are as many.
pub(crate) fn neighbours<'a>(
    call: Call<'a>,
    neighbours: &Neighbours,
    input: impl Iterator<Item = &'a [u8]> + Clone,
    out: impl Iterator<Item = &'a mut [u8]>,
) -> Transfer<'a, Vec<Part>> {
    let me = call.me();
    let mut transfer = call.list(neighbours.messages(me));
    let departures = neighbours.departures(input);
    let mut own = departures.clone().filter(|(to, _)| *to == me);
    for (from, block) in neighbours.arrivals(out) {
        if from != me {
            transfer = transfer.recv(block, from, call.tag());
        } else if let Some((_, data)) = own.next() {
            block.copy_from_slice(data);
        }
    }
    for (to, data) in departures.filter(|(to, _)| *to != me) {
        transfer = transfer.send(data, to, call.tag());
    }
    transfer
}

/// Exchanges a block with each member. This one begins with the members after it, so that not all send to the same one first.
pub(crate) fn alltoall<'a>(
    call: Call<'a>,
    input: &[&'a [u8]],
    out: impl Iterator<Item = &'a mut [u8]>,
) -> Transfer<'a, Vec<Part>> {
    let (me, size) = (call.me(), call.size());
    let mut transfer = call.list(2 * (size - 1));
    for (from, block) in out.enumerate() {
        if from == me {
            block.copy_from_slice(input[me]);
        } else {
            transfer = transfer.recv(block, from, call.tag());
        }
    }
    for to in (1..size).map(|distance| call.after(distance)) {
        transfer = transfer.send(input[to], to, call.tag());
    }
    transfer
}

/// Exchanges a block with each member of the other side. This one begins with another than its neighbours do.
pub(crate) fn across<'a>(
    call: Call<'a>,
    sides: &Sides,
    input: impl Iterator<Item = &'a [u8]> + Clone,
    out: impl Iterator<Item = &'a mut [u8]>,
) -> Transfer<'a, Vec<Part>> {
    let remote = sides.remote();
    let mut transfer = call.list(2 * remote.len());
    for (from, block) in remote.clone().zip(out) {
        transfer = transfer.recv(block, from, call.tag());
    }
    let blocks = remote.clone().zip(input);
    let start = sides.me() % remote.len();
    let turned = blocks.clone().skip(start).chain(blocks.take(start));
    for (to, data) in turned {
        transfer = transfer.send(data, to, call.tag());
    }
    transfer
}

/// Returns the blocks of these lengths, which follow each other in `data`.
pub(crate) fn parts(
    data: &[u8],
    lengths: impl Iterator<Item = usize> + Clone,
) -> impl Iterator<Item = &[u8]> + Clone {
    let mut rest = data;
    lengths.map(move |length| {
        let (block, after) = rest.split_at(length);
        rest = after;
        block
    })
}

/// The same, to be changed.
pub(crate) fn parts_mut(
    data: &mut [u8],
    lengths: impl Iterator<Item = usize>,
) -> impl Iterator<Item = &mut [u8]> {
    let mut rest = data;
    lengths.map(move |length| {
        let (block, after) = std::mem::take(&mut rest).split_at_mut(length);
        rest = after;
        block
    })
}
