//! Collectives that move data within one buffer.

use std::borrow::Cow;

use tagwire_coll::operations::{
    AllgatherInPlace, AlltoallInPlace, GatherInPlace, Parts, ScatterInPlace,
};

use super::operations::lengths;
use super::persistent_collective::PersistentCollective;
use crate::context::Context;
use crate::error::Result;
use crate::plain::{Plain, bytes_mut};
use crate::scope::{Request, Scope};

/// The collectives of a context whose data lie where their results go (`MPI_IN_PLACE`), from [`Context::in_place`]. Reductions
/// are in place anyway.
///
/// A buffer has a block for each rank, in the order of ranks: of equal length, or as `counts` say, in elements. With a root,
/// the other ranks' buffers are their own blocks alone.
///
/// ```
/// let session = tagwire::Session::open()?;
/// let (rank, size) = (session.rank() as usize, session.size() as usize);
/// let mut squares = vec![0; size];
/// squares[rank] = rank * rank;
/// session.world().in_place().allgather(&mut squares)?;
/// assert!(squares.iter().enumerate().all(|(rank, square)| *square == rank * rank));
/// # session.close()?;
/// # Ok::<(), tagwire::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct InPlace<'s>(Context<'s>);

impl<'s> Context<'s> {
    /// Returns the collectives whose data lie where their results go.
    #[must_use]
    pub const fn in_place(&self) -> InPlace<'s> {
        InPlace(*self)
    }
}

impl<'s> InPlace<'s> {
    /// As [`Context::allgather`]: each rank gives its own block of `all`.
    ///
    /// # Errors
    /// As [`Context::allgather`].
    pub fn allgather<T: Plain>(&self, all: &mut [T]) -> Result<()> {
        let operation = allgather(bytes_mut(all), Parts::Equal);
        self.0.call(|team| team.call(operation))
    }

    /// The same with blocks of different lengths.
    ///
    /// # Errors
    /// As [`Context::allgather`].
    pub fn allgather_varying<T: Plain>(&self, all: &mut [T], counts: &[usize]) -> Result<()> {
        let operation = allgather(bytes_mut(all), parts::<T>(counts));
        self.0.call(|team| team.call(operation))
    }

    /// As [`Context::gather`]: at `root` its own block of `data` is there, the other ranks give their `data`.
    ///
    /// # Errors
    /// As [`Context::gather`].
    pub fn gather<T: Plain>(&self, data: &mut [T], root: u32) -> Result<()> {
        let operation = gather(bytes_mut(data), Parts::Equal, root);
        self.0.call(|team| team.call(operation))
    }

    /// The same with blocks of different lengths, which `root` alone has to know.
    ///
    /// # Errors
    /// As [`Context::gather`].
    pub fn gather_varying<T: Plain>(
        &self,
        data: &mut [T],
        counts: &[usize],
        root: u32,
    ) -> Result<()> {
        let operation = gather(bytes_mut(data), parts::<T>(counts), root);
        self.0.call(|team| team.call(operation))
    }

    /// As [`Context::scatter`]: `root` keeps its own block of `data`, the other ranks get theirs in `data`.
    ///
    /// # Errors
    /// As [`Context::scatter`].
    pub fn scatter<T: Plain>(&self, data: &mut [T], root: u32) -> Result<()> {
        let operation = scatter(bytes_mut(data), Parts::Equal, root);
        self.0.call(|team| team.call(operation))
    }

    /// The same with blocks of different lengths, which `root` alone has to know.
    ///
    /// # Errors
    /// As [`Context::scatter`].
    pub fn scatter_varying<T: Plain>(
        &self,
        data: &mut [T],
        counts: &[usize],
        root: u32,
    ) -> Result<()> {
        let operation = scatter(bytes_mut(data), parts::<T>(counts), root);
        self.0.call(|team| team.call(operation))
    }

    /// As [`Context::alltoall`]: each block is given to its rank, whose block comes in its place.
    ///
    /// # Errors
    /// As [`Context::alltoall`].
    pub fn alltoall<T: Plain>(&self, data: &mut [T]) -> Result<()> {
        let operation = alltoall(bytes_mut(data), Parts::Equal);
        self.0.call(|team| team.call(operation))
    }

