//! How a process uses MPI: by the world model, by sessions, or by both (MPI-5.0, sections 11.2 to 11.4).

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::error::{Class, Error, Result};
use crate::lock::Lock;

/// What is open.
#[derive(Debug, Default)]
pub(crate) struct Models {
    /// Whether anything is.
    is_running: AtomicBool,
    state: Lock<State>,
}

#[derive(Debug, Default)]
struct State {
    world: World,
    sessions: usize,
    is_closed: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum World {
    #[default]
    Unused,
    Initialized,
    Finalized,
}

impl Models {
    /// Changes what is open. Returns whether the process leaves the job, which it does once: where nothing is open any more, and
    /// nothing may be opened, or `is_last`.
    ///
    /// # Errors
    /// What `change` refuses: then nothing is changed.
    fn change(&self, is_last: bool, change: impl FnOnce(&mut State) -> Result) -> Result<bool> {
        let mut state = self.state.lock();
        change(&mut state)?;
        let is_running = state.world == World::Initialized || state.sessions > 0;
        self.is_running.store(is_running, Relaxed);
        let leaves =
            !is_running && !state.is_closed && (is_last || state.world == World::Finalized);
        state.is_closed |= leaves;
        Ok(leaves)
    }

    /// Whether calls are allowed.
    #[inline]
    pub(crate) fn are_running(&self) -> bool {
        self.is_running.load(Relaxed)
    }

    /// Whether the world model was initialized, and whether it was finalized.
    pub(crate) fn of_world(&self) -> (bool, bool) {
        let world = self.state.lock().world;
        (world != World::Unused, world == World::Finalized)
    }

    /// Initializes the world model.
    ///
    /// # Errors
    /// `MPI_ERR_OTHER` where that was done before, or the process has left the job.
    pub(crate) fn begin_world(&self) -> Result {
        self.open(|state| match state.world {
            World::Unused => {
                state.world = World::Initialized;
                Ok(())
            }
            _ => Err(Error::new(Class::Other, "MPI was initialized before")),
        })
    }

    /// Finalizes it. Returns whether the process leaves the job.
    pub(crate) fn end_world(&self) -> bool {
        self.close(false, |state| state.world = World::Finalized)
    }

    /// Opens a session.
    ///
    /// # Errors
    /// `MPI_ERR_OTHER` where the process has left the job.
    pub(crate) fn begin_session(&self) -> Result {
        self.open(|state| {
            state.sessions += 1;
            Ok(())
        })
    }

    /// Closes one. Returns whether the process leaves the job.
    pub(crate) fn end_session(&self) -> bool {
        self.close(false, |state| state.sessions -= 1)
    }

    /// Says that the program exits. Returns whether the process leaves the job: not where something is open.
    pub(crate) fn exit(&self) -> bool {
        self.close(true, |_| {})
    }

    /// Opens something, unless the process has left the job. Whoever closes the last one in another thread comes before or after.
    fn open(&self, change: impl FnOnce(&mut State) -> Result) -> Result {
        let opened = self.change(false, |state| match state.is_closed {
            true => Err(Error::new(Class::Other, "the process has left its job")),
            false => change(state),
        });
        opened.map(|_| ())
    }

    fn close(&self, is_last: bool, change: impl FnOnce(&mut State)) -> bool {
        let closed = self.change(is_last, |state| {
            change(state);
            Ok(())
        });
        closed.unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_job_is_left_once_nothing_can_be_opened_any_more() {
        let world = Models::default();
        assert!(!world.are_running());
        world.begin_world().unwrap();
        assert!(world.begin_world().is_err());
        world.begin_session().unwrap();
        assert!(!world.end_world() && world.are_running());
        assert_eq!(world.of_world(), (true, true));
        assert!(world.end_session() && !world.are_running());
        assert!(world.begin_session().is_err() && !world.exit());

        let sessions = Models::default();
        for _round in 0..2 {
            sessions.begin_session().unwrap();
            assert!(!sessions.exit(), "one is open");
            assert!(!sessions.end_session());
        }
        assert_eq!(sessions.of_world(), (false, false));
        assert!(sessions.exit() && !sessions.exit());
    }
    /// A session opens while the last one is closed in another thread: either it is there, or the process leaves.
    #[test]
    fn the_job_is_left_or_a_session_is_open() {
        for _round in 0..20_000 {
            let models = Models::default();
            models.begin_session().unwrap();
            models.begin_world().unwrap();
            assert!(!models.end_world());
            let (leaves, opened) = std::thread::scope(|scope| {
                let opens = scope.spawn(|| models.begin_session().is_ok());
                (models.end_session(), opens.join().unwrap())
            });
            assert_ne!(leaves, opened);
            assert_eq!(models.are_running(), opened);
        }
    }
}
