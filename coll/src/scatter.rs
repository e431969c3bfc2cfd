//! Scatters.

use crate::algorithms::Collective;
use crate::call::Call;
use crate::error::Result;
use crate::functions::{Functions, Steps, steps};

type Function = for<'a> fn(Call<'a>, Option<&'a [u8]>, &'a mut [u8], usize) -> Steps<'a>;

const FUNCTIONS: Functions<Function> = Functions::of(
    Collective::Scatter,
    &[
        ("binomial", steps!(binomial[call, input, own, root])),
        ("linear", steps!(linear[call, input, own, root])),
    ],
);

/// Returns the steps of the algorithm that is chosen.
pub(crate) fn scatter<'a>(
    call: Call<'a>,
    input: Option<&'a [u8]>,
    own: &'a mut [u8],
    root: usize,
) -> Result<Steps<'a>> {
    let algorithm = call.choose(Collective::Scatter, own.len(), true);
    Ok(FUNCTIONS.get(algorithm)?(call, input, own, root))
}

async fn linear(call: Call<'_>, input: Option<&[u8]>, own: &mut [u8], root: usize) -> Result<()> {
    let lengths = vec![own.len(); call.size()];
    scatterv(call, input, &lengths, own, root).await
}

/// A binomial tree: each member gets the blocks of its subtree at once.
async fn binomial(call: Call<'_>, input: Option<&[u8]>, own: &mut [u8], root: usize) -> Result<()> {
    let lengths = vec![own.len(); call.size()];
    // The blocks from the root's on: a subtree's are side by side.
    let (size, place) = (call.size(), call.before(root));
    let mut blocks = call.scratch(own.len() * size);
    if let Some(input) = input
        && call.me() == root
    {
        let at = root * own.len();
        blocks[..input.len() - at].copy_from_slice(&input[at..]);
        blocks[input.len() - at..].copy_from_slice(&input[..at]);
    }
    down_the_tree(call, &mut blocks, &lengths, root).await?;
    own.copy_from_slice(&blocks[Call::range(&lengths, place)]);
    Ok(())
}

/// Sends blocks down a binomial tree. `blocks` are numbered from the root; each member gets that of its place, and those of
/// its subtree.
pub(crate) async fn down_the_tree(
    call: Call<'_>,
    blocks: &mut [u8],
    lengths: &[usize],
    root: usize,
) -> Result<()> {
    let (size, place) = (call.size(), call.before(root));
    let bytes = |first: usize, end: usize| Call::range_of(lengths, first..end.min(size));
    let mut mask = 1;
    while mask < size {
        if place & mask != 0 {
            let into = &mut blocks[bytes(place, place + mask)];
            call.recv(into, (place - mask + root) % size).await?;
            break;
        }
        mask *= 2;
    }
    while mask > 1 {
        mask /= 2;
        if place + mask < size {
            let out = &blocks[bytes(place + mask, place + 2 * mask)];
            call.send(out, (place + mask + root) % size).await?;
        }
    }
    Ok(())
}

/// The root sends to one after the other.
pub(crate) async fn scatterv(
    call: Call<'_>,
    input: Option<&[u8]>,
    lengths: &[usize],
    own: &mut [u8],
    root: usize,
) -> Result<()> {
    let (true, Some(input)) = (call.me() == root, input) else {
        return call.recv(own, root).await;
    };
    for distance in 1..call.size() {
        let to = call.after(distance);
        call.send(&input[Call::range(lengths, to)], to).await?;
    }
    own.copy_from_slice(&input[Call::range(lengths, root)]);
    Ok(())
}
