//! Reductions to all members.

use std::ops::Range;

use tagwire_transport::board::RESULTS_AT;

use super::call::{BoardCall, Pieces};
use crate::call::cut;
use crate::error::Result;
use crate::reduction::Reduction;
use crate::scratch::Scratch;

/// From here on two members combine half of each piece: 1 MiB takes 40 us in place of 45, 64 KiB the same.
const LONG_OF_TWO: usize = 256 << 10;

/// From here on more members combine a part each: to read all of all costs each member as much as there are members.
const LONG_OF_MORE: usize = 16 << 10;

/// So much is combined at once: what is copied for it is still in the first cache.
const BLOCK: usize = 4 << 10;

/// Combines the data of all, from the first member's to the last's. What this member gives is `input`, or in `data`.
#[inline]
pub(crate) fn allreduce(
    call: &mut BoardCall<'_>,
    reduction: Reduction<'_>,
    input: Option<&[u8]>,
    data: &mut [u8],
) -> Result<()> {
    let long = if call.size() == 2 {
        LONG_OF_TWO
    } else {
        LONG_OF_MORE
    };
    let most = RESULTS_AT / (call.size() - 1);
    if data.len() >= long && reduction.layout.extent() <= most {
        return by_parts(call, reduction, input, data);
    }
    whole(call, reduction, input, data)
}

/// Each member shows all it has, and combines all that is shown.
#[inline]
fn whole(
    call: &mut BoardCall<'_>,
    reduction: Reduction<'_>,
    input: Option<&[u8]>,
    data: &mut [u8],
) -> Result<()> {
    let pieces = Pieces::new(data.len(), reduction.layout.extent());
    let first = call.begin(pieces.count());
    call.show(first, &[&input.unwrap_or(data)[pieces.range(0)]])?;
    for (index, round) in (first..).take(pieces.count()).enumerate() {
        if index + 1 < pieces.count() {
            // The others find it while this member combines.
            call.show(
                round + 1,
                &[&input.unwrap_or(data)[pieces.range(index + 1)]],
            )?;
        }
        call.wait_for_all(round)?;
        let range = pieces.range(index);
        let input = input.map(|input| &input[range.clone()]);
        combine(call, reduction, round, input, &mut data[range])?;
        call.finish(round);
    }
    Ok(())
}

/// Combines what all have shown. What this member has shown too is `input`, or in `own`, which gets the result.
#[inline]
fn combine(
    call: &BoardCall<'_>,
    reduction: Reduction<'_>,
    round: u64,
    input: Option<&[u8]>,
    own: &mut [u8],
) -> Result<()> {
    let len = own.len();
    let blocks = Pieces::at_most(len, reduction.layout.extent(), BLOCK);
    for index in 0..blocks.count() {
        let range = blocks.range(index);
        let own = &mut own[range.clone()];
        if let Some(input) = input
            && call.me() < 2
        {
            own.copy_from_slice(&input[range.clone()]);
        }
        let first = match call.me() {
            0 => 1,
            1 => {
                call.read(0, round, len, range.clone(), |lower| {
                    reduction.left(lower, own)
                })??;
                2
            }
            _ => {
                call.read(0, round, len, range.clone(), |lower| {
                    own.copy_from_slice(lower);
                })?;
                1
            }
        };
        for member in first..call.size() {
            call.read(member, round, len, range.clone(), |bytes| {
                reduction.right(own, bytes)
            })??;
        }
    }
    Ok(())
}

/// The parts of a piece, one for each member.
struct Parts {
    start: usize,
    lengths: Vec<usize>,
}

impl Parts {
    /// Returns where the part of a member lies in the data.
    fn range(&self, member: usize) -> Range<usize> {
        let start = self.start + self.lengths[..member].iter().sum::<usize>();
        start..start + self.lengths[member]
    }

    /// Returns how much a member shows: all but its own part.
    fn shown(&self, by: usize) -> usize {
        self.lengths.iter().sum::<usize>() - self.lengths[by]
    }

