//! Groups on several hosts: members of a host meet in its memory, and one of each host, its leader, crosses the network.
//!
//! ```text
//!     host 0          host 1            allreduce: up to the leaders, among them, down
//!     0 <-- 1         2 <-- 3
//!     0 <-----------> 2
//!     0 --> 1         2 --> 3
//! ```
//!
//! Messages have the tag of the whole operation: two members meet on one level, where their messages keep their order.

use crate::algorithms::Collective;
use crate::call::{Call, cut};
use crate::error::Result;
use crate::levels::Levels;
use crate::reduction::Reduction;
use crate::scratch::Scratch;
use crate::{allgather, allreduce as flat, barrier as dissemination, broadcast as tree};
use crate::{gather, reduce as up, reduce_scatter};

pub(crate) async fn barrier(call: Call<'_>, levels: &Levels) -> Result<()> {
    let host = call.among(levels.host());
    gather::binomial(host, &[], Some(&mut []), 0).await?;
    if let Some(leaders) = levels.leaders() {
        dissemination::dissemination(call.among(leaders)).await?;
    }
    tree::binomial(host, &mut [], 0).await
}

/// The root gives the data to its leader, that one to the others, and each to its host.
pub(crate) async fn broadcast(
    call: Call<'_>,
    levels: &Levels,
    data: &mut [u8],
    root: usize,
) -> Result<()> {
    let (host, first) = (call.among(levels.host()), levels.host_of(root));
    let is_first = levels.own_host() == first;
    if is_first {
        tree::binomial(host, data, levels.place(root)).await?;
    }
    if let Some(leaders) = levels.leaders() {
        let leaders = call.among(leaders);
        let algorithm = leaders.choose(Collective::Broadcast, data.len(), true);
        tree::flat(leaders, algorithm, data, first).await?;
    }
    match is_first {
        true => Ok(()),
        false => tree::binomial(host, data, 0).await,
    }
}

/// Each host's sum goes to its leader, those to the root's, and from there to the root.
pub(crate) async fn reduce(
    call: Call<'_>,
    levels: &Levels,
    reduction: Reduction<'_>,
    input: &[u8],
    out: Option<&mut [u8]>,
    root: usize,
) -> Result<()> {
    let (host, first) = (call.among(levels.host()), levels.host_of(root));
    let sum = up::up_the_tree(host, reduction, input, 0).await?;
    let mut whole: Option<Scratch<'_>> = None;
    if let (Some(sum), Some(leaders)) = (sum, levels.leaders()) {
        let leaders = call.among(leaders);
        let algorithm = leaders.choose(Collective::Reduce, sum.len(), true);
        whole = (leaders.me() == first).then(|| call.scratch(sum.len()));
        up::flat(
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
    levels: &Levels,
    reduction: Reduction<'_>,
    data: &mut [u8],
) -> Result<()> {
    let host = call.among(levels.host());
    let sum = up::up_the_tree(host, reduction, data, 0).await?;
    if let (Some(mut sum), Some(leaders)) = (sum, levels.leaders()) {
        let leaders = call.among(leaders);
        let algorithm = leaders.choose(Collective::Allreduce, sum.len(), true);
        flat::flat(leaders, algorithm, reduction, &mut sum).await?;
        data.copy_from_slice(&sum);
    }
    tree::binomial(host, data, 0).await
}

/// Each member of a host combines one part, and those with the same place on their hosts cross the network with it
/// (Traeff and Hunold, 2020).
pub(crate) async fn multi_lane_allreduce(
    call: Call<'_>,
    levels: &Levels,
    reduction: Reduction<'_>,
    data: &mut [u8],
) -> Result<()> {
    let Some(lane) = levels.lane() else {
        return allreduce(call, levels, reduction, data).await;
    };
    let (host, lane) = (call.among(levels.host()), call.among(lane));
    let lengths = cut(data.len(), host.size(), reduction.layout.extent());
    let mut part = call.scratch(lengths[host.me()]);
    reduce_scatter::pairwise(host, reduction, data, &lengths, &mut part).await?;
    let algorithm = lane.choose(Collective::Allreduce, part.len(), true);
    flat::flat(lane, algorithm, reduction, &mut part).await?;
    allgather::allgatherv(host, &part, &lengths, data).await
}

pub(crate) async fn allgather(
    call: Call<'_>,
    levels: &Levels,
    own: &[u8],
    out: &mut [u8],
) -> Result<()> {
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
    tree::flat(host, algorithm, out, 0).await
}
