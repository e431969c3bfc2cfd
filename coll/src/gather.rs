//! Gathers.

use crate::algorithms::Collective;
use crate::call::Call;
use crate::error::Result;
use crate::functions::{Functions, Steps, steps};

type Function = for<'a> fn(Call<'a>, &'a [u8], Option<&'a mut [u8]>, usize) -> Steps<'a>;

const FUNCTIONS: Functions<Function> = Functions::of(
    Collective::Gather,
    &[
        ("binomial", steps!(binomial[call, own, out, root])),
        ("linear", steps!(linear[call, own, out, root])),
    ],
);

/// Returns the steps of the algorithm that is chosen.
pub(crate) fn gather<'a>(
    call: Call<'a>,
    own: &'a [u8],
    out: Option<&'a mut [u8]>,
    root: usize,
) -> Result<Steps<'a>> {
    let algorithm = call.choose(Collective::Gather, own.len(), true);
    Ok(FUNCTIONS.get(algorithm)?(call, own, out, root))
}

async fn linear(call: Call<'_>, own: &[u8], out: Option<&mut [u8]>, root: usize) -> Result<()> {
    let lengths = vec![own.len(); call.size()];
    gatherv(call, own, &lengths, out, root).await
}

/// A binomial tree: each member sends the blocks of its subtree at once.
pub(crate) async fn binomial(
    call: Call<'_>,
    own: &[u8],
    out: Option<&mut [u8]>,
    root: usize,
) -> Result<()> {
    let (size, place, len) = (call.size(), call.before(root), own.len());
    // The blocks of the subtree, from this member's on.
    let most = match place {
        0 => size,
        _ => (1 << place.trailing_zeros()).min(size - place),
    };
    let mut blocks = call.scratch(most * len);
    blocks[..len].copy_from_slice(own);
    let mut mask = 1;
    while mask < size {
        if place & mask != 0 {
            return call.send(&blocks, (place - mask + root) % size).await;
        }
        if place + mask < size {
            let end = (2 * mask).min(size - place);
            let into = &mut blocks[mask * len..end * len];
            call.recv(into, (place + mask + root) % size).await?;
        }
        mask *= 2;
    }
    if let Some(out) = out {
        let at = root * len;
        let (first, last) = blocks.split_at(out.len() - at);
        out[at..].copy_from_slice(first);
        out[..at].copy_from_slice(last);
    }
    Ok(())
}

/// The root receives from one after the other.
pub(crate) async fn gatherv(
    call: Call<'_>,
    own: &[u8],
    lengths: &[usize],
    out: Option<&mut [u8]>,
    root: usize,
) -> Result<()> {
    let (true, Some(out)) = (call.me() == root, out) else {
        return call.send(own, root).await;
    };
    out[Call::range(lengths, root)].copy_from_slice(own);
    for distance in 1..call.size() {
        let from = call.after(distance);
        call.recv(&mut out[Call::range(lengths, from)], from)
            .await?;
    }
    Ok(())
}
