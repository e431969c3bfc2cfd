//! Ranks of a kit that end.

use std::thread::{self, JoinHandle};

/// Ranks that are closing, each on a thread of its own: where a rank hears others out, it may need
/// their progress.
#[derive(Debug, Default)]
pub(super) struct Closing(Vec<JoinHandle<()>>);

impl Closing {
    /// Closes a rank.
    pub(super) fn close<T: Send + ?Sized + 'static>(&mut self, transport: Box<T>) {
        self.0.push(thread::spawn(move || drop(transport)));
    }

    /// Waits until all have closed.
    pub(super) fn wait(&mut self) {
        for closing in self.0.drain(..) {
            // A panic was reported where it happened.
            let _ = closing.join();
        }
    }
}
