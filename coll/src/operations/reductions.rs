//! Operations that combine data.
//!
//! In a group of two sides each gets the result of the other (MPI-5.0, section 6.2.2), and nothing is in place:
//!
//! ```text
//!     reduce                           each side by itself, then its first member with the root or with the
//!     allreduce, reduce-scatter        other first one, then down this side
//! ```
//!
//! Messages of a side's own steps and those between the sides have the tag of the one operation.

use std::borrow::Cow;

use tagwire_layout::{Basic, Layout, Operation};

use super::CollectiveOperation;
use super::blocks::{check_each, check_lengths};
use super::counts::Counts;
use super::data::check_input;
use super::root::{Root, between};
use crate::algorithms::Collective;
use crate::board::{self, Head, LineCall};
use crate::call::{Call, check_length};
use crate::error::{Error, Result};
use crate::reduction::Operator;
use crate::scratch::Scratch;
use crate::sides::Sides;
use crate::team::Team;
use crate::{allreduce, broadcast, reduce, reduce_scatter, scan, scatter};

/// [`Team::reduce`].
#[derive(Debug)]
pub struct Reduce<'a> {
    /// What combines the data.
    pub operator: Operator<'a>,
    /// What this member gives; `None` at `root` where that lies in `out` (MPI-5.0, section 6.9.1, `MPI_IN_PLACE`).
    pub input: Option<&'a [u8]>,
    /// What becomes the result, for `root` alone.
    pub out: Option<&'a mut [u8]>,
    /// Who gets it. In a group of two sides it is the data of the other side that are combined.
    pub root: Root,
}

impl Reduce<'static> {
    /// Returns the part of a member beside the root, which has no arguments.
    #[must_use]
    pub const fn beside() -> Self {
        Self {
            operator: Operator::owned(Operation::Sum, Layout::of(Basic::Byte)),
            input: None,
            out: None,
            root: Root::Beside,
        }
    }
}

impl<'a> Reduce<'a> {
    /// Returns a reduction of one buffer: at `root` the result comes in place of its data, elsewhere those stay as they are.
    pub fn in_place(team: &Team, operator: Operator<'a>, data: &'a mut [u8], root: usize) -> Self {
        let (input, out) = match team.me() == root {
            true => (None, Some(data)),
            false => (Some(&*data), None),
        };
        Self {
            operator,
            input,
            out,
            root: Root::Member(root),
        }
    }

    fn bytes(&self) -> usize {
        let out = self.out.as_ref().map_or(0, |out| out.len());
        match self.root {
            Root::Here => out,
            _ => self.input.map_or(out, <[u8]>::len),
        }
    }
}

impl CollectiveOperation for Reduce<'_> {
    fn check(&self, team: &Team) -> Result<()> {
        self.root.check(team)?;
        if self.root == Root::Beside {
            return Ok(());
        }
        self.operator.reduction().check(self.bytes())?;
        let is_root = self.root.is_me(team);
        if is_root && self.out.is_none() {
            return Err(Error::Argument(
                "the root of a reduction needs room for the result".to_owned(),
            ));
        }
        if !is_root && self.input.is_none() {
            return Err(Error::Argument(
                "only the root of a reduction gives its data in the buffer of the result"
                    .to_owned(),
            ));
        }
        match &self.out {
            Some(out) => check_length("the buffer of the result", out.len(), self.bytes()),
            None => Ok(()),
        }
    }

    fn describe(&self, _: &Team) -> String {
        let (bytes, name) = (self.bytes(), self.operator.name());
        self.root.describe(Collective::Reduce, |root| {
            format!("a reduction of {bytes} bytes by {name} to rank {root}")
        })
    }

    #[inline]
    fn on_board(&mut self, team: &Team) -> Option<Result<()>> {
        let (what, bytes) = (Collective::Reduce, self.bytes());
        let (reduction, root) = (self.operator.reduction(), self.root.member()?);
        team.reduces_on_board(what, bytes, &reduction)?;
        let (input, out) = (self.input, self.out.as_deref_mut());
        let head = Head::of(what, bytes).at(root).by(&reduction);
        team.on_board(head, |call| {
            board::reduce(call, reduction, input, out, root)
        })
    }

    async fn steps(&mut self, call: Call<'_>) -> Result<()> {
        let reduction = self.operator.reduction();
        let copy = match (self.input, self.root) {
            (None, Root::Member(_)) => self.out.as_deref().map(|own| call.copy(own)),
            _ => None,
        };
        let input = self.input.or(copy.as_deref()).unwrap_or_default();
        let out = self.out.as_deref_mut();
        match (self.root, call.sides(), out) {
            (Root::Member(root), _, out) => {
                reduce::reduce(call, reduction, input, out, root)?.await
            }
            (Root::There(root), Some(sides), _) => {
                match reduced(call, sides, &self.operator, input).await? {
                    Some(sum) => call.send(&sum, sides.remote().start + root).await,
                    None => Ok(()),
                }
            }
            (Root::Here, Some(sides), Some(out)) => call.recv(out, sides.remote().start).await,
            _ => Ok(()),
        }
    }
}

