//! Sends that were given up before their receiver has replied: it opens its end all the same, and is to be
//! told that nobody comes.
#![allow(unsafe_code)]

use std::sync::Arc;

use tagwire_base::Rank;
use tagwire_transport::SendChannel;

use super::awaited::Awaited;
use super::held::Held;
use super::wire::Reply;
use crate::layer::Layer;

/// Such a send. Its buffer is its owner's again.
#[derive(Debug)]
pub(super) struct Orphan {
    to: Rank,
    /// Where each transport partition ends, in bytes.
    ends: Vec<u64>,
    step: Step,
}

#[derive(Debug)]
enum Step {
    /// The receiver has not replied.
    Awaits(Awaited<Reply>),
    /// The channel that it has opened is being closed.
    Closes(Closing),
}

impl Orphan {
    /// A send to rank `to`, which owes `reply`.
    pub(super) const fn new(to: Rank, ends: Vec<u64>, reply: Awaited<Reply>) -> Self {
        let step = Step::Awaits(reply);
        Self { to, ends, step }
    }

    /// Closes the channel that the receiver has opened; returns itself where that is not over yet.
    pub(super) fn see_off(self, layer: &mut Layer) -> Option<Self> {
        let Self { to, ends, step } = self;
        let closing = match step {
            Step::Closes(closing) => closing,
            Step::Awaits(reply) => match reply.take(layer) {
                Ok(Err(reply)) => return Some(Self::new(to, ends, reply)),
                Ok(Ok(answer)) => Closing::join(layer, to, &ends, &answer)?,
                Err(error) => {
                    tracing::debug!("an answer to a send that was given up: {error}");
                    return None;
                }
            },
        };
        let step = Step::Closes(closing.close()?);
        Some(Self { to, ends, step })
    }
}

/// A channel that was joined to be closed, which those alone can do who have joined it; with memory of its own, in
/// which nothing is: the send's buffer may be gone.
#[derive(Debug)]
struct Closing {
    channel: Arc<dyn SendChannel>,
    memory: Held<[u8]>,
}

impl Closing {
    /// Joins the channel that `answer` names, if it names one.
    fn join(layer: &mut Layer, to: Rank, ends: &[u64], answer: &Reply) -> Option<Self> {
        let key = answer.key()?;
        let len = usize::try_from(ends.last().copied().unwrap_or(0)).ok()?;
        // Not touched: the system gives out addresses only.
        let (memory, data) = Held::for_sends(vec![0; len].into_boxed_slice());
        match layer.join_channel(to, &data, ends, key) {
            Ok(channel) => Some(Self { channel, memory }),
            Err(error) => {
                tracing::debug!("the channel of a send that was given up: {error}");
                drop(data);
                // SAFETY: there is no channel, and the buffer is gone.
                drop(unsafe { memory.reclaim() });
                None
            }
        }
    }

    /// Closes the channel; returns itself where it has to be asked again.
    fn close(self) -> Option<Self> {
        if !self.channel.close() {
            return Some(self);
        }
        // SAFETY: the channel is closed: nobody touches the memory any more.
        drop(unsafe { self.memory.reclaim() });
        None
    }
}
