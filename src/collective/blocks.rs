//! Buffers of an exchange that lie anywhere.
#![allow(unsafe_code)]

use std::any::Any;

use super::buffers::{Lasting, Lent};
use super::persistent::PersistentCollective;
use crate::error::{Error, Result};
use crate::persistent::Memory;
use crate::plain::{Plain, bytes, bytes_mut};

/// The buffers of an exchange with several ranks, each of a type and at a place of its own (MPI-5.0, section 6.8, `MPI_Alltoallw`):
/// the first that is sent is for the first of the ranks, the first that is received comes from it, and so on.
///
/// ```
/// use tagwire::{Blocks, Session};
///
/// let session = Session::open()?;
/// let (rank, size) = (session.rank(), session.size());
/// let grid = session.world().cartesian(&[size], &[true])?;
/// let (small, large) = ([rank as u8; 3], vec![f64::from(rank); 100]);
/// let (mut from_left, mut from_right) = (vec![0.0; 100], [0u8; 3]);
/// // Bytes to the left, floats to the right.
/// let blocks = Blocks::new().send(&small).send(&large);
/// let blocks = blocks.recv(&mut from_left).recv(&mut from_right);
/// grid.neighbourhood().alltoall_blocks(blocks)?;
/// assert_eq!(from_left, [f64::from((rank + size - 1) % size); 100]);
/// assert_eq!(from_right, [((rank + 1) % size) as u8; 3]);
/// # session.close()?;
/// # Ok::<(), tagwire::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Blocks<'a> {
    pub(super) leaving: Vec<&'a [u8]>,
    pub(super) coming: Vec<&'a mut [u8]>,
}

impl<'a> Blocks<'a> {
    /// Returns none.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds what is sent to the next rank.
    #[must_use]
    pub fn send<T: Plain>(mut self, data: &'a [T]) -> Self {
        self.leaving.push(bytes(data));
        self
    }

    /// Adds where to receive from the next rank.
    #[must_use]
    pub fn recv<T: Plain>(mut self, into: &'a mut [T]) -> Self {
        self.coming.push(bytes_mut(into));
        self
    }
}

/// The buffers of a persistent [`Alltoall::blocks`](crate::Alltoall::blocks), each of a type of its own (MPI-5.0, section 6.13,
/// `MPI_Alltoallw_init`): the first that is sent is for the first rank, the first that is received comes from it, and so on.
#[derive(Debug, Default)]
pub struct OwnedBlocks {
    leaving: Vec<Block>,
    coming: Vec<Block>,
}

impl OwnedBlocks {
    /// Returns none.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds what is sent to the next rank.
    #[must_use]
    pub fn send<T: Plain + Sync>(mut self, data: Vec<T>) -> Self {
        self.leaving.push(Block::new(data));
        self
    }

    /// Adds where to receive from the next rank.
    #[must_use]
    pub fn recv<T: Plain + Sync>(mut self, into: Vec<T>) -> Self {
        self.coming.push(Block::new(into));
        self
    }
}

/// Elements of some type: a `Memory` of it.
#[derive(Debug)]
struct Block {
    elements: Box<dyn Any + Send + Sync>,
    lent: Lent<u8>,
}

impl Block {
    fn new<T: Plain + Sync>(data: Vec<T>) -> Self {
        let memory = Memory::new(data);
        let lent = Lent::bytes(&memory);
        let elements = Box::new(memory);
        Self { elements, lent }
    }
}

// SAFETY: what is lent lies in the elements of blocks, which are on the heap.
unsafe impl Lasting for OwnedBlocks {
    type Lent = Blocks<'static>;

    unsafe fn lender(&self) -> impl Fn() -> Self::Lent + Send + Sync + 'static + use<> {
        let lent = |blocks: &[Block]| blocks.iter().map(|block| block.lent).collect::<Vec<_>>();
        let (leaving, coming) = (lent(&self.leaving), lent(&self.coming));
        move || Blocks {
            // SAFETY: the caller's promise. No two are the same memory; what leaves is only read.
            leaving: leaving
                .iter()
                .map(|one| unsafe { &*one.elements() })
                .collect(),
            // SAFETY: as above.
            coming: coming.iter().map(|one| unsafe { one.elements() }).collect(),
        }
    }
}

impl PersistentCollective<'_, OwnedBlocks> {
    /// Returns what is sent to rank `to`, to be changed between two rounds.
    ///
    /// # Errors
    /// [`Error::UnderWay`] while a round is under way; [`Error::BlockType`] when there is no such buffer of this type.
    pub fn sent_mut<T: Plain>(&mut self, to: u32) -> Result<&mut [T]> {
        let blocks = &mut self.memory_mut()?.leaving;
        let block = blocks.get_mut(to as usize);
        let memory = block.and_then(|block| block.elements.downcast_mut::<Memory<T>>());
        // SAFETY: no round is under way.
        let elements = memory.map(|memory| unsafe { memory.as_mut_slice() });
        elements.ok_or(Error::BlockType { rank: to })
    }

    /// Returns what the last round has received from rank `from`.
    ///
    /// # Errors
    /// As [`sent_mut`](Self::sent_mut).
    pub fn received<T: Plain>(&self, from: u32) -> Result<&[T]> {
        let block = self.memory()?.coming.get(from as usize);
        let memory = block.and_then(|block| block.elements.downcast_ref::<Memory<T>>());
        // SAFETY: no round is under way.
        let elements = memory.map(|memory| unsafe { memory.as_slice() });
        elements.ok_or(Error::BlockType { rank: from })
    }
}
