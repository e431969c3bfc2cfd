//! Operations of a group of two sides, in which data goes from each to the other (MPI-5.0, section 6.2.2).
//!
//! ```text
//!     broadcast, gather, scatter       among the root and the other side
//!     reduce                           each side by itself, then its first member with the root or with the
//!     allreduce, reduce-scatter        other first one, then down this side
//!     allgather, alltoall              each member with all of the other side
//! ```
//!
//! Messages of a side's own steps and those between the sides have the tag of the one operation.

use std::borrow::Cow;

use super::CollectiveOperation;
use crate::algorithms::Collective;
use crate::call::{Call, check_length, sides_of};
use crate::error::{Error, Result};
use crate::levels::Among;
use crate::reduction::Operator;
use crate::sides::Sides;
use crate::team::Team;
use crate::{broadcast, gather, reduce, scatter, scattered};

/// Whose data goes to the other side, or who gets that of the other side. Members beside the root are [`ProcNullRoot`]s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InterRoot {
    /// This member (`MPI_ROOT`).
    Here,
    /// A member of the other side, by its number there.
    There(usize),
}

impl InterRoot {
    fn check(self, team: &Team) -> Result<()> {
        let sides = sides_of(team)?;
        match self {
            Self::There(root) if root >= sides.remote().len() => Err(Error::Argument(format!(
                "there is no rank {root} in a remote group of {}",
                sides.remote().len()
            ))),
            _ => Ok(()),
        }
    }

    /// Returns those who take part, by their numbers: the root is the first one.
    fn members(self, sides: &Sides) -> Vec<usize> {
        match self {
            Self::Here => sides.with_me(),
            Self::There(root) => sides.with_remote(root),
        }
    }

    /// Returns this member's place among those.
    fn me(self, sides: &Sides) -> usize {
        match self {
            Self::Here => 0,
            Self::There(_) => 1 + sides.me(),
        }
    }

    fn among<'a>(self, sides: &Sides, members: &'a [usize]) -> Among<'a> {
        Among {
            members,
            me: self.me(sides),
            is_host: false,
        }
    }

    fn is_here(self) -> bool {
        self == Self::Here
    }
}

/// The part of a member on the side of the root: none but that the operation is one of the group's.
#[derive(Debug)]
pub struct ProcNullRoot {
    /// What the others call.
    pub of: Collective,
}

impl CollectiveOperation for ProcNullRoot {
    fn check(&self, team: &Team) -> Result<()> {
        sides_of(team).map(|_| ())
    }

    fn describe(&self, _: &Team) -> String {
        described(self.of)
    }

    async fn steps(&mut self, _: Call<'_>) -> Result<()> {
        Ok(())
    }
}

/// What all members say of an operation: of the data each knows its own part alone.
fn described(what: Collective) -> String {
    format!("a {} between groups", what.name())
}

/// The data of the root goes to the other side (MPI-5.0, section 6.4).
#[derive(Debug)]
pub struct InterBroadcast<'a> {
    /// What the root gives and the others get.
    pub data: &'a mut [u8],
    /// Whose data it is.
    pub root: InterRoot,
}

impl CollectiveOperation for InterBroadcast<'_> {
    fn check(&self, team: &Team) -> Result<()> {
        self.root.check(team)
    }

    fn describe(&self, _: &Team) -> String {
        described(Collective::Broadcast)
    }

    async fn steps(&mut self, call: Call<'_>) -> Result<()> {
        let sides = call.sides()?;
        let members = self.root.members(sides);
        let call = call.among(self.root.among(sides, &members));
        broadcast::broadcast(call, self.data, 0)?.await
    }
}

/// The data of the other side goes to the root (MPI-5.0, section 6.5).
#[derive(Debug)]
pub struct InterGather<'a> {
    /// What this member gives, where the root is of the other side.
    pub own: &'a [u8],
    /// The length of each part, for the root alone.
    pub lengths: Cow<'a, [usize]>,
    /// What all of the other side give, for the root alone.
    pub out: Option<&'a mut [u8]>,
    /// Who gets it.
    pub root: InterRoot,
}

impl CollectiveOperation for InterGather<'_> {
    fn check(&self, team: &Team) -> Result<()> {
        self.root.check(team)?;
        match self.root.is_here() {
            true => check_parts(
                team,
                &self.lengths,
                self.out.as_ref().map_or(0, |out| out.len()),
            ),
            false => Ok(()),
        }
    }

    fn describe(&self, _: &Team) -> String {
        described(Collective::Gather)
    }

    async fn steps(&mut self, call: Call<'_>) -> Result<()> {
        let sides = call.sides()?;
        let members = self.root.members(sides);
        let call = call.among(self.root.among(sides, &members));
        let lengths = after_root(&self.lengths);
        let own = if self.root.is_here() { &[] } else { self.own };
        gather::gatherv(call, own, &lengths, self.out.as_deref_mut(), 0).await
    }
}

