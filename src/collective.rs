//! What the ranks of a context do together.

mod blocks;
mod cartesian;
mod combine;
mod groups;
mod in_place;
mod neighbourhood;
mod nonblocking;
mod operations;
mod persistent_blocks;
mod persistent_collective;
mod rounds;

use tagwire_coll::operations::Allreduce;

use crate::context::Context;
use crate::error::Result;
use crate::plain::{Plain, bytes, bytes_mut};
use crate::session::Session;

pub use blocks::Blocks;
pub use cartesian::Cartesian;
pub use combine::{Combine, Number, Reducer};
pub use in_place::InPlace;
pub use neighbourhood::Neighbourhood;
use operations::{in_place, lengths};
pub use persistent_blocks::{OwnedBlocks, PersistentBlocks};
pub use persistent_collective::PersistentCollective;
pub use tagwire_layout::Operation;
pub use tagwire_layout::Operation::{Max, Min, Product, Sum};

/// Collectives. Every rank of the context calls them in the same order, each by one thread at a time. Lengths are the same on
/// all ranks unless said otherwise. When a rank fails, all others' calls end with an error.
impl<'s> Context<'s> {
    pub(crate) fn call(
        &self,
        call: impl FnOnce(&tagwire_coll::Team) -> tagwire_coll::Result<()>,
    ) -> Result<()> {
        let shared = self.shared();
        shared.with(self.group(), |team| Ok(call(team)?))
    }

    /// Returns once every rank has called it (MPI-5.0, section 6.3).
    ///
    /// # Errors
    /// When a rank fails.
    pub fn barrier(&self) -> Result<()> {
        self.call(|team| team.barrier())
    }

    /// Gives the data of `root` to all (MPI-5.0, section 6.4).
    ///
    /// # Errors
    /// When there is no such rank, a rank fails, or lengths differ.
    pub fn broadcast<T: Plain>(&self, data: &mut [T], root: u32) -> Result<()> {
        self.call(|team| team.broadcast(bytes_mut(data), root as usize))
    }

    /// Combines the numbers of all ranks, place by place; every rank gets the result (MPI-5.0, section 6.9.6).
    ///
    /// ```
    /// use tagwire::{Session, Sum};
    ///
    /// let session = Session::open()?;
    /// let mut numbers = [1.5, f64::from(session.rank())];
    /// session.world().allreduce(&mut numbers, Sum)?;
    /// assert_eq!(numbers[0], 1.5 * f64::from(session.size()));
    /// # session.close()?;
    /// # Ok::<(), tagwire::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the operation is not defined for the numbers, a rank fails, or lengths differ.
    pub fn allreduce<T: Plain>(&self, data: &mut [T], by: impl Reducer<T>) -> Result<()> {
        self.call(|team| team.allreduce(by.reduction(), bytes_mut(data)))
    }

    /// The same with the result in `out`; `input` stays as it is.
    ///
    /// # Errors
    /// As [`allreduce`](Self::allreduce); when the two have different lengths.
    pub fn allreduce_into<T: Plain>(
        &self,
        input: &[T],
        out: &mut [T],
        by: impl Reducer<T>,
    ) -> Result<()> {
        self.call(|team| {
            team.call(Allreduce {
                operator: by.reduction().into(),
                input: Some(bytes(input)),
                data: bytes_mut(out),
            })
        })
    }

    /// Combines the numbers of all ranks; `root` gets the result in place of its own, and the others' data stay as they are
    /// (MPI-5.0, section 6.9.1).
    ///
    /// # Errors
    /// As [`allreduce`](Self::allreduce); when there is no such rank.
    pub fn reduce<T: Plain>(&self, data: &mut [T], by: impl Reducer<T>, root: u32) -> Result<()> {
        let operator = by.reduction().into();
        self.call(|team| team.call(in_place(operator, bytes_mut(data), team.me() as u32, root)))
    }

