//! The limit of open files, which belongs to the process: jobs that run beside each other share it.

use std::sync::{Mutex, PoisonError};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors that each rank costs the launcher: process, leash, connection, memory that it
/// leaves with the store, two pipes of output, and the other ends while it is started.
const FILES_PER_RANK: u64 = 8;
/// Descriptors for everything else.
const SPARE_FILES: u64 = 128;

/// What the running jobs need, and what the limit was before the first of them raised it.
#[derive(Debug)]
struct Shared {
    jobs: usize,
    wanted: u64,
    before: Option<Rlimit>,
}

static SHARED: Mutex<Shared> = Mutex::new(Shared {
    jobs: 0,
    wanted: 0,
    before: None,
});

/// Room for the descriptors of one job, until dropped. The last one of the process puts the limit back.
#[derive(Debug)]
pub(super) struct FileLimit {
    wanted: u64,
}

impl FileLimit {
    /// Makes room for the descriptors of `ranks` ranks, beside those of other jobs.
    pub fn raise(ranks: u32) -> Self {
        let wanted = u64::from(ranks) * FILES_PER_RANK;
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.jobs += 1;
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
        shared.jobs -= 1;
        shared.wanted -= self.wanted;
        if shared.jobs == 0
            && let Some(before) = shared.before.take()
        {
            // It was the limit before, and lowering is always allowed.
            let _ = setrlimit(Resource::Nofile, before);
        }
    }
}
