//! Reductions to all members.

use std::ops::Range;

use tagwire_transport::board::{RESULTS_AT, SLOT};

use super::call::{BoardCall, Pieces};
use super::parts::Parts;
use super::single_copy::pieces_of;
use crate::algorithms::{Algorithm, Collective};
use crate::call::cut;
use crate::error::Result;
use crate::functions::Functions;
use crate::reduction::Reduction;

/// So much is combined at once: what is copied for it is still in the first cache.
const BLOCK: usize = 4 << 10;

/// The functions of the algorithms by a board.
type Function = fn(&mut BoardCall<'_>, Reduction<'_>, Option<&[u8]>, &mut [u8]) -> Result<()>;
const FUNCTIONS: Functions<Function> = Functions::by_board(
    Collective::Allreduce,
    &[
        ("board", whole),
        ("board-parts", by_parts),
        ("single-copy", single_copy),
    ],
);

/// Combines the data of all, from the first member's to the last's. What this member gives is `input`, or in `data`.
#[inline]
pub(crate) fn allreduce(
    algorithm: &Algorithm,
    call: &mut BoardCall<'_>,
    reduction: Reduction<'_>,
    input: Option<&[u8]>,
    data: &mut [u8],
) -> Result<()> {
    // A value that is longer than a part can be lies in none.
    let fits = reduction.layout.extent() <= RESULTS_AT / (call.size() - 1);
    let function = if fits {
        FUNCTIONS.get(algorithm)?
    } else {
        whole
    };
    function(call, reduction, input, data)
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
        let (place, into) = (|_| (len, range.clone()), &mut own[range.clone()]);
        let input = input.map(|input| &input[range.clone()]);
        if input.is_none() && call.me() > 1 {
            // What is overwritten below is on the board too.
            read(call, round, call.me(), (len, range.clone()), |shown| {
                let input = Some(shown);
                combine_shown(call, reduction, round, Mine { input, into }, place)
            })?;
        } else {
            combine_shown(call, reduction, round, Mine { input, into }, place)?;
        }
    }
    Ok(())
}

/// What a member gives of a range, and where the result of the range goes.
pub(super) struct Mine<'a> {
    /// In `into` where there is none.
    pub(super) input: Option<&'a [u8]>,
    pub(super) into: &'a mut [u8],
}

/// Combines a range of what all have shown, which lies at `place` in what a member has: how much it has shown, and where there.
/// Each byte is read where it lies and written once.
#[inline]
pub(super) fn combine_shown(
    call: &BoardCall<'_>,
    reduction: Reduction<'_>,
    round: u64,
    Mine { input, into }: Mine<'_>,
    place: impl Fn(usize) -> (usize, Range<usize>),
) -> Result<()> {
    let me = call.me();
    match (me, input) {
        (0, Some(input)) => {
            read(call, round, 1, place(1), |other| {
                reduction.to(input, other, into)
            })?;
        }
        (0, None) => read(call, round, 1, place(1), |other| {
            reduction.right(into, other)
        })?,
        (1, Some(input)) => {
            read(call, round, 0, place(0), |other| {
                reduction.to(other, input, into)
            })?;
        }
        (1, None) => read(call, round, 0, place(0), |other| {
            reduction.left(other, into)
        })?,
        _ => {
            let copy = match input {
                Some(_) => None,
                None => Some(call.copy_of(into)),
            };
            let input = input.or(copy.as_deref()).unwrap_or_default();
            read(call, round, 0, place(0), |first| {
                read(call, round, 1, place(1), |second| {
                    reduction.to(first, second, into)
                })
            })?;
            for member in 2..call.size() {
                match member == me {
                    true => reduction.right(into, input)?,
                    false => read(call, round, member, place(member), |other| {
                        reduction.right(into, other)
                    })?,
                }
            }
            return Ok(());
        }
    }
    for member in 2..call.size() {
        read(call, round, member, place(member), |other| {
            reduction.right(into, other)
        })?;
    }
    Ok(())
}

#[inline]
fn read(
    call: &BoardCall<'_>,
    round: u64,
    member: usize,
    (len, range): (usize, Range<usize>),
    look: impl FnOnce(&[u8]) -> Result<()>,
) -> Result<()> {
    call.read(member, round, len, range, look)?
}