    /// Combines the numbers of all ranks up to this one, in its place (MPI-5.0, section 6.11.1).
    ///
    /// # Errors
    /// As [`allreduce`](Self::allreduce).
    pub fn scan<T: Plain>(&self, data: &mut [T], by: impl Reducer<T>) -> Result<()> {
        self.call(|team| team.scan(by.reduction(), bytes_mut(data)))
    }

    /// Combines the numbers of all ranks before this one, in its place; those of rank 0 stay as they are
    /// (MPI-5.0, section 6.11.2).
    ///
    /// # Errors
    /// As [`allreduce`](Self::allreduce).
    pub fn exscan<T: Plain>(&self, data: &mut [T], by: impl Reducer<T>) -> Result<()> {
        self.call(|team| team.exscan(by.reduction(), bytes_mut(data)))
    }

    /// Combines the numbers of all ranks and gives each rank one of as many equal parts (MPI-5.0, section 6.10).
    ///
    /// # Errors
    /// As [`allreduce`](Self::allreduce).
    pub fn reduce_scatter<T: Plain>(
        &self,
        data: &[T],
        own: &mut [T],
        by: impl Reducer<T>,
    ) -> Result<()> {
        self.call(|team| {
            let lengths = vec![size_of_val(own); team.size()];
            team.reduce_scatter(by.reduction(), bytes(data), &lengths, bytes_mut(own))
        })
    }

    /// Gives the `own` data of each rank to `root`, in the order of ranks: in `all`, which is for it alone
    /// (MPI-5.0, section 6.5).
    ///
    /// # Errors
    /// When there is no such rank, a rank fails, or lengths differ.
    pub fn gather<T: Plain>(&self, own: &[T], all: &mut [T], root: u32) -> Result<()> {
        self.call(|team| team.gather(bytes(own), Some(bytes_mut(all)), root as usize))
    }

    /// The same with data of different lengths, `counts` of elements, which `root` alone has to know.
    ///
    /// # Errors
    /// As [`gather`](Self::gather).
    pub fn gather_varying<T: Plain>(
        &self,
        own: &[T],
        all: &mut [T],
        counts: &[usize],
        root: u32,
    ) -> Result<()> {
        let lengths = lengths::<T>(counts);
        let root = root as usize;
        self.call(|team| team.gatherv(bytes(own), &lengths, Some(bytes_mut(all)), root))
    }

    /// Gives the `own` data of each rank to all, in the order of ranks (MPI-5.0, section 6.7).
    ///
    /// # Errors
    /// When a rank fails, or lengths differ.
    pub fn allgather<T: Plain>(&self, own: &[T], all: &mut [T]) -> Result<()> {
        self.call(|team| team.allgather(bytes(own), bytes_mut(all)))
    }

    /// The same with data of different lengths, `counts` of elements.
    ///
    /// # Errors
    /// As [`allgather`](Self::allgather).
    pub fn allgather_varying<T: Plain>(
        &self,
        own: &[T],
        all: &mut [T],
        counts: &[usize],
    ) -> Result<()> {
        let lengths = lengths::<T>(counts);
        self.call(|team| team.allgatherv(bytes(own), &lengths, bytes_mut(all)))
    }

    /// Gives each rank its part of the data `all` of `root`, equal ones in the order of ranks (MPI-5.0, section 6.6).
    ///
    /// # Errors
    /// When there is no such rank, a rank fails, or lengths differ.
    pub fn scatter<T: Plain>(&self, all: &[T], own: &mut [T], root: u32) -> Result<()> {
        self.call(|team| team.scatter(Some(bytes(all)), bytes_mut(own), root as usize))
    }

    /// The same with parts of different lengths, `counts` of elements, which `root` alone has to know.
    ///
    /// # Errors
    /// As [`scatter`](Self::scatter).
    pub fn scatter_varying<T: Plain>(
        &self,
        all: &[T],
        counts: &[usize],
        own: &mut [T],
        root: u32,
    ) -> Result<()> {
        let lengths = lengths::<T>(counts);
        let root = root as usize;
        self.call(|team| team.scatterv(Some(bytes(all)), &lengths, bytes_mut(own), root))
    }

