//! Reductions whose result is cut among the members.

use tagwire_transport::board::SLOT;

use super::allreduce::{Mine, combine_shown};
use super::call::{BoardCall, MOST, Pieces};
use super::parts::Parts;
use crate::call::Call;
use crate::error::Result;
use crate::reduction::Reduction;

/// Whether a piece of what a member shows, a unit for each other one at least, fits a slot.
pub(crate) const fn fits_parts(unit: usize, members: usize) -> bool {
    unit <= SLOT / (members - 1)
}

/// Each member shows what the others combine, a piece of each one's part at a time, and combines its own part of what all have
/// shown, from the first member's to the last's.
pub(crate) fn reduce_scatter(
    call: &mut BoardCall<'_>,
    reduction: Reduction<'_>,
    input: &[u8],
    lengths: &[usize],
    out: &mut [u8],
) -> Result<()> {
    let (me, unit) = (call.me(), reduction.layout.extent());
    let most = SLOT / (call.size() - 1);
    let longest = lengths.iter().copied().max().unwrap_or(0);
    let count = Pieces::at_most(longest, unit, most).count();
    let piece = |member: usize, index: usize| {
        let range = Pieces::at_most(lengths[member], unit, most).range(index);
        // Members with shorter parts have nothing in the last pieces.
        range.start.min(lengths[member])..range.end
    };
    let first = call.begin(count);
    let show = |call: &mut BoardCall<'_>, index: usize| {
        let mut parts: [&[u8]; MOST - 1] = [&[]; MOST - 1];
        for (part, member) in parts.iter_mut().zip(call.others()) {
            let whole = &input[Call::range(lengths, member)];
            *part = &whole[piece(member, index)];
        }
        call.show(first + index as u64, &parts)
    };
    let own = &input[Call::range(lengths, me)];
    show(call, 0)?;
    for (index, round) in (first..).take(count).enumerate() {
        if index + 1 < count {
            // The others find it while this member combines.
            show(call, index + 1)?;
        }
        call.wait_for_all(round)?;
        let of = (0..call.size()).map(|member| piece(member, index).len());
        let (parts, range) = (Parts::new(0, of.collect()), piece(me, index));
        let mine = Mine {
            input: Some(&own[range.clone()]),
            into: &mut out[range],
        };
        let place = |by| (parts.shown(by), parts.range_in(by, me));
        combine_shown(call, reduction, round, mine, place)?;
        call.finish(round);
    }
    Ok(())
}
