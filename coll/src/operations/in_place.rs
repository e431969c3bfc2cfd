//! Operations that move data within one buffer (`MPI_IN_PLACE`, MPI-5.0, section 6.2): what a member gives lies where what it
//! gets goes.
//!
//! Members may mix these with the forms of two buffers, where MPI lets them: what crosses between members is the same.

use std::borrow::Cow;
use std::ops::Range;

use super::counts::Counts;
use super::{CollectiveOperation, data};
use crate::algorithms::Collective;
use crate::board::{self, Head};
use crate::call::{Call, check_root};
use crate::error::Result;
use crate::team::Team;
use crate::{allgather, alltoall, gather, scatter};

/// The blocks of one buffer, one for each member.
#[derive(Debug, Clone)]
pub enum Parts<'a> {
    /// All have the same length.
    Equal,
    /// These are their lengths.
    Of(Cow<'a, [usize]>),
}

impl Parts<'_> {
    fn check(&self, team: &Team, total: usize) -> Result<()> {
        match self {
            Self::Equal => data::check_equal(team, total),
            Self::Of(lengths) => team.check_lengths(lengths, total),
        }
    }

    /// The same where they are those of `root` alone.
    fn check_at(&self, team: &Team, total: usize, root: usize) -> Result<()> {
        check_root(team, root)?;
        match team.me() == root {
            true => self.check(team, total),
            false => Ok(()),
        }
    }

    /// Whether the table gives a board to the operation on equal blocks. Blocks of varying lengths go by messages.
    #[inline]
    fn take_board(&self, team: &Team, what: Collective, bytes: usize) -> bool {
        matches!(self, Self::Equal) && team.takes_board(what, bytes, true)
    }

    /// Returns where the block of a member lies in the buffer of `total` bytes of `size` members.
    fn range(&self, total: usize, size: usize, member: usize) -> Range<usize> {
        match self {
            Self::Equal => {
                let block = total / size;
                member * block..(member + 1) * block
            }
            Self::Of(lengths) => Call::range(lengths, member),
        }
    }
}

/// [`Team::allgather`] and [`Team::allgatherv`] of one buffer: each member gives its own block of it.
#[derive(Debug)]
pub struct AllgatherInPlace<'a> {
    /// What all give; of what is there before, this member's block counts.
    pub data: &'a mut [u8],
    /// Its blocks.
    pub parts: Parts<'a>,
}

impl CollectiveOperation for AllgatherInPlace<'_> {
    fn check(&self, team: &Team) -> Result<()> {
        self.parts.check(team, self.data.len())
    }

    fn describe(&self, team: &Team) -> String {
        let total = self.data.len();
        match self.parts {
            Parts::Equal => data::allgather_of(total / team.size()),
            Parts::Of(_) => data::allgatherv_of(total),
        }
    }

    fn counts(&self, team: &Team) -> Option<Counts> {
        match &self.parts {
            Parts::Equal => None,
            Parts::Of(lengths) => Some(Counts::to_all(lengths[team.me()], lengths)),
        }
    }

    #[inline]
    fn on_board(&mut self, team: &Team) -> Option<Result<()>> {
        let (total, what) = (self.data.len(), Collective::Allgather);
        if !self.parts.take_board(team, what, total) {
            return None;
        }
        let block = total / team.size();
        team.on_board(Head::of(what, block), |call| {
            board::allgather(call, None, self.data)
        })
    }

    async fn steps(&mut self, call: Call<'_>) -> Result<()> {
        let range = self.parts.range(self.data.len(), call.size(), call.me());
        let own = call.copy(&self.data[range]);
        match &self.parts {
            Parts::Equal => allgather::allgather(call, &own, self.data)?.await,
            Parts::Of(lengths) => allgather::allgatherv(call, &own, lengths, self.data).await,
        }
    }
}

/// [`Team::gather`] and [`Team::gatherv`] of one buffer of the root.
#[derive(Debug)]
pub struct GatherInPlace<'a> {
    /// At `root` the room for all, in which its own block is there; elsewhere what this member gives.
    pub data: &'a mut [u8],
    /// The blocks, for `root` alone; elsewhere only of which kind they are.
    pub parts: Parts<'a>,
    /// Who gets them.
    pub root: usize,
}

impl CollectiveOperation for GatherInPlace<'_> {
    fn check(&self, team: &Team) -> Result<()> {
        self.parts.check_at(team, self.data.len(), self.root)
    }

    fn describe(&self, team: &Team) -> String {
        match self.parts {
            Parts::Equal => data::gather_of(self.block(team), self.root),
            Parts::Of(_) => data::gatherv_at(self.root),
        }
    }

    fn counts(&self, team: &Team) -> Option<Counts> {
        let (me, root) = (team.me(), self.root);
        match &self.parts {
            Parts::Equal => None,
            Parts::Of(lengths) if me == root => {
                Some(Counts::to_root(team, root, lengths[me], lengths))
            }
            Parts::Of(_) => Some(Counts::to_root(team, root, self.data.len(), &[])),
        }
    }

    #[inline]
    fn on_board(&mut self, team: &Team) -> Option<Result<()>> {
        let (what, block, root) = (Collective::Gather, self.block(team), self.root);
        if !self.parts.take_board(team, what, block) {
            return None;
        }
        let is_root = team.me() == root;
        team.on_board(Head::of(what, block).at(root), |call| match is_root {
            true => board::gather_at_root(call, None, self.data),
            false => board::give(call, self.data),
        })
    }

    async fn steps(&mut self, call: Call<'_>) -> Result<()> {
        let (me, size, root) = (call.me(), call.size(), self.root);
        let copy = (me == root).then(|| {
            let range = self.parts.range(self.data.len(), size, me);
            call.copy(&self.data[range])
        });
        let (own, out) = match &copy {
            Some(own) => (&**own, Some(&mut *self.data)),
            None => (&*self.data, None),
        };
        match &self.parts {
            Parts::Equal => gather::gather(call, own, out, root)?.await,
            Parts::Of(lengths) => gather::gatherv(call, own, lengths, out, root).await,
        }
    }
}

