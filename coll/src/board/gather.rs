//! Gathering at a root.

use super::call::{BoardCall, Pieces};
use crate::error::Result;

/// All but the root show piece after piece; the root copies them.
#[inline]
pub(crate) fn gather(
    call: &mut BoardCall<'_>,
    own: &[u8],
    out: Option<&mut [u8]>,
    root: usize,
) -> Result<()> {
    let len = own.len();
    let pieces = Pieces::new(len, 1);
    let first = call.begin(pieces.count());
    let rounds = (first..).take(pieces.count()).enumerate();
    let (Some(out), true) = (out, call.me() == root) else {
        for (index, round) in rounds {
            call.show(round, &[&own[pieces.range(index)]])?;
            call.finish(round);
        }
        return Ok(());
    };
    out[root * len..][..len].copy_from_slice(own);
    for (index, round) in rounds {
        for member in call.others() {
            call.wait_for(member, round)?;
            let into = &mut out[member * len..][..len][pieces.range(index)];
            call.copy(member, round, into)?;
        }
        call.finish(round);
    }
    Ok(())
}
