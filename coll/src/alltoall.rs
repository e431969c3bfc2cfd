//! Exchanges of all with all.

use crate::algorithms::Collective;
use crate::call::Call;
use crate::error::Result;
use crate::functions::{Functions, Steps, steps};

type Function = for<'a> fn(Call<'a>, &'a [u8], &'a mut [u8]) -> Steps<'a>;

const FUNCTIONS: Functions<Function> = Functions::of(
    Collective::Alltoall,
    &[
        ("bruck", steps!(bruck[call, input, out])),
        ("pairwise", steps!(equal_pairwise[call, input, out])),
    ],
);

/// Returns the steps of the algorithm that is chosen.
pub(crate) fn alltoall<'a>(
    call: Call<'a>,
    input: &'a [u8],
    out: &'a mut [u8],
) -> Result<Steps<'a>> {
    let block = input.len() / call.size();
    let algorithm = call.choose(Collective::Alltoall, block, true);
    Ok(FUNCTIONS.get(algorithm)?(call, input, out))
}

pub(crate) async fn equal_pairwise(call: Call<'_>, input: &[u8], out: &mut [u8]) -> Result<()> {
    let block = input.len() / call.size();
    pairwise(call, input, |_| block, out, |_| block).await
}

pub(crate) async fn alltoallv(
    call: Call<'_>,
    input: &[u8],
    to: &[usize],
    out: &mut [u8],
    from: &[usize],
) -> Result<()> {
    pairwise(call, input, |member| to[member], out, |member| from[member]).await
}

/// n - 1 steps, in each of which every member sends to one and receives from one.
async fn pairwise(
    call: Call<'_>,
    input: &[u8],
    to: impl Fn(usize) -> usize,
    out: &mut [u8],
    from: impl Fn(usize) -> usize,
) -> Result<()> {
    let range = |length: &dyn Fn(usize) -> usize, member: usize| {
        let start = (0..member).map(length).sum();
        start..start + length(member)
    };
    out[range(&from, call.me())].copy_from_slice(&input[range(&to, call.me())]);
    for step in 1..call.size() {
        let (next, last) = (call.after(step), call.before(step));
        let (read, write) = (range(&to, next), range(&from, last));
        call.exchange(&input[read], next, &mut out[write], last)
            .await?;
    }
    Ok(())
}

/// Bruck et al., 1997: log2(n) steps of half of the blocks each. A block goes to the member `d` after this one in the steps
/// of the bits of `d`.
async fn bruck(call: Call<'_>, input: &[u8], out: &mut [u8]) -> Result<()> {
    let size = call.size();
    let block = input.len() / size;
    let at = |place: usize| place * block..(place + 1) * block;
    let mut blocks = call.copy(input);
    blocks.rotate_left(call.me() * block);
    let (mut leaving, mut coming) = (Vec::new(), Vec::new());
    let mut distance = 1;
    while distance < size {
        let moved = || (0..size).filter(|place| place & distance != 0);
        leaving.clear();
        moved().for_each(|place| leaving.extend_from_slice(&blocks[at(place)]));
        coming.resize(leaving.len(), 0);
        call.exchange(
            &leaving,
            call.after(distance),
            &mut coming,
            call.before(distance),
        )
        .await?;
        for (number, place) in moved().enumerate() {
            blocks[at(place)].copy_from_slice(&coming[at(number)]);
        }
        distance *= 2;
    }
    for place in 0..size {
        out[at(call.before(place))].copy_from_slice(&blocks[at(place)]);
    }
    Ok(())
}
