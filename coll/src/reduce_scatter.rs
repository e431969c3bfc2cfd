//! Reductions whose result is cut among the members.

use crate::algorithms::{Algorithm, Collective, chosen, steps};
use crate::call::Call;
use crate::error::Result;
use crate::reduction::Reduction;
use crate::{reduce, scatter};

pub(crate) const ALGORITHMS: &[Algorithm] = &[
    Algorithm::tree(
        "reduce-scatterv",
        steps!(ReduceScatter: reduce_scatterv[call, reduction, input, lengths, out]),
    ),
    Algorithm::on_board(Collective::ReduceScatter),
    Algorithm::commutative(
        "pairwise",
        steps!(ReduceScatter: pairwise[call, reduction, input, lengths, out]),
    ),
];

pub(crate) async fn reduce_scatter(
    call: Call<'_>,
    reduction: Reduction<'_>,
    input: &[u8],
    lengths: &[usize],
    out: &mut [u8],
) -> Result<()> {
    let may_reorder = call.may_reorder(&reduction);
    chosen!(call, ReduceScatter of input.len(), may_reorder; reduction, input, lengths, out)
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
