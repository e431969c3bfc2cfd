//! The operations of a group.

use crate::algorithms::Collective;
use crate::board::{self, Kind};
use crate::call::{Call, check_length, check_root};
use crate::check::agree;
use crate::error::{Error, Result};
use crate::reduction::Reduction;
use crate::team::Team;
use crate::{allgather, allreduce, alltoall, barrier, broadcast, gather, reduce};
use crate::{reduce_scatter, scan, scatter};

impl Team {
    /// Begins an operation, once all members have called the same where that is asked for.
    fn enter(&self, what: impl FnOnce() -> String) -> Result<Call<'_>> {
        let call = Call::begin(self)?;
        if self.checks() {
            self.run(agree(call, &what()))?;
        }
        Ok(call)
    }

    /// Returns once all members have called it (MPI-5.0, section 6.3).
    ///
    /// # Errors
    /// When a member fails.
    pub fn barrier(&self) -> Result<()> {
        if let Some(done) = self.on_board(Kind::Barrier, 0, board::barrier) {
            return done;
        }
        let call = self.enter(|| "a barrier".to_owned())?;
        self.run(barrier::barrier(call))
    }

    /// Gives the bytes of `root` to all (MPI-5.0, section 6.4).
    ///
    /// # Errors
    /// When there is no such member, a member fails, or lengths differ.
    pub fn broadcast(&self, data: &mut [u8], root: usize) -> Result<()> {
        check_root(self, root)?;
        let (kind, bytes) = (Kind::Broadcast, data.len());
        let by_board = self.on_board(kind, bytes, |call| board::broadcast(call, data, root));
        if let Some(done) = by_board {
            return done;
        }
        let algorithm = self.choose(Collective::Broadcast, data.len(), true);
        let call =
            self.enter(|| format!("a broadcast of {} bytes from rank {root}", data.len()))?;
        self.run(broadcast::broadcast(call, algorithm, data, root))
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
        mut out: Option<&mut [u8]>,
        root: usize,
    ) -> Result<()> {
        check_root(self, root)?;
        reduction.check(input.len())?;
        if let Some(out) = &out {
            check_length("the buffer of the result", out.len(), input.len())?;
        } else if self.me() == root {
            return Err(Error::Argument(
                "the root of a reduction needs room for the result".to_owned(),
            ));
        }
        if reduction.layout.extent() <= board::LARGEST_UNIT {
            let mut out = out.as_deref_mut();
            let by_board = self.on_board(Kind::Reduce, input.len(), |call| {
                board::reduce(call, reduction, input, out.take(), root)
            });
            if let Some(done) = by_board {
                return done;
            }
        }
        let may_reorder = self.may_reorder(&reduction);
        let algorithm = self.choose(Collective::Reduce, input.len(), may_reorder);
        let call = self.enter(|| {
            format!(
                "a reduction of {} bytes by {} to rank {root}",
                input.len(),
                reduction.operation.name()
            )
        })?;
        self.run(reduce::reduce(call, algorithm, reduction, input, out, root))
    }

    /// Combines the data of all; every member gets the result in its place (MPI-5.0, section 6.9.6).
    ///
    /// # Errors
    /// When the operation is not defined for the type, a member fails, or lengths differ.
    pub fn allreduce(&self, reduction: Reduction<'_>, data: &mut [u8]) -> Result<()> {
        reduction.check(data.len())?;
        if reduction.layout.extent() <= board::LARGEST_UNIT {
            let bytes = data.len();
            let by_board = self.on_board(Kind::Allreduce, bytes, |call| {
                board::allreduce(call, reduction, data)
            });
            if let Some(done) = by_board {
                return done;
            }
        }
        let may_reorder = self.may_reorder(&reduction);
        let algorithm = self.choose(Collective::Allreduce, data.len(), may_reorder);
        let call = self.enter(|| {
            format!(
                "an allreduce of {} bytes by {}",
                data.len(),
                reduction.operation.name()
            )
        })?;
        self.run(allreduce::allreduce(call, algorithm, reduction, data))
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
        self.check_lengths(lengths, input.len())?;
        lengths
            .iter()
            .try_for_each(|length| reduction.check(*length))?;
        check_length("the buffer of the result", out.len(), lengths[self.me()])?;
        let may_reorder = self.may_reorder(&reduction);
        let algorithm = self.choose(Collective::ReduceScatter, input.len(), may_reorder);
        let call = self.enter(|| {
            format!(
                "a reduce-scatter of {} bytes by {}",
                input.len(),
                reduction.operation.name()
            )
        })?;
        self.run(reduce_scatter::reduce_scatter(
            call, algorithm, reduction, input, lengths, out,
        ))
    }

    /// Combines the data of all members up to this one (MPI-5.0, section 6.11.1).
    ///
    /// # Errors
    /// As [`allreduce`](Self::allreduce).
    pub fn scan(&self, reduction: Reduction<'_>, data: &mut [u8]) -> Result<()> {
        reduction.check(data.len())?;
        let call = self.enter(|| {
            format!(
                "a scan of {} bytes by {}",
                data.len(),
                reduction.operation.name()
            )
        })?;
        self.run(scan::scan(call, reduction, data))
    }

    /// Combines the data of all members before this one; that of member 0 stays as it is
    /// (MPI-5.0, section 6.11.2).
    ///
    /// # Errors
    /// As [`allreduce`](Self::allreduce).
    pub fn exscan(&self, reduction: Reduction<'_>, data: &mut [u8]) -> Result<()> {
        reduction.check(data.len())?;
        let call = self.enter(|| {
            format!(
                "an exscan of {} bytes by {}",
                data.len(),
                reduction.operation.name()
            )
        })?;
        self.run(scan::exscan(call, reduction, data))
    }

    /// Gives the `own` bytes of each member to all: in `out`, in the order of members (MPI-5.0, section 6.7).
    ///
    /// # Errors
    /// When a member fails, or lengths differ.
    pub fn allgather(&self, own: &[u8], out: &mut [u8]) -> Result<()> {
        check_length("the buffer of all", out.len(), own.len() * self.size())?;
        let by_board = self.on_board(Kind::Allgather, own.len(), |call| {
            board::allgather(call, own, out)
        });
        if let Some(done) = by_board {
            return done;
        }
        let algorithm = self.choose(Collective::Allgather, out.len(), true);
        let call = self.enter(|| format!("an allgather of {} bytes of each", own.len()))?;
        self.run(allgather::allgather(call, algorithm, own, out))
    }

    /// The same with parts of different `lengths`.
    ///
    /// # Errors
    /// As [`allgather`](Self::allgather).
    pub fn allgatherv(&self, own: &[u8], lengths: &[usize], out: &mut [u8]) -> Result<()> {
        self.check_lengths(lengths, out.len())?;
        check_length("the own part", own.len(), lengths[self.me()])?;
        let call = self.enter(|| format!("an allgatherv of {} bytes", out.len()))?;
        self.run(allgather::allgatherv(call, own, lengths, out))
    }

    /// Gives the `own` bytes of each member to `root`: in `out`, which is for it alone, in the order of members
    /// (MPI-5.0, section 6.5).
    ///
    /// # Errors
    /// When there is no such member, a member fails, or lengths differ.
    pub fn gather(&self, own: &[u8], mut out: Option<&mut [u8]>, root: usize) -> Result<()> {
        check_root(self, root)?;
        if self.me() == root {
            let given = out.as_ref().map_or(0, |out| out.len());
            check_length("the buffer of all", given, own.len() * self.size())?;
        }
        let by_board = self.on_board(Kind::Gather, own.len(), |call| {
            board::gather(call, own, out.as_deref_mut(), root)
        });
        if let Some(done) = by_board {
            return done;
        }
        let algorithm = self.choose(Collective::Gather, own.len(), true);
        let call =
            self.enter(|| format!("a gather of {} bytes of each at rank {root}", own.len()))?;
        self.run(gather::gather(call, algorithm, own, out, root))
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
        check_root(self, root)?;
        if self.me() == root {
            self.check_lengths(lengths, out.as_ref().map_or(0, |out| out.len()))?;
            check_length("the own part", own.len(), lengths[root])?;
        }
        let call = self.enter(|| format!("a gatherv at rank {root}"))?;
        self.run(gather::gatherv(call, own, lengths, out, root))
    }

    /// Gives each member its part of the `input` of `root`, equal ones in the order of members
    /// (MPI-5.0, section 6.6).
    ///
    /// # Errors
    /// When there is no such member, a member fails, or lengths differ.
    pub fn scatter(&self, input: Option<&[u8]>, own: &mut [u8], root: usize) -> Result<()> {
        check_root(self, root)?;
        if self.me() == root {
            let given = input.map_or(0, <[u8]>::len);
            check_length("the buffer of all", given, own.len() * self.size())?;
        }
        let by_board = self.on_board(Kind::Scatter, own.len(), |call| {
            board::scatter(call, input, own, root)
        });
        if let Some(done) = by_board {
            return done;
        }
        let algorithm = self.choose(Collective::Scatter, own.len(), true);
        let call =
            self.enter(|| format!("a scatter of {} bytes for each from rank {root}", own.len()))?;
        self.run(scatter::scatter(call, algorithm, input, own, root))
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
        check_root(self, root)?;
        if self.me() == root {
            self.check_lengths(lengths, input.map_or(0, <[u8]>::len))?;
            check_length("the own part", own.len(), lengths[root])?;
        }
        let call = self.enter(|| format!("a scatterv from rank {root}"))?;
        self.run(scatter::scatterv(call, input, lengths, own, root))
    }

    /// Gives every member one of the equal blocks of `input`, and gets one of each in `out` (MPI-5.0, section 6.8).
    ///
    /// # Errors
    /// When a member fails, or lengths differ.
    pub fn alltoall(&self, input: &[u8], out: &mut [u8]) -> Result<()> {
        check_length("the buffer of what comes", out.len(), input.len())?;
        if !input.len().is_multiple_of(self.size()) {
            return Err(Error::Argument(format!(
                "{} bytes are not {} equal blocks",
                input.len(),
                self.size()
            )));
        }
        let block = input.len() / self.size();
        let by_board = self.on_board(Kind::Alltoall, block, |call| {
            board::alltoall(call, input, out)
        });
        if let Some(done) = by_board {
            return done;
        }
        let algorithm = self.choose(Collective::Alltoall, block, true);
        let call = self.enter(|| format!("an alltoall of blocks of {block} bytes"))?;
        self.run(alltoall::alltoall(call, algorithm, input, out))
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
        self.check_lengths(to, input.len())?;
        self.check_lengths(from, out.len())?;
        check_length("the block for oneself", from[self.me()], to[self.me()])?;
        let call = self.enter(|| "an alltoallv".to_owned())?;
        self.run(alltoall::alltoallv(call, input, to, out, from))
    }

    fn check_lengths(&self, lengths: &[usize], total: usize) -> Result<()> {
        if lengths.len() != self.size() {
            return Err(Error::Argument(format!(
                "{} lengths were given for a group of {}",
                lengths.len(),
                self.size()
            )));
        }
        let sum = lengths
            .iter()
            .try_fold(0usize, |sum, length| sum.checked_add(*length));
        check_length("the buffer", total, sum.unwrap_or(usize::MAX))
    }
}
