//! Operations that move data.
//!
//! In place (`MPI_IN_PLACE`, MPI-5.0, section 6.2) what a member gives lies where what it gets goes, and has no buffer of its own.
//! Members may mix that with two buffers, where MPI lets them: what crosses between members is the same.
//!
//! In a group of two sides data goes from each to the other (section 6.2.2), and nothing is in place:
//!
//! ```text
//!     broadcast, gather, scatter       among the root and the other side
//!     allgather, alltoall              each member with all of the other side
//! ```

use super::CollectiveOperation;
use super::blocks::{Blocks, Parts};
use super::counts::Counts;
use super::root::{Root, between};
use crate::algorithms::Collective;
use crate::board::{self, Head, LineCall};
use crate::call::{Call, check_length};
use crate::error::{Error, Result};
use crate::team::Team;
use crate::{allgather, alltoall, barrier, broadcast, gather, scatter, scattered};

/// [`Team::barrier`]; in a group of two sides it is one of both.
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
    pub root: Root,
}

impl CollectiveOperation for Broadcast<'_> {
    fn check(&self, team: &Team) -> Result<()> {
        self.root.check(team)
    }

    fn describe(&self, _: &Team) -> String {
        let bytes = self.data.len();
        self.root.describe(Collective::Broadcast, |root| {
            format!("a broadcast of {bytes} bytes from rank {root}")
        })
    }

    #[inline]
    fn on_board(&mut self, team: &Team) -> Option<Result<()>> {
        let (what, bytes) = (Collective::Broadcast, self.data.len());
        let root = self.root.member()?;
        team.by_board(what, bytes, true)?;
        let head = Head::of(what, bytes).at(root);
        team.on_board(head, |call| board::broadcast(call, self.data, root))
    }

    fn fits_line(&self, team: &Team) -> bool {
        let bytes = self.data.len();
        LineCall::fits(bytes) && team.by_board(Collective::Broadcast, bytes, true).is_some()
    }

    async fn line_steps(&mut self, line: LineCall<'_>) -> Result<()> {
        match self.root {
            Root::Member(root) => line.broadcast(self.data, root).await,
            _ => Ok(()),
        }
    }

    async fn steps(&mut self, call: Call<'_>) -> Result<()> {
        let members = self.root.members(call);
        match self.root.among(call, &members) {
            Some((call, root)) => broadcast::broadcast(call, self.data, root)?.await,
            None => Ok(()),
        }
    }
}

/// [`Team::allgather`] and [`Team::allgatherv`].
#[derive(Debug)]
pub struct Allgather<'a> {
    /// What this member gives; `None` where that lies in its block of `out`.
    pub own: Option<&'a [u8]>,
    /// The blocks of `out`.
    pub parts: Parts<'a>,
    /// What all give, or all of the other side.
    pub out: &'a mut [u8],
}

impl CollectiveOperation for Allgather<'_> {
    fn check(&self, team: &Team) -> Result<()> {
        let own = self.own.map(<[u8]>::len);
        match team.sides() {
            None => self.parts.check_with(team, self.out.len(), own),
            Some(_) => {
                check_input(team, own.is_some())?;
                self.parts.check(team, self.out.len())
            }
        }
    }

    fn describe(&self, team: &Team) -> String {
        let total = self.out.len();
        match self.parts {
            _ if team.sides().is_some() => between(Collective::Allgather),
            Parts::Equal => {
                let bytes = total / team.size();
                format!("an allgather of {bytes} bytes of each")
            }
            Parts::Of(_) => format!("an allgatherv of {total} bytes"),
        }
    }

    fn counts(&self, team: &Team) -> Option<Counts> {
        let lengths = self.parts.compared(team)?;
        let own = self.own.map_or_else(|| lengths[team.me()], <[u8]>::len);
        Some(Counts::to_all(own, lengths))
    }

    #[inline]
    fn on_board(&mut self, team: &Team) -> Option<Result<()>> {
        let (total, what) = (self.out.len(), Collective::Allgather);
        let algorithm = self.parts.by_board(team, what, total)?;
        team.on_board(Head::of(what, total / team.size()), |call| {
            call.by_trial(total, algorithm, |call, algorithm| {
                board::allgather(algorithm, call, self.own, self.out)
            })
        })
    }

    async fn steps(&mut self, call: Call<'_>) -> Result<()> {
        if let Some(sides) = call.sides() {
            let own = std::iter::repeat(self.own.unwrap_or_default());
            let lengths = self.parts.lengths(self.out.len(), sides.remote().len());
            let out = scattered::parts_mut(self.out, lengths.iter().copied());
            return scattered::across(call, sides, own, out).await;
        }
        let range = self.parts.range(self.out.len(), call.size(), call.me());
        let copy = self.own.is_none().then(|| call.copy(&self.out[range]));
        let own = self.own.or(copy.as_deref()).unwrap_or_default();
        match &self.parts {
            Parts::Equal => allgather::allgather(call, own, self.out)?,
            Parts::Of(lengths) => Box::pin(allgather::allgatherv(call, own, lengths, self.out)),
        }
        .await
    }
}

