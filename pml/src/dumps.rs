//! The hang dump: who asks for it, and what contexts are called in it.

use std::fmt;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tagwire_base::{ContextId, Rank};

use crate::error::Result;

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

/// Describes what a wait is for.
pub type WaitsFor<'w> = dyn Fn(&ContextNames) -> String + 'w;

/// How long a wait may take, and what it is for.
#[derive(Default, Clone, Copy)]
pub struct Until<'w> {
    pub(crate) timeout: Option<Duration>,
    pub(crate) what: Option<&'w WaitsFor<'w>>,
}

impl fmt::Debug for Until<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Until({:?})", self.timeout)
    }
}

impl From<Option<Duration>> for Until<'_> {
    fn from(timeout: Option<Duration>) -> Self {
        Self {
            timeout,
            what: None,
        }
    }
}

impl<'w> Until<'w> {
    /// Returns that of a wait without a bound, which dumps describe as `what` returns.
    #[must_use]
    pub const fn done_with(what: &'w WaitsFor<'w>) -> Self {
        Self {
            timeout: None,
            what: Some(what),
        }
    }
}

/// What a rank's dumps are asked for by, and the names in them.
#[derive(Default)]
pub struct Dumps {
    wanted: Arc<AtomicBool>,
    /// Returns the names of now, where somebody has any.
    names: OnceLock<Box<dyn Fn() -> ContextNames + Send + Sync>>,
}

impl fmt::Debug for Dumps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dumps({:?})", self.wanted)
    }
}

impl Dumps {
    /// Returns the flag that asks for one: set it (from a signal handler, say), and a thread that waits writes to standard
    /// error what it waits for.
    #[must_use]
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.wanted)
    }

    /// Has contexts called by the names that `now` returns, which is called with nothing locked. The first call counts.
    pub fn name_contexts(&self, now: impl Fn() -> ContextNames + Send + Sync + 'static) {
        let _ = self.names.set(Box::new(now));
    }

    /// Writes the dump that `make` makes to standard error where one is asked for, and `what` the caller waits for.
    ///
    /// # Errors
    /// Those of `make`.
    #[inline]
    pub fn write_if_wanted(
        &self,
        make: impl FnOnce() -> Result<String>,
        what: Option<&WaitsFor<'_>>,
    ) -> Result<()> {
        if self.wanted.swap(false, Relaxed) {
            self.write(make()?, what);
        }
        Ok(())
    }

    pub(crate) fn names(&self) -> ContextNames {
        let now = self.names.get();
        now.map_or_else(ContextNames::default, |now| now())
    }

    #[cold]
    fn write(&self, mut text: String, what: Option<&WaitsFor<'_>>) {
        if let Some(what) = what {
            let what = what(&self.names());
            text += &format!("  this call waits for the others in {what}\n");
        }
        // In one piece: other ranks write to the same place.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}
