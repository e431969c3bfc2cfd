//! Scattering from a root.

use super::call::{BoardCall, to_each};
use crate::error::Result;

/// The root shows a piece of each other member's block; those copy them out.
#[inline]
pub(crate) fn scatter(
    call: &mut BoardCall<'_>,
    input: Option<&[u8]>,
    own: &mut [u8],
    root: usize,
) -> Result<()> {
    let block = own.len();
    let pieces = call.pieces_to_each(block);
    let first = call.begin(pieces.count());
    let rounds = (first..).take(pieces.count()).enumerate();
    let (Some(input), true) = (input, call.me() == root) else {
        for (index, round) in rounds {
            call.wait_for(root, round)?;
            call.copy_own(root, round, &mut own[pieces.range(index)])?;
            call.finish(round);
        }
        return Ok(());
    };
    for (index, round) in rounds {
        let parts = to_each(call, input, pieces.range(index));
        call.show(round, &parts[..call.size() - 1])?;
        call.finish(round);
    }
    own.copy_from_slice(&input[root * block..][..block]);
    Ok(())
}