    /// The same with blocks of different lengths. Two ranks give each other as much.
    ///
    /// # Errors
    /// As [`Context::alltoall`].
    pub fn alltoall_varying<T: Plain>(&self, data: &mut [T], counts: &[usize]) -> Result<()> {
        let operation = alltoall(bytes_mut(data), parts::<T>(counts));
        self.0.call(|team| team.call(operation))
    }
}

/// Nonblocking forms. They fail as those of two buffers do.
#[allow(clippy::missing_errors_doc, reason = "said once for all")]
impl InPlace<'_> {
    /// Starts an [`allgather`](Self::allgather).
    pub fn iallgather<'scope, 'env, T: Plain>(
        &self,
        scope: &'scope Scope<'scope, 'env>,
        all: &'env mut [T],
    ) -> Result<Request<'scope, 'env>> {
        self.0.begin(scope, allgather(bytes_mut(all), Parts::Equal))
    }

    /// Starts an [`allgather_varying`](Self::allgather_varying).
    pub fn iallgather_varying<'scope, 'env, T: Plain>(
        &self,
        scope: &'scope Scope<'scope, 'env>,
        all: &'env mut [T],
        counts: &[usize],
    ) -> Result<Request<'scope, 'env>> {
        let operation = allgather(bytes_mut(all), parts::<T>(counts));
        self.0.begin(scope, operation)
    }

    /// Starts a [`gather`](Self::gather).
    pub fn igather<'scope, 'env, T: Plain>(
        &self,
        scope: &'scope Scope<'scope, 'env>,
        data: &'env mut [T],
        root: u32,
    ) -> Result<Request<'scope, 'env>> {
        self.0
            .begin(scope, gather(bytes_mut(data), Parts::Equal, root))
    }

    /// Starts a [`gather_varying`](Self::gather_varying).
    pub fn igather_varying<'scope, 'env, T: Plain>(
        &self,
        scope: &'scope Scope<'scope, 'env>,
        data: &'env mut [T],
        counts: &[usize],
        root: u32,
    ) -> Result<Request<'scope, 'env>> {
        let operation = gather(bytes_mut(data), parts::<T>(counts), root);
        self.0.begin(scope, operation)
    }

    /// Starts a [`scatter`](Self::scatter).
    pub fn iscatter<'scope, 'env, T: Plain>(
        &self,
        scope: &'scope Scope<'scope, 'env>,
        data: &'env mut [T],
        root: u32,
    ) -> Result<Request<'scope, 'env>> {
        self.0
            .begin(scope, scatter(bytes_mut(data), Parts::Equal, root))
    }

    /// Starts a [`scatter_varying`](Self::scatter_varying).
    pub fn iscatter_varying<'scope, 'env, T: Plain>(
        &self,
        scope: &'scope Scope<'scope, 'env>,
        data: &'env mut [T],
        counts: &[usize],
        root: u32,
    ) -> Result<Request<'scope, 'env>> {
        let operation = scatter(bytes_mut(data), parts::<T>(counts), root);
        self.0.begin(scope, operation)
    }

    /// Starts an [`alltoall`](Self::alltoall).
    pub fn ialltoall<'scope, 'env, T: Plain>(
        &self,
        scope: &'scope Scope<'scope, 'env>,
        data: &'env mut [T],
    ) -> Result<Request<'scope, 'env>> {
        self.0.begin(scope, alltoall(bytes_mut(data), Parts::Equal))
    }

    /// Starts an [`alltoall_varying`](Self::alltoall_varying).
    pub fn ialltoall_varying<'scope, 'env, T: Plain>(
        &self,
        scope: &'scope Scope<'scope, 'env>,
        data: &'env mut [T],
        counts: &[usize],
    ) -> Result<Request<'scope, 'env>> {
        let operation = alltoall(bytes_mut(data), parts::<T>(counts));
        self.0.begin(scope, operation)
    }
}

