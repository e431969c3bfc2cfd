//! What the two ends of an operation do alike: their rounds, and how they end.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use tagwire_base::{Rank, SourceSelector};

use super::round::Round;
use crate::error::{Error, Result};
use crate::layer::Layer;
use crate::messenger::Messenger;

/// An end, as its handle and the rank share it.
pub trait Side: Debug + Send + Sync + 'static {
    /// Returns the messenger of the rank that it is of.
    fn messenger(&self) -> &Arc<Messenger>;

    /// Returns the rank of the other end.
    fn peer(&self) -> Rank;

    /// Returns which round it is in.
    fn round(&self) -> &Round;

    /// Returns how many partitions the buffer has on this side.
    fn partitions(&self) -> u32;

    /// Begins a round.
    ///
    /// # Errors
    /// When one is under way, or the operation has failed or was freed.
    fn start(&self) -> Result<()>;

    /// Moves the round on. Returns whether everything is over.
    ///
    /// # Errors
    /// When it cannot be over any more.
    fn move_on(&self, layer: &mut Layer, epoch: u64) -> Result<bool>;

    /// Returns whether nobody can touch the buffer any more, now that the operation is freed, or dropped.
    fn is_settled(&self) -> bool;

    /// Returns which way the partitions take, and why; `None` before the two ends are matched.
    fn describe(&self) -> Option<String>;

    /// The handle is gone: nobody starts a round any more, or waits.
    fn abandon(&self) {
        // Tells the other end, too.
        let _ = self.is_settled();
    }

    /// Moves the round on, and ends it where everything is over.
    ///
    /// # Errors
    /// When it cannot be over any more: the operation has failed.
    fn poll(&self, layer: &mut Layer) -> Result<Option<()>> {
        let round = self.round();
        let Some(epoch) = round.under_way()? else {
            return Ok(Some(()));
        };
        match self.move_on(layer, epoch) {
            Ok(true) => {
                round.end();
                Ok(Some(()))
            }
            Ok(false) => Ok(None),
            Err(error) => {
                round.fail();
                // That the peer is gone says more than that its end is.
                let gone = match error {
                    Error::BadRound(_) => {
                        layer.receive_can_happen(SourceSelector::from(self.peer()))
                    }
                    _ => Ok(()),
                };
                Err(gone.err().unwrap_or(error))
            }
        }
    }
}

/// The handle of an end. Dropped, it ends the operation.
#[derive(Debug)]
pub struct Handle<S: Side>(pub(super) Arc<S>);

impl<S: Side> Handle<S> {
    /// Returns how many partitions the buffer has on this side.
    #[must_use]
    pub fn partitions(&self) -> u32 {
        self.0.partitions()
    }

    /// Begins a round: partitions may become ready, and the buffer of a receive may be written (MPI-5.0, section 4.2.1).
    ///
    /// # Errors
    /// When one is under way, or the operation has failed or was freed.
    pub fn start(&self) -> Result<()> {
        self.0.start()
    }

    /// Ends the round if the buffer is the caller's again: what is sent has left, and what is received has arrived.
    ///
    /// # Errors
    /// When the peer is gone: the operation is over.
    pub fn test(&self) -> Result<bool> {
        let messenger = self.0.messenger();
        messenger.progress()?;
        let polled = messenger.call(|layer| self.0.poll(layer))?;
        Ok(polled.is_some())
    }

    /// Waits until all partitions were ready and the buffer is the caller's again, and ends the round.
    /// At once where none is under way.
    ///
    /// # Errors
    /// As [`test`](Handle::test); [`Error::TimedOut`], and the round goes on.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<()> {
        let messenger = self.0.messenger();
        messenger.wait_until(timeout, |layer| self.0.poll(layer))
    }

    /// Ends the operation.
    ///
    /// # Errors
    /// [`Error::BadRound`] while a round is under way.
    pub fn free(&self) -> Result<()> {
        self.0.round().free()
    }

    /// Returns whether a round has failed: the operation is over, and the peer may be at the buffer until this
    /// [is settled](Handle::is_settled).
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.0.round().has_failed()
    }

    /// Returns whether a round is under way.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.0.round().active().is_some()
    }

    /// Returns whether nobody can touch the buffer any more, now that the operation is freed, or dropped: ask
    /// again where not, on a thread that may call the rank. Another does not find out of a send.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.0.is_settled()
    }

    /// Returns a function that returns whether nobody can touch the buffer any more, also once the operation is dropped.
    pub fn ending(&self) -> impl Fn() -> bool + Send + Sync + use<S> {
        let end = Arc::clone(&self.0);
        move || end.is_settled()
    }

    /// Returns which way the partitions take, and why; `None` before the two ends are matched.
    #[must_use]
    pub fn describe(&self) -> Option<String> {
        self.0.describe()
    }
}

impl<S: Side> Drop for Handle<S> {
    fn drop(&mut self) {
        self.0.abandon();
    }
}
