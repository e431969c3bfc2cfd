//! Reductions whose result is cut among the members.

use crate::algorithms::Collective;
use crate::call::Call;
use crate::error::Result;
use crate::functions::{Functions, Steps, steps};
use crate::reduction::Reduction;
use crate::{reduce, scatter};

type Function =
    for<'a> fn(Call<'a>, Reduction<'a>, &'a [u8], &'a [usize], &'a mut [u8]) -> Steps<'a>;

const FUNCTIONS: Functions<Function> = Functions::of(
    Collective::ReduceScatter,
    &[
        (
            "reduce-scatterv",
            steps!(reduce_scatterv[call, reduction, input, lengths, out]),
        ),
        (
            "pairwise",
            steps!(pairwise[call, reduction, input, lengths, out]),
        ),
    ],
);

/// Returns the steps of the algorithm that is chosen.
pub(crate) fn reduce_scatter<'a>(
    call: Call<'a>,
    reduction: Reduction<'a>,
    input: &'a [u8],
    lengths: &'a [usize],
    out: &'a mut [u8],
) -> Result<Steps<'a>> {
    let may_reorder = call.may_reorder(&reduction);
    let algorithm = call.choose(Collective::ReduceScatter, input.len(), may_reorder);
    Ok(FUNCTIONS.get(algorithm)?(
        call, reduction, input, lengths, out,
    ))
}

/// One member combines all, and gives each its part.
async fn reduce_scatterv(
    call: Call<'_>,
    reduction: Reduction<'_>,
    input: &[u8],
    lengths: &[usize],
    out: &mut [u8],
) -> Result<()> {
    let mut whole = (call.me() == 0).then(|| call.scratch(input.len()));
    reduce::binomial(call, reduction, input, whole.as_deref_mut(), 0).await?;
    scatter::scatterv(call, whole.as_deref(), lengths, out, 0).await
}

/// n - 1 steps, in each of which every member sends one its part of the input. They are combined in the order of distance.
pub(crate) async fn pairwise(
    call: Call<'_>,
    reduction: Reduction<'_>,
    input: &[u8],
    lengths: &[usize],
    out: &mut [u8],
) -> Result<()> {
    out.copy_from_slice(&input[Call::range(lengths, call.me())]);
    let mut other = call.scratch(out.len());
    for step in 1..call.size() {
        let (to, from) = (call.after(step), call.before(step));
        let part = &input[Call::range(lengths, to)];
        call.exchange(part, to, &mut other, from).await?;
        reduction.left(&other, out)?;
    }
    Ok(())
}
