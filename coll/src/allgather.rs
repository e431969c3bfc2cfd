//! Gathers to all.

use crate::algorithms::BRUCK;
use crate::call::{Call, two_parts};
use crate::error::Result;

pub(crate) async fn allgather(
    call: Call<'_>,
    algorithm: &str,
    own: &[u8],
    out: &mut [u8],
) -> Result<()> {
    match algorithm {
        BRUCK => bruck(call, own, out).await,
        _ => ring(call, own, |_| own.len(), out).await,
    }
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
async fn bruck(call: Call<'_>, own: &[u8], out: &mut [u8]) -> Result<()> {
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
