//! Duplicates of groups that are made without waiting.

use std::sync::{Arc, OnceLock};

use tagwire_base::ContextId;

use crate::allgather;
use crate::call::Call;
use crate::error::Result;
use crate::groups::{NONE, ids_of};
use crate::members::Members;
use crate::nonblocking::{Request, start_owned};
use crate::operations::CollectiveOperation;
use crate::team::Team;

/// A duplicate of a group that is being made. Dropped before it was taken, it keeps its context.
#[derive(Debug)]
pub struct Duplicate {
    team: Arc<Team>,
    own: ContextId,
    ids: Arc<OnceLock<Vec<u8>>>,
    request: Request,
}

impl Duplicate {
    /// Begins to make another group of the same members, and returns at once (MPI-5.0, section 7.4.2, `MPI_Comm_idup`). It is
    /// one of the operations of the group, as those that [`Team::start`] starts.
    ///
    /// # Errors
    /// When an earlier operation of the group has failed, or this thread may not call.
    pub fn of(team: &Arc<Team>) -> Result<Self> {
        // Without a context the others are told, who would wait for this rank.
        let own = team.messenger().open_context().unwrap_or(NONE);
        let ids = Arc::new(OnceLock::new());
        let exchange = Exchange {
            what: "a duplication of the group",
            own: own.as_u16().to_ne_bytes(),
            all: Arc::clone(&ids),
        };
        let started = start_owned(team, exchange);
        if started.is_err() && own != NONE {
            team.messenger().close_context(own)?;
        }
        Ok(Self {
            team: Arc::clone(team),
            own,
            ids,
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
        let ids = self.ids.get().map(|bytes| ids_of(bytes));
        let made = match (end, ids) {
            (Ok(()), Some(ids)) if !ids.contains(&NONE) => {
                let ranks = self.team.members().ranks().collect();
                let members = Members::new(ranks, ids);
                return Some(Ok(self.team.derived_alike(members, self.own)));
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

/// Tells each member what every other gives.
pub(crate) struct Exchange<const N: usize> {
    /// What it is a part of, in words.
    pub(crate) what: &'static str,
    pub(crate) own: [u8; N],
    pub(crate) all: Arc<OnceLock<Vec<u8>>>,
}

impl<const N: usize> CollectiveOperation for Exchange<N> {
    fn check(&self, _: &Team) -> Result<()> {
        Ok(())
    }

    fn describe(&self, _: &Team) -> String {
        self.what.to_owned()
    }

    async fn steps(&mut self, call: Call<'_>) -> Result<()> {
        let mut all = vec![0; N * call.size()];
        allgather::allgather(call, &self.own, &mut all)?.await?;
        let _ = self.all.set(all);
        Ok(())
    }
}
