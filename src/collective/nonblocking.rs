//! Nonblocking forms of what the ranks of a context do together.
#![allow(unsafe_code)]

use std::borrow::Cow;
use std::sync::Arc;

use tagwire_base::unwind::NoUnwind;
use tagwire_coll::Team;
use tagwire_coll::operations::{
    Allgather, Allgatherv, Alltoall, Barrier, Broadcast, CollectiveOperation, Exscan, Gather, Scan,
    Scatter,
};

use super::combine::Reducer;
use super::operations::{
    allreduce, alltoallv, gatherv, in_place, lengths, reduce_scatter, scatterv,
};
use crate::context::Context;
use crate::error::Result;
use crate::plain::{Plain, bytes, bytes_mut};
use crate::scope::{Operation, Request, Scope};

impl<'scope, 'env> Scope<'scope, 'env> {
    /// Starts a collective, whose buffers are lent for the scope.
    fn start(
        &'scope self,
        team: &Arc<Team>,
        operation: impl CollectiveOperation + 'env,
    ) -> Result<Request<'scope, 'env>> {
        // The scope waits for what it tracks: a collective that a panic leaves behind is not.
        let lent = NoUnwind::of("a collective");
        // SAFETY: what it borrows is borrowed for 'env, which outlives the scope, and the scope is not left before the operation
        // is complete.
        let started = unsafe { team.start(operation) };
        let started = started.map(|request| {
            let is_open = !request.is_complete();
            self.enter(Operation::Collective(request), is_open)
        });
        lent.over();
        Ok(started?)
    }
}

