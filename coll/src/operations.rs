//! The operations of a group, each a value: its arguments, how they are checked, and the steps of a member.
//!
//! The same value is run in three ways: to its end by [`Team::call`], behind the methods of [`Team`] that have the names of
//! operations; by the rank's progress after [`Team::start`]; again and again after [`Team::init`].

mod blocks;
pub(crate) mod counts;
mod data;
mod neighbours;
mod reductions;
mod root;

use std::borrow::Cow;
use std::future::{Future, ready};

use tagwire_base::Tag;

use crate::board::LineCall;
use crate::call::Call;
use crate::check::Called;
use crate::error::{Error, Result};
use crate::opening::Opening;
use crate::reduction::Reduction;
use crate::team::Team;

pub use blocks::{Blocks, Parts};
pub use counts::Counts;
pub use data::{Allgather, Alltoall, Barrier, Broadcast, Gather, Scatter};
pub use neighbours::{NeighbourAllgather, NeighbourAlltoall};
pub use reductions::{Allreduce, Exscan, Reduce, ReduceScatter, Scan};
pub use root::Root;

/// A collective operation with its arguments.
///
/// A value borrows its buffers, or raw memory whose maker keeps it valid. What else it needs, such as the lengths of parts, it
/// may own, since a nonblocking operation goes on after the call that started it.
pub trait CollectiveOperation: Send {
    /// Checks the arguments: finds what is wrong on this rank alone.
    ///
    /// # Errors
    /// What is wrong. Nothing was sent.
    fn check(&self, team: &Team) -> Result<()>;

    /// Describes the call, for members that compare what they call.
    fn describe(&self, team: &Team) -> String;

    /// Returns the lengths that members compare after they have compared what they call. `None` for operations whose description
    /// says all; those that are described alike have lengths alike or none.
    fn counts(&self, team: &Team) -> Option<Counts> {
        let _ = team;
        None
    }

    /// Does this member's part on the group's board, to its end. `None`, with nothing done, where the operation takes none or the
    /// group has none. The arguments were checked.
    fn on_board(&mut self, team: &Team) -> Option<Result<()>> {
        let _ = team;
        None
    }

    /// Whether its nonblocking form is one round on a board, where the group has one: each member gives a line at most.
    fn fits_line(&self, team: &Team) -> bool {
        let _ = team;
        false
    }

    /// Does this member's part of the nonblocking form on the board. The arguments were checked, and it [fits](Self::fits_line).
    fn line_steps(&mut self, line: LineCall<'_>) -> impl Future<Output = Result<()>> + Send {
        let _ = line;
        ready(Err(Error::Argument(
            "the operation is no round on a board".to_owned(),
        )))
    }

    /// Does this member's part. The arguments were checked. A persistent operation does so again and again. The future is allocated and
    /// moved as a whole for an operation that is started: steps that few calls take are boxed.
    fn steps(&mut self, call: Call<'_>) -> impl Future<Output = Result<()>> + Send;
}

impl Team {
    /// Numbers an operation, in the order of calls. Returns its tag, and what comes before its steps.
    ///
    /// # Errors
    /// When the group is broken, or this thread may not call: then no operation is counted.
    pub(crate) fn open(
        &self,
        operation: &impl CollectiveOperation,
    ) -> Result<(Tag, Option<Opening>)> {
        let tag = Call::begin(self)?.tag();
        let opening = Opening {
            older: self.active().find((self.context(), tag)),
            called: self
                .checks()
                .then(|| Called::new(operation.describe(self), operation.counts(self))),
        };
        Ok((tag, opening.if_any()))
    }

    /// Runs an operation to its end.
    ///
    /// # Errors
    /// What is wrong with the arguments; when a member fails, or members have called it with different lengths. Lengths for which
    /// the table has different algorithms may be waited for without an end: the setting `coll-check` finds them.
    pub fn call<O: CollectiveOperation>(&self, mut operation: O) -> Result<()> {
        operation.check(self)?;
        // An error is long: moved with what says that there is none, it would wait until that is written, behind all lines of others.
        match operation.on_board(self) {
            Some(Ok(())) => return Ok(()),
            Some(Err(error)) => return Err(error),
            None => {}
        }
        let (tag, opening) = self.open(&operation)?;
        let call = Call::new(self, tag);
        if let Some(opening) = opening {
            self.run(opening.run(call))?;
        }
        self.run_as::<O, ()>(operation.steps(call))
    }

    /// Returns once all members have called it (MPI-5.0, section 6.3).
    ///
    /// # Errors
    /// When a member fails.
    pub fn barrier(&self) -> Result<()> {
        self.call(Barrier)
    }

    /// Gives the bytes of `root` to all (MPI-5.0, section 6.4).
    ///
    /// # Errors
    /// When there is no such member, a member fails, or lengths differ.
    pub fn broadcast(&self, data: &mut [u8], root: usize) -> Result<()> {
        let root = root.into();
        self.call(Broadcast { data, root })
    }

    /// Combines the `input` of all; `root` gets the result in `out`, which is for it alone
    /// (MPI-5.0, section 6.9.1).
    ///
    /// # Errors
    /// When there is no such member, the operation is not defined for the type, a member fails, or lengths differ.
    pub fn reduce(
        &self,
        reduction: Reduction<'_>,
        input: &[u8],
        out: Option<&mut [u8]>,
        root: usize,
    ) -> Result<()> {
        self.call(Reduce {
            operator: reduction.into(),
            input: Some(input),
            out,
            root: root.into(),
        })
    }

    /// Combines the data of all; every member gets the result in its place (MPI-5.0, section 6.9.6).
    ///
    /// # Errors
    /// When the operation is not defined for the type, a member fails, or lengths differ.
    pub fn allreduce(&self, reduction: Reduction<'_>, data: &mut [u8]) -> Result<()> {
        self.call(Allreduce {
            input: None,
            operator: reduction.into(),
            data,
        })
    }

