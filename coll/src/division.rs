//! Parts of groups that are made without waiting.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::groups::{Alike, NONE};
use crate::making::Making;
use crate::members::Members;
use crate::team::Team;

/// A group that is being made of the members of another that give the same color. Dropped before it was taken, it keeps its context.
#[derive(Debug)]
pub struct Division {
    alike: Alike,
    making: Making,
}

impl Division {
    /// Begins to make a group of the members that give the same `color`, in the order of their keys, and of their numbers where keys are
    /// equal, and returns at once: what [`Team::split`] does by waiting (MPI-5.0, section 7.4.2). It is one of the operations of
    /// the group, as those that [`Team::start`] starts.
    ///
    /// # Errors
    /// When the group has two sides, an earlier operation of it has failed, or this thread may not call.
    pub fn of(team: &Arc<Team>, color: u32, key: i32) -> Result<Self> {
        if team.sides().is_some() {
            let text = "a group of two sides is divided by waiting: Team::split";
            return Err(Error::Argument(text.to_owned()));
        }
        let alike = Alike {
            color: Some(color),
            key,
            first: 0,
        };
        let making = Making::start(team, "a division of the group", |own| alike.entry(own))?;
        Ok(Self { alike, making })
    }

    /// Returns whether it has been made, or has failed, without progress.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.making.is_complete()
    }

    /// Takes the group; `None` while it is being made.
    ///
    /// # Errors
    /// When a member has failed or had no context left; when it was taken before.
    #[must_use = "the group is there once"]
    pub fn take(&self) -> Option<Result<Team>> {
        let Making { team, own, .. } = &self.making;
        self.making.take(|all| {
            let entry = self.alike.entry(*own);
            let (ranks, ids) = self.alike.members(team, &entry, all);
            let is_whole = !ids.contains(&NONE);
            is_whole.then(|| team.derived(Members::new(ranks, ids), *own))
        })
    }
}
