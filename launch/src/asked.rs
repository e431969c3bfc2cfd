//! `SIGUSR1` asks the ranks of a process what they wait for.
//!
//! A handler belongs to the process, and so does what is kept here: while no rank is open the signal does what it does by
//! default. A program, a batch system or a checkpointer that handles or ignores the signal before the first rank opens keeps it.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::process::Signal;
use signal_hook::SigId;
use signal_hook::flag;

use crate::job::is_default;

/// What this process does about the signal.
#[derive(Debug)]
struct Handler {
    /// Whether the signal does what it does by default; `None` before the first rank opened.
    idle: Option<Arc<AtomicBool>>,
    ranks: usize,
}

static HANDLER: Mutex<Handler> = Mutex::new(Handler {
    idle: None,
    ranks: 0,
});

impl Handler {
    fn open(&mut self, asked: Arc<AtomicBool>) -> std::io::Result<Option<SigId>> {
        let signal = Signal::USR1.as_raw();
        let idle = match &self.idle {
            Some(idle) => idle,
            None if !is_default(Signal::USR1) => return Ok(None),
            None => {
                let idle = Arc::default();
                flag::register_conditional_default(signal, Arc::clone(&idle))?;
                self.idle.insert(idle)
            }
        };
        let registration = flag::register(signal, asked)?;
        idle.store(false, SeqCst);
        self.ranks += 1;
        Ok(Some(registration))
    }

    fn close(&mut self, registration: SigId) {
        signal_hook::low_level::unregister(registration);
        self.ranks -= 1;
        if let (0, Some(idle)) = (self.ranks, &self.idle) {
            idle.store(true, SeqCst);
        }
    }
}

/// Lets the signal ask a rank, until this is dropped.
#[derive(Debug)]
pub struct Asked(Option<SigId>);

impl Asked {
    /// Has the signal set `flag`, which asks a rank what it waits for. Where the signal is somebody else's, or no handler can be
    /// added, the rank works without.
    #[must_use]
    pub fn new(flag: Arc<AtomicBool>) -> Self {
        let mut handler = HANDLER.lock().unwrap_or_else(PoisonError::into_inner);
        Self(handler.open(flag).ok().flatten())
    }

    /// Returns one that asks nobody.
    #[must_use]
    pub const fn none() -> Self {
        Self(None)
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if let Some(registration) = self.0.take() {
            let mut handler = HANDLER.lock().unwrap_or_else(PoisonError::into_inner);
            handler.close(registration);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raise() {
        signal_hook::low_level::raise(Signal::USR1.as_raw()).unwrap();
    }

    /// In one test, since the handler is one for the process.
    #[test]
    fn the_signal_asks_those_that_are_open() {
        let flags = [Arc::<AtomicBool>::default(), Arc::default()];
        let [first, second] = flags.each_ref().map(|flag| Asked::new(Arc::clone(flag)));
        raise();
        let asked = || flags.each_ref().map(|flag| flag.swap(false, SeqCst));
        assert_eq!(asked(), [true, true]);
        drop(first);
        raise();
        assert_eq!(asked(), [false, true]);
        drop(second);
        let idle = |handler: &Handler| handler.idle.as_ref().is_some_and(|idle| idle.load(SeqCst));
        assert!(idle(&HANDLER.lock().unwrap()), "it would end the process");
        let _again = Asked::new(Arc::clone(&flags[0]));
        raise();
        assert_eq!(asked(), [true, false]);
    }
}
