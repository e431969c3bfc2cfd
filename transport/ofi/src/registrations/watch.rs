//! The watch over memory of this process: one descriptor and one thread, for as long as anything is watched.

use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{self, JoinHandle};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

use super::changes::{self, Changes};
use super::ranges::Ranges;

/// The thread's name.
pub(crate) const THREAD: &str = "tagwire-memory";

/// Ranges that a process can watch, over all its ranks and networks.
pub(super) const SLOTS: usize = 1 << 16;

/// Taken by a test, it keeps the thread from reading events.
#[cfg(test)]
pub(super) static HELD: Mutex<()> = Mutex::new(());

/// What the thread has in common with the owners of ranges.
#[derive(Debug)]
struct Shared {
    /// Before the table: once it is closed, nobody waits any more, also not who frees the table.
    changes: Changes,
    ranges: Ranges,
}

/// The watch of the process.
#[derive(Debug)]
pub(super) struct Watch {
    /// Before the thread, which so has the last hold of it, and closes the descriptor: until then it reads.
    shared: Arc<Shared>,
    _thread: Reader,
    /// The slots that nobody has. Held while a range begins or ends to be watched: one that ends could otherwise take the watch off pages
    /// of one that begins. The thread never takes it.
    free: Mutex<Slots>,
}

#[derive(Debug, Default)]
struct Slots {
    returned: Vec<usize>,
    unused: usize,
}

impl Watch {
    /// Returns the watch of this process, which the first caller begins.
    ///
    /// # Errors
    /// Where the kernel has none, or forbids it.
    pub(super) fn of_process() -> io::Result<Arc<Self>> {
        static WATCH: Mutex<Weak<Watch>> = Mutex::new(Weak::new());
        let mut watch = WATCH.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(watch) = watch.upgrade() {
            return Ok(watch);
        }
        let shared = Arc::new(Shared {
            changes: Changes::open()?,
            ranges: Ranges::new(SLOTS),
        });
        let thread = Reader::start(Arc::clone(&shared))?;
        let begun = Arc::new(Self {
            shared,
            _thread: thread,
            free: Mutex::default(),
        });
        *watch = Arc::downgrade(&begun);
        Ok(begun)
    }

    /// Watches whole pages; `None` where they cannot be.
    pub(super) fn watch(self: &Arc<Self>, range: Range<usize>) -> Option<Watched> {
        let Shared { changes, ranges } = &*self.shared;
        // What was read already, and is about what was there before, is not to end what is entered now.
        let _ = ranges.settled(|| Some(()));
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = free.returned.pop().unwrap_or(free.unused);
        if slot == SLOTS {
            return None;
        }
        free.unused = free.unused.max(slot + 1);
        ranges.enter(slot, &range);
        if changes.watch(&range).is_err() {
            ranges.leave(slot);
            free.returned.push(slot);
            return None;
        }
        drop(free);
        let mut watched = Watched {
            watch: Arc::clone(self),
            slot,
            range,
            writable: false,
        };
        // It is looked at once it is watched: what takes its place from now on ends it.
        watched.writable = changes::private(&watched.range)?;
        (!ranges.is_discarded(&watched.range)).then_some(watched)
    }

    /// Returns how many ranges have ended, since their memory changed.
    pub(super) fn ended(&self) -> u64 {
        self.shared.ranges.ended()
    }
}

/// A range that is watched, until this is dropped.
#[derive(Debug)]
pub(super) struct Watched {
    watch: Arc<Watch>,
    slot: usize,
    range: Range<usize>,
    writable: bool,
}

impl Watched {
    /// Returns whether the memory may be written to.
    pub(super) const fn is_writable(&self) -> bool {
        self.writable
    }

    /// Returns whether an event that was read has ended it.
    pub(super) fn has_ended(&self) -> bool {
        !self.watch.shared.ranges.is_whole(self.slot)
    }

    /// Returns whether this is the memory that it was when it began to be watched, whichever thread has changed what since; `None` where
    /// changes follow each other too fast to know.
    ///
    /// Nobody can have had new memory at the place before the kernel counted the change. Where its count is 0, the event was read, and the
    /// slot is seen to have ended (`Ranges::settled`). Without the count, memory that one thread unmaps and another maps at once would
    /// be taken for the old one until the first thread's event is read.
    pub(super) fn is_same(&self) -> Option<bool> {
        let Shared { changes, ranges } = &*self.watch.shared;
        ranges.settled(|| changes.is_quiet().then(|| ranges.is_whole(self.slot)))
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let Shared { changes, ranges } = &*self.watch.shared;
        let free = &self.watch.free;
        let mut free = free.lock().unwrap_or_else(PoisonError::into_inner);
        let is_mapped = ranges.is_whole(self.slot);
        ranges.leave(self.slot);
        // What was unmapped is no longer watched. Of one that ended, the rest may be: its end costs its owner a wait, no more.
        if is_mapped {
            ranges.uncovered(&self.range, |part| changes.forget(&part));
        }
        free.returned.push(self.slot);
    }
}

/// The thread that reads what has changed.
#[derive(Debug)]
struct Reader {
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
    shared: Weak<Shared>,
}

impl Reader {
    fn start(shared: Arc<Shared>) -> io::Result<Self> {
        let stop = eventfd(0, EventfdFlags::CLOEXEC)?;
        let (stop, weak) = (Arc::new(stop), Arc::downgrade(&shared));
        let stopped = Arc::clone(&stop);
        let builder = thread::Builder::new().name(THREAD.to_owned());
        let run = move || run(shared, &stopped);
        // A handler could unmap memory, and would wait there for this very thread.
        let thread = changes::without_signals(|| builder.spawn(run))?;
        Ok(Self {
            stop,
            thread: Some(thread),
            shared: weak,
        })
    }
}

/// Reads events until `stop` says so. Between that and the end of the process nothing here waits, allocates or frees: threads that
/// change memory wait for this one.
fn run(shared: Arc<Shared>, stop: &OwnedFd) {
    loop {
        let mut ready = [
            PollFd::new(&shared.changes, PollFlags::IN),
            PollFd::new(stop, PollFlags::IN),
        ];
        let _ = poll(&mut ready, None);
        if !ready[1].revents().is_empty() {
            break;
        }
        if !ready[0].revents().is_empty() {
            #[cfg(test)]
            drop(HELD.lock());
            shared.ranges.take(|each| shared.changes.read(each));
        }
    }
    // The last hold: closing the descriptor lets all go that wait.
    drop(shared);
}

impl Drop for Reader {
    fn drop(&mut self) {
        let is_of_parent = self
            .shared
            .upgrade()
            .is_none_or(|shared| shared.changes.is_of_parent());
        let thread = self.thread.take();
        if is_of_parent {
            // A forked child has no such thread, and its parent's is to go on.
            return;
        }
        let _ = rustix::io::write(&*self.stop, &1_u64.to_ne_bytes());
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}
