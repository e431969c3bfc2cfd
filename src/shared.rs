//! What a session shares with its operations.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tagwire_base::{ContextId, Rank, SourceSelector, TagSelector};
use tagwire_pml::slab::{Handle, Slab};
use tagwire_pml::{ContextPair, Messenger, Status};

use crate::coll::{self, Members, Team};
use crate::error::Result;
use crate::orphans::Orphans;
use crate::selector::{Source, TagChoice};
use crate::tasks::Tasks;

/// What operations need of the session that they are of.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) messenger: Arc<Messenger>,
    pub(crate) orphans: Orphans,
    pub(crate) tasks: Tasks,
    pub(crate) close_timeout: Duration,
    pub(crate) world: Arc<Team>,
    pub(crate) groups: RwLock<Slab<Arc<Team>>>,
}

/// A group of a session: the world, or one in its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Group(pub(crate) Option<Handle>);

impl Group {
    pub(crate) const WORLD: Self = Self(None);
}

impl Shared {
    /// Calls `look` with a group.
    ///
    /// # Errors
    /// When it was freed.
    #[inline]
    pub(crate) fn with<R>(&self, group: Group, look: impl FnOnce(&Team) -> Result<R>) -> Result<R> {
        match group.0 {
            None => look(&self.world),
            Some(handle) => look(&*self.team(handle)?),
        }
    }

    pub(crate) fn team(&self, handle: Handle) -> Result<Arc<Team>> {
        let groups = self.groups.read().unwrap_or_else(PoisonError::into_inner);
        let team = groups.get(handle).cloned();
        team.ok_or_else(|| coll::Error::Argument("the context was freed".to_owned()).into())
    }

    /// Returns the rank of the job that has this number in a group, and the ids of the context on both sides.
    #[inline]
    pub(crate) fn peer(&self, group: Group, number: u32) -> Result<(Rank, ContextPair)> {
        self.with(group, |team| {
            let (members, number) = (team.members(), number as usize);
            let found = members.rank(number).zip(members.context(number));
            let (rank, peer) = found.ok_or_else(|| no_such_rank(number, team.size()))?;
            let own = team.context();
            Ok((rank, ContextPair { own, peer }))
        })
    }

    /// Returns what a receive from `source` with `tag` in a group accepts, and this rank's id of the context.
    #[inline]
    pub(crate) fn source(
        &self,
        group: Group,
        source: Source,
        tag: TagChoice,
    ) -> Result<(SourceSelector, TagSelector, ContextId)> {
        let tag = tag.selector()?;
        self.with(group, |team| {
            let selector = match source {
                Source::Any => SourceSelector::ANY,
                Source::Rank(number) => {
                    let rank = team.members().rank(number as usize);
                    let rank = rank.ok_or_else(|| no_such_rank(number as usize, team.size()))?;
                    SourceSelector::exact(rank)
                }
            };
            Ok((selector, tag, team.context()))
        })
    }

    /// Returns a status with the source's number in a group.
    #[inline]
    pub(crate) fn numbered(&self, group: Group, status: Status) -> Status {
        self.numbers(group).of(status)
    }

    /// Returns the numbers of a group's members.
    #[inline]
    pub(crate) fn numbers(&self, group: Group) -> Numbers {
        let team = group.0.and_then(|handle| self.team(handle).ok());
        Numbers(team.map(|team| team.members().clone()))
    }
}

/// The numbers of a group's members, for operations that may end after the group was freed.
#[derive(Debug, Clone)]
pub(crate) struct Numbers(Option<Members>);

impl Numbers {
    /// Those of the job: for operations whose end names nobody too.
    pub(crate) const OF_JOB: Self = Self(None);

    /// Returns a status with the source's number.
    #[inline]
    pub(crate) fn of(&self, mut status: Status) -> Status {
        if let Some(members) = &self.0
            && let Some(number) = members.member(status.source)
        {
            status.source = Rank::new(number as u32);
        }
        status
    }
}

fn no_such_rank(number: usize, size: usize) -> tagwire_pml::Error {
    let number = u32::try_from(number).unwrap_or(Rank::MAX).min(Rank::MAX);
    tagwire_pml::Error::NoSuchRank {
        rank: Rank::new(number),
        size: size as u32,
    }
}
