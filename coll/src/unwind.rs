//! Panics inside of operations.

use std::io::Write;

/// Ends the process when a panic drops it: the panic of a user's operation, say, of which the other members would never
/// hear.
pub(crate) struct NoUnwind;

impl Drop for NoUnwind {
    #[cold]
    fn drop(&mut self) {
        // Not `eprintln`, which panics when standard error is closed.
        let _ = writeln!(
            std::io::stderr(),
            "tagwire: a panic in a collective, which other ranks are in; ending the process"
        );
        std::process::abort();
    }
}