/// Persistent forms, whose buffer is their [`data`](PersistentCollective::data). They fail as those of two buffers do.
#[allow(clippy::missing_errors_doc, reason = "said once for all")]
impl<'s> InPlace<'s> {
    /// Makes a persistent [`allgather`](Self::allgather).
    pub fn allgather_init<T: Plain>(&self, all: Vec<T>) -> Result<PersistentCollective<'s, T>> {
        let memory = (all, Vec::new());
        PersistentCollective::make(&self.0, memory, |all, _| allgather(all, Parts::Equal))
    }

    /// Makes a persistent [`allgather_varying`](Self::allgather_varying).
    pub fn allgather_varying_init<T: Plain>(
        &self,
        all: Vec<T>,
        counts: &[usize],
    ) -> Result<PersistentCollective<'s, T>> {
        let (memory, parts) = ((all, Vec::new()), parts::<T>(counts));
        PersistentCollective::make(&self.0, memory, move |all, _| allgather(all, parts.clone()))
    }

    /// Makes a persistent [`gather`](Self::gather).
    pub fn gather_init<T: Plain>(
        &self,
        data: Vec<T>,
        root: u32,
    ) -> Result<PersistentCollective<'s, T>> {
        let memory = (data, Vec::new());
        PersistentCollective::make(&self.0, memory, move |data, _| {
            gather(data, Parts::Equal, root)
        })
    }

    /// Makes a persistent [`gather_varying`](Self::gather_varying).
    pub fn gather_varying_init<T: Plain>(
        &self,
        data: Vec<T>,
        counts: &[usize],
        root: u32,
    ) -> Result<PersistentCollective<'s, T>> {
        let (memory, parts) = ((data, Vec::new()), parts::<T>(counts));
        PersistentCollective::make(&self.0, memory, move |data, _| {
            gather(data, parts.clone(), root)
        })
    }

    /// Makes a persistent [`scatter`](Self::scatter).
    pub fn scatter_init<T: Plain>(
        &self,
        data: Vec<T>,
        root: u32,
    ) -> Result<PersistentCollective<'s, T>> {
        let memory = (data, Vec::new());
        PersistentCollective::make(&self.0, memory, move |data, _| {
            scatter(data, Parts::Equal, root)
        })
    }

    /// Makes a persistent [`scatter_varying`](Self::scatter_varying).
    pub fn scatter_varying_init<T: Plain>(
        &self,
        data: Vec<T>,
        counts: &[usize],
        root: u32,
    ) -> Result<PersistentCollective<'s, T>> {
        let (memory, parts) = ((data, Vec::new()), parts::<T>(counts));
        PersistentCollective::make(&self.0, memory, move |data, _| {
            scatter(data, parts.clone(), root)
        })
    }

    /// Makes a persistent [`alltoall`](Self::alltoall).
    pub fn alltoall_init<T: Plain>(&self, data: Vec<T>) -> Result<PersistentCollective<'s, T>> {
        let memory = (data, Vec::new());
        PersistentCollective::make(&self.0, memory, |data, _| alltoall(data, Parts::Equal))
    }

    /// Makes a persistent [`alltoall_varying`](Self::alltoall_varying).
    pub fn alltoall_varying_init<T: Plain>(
        &self,
        data: Vec<T>,
        counts: &[usize],
    ) -> Result<PersistentCollective<'s, T>> {
        let (memory, parts) = ((data, Vec::new()), parts::<T>(counts));
        PersistentCollective::make(&self.0, memory, move |data, _| {
            alltoall(data, parts.clone())
        })
    }
}

fn parts<T>(counts: &[usize]) -> Parts<'static> {
    Parts::Of(Cow::Owned(lengths::<T>(counts)))
}

const fn allgather<'a>(data: &'a mut [u8], parts: Parts<'a>) -> AllgatherInPlace<'a> {
    AllgatherInPlace { data, parts }
}

const fn alltoall<'a>(data: &'a mut [u8], parts: Parts<'a>) -> AlltoallInPlace<'a> {
    AlltoallInPlace { data, parts }
}

const fn gather<'a>(data: &'a mut [u8], parts: Parts<'a>, root: u32) -> GatherInPlace<'a> {
    let root = root as usize;
    GatherInPlace { data, parts, root }
}

const fn scatter<'a>(data: &'a mut [u8], parts: Parts<'a>, root: u32) -> ScatterInPlace<'a> {
    let root = root as usize;
    ScatterInPlace { data, parts, root }
}
