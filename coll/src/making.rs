//! Groups that are made without waiting: each member tells the others of itself.

use std::sync::{Arc, OnceLock};

use tagwire_base::ContextId;

use crate::allgather;
use crate::call::Call;
use crate::error::Result;
use crate::groups::NONE;
use crate::nonblocking::{Request, start_owned};
use crate::operations::CollectiveOperation;
use crate::team::Team;

/// A group that is being made of members of another. Dropped before it was taken, it keeps its context.
#[derive(Debug)]
pub(crate) struct Making {
    pub(crate) team: Arc<Team>,
    /// The context that this rank gives; [`NONE`] where it has none left.
    pub(crate) own: ContextId,
    /// What all members have told.
    all: Arc<OnceLock<Vec<u8>>>,
    request: Request,
}

impl Making {
    /// Starts to make it: each member tells what `entry` returns for the context that it gives. `what` names the operation.
    ///
    /// # Errors
    /// When an earlier operation of the group has failed, or this thread may not call.
    pub(crate) fn start<const N: usize>(
        team: &Arc<Team>,
        what: &'static str,
        entry: impl FnOnce(ContextId) -> [u8; N],
    ) -> Result<Self> {
        // Without a context the others are told, who would wait for this rank.
        let own = team.messenger().open_context().unwrap_or(NONE);
        let all = Arc::new(OnceLock::new());
        let exchange = Exchange {
            what,
            own: entry(own),
            all: Arc::clone(&all),
        };
        let started = start_owned(team, exchange);
        if started.is_err() && own != NONE {
            team.messenger().close_context(own)?;
        }
        Ok(Self {
            team: Arc::clone(team),
            own,
            all,
            request: started?,
        })
    }

    /// Returns whether it has been made, or has failed, without progress.
    pub(crate) fn is_complete(&self) -> bool {
        self.request.is_complete()
    }

    /// Takes the group that `make` returns of what all members have told: `None` where one had no context left. `None` while it is
    /// being made.
    ///
    /// # Errors
    /// When a member has failed or had no context left; when it was taken before.
    pub(crate) fn take(&self, make: impl FnOnce(&[u8]) -> Option<Team>) -> Option<Result<Team>> {
        let end = self.request.take()?;
        let made = end.and_then(|()| {
            let team = self.all.get().and_then(|all| make(all));
            team.ok_or_else(|| tagwire_pml::Error::NoContext.into())
        });
        if made.is_err() && self.own != NONE {
            let _ = self.team.messenger().close_context(self.own);
        }
        Some(made)
    }
}

/// Tells each member what every other gives.
struct Exchange<const N: usize> {
    /// What it is a part of, in words.
    what: &'static str,
    own: [u8; N],
    all: Arc<OnceLock<Vec<u8>>>,
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
