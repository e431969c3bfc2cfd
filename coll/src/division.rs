//! Parts of groups that are made without waiting.

use std::sync::{Arc, OnceLock};

use tagwire_base::ContextId;

use crate::duplicate::Exchange;
use crate::error::{Error, Result};
use crate::groups::{Alike, NONE};
use crate::members::Members;
use crate::nonblocking::{Request, start_owned};
use crate::team::Team;

/// A group that is being made of the members of another that give the same color. Dropped before it was taken, it keeps its context.
#[derive(Debug)]
pub struct Division {
    team: Arc<Team>,
    alike: Alike,
    own: ContextId,
    entries: Arc<OnceLock<Vec<u8>>>,
    request: Request,
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
        // Without a context the others are told, who would wait for this rank.
        let own = team.messenger().open_context().unwrap_or(NONE);
        let alike = Alike {
            color: Some(color),
            key,
            first: 0,
        };
        let entries = Arc::new(OnceLock::new());
        let exchange = Exchange {
            what: "a division of the group",
            own: alike.entry(own),
            all: Arc::clone(&entries),
        };
        let started = start_owned(team, exchange);
        if started.is_err() && own != NONE {
            team.messenger().close_context(own)?;
        }
        Ok(Self {
            team: Arc::clone(team),
            alike,
            own,
            entries,
            request: started?,
        })
    }

    /// Returns whether it has been made, or has failed, without progress.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.request.is_complete()
    }

    /// Takes the group; `None` while it is being made.
    ///
    /// # Errors
    /// When a member has failed or had no context left; when it was taken before.
    #[must_use = "the group is there once"]
    pub fn take(&self) -> Option<Result<Team>> {
        let end = self.request.take()?;
        let entry = self.alike.entry(self.own);
        let members = self
            .entries
            .get()
            .map(|all| self.alike.members(&self.team, &entry, all));
        let made = match (end, members) {
            (Ok(()), Some((ranks, ids))) if !ids.contains(&NONE) => {
                let members = Members::new(ranks, ids);
                return Some(Ok(self.team.derived(members, self.own)));
            }
            (Ok(()), _) => Err(tagwire_pml::Error::NoContext.into()),
            (Err(error), _) => Err(error),
        };
        if self.own != NONE {
            let _ = self.team.messenger().close_context(self.own);
        }
        Some(made)
    }
}
