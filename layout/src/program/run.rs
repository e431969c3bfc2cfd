//! Running a program: from any position of the packed bytes to any other.

use std::ops::Range;

use super::op::{Block, List, Op, Strided};
use super::sequence::Sequence;

/// What is done with the blocks that a program names, in the order of their packed bytes.
pub(crate) trait Mover {
    /// Takes `count` blocks of `length` bytes that are `stride` bytes apart.
    fn strided(&mut self, offset: i64, length: usize, stride: i64, count: usize);

    /// Takes the blocks of a list in `range`, displaced by `offset`.
    fn list(&mut self, offset: i64, list: &List, range: Range<usize>);

    /// Takes all blocks of a list, `count` times, `stride` bytes apart.
    fn lists(&mut self, offset: i64, list: &List, stride: i64, count: usize);
}

impl Op {
    /// Runs the part of this step from one position of its packed bytes to another.
    pub(crate) fn run(&self, base: i64, from: u64, to: u64, mover: &mut impl Mover) {
        match self {
            Self::Block(Block { offset, .. }) => block(
                base.wrapping_add(*offset).wrapping_add(from as i64),
                to - from,
                mover,
            ),
            Self::Strided(strided) => run_strided(strided, base, from, to, mover),
            Self::Strided2 { row, stride, .. } => {
                for part in parts(row.packed(), from, to) {
                    let base = displaced(base, *stride, part.index);
                    run_strided(row, base, part.from, part.to, mover);
                }
            }
            Self::List { offset, list } => {
                run_list(list, base.wrapping_add(*offset), from, to, mover);
            }
            Self::Loop {
                offset,
                stride,
                body,
                ..
            } => {
                let base = base.wrapping_add(*offset);
                if let Some((own, list)) = body.list() {
                    run_lists(list, base.wrapping_add(own), *stride, from, to, mover);
                    return;
                }
                for part in parts(body.packed(), from, to) {
                    let base = displaced(base, *stride, part.index);
                    run_sequence(body, base, part.from, part.to, mover);
                }
            }
        }
    }
}

impl Op {
    /// Returns the block, or what is left of it, at a position of the packed bytes, which lies before their end.
    pub(crate) fn block_at(&self, base: i64, position: u64) -> Block {
        match self {
            Self::Block(block) => rest(base, *block, position),
            Self::Strided(strided) => strided_at(strided, base, position),
            Self::Strided2 { row, stride, .. } => {
                let (index, position) = (position / row.packed(), position % row.packed());
                strided_at(row, displaced(base, *stride, index), position)
            }
            Self::List { offset, list } => {
                let index = list.ended(position);
                let base = base.wrapping_add(*offset);
                rest(base, list.blocks()[index], position - list.begin(index))
            }
            Self::Loop {
                offset,
                stride,
                body,
                ..
            } => {
                let (index, position) = (position / body.packed(), position % body.packed());
                let (begin, ops) = body.from(position);
                let base = displaced(base.wrapping_add(*offset), *stride, index);
                ops[0].block_at(base, position - begin)
            }
        }
    }
}

fn strided_at(strided: &Strided, base: i64, position: u64) -> Block {
    let length = strided.first.length;
    let base = displaced(base, strided.stride, position / length);
    rest(base, strided.first, position % length)
}

/// Returns what is left of a block behind its first `skipped` bytes.
fn rest(base: i64, block: Block, skipped: u64) -> Block {
    Block {
        offset: displaced(base.wrapping_add(block.offset), 1, skipped),
        length: block.length - skipped,
    }
}

/// Returns the place of one of several that are `stride` apart.
fn displaced(base: i64, stride: i64, index: u64) -> i64 {
    base.wrapping_add(stride.wrapping_mul(index as i64))
}

/// A part of one iteration.
struct Part {
    index: u64,
    from: u64,
    to: u64,
}

/// Returns the iterations, of `packed` bytes each, that a range of positions touches.
#[inline]
fn parts(packed: u64, from: u64, to: u64) -> impl Iterator<Item = Part> {
    let mut index = match from {
        0 => 0,
        _ => from / packed.max(1),
    };
    let (mut from, mut left) = (from - index * packed, to - from);
    std::iter::from_fn(move || {
        if left == 0 {
            return None;
        }
        let to = packed.min(from + left);
        let part = Part { index, from, to };
        left -= to - from;
        (index, from) = (index + 1, 0);
        Some(part)
    })
}

#[inline]
fn block(offset: i64, length: u64, mover: &mut impl Mover) {
    if length > 0 {
        mover.strided(offset, length as usize, 0, 1);
    }
}

fn run_sequence(sequence: &Sequence, base: i64, from: u64, to: u64, mover: &mut impl Mover) {
    let (mut begin, ops) = sequence.from(from);
    for op in ops {
        if begin >= to {
            break;
        }
        let packed = op.packed();
        op.run(
            base,
            from.saturating_sub(begin),
            packed.min(to - begin),
            mover,
        );
        begin += packed;
    }
}

fn run_strided(strided: &Strided, base: i64, from: u64, to: u64, mover: &mut impl Mover) {
    let (length, stride) = (strided.first.length, strided.stride);
    let index = match from {
        0 => 0,
        _ => from / length,
    };
    let (skipped, mut left) = (from - index * length, to - from);
    let first = base.wrapping_add(strided.first.offset);
    let mut offset = first.wrapping_add(stride.wrapping_mul(index as i64));
    if skipped > 0 {
        let rest = left.min(length - skipped);
        block(offset.wrapping_add(skipped as i64), rest, mover);
        offset = offset.wrapping_add(stride);
        left -= rest;
    }
    let whole = if left == strided.packed() {
        strided.count
    } else {
        left / length
    };
    if whole > 0 {
        mover.strided(offset, length as usize, stride, whole as usize);
    }
    let offset = offset.wrapping_add(stride.wrapping_mul(whole as i64));
    block(offset, left - whole * length, mover);
}

fn run_list(list: &List, base: i64, from: u64, to: u64, mover: &mut impl Mover) {
    let (mut first, end) = (list.ended(from), list.ended(to));
    let part = |index: usize, from: u64, to: u64, mover: &mut _| {
        let begin = list.begin(index);
        let offset = base.wrapping_add(list.blocks()[index].offset);
        let skipped = from.saturating_sub(begin);
        block(
            offset.wrapping_add(skipped as i64),
            to - begin - skipped,
            mover,
        );
    };
    if from > list.begin(first) {
        let last = list.begin(first) + list.blocks()[first].length;
        part(first, from, to.min(last), mover);
        first += 1;
    }
    if first < end {
        mover.list(base, list, first..end);
    }
    if first <= end && end < list.blocks().len() && to > list.begin(end) {
        part(end, from, to, mover);
    }
}

fn run_lists(list: &List, base: i64, stride: i64, from: u64, to: u64, mover: &mut impl Mover) {
    let packed = list.packed();
    let (mut index, begin) = (from / packed, from % packed);
    let mut left = to - from;
    if begin > 0 {
        let end = packed.min(begin + left);
        run_list(list, displaced(base, stride, index), begin, end, mover);
        left -= end - begin;
        index += 1;
    }
    let whole = left / packed;
    if whole > 0 {
        let offset = displaced(base, stride, index);
        mover.lists(offset, list, stride, whole as usize);
    }
    let tail = left - whole * packed;
    if tail > 0 {
        let base = displaced(base, stride, index + whole);
        run_list(list, base, 0, tail, mover);
    }
}
