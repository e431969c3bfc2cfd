//! Gathers to all.

use crate::algorithms::Collective;
use crate::call::{Call, two_parts};
use crate::error::Result;
use crate::functions::{Functions, Steps, steps};
use crate::{broadcast, gather};

type Function = for<'a> fn(Call<'a>, &'a [u8], &'a mut [u8]) -> Steps<'a>;

const FUNCTIONS: Functions<Function> = Functions::of(
    Collective::Allgather,
    &[
        ("bruck", steps!(bruck[call, own, out])),
        ("ring", steps!(equal_ring[call, own, out])),
        ("two-level", steps!(two_level[call, own, out])),
    ],
);

/// Returns the steps of the algorithm that is chosen.
pub(crate) fn allgather<'a>(call: Call<'a>, own: &'a [u8], out: &'a mut [u8]) -> Result<Steps<'a>> {
    let algorithm = call.choose(Collective::Allgather, out.len(), true);
    Ok(FUNCTIONS.get(algorithm)?(call, own, out))
}

pub(crate) async fn allgatherv(
    call: Call<'_>,
    own: &[u8],
    lengths: &[usize],
    out: &mut [u8],
) -> Result<()> {
    ring(call, own, |member| lengths[member], out).await
}

/// Bruck et al., 1997: log2(n) steps for any n. Blocks are gathered from this member's on, and turned at the end.
pub(crate) async fn bruck(call: Call<'_>, own: &[u8], out: &mut [u8]) -> Result<()> {
    let (size, len) = (call.size(), own.len());
    out[..len].copy_from_slice(own);
    let mut here = 1;
    while here < size {
        let more = here.min(size - here);
        let (read, write) = two_parts(out, 0..more * len, here * len..(here + more) * len);
        call.exchange(read, call.before(here), write, call.after(here))
            .await?;
        here += more;
    }
    out.rotate_right(call.me() * len);
    Ok(())
}

async fn equal_ring(call: Call<'_>, own: &[u8], out: &mut [u8]) -> Result<()> {
    ring(call, own, |_| own.len(), out).await
}

/// Blocks go around a ring: n - 1 steps of one block.
async fn ring(
    call: Call<'_>,
    own: &[u8],
    length: impl Fn(usize) -> usize,
    out: &mut [u8],
) -> Result<()> {
    let size = call.size();
    let range = |member| {
        let start = (0..member).map(&length).sum();
        start..start + length(member)
    };
    out[range(call.me())].copy_from_slice(own);
    for step in 0..size.saturating_sub(1) {
        let (read, write) = (range(call.before(step)), range(call.before(step + 1)));
        let (read, write) = two_parts(out, read, write);
        call.exchange(read, call.after(1), write, call.before(1))
            .await?;
    }
    Ok(())
}

/// Each host's blocks go to its leader, leaders give each other those, and all to their hosts.
async fn two_level(call: Call<'_>, own: &[u8], out: &mut [u8]) -> Result<()> {
    let levels = call.all_levels()?;
    let (host, len) = (call.among(levels.host()), own.len());
    if let Some(leaders) = levels.leaders() {
        let mut blocks = call.scratch(host.size() * len);
        gather::gather(host, own, Some(&mut blocks), 0)?.await?;
        let leaders = call.among(leaders);
        let lengths: Vec<_> = levels.sizes().map(|size| size * len).collect();
        let by_host = levels.by_host();
        if by_host.is_sorted() {
            allgatherv(leaders, &blocks, &lengths, out).await?;
        } else {
            let mut all = call.scratch(out.len());
            allgatherv(leaders, &blocks, &lengths, &mut all).await?;
            for (place, member) in by_host.iter().enumerate() {
                let (from, to) = (place * len, member * len);
                out[to..to + len].copy_from_slice(&all[from..from + len]);
            }
        }
    } else {
        gather::gather(host, own, None, 0)?.await?;
    }
    broadcast::broadcast(host, out, 0)?.await
}
