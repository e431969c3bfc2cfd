//! Blocks that messages come into.
//!
//! A provider puts many messages into one block, each behind the one before it, and says with the last of them that the
//! block is full. That is not yet the end of it: `tcp;ofi_rxm` and `net` give a message its place once its first bytes are
//! there, and those of several peers come at the same time. A block is given to the provider again when it is full and all
//! that was begun in it is there; meanwhile another is in its place, so that a peer that has stopped in the middle of a
//! message holds nobody up.

use std::collections::VecDeque;
use std::ops::Range;

use super::Op;
use super::ops::Ops;
use crate::fabric::{BlockId, Net, OpId, Took};
use crate::wire::HEADER;

/// Messages of the greatest length that a block has room for which takes many. All blocks, one after the other, are to fit in the
/// caches of a core: a message of 64 KiB over `tcp` takes 21 us so, and 27 where a block has room for 16.
const MULTI_LEN: usize = 4;

/// Blocks of many messages that the provider has.
const MULTI_COUNT: usize = 4;

/// Blocks of one message each that the provider has, where it knows no others.
const PLAIN_COUNT: usize = 256;

/// Blocks that may be out of use at once: strangers whose messages are cut off take no more memory than these.
const MOST_DOUBTFUL: usize = 64;

/// A block.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) block: BlockId,
    op: Option<OpId>,
    filling: Filling,
}

/// How far a block is filled.
#[derive(Debug, Default)]
struct Filling {
    /// Up to where all is there.
    whole: usize,
    /// Messages that are there behind others that are not.
    early: Vec<Range<usize>>,
    /// The provider puts nothing more into it.
    full: bool,
    /// A message was cut off, nobody knows which.
    doubtful: bool,
    /// Another block is in its place.
    replaced: bool,
}

impl Filling {
    /// A message is there.
    #[inline]
    fn add(&mut self, place: Range<usize>) {
        // Less than a header is no message: providers may align them.
        if place.start < self.whole + HEADER {
            self.whole = self.whole.max(place.end);
            if !self.early.is_empty() {
                self.join();
            }
        } else {
            self.early.push(place);
        }
    }

    #[cold]
    fn join(&mut self) {
        while let Some(next) = (self.early.iter()).position(|one| one.start < self.whole + HEADER) {
            let one = self.early.swap_remove(next);
            self.whole = self.whole.max(one.end);
        }
    }

    /// Whether the provider has done with all of it.
    #[inline]
    const fn is_over(&self) -> bool {
        self.full && self.early.is_empty() && !self.doubtful
    }
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
    /// Those that are free, and for which the provider has others.
    spare: Vec<u32>,
    /// Those in which something was cut off, in that order.
    doubtful: VecDeque<u32>,
    /// How many are to be made.
    missing: usize,
}

impl Receives {
    pub(super) const fn new(multi: bool, longest: usize) -> Self {
        Self {
            chunks: Vec::new(),
            multi,
            longest,
            waiting: Vec::new(),
            spare: Vec::new(),
            doubtful: VecDeque::new(),
            missing: 0,
        }
    }

    #[inline]
    pub(super) const fn any_waits(&self) -> bool {
        !self.waiting.is_empty() || self.missing > 0
    }

    const fn wanted(&self) -> usize {
        if self.multi { MULTI_COUNT } else { PLAIN_COUNT }
    }

