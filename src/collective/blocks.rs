//! Buffers of an exchange that lie anywhere.

use std::borrow::Cow;

use tagwire_coll::Neighbours;
use tagwire_coll::operations::{Alltoallw, NeighbourAlltoallw};

use crate::context::Context;
use crate::error::Result;
use crate::plain::{Plain, bytes, bytes_mut};
use crate::scope::{Request, Scope};

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
    leaving: Vec<&'a [u8]>,
    coming: Vec<&'a mut [u8]>,
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

    pub(crate) fn alltoall(self) -> Alltoallw<'a> {
        Alltoallw {
            input: Cow::Owned(self.leaving),
            out: self.coming,
        }
    }

    pub(crate) fn with_neighbours(self, neighbours: &Neighbours) -> NeighbourAlltoallw<'a> {
        NeighbourAlltoallw {
            neighbours: neighbours.clone(),
            input: Cow::Owned(self.leaving),
            out: self.coming,
        }
    }
}

impl Context<'_> {
    /// As [`alltoall`](Self::alltoall), with a buffer for each rank and from each.
    ///
    /// # Errors
    /// When a rank fails, lengths differ, or there are not as many buffers as ranks.
    pub fn alltoall_blocks(&self, blocks: Blocks<'_>) -> Result<()> {
        self.call(|team| team.call(blocks.alltoall()))
    }

    /// Starts an [`alltoall_blocks`](Self::alltoall_blocks).
    ///
    /// # Errors
    /// As [`iallgather`](Self::iallgather).
    pub fn ialltoall_blocks<'scope, 'env>(
        &self,
        scope: &'scope Scope<'scope, 'env>,
        blocks: Blocks<'env>,
    ) -> Result<Request<'scope, 'env>> {
        self.begin(scope, blocks.alltoall())
    }
}