/// The data of the root goes to the other side, to each member its part (MPI-5.0, section 6.6).
#[derive(Debug)]
pub struct InterScatter<'a> {
    /// What all of the other side get, at the root alone.
    pub input: Option<&'a [u8]>,
    /// The length of each part, at the root alone.
    pub lengths: Cow<'a, [usize]>,
    /// What this member gets, where the root is of the other side.
    pub own: &'a mut [u8],
    /// Who gives it.
    pub root: InterRoot,
}

impl CollectiveOperation for InterScatter<'_> {
    fn check(&self, team: &Team) -> Result<()> {
        self.root.check(team)?;
        match self.root.is_here() {
            true => check_parts(team, &self.lengths, self.input.map_or(0, <[u8]>::len)),
            false => Ok(()),
        }
    }

    fn describe(&self, _: &Team) -> String {
        described(Collective::Scatter)
    }

    async fn steps(&mut self, call: Call<'_>) -> Result<()> {
        let sides = call.sides()?;
        let members = self.root.members(sides);
        let call = call.among(self.root.among(sides, &members));
        let lengths = after_root(&self.lengths);
        let own = match self.root {
            InterRoot::Here => &mut [],
            InterRoot::There(_) => &mut *self.own,
        };
        scatter::scatterv(call, self.input, &lengths, own, 0).await
    }
}

/// Returns the lengths of the parts of all who take part: the root, which is the first one, has none.
fn after_root(lengths: &[usize]) -> Vec<usize> {
    std::iter::once(0).chain(lengths.iter().copied()).collect()
}

/// Checks the lengths of the parts of the other side's members.
fn check_parts(team: &Team, lengths: &[usize], total: usize) -> Result<()> {
    check_each(
        "the remote group",
        sides_of(team)?.remote().len(),
        lengths,
        total,
    )
}

/// Checks the lengths of the parts of `members`.
fn check_each(group: &str, members: usize, lengths: &[usize], total: usize) -> Result<()> {
    if lengths.len() != members {
        return Err(Error::Argument(format!(
            "{} lengths were given where {group} has {members}",
            lengths.len()
        )));
    }
    let mut lengths = lengths.iter();
    let sum = lengths.try_fold(0_usize, |sum, length| sum.checked_add(*length));
    check_length("the buffer", total, sum.unwrap_or(usize::MAX))
}

/// The combined data of the other side goes to the root (MPI-5.0, section 6.9.1).
#[derive(Debug)]
pub struct InterReduce<'a> {
    /// What combines the data.
    pub operator: Operator<'a>,
    /// What this member gives, where the root is of the other side.
    pub input: &'a [u8],
    /// What becomes the result, for the root alone.
    pub out: Option<&'a mut [u8]>,
    /// Who gets it.
    pub root: InterRoot,
}

impl CollectiveOperation for InterReduce<'_> {
    fn check(&self, team: &Team) -> Result<()> {
        self.root.check(team)?;
        let out = self.out.as_ref().map(|out| out.len());
        if self.root.is_here() && out.is_none() {
            return Err(Error::Argument(
                "the root of a reduction needs room for the result".to_owned(),
            ));
        }
        let reduction = self.operator.reduction();
        reduction.check(out.unwrap_or(self.input.len()))
    }

    fn describe(&self, _: &Team) -> String {
        described(Collective::Reduce)
    }

    async fn steps(&mut self, call: Call<'_>) -> Result<()> {
        let first = call.sides()?.remote().start;
        match (self.root, self.out.as_deref_mut()) {
            (InterRoot::There(root), _) => match reduced(call, &self.operator, self.input).await? {
                Some(sum) => call.send(&sum, first + root).await,
                None => Ok(()),
            },
            (InterRoot::Here, Some(out)) => call.recv(out, first).await,
            (InterRoot::Here, None) => Ok(()),
        }
    }
}

/// Combines the data of this member's side. Returns the result to its first one.
async fn reduced<'t>(
    call: Call<'t>,
    operator: &Operator<'_>,
    input: &[u8],
) -> Result<Option<crate::scratch::Scratch<'t>>> {
    let beside = call.among(call.sides()?.beside());
    let reduction = operator.reduction();
    let mut sum = (beside.me() == 0).then(|| call.scratch(input.len()));
    reduce::reduce(beside, reduction, input, sum.as_deref_mut(), 0)?.await?;
    Ok(sum)
}

