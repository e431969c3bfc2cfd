//! The windows that one thread finds without a lock: the thread that made the process, by which most programs call.
//!
//! ```text
//!     place 0    handle, window    the place of a window is in the lowest bits of its handle
//!     place 1    handle, window    an empty place has a handle that belongs to another place
//!     ...
//! ```
//!
//! That thread alone looks at the entries, and drops what they point to: never while it looks. Another thread that takes a window
//! out clears its entry and leaves the window to the first thread, which drops it when it next makes a window.
#![allow(unsafe_code)]

use std::fmt;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicPtr, AtomicUsize};

use tagwire_base::thread;

use crate::abi::Win;
use crate::error::Result;
use crate::lock::Lock;
use crate::object::window::Window;

/// So many windows have a place of their own. Of two that share one the younger has it.
const PLACES: usize = 64;

/// The windows that the first thread finds at once.
pub(crate) struct Shortcuts {
    /// The number of that thread.
    owner: u64,
    handles: [AtomicUsize; PLACES],
    windows: [AtomicPtr<Window>; PLACES],
    /// What entries point to, and what was taken out since the first thread last looked through it.
    held: Lock<Vec<Arc<Window>>>,
}

impl fmt::Debug for Shortcuts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shortcuts of {}", self.held.lock().len())
    }
}

impl Shortcuts {
    /// Returns an empty table of the calling thread.
    pub(crate) fn new() -> Self {
        Self {
            owner: thread::take_number(),
            handles: std::array::from_fn(|place| AtomicUsize::new(!place)),
            windows: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
            held: Lock::default(),
        }
    }

    /// Takes a window in. Those of other threads are not found here.
    pub(crate) fn enter(&self, window: &Arc<Window>) {
        if thread::number() != self.owner {
            return;
        }
        let handle = window.handle().0;
        let place = handle % PLACES;
        self.windows[place].store(Arc::as_ptr(window).cast_mut(), Relaxed);
        self.handles[place].store(handle, Relaxed);
        let mut held = self.held.lock();
        held.push(Arc::clone(window));
        self.drop_unlisted(&mut held);
    }

    /// Takes a window out.
    pub(crate) fn remove(&self, win: Win) {
        let place = win.0 % PLACES;
        let entry = &self.handles[place];
        let _ = entry.compare_exchange(win.0, !place, Relaxed, Relaxed);
        if thread::number() == self.owner {
            self.drop_unlisted(&mut self.held.lock());
        }
    }

    /// Has nothing found any more, of windows too that the program has not freed.
    pub(crate) fn close(&self) {
        for (place, entry) in self.handles.iter().enumerate() {
            entry.store(!place, Relaxed);
        }
    }

    /// Drops what no entry points to. The first thread alone calls it.
    fn drop_unlisted(&self, held: &mut Vec<Arc<Window>>) {
        held.retain(|window| {
            let handle = window.handle().0;
            self.handles[handle % PLACES].load(Relaxed) == handle
        });
    }

    /// Calls `look` with a window, on the first thread. `None` for others, and where the window has no place. `look` makes no
    /// window and frees none.
    #[inline(always)]
    pub(crate) fn find<R>(&self, win: Win, look: impl FnOnce(&Window) -> Option<R>) -> Option<R> {
        let window = self.entry(win)?;
        // SAFETY: the pointer is that of a window which `held` keeps: this thread alone drops what is held, in `enter` and `remove`,
        // neither of which `look` calls.
        // JUSTIFICATION: a guard and a look into the table of windows take 30 instructions, of 120 that a put may take.
        look(unsafe { &*window })
    }

    /// Calls `body` with a window: that of its place here, else the one that `all` finds. `body` does not free the window.
    ///
    /// # Errors
    /// Those of `all`.
    #[inline]
    pub(crate) fn with<R>(
        &self,
        win: Win,
        all: impl FnOnce() -> Result<Arc<Window>>,
        body: impl FnOnce(&Window) -> R,
    ) -> Result<R> {
        let found;
        let window = match self.entry(win) {
            // SAFETY: the pointer is that of a window which the table of all windows keeps too, until the program frees it, which it
            // does not while a call on it goes on: `held` may drop its own where `body` makes another window, or frees one.
            // JUSTIFICATION: as above; an epoch is two calls, or four.
            Some(window) => unsafe { &*window },
            None => {
                found = all()?;
                &found
            }
        };
        Ok(body(window))
    }

    /// Returns the window in its place, on the first thread.
    #[inline(always)]
    fn entry(&self, win: Win) -> Option<*const Window> {
        let place = win.0 % PLACES;
        if thread::number() != self.owner || self.handles[place].load(Relaxed) != win.0 {
            return None;
        }
        Some(self.windows[place].load(Relaxed))
    }
}