    /// Combines the `input` of all, and gives each member the part of its number in `out`; `lengths` are those of the parts
    /// (MPI-5.0, section 6.10).
    ///
    /// # Errors
    /// As [`allreduce`](Self::allreduce).
    pub fn reduce_scatter(
        &self,
        reduction: Reduction<'_>,
        input: &[u8],
        lengths: &[usize],
        out: &mut [u8],
    ) -> Result<()> {
        self.call(ReduceScatter {
            operator: reduction.into(),
            input: Some(input),
            lengths: Cow::Borrowed(lengths),
            out,
        })
    }

    /// Combines the data of all members up to this one (MPI-5.0, section 6.11.1).
    ///
    /// # Errors
    /// As [`allreduce`](Self::allreduce).
    pub fn scan(&self, reduction: Reduction<'_>, data: &mut [u8]) -> Result<()> {
        self.call(Scan {
            operator: reduction.into(),
            data,
        })
    }

    /// Combines the data of all members before this one; that of member 0 stays as it is
    /// (MPI-5.0, section 6.11.2).
    ///
    /// # Errors
    /// As [`allreduce`](Self::allreduce).
    pub fn exscan(&self, reduction: Reduction<'_>, data: &mut [u8]) -> Result<()> {
        self.call(Exscan {
            operator: reduction.into(),
            data,
        })
    }

    /// Gives the `own` bytes of each member to all: in `out`, in the order of members (MPI-5.0, section 6.7).
    ///
    /// # Errors
    /// When a member fails, or lengths differ.
    pub fn allgather(&self, own: &[u8], out: &mut [u8]) -> Result<()> {
        self.call(Allgather {
            own: Some(own),
            parts: Parts::Equal,
            out,
        })
    }

    /// The same with parts of different `lengths`.
    ///
    /// # Errors
    /// As [`allgather`](Self::allgather).
    pub fn allgatherv(&self, own: &[u8], lengths: &[usize], out: &mut [u8]) -> Result<()> {
        self.call(Allgather {
            own: Some(own),
            parts: Parts::Of(Cow::Borrowed(lengths)),
            out,
        })
    }

    /// Gives the `own` bytes of each member to `root`: in `out`, which is for it alone, in the order of members
    /// (MPI-5.0, section 6.5).
    ///
    /// # Errors
    /// When there is no such member, a member fails, or lengths differ.
    pub fn gather(&self, own: &[u8], out: Option<&mut [u8]>, root: usize) -> Result<()> {
        self.call(Gather {
            own: Some(own),
            parts: Parts::Equal,
            out,
            root: root.into(),
        })
    }

    /// The same with parts of different `lengths`, which `root` alone has to know.
    ///
    /// # Errors
    /// As [`gather`](Self::gather).
    pub fn gatherv(
        &self,
        own: &[u8],
        lengths: &[usize],
        out: Option<&mut [u8]>,
        root: usize,
    ) -> Result<()> {
        self.call(Gather {
            own: Some(own),
            parts: Parts::Of(Cow::Borrowed(lengths)),
            out,
            root: root.into(),
        })
    }

    /// Gives each member its part of the `input` of `root`, equal ones in the order of members
    /// (MPI-5.0, section 6.6).
    ///
    /// # Errors
    /// When there is no such member, a member fails, or lengths differ.
    pub fn scatter(&self, input: Option<&[u8]>, own: &mut [u8], root: usize) -> Result<()> {
        self.call(Scatter {
            input,
            parts: Parts::Equal,
            own: Some(own),
            root: root.into(),
        })
    }

    /// The same with parts of different `lengths`, which `root` alone has to know.
    ///
    /// # Errors
    /// As [`scatter`](Self::scatter).
    pub fn scatterv(
        &self,
        input: Option<&[u8]>,
        lengths: &[usize],
        own: &mut [u8],
        root: usize,
    ) -> Result<()> {
        self.call(Scatter {
            input,
            parts: Parts::Of(Cow::Borrowed(lengths)),
            own: Some(own),
            root: root.into(),
        })
    }

    /// Gives every member one of the equal blocks of `input`, and gets one of each in `out` (MPI-5.0, section 6.8).
    ///
    /// # Errors
    /// When a member fails, or lengths differ.
    pub fn alltoall(&self, input: &[u8], out: &mut [u8]) -> Result<()> {
        self.call(Alltoall {
            input: Some(Blocks::Together(input, Parts::Equal)),
            out: Blocks::Together(out, Parts::Equal),
        })
    }

    /// The same with blocks of different lengths: `to` of those that go to each member, `from` of those that come.
    ///
    /// # Errors
    /// As [`alltoall`](Self::alltoall).
    pub fn alltoallv(
        &self,
        input: &[u8],
        to: &[usize],
        out: &mut [u8],
        from: &[usize],
    ) -> Result<()> {
        let (to, from) = (Cow::Borrowed(to), Cow::Borrowed(from));
        self.call(Alltoall {
            input: Some(Blocks::Together(input, Parts::Of(to))),
            out: Blocks::Together(out, Parts::Of(from)),
        })
    }

    /// The same with blocks that lie anywhere: the `input` for each member, and where that of each goes in `out`.
    ///
    /// # Errors
    /// As [`alltoall`](Self::alltoall).
    pub fn alltoallw(&self, input: &[&[u8]], out: &mut [&mut [u8]]) -> Result<()> {
        self.call(Alltoall {
            input: Some(Blocks::Apart(input.to_vec())),
            out: Blocks::Apart(out.iter_mut().map(|block| &mut **block).collect()),
        })
    }
}
