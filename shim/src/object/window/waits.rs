//! Waiting for the words of control blocks, and waking who waits.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::fence;
use std::time::Duration;

use tagwire_pml::{ContextNames, Until};

use crate::error::{Class, Error, Result};
use crate::object::window::Window;
use crate::object::window::block::Word;
use crate::object::window::served;

/// So many looks are made before anything else is.
const LOOKS: u32 = 64;

/// How long the news of a failure may take to all ranks.
const NEWS: Duration = Duration::from_secs(1);

impl Window {
    /// Waits until `ready` finds what is waited for in the block of member `on`.
    ///
    /// # Errors
    /// Those of `ready`; `MPI_ERR_PROC_ABORTED` when a member of the window has failed.
    #[inline]
    pub(crate) fn wait(
        &self,
        on: usize,
        what: &str,
        mut ready: impl FnMut() -> Result<bool>,
    ) -> Result {
        // A look at a block that is not mapped takes as long as a message there and back.
        let looks = match self.members[on].block.is_mapped() {
            true => LOOKS,
            false => 1,
        };
        if self.is_asked {
            return serve_and_wait(self, on, what, &mut ready);
        }
        for _ in 0..looks {
            if ready()? {
                return Ok(());
            }
            std::hint::spin_loop();
        }
        self.wait_at_length(on, what, &mut ready)
    }

    #[cold]
    #[inline(never)]
    fn wait_at_length(
        &self,
        on: usize,
        what: &str,
        ready: &mut dyn FnMut() -> Result<bool>,
    ) -> Result {
        let block = &self.members[on].block;
        let is_mapped = block.is_mapped();
        if is_mapped {
            block.add(&self.messenger, Word::Waiting, 1)?;
        }
        let describe = |_: &ContextNames| format!("{what} of {}", self.called());
        let waited = self
            .messenger
            .progress_until(Until::done_with(&describe), || {
                let found = ready().and_then(|is_ready| {
                    if !is_ready {
                        self.check_members()?;
                    }
                    Ok(is_ready)
                });
                Ok(match found {
                    Ok(false) => None,
                    Ok(true) => Some(Ok(())),
                    Err(error) => Some(Err(error)),
                })
            });
        if is_mapped {
            block.subtract(&self.messenger, Word::Waiting, 1)?;
        }
        waited.map_err(Error::from)?
    }

    /// Checks that no member has failed, now or before: a team says it once of each.
    ///
    /// # Errors
    /// `MPI_ERR_PROC_ABORTED` when one has.
    pub(crate) fn check_members(&self) -> Result {
        self.check_whole()?;
        self.team.check_members().map_err(|error| {
            let error = Error::from(error);
            // What says nothing of the members may pass.
            if error.code() != Class::Intern as i32 {
                self.give_up(&error);
            }
            error
        })
    }

    /// Takes note of what has broken the window for this process.
    #[cold]
    pub(crate) fn give_up(&self, error: &Error) {
        let lost = || (error.code(), error.text().to_owned());
        self.lost.get_or_init(lost);
    }

    /// Meets all other members. Where one is known to have failed nobody is waited for.
    ///
    /// # Errors
    /// As [`check_members`](Self::check_members).
    pub(crate) fn barrier(&self) -> Result {
        self.check_whole()?;
        Ok(self.team.barrier()?)
    }

    /// Returns why a call has failed: where a member has freed the window that this process uses, because another has failed, that is
    /// the reason, which this process may hear of a moment later.
    #[cold]
    pub(crate) fn cause(&self, error: Error) -> Error {
        if error.code() != Class::Intern as i32 {
            return error;
        }
        let heard = self
            .messenger
            .progress_until(Some(NEWS), || Ok(self.check_members().err()));
        heard.unwrap_or(error)
    }

    #[inline]
    pub(super) fn check_whole(&self) -> Result {
        match self.lost.get() {
            Some((code, text)) => Err(Error::of_code(*code, text.as_str())),
            None => Ok(()),
        }
    }

    /// Wakes who waits for words of the block of member `on`, which have been changed.
    ///
    /// # Errors
    /// When the block cannot be read.
    #[inline]
    pub(crate) fn wake(&self, on: usize) -> Result {
        let block = &self.members[on].block;
        // The owner of another block looks when it has served the change.
        if block.is_mapped() && block.get(&self.messenger, Word::Waiting)? > 0 {
            self.wake_all();
        }
        Ok(())
    }

    #[cold]
    pub(super) fn wake_all(&self) {
        fence(SeqCst);
        for waker in self
            .members
            .iter()
            .filter_map(|member| member.waker.as_ref())
        {
            waker.wake();
        }
        // Another thread of this process.
        self.messenger.notify();
    }

    /// Counts a call of synchronization. `None`, with nothing counted, of one that has to make progress. Threads that count at once
    /// may count as one.
    #[inline]
    pub(crate) fn count_unless_due(&self) -> Option<()> {
        // Each time that the byte comes round.
        let calls = self.calls.load(Relaxed).wrapping_add(1);
        if calls == 0 {
            return None;
        }
        self.calls.store(calls, Relaxed);
        Some(())
    }

    /// Counts a call of synchronization, and makes progress with some. Returns whether this was one.
    ///
    /// # Errors
    /// Those of progress.
    #[inline]
    pub(crate) fn count_call(&self) -> Result<bool> {
        let is_due = self.count_unless_due().is_none();
        if is_due {
            self.calls.store(0, Relaxed);
            self.messenger.progress()?;
        }
        Ok(is_due)
    }
}

/// Counts a call that waits for nobody, and looks with some whether all members live: a program may call nothing else.
///
/// # Errors
/// As [`Window::check_members`].
#[inline]
pub(crate) fn count_passing(window: &Window) -> Result {
    match window.count_call()? {
        true => window.check_members(),
        false => Ok(()),
    }
}

/// Waits as [`Window::wait`] does, where others may ask for accesses: they come with the synchronization that is waited for.
#[inline(never)]
fn serve_and_wait(
    window: &Window,
    on: usize,
    what: &str,
    ready: &mut dyn FnMut() -> Result<bool>,
) -> Result {
    if ready()? {
        return Ok(());
    }
    let attended = served::attend(window, || {
        std::hint::spin_loop();
        match ready() {
            Ok(false) => None,
            other => Some(other),
        }
    });
    match attended {
        Some(ended) => ended.map(drop),
        None => window.wait_at_length(on, what, ready),
    }
}
