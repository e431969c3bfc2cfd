//! Operations that combine data.

use std::borrow::Cow;

use super::CollectiveOperation;
use super::counts::Counts;
use crate::algorithms::Collective;
use crate::board::{self, Head, LineCall};
use crate::call::{Call, check_length, check_root};
use crate::error::{Error, Result};
use crate::reduction::Operator;
use crate::team::Team;
use crate::{allreduce, reduce, reduce_scatter, scan};

/// [`Team::reduce`].
#[derive(Debug)]
pub struct Reduce<'a> {
    /// What combines the data.
    pub operator: Operator<'a>,
    /// What this member gives; `None` at `root` where that lies in `out` (MPI-5.0, section 6.9.1, `MPI_IN_PLACE`).
    pub input: Option<&'a [u8]>,
    /// What becomes the result, for `root` alone.
    pub out: Option<&'a mut [u8]>,
    /// Who gets it.
    pub root: usize,
}

impl Reduce<'_> {
    fn bytes(&self) -> usize {
        let out = self.out.as_ref().map_or(0, |out| out.len());
        self.input.map_or(out, <[u8]>::len)
    }
}

impl CollectiveOperation for Reduce<'_> {
    fn check(&self, team: &Team) -> Result<()> {
        check_root(team, self.root)?;
        self.operator.reduction().check(self.bytes())?;
        let is_root = team.me() == self.root;
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
        let (bytes, root) = (self.bytes(), self.root);
        let name = self.operator.name();
        format!("a reduction of {bytes} bytes by {name} to rank {root}")
    }

    #[inline]
    fn on_board(&mut self, team: &Team) -> Option<Result<()>> {
        let (what, bytes) = (Collective::Reduce, self.bytes());
        let reduction = self.operator.reduction();
        team.reduces_on_board(what, bytes, &reduction)?;
        let (input, out, root) = (self.input, self.out.as_deref_mut(), self.root);
        let head = Head::of(what, bytes).at(root).by(&reduction);
        team.on_board(head, |call| {
            board::reduce(call, reduction, input, out, root)
        })
    }

    async fn steps(&mut self, call: Call<'_>) -> Result<()> {
        let reduction = self.operator.reduction();
        let copy = match self.input {
            Some(_) => None,
            None => self.out.as_deref().map(|own| call.copy(own)),
        };
        let input = self.input.or(copy.as_deref()).unwrap_or_default();
        reduce::reduce(call, reduction, input, self.out.as_deref_mut(), self.root)?.await
    }
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
    fn check(&self, _: &Team) -> Result<()> {
        self.operator.reduction().check(self.data.len())?;
        match self.input {
            Some(input) => check_length("the buffer of the result", self.data.len(), input.len()),
            None => Ok(()),
        }
    }

    fn describe(&self, _: &Team) -> String {
        let (bytes, name) = (self.data.len(), self.operator.name());
        format!("an allreduce of {bytes} bytes by {name}")
    }

    #[inline]
    fn on_board(&mut self, team: &Team) -> Option<Result<()>> {
        let (what, bytes) = (Collective::Allreduce, self.data.len());
        let reduction = self.operator.reduction();
        let algorithm = team.reduces_on_board(what, bytes, &reduction)?;
        team.on_board(Head::of(what, bytes).by(&reduction), |call| {
            board::allreduce(algorithm, call, reduction, self.input, self.data)
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
    /// What this member gives.
    pub input: &'a [u8],
    /// The length of each member's part.
    pub lengths: Cow<'a, [usize]>,
    /// This member's part of the result.
    pub out: &'a mut [u8],
}

impl CollectiveOperation for ReduceScatter<'_> {
    fn check(&self, team: &Team) -> Result<()> {
        team.check_lengths(&self.lengths, self.input.len())?;
        let reduction = self.operator.reduction();
        let mut lengths = self.lengths.iter();
        lengths.try_for_each(|length| reduction.check(*length))?;
        let own = self.lengths[team.me()];
        check_length("the buffer of the result", self.out.len(), own)
    }

    fn describe(&self, _: &Team) -> String {
        let (bytes, name) = (self.input.len(), self.operator.name());
        format!("a reduce-scatter of {bytes} bytes by {name}")
    }

    fn counts(&self, team: &Team) -> Option<Counts> {
        // Each gives to each what that one expects of all.
        let own = vec![self.out.len(); team.size()];
        Some(Counts::exchange(&self.lengths, &own))
    }

    #[inline]
    fn on_board(&mut self, team: &Team) -> Option<Result<()>> {
        let (what, bytes) = (Collective::ReduceScatter, self.input.len());
        let reduction = self.operator.reduction();
        let fits = board::fits_parts(reduction.layout.extent(), team.size().max(2));
        if !fits {
            return None;
        }
        team.reduces_on_board(what, bytes, &reduction)?;
        let (input, out) = (self.input, &mut *self.out);
        team.on_board(Head::of(what, bytes).by(&reduction), |call| {
            board::reduce_scatter(call, reduction, input, &self.lengths, out)
        })
    }

    async fn steps(&mut self, call: Call<'_>) -> Result<()> {
        let (reduction, lengths) = (self.operator.reduction(), &self.lengths);
        reduce_scatter::reduce_scatter(call, reduction, self.input, lengths, self.out)?.await
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
