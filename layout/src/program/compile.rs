//! From the tree of constructors to steps.

use std::collections::HashMap;
use std::sync::Arc;

use super::op::{Block, Op};
use super::sequence::{Builder, Sequence};
use crate::datatype::bounds::index_offset;
use crate::{Basic, Constructor, Datatype};

/// Makes sequences of datatypes; of one that is used in several places only once.
#[derive(Default)]
pub(super) struct Compiler {
    done: HashMap<usize, Arc<Sequence>>,
}

impl Compiler {
    /// Returns the steps of one element. The datatype lives as long as the compiler is used.
    pub(super) fn sequence(&mut self, datatype: &Datatype) -> Arc<Sequence> {
        if let Some(done) = self.done.get(&datatype.identity()) {
            return Arc::clone(done);
        }
        let made = match datatype.lowered() {
            Some(lowered) => self.sequence(lowered),
            None => self.constructed(datatype.constructor()),
        };
        self.done.insert(datatype.identity(), Arc::clone(&made));
        made
    }

    fn constructed(&mut self, constructor: &Constructor) -> Arc<Sequence> {
        match constructor {
            Constructor::Named(basic) => named(*basic),
            Constructor::Duplicate(of) | Constructor::Resized { of, .. } => self.sequence(of),
            Constructor::Contiguous { count, of } => {
                self.sequence(of).replicated(*count, of.extent())
            }
            Constructor::Vector { shape, of } => {
                let stride = shape.stride.wrapping_mul(of.extent());
                let block = self.sequence(of).replicated(shape.length, of.extent());
                block.replicated(shape.count, stride)
            }
            Constructor::Hvector { shape, of } => {
                let block = self.sequence(of).replicated(shape.length, of.extent());
                block.replicated(shape.count, shape.stride)
            }
            Constructor::Indexed {
                lengths,
                displacements,
                of,
            } => self.scattered(of, lengths.iter().copied(), displacements, of.extent()),
            Constructor::Hindexed {
                lengths,
                displacements,
                of,
            } => self.scattered(of, lengths.iter().copied(), displacements, 1),
            Constructor::IndexedBlock {
                length,
                displacements,
                of,
            } => self.scattered_equally(of, *length, displacements, of.extent()),
            Constructor::HindexedBlock {
                length,
                displacements,
                of,
            } => self.scattered_equally(of, *length, displacements, 1),
            Constructor::Struct(members) => {
                let mut builder = Builder::default();
                for member in members {
                    let sequence = self.sequence(&member.of);
                    let extent = member.of.extent();
                    builder.extend(&sequence, member.count, extent, member.displacement);
                }
                builder.finish()
            }
            // They are lowered.
            Constructor::Subarray { .. } | Constructor::Darray { .. } => {
                Builder::default().finish()
            }
        }
    }

    /// Blocks of neighbours at displacements that are counted in `unit` bytes.
    fn scattered(
        &mut self,
        of: &Datatype,
        lengths: impl Iterator<Item = u64>,
        displacements: &[i64],
        unit: i64,
    ) -> Arc<Sequence> {
        let element = self.sequence(of);
        let mut builder = Builder::default();
        for (length, displacement) in lengths.zip(displacements) {
            let offset = displacement.wrapping_mul(unit);
            builder.extend(&element, length, of.extent(), offset);
        }
        builder.finish()
    }

    /// Equal blocks, of which the steps are shared.
    fn scattered_equally(
        &mut self,
        of: &Datatype,
        length: u64,
        displacements: &[i64],
        unit: i64,
    ) -> Arc<Sequence> {
        let block = self.sequence(of).replicated(length, of.extent());
        let mut builder = Builder::default();
        for displacement in displacements {
            builder.extend(&block, 1, 0, displacement.wrapping_mul(unit));
        }
        builder.finish()
    }
}

fn named(basic: Basic) -> Arc<Sequence> {
    let block = |offset: usize, length: usize| {
        Op::Block(Block {
            offset: offset as i64,
            length: length as u64,
        })
    };
    let mut builder = Builder::default();
    match basic.pair() {
        Some((value, index)) => {
            builder.push(block(0, value.size()));
            builder.push(block(index_offset(basic), index.size()));
        }
        None => builder.push(block(0, basic.size())),
    }
    builder.finish()
}
