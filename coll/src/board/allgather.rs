//! Gathering at all members.

use super::call::{BoardCall, Pieces};
use crate::error::Result;

/// Each member shows its own piece after piece, and copies what the others show. What this member gives is `own`, or in `out`.
#[inline]
pub(crate) fn allgather(
    call: &mut BoardCall<'_>,
    own: Option<&[u8]>,
    out: &mut [u8],
) -> Result<()> {
    let len = out.len() / call.size();
    let mine = call.me() * len..(call.me() + 1) * len;
    let pieces = Pieces::new(len, 1);
    let first = call.begin(pieces.count());
    // What is shown is copied to its place at once, while it is in the cache.
    let show = |call: &mut BoardCall<'_>, out: &mut [u8], index: usize| {
        let (range, round) = (pieces.range(index), first + index as u64);
        let place = &mut out[mine.clone()][range.clone()];
        let Some(own) = own else {
            return call.show(round, &[place]);
        };
        call.show(round, &[&own[range.clone()]])?;
        place.copy_from_slice(&own[range]);
        Ok(())
    };
    show(call, out, 0)?;
    for (index, round) in (first..).take(pieces.count()).enumerate() {
        if index + 1 < pieces.count() {
            show(call, out, index + 1)?;
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
