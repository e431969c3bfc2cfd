//! Reductions to all members.

use crate::algorithms::{Algorithm, Collective, chosen, steps};
use crate::call::{Call, cut, two_parts};
use crate::error::Result;
use crate::reduction::Reduction;
use crate::two_level;

pub(crate) const ALGORITHMS: &[Algorithm] = &[
    Algorithm::tree(
        "recursive-doubling",
        steps!(Allreduce: recursive_doubling[call, reduction, data]),
    ),
    Algorithm::on_board(Collective::Allreduce),
    Algorithm::commutative("ring", steps!(Allreduce: ring[call, reduction, data])),
    Algorithm::commutative(
        "multi-lane",
        steps!(Allreduce: two_level::allreduce_by_lanes[call, reduction, data]),
    )
    .with_levels(),
    Algorithm::commutative(
        "two-level",
        steps!(Allreduce: two_level::allreduce[call, reduction, data]),
    )
    .with_levels(),
];

pub(crate) async fn allreduce(
    call: Call<'_>,
    reduction: Reduction<'_>,
    data: &mut [u8],
) -> Result<()> {
    let may_reorder = call.may_reorder(&reduction);
    chosen!(call, Allreduce of data.len(), may_reorder; reduction, data)
}

/// log2(n) steps of the whole data. Where n is no power of two, the first members go in pairs of neighbours, so that
/// operands stay in the order of members.
pub(crate) async fn recursive_doubling(
    call: Call<'_>,
    reduction: Reduction<'_>,
    data: &mut [u8],
) -> Result<()> {
    let (size, me) = (call.size(), call.me());
    if size == 1 || data.is_empty() {
        return Ok(());
    }
    let power = 1 << size.ilog2();
    let paired = 2 * (size - power);
    if me < paired && me.is_multiple_of(2) {
        call.send(data, me + 1).await?;
        return call.recv(data, me + 1).await;
    }
    let mut other = call.scratch(data.len());
    let place = if me < paired {
        call.recv(&mut other, me - 1).await?;
        reduction.left(&other, data)?;
        me / 2
    } else {
        me - paired / 2
    };
    let mut mask = 1;
    while mask < power {
        let partner = place ^ mask;
        let member = match partner < paired / 2 {
            true => 2 * partner + 1,
            false => partner + paired / 2,
        };
        call.exchange(data, member, &mut other, member).await?;
        reduction.with(data, &other, member < me)?;
        mask *= 2;
    }
    if me < paired {
        call.send(data, me - 1).await?;
    }
    Ok(())
}

/// Each member combines one part, and then gets the others': 2 (n - 1) steps of a part, each byte twice on its way. Operands
/// of a part go around the ring from the member after its own.
async fn ring(call: Call<'_>, reduction: Reduction<'_>, data: &mut [u8]) -> Result<()> {
    let size = call.size();
    let lengths = cut(data.len(), size, reduction.layout.extent());
    let mut other = call.scratch(lengths.iter().copied().max().unwrap_or(0));
    let (next, last) = (call.after(1), call.before(1));
    for step in 0..size - 1 {
        let (out, into) = (call.before(step + 1), call.before(step + 2));
        let other = &mut other[..lengths[into]];
        let out = &data[Call::range(&lengths, out)];
        call.exchange(out, next, other, last).await?;
        reduction.left(other, &mut data[Call::range(&lengths, into)])?;
    }
    for step in 0..size - 1 {
        let (out, into) = (call.before(step), call.before(step + 1));
        let (read, write) = (Call::range(&lengths, out), Call::range(&lengths, into));
        let (read, write) = two_parts(data, read, write);
        call.exchange(read, next, write, last).await?;
    }
    Ok(())
}
