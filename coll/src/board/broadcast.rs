//! Broadcasts.

use super::call::{BoardCall, Pieces};
use crate::error::Result;

/// The root shows piece after piece, as far ahead as there are slots; the others copy them out.
#[inline]
pub(crate) fn broadcast(call: &mut BoardCall<'_>, data: &mut [u8], root: usize) -> Result<()> {
    let pieces = Pieces::new(data.len(), 1);
    let first = call.begin(pieces.count());
    for index in 0..pieces.count() {
        let (round, piece) = (first + index as u64, &mut data[pieces.range(index)]);
        let len = piece.len();
        if call.me() == root {
            call.show(round, &[piece])?;
        } else {
            call.wait_for(root, round)?;
            call.copy(root, round, piece)?;
        }
        call.finish_one_way(round, len);
    }
    Ok(())
}