/// [`Team::gather`] and [`Team::gatherv`].
#[derive(Debug)]
pub struct Gather<'a> {
    /// What this member gives; `None` at `root` where that lies in its block of `out`.
    pub own: Option<&'a [u8]>,
    /// The blocks of `out`, for `root` alone; elsewhere only of which kind they are.
    pub parts: Parts<'a>,
    /// What all give, or all of the other side, for `root` alone.
    pub out: Option<&'a mut [u8]>,
    /// Who gets it.
    pub root: Root,
}

impl<'a> Gather<'a> {
    /// Returns a gather of one buffer: the room for all at `root`, whose own block is there; elsewhere what a member gives.
    pub fn in_place(team: &Team, data: &'a mut [u8], parts: Parts<'a>, root: usize) -> Self {
        let (own, out) = match team.me() == root {
            true => (None, Some(data)),
            false => (Some(&*data), None),
        };
        let root = Root::Member(root);
        Self {
            own,
            parts,
            out,
            root,
        }
    }

    fn total(&self) -> usize {
        self.out.as_ref().map_or(0, |out| out.len())
    }

    fn block(&self, team: &Team) -> usize {
        let own = self.own.map(<[u8]>::len);
        own.unwrap_or_else(|| self.total() / team.size())
    }
}

impl CollectiveOperation for Gather<'_> {
    fn check(&self, team: &Team) -> Result<()> {
        let own = self.own.map(<[u8]>::len);
        self.root.check_blocks(team, &self.parts, self.total(), own)
    }

    fn describe(&self, team: &Team) -> String {
        let bytes = self.block(team);
        self.root
            .describe(Collective::Gather, |root| match self.parts {
                Parts::Equal => format!("a gather of {bytes} bytes of each at rank {root}"),
                Parts::Of(_) => format!("a gatherv at rank {root}"),
            })
    }

    fn counts(&self, team: &Team) -> Option<Counts> {
        let (lengths, root) = (self.parts.compared(team)?, self.root.member()?);
        let own = self.own.map_or_else(|| lengths[root], <[u8]>::len);
        Some(Counts::to_root(team, root, own, lengths))
    }

    #[inline]
    fn on_board(&mut self, team: &Team) -> Option<Result<()>> {
        let (what, block) = (Collective::Gather, self.block(team));
        let root = self.root.member()?;
        self.parts.by_board(team, what, block)?;
        let head = Head::of(what, block).at(root);
        team.on_board(head, |call| match self.out.as_deref_mut() {
            Some(out) if call.me() == root => board::gather(call, self.own, out),
            _ => board::give(call, self.own.unwrap_or_default()),
        })
    }

    async fn steps(&mut self, call: Call<'_>) -> Result<()> {
        let (total, members) = (self.total(), self.root.members(call));
        let Some((call, root)) = self.root.among(call, &members) else {
            return Ok(());
        };
        let (me, size) = (call.me(), call.size());
        let parts = self.root.parts(&self.parts, total, size);
        let out = self.out.as_deref_mut();
        let copy = match (self.own, &out) {
            (None, Some(out)) if me == root => Some(call.copy(&out[parts.range(total, size, me)])),
            _ => None,
        };
        let own = match self.root {
            Root::Here => &[],
            _ => self.own.or(copy.as_deref()).unwrap_or_default(),
        };
        match &parts {
            Parts::Equal => gather::gather(call, own, out, root)?.await,
            Parts::Of(lengths) => gather::gatherv(call, own, lengths, out, root).await,
        }
    }
}

