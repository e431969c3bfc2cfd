//! What contexts are called where a rank describes what it waits for.

use std::fmt;

use tagwire_base::{ContextId, Rank};

/// Returns the name of a context by its id: by that of a peer where one is given, else by this rank's own.
type Lookup = dyn Fn(Option<Rank>, ContextId) -> Option<String>;

/// The names of contexts at one moment, by which whoever uses the rank knows them.
#[derive(Default)]
pub struct ContextNames(Option<Box<Lookup>>);

impl fmt::Debug for ContextNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ContextNames")
    }
}

impl ContextNames {
    /// Returns the names that `look_up` finds. It is called while the rank is locked, and calls nothing that may wait for it.
    #[must_use]
    pub fn new(look_up: impl Fn(Option<Rank>, ContextId) -> Option<String> + 'static) -> Self {
        Self(Some(Box::new(look_up)))
    }

    /// Returns what the context is called for which this rank has the id.
    #[must_use]
    pub fn own(&self, id: ContextId) -> String {
        self.find(None, id)
    }

    /// Returns what the context is called for which `peer` has the id: sends say that one.
    #[must_use]
    pub fn of_peer(&self, peer: Rank, id: ContextId) -> String {
        self.find(Some(peer), id)
    }

    fn find(&self, peer: Option<Rank>, id: ContextId) -> String {
        let found = self.0.as_ref().and_then(|look_up| look_up(peer, id));
        found.unwrap_or_else(|| format!("{id:?}"))
    }
}