    /// Gives the provider its first blocks.
    pub(super) fn start(&mut self, net: &mut Net, ops: &mut Ops) -> Result<(), i32> {
        self.missing = self.wanted();
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
            op: None,
            filling: Filling::default(),
        });
        self.waiting.push(number);
        Ok(())
    }

    /// Gives the provider what it may have.
    ///
    /// # Errors
    /// The library's number, where it takes none.
    pub(super) fn post(&mut self, net: &mut Net, ops: &mut Ops) -> Result<(), i32> {
        while self.missing > 0 {
            self.add_chunk(net)?;
            self.missing -= 1;
        }
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
            chunk.filling = Filling::default();
        }
        Ok(())
    }

    /// A message is there, and was read: the only one of its block, where that takes one.
    #[inline]
    pub(super) fn note_message(&mut self, number: u32, place: Range<usize>) {
        if !self.multi {
            return self.waiting.push(number);
        }
        let filling = &mut self.chunks[number as usize].filling;
        filling.add(place);
        if filling.is_over() {
            self.free(number);
        }
    }

    /// The provider puts nothing more into a block.
    pub(super) fn note_full(&mut self, number: u32) {
        let filling = &mut self.chunks[number as usize].filling;
        if std::mem::replace(&mut filling.full, true) {
            return;
        }
        match filling.is_over() {
            true => self.free(number),
            false => self.replace(number),
        }
    }

    /// A message was cut off on its way into a block. Where that takes many, nobody says which: others may still be written
    /// before it and behind it. So the block is given to the provider no more.
    #[cold]
    pub(super) fn note_cut(&mut self, number: u32) {
        if !self.multi {
            return self.waiting.push(number);
        }
        let filling = &mut self.chunks[number as usize].filling;
        if std::mem::replace(&mut filling.doubtful, true) {
            return;
        }
        if self.doubtful.len() == MOST_DOUBTFUL {
            // The provider has filled as many blocks since: what was in this one is over.
            self.spare.extend(self.doubtful.pop_front());
        }
        self.doubtful.push_back(number);
        self.replace(number);
    }

    /// The provider is done with a block.
    fn free(&mut self, number: u32) {
        match self.chunks[number as usize].filling.replaced {
            true => self.spare.push(number),
            false => self.waiting.push(number),
        }
    }

    /// Gives the provider another block in place of one, once.
    #[cold]
    fn replace(&mut self, number: u32) {
        let filling = &mut self.chunks[number as usize].filling;
        if std::mem::replace(&mut filling.replaced, true) {
            return;
        }
        match self.spare.pop() {
            Some(spare) => self.waiting.push(spare),
            None => self.missing += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Receives {
        /// Adds a block that the provider has.
        fn add_posted(&mut self) -> u32 {
            self.chunks.push(Chunk {
                block: BlockId::of_test(),
                op: None,
                filling: Filling::default(),
            });
            self.chunks.len() as u32 - 1
        }

        /// Returns what is to be given to the provider: blocks that are there, and how many are not.
        fn given(&mut self) -> (Vec<u32>, usize) {
            let given = std::mem::take(&mut self.waiting);
            for number in &given {
                self.chunks[*number as usize].filling = Filling::default();
            }
            (given, std::mem::take(&mut self.missing))
        }
    }

    /// Blocks of many messages, as many as the provider has of them.
    fn receives() -> Receives {
        let mut receives = Receives::new(true, 1000);
        while receives.chunks.len() < MULTI_COUNT {
            receives.add_posted();
        }
        receives
    }

    #[test]
    fn a_full_block_goes_back() {
        let mut receives = receives();
        receives.note_message(0, 0..90);
        // Aligned ones have gaps between them.
        receives.note_message(0, 96..200);
        receives.note_full(0);
        receives.note_full(0);
        assert_eq!(receives.given(), (vec![0], 0));
    }

    #[test]
    fn a_full_block_waits_for_what_was_begun_in_it() {
        let mut receives = receives();
        let full = |receives: &mut Receives, number| {
            receives.note_message(number, 0..100);
            // The bytes from 100 on are of a peer that has stopped.
            receives.note_message(number, 350..1000);
            receives.note_message(number, 200..350);
            receives.note_full(number);
        };
        full(&mut receives, 1);
        assert_eq!(receives.given(), (vec![], 1), "another in its place");
        receives.note_message(1, 100..200);
        assert_eq!(receives.given(), (vec![], 0), "the provider has enough");
        full(&mut receives, 2);
        assert_eq!(receives.given(), (vec![1], 0));
    }

    #[test]
    fn a_block_with_something_cut_off_has_another_in_its_place() {
        let mut receives = receives();
        receives.note_message(2, 0..100);
        receives.note_cut(2);
        receives.note_cut(2);
        assert_eq!(receives.given(), (vec![], 1));
        receives.note_message(2, 200..1000);
        receives.note_full(2);
        receives.note_message(2, 100..200);
        assert_eq!(receives.given(), (vec![], 0), "it may be another's place");
        for _ in 1..MOST_DOUBTFUL {
            let number = receives.add_posted();
            receives.note_cut(number);
        }
        assert_eq!(receives.given(), (vec![], MOST_DOUBTFUL - 1));
        receives.note_cut(0);
        assert_eq!(receives.given(), (vec![2], 0), "over long ago");
    }

    #[test]
    fn a_block_of_one_message_goes_back_whatever_became_of_it() {
        let mut receives = receives();
        receives.multi = false;
        receives.note_message(0, 0..100);
        receives.note_cut(1);
        assert_eq!(receives.given(), (vec![0, 1], 0));
    }
}
