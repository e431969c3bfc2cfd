//! The groups of a session beside the world.

use std::sync::{Arc, PoisonError};

use tagwire_coll::Team;

use crate::context::Context;
use crate::error::Result;
use crate::session::Session;
use crate::shared::{Group, Shared};

impl Shared {
    /// Returns a group, for an operation that outlives the call.
    ///
    /// # Errors
    /// When it was freed.
    pub(crate) fn group(&self, group: Group) -> Result<Arc<Team>> {
        match group.0 {
            None => Ok(Arc::clone(&self.world)),
            Some(handle) => self.team(handle),
        }
    }

    /// Takes a group in.
    pub(crate) fn enter(&self, team: Team) -> Group {
        let mut groups = self.groups.write().unwrap_or_else(PoisonError::into_inner);
        Group(Some(groups.insert(Arc::new(team))))
    }

    /// Frees a group.
    ///
    /// # Errors
    /// When it is the world, or was freed.
    pub(crate) fn free(&self, group: Group) -> Result<()> {
        let mut groups = self.groups.write().unwrap_or_else(PoisonError::into_inner);
        let freed = group.0.and_then(|handle| groups.remove(handle));
        drop(groups);
        let context = self.world.context().as_u16();
        freed
            .map(drop)
            .ok_or_else(|| tagwire_pml::Error::NoSuchContext(context).into())
    }
}

/// Contexts beside the world's.
impl Context<'_> {
    /// Makes a context of the same ranks. All of them call it (MPI-5.0, section 7.4.2).
    ///
    /// # Errors
    /// When a rank fails or has no context left.
    pub fn duplicate(&self) -> Result<Self> {
        let shared = self.shared();
        let team = shared.with(self.group(), |team| Ok(team.duplicate()?))?;
        Ok(Self::new(self.session(), shared.enter(team)))
    }

    /// Makes a context of the ranks that give the same `color`, numbered in the order of their keys, and of their numbers
    /// here where keys are equal. All ranks call it; one without a color gets none (MPI-5.0, section 7.4.2).
    ///
    /// ```
    /// let session = tagwire::Session::open()?;
    /// let rank = session.rank();
    /// let alike = session.world().split(Some(rank % 2), 0)?.expect("a color was given");
    /// assert_eq!(alike.rank()?, rank / 2);
    /// alike.barrier()?;
    /// # session.close()?;
    /// # Ok::<(), tagwire::Error>(())
    /// ```
    ///
    /// # Errors
    /// When a rank fails or has no context left.
    pub fn split(&self, color: Option<u32>, key: i32) -> Result<Option<Self>> {
        let shared = self.shared();
        let team = shared.with(self.group(), |team| Ok(team.split(color, key)?))?;
        Ok(team.map(|team| Self::new(self.session(), shared.enter(team))))
    }

    /// Makes a context of these ranks, in this order. They alone call it (MPI-5.0, section 7.4.2,
    /// `MPI_Comm_create_group`); also after the failure of others.
    ///
    /// # Errors
    /// When this rank is not among them, or one is named twice; when one fails or has no context left.
    pub fn subset(&self, ranks: &[u32]) -> Result<Self> {
        let members: Vec<_> = ranks.iter().map(|rank| *rank as usize).collect();
        let shared = self.shared();
        let team = shared.with(self.group(), |team| Ok(team.subset(&members)?))?;
        Ok(Self::new(self.session(), shared.enter(team)))
    }

    /// Frees the context: this rank uses it no more. Receives that are posted in it complete as ever; messages that nobody has
    /// received are dropped.
    ///
    /// # Errors
    /// When it is the world's, or freed already.
    pub fn free(self) -> Result<()> {
        self.shared().free(self.group())
    }
}

impl Session {
    /// A new context: a matching space of its own, so that a library's messages and its caller's
    /// never meet. All ranks make it together: a [duplicate](Context::duplicate) of the world's.
    ///
    /// # Errors
    /// When all are in use: 65,536 with the world's, or fewer where the transport matches messages itself and has no
    /// room for so many (`tagwire info` shows how many). When a rank fails.
    pub fn create_context(&self) -> Result<Context<'_>> {
        self.world().duplicate()
    }
}
