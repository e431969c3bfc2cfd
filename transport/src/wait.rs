//! Sleeping until something arrives.

use std::time::Duration;

use tagwire_base::Time;

/// What [`Waiter::arm`] gives and [`Waiter::sleep`] takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitKey(pub u32);

/// Puts threads of one rank to sleep until the transport has something for them. Usable from
/// any thread, also while another thread drives the transport.
///
/// ```text
///     let key = waiter.arm();       // from now on an arrival wakes
///     transport.progress(..);       // what came before is seen here
///     if nothing { waiter.sleep(key, timeout) } else { waiter.disarm() }
/// ```
///
/// The sleeper pays for closing the race with a sender that is just storing its message (a
/// process-wide barrier inside `arm`); senders pay one load.
pub trait Waiter: Send + Sync {
    /// Announces that this rank is about to sleep.
    fn arm(&self) -> WaitKey;

    /// Sleeps until an arrival, a [`wake`](Waiter::wake), a signal, or `timeout`. Returns at
    /// once when one of them came since `key` was given. May return early without cause.
    fn sleep(&self, key: WaitKey, timeout: Duration);

    /// Takes back an `arm` that is not followed by `sleep`.
    fn disarm(&self);

    /// Wakes every sleeper of this rank: some other thread has completed what it waits for.
    fn wake(&self);

    /// Has the rank called again at a moment of its clock although nothing comes, where it is called only for what comes, as the
    /// ranks of a simulation are. Returns whether that is so. A rank that calls by itself is not called: then this does nothing.
    fn call_at(&self, at: Time) -> bool {
        let _ = at;
        false
    }
}
