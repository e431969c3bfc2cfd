//! Reductions whose result is cut among the members.

use crate::algorithms::PAIRWISE;
use crate::call::Call;
use crate::error::Result;
use crate::reduction::Reduction;
use crate::{reduce, scatter};

pub(crate) async fn reduce_scatter(
    call: Call<'_>,
    algorithm: &str,
    reduction: Reduction<'_>,
    input: &[u8],
    lengths: &[usize],
    out: &mut [u8],
) -> Result<()> {
    if algorithm == PAIRWISE {
        return pairwise(call, reduction, input, lengths, out).await;
    }
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
