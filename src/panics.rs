//! A panic says of which rank it is.
//!
//! What a process does about panics is one thing for all of it, and so is what is kept here for that.

use std::io::Write;
use std::panic;
use std::sync::{Mutex, Once, PoisonError};
use std::thread::{self, ThreadId};

/// The sessions of this process that are open, each with the thread that opened it.
static OPEN: Mutex<Vec<(u64, ThreadId, String)>> = Mutex::new(Vec::new());

/// Says of a rank that panics, until it is dropped, which one it is.
#[derive(Debug)]
pub(crate) struct Named(Option<u64>);

impl Named {
    /// Names a rank. Whoever has set a hook of their own before has it called behind this; whoever sets one later replaces this.
    pub(crate) fn new(rank: u32, size: u32) -> Self {
        if size < 2 || thread::panicking() {
            return Self(None);
        }
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let other = panic::take_hook();
            panic::set_hook(Box::new(move |info| {
                if let Some(name) = name() {
                    let _ = writeln!(std::io::stderr(), "tagwire: {name} panics:");
                }
                other(info);
            }));
        });
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        let number = open.last().map_or(0, |(last, ..)| last + 1);
        let name = format!("rank {rank} of {size}");
        open.push((number, thread::current().id(), name));
        Self(Some(number))
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        // Who panics meanwhile is named only where nobody has the list.
        if let Some(number) = self.0 {
            let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
            open.retain(|(other, ..)| *other != number);
        }
    }
}

/// Returns the rank that panics: the only one of this process, or that of this thread.
fn name() -> Option<String> {
    // Who panics may be whoever has the list.
    let open = OPEN.try_lock().ok()?;
    let own = thread::current().id();
    let found = match &open[..] {
        [only] => Some(only),
        several => several.iter().rev().find(|(_, thread, _)| *thread == own),
    };
    found.map(|(.., name)| name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_is_named_while_it_is_open() {
        assert_eq!(name(), None);
        let first = Named::new(1, 2);
        assert_eq!(name().as_deref(), Some("rank 1 of 2"));
        let elsewhere = || thread::scope(|scope| scope.spawn(name).join().unwrap());
        assert_eq!(elsewhere().as_deref(), Some("rank 1 of 2"));
        let second = thread::scope(|scope| scope.spawn(|| Named::new(0, 2)).join().unwrap());
        assert_eq!(name().as_deref(), Some("rank 1 of 2"));
        assert_eq!(elsewhere(), None);
        drop(first);
        assert_eq!(name().as_deref(), Some("rank 0 of 2"));
        drop(second);
        let _alone = Named::new(0, 1);
        assert_eq!(name(), None);
    }
}
