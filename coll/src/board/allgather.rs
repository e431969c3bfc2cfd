//! Gathering at all members.

use super::call::{BoardCall, Pieces};
use crate::error::Result;

/// Each member shows its own piece after piece, and copies what the others show.
#[inline]
pub(crate) fn allgather(call: &mut BoardCall<'_>, own: &[u8], out: &mut [u8]) -> Result<()> {
    let len = own.len();
    let pieces = Pieces::new(len, 1);
    let first = call.begin(pieces.count());
    call.show(first, &[&own[pieces.range(0)]])?;
    let place = call.me() * len;
    out[place..place + len].copy_from_slice(own);
    for (index, round) in (first..).take(pieces.count()).enumerate() {
        if index + 1 < pieces.count() {
            call.show(round + 1, &[&own[pieces.range(index + 1)]])?;
        }
        call.wait_for_all(round)?;
        for member in call.others() {
            let into = &mut out[member * len..][..len][pieces.range(index)];
            call.copy(member, round, into)?;
        }
        call.finish(round);
    }
    Ok(())
}
