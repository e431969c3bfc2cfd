//! One wait for several operations.

use std::sync::Arc;
use std::time::Duration;

use super::recv::PartitionedRecv;
use super::send::PartitionedSend;
use super::side::Side;
use crate::error::{Error, Result};

/// An end of an operation, for calls that take several.
#[derive(Debug, Clone, Copy)]
pub enum End<'a> {
    /// One that sends.
    Send(&'a PartitionedSend),
    /// One that receives.
    Recv(&'a PartitionedRecv),
}

impl End<'_> {
    fn side(&self) -> &dyn Side {
        match self {
            Self::Send(send) => &*send.0,
            Self::Recv(recv) => &*recv.0,
        }
    }
}

/// Waits until the rounds of all `ends` are over, and ends them. The ends of a rank make progress by turns, so that what
/// has come for one does not lie there until another is complete. Ends without a round under way are over.
///
/// # Errors
/// [`Error::WrongRequest`] where the ends are not all of one rank: nothing is waited for. The first failure of a round, once no
/// round is under way. [`Error::TimedOut`]: the rounds that are not over go on.
pub fn wait_all(ends: &[End<'_>], timeout: Option<Duration>) -> Result<()> {
    let Some(first) = ends.first() else {
        return Ok(());
    };
    let messenger = first.side().messenger();
    if !ends
        .iter()
        .all(|end| Arc::ptr_eq(end.side().messenger(), messenger))
    {
        return Err(Error::WrongRequest("waited for with those of another rank"));
    }
    let mut failure = None;
    let mut failed = vec![false; ends.len()];
    messenger.wait_until(timeout, |layer| {
        let mut all = true;
        for (end, failed) in ends.iter().zip(&mut failed) {
            if *failed {
                continue;
            }
            match end.side().poll(layer) {
                Ok(over) => all &= over.is_some(),
                Err(error) => {
                    *failed = true;
                    failure.get_or_insert(error);
                }
            }
        }
        Ok(all.then_some(()))
    })?;
    failure.map_or(Ok(()), Err)
}
