//! Reductions.

use super::call::{BoardCall, Pieces};
use crate::error::Result;
use crate::reduction::Reduction;

/// All but the root show piece after piece; the root combines them, from the first member's to the last's.
#[inline]
pub(crate) fn reduce(
    call: &mut BoardCall<'_>,
    reduction: Reduction<'_>,
    input: Option<&[u8]>,
    out: Option<&mut [u8]>,
    root: usize,
) -> Result<()> {
    let copy = match (input, &out) {
        (None, Some(out)) => {
            let mut copy = call.team.scratch(out.len());
            copy.copy_from_slice(out);
            Some(copy)
        }
        _ => None,
    };
    let input = input.or(copy.as_deref()).unwrap_or_default();
    let pieces = Pieces::new(input.len(), reduction.layout.extent());
    let first = call.begin(pieces.count());
    let rounds = (first..).take(pieces.count()).enumerate();
    let (Some(out), true) = (out, call.me() == root) else {
        for (index, round) in rounds {
            let piece = &input[pieces.range(index)];
            call.show(round, &[piece])?;
            call.finish_one_way(round, piece.len());
        }
        return Ok(());
    };
    for (index, round) in rounds {
        call.wait_for_all(round)?;
        let range = pieces.range(index);
        let (own, into) = (&input[range.clone()], &mut out[range]);
        let len = own.len();
        match root {
            0 => into.copy_from_slice(own),
            _ => call.copy(0, round, into)?,
        }
        for member in 1..call.size() {
            if member == root {
                reduction.right(into, own)?;
            } else {
                call.read(member, round, len, 0..len, |bytes| {
                    reduction.right(into, bytes)
                })??;
            }
        }
        call.finish_one_way(round, len);
    }
    Ok(())
}
