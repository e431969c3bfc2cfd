//! Scattering from a root.

use super::call::{BoardCall, to_each};
use crate::error::Result;

/// The part of the root, which shows a piece of each other member's block, that those copy out. It gets its own in `own`, if it wants
/// that.
#[inline]
pub(crate) fn scatter(
    call: &mut BoardCall<'_>,
    input: &[u8],
    own: Option<&mut [u8]>,
) -> Result<()> {
    let (me, block) = (call.me(), input.len() / call.size());
    let pieces = call.pieces_to_each(block);
    let first = call.begin(pieces.count());
    for (index, round) in (first..).take(pieces.count()).enumerate() {
        let parts = to_each(call, input, pieces.range(index));
        call.show(round, &parts[..call.size() - 1])?;
        call.finish(round);
    }
    if let Some(own) = own {
        own.copy_from_slice(&input[me * block..][..block]);
    }
    Ok(())
}

/// The part of the others.
#[inline]
pub(crate) fn take(call: &mut BoardCall<'_>, own: &mut [u8], root: usize) -> Result<()> {
    let pieces = call.pieces_to_each(own.len());
    let first = call.begin(pieces.count());
    for (index, round) in (first..).take(pieces.count()).enumerate() {
        call.wait_for(root, round)?;
        call.copy_own(root, round, &mut own[pieces.range(index)])?;
        call.finish(round);
    }
    Ok(())
}
