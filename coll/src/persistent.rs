//! Persistent operations: made once, started again and again.
#![allow(unsafe_code)]

use std::fmt;
use std::mem::transmute;
use std::sync::Arc;
use std::time::Duration;

use tagwire_base::Tag;
use tagwire_layout::{Basic, Layout, Operation};

use crate::allreduce;
use crate::call::Call;
use crate::check::Called;
use crate::error::{Error, Result};
use crate::nonblocking::{Request, begin};
use crate::opening::Opening;
use crate::operations::CollectiveOperation;
use crate::reduction::Reduction;
use crate::tags::{AGREE, PERSISTENT};
use crate::team::Team;

/// A persistent operation (MPI-5.0, section 6.13): inactive at first, and whenever the end of a round was taken.
///
/// Members make their persistent operations in the same order, and may start them in any. Dropped while a round is
/// under way, the round goes on.
pub struct Persistent {
    team: Arc<Team>,
    tag: Tag,
    begin: Begin<'static>,
    round: Option<Request>,
}

/// Begins a round.
type Begin<'a> = Box<dyn Fn(&Arc<Team>, Tag) -> Request + Send + Sync + 'a>;

impl fmt::Debug for Persistent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Persistent")
            .field("tag", &self.tag)
            .field("round", &self.round)
            .finish_non_exhaustive()
    }
}

impl Team {
    /// Makes a persistent operation, inactive. `make` returns the operation of a round, with the same arguments each time; it
    /// is called at the start of a round, and here, where the arguments are checked.
    ///
    /// Now and then it waits for the other members (MPI-5.0, section 6.13, has it that it may): whenever as many were made as
    /// were free the last time.
    ///
    /// # Safety
    /// `make` may be called until the returned value is dropped. What an operation borrows that it has returned stays borrowed
    /// until the [round](Persistent::round) has ended, also when the returned value is dropped before.
    ///
    /// # Errors
    /// What is wrong with the arguments; when an earlier operation of the group has failed, or a member fails;
    /// [`Error::Persistent`] on all members when there are too many that any of them has not dropped.
    pub unsafe fn init<'a, O: CollectiveOperation + 'a>(
        self: &Arc<Self>,
        make: impl Fn() -> O + Send + Sync + 'a,
    ) -> Result<Persistent> {
        let operation = make();
        operation.check(self)?;
        self.check()?;
        self.messenger().check_thread()?;
        let tag = self.persistent_tag()?;
        let called = self
            .checks()
            .then(|| Called::new(operation.describe(self), operation.counts(self)));
        drop(operation);
        let begin = move |team: &Arc<Self>, tag| {
            let opening = Opening {
                // A round of an operation that was dropped.
                older: team.active().find((team.context(), tag)),
                called: called.clone(),
            };
            // SAFETY: the caller of `init` keeps what the operation borrows until the round is over.
            unsafe { begin(team, tag, opening.if_any(), false, make()) }
        };
        let begin: Begin<'a> = Box::new(begin);
        Ok(Persistent {
            team: Arc::clone(self),
            tag,
            // SAFETY: the types differ in a lifetime alone: that of what the caller keeps for as long as this is used.
            begin: unsafe { transmute::<Begin<'a>, Begin<'static>>(begin) },
            round: None,
        })
    }
}

impl Team {
    /// Returns the tag of the next persistent operation. Members free theirs when they like, so that before tags come again all
    /// say which ones they have.
    fn persistent_tag(&self) -> Result<Tag> {
        if let Some(tag) = self.tags.take() {
            return Ok(tag);
        }
        let mut taken = self.tags.taken();
        let any = Reduction {
            operation: &Operation::BitOr,
            layout: &Layout::of(Basic::U8),
        };
        let call = Call::new(self, AGREE);
        self.run(allreduce::recursive_doubling(call, any, &mut taken))?;
        self.tags.agree(&taken);
        let tag = self.tags.take();
        tag.ok_or(Error::Persistent(PERSISTENT as usize))
    }
}

impl Persistent {
    /// Begins a round.
    ///
    /// # Errors
    /// [`Error::Active`] while one is under way or its end was not taken; when an operation of the group has failed, or this
    /// thread may not call. The operation is inactive then, unless it was active.
    pub fn start(&mut self) -> Result<()> {
        if self.round.is_some() {
            return Err(Error::Active);
        }
        self.team.check()?;
        self.team.messenger().check_thread()?;
        self.round = Some((self.begin)(&self.team, self.tag));
        Ok(())
    }

    /// Returns whether a round was started whose end was not taken.
    #[must_use]
    pub const fn is_active(&self) -> bool {
        self.round.is_some()
    }

    /// Returns the round that was started and whose end was not taken.
    #[must_use]
    pub const fn round(&self) -> Option<&Request> {
        self.round.as_ref()
    }

    /// Takes how the round ended, without progress; `None` while it is under way. An inactive operation has ended well.
    #[must_use = "the end is there once"]
    pub fn take(&mut self) -> Option<Result<()>> {
        let Some(round) = &self.round else {
            return Some(Ok(()));
        };
        let end = round.take();
        if end.is_some() {
            self.round = None;
        }
        end
    }

    /// Makes progress once, and takes the end of the round. Returns whether it has ended.
    ///
    /// # Errors
    /// As [`Request::test`].
    pub fn test(&mut self) -> Result<bool> {
        self.look(|round| round.test())
    }

    /// Waits until the round has ended, up to `timeout`. At once for an inactive operation.
    ///
    /// # Errors
    /// As [`Request::wait`].
    pub fn wait(&mut self, timeout: Option<Duration>) -> Result<()> {
        self.look(|round| round.wait(timeout).map(|()| true))
            .map(|_| ())
    }

    fn look(&mut self, look: impl FnOnce(&Request) -> Result<bool>) -> Result<bool> {
        let Some(round) = &self.round else {
            return Ok(true);
        };
        let ended = look(round);
        // Nobody else takes an end: it was taken here, or is still to come.
        if round.is_taken() {
            self.round = None;
        }
        ended
    }
}

impl Drop for Persistent {
    fn drop(&mut self) {
        self.team.tags.give_back(self.tag);
    }
}
