//! Gathering at a root.

use super::call::{BoardCall, Pieces};
use crate::error::Result;

/// The part of the root: all others show piece after piece, which it copies. What it gives is `own`, or in `out`.
#[inline]
pub(crate) fn gather(call: &mut BoardCall<'_>, own: Option<&[u8]>, out: &mut [u8]) -> Result<()> {
    let (me, len) = (call.me(), out.len() / call.size());
    let pieces = Pieces::new(len, 1);
    let first = call.begin(pieces.count());
    if let Some(own) = own {
        out[me * len..][..len].copy_from_slice(own);
    }
    for (index, round) in (first..).take(pieces.count()).enumerate() {
        for member in call.others() {
            call.wait_for(member, round)?;
            let into = &mut out[member * len..][..len][pieces.range(index)];
            call.copy(member, round, into)?;
        }
        call.finish(round);
    }
    Ok(())
}

/// The part of the others.
#[inline]
pub(crate) fn give(call: &mut BoardCall<'_>, own: &[u8]) -> Result<()> {
    let pieces = Pieces::new(own.len(), 1);
    let first = call.begin(pieces.count());
    for (index, round) in (first..).take(pieces.count()).enumerate() {
        call.show(round, &[&own[pieces.range(index)]])?;
        call.finish(round);
    }
    Ok(())
}
