//! Reductions over the members before.

use crate::call::Call;
use crate::error::Result;
use crate::reduction::Reduction;

pub(crate) async fn scan(call: Call<'_>, reduction: Reduction<'_>, data: &mut [u8]) -> Result<()> {
    let own = call.copy(data);
    exscan(call, reduction, data).await?;
    if call.me() > 0 {
        reduction.right(data, &own)?;
    }
    Ok(())
}

/// Recursive doubling: after step k a member has what the members before it in its block of 2^k have, and what the
/// whole block has.
pub(crate) async fn exscan(
    call: Call<'_>,
    reduction: Reduction<'_>,
    data: &mut [u8],
) -> Result<()> {
    let (size, me) = (call.size(), call.me());
    let (mut block, mut other) = (call.copy(data), call.scratch(data.len()));
    let mut has_any = false;
    let mut mask = 1;
    while mask < size {
        let partner = me ^ mask;
        if partner < size {
            call.exchange(&block, partner, &mut other, partner).await?;
            let is_lower = partner < me;
            reduction.with(&mut block, &other, is_lower)?;
            if is_lower && has_any {
                reduction.left(&other, data)?;
            } else if is_lower {
                data.copy_from_slice(&other);
                has_any = true;
            }
        }
        mask *= 2;
    }
    Ok(())
}
