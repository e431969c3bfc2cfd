//! Operations that move data.

use std::borrow::Cow;

use super::CollectiveOperation;
use super::counts::Counts;
use crate::algorithms::Collective;
use crate::board::{self, Head, LineCall};
use crate::call::{Call, check_length, check_root};
use crate::error::{Error, Result};
use crate::team::Team;
use crate::{allgather, alltoall, barrier, broadcast, gather, scatter};

/// [`Team::barrier`].
#[derive(Debug)]
pub struct Barrier;

impl CollectiveOperation for Barrier {
    fn check(&self, _: &Team) -> Result<()> {
        Ok(())
    }

    fn describe(&self, _: &Team) -> String {
        "a barrier".to_owned()
    }

    #[inline]
    fn on_board(&mut self, team: &Team) -> Option<Result<()>> {
        team.on_board(Head::BARRIER, board::barrier)
    }

    fn fits_line(&self, _: &Team) -> bool {
        true
    }

    async fn line_steps(&mut self, line: LineCall<'_>) -> Result<()> {
        line.barrier().await
    }

    async fn steps(&mut self, call: Call<'_>) -> Result<()> {
        barrier::barrier(call).await
    }
}

/// [`Team::broadcast`].
#[derive(Debug)]
pub struct Broadcast<'a> {
    /// What `root` gives and the others get.
    pub data: &'a mut [u8],
    /// Whose data it is.
    pub root: usize,
}

impl CollectiveOperation for Broadcast<'_> {
    fn check(&self, team: &Team) -> Result<()> {
        check_root(team, self.root)
    }

    fn describe(&self, _: &Team) -> String {
        let (bytes, root) = (self.data.len(), self.root);
        format!("a broadcast of {bytes} bytes from rank {root}")
    }

    #[inline]
    fn on_board(&mut self, team: &Team) -> Option<Result<()>> {
        let bytes = self.data.len();
        if !team.takes_board(Collective::Broadcast, bytes, true) {
            return None;
        }
        let head = Head::of(Collective::Broadcast, bytes).at(self.root);
        team.on_board(head, |call| board::broadcast(call, self.data, self.root))
    }

    fn fits_line(&self, team: &Team) -> bool {
        let bytes = self.data.len();
        LineCall::fits(bytes) && team.takes_board(Collective::Broadcast, bytes, true)
    }

    async fn line_steps(&mut self, line: LineCall<'_>) -> Result<()> {
        line.broadcast(self.data, self.root).await
    }

    async fn steps(&mut self, call: Call<'_>) -> Result<()> {
        broadcast::broadcast(call, self.data, self.root)?.await
    }
}

/// [`Team::allgather`].
#[derive(Debug)]
pub struct Allgather<'a> {
    /// What this member gives.
    pub own: &'a [u8],
    /// What all give.
    pub out: &'a mut [u8],
}

impl CollectiveOperation for Allgather<'_> {
    fn check(&self, team: &Team) -> Result<()> {
        let all = self.own.len() * team.size();
        check_length("the buffer of all", self.out.len(), all)
    }

    fn describe(&self, _: &Team) -> String {
        allgather_of(self.own.len())
    }

    #[inline]
    fn on_board(&mut self, team: &Team) -> Option<Result<()>> {
        let bytes = self.own.len();
        if !team.takes_board(Collective::Allgather, self.out.len(), true) {
            return None;
        }
        team.on_board(Head::of(Collective::Allgather, bytes), |call| {
            board::allgather(call, Some(self.own), self.out)
        })
    }

    async fn steps(&mut self, call: Call<'_>) -> Result<()> {
        allgather::allgather(call, self.own, self.out)?.await
    }
}

/// [`Team::allgatherv`].
#[derive(Debug)]
pub struct Allgatherv<'a> {
    /// What this member gives.
    pub own: &'a [u8],
    /// The length of each member's part.
    pub lengths: Cow<'a, [usize]>,
    /// What all give.
    pub out: &'a mut [u8],
}

impl CollectiveOperation for Allgatherv<'_> {
    fn check(&self, team: &Team) -> Result<()> {
        team.check_lengths(&self.lengths, self.out.len())?;
        check_length("the own part", self.own.len(), self.lengths[team.me()])
    }

    fn describe(&self, _: &Team) -> String {
        allgatherv_of(self.out.len())
    }

    fn counts(&self, _: &Team) -> Option<Counts> {
        Some(Counts::to_all(self.own.len(), &self.lengths))
    }

    async fn steps(&mut self, call: Call<'_>) -> Result<()> {
        allgather::allgatherv(call, self.own, &self.lengths, self.out).await
    }
}