/// Each member combines one part of the data, which it reads where it lies, and the others read the result. In place, results lie apart
/// until all are there. Should a member be unable to read what was given, the operation begins anew; should it be unable to read a
/// result, results are shown.
fn single_copy(
    call: &mut BoardCall<'_>,
    reduction: Reduction<'_>,
    input: Option<&[u8]>,
    data: &mut [u8],
) -> Result<()> {
    if !call.reads_memory() {
        return by_parts(call, reduction, input, data);
    }
    let unit = reduction.layout.extent();
    let parts = Parts::new(0, cut(data.len(), call.size(), unit));
    let mine = parts.range(call.me());
    let mut apart = call.team.scratch(match input {
        Some(_) => 0,
        None => mine.len(),
    });
    let first = call.begin(3);
    call.show_place(first, Some(input.unwrap_or(data)))?;
    let (given, result): (&[u8], &mut [u8]) = match input {
        Some(input) => (&input[mine.clone()], &mut data[mine.clone()]),
        None => (&data[mine.clone()], &mut apart),
    };
    let has_combined = combine_read(call, reduction, first, (given, mine.start), result)?;
    call.show_place(first + 1, has_combined.then_some(&*result))?;
    let results = call.places(first + 1)?;
    // Nothing that was given is overwritten before all have combined.
    let have_all_combined = has_combined && call.others().all(|it| results[it].is_some());
    let mut could_read = have_all_combined;
    if have_all_combined {
        for member in call.others_from_next() {
            could_read &= call.read_memory(results[member], &mut data[parts.range(member)]);
        }
    }
    call.show_whether_read(first + 2, could_read)?;
    if have_all_combined && input.is_none() {
        data[mine].copy_from_slice(&apart);
    }
    match call.have_all_read(first + 2, could_read)? {
        true => Ok(()),
        false if have_all_combined => show_parts(call, &parts, data),
        false => by_parts(call, reduction, input, data),
    }
}

/// Each member shows its part of `data`, piece after piece, and copies those of the others.
#[cold]
fn show_parts(call: &mut BoardCall<'_>, parts: &Parts, data: &mut [u8]) -> Result<()> {
    let longest = (0..call.size())
        .map(|member| parts.range(member).len())
        .max();
    for start in (0..longest.unwrap_or(0)).step_by(SLOT) {
        let place = |member: usize| {
            let Range { start: at, end } = parts.range(member);
            end.min(at + start)..end.min(at + start + SLOT)
        };
        let round = call.begin(1);
        call.show(round, &[&data[place(call.me())]])?;
        call.wait_for_all(round)?;
        for member in call.others() {
            call.copy(member, round, &mut data[place(member)])?;
        }
        call.finish(round);
    }
    Ok(())
}

/// Combines what all have of a part, which this member gives `own` of: it lies so many bytes after the place that each member has shown.
/// Returns whether it could be read.
fn combine_read(
    call: &mut BoardCall<'_>,
    reduction: Reduction<'_>,
    round: u64,
    (own, at): (&[u8], usize),
    result: &mut [u8],
) -> Result<bool> {
    let me = call.me();
    let places = call.places(round)?;
    let pieces = || pieces_of(own.len(), reduction.layout.extent());
    let longest = pieces().map(|piece| piece.len()).max().unwrap_or(0);
    let (mut left, mut right) = (call.team.scratch(longest), call.team.scratch(longest));
    for piece in pieces() {
        let read = |member: usize, into: &mut [u8]| {
            let place = places[member].map(|place| place.after(at + piece.start));
            call.read_memory(place, into)
        };
        let (own, into) = (&own[piece.clone()], &mut result[piece.clone()]);
        let (left, right) = (&mut left[..piece.len()], &mut right[..piece.len()]);
        if !(me == 0 || read(0, left)) || !(me == 1 || read(1, right)) {
            return Ok(false);
        }
        let (first, second) = match me {
            0 => (own, &*right),
            1 => (&*left, own),
            _ => (&*left, &*right),
        };
        reduction.to(first, second, into)?;
        for member in 2..call.size() {
            if member == me {
                reduction.right(into, own)?;
            } else if read(member, right) {
                reduction.right(into, right)?;
            } else {
                return Ok(false);
            }
        }
    }
    Ok(true)
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
        Parts::new(range.start, cut(range.len(), size, unit))
    };
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
            let range = parts.range(me);
            let mine = Mine {
                input: input.map(|input| &input[range.clone()]),
                into: &mut data[range.clone()],
            };
            let place = |by| (parts.shown(by), parts.range_in(by, me));
            combine_shown(call, reduction, round, mine, place)?;
            call.show_result(round, &data[range]);
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
