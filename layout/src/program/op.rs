//! The kinds of steps that a program has.

use std::sync::Arc;

use super::sequence::Sequence;

/// Neighbouring bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Where they begin, from the address of the buffer.
    pub offset: i64,
    /// How many bytes.
    pub length: u64,
}

/// Equal blocks, equally spaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Strided {
    pub(crate) first: Block,
    pub(crate) stride: i64,
    pub(crate) count: u64,
}

/// Blocks in the order in which they are packed, and for each where its packed bytes end.
#[derive(Debug)]
pub(crate) struct List {
    blocks: Box<[Block]>,
    ends: Box<[u64]>,
    /// Where the first byte in memory lies, and where the last one ends.
    low: i64,
    high: i64,
}

/// A step of a program.
///
/// Offsets add up modulo 2^64. Their sums are right: the bounds of a datatype fit 64 bits.
#[derive(Debug, Clone)]
pub(crate) enum Op {
    Block(Block),
    Strided(Strided),
    /// Equal rows of equal blocks.
    Strided2 {
        row: Strided,
        stride: i64,
        count: u64,
    },
    /// Blocks without a rule, displaced by an offset.
    List {
        offset: i64,
        list: Arc<List>,
    },
    /// A sequence of several steps, or of one that is none of the above, several times.
    Loop {
        offset: i64,
        stride: i64,
        count: u64,
        body: Arc<Sequence>,
    },
}

impl Strided {
    /// Returns how many bytes are packed.
    #[inline]
    pub(crate) const fn packed(&self) -> u64 {
        self.first.length * self.count
    }
}

impl List {
    /// Makes a list of blocks that have at least a byte each.
    pub(crate) fn new(blocks: Vec<Block>) -> Self {
        let ends = blocks.iter().scan(0, |end, block| {
            *end += block.length;
            Some(*end)
        });
        Self {
            ends: ends.collect(),
            low: blocks.iter().map(|block| block.offset).min().unwrap_or(0),
            high: blocks
                .iter()
                .map(|block| block.offset + block.length as i64)
                .max()
                .unwrap_or(0),
            blocks: blocks.into(),
        }
    }

    pub(crate) fn packed(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    #[inline]
    pub(crate) fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Returns what holds all blocks: where the first byte in memory lies, and where the last one ends.
    #[inline]
    pub(crate) const fn span(&self) -> (i64, i64) {
        (self.low, self.high)
    }

    /// Returns whether of several such lists that are `stride` bytes apart no two name the same byte.
    pub(crate) const fn is_disjoint(&self, stride: i64) -> bool {
        stride.unsigned_abs() >= self.high.abs_diff(self.low)
    }

    /// Returns where the packed bytes of a block begin.
    #[inline]
    pub(crate) fn begin(&self, block: usize) -> u64 {
        block.checked_sub(1).map_or(0, |before| self.ends[before])
    }

    /// Returns how many blocks end at or before a position of the packed bytes.
    #[inline]
    pub(crate) fn ended(&self, position: u64) -> usize {
        match position {
            0 => 0,
            all if all == self.packed() => self.blocks.len(),
            _ => self.ends.partition_point(|end| *end <= position),
        }
    }
}

impl Op {
    /// Returns how many bytes are packed.
    #[inline]
    pub(crate) fn packed(&self) -> u64 {
        match self {
            Self::Block(block) => block.length,
            Self::Strided(strided) => strided.packed(),
            Self::Strided2 { row, count, .. } => row.packed() * count,
            Self::List { list, .. } => list.packed(),
            Self::Loop { count, body, .. } => body.packed() * count,
        }
    }

    /// Returns where the step begins: what `shifted` adds to.
    pub(crate) const fn offset(&self) -> i64 {
        match self {
            Self::Block(block) => block.offset,
            Self::Strided(strided) => strided.first.offset,
            Self::Strided2 { row, .. } => row.first.offset,
            Self::List { offset, .. } | Self::Loop { offset, .. } => *offset,
        }
    }

    /// Returns the same at another place.
    pub(crate) fn shifted(mut self, by: i64) -> Self {
        let offset = match &mut self {
            Self::Block(block) => &mut block.offset,
            Self::Strided(strided) => &mut strided.first.offset,
            Self::Strided2 { row, .. } => &mut row.first.offset,
            Self::List { offset, .. } | Self::Loop { offset, .. } => offset,
        };
        *offset = offset.wrapping_add(by);
        self
    }

    /// Returns whether both differ in nothing but their offset.
    pub(crate) fn has_shape_of(&self, other: &Self) -> bool {
        let same = |one: &Strided, other: &Strided| {
            (one.first.length, one.stride, one.count)
                == (other.first.length, other.stride, other.count)
        };
        match (self, other) {
            (Self::Block(one), Self::Block(other)) => one.length == other.length,
            (Self::Strided(one), Self::Strided(other)) => same(one, other),
            (
                Self::Strided2 { row, stride, count },
                Self::Strided2 {
                    row: other,
                    stride: other_stride,
                    count: other_count,
                },
            ) => same(row, other) && (stride, count) == (other_stride, other_count),
            (Self::List { list, .. }, Self::List { list: other, .. }) => Arc::ptr_eq(list, other),
            (
                Self::Loop {
                    stride,
                    count,
                    body,
                    ..
                },
                Self::Loop {
                    stride: other_stride,
                    count: other_count,
                    body: other,
                    ..
                },
            ) => Arc::ptr_eq(body, other) && (stride, count) == (other_stride, other_count),
            _ => false,
        }
    }

    /// Returns `count` of this step, `stride` bytes apart, as one step, if there is a simple one.
    pub(crate) fn repeated(&self, count: u64, stride: i64) -> Option<Self> {
        if count == 1 {
            return Some(self.clone());
        }
        match self {
            Self::Block(first) if continues(stride, first.length, 1) => Some(Self::Block(Block {
                offset: first.offset,
                length: first.length * count,
            })),
            Self::Block(first) => Some(Self::Strided(Strided {
                first: *first,
                stride,
                count,
            })),
            Self::Strided(row) if follows(stride, row.stride, row.count) => {
                Some(Self::Strided(Strided {
                    count: row.count * count,
                    ..*row
                }))
            }
            Self::Strided(row) => Some(Self::Strided2 {
                row: *row,
                stride,
                count,
            }),
            Self::Strided2 {
                row,
                stride: rows,
                count: number,
            } if follows(stride, *rows, *number) => Some(Self::Strided2 {
                row: *row,
                stride: *rows,
                count: number * count,
            }),
            Self::Loop {
                offset,
                stride: inner,
                count: number,
                body,
            } if *number == 1 || follows(stride, *inner, *number) => Some(Self::Loop {
                offset: *offset,
                stride: if *number == 1 { stride } else { *inner },
                count: number * count,
                body: Arc::clone(body),
            }),
            _ => None,
        }
    }
}

/// Whether a repetition by `stride` goes on where `count` blocks of `length` end.
fn continues(stride: i64, length: u64, count: u64) -> bool {
    i128::from(stride) == i128::from(length) * i128::from(count)
}

/// Whether a repetition by `stride` goes on in the step of `count` that are `inner` apart.
fn follows(stride: i64, inner: i64, count: u64) -> bool {
    i128::from(stride) == i128::from(inner) * i128::from(count)
}
