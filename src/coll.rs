//! What stands in place of `tagwire-coll` in a build without the feature `coll`: the ranks of the job are the one group, and
//! no operation of theirs is under way.

use std::sync::Arc;
use std::time::Duration;

use tagwire_base::bootstrap::SharedBootstrap;
use tagwire_base::config::Setting;
use tagwire_base::{Config, ContextId, Rank};
use tagwire_pml::{Failure, Messenger, ThreadLevel};

/// What can go wrong in a group.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The layer below refused.
    #[error(transparent)]
    Pml(tagwire_pml::Error),
    /// A member is gone.
    #[error(transparent)]
    Failed(Failure),
    /// An argument is wrong on this rank alone.
    #[error("{0}")]
    Argument(String),
}

impl Error {
    pub(crate) const fn code(&self) -> u32 {
        match self {
            Self::Pml(error) => error.code(),
            Self::Failed(_) => 720,
            Self::Argument(_) => 723,
        }
    }
}

pub(crate) type Result<T> = std::result::Result<T, Error>;

/// An operation under way, of which there is none.
#[derive(Debug, Clone)]
pub(crate) enum Request {}

impl Request {
    pub(crate) const fn is_complete(&self) -> bool {
        match *self {}
    }

    pub(crate) const fn take(&self) -> Option<Result<()>> {
        match *self {}
    }

    pub(crate) const fn wait(&self, _: Option<Duration>) -> Result<()> {
        match *self {}
    }
}

/// The ranks of a job.
#[derive(Debug, Clone)]
pub(crate) struct Members(usize);

impl Members {
    pub(crate) fn rank(&self, member: usize) -> Option<Rank> {
        (member < self.0).then(|| Rank::new(member as u32))
    }

    pub(crate) fn context(&self, member: usize) -> Option<ContextId> {
        (member < self.0).then_some(ContextId::WORLD)
    }

    pub(crate) const fn member(&self, rank: Rank) -> Option<usize> {
        Some(rank.as_u32() as usize)
    }
}

/// The group of all ranks.
#[derive(Debug)]
pub(crate) struct Team {
    messenger: Arc<Messenger>,
    members: Members,
}

impl Team {
    pub(crate) const fn messenger(&self) -> &Arc<Messenger> {
        &self.messenger
    }

    pub(crate) const fn members(&self) -> &Members {
        &self.members
    }

    pub(crate) const fn context(&self) -> ContextId {
        ContextId::WORLD
    }

    pub(crate) fn me(&self) -> usize {
        self.messenger.rank().as_u32() as usize
    }

    pub(crate) const fn size(&self) -> usize {
        self.members.0
    }
}

/// Opens this process's rank as `config` says, and returns the group of all ranks.
///
/// # Errors
/// As [`tagwire_pml::open`].
pub(crate) fn open(
    config: &Config,
    level: ThreadLevel,
    bootstrap: &SharedBootstrap,
) -> tagwire_pml::Result<Team> {
    let messenger = tagwire_pml::open(config, level, Box::new(bootstrap.clone()))?;
    Ok(Team {
        members: Members(messenger.size() as usize),
        messenger: Arc::new(messenger),
    })
}

/// Returns the lists of settings that opening a rank reads, for a registry.
pub(crate) fn settings() -> Vec<&'static [Setting]> {
    tagwire_pml::settings::all()
}