/// All get the combined data of the other side (MPI-5.0, section 6.9.6).
#[derive(Debug)]
pub struct InterAllreduce<'a> {
    /// What combines the data.
    pub operator: Operator<'a>,
    /// What this member gives.
    pub input: &'a [u8],
    /// What becomes the result.
    pub out: &'a mut [u8],
}

impl CollectiveOperation for InterAllreduce<'_> {
    fn check(&self, team: &Team) -> Result<()> {
        sides_of(team)?;
        self.operator.reduction().check(self.input.len())?;
        check_length("the buffer of the result", self.out.len(), self.input.len())
    }

    fn describe(&self, _: &Team) -> String {
        described(Collective::Allreduce)
    }

    async fn steps(&mut self, call: Call<'_>) -> Result<()> {
        let sides = call.sides()?;
        if let Some(sum) = reduced(call, &self.operator, self.input).await? {
            let other = sides.remote().start;
            call.exchange(&sum, other, self.out, other).await?;
        }
        let beside = call.among(sides.beside());
        broadcast::broadcast(beside, self.out, 0)?.await
    }
}

/// Each gets its part of the combined data of the other side (MPI-5.0, section 6.10).
#[derive(Debug)]
pub struct InterReduceScatter<'a> {
    /// What combines the data.
    pub operator: Operator<'a>,
    /// What this member gives.
    pub input: &'a [u8],
    /// The length of each part, of the members of this side.
    pub lengths: Cow<'a, [usize]>,
    /// This member's part of the result.
    pub out: &'a mut [u8],
}

impl CollectiveOperation for InterReduceScatter<'_> {
    fn check(&self, team: &Team) -> Result<()> {
        let sides = sides_of(team)?;
        let reduction = self.operator.reduction();
        let mut lengths = self.lengths.iter();
        lengths.try_for_each(|length| reduction.check(*length))?;
        // As much is combined on both sides.
        let (members, total) = (sides.local().len(), self.input.len());
        check_each("the group", members, &self.lengths, total)?;
        let own = self.lengths[sides.me()];
        check_length("the buffer of the result", self.out.len(), own)
    }

    fn describe(&self, _: &Team) -> String {
        described(Collective::ReduceScatter)
    }

    async fn steps(&mut self, call: Call<'_>) -> Result<()> {
        let sides = call.sides()?;
        let beside = call.among(sides.beside());
        let Some(sum) = reduced(call, &self.operator, self.input).await? else {
            return scatter::scatterv(beside, None, &self.lengths, self.out, 0).await;
        };
        let (other, mut whole) = (sides.remote().start, call.scratch(self.input.len()));
        call.exchange(&sum, other, &mut whole, other).await?;
        scatter::scatterv(beside, Some(&whole), &self.lengths, self.out, 0).await
    }
}

/// All get the data of all of the other side (MPI-5.0, section 6.7).
#[derive(Debug)]
pub struct InterAllgather<'a> {
    /// What this member gives.
    pub own: &'a [u8],
    /// The length of each part, of the members of the other side.
    pub lengths: Cow<'a, [usize]>,
    /// What all of the other side give.
    pub out: &'a mut [u8],
}

impl CollectiveOperation for InterAllgather<'_> {
    fn check(&self, team: &Team) -> Result<()> {
        check_parts(team, &self.lengths, self.out.len())
    }

    fn describe(&self, _: &Team) -> String {
        described(Collective::Allgather)
    }

    async fn steps(&mut self, call: Call<'_>) -> Result<()> {
        let input = std::iter::repeat(self.own);
        let out = scattered::parts_mut(self.out, self.lengths.iter().copied());
        scattered::across(call, call.sides()?, input, out).await
    }
}

/// Each exchanges blocks with all of the other side (MPI-5.0, section 6.8).
#[derive(Debug)]
pub struct InterAlltoall<'a> {
    /// A block for each member of the other side.
    pub input: &'a [u8],
    /// Their lengths.
    pub to: Cow<'a, [usize]>,
    /// A block of each member of the other side.
    pub out: &'a mut [u8],
    /// Their lengths.
    pub from: Cow<'a, [usize]>,
}

impl CollectiveOperation for InterAlltoall<'_> {
    fn check(&self, team: &Team) -> Result<()> {
        check_parts(team, &self.to, self.input.len())?;
        check_parts(team, &self.from, self.out.len())
    }

    fn describe(&self, _: &Team) -> String {
        described(Collective::Alltoall)
    }

    async fn steps(&mut self, call: Call<'_>) -> Result<()> {
        let input = scattered::parts(self.input, self.to.iter().copied());
        let out = scattered::parts_mut(self.out, self.from.iter().copied());
        scattered::across(call, call.sides()?, input, out).await
    }
}
