//! Reductions to one member.

use crate::algorithms::SCATTER_GATHER;
use crate::call::{Call, cut};
use crate::error::Result;
use crate::reduce_scatter;
use crate::reduction::Reduction;
use crate::scratch::Scratch;

pub(crate) async fn reduce(
    call: Call<'_>,
    algorithm: &str,
    reduction: Reduction<'_>,
    input: &[u8],
    out: Option<&mut [u8]>,
    root: usize,
) -> Result<()> {
    match algorithm {
        SCATTER_GATHER => scatter_gather(call, reduction, input, out, root).await,
        _ => binomial(call, reduction, input, out, root).await,
    }
}

/// A binomial tree. Operations that do not commute go up to member 0 in the order of members, and from there to the root.
pub(crate) async fn binomial(
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
        None if root != top && call.me() == root => call.scratch(input.len()),
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
async fn up_the_tree<'t>(
    call: Call<'t>,
    reduction: Reduction<'_>,
    input: &[u8],
    top: usize,
) -> Result<Option<Scratch<'t>>> {
    let (size, place) = (call.size(), call.before(top));
    let mut sum: Option<Scratch<'_>> = None;
    let mut mask = 1;
    while mask < size {
        if place & mask != 0 {
            // A leaf has nothing but its own.
            let sum = sum.as_deref().unwrap_or(input);
            call.send_pieces(sum, (place - mask + top) % size).await?;
            return Ok(None);
        }
        if place + mask < size {
            let mut other = call.scratch(input.len());
            let from = (place + mask + top) % size;
            call.recv_pieces(&mut other, from).await?;
            match &mut sum {
                Some(sum) => reduction.right(sum, &other)?,
                None => {
                    reduction.left(input, &mut other)?;
                    sum = Some(other);
                }
            }
        }
        mask *= 2;
    }
    Ok(Some(sum.unwrap_or_else(|| call.copy(input))))
}

/// Each member combines one part and gives it to the root (Rabenseifner's, in steps of pairs).
async fn scatter_gather(
    call: Call<'_>,
    reduction: Reduction<'_>,
    input: &[u8],
    out: Option<&mut [u8]>,
    root: usize,
) -> Result<()> {
    let lengths = cut(input.len(), call.size(), reduction.layout.extent());
    let own = Call::range(&lengths, call.me());
    let (true, Some(out)) = (call.me() == root, out) else {
        let mut part = call.scratch(own.len());
        reduce_scatter::pairwise(call, reduction, input, &lengths, &mut part).await?;
        return call.send_pieces(&part, root).await;
    };
    reduce_scatter::pairwise(call, reduction, input, &lengths, &mut out[own]).await?;
    for distance in 1..call.size() {
        let from = call.after(distance);
        let part = &mut out[Call::range(&lengths, from)];
        call.recv_pieces(part, from).await?;
    }
    Ok(())
}
