//! Memory of algorithms: kept between operations, so that a long one does not ask the system for pages each time.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};

/// So many pieces are kept: as many as an algorithm has at once.
const KEPT: usize = 4;

/// Longer pieces go back to the system.
const LONGEST: usize = 16 << 20;

/// The pieces that no operation has.
#[derive(Debug, Default)]
pub(crate) struct Pool(Mutex<Vec<Vec<u8>>>);

impl Pool {
    /// Lends `len` bytes. What is in them is left from before.
    pub(crate) fn take(&self, len: usize) -> Scratch<'_> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The shortest that is long enough, so that short requests leave the long ones.
        let fitting = kept
            .iter()
            .enumerate()
            .filter(|(_, piece)| piece.len() >= len);
        let best = fitting.min_by_key(|(_, piece)| piece.len());
        let best = best.map(|(place, _)| place);
        let mut memory = best.map_or_else(Vec::new, |place| kept.swap_remove(place));
        drop(kept);
        if memory.len() < len {
            memory.resize(len, 0);
        }
        Scratch {
            pool: self,
            memory,
            len,
        }
    }
}

/// Bytes of a pool, which go back when this is dropped.
#[derive(Debug)]
pub(crate) struct Scratch<'p> {
    pool: &'p Pool,
    memory: Vec<u8>,
    len: usize,
}

impl Deref for Scratch<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[..self.len]
    }
}

impl DerefMut for Scratch<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[..self.len]
    }
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        let memory = std::mem::take(&mut self.memory);
        let mut kept = self.pool.0.lock().unwrap_or_else(PoisonError::into_inner);
        if memory.len() <= LONGEST {
            kept.push(memory);
        }
        if kept.len() > KEPT {
            let shortest = kept.iter().enumerate().min_by_key(|(_, piece)| piece.len());
            if let Some((place, _)) = shortest {
                kept.swap_remove(place);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_again() {
        let pool = Pool::default();
        let (mut first, second) = (pool.take(100), pool.take(10));
        first.fill(7);
        assert_eq!(second.len(), 10);
        drop((first, second));
        assert_eq!(pool.take(10).len(), 10);
        let lengths: Vec<_> = [200, 0, 5].map(|len| pool.take(len).len()).into();
        assert_eq!(lengths, [200, 0, 5]);
        drop((0..10).map(|_| pool.take(1)).collect::<Vec<_>>());
        drop(pool.take(LONGEST + 1));
        assert!(pool.0.lock().unwrap().len() <= KEPT);
    }
}
