//! Sequences of steps, in their simplest form.

use std::sync::Arc;

use super::op::{Block, List, Op};

/// Steps that follow each other, with the places of their packed bytes.
#[derive(Debug)]
pub(crate) struct Sequence {
    ops: Box<[Op]>,
    /// For each step, where its packed bytes end.
    ends: Box<[u64]>,
}

impl Sequence {
    pub(crate) fn packed(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Returns the steps from the one on in which a position lies, and where that one begins.
    #[inline]
    pub(crate) fn from(&self, position: u64) -> (u64, &[Op]) {
        match position {
            0 => (0, &self.ops),
            _ => {
                let first = self.ends.partition_point(|end| *end <= position);
                let begin = first.checked_sub(1).map_or(0, |before| self.ends[before]);
                (begin, &self.ops[first..])
            }
        }
    }

    /// Returns the step, if it is one list and nothing more.
    #[inline]
    pub(crate) fn list(&self) -> Option<(i64, &List)> {
        match &*self.ops {
            [Op::List { offset, list }] => Some((*offset, list)),
            _ => None,
        }
    }

    fn of(ops: Vec<Op>) -> Arc<Self> {
        let ends = ops.iter().scan(0, |end, op| {
            *end += op.packed();
            Some(*end)
        });
        Arc::new(Self {
            ends: ends.collect(),
            ops: ops.into(),
        })
    }

    /// Returns `count` of this sequence, `stride` bytes apart, as one step.
    pub(crate) fn times(self: &Arc<Self>, count: u64, stride: i64) -> Op {
        const NOTHING: Op = Op::Block(Block {
            offset: 0,
            length: 0,
        });

        let simple = match &*self.ops {
            _ if count == 0 => Some(NOTHING),
            [] => Some(NOTHING),
            [op] => op.repeated(count, stride),
            _ => None,
        };
        simple.unwrap_or_else(|| Op::Loop {
            offset: 0,
            stride,
            count,
            body: Arc::clone(self),
        })
    }

    /// Returns the same sequence `count` times, `stride` bytes apart.
    pub(crate) fn replicated(self: &Arc<Self>, count: u64, stride: i64) -> Arc<Self> {
        if count == 1 {
            return Arc::clone(self);
        }
        let mut builder = Builder::default();
        builder.push(self.times(count, stride));
        builder.finish()
    }
}

/// Makes a sequence of steps that are given in their order, which is kept.
///
/// - Blocks of which one ends where the next begins become one.
/// - Equal steps that are equally spaced become one step with a count, and so on until nothing changes.
/// - Blocks that are left become lists.
#[derive(Default)]
pub(crate) struct Builder {
    ops: Vec<Op>,
}

impl Builder {
    /// How many blocks make a strided step of what would else be a list.
    const REGULAR: usize = 4;
    /// How many steps a sequence may have to be taken in as they are.
    const SHORT: usize = 8;

    pub(crate) fn push(&mut self, op: Op) {
        if op.packed() == 0 {
            return;
        }
        if let (Some(Op::Block(last)), Op::Block(next)) = (self.ops.last_mut(), &op)
            && i128::from(last.offset) + i128::from(last.length) == i128::from(next.offset)
        {
            last.length += next.length;
            return;
        }
        self.ops.push(op);
    }

    /// Adds `count` of a sequence, `stride` bytes apart, beginning at an offset.
    pub(crate) fn extend(
        &mut self,
        sequence: &Arc<Sequence>,
        count: u64,
        stride: i64,
        offset: i64,
    ) {
        if count != 1 || sequence.ops.len() > Self::SHORT {
            self.push(sequence.times(count, stride).shifted(offset));
            return;
        }
        for op in &sequence.ops {
            match op {
                // Blocks of a list may join with their new neighbours.
                Op::List { offset: own, list } if list.blocks().len() <= Self::SHORT => {
                    for block in list.blocks() {
                        let block = Op::Block(*block).shifted(*own);
                        self.push(block.shifted(offset));
                    }
                }
                op => self.push(op.clone().shifted(offset)),
            }
        }
    }

    pub(crate) fn finish(mut self) -> Arc<Sequence> {
        loop {
            let before = self.ops.len();
            self.ops = regular(self.ops);
            if self.ops.len() == before {
                break;
            }
        }
        Sequence::of(listed(self.ops))
    }
}

/// Makes one step of each run of equal steps that are equally spaced.
fn regular(ops: Vec<Op>) -> Vec<Op> {
    let mut out = Vec::with_capacity(ops.len());
    let mut at = 0;
    while at < ops.len() {
        let (length, stride) = run(&ops[at..]);
        let is_block = |op: Option<&Op>| matches!(op, Some(Op::Block(_)));
        let alone = !is_block(at.checked_sub(1).and_then(|before| ops.get(before)))
            && !is_block(ops.get(at + length));
        let enough = match ops[at] {
            Op::Block(_) if !alone => Builder::REGULAR,
            _ => 2,
        };
        if length >= enough {
            out.push(joined(&ops[at], length as u64, stride));
            at += length;
        } else {
            // The last one may begin the next run.
            let taken = length.saturating_sub(1).max(1);
            out.extend_from_slice(&ops[at..at + taken]);
            at += taken;
        }
    }
    out
}

/// Returns `count` of a step, `stride` bytes apart.
fn joined(op: &Op, count: u64, stride: i64) -> Op {
    op.repeated(count, stride).unwrap_or_else(|| Op::Loop {
        offset: op.offset(),
        stride,
        count,
        body: Sequence::of(vec![op.clone().shifted(op.offset().wrapping_neg())]),
    })
}

/// Returns how many steps at the beginning are equal and equally spaced, and by how much.
fn run(ops: &[Op]) -> (usize, i64) {
    let [first, second, ..] = ops else {
        return (ops.len(), 0);
    };
    if !first.has_shape_of(second) {
        return (1, 0);
    }
    let stride = second.offset().wrapping_sub(first.offset());
    let pairs = ops.windows(2);
    let equal = pairs.take_while(|pair| {
        pair[0].has_shape_of(&pair[1]) && pair[1].offset().wrapping_sub(pair[0].offset()) == stride
    });
    (1 + equal.count(), stride)
}

/// Makes lists of the blocks that follow each other.
fn listed(ops: Vec<Op>) -> Vec<Op> {
    let mut out = Vec::new();
    let mut blocks = Vec::new();
    let flush = |blocks: &mut Vec<Block>, out: &mut Vec<Op>| match &blocks[..] {
        [] => {}
        [block] => {
            out.push(Op::Block(*block));
            blocks.clear();
        }
        _ => out.push(Op::List {
            offset: 0,
            list: Arc::new(List::new(std::mem::take(blocks))),
        }),
    };
    for op in ops {
        if let Op::Block(block) = op {
            blocks.push(block);
        } else {
            flush(&mut blocks, &mut out);
            out.push(op);
        }
    }
    flush(&mut blocks, &mut out);
    out
}
