//! The groups of a session beside the world.

use std::sync::{Arc, PoisonError};

use tagwire_coll::Team;

use crate::error::Result;
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