/// [`Team::scatter`] and [`Team::scatterv`].
#[derive(Debug)]
pub struct Scatter<'a> {
    /// What all get, or all of the other side, at `root` alone.
    pub input: Option<&'a [u8]>,
    /// The blocks of `input`, at `root` alone; elsewhere only of which kind they are.
    pub parts: Parts<'a>,
    /// What this member gets; `None` at `root` where that stays in its block of `input`.
    pub own: Option<&'a mut [u8]>,
    /// Who gives it.
    pub root: Root,
}

impl<'a> Scatter<'a> {
    /// Returns a scatter of one buffer: at `root` what all get, whose own block stays there; elsewhere the room for what a member
    /// gets.
    pub fn in_place(team: &Team, data: &'a mut [u8], parts: Parts<'a>, root: usize) -> Self {
        let (input, own) = match team.me() == root {
            true => (Some(&*data), None),
            false => (None, Some(data)),
        };
        let root = Root::Member(root);
        Self {
            input,
            parts,
            own,
            root,
        }
    }

    fn total(&self) -> usize {
        self.input.map_or(0, <[u8]>::len)
    }

    fn block(&self, team: &Team) -> usize {
        let own = self.own.as_ref().map(|own| own.len());
        own.unwrap_or_else(|| self.total() / team.size())
    }
}

impl CollectiveOperation for Scatter<'_> {
    fn check(&self, team: &Team) -> Result<()> {
        let own = self.own.as_ref().map(|own| own.len());
        self.root.check_blocks(team, &self.parts, self.total(), own)
    }

    fn describe(&self, team: &Team) -> String {
        let bytes = self.block(team);
        self.root
            .describe(Collective::Scatter, |root| match self.parts {
                Parts::Equal => format!("a scatter of {bytes} bytes for each from rank {root}"),
                Parts::Of(_) => format!("a scatterv from rank {root}"),
            })
    }

    fn counts(&self, team: &Team) -> Option<Counts> {
        let (lengths, root) = (self.parts.compared(team)?, self.root.member()?);
        let own = self
            .own
            .as_ref()
            .map_or_else(|| lengths[root], |own| own.len());
        Some(Counts::from_root(team, root, own, lengths))
    }

    #[inline]
    fn on_board(&mut self, team: &Team) -> Option<Result<()>> {
        let (what, block) = (Collective::Scatter, self.block(team));
        let root = self.root.member()?;
        self.parts.by_board(team, what, block)?;
        let (head, own) = (Head::of(what, block).at(root), self.own.as_deref_mut());
        team.on_board(head, |call| match self.input {
            Some(input) if call.me() == root => board::scatter(call, input, own),
            _ => board::take(call, own.unwrap_or_default(), root),
        })
    }

    async fn steps(&mut self, call: Call<'_>) -> Result<()> {
        let (total, members) = (self.total(), self.root.members(call));
        let Some((call, root)) = self.root.among(call, &members) else {
            return Ok(());
        };
        let (me, size) = (call.me(), call.size());
        let parts = self.root.parts(&self.parts, total, size);
        // The algorithms hand the root's own block out too. In place it is there already, and between groups it is empty.
        let mut other;
        let own = match (self.root, self.own.as_deref_mut()) {
            (Root::Member(_), None) => {
                other = call.scratch(parts.range(total, size, me).len());
                &mut *other
            }
            (Root::Here, _) => &mut [],
            (_, own) => own.unwrap_or_default(),
        };
        match &parts {
            Parts::Equal => scatter::scatter(call, self.input, own, root)?.await,
            Parts::Of(lengths) => scatter::scatterv(call, self.input, lengths, own, root).await,
        }
    }
}

/// [`Team::alltoall`], [`Team::alltoallv`] and [`Team::alltoallw`].
#[derive(Debug)]
pub struct Alltoall<'a> {
    /// A block for each member, or each of the other side; `None` where those lie in `out`, and two members give each other as much.
    pub input: Option<Blocks<'a, &'a [u8]>>,
    /// A block of each.
    pub out: Blocks<'a, &'a mut [u8]>,
}

