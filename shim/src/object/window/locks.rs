//! Taking turns at the memory of a member.
//!
//! **The lock of a member** is what `MPI_Win_lock` takes. Who wants it draws a ticket, and has its turn when that is served. One
//! that shares it is counted as a reader, and has the next ticket served at once; one that excludes others waits until
//! there are no readers, and has the next served when it unlocks. So all come in the order of their tickets.
//!
//! **The values of a member** are changed by accumulates in two ways that exclude each other: single values by instructions (the
//! short way), or many under a lock (the long way). Who changes one by the short way notes that in a line of its own, and looks
//! whether somebody is on the long way. So short ways of different members move no line between processors, and a long way costs a
//! look at each member's line.
//!
//! ```text
//!     short way                              long way
//!     adds 1 to its own `short`              sets `long`, which is 0
//!     looks at `long`; if it is set, takes   waits until the `quick` and the `short` of all members are 0
//!       its 1 back, and waits until it is 0
//! ```
//!
//! The thread that initialized MPI has `quick` for itself: it stores where others add.
//!
//! **Who changes one value waits for no store** while nobody has gone the long way: the quick way is a store, a load and a store.
//! The first who goes the long way has all processes of the window pass a barrier instead (`membarrier`), once: who did not see its
//! word has been seen by it. From then on `long` says that notes are fenced.
//!
//! ```text
//!     quick way, nobody was on the long way   first long way
//!     stores `quick`                          sets `long`, which is `UNTAKEN`
//!     (the compiler keeps the order)          has all processors pass a barrier
//!     looks whether `long` is `UNTAKEN`       waits until all `quick` and `short` are 0
//! ```
//!
//! Where not all members are on one host, or one has no such barrier, `long` says so from the start.

use std::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
use std::sync::atomic::compiler_fence;

use rustix::thread::{MembarrierCommand, membarrier};
use tagwire_pml::Messenger;

use crate::error::{Class, Error, Result};
use crate::object::window::block::{Block, QuickWords, Word, long};
use crate::object::window::epochs::Locked;
use crate::object::window::{Member, Window};

/// A change of a single value that is noted, until ended.
#[must_use]
struct ShortWay<'w> {
    window: &'w Window,
    target: usize,
}

impl<'w> ShortWay<'w> {
    /// Notes one. `None`, with nothing noted, where somebody is on the long way.
    #[inline]
    fn begin(window: &'w Window, target: usize) -> Result<Option<Self>> {
        let (block, messenger) = (&window.members[target].block, window.messenger());
        block.add(messenger, Word::Short(window.me()), 1)?;
        let way = Self { window, target };
        if block.is_free(messenger)? {
            return Ok(Some(way));
        }
        way.end()?;
        Ok(None)
    }

    #[inline]
    fn end(self) -> Result {
        let (window, target) = (self.window, self.target);
        let own = Word::Short(window.me());
        window.members[target]
            .block
            .subtract(window.messenger(), own, 1)?;
        // It may be this member that the long way waits for.
        window.wake(target)
    }
}

impl Block {
    /// Returns whether nobody changes many values.
    #[inline]
    fn is_free(&self, messenger: &Messenger) -> Result<bool> {
        Ok(self.get(messenger, Word::Long)? & !long::FREE == 0)
    }
}

/// A change of a single value, until dropped.
pub(crate) struct QuickWay<'w> {
    window: &'w Window,
    words: QuickWords<'w>,
}

impl Drop for QuickWay<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.words.own.store(0, Release);
        // Release alone lets the compiler look before it stores.
        compiler_fence(SeqCst);
        // Who says only now that it waits looks again before it sleeps, when the store is to be seen.
        if self.words.waiting.load(Relaxed) > 0 {
            self.window.wake_all();
        }
    }
}

impl Window {
    /// Takes the lock of a member.
    ///
    /// # Errors
    /// Those of waiting.
    pub(crate) fn lock(&self, target: usize, how: Locked) -> Result {
        if how == Locked::Unchecked {
            return Ok(());
        }
        let (block, messenger) = (&self.members[target].block, self.messenger());
        let ticket = block.add(messenger, Word::Tickets, 1)?;
        let is_served = || Ok(block.get(messenger, Word::Serving)? == ticket);
        self.wait(target, "a lock", is_served)?;
        match how {
            Locked::Shared => {
                block.add(messenger, Word::Readers, 1)?;
                self.serve_next(target)
            }
            _ => {
                let is_alone = || Ok(block.get(messenger, Word::Readers)? == 0);
                self.wait(target, "the readers before an exclusive lock", is_alone)
            }
        }
    }

    /// Gives the lock of a member back.
    ///
    /// # Errors
    /// When the member is gone.
    pub(crate) fn unlock(&self, target: usize, how: Locked) -> Result {
        match how {
            Locked::Unchecked => Ok(()),
            Locked::Shared => {
                let block = &self.members[target].block;
                block.subtract(self.messenger(), Word::Readers, 1)?;
                self.wake(target)
            }
            Locked::Exclusive => self.serve_next(target),
        }
    }

    fn serve_next(&self, target: usize) -> Result {
        let block = &self.members[target].block;
        block.add(self.messenger(), Word::Serving, 1)?;
        self.wake(target)
    }

