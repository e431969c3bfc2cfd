//! Persistent exchanges of buffers of several types.
#![allow(unsafe_code)]

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use tagwire_coll::operations::{Alltoallw, CollectiveOperation};

use super::rounds::{Lent, Rounds};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::persistent::Memory;
use crate::plain::Plain;

/// The buffers of a [`PersistentBlocks`], each of a type of its own: the first that is sent is for the first rank, the first
/// that is received comes from it, and so on.
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
struct Block {
    elements: Box<dyn Any + Send + Sync>,
    lent: Lent,
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Block").finish_non_exhaustive()
    }
}

impl Block {
    fn new<T: Plain + Sync>(data: Vec<T>) -> Self {
        let memory = Memory::new(data);
        let lent = Lent::of(&memory);
        let elements = Box::new(memory);
        Self { elements, lent }
    }
}

/// An [`alltoall_blocks`](Context::alltoall_blocks) on the same buffers, again and again (MPI-5.0, section 6.13,
/// `MPI_Alltoallw_init`). From [`Context::alltoall_blocks_init`].
///
/// ```
/// use tagwire::{OwnedBlocks, Session};
///
/// let session = Session::open()?;
/// let mut blocks = OwnedBlocks::new();
/// for rank in 0..session.size() {
///     // Bytes for odd ranks, floats for the others; what comes is of this rank's kind.
///     blocks = if rank % 2 == 1 { blocks.send(vec![0u8; 3]) } else { blocks.send(vec![0.0; 3]) };
///     let is_odd = session.rank() % 2 == 1;
///     blocks = if is_odd { blocks.recv(vec![0u8; 3]) } else { blocks.recv(vec![0.0; 3]) };
/// }
/// let mut exchange = session.world().alltoall_blocks_init(blocks)?;
/// for round in 1..=3 {
///     exchange.sent_mut::<f64>(0)?.fill(f64::from(round));
///     exchange.start()?;
///     exchange.wait()?;
///     if session.rank() == 0 {
///         assert_eq!(exchange.received::<f64>(0)?, [f64::from(round); 3]);
///     }
/// }
/// # drop(exchange);
/// # session.close()?;
/// # Ok::<(), tagwire::Error>(())
/// ```
#[derive(Debug)]
pub struct PersistentBlocks<'s>(Rounds<'s, OwnedBlocks>);

impl PersistentBlocks<'_> {
    /// Begins a round.
    ///
    /// # Errors
    /// [`Error::UnderWay`] when one is under way; when a collective of the context has failed.
    pub fn start(&mut self) -> Result<()> {
        self.0.start()
    }

    /// Waits until the round is complete. At once when none was started.
    ///
    /// # Errors
    /// How the round failed, if it did.
    pub fn wait(&mut self) -> Result<()> {
        self.0.wait(None)
    }

    /// Waits up to `timeout`.
    ///
    /// # Errors
    /// As [`wait`](Self::wait). When the time passes ([`Error::is_timeout`]) the round goes on, and the buffers stay lent.
    pub fn wait_for(&mut self, timeout: Duration) -> Result<()> {
        self.0.wait(Some(timeout))
    }

    /// Waits in a task until the round is complete, while the session is [driven](crate::Session::drive). Dropped
    /// before, the round goes on.
    ///
    /// # Errors
    /// How the round failed, if it did.
    pub async fn completed(&mut self) -> Result<()> {
        self.0.completed().await
    }

    /// Looks whether the round is complete, after making progress once.
    ///
    /// # Errors
    /// How the round failed, if it did.
    pub fn test(&mut self) -> Result<bool> {
        self.0.test()
    }

    /// Returns whether a round was started whose end has not been taken.
    #[must_use]
    pub const fn is_active(&self) -> bool {
        self.0.is_active()
    }

    /// Returns what is sent to rank `to`, to be changed between two rounds.
    ///
    /// # Errors
    /// [`Error::UnderWay`] while a round is under way; [`Error::BlockType`] when there is no such buffer of this type.
    pub fn sent_mut<T: Plain>(&mut self, to: u32) -> Result<&mut [T]> {
        let blocks = &mut self.0.memory_mut()?.leaving;
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
        let block = self.0.memory()?.coming.get(from as usize);
        let memory = block.and_then(|block| block.elements.downcast_ref::<Memory<T>>());
        // SAFETY: no round is under way.
        let elements = memory.map(|memory| unsafe { memory.as_slice() });
        elements.ok_or(Error::BlockType { rank: from })
    }
}

impl<'s> Context<'s> {
    /// Makes a persistent [`alltoall_blocks`](Self::alltoall_blocks), which owns its buffers.
    ///
    /// # Errors
    /// As [`barrier_init`](Self::barrier_init); when there are not as many buffers as ranks.
    pub fn alltoall_blocks_init(&self, blocks: OwnedBlocks) -> Result<PersistentBlocks<'s>> {
        let lent = |blocks: &[Block]| blocks.iter().map(|block| block.lent).collect::<Vec<_>>();
        let (leaving, coming) = (lent(&blocks.leaving), lent(&blocks.coming));
        // SAFETY: an operation is made while none is under way. Nobody looks at the elements while one is: the object does not
        // while it is active, and is not there yet for the first.
        let make = move || unsafe { exchange(&leaving, &coming) };
        // SAFETY: what is lent is in `blocks`.
        Ok(PersistentBlocks(unsafe {
            Rounds::make(self, blocks, make)
        }?))
    }
}

/// Returns the operation on these buffers.
///
/// # Safety
/// As for [`Lent::bytes`].
unsafe fn exchange(leaving: &[Lent], coming: &[Lent]) -> impl CollectiveOperation + use<> {
    // SAFETY: the caller's promise. What leaves is only read.
    let input: Vec<&'static [u8]> = leaving.iter().map(|one| unsafe { &*one.bytes() }).collect();
    Alltoallw {
        input: Cow::Owned(input),
        // SAFETY: the caller's promise.
        out: coming.iter().map(|one| unsafe { one.bytes() }).collect(),
    }
}
