//! Exchanges of all with all.

use super::call::{BoardCall, to_each};
use crate::algorithms::{Algorithm, Collective};
use crate::error::Result;
use crate::functions::Functions;

/// The functions of the algorithms by a board.
type Function = fn(&mut BoardCall<'_>, Option<&[u8]>, &mut [u8]) -> Result<()>;
const FUNCTIONS: Functions<Function> = Functions::by_board(
    Collective::Alltoall,
    &[("board", by_slots), ("single-copy", single_copy)],
);

/// Gives each member a block of each. What this member gives is `input`, or in `out`.
#[inline]
pub(crate) fn alltoall(
    algorithm: &Algorithm,
    call: &mut BoardCall<'_>,
    input: Option<&[u8]>,
    out: &mut [u8],
) -> Result<()> {
    FUNCTIONS.get(algorithm)?(call, input, out)
}

/// Each member copies the blocks that are for it from where they lie. In place, where all members are, others' blocks would come over
/// those that are read.
fn single_copy(call: &mut BoardCall<'_>, input: Option<&[u8]>, out: &mut [u8]) -> Result<()> {
    let at = call.me() * (out.len() / call.size());
    match input.is_some() && call.reads_memory() && call.read_blocks(input, at, out)? {
        true => Ok(()),
        false => by_slots(call, input, out),
    }
}

/// Each member shows a piece of its block for each other, and copies those that are for it: in place, a piece is shown before what comes
/// for it is copied over it.
#[inline]
fn by_slots(call: &mut BoardCall<'_>, input: Option<&[u8]>, out: &mut [u8]) -> Result<()> {
    let (me, block) = (call.me(), out.len() / call.size());
    let pieces = call.pieces_to_each(block);
    let first = call.begin(pieces.count());
    let show = |call: &mut BoardCall<'_>, given: &[u8], index: usize| {
        let parts = to_each(call, given, pieces.range(index));
        call.show(first + index as u64, &parts[..call.size() - 1])
    };
    show(call, input.unwrap_or(out), 0)?;
    if let Some(input) = input {
        let own = me * block..(me + 1) * block;
        out[own.clone()].copy_from_slice(&input[own]);
    }
    for (index, round) in (first..).take(pieces.count()).enumerate() {
        if index + 1 < pieces.count() {
            show(call, input.unwrap_or(out), index + 1)?;
        }
        call.wait_for_all(round)?;
        for member in call.others() {
            let into = &mut out[member * block..][..block][pieces.range(index)];
            call.copy_own(member, round, into)?;
        }
        call.finish(round);
    }
    Ok(())
}
