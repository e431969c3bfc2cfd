//! Reductions to all members.

use std::ops::Range;

use crate::algorithms::Collective;
use crate::call::{Call, cut, two_parts};
use crate::error::Result;
use crate::functions::{Functions, Steps, steps};
use crate::places::Places;
use crate::reduction::Reduction;
use crate::scratch::Scratch;
use crate::{allgather, broadcast, reduce, reduce_scatter};

type Function = for<'a> fn(Call<'a>, Reduction<'a>, &'a mut [u8]) -> Steps<'a>;

const FUNCTIONS: Functions<Function> = Functions::of(
    Collective::Allreduce,
    &[
        (
            "recursive-doubling",
            steps!(recursive_doubling[call, reduction, data]),
        ),
        ("rabenseifner", steps!(rabenseifner[call, reduction, data])),
        ("ring", steps!(ring[call, reduction, data])),
        ("multi-lane", steps!(multi_lane[call, reduction, data])),
        ("two-level", steps!(two_level[call, reduction, data])),
    ],
);

/// Returns the steps of the algorithm that is chosen.
pub(crate) fn allreduce<'a>(
    call: Call<'a>,
    reduction: Reduction<'a>,
    data: &'a mut [u8],
) -> Result<Steps<'a>> {
    let may_reorder = call.may_reorder(&reduction);
    let algorithm = call.choose(Collective::Allreduce, data.len(), may_reorder);
    Ok(FUNCTIONS.get(algorithm)?(call, reduction, data))
}

/// Gives the second of a pair the data of the first. Returns the place of this member, and memory for the data of another; `None` to the
/// first of a pair.
async fn enter<'t>(
    places: Places,
    call: Call<'t>,
    reduction: Reduction<'_>,
    data: &mut [u8],
) -> Result<Option<(usize, Scratch<'t>)>> {
    let me = call.me();
    let place = places.of_member(me);
    if places.member(place) != me {
        call.send(data, me + 1).await?;
        return Ok(None);
    }
    let mut other = call.scratch(data.len());
    if places.is_paired(me) {
        call.recv(&mut other, me - 1).await?;
        reduction.left(&other, data)?;
    }
    Ok(Some((place, other)))
}

/// Gives the first of a pair the result.
async fn leave(places: Places, call: Call<'_>, data: &mut [u8]) -> Result<()> {
    let me = call.me();
    match places.is_paired(me) {
        false => Ok(()),
        true if me.is_multiple_of(2) => call.recv(data, me + 1).await,
        true => call.send(data, me - 1).await,
    }
}

/// log2(n) steps of the whole data.
pub(crate) async fn recursive_doubling(
    call: Call<'_>,
    reduction: Reduction<'_>,
    data: &mut [u8],
) -> Result<()> {
    if call.size() == 1 || data.is_empty() {
        return Ok(());
    }
    let places = Places::of(call.size());
    if let Some((place, mut other)) = enter(places, call, reduction, data).await? {
        let mut mask = 1;
        while mask < places.count {
            let member = places.member(place ^ mask);
            call.exchange(data, member, &mut other, member).await?;
            reduction.with(data, &other, member < call.me())?;
            mask *= 2;
        }
    }
    leave(places, call, data).await
}

/// log2(n) steps in which halves of what is left are combined, and as many back, in which they come together (Rabenseifner, 2004):
/// each byte twice on its way. Each element is combined in the tree of [`recursive_doubling`], since near members come first.
async fn rabenseifner(call: Call<'_>, reduction: Reduction<'_>, data: &mut [u8]) -> Result<()> {
    if call.size() == 1 || data.is_empty() {
        return Ok(());
    }
    let places = Places::of(call.size());
    let lengths = cut(data.len(), places.count, reduction.layout.extent());
    let range = |blocks: &Range<usize>| Call::range_of(&lengths, blocks.clone());
    if let Some((place, mut other)) = enter(places, call, reduction, data).await? {
        let (mut own, mut mask) = (0..places.count, 1);
        while mask < places.count {
            let member = places.member(place ^ mask);
            let middle = own.start + own.len() / 2;
            let (lower, upper) = (own.start..middle, middle..own.end);
            let (kept, given) = match place & mask {
                0 => (lower, upper),
                _ => (upper, lower),
            };
            let (read, write) = (range(&given), range(&kept));
            let into = &mut other[..write.len()];
            call.exchange(&data[read], member, into, member).await?;
            reduction.with(&mut data[write], into, member < call.me())?;
            (own, mask) = (kept, 2 * mask);
        }
        while mask > 1 {
            mask /= 2;
            let member = places.member(place ^ mask);
            let (whole, theirs) = match place & mask {
                0 => (own.start..own.end + own.len(), own.end..own.end + own.len()),
                _ => (
                    own.start - own.len()..own.end,
                    own.start - own.len()..own.start,
                ),
            };
            let (read, write) = two_parts(data, range(&own), range(&theirs));
            call.exchange(read, member, write, member).await?;
            own = whole;
        }
    }
    leave(places, call, data).await
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

/// Each host's sum goes to its leader, leaders combine those, and give the result to their hosts.
async fn two_level(call: Call<'_>, reduction: Reduction<'_>, data: &mut [u8]) -> Result<()> {
    let levels = call.all_levels()?;
    let host = call.among(levels.host());
    let sum = reduce::up_the_tree(host, reduction, data, 0).await?;
    if let (Some(mut sum), Some(leaders)) = (sum, levels.leaders()) {
        allreduce(call.among(leaders), reduction, &mut sum)?.await?;
        data.copy_from_slice(&sum);
    }
    broadcast::binomial(host, data, 0).await
}

/// Each member of a host combines one part, and those with the same place on their hosts cross the network with it
/// (Traeff and Hunold, 2020).
async fn multi_lane(call: Call<'_>, reduction: Reduction<'_>, data: &mut [u8]) -> Result<()> {
    let levels = call.all_levels()?;
    let Some(lane) = levels.lane() else {
        return two_level(call, reduction, data).await;
    };
    let (host, lane) = (call.among(levels.host()), call.among(lane));
    let lengths = cut(data.len(), host.size(), reduction.layout.extent());
    let mut part = call.scratch(lengths[host.me()]);
    reduce_scatter::pairwise(host, reduction, data, &lengths, &mut part).await?;
    allreduce(lane, reduction, &mut part)?.await?;
    allgather::allgatherv(host, &part, &lengths, data).await
}
