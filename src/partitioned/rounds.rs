//! One wait for the rounds of several partitioned operations.

use std::time::Duration;

use tagwire_pml::partitioned::{End, wait_all};

use crate::error::Result;

/// A round of any partitioned operation, made of a [`SendRound`](crate::SendRound) or a [`RecvRound`](crate::RecvRound), for
/// [`wait_rounds`].
#[derive(Debug, Clone, Copy)]
pub struct Round<'a>(pub(crate) End<'a>);

/// Waits until all rounds are complete. They make progress by turns, so that what has come for one does not wait for
/// another, and the senders of all get on.
///
/// ```
/// let session = tagwire::Session::open()?;
/// let (world, me) = (session.world(), session.rank());
/// let mut send = world.psend_init(vec![7u8; 4], 2, me, 1)?;
/// let mut recv = world.precv_init(vec![0u8; 4], 2, me, 1)?;
/// let (arriving, sending) = (recv.start()?, send.start()?);
/// sending.ready_range(0..2)?;
/// tagwire::wait_rounds(&[arriving.into(), sending.into()])?;
/// assert_eq!(recv.data()?, [7; 4]);
/// # drop((send, recv));
/// # session.close()?;
/// # Ok::<(), tagwire::Error>(())
/// ```
///
/// # Errors
/// Where the rounds are not all of one session: nothing is waited for. When the peer of one is gone, once no round is under
/// way: that operation is over.
pub fn wait_rounds(rounds: &[Round<'_>]) -> Result<()> {
    wait(rounds, None)
}

/// Waits up to `timeout`.
///
/// # Errors
/// As [`wait_rounds`]. When the time passes ([`Error::is_timeout`](crate::Error::is_timeout)) the rounds that are not complete go
/// on, and their buffers stay lent.
pub fn wait_rounds_for(rounds: &[Round<'_>], timeout: Duration) -> Result<()> {
    wait(rounds, Some(timeout))
}

fn wait(rounds: &[Round<'_>], timeout: Option<Duration>) -> Result<()> {
    let ends: Vec<End<'_>> = rounds.iter().map(|round| round.0).collect();
    Ok(wait_all(&ends, timeout)?)
}
