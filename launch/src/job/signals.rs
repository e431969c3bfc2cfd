//! The launcher's own signals, as events that its loop can wait for.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rustix::process::Signal;
use signal_hook::SigId;

use super::processes;
use crate::error::{Error, Result};

const WATCHED: [Signal; 5] = [
    Signal::INT,
    Signal::TERM,
    Signal::HUP,
    Signal::USR1,
    Signal::TSTP,
];

/// Signal handlers belong to the process, so what restores them does too: while no job runs,
/// every watched signal does what it does by default.
struct Defaults {
    idle: Arc<AtomicBool>,
    jobs: Mutex<usize>,
}

impl Defaults {
    fn shared() -> &'static Self {
        static SHARED: OnceLock<Defaults> = OnceLock::new();
        SHARED.get_or_init(|| Self {
            idle: Arc::default(),
            jobs: Mutex::new(0),
        })
    }

    fn job_starts(&self, signals: &[Signal]) -> std::io::Result<()> {
        static REGISTERED: Mutex<Vec<i32>> = Mutex::new(Vec::new());
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        let mut registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
        *jobs += 1;
        self.idle.store(false, Ordering::SeqCst);
        for signal in signals.iter().map(|signal| signal.as_raw()) {
            if !registered.contains(&signal) {
                signal_hook::flag::register_conditional_default(signal, Arc::clone(&self.idle))?;
                registered.push(signal);
            }
        }
        Ok(())
    }

    fn job_ends(&self) {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        *jobs -= 1;
        self.idle.store(*jobs == 0, Ordering::SeqCst);
    }
}

/// Keeps the signals that jobs watch from doing what they do by default between two jobs, as long as it lives: whoever has it
/// has handlers of its own for them.
#[derive(Debug)]
#[non_exhaustive]
pub struct KeptSignals;

impl KeptSignals {
    /// Keeps them from now on.
    ///
    /// # Errors
    /// [`Error::System`] when the system refuses.
    pub fn keep() -> Result<Self> {
        let kept = Defaults::shared().job_starts(&[]);
        kept.map_err(|error| Error::system("watch for signals", error))?;
        Ok(Self)
    }
}

impl Drop for KeptSignals {
    fn drop(&mut self) {
        Defaults::shared().job_ends();
    }
}

/// Watches this process's signals as long as it lives.
#[derive(Debug)]
pub(super) struct Signals {
    watched: Vec<Watched>,
}

#[derive(Debug)]
struct Watched {
    signal: Signal,
    events: UnixStream,
    registration: SigId,
}

impl Signals {
    /// Watches the signals that this process does not ignore.
    pub fn watch() -> Result<Self> {
        let failed = |error| Error::system("watch for signals", error);
        // `nohup` and shells without job control have their children ignore some.
        let wanted: Vec<Signal> = WATCHED
            .into_iter()
            .filter(|&signal| !processes::ignores(signal))
            .collect();
        // From here on dropping `this` undoes what was done.
        let mut this = Self {
            watched: Vec::new(),
        };
        Defaults::shared().job_starts(&wanted).map_err(failed)?;
        for signal in wanted {
            this.watched.push(Watched::new(signal).map_err(failed)?);
        }
        Ok(this)
    }

    /// What becomes readable when a signal comes.
    pub fn sources(&self) -> impl Iterator<Item = &UnixStream> {
        self.watched.iter().map(|watched| &watched.events)
    }

    /// The signals that came since the last call, each as often as it came.
    pub fn take(&mut self) -> Vec<Signal> {
        let mut came = Vec::new();
        for watched in &mut self.watched {
            let mut bytes = [0; 16];
            if let Ok(count) = watched.events.read(&mut bytes) {
                came.extend(std::iter::repeat_n(watched.signal, count));
            }
        }
        came
    }
}

impl Watched {
    fn new(signal: Signal) -> std::io::Result<Self> {
        let (events, sender) = UnixStream::pair()?;
        events.set_nonblocking(true)?;
        let registration = signal_hook::low_level::pipe::register(signal.as_raw(), sender)?;
        Ok(Self {
            signal,
            events,
            registration,
        })
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for watched in &self.watched {
            signal_hook::low_level::unregister(watched.registration);
        }
        Defaults::shared().job_ends();
    }
}