    /// Returns where the part of `of` lies in what another member shows.
    fn range_in(&self, by: usize, of: usize) -> Range<usize> {
        let before = self.lengths[..of].iter().sum::<usize>();
        let start = if by < of {
            before - self.lengths[by]
        } else {
            before
        };
        start..start + self.lengths[of]
    }
}

/// Each member combines one part of each piece and shows the result. Three pieces are under way: one is shown, one combined, and of
/// one the results are copied.
fn by_parts(
    call: &mut BoardCall<'_>,
    reduction: Reduction<'_>,
    input: Option<&[u8]>,
    data: &mut [u8],
) -> Result<()> {
    let (me, size, unit) = (call.me(), call.size(), reduction.layout.extent());
    // What is shown of a piece, and the largest result, have half a slot each.
    let part = Pieces::at_most(usize::MAX, unit, RESULTS_AT / (size - 1))
        .range(0)
        .len();
    let pieces = Pieces::at_most(data.len(), unit, part * size);
    let count = pieces.count();
    let first = call.begin(count);
    let parts = |index: usize| {
        let range = pieces.range(index);
        Parts {
            start: range.start,
            lengths: cut(range.len(), size, unit),
        }
    };
    let mut own = call.team.scratch(part);
    let mut under_way = [const { None }; 3];
    for step in 0..count + 2 {
        if step < count {
            let parts = parts(step);
            let (all, mine) = (pieces.range(step), parts.range(me));
            let given = input.unwrap_or(data);
            let (before, after) = (&given[all.start..mine.start], &given[mine.end..all.end]);
            call.show(first + step as u64, &[before, after])?;
            under_way[step % 3] = Some(parts);
        }
        if let Some(index) = step.checked_sub(1).filter(|index| *index < count)
            && let Some(parts) = &under_way[index % 3]
        {
            let round = first + index as u64;
            call.wait_for_all(round)?;
            let mine = &mut data[parts.range(me)];
            if let Some(input) = input {
                mine.copy_from_slice(&input[parts.range(me)]);
            }
            combine_part(call, reduction, round, parts, mine, &mut own)?;
            call.show_result(round, mine);
        }
        if let Some(index) = step.checked_sub(2)
            && let Some(parts) = &under_way[index % 3]
        {
            let round = first + index as u64;
            for member in call.others() {
                call.copy_result(member, round, &mut data[parts.range(member)])?;
            }
            call.finish(round);
        }
    }
    Ok(())
}

/// Combines what all others have shown of this member's part with `mine`.
fn combine_part(
    call: &BoardCall<'_>,
    reduction: Reduction<'_>,
    round: u64,
    parts: &Parts,
    mine: &mut [u8],
    own: &mut Scratch<'_>,
) -> Result<()> {
    let me = call.me();
    let shown = |by: usize| (parts.shown(by), parts.range_in(by, me));
    let own = &mut own[..mine.len()];
    let first = match me {
        0 => 1,
        1 => {
            let (len, range) = shown(0);
            call.read(0, round, len, range, |lower| reduction.left(lower, mine))??;
            2
        }
        _ => {
            own.copy_from_slice(mine);
            let (len, range) = shown(0);
            call.read(0, round, len, range, |lower| mine.copy_from_slice(lower))?;
            1
        }
    };
    for member in first..call.size() {
        if member == me {
            reduction.right(mine, own)?;
        } else {
            let (len, range) = shown(member);
            call.read(member, round, len, range, |bytes| {
                reduction.right(mine, bytes)
            })??;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_shows_all_but_its_own_part() {
        let parts = Parts {
            start: 100,
            lengths: vec![3, 2, 2],
        };
        assert_eq!(parts.range(1), 103..105);
        assert_eq!(parts.shown(1), 5);
        assert_eq!(parts.range_in(1, 0), 0..3);
        assert_eq!(parts.range_in(1, 2), 3..5);
        assert_eq!(parts.range_in(2, 1), 3..5);
    }
}