/// Combines the data of this member's side. Returns the result to its first one.
async fn reduced<'t>(
    call: Call<'t>,
    sides: &Sides,
    operator: &Operator<'_>,
    input: &[u8],
) -> Result<Option<Scratch<'t>>> {
    let beside = call.among(sides.beside());
    let mut sum = (beside.me() == 0).then(|| call.scratch(input.len()));
    reduce::reduce(beside, operator.reduction(), input, sum.as_deref_mut(), 0)?.await?;
    Ok(sum)
}

/// [`Team::allreduce`].
#[derive(Debug)]
pub struct Allreduce<'a> {
    /// What combines the data.
    pub operator: Operator<'a>,
    /// What this member gives; `None` where that lies in `data` (MPI-5.0, section 6.9.6, `MPI_IN_PLACE`).
    pub input: Option<&'a [u8]>,
    /// What becomes the result.
    pub data: &'a mut [u8],
}

impl CollectiveOperation for Allreduce<'_> {
    fn check(&self, team: &Team) -> Result<()> {
        check_input(team, self.input.is_some())?;
        self.operator.reduction().check(self.data.len())?;
        match self.input {
            Some(input) => check_length("the buffer of the result", self.data.len(), input.len()),
            None => Ok(()),
        }
    }

    fn describe(&self, team: &Team) -> String {
        let (bytes, name) = (self.data.len(), self.operator.name());
        match team.sides() {
            None => format!("an allreduce of {bytes} bytes by {name}"),
            Some(_) => between(Collective::Allreduce),
        }
    }

    #[inline]
    fn on_board(&mut self, team: &Team) -> Option<Result<()>> {
        let (what, bytes) = (Collective::Allreduce, self.data.len());
        let reduction = self.operator.reduction();
        let algorithm = team.reduces_on_board(what, bytes, &reduction)?;
        team.on_board(Head::of(what, bytes).by(&reduction), |call| {
            call.by_trial(bytes, algorithm, |call, algorithm| {
                board::allreduce(algorithm, call, reduction, self.input, self.data)
            })
        })
    }

    fn fits_line(&self, team: &Team) -> bool {
        let (bytes, reduction) = (self.data.len(), self.operator.reduction());
        let taken = || team.reduces_on_board(Collective::Allreduce, bytes, &reduction);
        LineCall::fits(bytes) && taken().is_some()
    }

    async fn line_steps(&mut self, line: LineCall<'_>) -> Result<()> {
        let reduction = self.operator.reduction();
        line.allreduce(reduction, self.input, self.data).await
    }

    async fn steps(&mut self, call: Call<'_>) -> Result<()> {
        let reduction = self.operator.reduction();
        if let (Some(sides), Some(input)) = (call.sides(), self.input) {
            if let Some(sum) = reduced(call, sides, &self.operator, input).await? {
                let other = sides.remote().start;
                Box::pin(call.exchange(&sum, other, self.data, other)).await?;
            }
            let beside = call.among(sides.beside());
            return broadcast::broadcast(beside, self.data, 0)?.await;
        }
        if let Some(input) = self.input {
            self.data.copy_from_slice(input);
        }
        allreduce::allreduce(call, reduction, self.data)?.await
    }
}

/// [`Team::reduce_scatter`].
#[derive(Debug)]
pub struct ReduceScatter<'a> {
    /// What combines the data.
    pub operator: Operator<'a>,
    /// What this member gives; `None` where that lies in `out` (MPI-5.0, section 6.10, `MPI_IN_PLACE`).
    pub input: Option<&'a [u8]>,
    /// The length of each member's part; of two sides, of those of this one. As much is combined on both.
    pub lengths: Cow<'a, [usize]>,
    /// This member's part of the result, which comes at the start of what it gives where that lies here.
    pub out: &'a mut [u8],
}

impl ReduceScatter<'_> {
    /// Returns how many bytes a member gives.
    fn bytes(&self) -> usize {
        self.input.map_or(self.out.len(), <[u8]>::len)
    }

    /// Returns a copy of what this member gives, where the result comes there.
    fn copy<'t>(&self, team: &'t Team) -> Option<Scratch<'t>> {
        self.input.is_none().then(|| team.copy(self.out))
    }
}

