//! Groups on several hosts: members of a host meet in its memory, and one of each host, its leader, crosses the network.
//!
//! ```text
//!     host 0          host 1            allreduce: up to the leaders, among them, down
//!     0 <-- 1         2 <-- 3
//!     0 <-----------> 2
//!     0 --> 1         2 --> 3
//! ```
//!
//! Messages have the tag of the whole operation: two members meet on one level, where their messages keep their order. A group
//! with one level, and an algorithm of one, go on to the operation's own file.

use crate::algorithms::{Collective, MULTI_LANE, TWO_LEVEL};
use crate::call::{Call, cut};
use crate::error::Result;
use crate::levels::Levels;
use crate::reduction::Reduction;
use crate::scratch::Scratch;
use crate::{allgather, allreduce, barrier, broadcast, gather, reduce, reduce_scatter};

/// Returns the levels of a group for which the algorithm `chosen` is the one that is `wanted`.
fn levels<'t>(call: Call<'t>, chosen: &str, wanted: &str) -> Option<&'t Levels> {
    call.levels().filter(|_| chosen == wanted)
}

pub(crate) async fn barrier(call: Call<'_>) -> Result<()> {
    let Some(levels) = call.levels() else {
        return barrier::barrier(call).await;
    };
    let host = call.among(levels.host());
    gather::binomial(host, &[], Some(&mut []), 0).await?;
    if let Some(leaders) = levels.leaders() {
        barrier::barrier(call.among(leaders)).await?;
    }
    broadcast::binomial(host, &mut [], 0).await
}

/// The root gives the data to its leader, that one to the others, and each to its host.
pub(crate) async fn broadcast(
    call: Call<'_>,
    algorithm: &str,
    data: &mut [u8],
    root: usize,
) -> Result<()> {
    let Some(levels) = levels(call, algorithm, TWO_LEVEL) else {
        return broadcast::broadcast(call, algorithm, data, root).await;
    };
    let (host, first) = (call.among(levels.host()), levels.host_of(root));
    let is_first = levels.own_host() == first;
    if is_first {
        broadcast::binomial(host, data, levels.place(root)).await?;
    }
    if let Some(leaders) = levels.leaders() {
        let leaders = call.among(leaders);
        let algorithm = leaders.choose(Collective::Broadcast, data.len(), true);
        broadcast::broadcast(leaders, algorithm, data, first).await?;
    }
    match is_first {
        true => Ok(()),
        false => broadcast::binomial(host, data, 0).await,
    }
}

/// Each host's sum goes to its leader, those to the root's, and from there to the root.
pub(crate) async fn reduce(
    call: Call<'_>,
    algorithm: &str,
    reduction: Reduction<'_>,
    input: &[u8],
    out: Option<&mut [u8]>,
    root: usize,
) -> Result<()> {
    let Some(levels) = levels(call, algorithm, TWO_LEVEL) else {
        return reduce::reduce(call, algorithm, reduction, input, out, root).await;
    };
    let (host, first) = (call.among(levels.host()), levels.host_of(root));
    let sum = reduce::up_the_tree(host, reduction, input, 0).await?;
    let mut whole: Option<Scratch<'_>> = None;
    if let (Some(sum), Some(leaders)) = (sum, levels.leaders()) {
        let leaders = call.among(leaders);
        let algorithm = leaders.choose(Collective::Reduce, sum.len(), true);
        whole = (leaders.me() == first).then(|| call.scratch(sum.len()));
        reduce::reduce(
            leaders,
            algorithm,
            reduction,
            &sum,
            whole.as_deref_mut(),
            first,
        )
        .await?;
    }
    let place = levels.place(root);
    match (whole, out) {
        (Some(whole), Some(out)) if call.me() == root => out.copy_from_slice(&whole),
        (Some(whole), _) => host.send(&whole, place).await?,
        (None, Some(out)) if call.me() == root => host.recv(out, 0).await?,
        _ => {}
    }
    Ok(())
}

pub(crate) async fn allreduce(
    call: Call<'_>,
    algorithm: &str,
    reduction: Reduction<'_>,
    data: &mut [u8],
) -> Result<()> {
    if let Some(levels) = levels(call, algorithm, TWO_LEVEL) {
        return by_leaders(call, levels, reduction, data).await;
    }
    match levels(call, algorithm, MULTI_LANE) {
        Some(levels) => by_lanes(call, levels, reduction, data).await,
        None => allreduce::allreduce(call, algorithm, reduction, data).await,
    }
}

async fn by_leaders(
    call: Call<'_>,
    levels: &Levels,
    reduction: Reduction<'_>,
    data: &mut [u8],
) -> Result<()> {
    let host = call.among(levels.host());
    let sum = reduce::up_the_tree(host, reduction, data, 0).await?;
    if let (Some(mut sum), Some(leaders)) = (sum, levels.leaders()) {
        let leaders = call.among(leaders);
        let algorithm = leaders.choose(Collective::Allreduce, sum.len(), true);
        allreduce::allreduce(leaders, algorithm, reduction, &mut sum).await?;
        data.copy_from_slice(&sum);
    }
    broadcast::binomial(host, data, 0).await
}

/// Each member of a host combines one part, and those with the same place on their hosts cross the network with it
/// (Traeff and Hunold, 2020).
async fn by_lanes(
    call: Call<'_>,
    levels: &Levels,
    reduction: Reduction<'_>,
    data: &mut [u8],
) -> Result<()> {
    let Some(lane) = levels.lane() else {
        return by_leaders(call, levels, reduction, data).await;
    };
    let (host, lane) = (call.among(levels.host()), call.among(lane));
    let lengths = cut(data.len(), host.size(), reduction.layout.extent());
    let mut part = call.scratch(lengths[host.me()]);
    reduce_scatter::pairwise(host, reduction, data, &lengths, &mut part).await?;
    let algorithm = lane.choose(Collective::Allreduce, part.len(), true);
    allreduce::allreduce(lane, algorithm, reduction, &mut part).await?;
    allgather::allgatherv(host, &part, &lengths, data).await
}

pub(crate) async fn allgather(
    call: Call<'_>,
    algorithm: &str,
    own: &[u8],
    out: &mut [u8],
) -> Result<()> {
    let Some(levels) = levels(call, algorithm, TWO_LEVEL) else {
        return allgather::allgather(call, algorithm, own, out).await;
    };
    let (host, len) = (call.among(levels.host()), own.len());
    if let Some(leaders) = levels.leaders() {
        let mut blocks = call.scratch(host.size() * len);
        let algorithm = host.choose(Collective::Gather, len, true);
        gather::gather(host, algorithm, own, Some(&mut blocks), 0).await?;
        let leaders = call.among(leaders);
        let lengths: Vec<_> = levels.sizes().map(|size| size * len).collect();
        let by_host = levels.by_host();
        if by_host.is_sorted() {
            allgather::allgatherv(leaders, &blocks, &lengths, out).await?;
        } else {
            let mut all = call.scratch(out.len());
            allgather::allgatherv(leaders, &blocks, &lengths, &mut all).await?;
            for (place, member) in by_host.iter().enumerate() {
                let (from, to) = (place * len, member * len);
                out[to..to + len].copy_from_slice(&all[from..from + len]);
            }
        }
    } else {
        let algorithm = host.choose(Collective::Gather, len, true);
        gather::gather(host, algorithm, own, None, 0).await?;
    }
    let algorithm = host.choose(Collective::Broadcast, out.len(), true);
    broadcast::broadcast(host, algorithm, out, 0).await
}