impl Alltoall<'_> {
    /// Returns the length of a block where all are equal.
    #[inline]
    fn block(&self, team: &Team) -> Option<usize> {
        let total = self.out.equal()?;
        let given = self.input.as_ref().map_or(Some(total), Blocks::equal);
        given.map(|_| total / team.size())
    }
}

impl CollectiveOperation for Alltoall<'_> {
    fn check(&self, team: &Team) -> Result<()> {
        let Some(input) = &self.input else {
            check_input(team, false)?;
            return self.out.check(team, "ranks to receive from");
        };
        let is_one = team.sides().is_none();
        if let (true, Some(given), Some(coming)) = (is_one, input.equal(), self.out.equal()) {
            check_length("the buffer of what comes", coming, given)?;
        }
        input.check(team, "ranks to send to")?;
        self.out.check(team, "ranks to receive from")?;
        if is_one && self.block(team).is_none() {
            let (me, size) = (team.me(), team.size());
            let (to, from) = (input.lengths(size)[me], self.out.lengths(size)[me]);
            check_length("the block for oneself", from, to)?;
        }
        Ok(())
    }

    fn describe(&self, team: &Team) -> String {
        match (self.block(team), &self.input, &self.out) {
            _ if team.sides().is_some() => between(Collective::Alltoall),
            (Some(block), ..) => format!("an alltoall of blocks of {block} bytes"),
            (_, Some(Blocks::Apart(_)), _) | (.., Blocks::Apart(_)) => "an alltoallw".to_owned(),
            _ => "an alltoallv".to_owned(),
        }
    }

    fn counts(&self, team: &Team) -> Option<Counts> {
        if team.sides().is_some() || self.block(team).is_some() {
            return None;
        }
        let from = self.out.lengths(team.size());
        let input = self.input.as_ref();
        let to = input.map_or_else(|| from.clone(), |input| input.lengths(team.size()));
        Some(Counts::exchange(&to, &from))
    }

    #[inline]
    fn on_board(&mut self, team: &Team) -> Option<Result<()>> {
        let (what, block) = (Collective::Alltoall, self.block(team)?);
        let algorithm = team.by_board(what, block, true)?;
        let Blocks::Together(out, _) = &mut self.out else {
            return None;
        };
        let input = match &self.input {
            Some(Blocks::Together(input, _)) => Some(*input),
            _ => None,
        };
        team.on_board(Head::of(what, block), |call| {
            call.by_trial(block, algorithm, |call, algorithm| {
                board::alltoall(algorithm, call, input, out)
            })
        })
    }

    async fn steps(&mut self, call: Call<'_>) -> Result<()> {
        let (copy, read);
        let input = match &self.input {
            Some(input) => input,
            None => {
                copy = self.out.each(|block| call.copy(block));
                read = copy.each(|block| &**block);
                &read
            }
        };
        if let Some(sides) = call.sides() {
            let count = sides.remote().len();
            let (input, out) = (input.cut(count), self.out.cut_mut(count));
            return scattered::across(call, sides, input.into_iter(), out.into_iter()).await;
        }
        match (input, &mut self.out) {
            (Blocks::Together(input, Parts::Equal), Blocks::Together(out, Parts::Equal)) => {
                alltoall::alltoall(call, input, out)?.await
            }
            (Blocks::Together(given, to), Blocks::Together(out, from)) => {
                let to = to.lengths(given.len(), call.size());
                let from = from.lengths(out.len(), call.size());
                Box::pin(alltoall::alltoallv(call, given, &to, out, &from)).await
            }
            (input, out) => {
                let (input, out) = (input.cut(call.size()), out.cut_mut(call.size()));
                scattered::alltoall(call, &input, out.into_iter()).await
            }
        }
    }
}

/// Checks that members of a group of two sides give data of their own.
pub(super) fn check_input(team: &Team, has_input: bool) -> Result<()> {
    match has_input || team.sides().is_none() {
        true => Ok(()),
        false => Err(Error::Argument(
            "between two groups no data is in place".to_owned(),
        )),
    }
}