impl GatherInPlace<'_> {
    fn block(&self, team: &Team) -> usize {
        block_of(team, self.data, self.root)
    }
}

/// [`Team::scatter`] and [`Team::scatterv`] of one buffer of the root, which keeps its own block there.
#[derive(Debug)]
pub struct ScatterInPlace<'a> {
    /// At `root` what all get; elsewhere the room for what this member gets.
    pub data: &'a mut [u8],
    /// The blocks, for `root` alone; elsewhere only of which kind they are.
    pub parts: Parts<'a>,
    /// Who gives them.
    pub root: usize,
}

impl CollectiveOperation for ScatterInPlace<'_> {
    fn check(&self, team: &Team) -> Result<()> {
        self.parts.check_at(team, self.data.len(), self.root)
    }

    fn describe(&self, team: &Team) -> String {
        match self.parts {
            Parts::Equal => data::scatter_of(self.block(team), self.root),
            Parts::Of(_) => data::scatterv_from(self.root),
        }
    }

    fn counts(&self, team: &Team) -> Option<Counts> {
        let (me, root) = (team.me(), self.root);
        match &self.parts {
            Parts::Equal => None,
            Parts::Of(lengths) if me == root => {
                Some(Counts::from_root(team, root, lengths[me], lengths))
            }
            Parts::Of(_) => Some(Counts::from_root(team, root, self.data.len(), &[])),
        }
    }

    #[inline]
    fn on_board(&mut self, team: &Team) -> Option<Result<()>> {
        let (what, block, root) = (Collective::Scatter, self.block(team), self.root);
        if !self.parts.take_board(team, what, block) {
            return None;
        }
        let is_root = team.me() == root;
        team.on_board(Head::of(what, block).at(root), |call| match is_root {
            true => board::scatter_from_root(call, self.data, None),
            false => board::take(call, self.data, root),
        })
    }

    async fn steps(&mut self, call: Call<'_>) -> Result<()> {
        let (me, size, root) = (call.me(), call.size(), self.root);
        // The algorithms hand the root's own block out too; it is there already.
        let mut copy = (me == root).then(|| {
            let range = self.parts.range(self.data.len(), size, me);
            call.scratch(range.len())
        });
        let (input, own) = match &mut copy {
            Some(own) => (Some(&*self.data), &mut **own),
            None => (None, &mut *self.data),
        };
        match &self.parts {
            Parts::Equal => scatter::scatter(call, input, own, root)?.await,
            Parts::Of(lengths) => scatter::scatterv(call, input, lengths, own, root).await,
        }
    }
}

impl ScatterInPlace<'_> {
    fn block(&self, team: &Team) -> usize {
        block_of(team, self.data, self.root)
    }
}

/// [`Team::alltoall`] and [`Team::alltoallv`] of one buffer: each block is given to its member, and gets that member's in its
/// place.
#[derive(Debug)]
pub struct AlltoallInPlace<'a> {
    /// A block for each member, then of each.
    pub data: &'a mut [u8],
    /// The blocks: two members give each other as much.
    pub parts: Parts<'a>,
}

impl CollectiveOperation for AlltoallInPlace<'_> {
    fn check(&self, team: &Team) -> Result<()> {
        self.parts.check(team, self.data.len())
    }

    fn describe(&self, team: &Team) -> String {
        match self.parts {
            Parts::Equal => data::alltoall_of(self.data.len() / team.size()),
            Parts::Of(_) => data::ALLTOALLV.to_owned(),
        }
    }

    fn counts(&self, _: &Team) -> Option<Counts> {
        match &self.parts {
            Parts::Equal => None,
            Parts::Of(lengths) => Some(Counts::exchange(lengths, lengths)),
        }
    }

    #[inline]
    fn on_board(&mut self, team: &Team) -> Option<Result<()>> {
        let (what, block) = (Collective::Alltoall, self.data.len() / team.size());
        if !self.parts.take_board(team, what, block) {
            return None;
        }
        team.on_board(Head::of(what, block), |call| {
            board::alltoall(call, None, self.data)
        })
    }

    async fn steps(&mut self, call: Call<'_>) -> Result<()> {
        let input = call.copy(self.data);
        match &self.parts {
            Parts::Equal => alltoall::alltoall(call, &input, self.data)?.await,
            Parts::Of(lengths) => {
                alltoall::alltoallv(call, &input, lengths, self.data, lengths).await
            }
        }
    }
}

/// Returns the length of each member's block: `data` is of all at the root, and one elsewhere.
fn block_of(team: &Team, data: &[u8], root: usize) -> usize {
    match team.me() == root {
        true => data.len() / team.size(),
        false => data.len(),
    }
}