impl CollectiveOperation for ReduceScatter<'_> {
    fn check(&self, team: &Team) -> Result<()> {
        check_input(team, self.input.is_some())?;
        let (total, reduction) = (self.bytes(), self.operator.reduction());
        let me = match team.sides() {
            None => {
                check_lengths(team, &self.lengths, total)?;
                team.me()
            }
            Some(sides) => {
                let members = sides.local().len();
                check_each(&self.lengths, members, total, || {
                    format!("where the group has {members}")
                })?;
                sides.me()
            }
        };
        let mut lengths = self.lengths.iter();
        lengths.try_for_each(|length| reduction.check(*length))?;
        match self.input {
            Some(_) => check_length("the buffer of the result", self.out.len(), self.lengths[me]),
            None => Ok(()),
        }
    }

    fn describe(&self, team: &Team) -> String {
        let (bytes, name) = (self.bytes(), self.operator.name());
        match team.sides() {
            None => format!("a reduce-scatter of {bytes} bytes by {name}"),
            Some(_) => between(Collective::ReduceScatter),
        }
    }

    fn counts(&self, team: &Team) -> Option<Counts> {
        if team.sides().is_some() {
            return None;
        }
        // Each gives to each what that one expects of all.
        let own = vec![self.lengths[team.me()]; team.size()];
        Some(Counts::exchange(&self.lengths, &own))
    }

    #[inline]
    fn on_board(&mut self, team: &Team) -> Option<Result<()>> {
        let (what, bytes) = (Collective::ReduceScatter, self.bytes());
        let reduction = self.operator.reduction();
        let fits = board::fits_parts(reduction.layout.extent(), team.size().max(2));
        if !fits {
            return None;
        }
        team.reduces_on_board(what, bytes, &reduction)?;
        let copy = self.copy(team);
        let input = self.input.or(copy.as_deref()).unwrap_or_default();
        let out = &mut self.out[..self.lengths[team.me()]];
        team.on_board(Head::of(what, bytes).by(&reduction), |call| {
            board::reduce_scatter(call, reduction, input, &self.lengths, out)
        })
    }

    async fn steps(&mut self, call: Call<'_>) -> Result<()> {
        let (reduction, lengths) = (self.operator.reduction(), &self.lengths);
        if let Some(sides) = call.sides() {
            let beside = call.among(sides.beside());
            let input = self.input.unwrap_or_default();
            let sum = reduced(call, sides, &self.operator, input).await?;
            let mut whole = None;
            if let Some(sum) = sum {
                let other = sides.remote().start;
                let whole = whole.insert(call.scratch(input.len()));
                Box::pin(call.exchange(&sum, other, whole, other)).await?;
            }
            return scatter::scatterv(beside, whole.as_deref(), lengths, self.out, 0).await;
        }
        let copy = self.copy(call.team());
        let input = self.input.or(copy.as_deref()).unwrap_or_default();
        let out = &mut self.out[..lengths[call.me()]];
        reduce_scatter::reduce_scatter(call, reduction, input, lengths, out)?.await
    }
}

/// [`Team::scan`].
#[derive(Debug)]
pub struct Scan<'a> {
    /// What combines the data.
    pub operator: Operator<'a>,
    /// What this member gives, and then what it gets.
    pub data: &'a mut [u8],
}

impl CollectiveOperation for Scan<'_> {
    fn check(&self, _: &Team) -> Result<()> {
        self.operator.reduction().check(self.data.len())
    }

    fn describe(&self, _: &Team) -> String {
        let (bytes, name) = (self.data.len(), self.operator.name());
        format!("a scan of {bytes} bytes by {name}")
    }

    async fn steps(&mut self, call: Call<'_>) -> Result<()> {
        scan::scan(call, self.operator.reduction(), self.data).await
    }
}

/// [`Team::exscan`].
#[derive(Debug)]
pub struct Exscan<'a> {
    /// What combines the data.
    pub operator: Operator<'a>,
    /// What this member gives, and then what it gets.
    pub data: &'a mut [u8],
}

impl CollectiveOperation for Exscan<'_> {
    fn check(&self, _: &Team) -> Result<()> {
        self.operator.reduction().check(self.data.len())
    }

    fn describe(&self, _: &Team) -> String {
        let (bytes, name) = (self.data.len(), self.operator.name());
        format!("an exscan of {bytes} bytes by {name}")
    }

    async fn steps(&mut self, call: Call<'_>) -> Result<()> {
        scan::exscan(call, self.operator.reduction(), self.data).await
    }
}
