//! The limit of open files, which belongs to the process: jobs and stores beside each other share it.

use std::sync::{Mutex, PoisonError};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors that each rank costs who starts it: process, leash, two pipes of output, and the
/// other ends while it is started.
const PER_STARTED: u64 = 6;
/// Descriptors that each rank of a job costs its store, wherever that rank runs: connection, and memory that it leaves
/// there.
const PER_SERVED: u64 = 2;
/// Descriptors for everything else.
const SPARE_FILES: u64 = 128;

/// What the running jobs and stores need, and what the limit was before the first of them raised it.
#[derive(Debug)]
struct Shared {
    users: usize,
    wanted: u64,
    before: Option<Rlimit>,
}

static SHARED: Mutex<Shared> = Mutex::new(Shared {
    users: 0,
    wanted: 0,
    before: None,
});

/// Room for the descriptors of one job's ranks or of one store, until dropped. The last one of the process puts the limit
/// back.
#[derive(Debug)]
pub(crate) struct FileLimit {
    wanted: u64,
}

impl FileLimit {
    /// Makes room for what starts `ranks` ranks.
    pub fn of_ranks(ranks: u32) -> Self {
        Self::raise(u64::from(ranks) * PER_STARTED)
    }

    /// Makes room for the store of a job of `ranks` ranks on all hosts.
    pub fn of_store(ranks: u32) -> Self {
        Self::raise(u64::from(ranks) * PER_SERVED)
    }

    fn raise(wanted: u64) -> Self {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.users += 1;
        shared.wanted += wanted;
        let now = getrlimit(Resource::Nofile);
        let needed = shared.wanted + SPARE_FILES;
        let possible = now.maximum.map_or(needed, |maximum| needed.min(maximum));
        if now.current.is_some_and(|current| current < possible) {
            let raised = Rlimit {
                current: Some(possible),
                maximum: now.maximum,
            };
            // When it cannot be raised, starting the ranks says what lacks.
            if setrlimit(Resource::Nofile, raised).is_ok() {
                shared.before.get_or_insert(now);
            }
        }
        Self { wanted }
    }

    /// The limit that ranks get, where this process has raised its own.
    pub fn before(&self) -> Option<Rlimit> {
        SHARED.lock().unwrap_or_else(PoisonError::into_inner).before
    }
}

impl Drop for FileLimit {
    fn drop(&mut self) {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.users -= 1;
        shared.wanted -= self.wanted;
        if shared.users == 0
            && let Some(before) = shared.before.take()
        {
            // It was the limit before, and lowering is always allowed.
            let _ = setrlimit(Resource::Nofile, before);
        }
    }
}
