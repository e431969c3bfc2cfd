//! Blocks that messages come into.

use super::Op;
use super::ops::Ops;
use crate::fabric::{BlockId, Net, OpId, Took};

/// Messages of the greatest length that a block has room for which takes many.
const MULTI_LEN: usize = 16;

/// Blocks of many messages that the provider has.
const MULTI_COUNT: usize = 4;

/// Blocks of one message each that the provider has, where it knows no others.
const PLAIN_COUNT: usize = 256;

/// A block.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) block: BlockId,
    /// The provider has it.
    posted: bool,
    op: Option<OpId>,
}

/// All blocks.
#[derive(Debug)]
pub(super) struct Receives {
    pub(super) chunks: Vec<Chunk>,
    pub(super) multi: bool,
    /// The greatest length of a message, with its header.
    longest: usize,
    /// Those to be given to the provider.
    waiting: Vec<u32>,
}

impl Receives {
    pub(super) const fn new(multi: bool, longest: usize) -> Self {
        Self {
            chunks: Vec::new(),
            multi,
            longest,
            waiting: Vec::new(),
        }
    }

    #[inline]
    pub(super) const fn any_waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    const fn wanted(&self) -> usize {
        if self.multi { MULTI_COUNT } else { PLAIN_COUNT }
    }

    /// Gives the provider its first blocks.
    pub(super) fn start(&mut self, net: &mut Net, ops: &mut Ops) -> Result<(), i32> {
        while self.chunks.len() < self.wanted() {
            self.add_chunk(net)?;
        }
        self.post(net, ops)
    }

    fn add_chunk(&mut self, net: &mut Net) -> Result<(), i32> {
        let len = match self.multi {
            true => MULTI_LEN * self.longest,
            false => self.longest,
        };
        let block = net.allocate(len)?;
        let number = self.chunks.len() as u32;
        self.chunks.push(Chunk {
            block,
            posted: false,
            op: None,
        });
        self.waiting.push(number);
        Ok(())
    }

    /// Gives the provider what it may have.
    ///
    /// # Errors
    /// The library's number, where it takes none.
    pub(super) fn post(&mut self, net: &mut Net, ops: &mut Ops) -> Result<(), i32> {
        while let Some(number) = self.waiting.pop() {
            let chunk = &mut self.chunks[number as usize];
            let new = || ops.insert(Op::Receive { chunk: number });
            let op = *chunk.op.get_or_insert_with(new);
            let took = net.receive_into(chunk.block, self.multi, op);
            if took != Took::Yes {
                self.waiting.push(number);
                return match took {
                    Took::Failed(code) => Err(code),
                    _ => Ok(()),
                };
            }
            chunk.posted = true;
        }
        Ok(())
    }

    /// The provider is done with a block.
    pub(super) fn retire(&mut self, number: u32) {
        let chunk = &mut self.chunks[number as usize];
        if std::mem::replace(&mut chunk.posted, false) {
            self.waiting.push(number);
        }
    }
}
