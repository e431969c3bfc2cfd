//! Operations on blocks that lie anywhere.

use std::borrow::Cow;

use super::CollectiveOperation;
use super::counts::Counts;
use crate::call::{Call, check_length};
use crate::error::{Error, Result};
use crate::scattered;
use crate::team::Team;

/// [`Team::alltoallw`]. Each block may have a type and a place of its own, of which nothing is known here (MPI-5.0, section 6.8,
/// `MPI_Alltoallw`).
#[derive(Debug)]
pub struct Alltoallw<'a> {
    /// The block for each member.
    pub input: Cow<'a, [&'a [u8]]>,
    /// The block of each member.
    pub out: Vec<&'a mut [u8]>,
}

impl CollectiveOperation for Alltoallw<'_> {
    fn check(&self, team: &Team) -> Result<()> {
        let (me, size) = (team.me(), team.size());
        check_blocks(self.input.len(), size, "ranks to send to")?;
        check_blocks(self.out.len(), size, "ranks to receive from")?;
        let (given, expected) = (self.out[me].len(), self.input[me].len());
        check_length("the block for oneself", given, expected)
    }

    fn describe(&self, _: &Team) -> String {
        "an alltoallw".to_owned()
    }

    fn counts(&self, _: &Team) -> Option<Counts> {
        let to: Vec<_> = self.input.iter().map(|block| block.len()).collect();
        let from: Vec<_> = self.out.iter().map(|block| block.len()).collect();
        Some(Counts::exchange(&to, &from))
    }

    async fn steps(&mut self, call: Call<'_>) -> Result<()> {
        let out = self.out.iter_mut().map(|block| &mut **block);
        scattered::alltoall(call, &self.input, out).await
    }
}

/// Checks that there are as many blocks as members that have one.
pub(super) fn check_blocks(given: usize, expected: usize, members: &str) -> Result<()> {
    match given == expected {
        true => Ok(()),
        false => Err(Error::Argument(format!(
            "{given} blocks were given for {expected} {members}"
        ))),
    }
}