/// Nonblocking collectives (MPI-5.0, section 6.12). Buffers stay lent for the scope. Every rank of the context calls its
/// collectives in the same order, blocking or not, each by one thread at a time; several may be under way, and end in any
/// order. Whatever this rank waits for moves them on. The requests are waited for like those of messages, also together
/// with them; their status is empty.
///
/// ```
/// use tagwire::{Session, Sum};
///
/// let session = Session::open()?;
/// let world = session.world();
/// let (mut total, mut ranks) = ([1.0], vec![0; session.size() as usize]);
/// let own = [session.rank()];
/// session.try_scope(|scope| {
///     let sum = world.iallreduce(scope, &mut total, Sum)?;
///     let all = world.iallgather(scope, &own, &mut ranks)?;
///     // ... computes something else ...
///     scope.wait_all([all, sum])?;
///     Ok(())
/// })?;
/// assert_eq!(total, [f64::from(session.size())]);
/// assert!(ranks.iter().copied().eq(0..session.size()));
/// # session.close()?;
/// # Ok::<(), tagwire::Error>(())
/// ```
impl Context<'_> {
    pub(crate) fn begin<'scope, 'env>(
        &self,
        scope: &'scope Scope<'scope, 'env>,
        operation: impl CollectiveOperation + 'env,
    ) -> Result<Request<'scope, 'env>> {
        self.check_scope(scope)?;
        scope.start(&self.shared().group(self.group())?, operation)
    }

    /// Starts a [`barrier`](Self::barrier): it is complete once every rank has started it.
    ///
    /// # Errors
    /// When a collective of the context has failed. [`Error::OtherSession`](crate::Error::OtherSession) when the scope is
    /// not of this context's session.
    pub fn ibarrier<'scope, 'env>(
        &self,
        scope: &'scope Scope<'scope, 'env>,
    ) -> Result<Request<'scope, 'env>> {
        self.begin(scope, Barrier)
    }

    /// Starts a [`broadcast`](Self::broadcast).
    ///
    /// # Errors
    /// As [`ibarrier`](Self::ibarrier); when there is no such rank.
    pub fn ibroadcast<'scope, 'env, T: Plain>(
        &self,
        scope: &'scope Scope<'scope, 'env>,
        data: &'env mut [T],
        root: u32,
    ) -> Result<Request<'scope, 'env>> {
        let (data, root) = (bytes_mut(data), root as usize);
        self.begin(scope, Broadcast { data, root })
    }

    /// Starts an [`allreduce`](Self::allreduce).
    ///
    /// # Errors
    /// As [`ibarrier`](Self::ibarrier); when the operation is not defined for the numbers.
    pub fn iallreduce<'scope, 'env, T: Plain>(
        &self,
        scope: &'scope Scope<'scope, 'env>,
        data: &'env mut [T],
        by: impl Reducer<T>,
    ) -> Result<Request<'scope, 'env>> {
        let (operator, data) = (by.operator(), bytes_mut(data));
        self.begin(scope, allreduce(operator, data))
    }

    /// Starts a [`reduce`](Self::reduce).
    ///
    /// # Errors
    /// As [`iallreduce`](Self::iallreduce); when there is no such rank.
    pub fn ireduce<'scope, 'env, T: Plain>(
        &self,
        scope: &'scope Scope<'scope, 'env>,
        data: &'env mut [T],
        by: impl Reducer<T>,
        root: u32,
    ) -> Result<Request<'scope, 'env>> {
        let rank = self.rank()?;
        let operator = by.operator();
        self.begin(scope, in_place(operator, bytes_mut(data), rank, root))
    }

    /// Starts a [`scan`](Self::scan).
    ///
    /// # Errors
    /// As [`iallreduce`](Self::iallreduce).
    pub fn iscan<'scope, 'env, T: Plain>(
        &self,
        scope: &'scope Scope<'scope, 'env>,
        data: &'env mut [T],
        by: impl Reducer<T>,
    ) -> Result<Request<'scope, 'env>> {
        let (operator, data) = (by.operator(), bytes_mut(data));
        self.begin(scope, Scan { operator, data })
    }

    /// Starts an [`exscan`](Self::exscan).
    ///
    /// # Errors
    /// As [`iallreduce`](Self::iallreduce).
    pub fn iexscan<'scope, 'env, T: Plain>(
        &self,
        scope: &'scope Scope<'scope, 'env>,
        data: &'env mut [T],
        by: impl Reducer<T>,
    ) -> Result<Request<'scope, 'env>> {
        let (operator, data) = (by.operator(), bytes_mut(data));
        self.begin(scope, Exscan { operator, data })
    }

    /// Starts a [`reduce_scatter`](Self::reduce_scatter).
    ///
    /// # Errors
    /// As [`iallreduce`](Self::iallreduce).
    pub fn ireduce_scatter<'scope, 'env, T: Plain>(
        &self,
        scope: &'scope Scope<'scope, 'env>,
        data: &'env [T],
        own: &'env mut [T],
        by: impl Reducer<T>,
    ) -> Result<Request<'scope, 'env>> {
        let (operator, size) = (by.operator(), self.size()?);
        let (data, own) = (bytes(data), bytes_mut(own));
        self.begin(scope, reduce_scatter(operator, data, own, size))
    }

    /// Starts a [`gather`](Self::gather).
    ///
    /// # Errors
    /// As [`ibroadcast`](Self::ibroadcast); when lengths are wrong.
    pub fn igather<'scope, 'env, T: Plain>(
        &self,
        scope: &'scope Scope<'scope, 'env>,
        own: &'env [T],
        all: &'env mut [T],
        root: u32,
    ) -> Result<Request<'scope, 'env>> {
        let (own, out) = (bytes(own), Some(bytes_mut(all)));
        let root = root as usize;
        self.begin(scope, Gather { own, out, root })
    }

    /// Starts a [`gather_varying`](Self::gather_varying).
    ///
    /// # Errors
    /// As [`igather`](Self::igather).
    pub fn igather_varying<'scope, 'env, T: Plain>(
        &self,
        scope: &'scope Scope<'scope, 'env>,
        own: &'env [T],
        all: &'env mut [T],
        counts: &[usize],
        root: u32,
    ) -> Result<Request<'scope, 'env>> {
        self.begin(scope, gatherv(own, all, counts, root))
    }

    /// Starts an [`allgather`](Self::allgather).
    ///
    /// # Errors
    /// As [`ibarrier`](Self::ibarrier); when lengths are wrong.
    pub fn iallgather<'scope, 'env, T: Plain>(
        &self,
        scope: &'scope Scope<'scope, 'env>,
        own: &'env [T],
        all: &'env mut [T],
    ) -> Result<Request<'scope, 'env>> {
        let (own, out) = (bytes(own), bytes_mut(all));
        self.begin(scope, Allgather { own, out })
    }

    /// Starts an [`allgather_varying`](Self::allgather_varying).
    ///
    /// # Errors
    /// As [`iallgather`](Self::iallgather).
    pub fn iallgather_varying<'scope, 'env, T: Plain>(
        &self,
        scope: &'scope Scope<'scope, 'env>,
        own: &'env [T],
        all: &'env mut [T],
        counts: &[usize],
    ) -> Result<Request<'scope, 'env>> {
        let lengths = Cow::Owned(lengths::<T>(counts));
        let (own, out) = (bytes(own), bytes_mut(all));
        self.begin(scope, Allgatherv { own, lengths, out })
    }

    /// Starts a [`scatter`](Self::scatter).
    ///
    /// # Errors
    /// As [`igather`](Self::igather).
    pub fn iscatter<'scope, 'env, T: Plain>(
        &self,
        scope: &'scope Scope<'scope, 'env>,
        all: &'env [T],
        own: &'env mut [T],
        root: u32,
    ) -> Result<Request<'scope, 'env>> {
        let (input, own) = (Some(bytes(all)), bytes_mut(own));
        let root = root as usize;
        self.begin(scope, Scatter { input, own, root })
    }

    /// Starts a [`scatter_varying`](Self::scatter_varying).
    ///
    /// # Errors
    /// As [`igather`](Self::igather).
    pub fn iscatter_varying<'scope, 'env, T: Plain>(
        &self,
        scope: &'scope Scope<'scope, 'env>,
        all: &'env [T],
        counts: &[usize],
        own: &'env mut [T],
        root: u32,
    ) -> Result<Request<'scope, 'env>> {
        self.begin(scope, scatterv(all, counts, own, root))
    }

    /// Starts an [`alltoall`](Self::alltoall).
    ///
    /// # Errors
    /// As [`iallgather`](Self::iallgather).
    pub fn ialltoall<'scope, 'env, T: Plain>(
        &self,
        scope: &'scope Scope<'scope, 'env>,
        data: &'env [T],
        from_all: &'env mut [T],
    ) -> Result<Request<'scope, 'env>> {
        let (input, out) = (bytes(data), bytes_mut(from_all));
        self.begin(scope, Alltoall { input, out })
    }

    /// Starts an [`alltoall_varying`](Self::alltoall_varying).
    ///
    /// # Errors
    /// As [`iallgather`](Self::iallgather).
    pub fn ialltoall_varying<'scope, 'env, T: Plain>(
        &self,
        scope: &'scope Scope<'scope, 'env>,
        data: &'env [T],
        to: &[usize],
        from_all: &'env mut [T],
        from: &[usize],
    ) -> Result<Request<'scope, 'env>> {
        self.begin(scope, alltoallv(data, to, from_all, from))
    }
}