    /// Gives each rank one of as many equal blocks of `data`, and gets one from each (MPI-5.0, section 6.8).
    ///
    /// # Errors
    /// When a rank fails, or lengths differ.
    pub fn alltoall<T: Plain>(&self, data: &[T], from_all: &mut [T]) -> Result<()> {
        self.call(|team| team.alltoall(bytes(data), bytes_mut(from_all)))
    }

    /// The same with blocks of different lengths: `to` are the elements that go to each rank, `from` those that come.
    ///
    /// # Errors
    /// As [`alltoall`](Self::alltoall).
    pub fn alltoall_varying<T: Plain>(
        &self,
        data: &[T],
        to: &[usize],
        from_all: &mut [T],
        from: &[usize],
    ) -> Result<()> {
        let (to, from) = (lengths::<T>(to), lengths::<T>(from));
        self.call(|team| team.alltoallv(bytes(data), &to, bytes_mut(from_all), &from))
    }

    /// Makes a context of the same ranks. All of them call it (MPI-5.0, section 7.4.2).
    ///
    /// # Errors
    /// When a rank fails or has no context left.
    pub fn duplicate(&self) -> Result<Self> {
        let shared = self.shared();
        let team = shared.with(self.group(), |team| Ok(team.duplicate()?))?;
        Ok(Self::new(self.session(), shared.enter(team)))
    }

    /// Makes a context of the ranks that give the same `color`, numbered in the order of their keys, and of their numbers
    /// here where keys are equal. All ranks call it; one without a color gets none (MPI-5.0, section 7.4.2).
    ///
    /// ```
    /// let session = tagwire::Session::open()?;
    /// let rank = session.rank();
    /// let alike = session.world().split(Some(rank % 2), 0)?.expect("a color was given");
    /// assert_eq!(alike.rank()?, rank / 2);
    /// alike.barrier()?;
    /// # session.close()?;
    /// # Ok::<(), tagwire::Error>(())
    /// ```
    ///
    /// # Errors
    /// When a rank fails or has no context left.
    pub fn split(&self, color: Option<u32>, key: i32) -> Result<Option<Self>> {
        let shared = self.shared();
        let team = shared.with(self.group(), |team| Ok(team.split(color, key)?))?;
        Ok(team.map(|team| Self::new(self.session(), shared.enter(team))))
    }

    /// Makes a context of these ranks, in this order. They alone call it (MPI-5.0, section 7.4.2,
    /// `MPI_Comm_create_group`); also after the failure of others.
    ///
    /// # Errors
    /// When this rank is not among them, or one is named twice; when one fails or has no context left.
    pub fn subset(&self, ranks: &[u32]) -> Result<Self> {
        let members: Vec<_> = ranks.iter().map(|rank| *rank as usize).collect();
        let shared = self.shared();
        let team = shared.with(self.group(), |team| Ok(team.subset(&members)?))?;
        Ok(Self::new(self.session(), shared.enter(team)))
    }

    /// Frees the context: this rank uses it no more. Receives that are posted in it complete as ever; messages that nobody has
    /// received are dropped.
    ///
    /// # Errors
    /// When it is the world's, or freed already.
    pub fn free(self) -> Result<()> {
        self.shared().free(self.group())
    }
}

impl Session {
    /// A new context: a matching space of its own, so that a library's messages and its caller's
    /// never meet. All ranks make it together: a [duplicate](Context::duplicate) of the world's.
    ///
    /// # Errors
    /// When all are in use: 65,536 with the world's, or fewer where the transport matches messages itself and has no
    /// room for so many (`tagwire info` shows how many). When a rank fails.
    pub fn create_context(&self) -> Result<Context<'_>> {
        self.world().duplicate()
    }
}
