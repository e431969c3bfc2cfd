//! Gathers to all.

use crate::algorithms::{Algorithm, Collective, chosen, steps};
use crate::call::{Call, two_parts};
use crate::error::Result;
use crate::two_level;

pub(crate) const ALGORITHMS: &[Algorithm] = &[
    Algorithm::any("bruck", steps!(Allgather: bruck[call, own, out])),
    Algorithm::on_board(Collective::Allgather),
    Algorithm::any("ring", steps!(Allgather: equal_ring[call, own, out])),
    Algorithm::any(
        "two-level",
        steps!(Allgather: two_level::allgather[call, own, out]),
    )
    .with_levels(),
];

pub(crate) async fn allgather(call: Call<'_>, own: &[u8], out: &mut [u8]) -> Result<()> {
    chosen!(call, Allgather of out.len(), true; own, out)
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