/// [`Team::gather`].
#[derive(Debug)]
pub struct Gather<'a> {
    /// What this member gives.
    pub own: &'a [u8],
    /// What all give, for `root` alone.
    pub out: Option<&'a mut [u8]>,
    /// Who gets it.
    pub root: usize,
}

impl CollectiveOperation for Gather<'_> {
    fn check(&self, team: &Team) -> Result<()> {
        check_root(team, self.root)?;
        if team.me() != self.root {
            return Ok(());
        }
        let given = self.out.as_ref().map_or(0, |out| out.len());
        check_length("the buffer of all", given, self.own.len() * team.size())
    }

    fn describe(&self, _: &Team) -> String {
        gather_of(self.own.len(), self.root)
    }

    #[inline]
    fn on_board(&mut self, team: &Team) -> Option<Result<()>> {
        let bytes = self.own.len();
        if !team.takes_board(Collective::Gather, bytes, true) {
            return None;
        }
        let head = Head::of(Collective::Gather, bytes).at(self.root);
        team.on_board(head, |call| {
            board::gather(call, self.own, self.out.as_deref_mut(), self.root)
        })
    }

    async fn steps(&mut self, call: Call<'_>) -> Result<()> {
        gather::gather(call, self.own, self.out.as_deref_mut(), self.root)?.await
    }
}

/// [`Team::gatherv`].
#[derive(Debug)]
pub struct Gatherv<'a> {
    /// What this member gives.
    pub own: &'a [u8],
    /// The length of each member's part, for `root` alone.
    pub lengths: Cow<'a, [usize]>,
    /// What all give, for `root` alone.
    pub out: Option<&'a mut [u8]>,
    /// Who gets it.
    pub root: usize,
}

impl CollectiveOperation for Gatherv<'_> {
    fn check(&self, team: &Team) -> Result<()> {
        check_root(team, self.root)?;
        if team.me() != self.root {
            return Ok(());
        }
        let given = self.out.as_ref().map_or(0, |out| out.len());
        team.check_lengths(&self.lengths, given)?;
        check_length("the own part", self.own.len(), self.lengths[self.root])
    }

    fn describe(&self, _: &Team) -> String {
        gatherv_at(self.root)
    }

    fn counts(&self, team: &Team) -> Option<Counts> {
        Some(Counts::to_root(
            team,
            self.root,
            self.own.len(),
            &self.lengths,
        ))
    }

    async fn steps(&mut self, call: Call<'_>) -> Result<()> {
        gather::gatherv(
            call,
            self.own,
            &self.lengths,
            self.out.as_deref_mut(),
            self.root,
        )
        .await
    }
}

/// [`Team::scatter`].
#[derive(Debug)]
pub struct Scatter<'a> {
    /// What all get, at `root` alone.
    pub input: Option<&'a [u8]>,
    /// What this member gets.
    pub own: &'a mut [u8],
    /// Who gives it.
    pub root: usize,
}

impl CollectiveOperation for Scatter<'_> {
    fn check(&self, team: &Team) -> Result<()> {
        check_root(team, self.root)?;
        if team.me() != self.root {
            return Ok(());
        }
        let given = self.input.map_or(0, <[u8]>::len);
        check_length("the buffer of all", given, self.own.len() * team.size())
    }

    fn describe(&self, _: &Team) -> String {
        scatter_of(self.own.len(), self.root)
    }

    #[inline]
    fn on_board(&mut self, team: &Team) -> Option<Result<()>> {
        let bytes = self.own.len();
        if !team.takes_board(Collective::Scatter, bytes, true) {
            return None;
        }
        let head = Head::of(Collective::Scatter, bytes).at(self.root);
        team.on_board(head, |call| {
            board::scatter(call, self.input, self.own, self.root)
        })
    }

    async fn steps(&mut self, call: Call<'_>) -> Result<()> {
        scatter::scatter(call, self.input, self.own, self.root)?.await
    }
}

/// [`Team::scatterv`].
#[derive(Debug)]
pub struct Scatterv<'a> {
    /// What all get, at `root` alone.
    pub input: Option<&'a [u8]>,
    /// The length of each member's part, at `root` alone.
    pub lengths: Cow<'a, [usize]>,
    /// What this member gets.
    pub own: &'a mut [u8],
    /// Who gives it.
    pub root: usize,
}

