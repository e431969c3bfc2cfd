//! Calls that wait for no other thread: those of threads that have partitions ready.

use std::hint::spin_loop;

use super::Messenger;
use crate::layer::Layer;

/// How often a thread tries to move things on that another may be about to leave alone.
const NUDGES: u32 = 16;

impl Messenger {
    /// As [`Messenger::call`], where that needs no waiting for another thread; `None` where it does.
    pub(crate) fn try_call<T>(&self, body: impl FnOnce(&mut Layer) -> T) -> Option<T> {
        let mut layer = self.lanes.main().try_enter()?;
        let answer = body(&mut layer);
        self.leave(layer);
        Some(answer)
    }

    /// Makes progress once, unless another thread has the rank for longer than a moment: that one is woken if it is about
    /// to sleep, and what is to be done is done by the next call of anybody that makes progress.
    pub(crate) fn nudge(&self) {
        for _ in 0..NUDGES {
            if let Some(mut layer) = self.lanes.main().try_enter() {
                let events = layer.progress();
                self.partitioned.drive(&mut layer);
                drop(layer);
                self.drive();
                return self.after_progress(events);
            }
            spin_loop();
        }
        self.sleepers.wake();
    }
}
