//! Memory of cm's own for data that its transport does not take in its shape.

use std::ops::{Deref, DerefMut};

/// Most bytes that are kept for later data.
const KEPT: usize = 4 << 20;
const CLASSES: usize = class(KEPT) + 1;

const fn class(size: usize) -> usize {
    size.ilog2() as usize
}

/// A copy of the bytes to be sent, or room for those to come, which lie on the heap.
#[derive(Debug)]
pub(super) struct Bounce {
    memory: Box<[u8]>,
    len: usize,
}

impl Deref for Bounce {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[..self.len]
    }
}

impl DerefMut for Bounce {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[..self.len]
    }
}

/// What was given back: the next message neither allocates nor zeroes.
#[derive(Debug, Default)]
pub(super) struct Bounces {
    /// Spare memory by the logarithm of its size, each size a power of two.
    spare: [Vec<Box<[u8]>>; CLASSES],
    /// Bytes of these.
    kept: usize,
}

impl Bounces {
    /// Returns `len` bytes, which hold anything.
    pub(super) fn take(&mut self, len: usize) -> Bounce {
        if len > KEPT {
            let memory = vec![0; len].into_boxed_slice();
            return Bounce { memory, len };
        }
        let size = len.next_power_of_two();
        let memory = match self.spare[class(size)].pop() {
            Some(memory) => {
                self.kept -= size;
                memory
            }
            None => vec![0; size].into_boxed_slice(),
        };
        Bounce { memory, len }
    }

    /// Takes back what no operation uses any more.
    pub(super) fn give(&mut self, bounce: Bounce) {
        let memory = bounce.memory;
        if self.kept + memory.len() <= KEPT {
            self.kept += memory.len();
            self.spare[class(memory.len())].push(memory);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_and_little_is_kept() {
        let mut bounces = Bounces::default();
        let (mut short, long) = (bounces.take(100), bounces.take(5000));
        short.fill(7);
        let (first, second) = (short.as_ptr(), long.as_ptr());
        bounces.give(long);
        bounces.give(short);
        let again = bounces.take(65);
        assert_eq!((again.as_ptr(), again.len()), (first, 65));
        assert_eq!(bounces.take(8192).as_ptr(), second);
        let vast = bounces.take(KEPT + 1);
        assert_eq!(vast.len(), KEPT + 1);
        bounces.give(vast);
        assert_eq!(bounces.kept, 0);
        let all = [bounces.take(KEPT), bounces.take(1)];
        all.into_iter().for_each(|one| bounces.give(one));
        assert_eq!(bounces.kept, KEPT);
    }
}
