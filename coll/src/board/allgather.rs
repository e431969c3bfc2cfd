//! Gathering at all members.

use super::call::{BoardCall, Pieces};
use crate::algorithms::{Algorithm, Collective};
use crate::error::Result;
use crate::functions::Functions;

/// The functions of the algorithms by a board.
type Function = fn(&mut BoardCall<'_>, Option<&[u8]>, &mut [u8]) -> Result<()>;
const FUNCTIONS: Functions<Function> = Functions::by_board(
    Collective::Allgather,
    &[("board", by_slots), ("single-copy", single_copy)],
);

/// Gives what each member has to all. What this member gives is `own`, or in `out`.
#[inline]
pub(crate) fn allgather(
    algorithm: &Algorithm,
    call: &mut BoardCall<'_>,
    own: Option<&[u8]>,
    out: &mut [u8],
) -> Result<()> {
    FUNCTIONS.get(algorithm)?(call, own, out)
}

/// Each member copies what the others have from where it lies.
fn single_copy(call: &mut BoardCall<'_>, own: Option<&[u8]>, out: &mut [u8]) -> Result<()> {
    match call.reads_memory() && call.read_blocks(own, 0, out)? {
        true => Ok(()),
        false => by_slots(call, own, out),
    }
}

/// Each member shows its own piece after piece, and copies what the others show.
#[inline]
fn by_slots(call: &mut BoardCall<'_>, own: Option<&[u8]>, out: &mut [u8]) -> Result<()> {
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
