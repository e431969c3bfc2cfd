//! What every kit opens its jobs by.

use std::fmt;

use tagwire_base::Rank;

/// Ends a rank the hard way.
pub(crate) type KillRank<T> = Box<dyn FnMut(Rank, Box<T>)>;

/// The ranks of one job, all in this process.
pub struct Job<T: ?Sized> {
    pub(crate) ranks: Vec<Box<T>>,
    pub(crate) kill: Option<KillRank<T>>,
}

impl<T: ?Sized> Job<T> {
    /// The transports of ranks 0, 1, and so on.
    #[must_use]
    pub fn new(ranks: Vec<Box<T>>) -> Self {
        Self { ranks, kill: None }
    }

    /// How a rank dies without a goodbye, in a way that the transport's failure detection
    /// notices. Without this, a dead rank is one that is not driven any more, and detection is
    /// not checked.
    #[must_use]
    pub fn with_kill(mut self, kill: impl FnMut(Rank, Box<T>) + 'static) -> Self {
        self.kill = Some(Box::new(kill));
        self
    }

    /// Returns the job where it has as many ranks as were asked for.
    pub(crate) fn of(self, size: u32) -> Result<Self, String> {
        match self.ranks.len() {
            opened if opened == size as usize => Ok(self),
            opened => Err(format!(
                "the factory opened {opened} ranks where {size} were asked for"
            )),
        }
    }
}

impl<T: ?Sized> fmt::Debug for Job<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Job({} ranks)", self.ranks.len())
    }
}

/// What distinguishes the factories of a kit from those of others.
pub trait Kit: 'static {
    /// What a factory opens.
    type Job;
    /// What a check wants of its ranks.
    type Wanted;
    /// What a factory claims of its subject beside the number of ranks.
    type Claims: Default + fmt::Debug;
}

/// Opens a job of so many ranks.
type OpenJob<K> = Box<dyn Fn(u32, &<K as Kit>::Wanted) -> Result<<K as Kit>::Job, String>>;

/// Opens the jobs that checks run on, and says what their subject claims.
pub struct Factory<K: Kit> {
    pub(crate) most_ranks: u32,
    pub(crate) absent: Option<String>,
    pub(crate) claims: K::Claims,
    open: OpenJob<K>,
}

impl<K: Kit> Factory<K> {
    /// A factory for jobs of up to `most_ranks`.
    pub(crate) fn of(
        most_ranks: u32,
        open: impl Fn(u32, &K::Wanted) -> Result<K::Job, String> + 'static,
    ) -> Self {
        Self {
            most_ranks: most_ranks.max(1),
            absent: None,
            claims: K::Claims::default(),
            open: Box::new(open),
        }
    }

    /// A factory for what this machine does not have: no check applies, and each says for what `reason`.
    #[must_use]
    pub fn absent(reason: impl Into<String>) -> Self {
        Self {
            absent: Some(format!("SKIPPED: {}", reason.into())),
            ..Self::of(1, |_, _| Err("the transport is absent".to_owned()))
        }
    }

    /// Says how large a job may be.
    #[must_use]
    pub fn most_ranks(mut self, most: u32) -> Self {
        self.most_ranks = most;
        self
    }

    /// Opens a job of `size` ranks.
    ///
    /// # Errors
    /// What went wrong, in words.
    pub fn job(&self, size: u32, wanted: &K::Wanted) -> Result<K::Job, String> {
        (self.open)(size, wanted)
    }
}

impl<K: Kit> fmt::Debug for Factory<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Factory(up to {} ranks, {:?})",
            self.most_ranks, self.claims
        )
    }
}
