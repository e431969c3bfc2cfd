//! Groups on several hosts: members of a host meet in its memory, and one of each host, its leader, crosses the network.
//!
//! ```text
//!     host 0          host 1            allreduce: up to the leaders, among them, down
//!     0 <-- 1         2 <-- 3
//!     0 <-----------> 2
//!     0 --> 1         2 --> 3
//! ```
//!
//! Messages have the tag of the whole operation: two members meet on one level, where their messages keep their order. On a level an
//! operation goes by the algorithm that is chosen there.

use crate::call::{Call, cut};
use crate::error::Result;
use crate::reduction::Reduction;
use crate::scratch::Scratch;
use crate::{allgather, allreduce, barrier, broadcast, gather, reduce, reduce_scatter};

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
pub(crate) async fn broadcast(call: Call<'_>, data: &mut [u8], root: usize) -> Result<()> {
    let levels = call.all_levels()?;
    let (host, first) = (call.among(levels.host()), levels.host_of(root));
    let is_first = levels.own_host() == first;
    if is_first {
        broadcast::binomial(host, data, levels.place(root)).await?;
    }
    if let Some(leaders) = levels.leaders() {
        broadcast::broadcast(call.among(leaders), data, first).await?;
    }
    match is_first {
        true => Ok(()),
        false => broadcast::binomial(host, data, 0).await,
    }
}

/// Each host's sum goes to its leader, those to the root's, and from there to the root.
pub(crate) async fn reduce(
    call: Call<'_>,
    reduction: Reduction<'_>,
    input: &[u8],
    out: Option<&mut [u8]>,
    root: usize,
) -> Result<()> {
    let levels = call.all_levels()?;
    let (host, first) = (call.among(levels.host()), levels.host_of(root));
    let sum = reduce::up_the_tree(host, reduction, input, 0).await?;
    let mut whole: Option<Scratch<'_>> = None;
    if let (Some(sum), Some(leaders)) = (sum, levels.leaders()) {
        let leaders = call.among(leaders);
        whole = (leaders.me() == first).then(|| call.scratch(sum.len()));
        reduce::reduce(leaders, reduction, &sum, whole.as_deref_mut(), first).await?;
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

/// Each host's sum goes to its leader, leaders combine those, and give the result to their hosts.
pub(crate) async fn allreduce(
    call: Call<'_>,
    reduction: Reduction<'_>,
    data: &mut [u8],
) -> Result<()> {
    let levels = call.all_levels()?;
    let host = call.among(levels.host());
    let sum = reduce::up_the_tree(host, reduction, data, 0).await?;
    if let (Some(mut sum), Some(leaders)) = (sum, levels.leaders()) {
        allreduce::allreduce(call.among(leaders), reduction, &mut sum).await?;
        data.copy_from_slice(&sum);
    }
    broadcast::binomial(host, data, 0).await
}

/// Each member of a host combines one part, and those with the same place on their hosts cross the network with it
/// (Traeff and Hunold, 2020).
pub(crate) async fn allreduce_by_lanes(
    call: Call<'_>,
    reduction: Reduction<'_>,
    data: &mut [u8],
) -> Result<()> {
    let levels = call.all_levels()?;
    let Some(lane) = levels.lane() else {
        return allreduce(call, reduction, data).await;
    };
    let (host, lane) = (call.among(levels.host()), call.among(lane));
    let lengths = cut(data.len(), host.size(), reduction.layout.extent());
    let mut part = call.scratch(lengths[host.me()]);
    reduce_scatter::pairwise(host, reduction, data, &lengths, &mut part).await?;
    allreduce::allreduce(lane, reduction, &mut part).await?;
    allgather::allgatherv(host, &part, &lengths, data).await
}

/// Each host's blocks go to its leader, leaders give each other those, and all to their hosts.
pub(crate) async fn allgather(call: Call<'_>, own: &[u8], out: &mut [u8]) -> Result<()> {
    let levels = call.all_levels()?;
    let (host, len) = (call.among(levels.host()), own.len());
    if let Some(leaders) = levels.leaders() {
        let mut blocks = call.scratch(host.size() * len);
        gather::gather(host, own, Some(&mut blocks), 0).await?;
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
        gather::gather(host, own, None, 0).await?;
    }
    broadcast::broadcast(host, out, 0).await
}
