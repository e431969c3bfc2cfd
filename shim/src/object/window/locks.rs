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

use std::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
use std::sync::atomic::compiler_fence;

use crate::error::Result;
use crate::object::window::Window;
use crate::object::window::block::Word;
use crate::object::window::epochs::Locked;

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
        let (block, messenger) = (&self.members[target].block, self.messenger());
        let own = Word::Short(self.me());
        let is_free = || Ok(block.get(messenger, Word::Long)? == 0);
        loop {
            block.add(messenger, own, 1)?;
            if is_free()? {
                break;
            }
            block.subtract(messenger, own, 1)?;
            // It may be this member that the long way waits for.
            self.wake(target)?;
            self.wait(target, "an accumulate of another", is_free)?;
        }
        let changed = change();
        block.subtract(messenger, own, 1)?;
        self.wake(target)?;
        Ok(changed)
    }

    /// Takes a short way of the one thread of this process that is in the table of windows: without a wait, and with a word of its
    /// own, which nobody else of the process changes. `None`, with nothing done, where somebody is on the long way.
    #[inline(always)]
    pub(crate) fn quick_way<R>(&self, target: usize, change: impl FnOnce() -> R) -> Option<R> {
        let words = self.members[target].block.mapped()?;
        let own = words.get(Word::Quick(self.me()));
        own.store(1, SeqCst);
        let is_free = words.get(Word::Long).load(SeqCst) == 0;
        let changed = is_free.then(change);
        own.store(0, Release);
        // Release alone lets the compiler look before it stores.
        compiler_fence(SeqCst);
        // Who says only now that it waits looks again before it sleeps, when the store is to be seen.
        if words.get(Word::Waiting).load(Relaxed) > 0 {
            self.wake_all();
        }
        changed
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
        let own = self.me() as u64 + 1;
        let is_taken = || block.take(messenger, Word::Long, own);
        self.wait(target, "an accumulate of another", is_taken)?;
        let done = self.wait_for_short(target).and_then(|()| change());
        block.set(messenger, Word::Long, 0)?;
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
