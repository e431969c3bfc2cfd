//! A thread that sleeps in a rank's place.
//!
//! Transports sleep each in its own way, on a futex or on descriptors of a library. Who waits for other things too, by a
//! descriptor or as a task of a runtime, has a thread sleep there:
//!
//! ```text
//!     arm: announce a sleep, look once more -----> the thread sleeps as the rank would
//!     poll(descriptor, others)  <----- tells ----- it wakes
//!     progress, arm, ...
//! ```

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use tagwire_base::Owner;

use crate::error::{Error, Result};
use crate::messenger::Messenger;
use crate::sleepers::Armed;

/// Tells when a rank has something to do. Its thread ends with it.
pub struct Wakeup {
    messenger: Arc<Messenger>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// How often something had happened when the caller was told last.
    seen: AtomicUsize,
    /// A forked child does not have the thread.
    owner: Owner,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// For the thread to take.
    armed: Option<Armed>,
    /// It was given one, and has not woken from it.
    is_asleep: bool,
    has_ended: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps whenever it is given a sleep, and tells after each.
    fn serve(&self, tell: impl Fn()) {
        let mut state = self.state();
        while !state.has_ended {
            let Some(armed) = state.armed.take() else {
                let woken = self.changed.wait(state);
                state = woken.unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(state);
            armed.sleep();
            self.state().is_asleep = false;
            // Code of others, with nothing locked.
            tell();
            state = self.state();
        }
    }
}

impl Wakeup {
    /// Opens one for a rank. After each sleep its thread calls `tell`, which makes no calls of the rank.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn open(messenger: &Arc<Messenger>, tell: impl Fn() + Send + 'static) -> Result<Self> {
        let shared = Arc::new(Shared::default());
        let served = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name(format!("descriptor {}", messenger.rank()))
            .spawn(move || served.serve(tell))
            .map_err(Error::NoThread)?;
        Ok(Self {
            messenger: Arc::clone(messenger),
            shared,
            thread: Some(thread),
            seen: AtomicUsize::new(messenger.sleepers.noted()),
            owner: Owner::here(),
        })
    }

    /// Makes progress once, and says that the caller is about to wait. Returns whether it may: from then on the caller is told
    /// when something comes, and after each [longest sleep](crate::WaitPolicy) also when nothing does, so that peers are
    /// looked after. Where it may not, something has happened since the last call, whoever has made the progress: requests
    /// may be complete.
    ///
    /// # Errors
    /// [`Error::WrongThread`].
    pub fn arm(&self) -> Result<bool> {
        let is_asleep = self.shared.state().is_asleep;
        let armed = self.messenger.arm(self.seen.load(Relaxed));
        self.seen.store(self.messenger.sleepers.noted(), Relaxed);
        let armed = armed?;
        if is_asleep {
            // What comes wakes it, as before.
            return Ok(armed.is_some());
        }
        let Some(armed) = armed else {
            return Ok(false);
        };
        let mut state = self.shared.state();
        state.armed = Some(armed);
        state.is_asleep = true;
        drop(state);
        self.shared.changed.notify_one();
        Ok(true)
    }

    /// Returns the rank that it is of.
    pub(crate) const fn messenger(&self) -> &Arc<Messenger> {
        &self.messenger
    }
}

impl Drop for Wakeup {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else {
            return;
        };
        if !self.owner.is_here() {
            // There is no such thread here, nor anybody who sleeps.
            std::mem::forget(thread);
            return;
        }
        self.shared.state().has_ended = true;
        self.shared.changed.notify_one();
        self.messenger.sleepers.wake();
        // One that panicked has nothing more to say.
        let _ = thread.join();
    }
}

impl fmt::Debug for Wakeup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Wakeup(rank {})", self.messenger.rank())
    }
}
