//! Duplicates of groups that are made without waiting.

use std::sync::Arc;

use crate::error::Result;
use crate::groups::{NONE, ids_of};
use crate::making::Making;
use crate::members::Members;
use crate::team::Team;

/// A duplicate of a group that is being made. Dropped before it was taken, it keeps its context.
#[derive(Debug)]
pub struct Duplicate(Making);

impl Duplicate {
    /// Begins to make another group of the same members, and returns at once (MPI-5.0, section 7.4.2, `MPI_Comm_idup`). It is
    /// one of the operations of the group, as those that [`Team::start`] starts.
    ///
    /// # Errors
    /// When an earlier operation of the group has failed, or this thread may not call.
    pub fn of(team: &Arc<Team>) -> Result<Self> {
        let what = "a duplication of the group";
        let making = Making::start(team, what, |own| own.as_u16().to_ne_bytes())?;
        Ok(Self(making))
    }

    /// Returns whether it has been made, or has failed, without progress.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.0.is_complete()
    }

    /// Takes the group; `None` while it is being made.
    ///
    /// # Errors
    /// When a member has failed or had no context left; when it was taken before.
    #[must_use = "the group is there once"]
    pub fn take(&self) -> Option<Result<Team>> {
        let Making { team, own, .. } = &self.0;
        self.0.take(|all| {
            let ids = ids_of(all);
            let is_whole = !ids.contains(&NONE);
            let ranks = team.members().ranks().collect();
            is_whole.then(|| team.derived_alike(Members::new(ranks, ids), *own))
        })
    }
}