impl CollectiveOperation for Scatterv<'_> {
    fn check(&self, team: &Team) -> Result<()> {
        check_root(team, self.root)?;
        if team.me() != self.root {
            return Ok(());
        }
        team.check_lengths(&self.lengths, self.input.map_or(0, <[u8]>::len))?;
        check_length("the own part", self.own.len(), self.lengths[self.root])
    }

    fn describe(&self, _: &Team) -> String {
        scatterv_from(self.root)
    }

    fn counts(&self, team: &Team) -> Option<Counts> {
        Some(Counts::from_root(
            team,
            self.root,
            self.own.len(),
            &self.lengths,
        ))
    }

    async fn steps(&mut self, call: Call<'_>) -> Result<()> {
        scatter::scatterv(call, self.input, &self.lengths, self.own, self.root).await
    }
}

/// [`Team::alltoall`].
#[derive(Debug)]
pub struct Alltoall<'a> {
    /// A block for each member.
    pub input: &'a [u8],
    /// A block of each member.
    pub out: &'a mut [u8],
}

impl CollectiveOperation for Alltoall<'_> {
    fn check(&self, team: &Team) -> Result<()> {
        let given = self.input.len();
        check_length("the buffer of what comes", self.out.len(), given)?;
        check_equal(team, given)
    }

    fn describe(&self, team: &Team) -> String {
        alltoall_of(self.input.len() / team.size())
    }

    #[inline]
    fn on_board(&mut self, team: &Team) -> Option<Result<()>> {
        let bytes = self.input.len() / team.size();
        if !team.takes_board(Collective::Alltoall, bytes, true) {
            return None;
        }
        team.on_board(Head::of(Collective::Alltoall, bytes), |call| {
            board::alltoall(call, Some(self.input), self.out)
        })
    }

    async fn steps(&mut self, call: Call<'_>) -> Result<()> {
        alltoall::alltoall(call, self.input, self.out)?.await
    }
}

/// [`Team::alltoallv`].
#[derive(Debug)]
pub struct Alltoallv<'a> {
    /// A block for each member.
    pub input: &'a [u8],
    /// Their lengths.
    pub to: Cow<'a, [usize]>,
    /// A block of each member.
    pub out: &'a mut [u8],
    /// Their lengths.
    pub from: Cow<'a, [usize]>,
}

impl CollectiveOperation for Alltoallv<'_> {
    fn check(&self, team: &Team) -> Result<()> {
        team.check_lengths(&self.to, self.input.len())?;
        team.check_lengths(&self.from, self.out.len())?;
        let (given, expected) = (self.from[team.me()], self.to[team.me()]);
        check_length("the block for oneself", given, expected)
    }

    fn describe(&self, _: &Team) -> String {
        ALLTOALLV.to_owned()
    }

    fn counts(&self, _: &Team) -> Option<Counts> {
        Some(Counts::exchange(&self.to, &self.from))
    }

    async fn steps(&mut self, call: Call<'_>) -> Result<()> {
        alltoall::alltoallv(call, self.input, &self.to, self.out, &self.from).await
    }
}

/// Checks that `total` bytes are as many equal blocks as there are members.
pub(super) fn check_equal(team: &Team, total: usize) -> Result<()> {
    match total.is_multiple_of(team.size()) {
        true => Ok(()),
        false => Err(Error::Argument(format!(
            "{total} bytes are not {} equal blocks",
            team.size()
        ))),
    }
}

// What the forms of one buffer say too.

pub(super) const ALLTOALLV: &str = "an alltoallv";

pub(super) fn allgather_of(bytes: usize) -> String {
    format!("an allgather of {bytes} bytes of each")
}

pub(super) fn allgatherv_of(total: usize) -> String {
    format!("an allgatherv of {total} bytes")
}

pub(super) fn gather_of(bytes: usize, root: usize) -> String {
    format!("a gather of {bytes} bytes of each at rank {root}")
}

pub(super) fn gatherv_at(root: usize) -> String {
    format!("a gatherv at rank {root}")
}

pub(super) fn scatter_of(bytes: usize, root: usize) -> String {
    format!("a scatter of {bytes} bytes for each from rank {root}")
}

pub(super) fn scatterv_from(root: usize) -> String {
    format!("a scatterv from rank {root}")
}

pub(super) fn alltoall_of(block: usize) -> String {
    format!("an alltoall of blocks of {block} bytes")
}
