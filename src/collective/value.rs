//! Collectives as values, and what starts them.
#![allow(unsafe_code)]

use std::sync::Arc;

use tagwire_base::unwind::NoUnwind;
use tagwire_coll::Team;

use super::buffers::{Readable, Writable};
use crate::context::Context;
use crate::error::Result;
use crate::scope::{Operation, Request, Scope};

/// A collective with its arguments: an operation `O`, such as [`Allreduce`](crate::Allreduce), on buffers `B`. The same value is
/// done in three ways:
///
/// - [`Context::run`] returns once it is complete, as the methods with the names of operations do.
/// - [`Scope::start`] returns at once. The buffers stay lent for the scope (MPI-5.0, section 6.12).
/// - [`Context::init`] takes vectors in place of slices, and makes a
///   [`PersistentCollective`](crate::PersistentCollective) (MPI-5.0, section 6.13).
///
/// A [`Neighbourhood`](crate::Neighbourhood) takes those of its own in the same ways. Arguments are checked there, not where the
/// value is made.
///
/// ```
/// use tagwire::{Allgather, Allreduce, Session, Sum};
///
/// let session = Session::open()?;
/// let world = session.world();
/// let (mut total, mut ranks) = ([1.0], vec![0; session.size() as usize]);
/// let own = [session.rank()];
/// session.try_scope(|scope| {
///     let sum = scope.start(&world, Allreduce::in_place(&mut total, Sum))?;
///     let all = scope.start(&world, Allgather::new(&own, &mut ranks))?;
///     // ... computes something else ...
///     scope.wait_all([all, sum])?;
///     Ok(())
/// })?;
/// assert_eq!(total, [f64::from(session.size())]);
/// assert!(ranks.iter().copied().eq(0..session.size()));
/// # session.close()?;
/// # Ok::<(), tagwire::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "nothing is done before it is run, started or made persistent"]
pub struct Collective<O, B> {
    pub(super) operation: O,
    pub(super) buffers: B,
}

impl<O, B> Collective<O, B> {
    /// Returns `operation` on what is read and what is written.
    pub(super) fn on<D: Writable<Buffers = B>>(
        operation: O,
        input: impl Readable<Lent = D::Input>,
        out: D,
    ) -> Self {
        let buffers = out.beside(Some(input.lent()));
        Self { operation, buffers }
    }

    /// Returns `operation` on one buffer.
    pub(super) fn within(operation: O, data: impl Writable<Buffers = B>) -> Self {
        let buffers = data.beside(None);
        Self { operation, buffers }
    }
}

/// An operation that the ranks of a `G` can do on buffers `B`, which are lent for `'a`: one of those here, no other implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` on `{B}` is no collective that a `{G}` can do so",
    note = "`run` and `start` take slices, `init` takes vectors; a neighbourhood has `Allgather` and `Alltoall` of two buffers"
)]
pub trait CollectiveOperation<'a, G: Group, B>: Below<'a, G::Members, B> {}

impl<'a, G: Group, B, O: Below<'a, G::Members, B>> CollectiveOperation<'a, G, B> for O {}

/// Ranks that do collectives together: those of a [`Context`], or a rank with the others of its
/// [`Neighbourhood`](crate::Neighbourhood). No other implements it.
pub trait Group: sealed::Group {}

impl<G: sealed::Group> Group for G {}

mod sealed {
    use super::{Arc, Context, Team};

    pub trait Group {
        /// What an operation has to know of the ranks.
        type Members;

        fn context(&self) -> &Context<'_>;

        fn members<'m>(&'m self, team: &'m Arc<Team>) -> &'m Arc<Self::Members>;
    }

    pub trait Below<'a, M, B>: Clone + Send + Sync + 'static {
        type Operation: tagwire_coll::operations::CollectiveOperation + 'a;

        /// Returns the operation of the layer below.
        fn below(self, members: &M, buffers: B) -> Self::Operation;
    }
}

pub(crate) use sealed::{Below, Group as Members};

impl Members for Context<'_> {
    type Members = Team;

    fn context(&self) -> &Context<'_> {
        self
    }

    fn members<'m>(&'m self, team: &'m Arc<Team>) -> &'m Arc<Team> {
        team
    }
}

impl<'scope, 'env> Scope<'scope, 'env> {
    /// Starts a [`Collective`], whose buffers stay lent for the scope (MPI-5.0, sections 6.12 and 8.7). Every rank of the context
    /// calls its collectives in the same order, blocking or not, each by one thread at a time; several may be under way, and end
    /// in any order. Whatever this rank waits for makes progress for them. The requests are waited for like those of messages,
    /// also together with them; their status is empty.
    ///
    /// A buffer can be neither freed nor looked at before the end of the scope:
    ///
    /// ```compile_fail,E0502
    /// # use tagwire::{Allreduce, Session, Sum};
    /// # let session = Session::open()?;
    /// let mut sum = [1.0];
    /// session.try_scope(|scope| {
    ///     let request = scope.start(&session.world(), Allreduce::in_place(&mut sum, Sum))?;
    ///     println!("{}", sum[0]); // error: it is lent
    ///     request.wait().map(drop)
    /// })?;
    /// # Ok::<(), tagwire::Error>(())
    /// ```
    ///
    /// ```compile_fail,E0597
    /// # use tagwire::{Broadcast, Session};
    /// # let session = Session::open()?;
    /// session.try_scope(|scope| {
    ///     let mut data = [0; 4];
    ///     scope.start(&session.world(), Broadcast::new(&mut data, 0))?; // error: `data` ends before the scope
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tagwire::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there is no such rank, an operation is not defined for the numbers, lengths are wrong on this rank, or a collective
    /// of the context has failed. [`Error::OtherSession`](crate::Error::OtherSession) when the scope is not of the context's
    /// session.
    pub fn start<G: Group, O, B>(
        &'scope self,
        group: &G,
        collective: Collective<O, B>,
    ) -> Result<Request<'scope, 'env>>
    where
        O: CollectiveOperation<'env, G, B>,
    {
        let context = group.context();
        context.check_scope(self)?;
        let team = context.shared().group(context.group())?;
        let Collective { operation, buffers } = collective;
        let operation = operation.below(group.members(&team), buffers);
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
