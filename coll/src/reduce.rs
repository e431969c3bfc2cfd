//! Reductions to one member.

use crate::call::Call;
use crate::error::Result;
use crate::reduction::Reduction;

/// A binomial tree. Operations that do not commute go up to member 0 in the order of members, and from there to the root.
pub(crate) async fn reduce(
    call: Call<'_>,
    reduction: Reduction<'_>,
    input: &[u8],
    out: Option<&mut [u8]>,
    root: usize,
) -> Result<()> {
    let commutes = reduction.operation.is_commutative();
    let top = if commutes { root } else { 0 };
    let mut result = match up_the_tree(call, reduction, input, top).await? {
        Some(result) => result,
        None if root != top && call.me() == root => vec![0; input.len()],
        None => return Ok(()),
    };
    if root != top {
        if call.me() == top {
            return call.send(&result, root).await;
        }
        call.recv(&mut result, top).await?;
    }
    if let Some(out) = out {
        out.copy_from_slice(&result);
    }
    Ok(())
}

/// Returns the result to `top`.
async fn up_the_tree(
    call: Call<'_>,
    reduction: Reduction<'_>,
    input: &[u8],
    top: usize,
) -> Result<Option<Vec<u8>>> {
    let (size, place) = (call.size(), call.before(top));
    let (mut sum, mut other) = (None, Vec::new());
    let mut mask = 1;
    while mask < size {
        if place & mask != 0 {
            // A leaf has nothing but its own.
            let sum = sum.as_deref().unwrap_or(input);
            call.send(sum, (place - mask + top) % size).await?;
            return Ok(None);
        }
        if place + mask < size {
            other.resize(input.len(), 0);
            call.recv(&mut other, (place + mask + top) % size).await?;
            reduction.right(sum.get_or_insert_with(|| input.to_vec()), &other)?;
        }
        mask *= 2;
    }
    Ok(Some(sum.unwrap_or_else(|| input.to_vec())))
}
