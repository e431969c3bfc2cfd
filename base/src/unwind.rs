//! What must not be left by a panic: an operation to which buffers are lent, or that other ranks are in.

use std::fmt::Display;
use std::io::Write;

/// Ends the process when a panic drops it: a buffer that is lent would be given back, and what is still under way would write to
/// it, or read what is no longer there; other ranks would wait for good.
///
/// What panics while operations are under way is code of others that the library calls: a bootstrap, a subscriber of log lines, a
/// user's operation.
#[derive(Debug)]
#[must_use = "guards until it is dropped"]
pub struct NoUnwind(&'static str);

impl NoUnwind {
    /// Guards `what`, words that follow "a panic in".
    #[inline]
    pub const fn of(what: &'static str) -> Self {
        Self(what)
    }

    /// It is over: panics do no harm any more.
    #[inline]
    pub const fn over(self) {
        std::mem::forget(self);
    }
}

impl Drop for NoUnwind {
    #[cold]
    fn drop(&mut self) {
        end_process(format_args!(
            "a panic in {}, while buffers are lent to it or other ranks are in it",
            self.0
        ));
    }
}

/// Says why, where anybody listens, and ends the process without unwinding.
#[cold]
pub fn end_process(why: impl Display) -> ! {
    // Not `eprintln`, which panics when standard error is closed.
    let _ = writeln!(std::io::stderr(), "tagwire: {why}; ending the process");
    std::process::abort();
}