    /// Runs a change of a single value by an instruction. The member's block is mapped.
    ///
    /// # Errors
    /// Those of waiting.
    #[inline]
    pub(crate) fn short_way<R>(&self, target: usize, change: impl FnOnce() -> R) -> Result<R> {
        let way = loop {
            if let Some(way) = ShortWay::begin(self, target)? {
                break way;
            }
            let is_free = || self.members[target].block.is_free(self.messenger());
            self.wait(target, "an accumulate of another", is_free)?;
        };
        let changed = change();
        way.end()?;
        Ok(changed)
    }

    /// The same without a wait. `None`, with nothing done, where somebody is on the long way.
    ///
    /// # Errors
    /// When the member is gone.
    pub(crate) fn try_short_way<R>(
        &self,
        target: usize,
        change: impl FnOnce() -> R,
    ) -> Result<Option<R>> {
        let Some(way) = ShortWay::begin(self, target)? else {
            return Ok(None);
        };
        let changed = change();
        way.end()?;
        Ok(Some(changed))
    }

    /// Begins a short way of the one thread of this process that finds [shortcuts](crate::object::window::shortcuts): without a wait,
    /// and with a word of its own, which nobody else of the process changes. `None`, with nothing begun, where somebody is on the long
    /// way.
    #[inline(always)]
    pub(crate) fn quick_way<'w>(&'w self, to: &'w Member) -> Option<QuickWay<'w>> {
        let words = to.block.quick()?;
        words.own.store(1, Relaxed);
        compiler_fence(SeqCst);
        if words.long.load(SeqCst) != long::UNTAKEN && !notes_fenced(words) {
            return None;
        }
        Some(QuickWay {
            window: self,
            words,
        })
    }

    /// Runs a change of many values.
    ///
    /// # Errors
    /// Those of waiting, and of the change.
    pub(crate) fn long_way<R>(
        &self,
        target: usize,
        change: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        let (block, messenger) = (&self.members[target].block, self.messenger());
        let own = long::FREE | (self.me() as u64 + 1);
        let mut was = long::FREE;
        let is_taken = || {
            // Of members on other hosts it never is another.
            if block.is_mapped() && block.get(messenger, Word::Long)? == long::UNTAKEN {
                was = long::UNTAKEN;
            }
            let is_taken = block.replace(messenger, Word::Long, (was, own))?;
            if !is_taken {
                was = long::FREE;
            }
            Ok(is_taken)
        };
        self.wait(target, "an accumulate of another", is_taken)?;
        let passed = match was {
            long::UNTAKEN => pass_all(),
            _ => Ok(()),
        };
        let free = match passed {
            Ok(()) => long::FREE,
            Err(_) => long::UNTAKEN,
        };
        let ready = passed.and_then(|()| self.wait_for_short(target));
        let done = ready.and_then(|()| change());
        block.set(messenger, Word::Long, free)?;
        self.wake(target)?;
        done
    }

    fn wait_for_short(&self, target: usize) -> Result {
        let (block, messenger) = (&self.members[target].block, self.messenger());
        for member in 0..self.members.len() {
            let is_over = || {
                let quick = block.get(messenger, Word::Quick(member))?;
                Ok(quick == 0 && block.get(messenger, Word::Short(member))? == 0)
            };
            self.wait(target, "an atomic operation of another", is_over)?;
        }
        Ok(())
    }
}

/// Runs a change of many values of this process, without a wait. `None`, with nothing done, where anybody changes some.
///
/// # Errors
/// Those of the change.
pub(crate) fn try_long_way<R>(
    window: &Window,
    change: impl FnOnce() -> Result<R>,
) -> Result<Option<R>> {
    let (me, messenger) = (window.me(), window.messenger());
    let block = &window.members[me].block;
    let own = long::FREE | (me as u64 + 1);
    // Of a window with members on other hosts it never was untaken.
    if !block.replace(messenger, Word::Long, (long::FREE, own))? {
        return Ok(None);
    }
    let changed = match is_idle(window, block) {
        Ok(true) => change().map(Some),
        other => other.map(|_| None),
    };
    block.set(messenger, Word::Long, long::FREE)?;
    window.wake(me)?;
    changed
}

/// Returns whether nobody changes a single value.
fn is_idle(window: &Window, block: &Block) -> Result<bool> {
    for member in 0..window.members.len() {
        for word in [Word::Quick(member), Word::Short(member)] {
            if block.get(window.messenger(), word)? != 0 {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Notes the quick way by a store that is fenced. Returns whether nobody is on the long way; else nothing is noted.
#[inline(never)]
fn notes_fenced(words: QuickWords<'_>) -> bool {
    words.own.store(1, SeqCst);
    let is_free = words.long.load(SeqCst) & !long::FREE == 0;
    if !is_free {
        words.own.store(0, Release);
    }
    is_free
}

/// Has all processors that run processes of the window pass a barrier.
///
/// # Errors
/// `MPI_ERR_INTERN` where the system refuses it, which it did not when the window was made.
fn pass_all() -> Result {
    membarrier(MembarrierCommand::GlobalExpedited).map_err(|error| {
        let text = format!("the system refuses a barrier on all processes: {error}");
        Error::new(Class::Intern, text)
    })
}

/// Lets others have this process pass a barrier. Returns whether the system can do that.
pub(super) fn register() -> bool {
    membarrier(MembarrierCommand::RegisterGlobalExpedited).is_ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests;
