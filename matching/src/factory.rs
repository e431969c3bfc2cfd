//! What makes the engines that a program adds.

use std::fmt;

use tagwire_base::named::Spec;

use crate::description::Description;
use crate::engine::Engine;
#[cfg(feature = "engines")]
use crate::judged::Judged;
use crate::storage::Capacity;

/// Makes engines of one kind.
pub trait Factory: Send + Sync {
    /// Returns an engine, empty and with these bounds.
    fn open(&self, parameters: &Spec, capacity: Capacity) -> Box<dyn Engine + Send>;

    /// As [`FromParameters::counting`](crate::kit::FromParameters::counting).
    fn open_counting(
        &self,
        parameters: &Spec,
        capacity: Capacity,
    ) -> Option<Box<dyn Engine + Send>> {
        let _ = (parameters, capacity);
        None
    }

    /// Whether there is such an engine.
    ///
    /// # Errors
    /// Why not.
    fn check(&self, parameters: &Spec) -> Result<(), String> {
        let _ = parameters;
        Ok(())
    }

    /// Whether the generations of handles count the entries of each queue.
    fn counts_entries(&self, parameters: &Spec) -> bool {
        let _ = parameters;
        true
    }

    /// Returns the same engine for somebody who judges its answers.
    ///
    /// # Errors
    /// Why it cannot be made with these bounds.
    #[cfg(feature = "engines")]
    fn open_judged(&self, parameters: &Spec, capacity: Capacity) -> Result<Judged, String> {
        Ok(Judged::of(self.open(parameters, capacity)))
    }
}

/// An added engine.
pub(crate) struct Added {
    pub(crate) description: Description,
    pub(crate) factory: Box<dyn Factory>,
}

impl Added {
    /// Returns one that stays as long as the process.
    pub(crate) fn kept(description: Description, factory: Box<dyn Factory>) -> &'static Self {
        Box::leak(Box::new(Self {
            description,
            factory,
        }))
    }
}

impl fmt::Debug for Added {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Added")
            .field(&self.description.named.name)
            .finish()
    }
}
