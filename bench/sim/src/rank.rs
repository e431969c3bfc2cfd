//! One rank of a simulated job: the calls of a program, as asynchronous functions over the unchanged layers.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use tagwire_base::{ContextId, Rank, SourceSelector, Tag, TagSelector};
use tagwire_coll::{Request, Team};
use tagwire_pml::{Messenger, RequestId, SendMode};
use tagwire_sim::Actor;

use crate::error::{Error, Result};
use crate::lent::Lent;

/// How long a rank that ends goes on with what it has begun.
const CLOSING: Duration = Duration::from_millis(100);

/// A rank, as its program has it.
#[derive(Debug)]
pub struct SimRank {
    team: Arc<Team>,
    messenger: Arc<Messenger>,
    actor: Actor,
    // Dropped after the port.
    lent: RefCell<Lent>,
}

impl SimRank {
    pub(crate) fn new(team: Arc<Team>, messenger: Arc<Messenger>, actor: Actor) -> Self {
        Self {
            team,
            messenger,
            actor,
            lent: RefCell::default(),
        }
    }

    /// Returns this rank.
    #[must_use]
    pub fn rank(&self) -> u32 {
        self.messenger.rank().as_u32()
    }

    /// Returns how many ranks the job has.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.messenger.size()
    }

    /// Returns the rank as the simulation has it.
    #[must_use]
    pub const fn actor(&self) -> &Actor {
        &self.actor
    }

    /// Starts to send `bytes`.
    ///
    /// # Errors
    /// When the layer refuses.
    pub fn isend(&self, to: u32, tag: Tag, bytes: Vec<u8>) -> Result<RequestId> {
        let to = Rank::new(to);
        let bytes = bytes.into_boxed_slice();
        let sent = self.lent.borrow_mut().send(bytes, |data| {
            self.messenger
                .isend(data, to, tag, ContextId::WORLD, SendMode::Standard)
        });
        Ok(sent?)
    }

    /// Starts to receive up to `len` bytes.
    ///
    /// # Errors
    /// When the layer refuses.
    pub fn irecv(&self, from: u32, tag: Tag, len: usize) -> Result<RequestId> {
        let (from, tag) = (
            SourceSelector::exact(Rank::new(from)),
            TagSelector::exact(tag),
        );
        let posted = self.lent.borrow_mut().recv(len, |room| {
            self.messenger.irecv(room, from, tag, ContextId::WORLD)
        });
        Ok(posted?)
    }

    /// Waits until a request is complete, and returns the bytes that were received, or sent.
    ///
    /// # Errors
    /// How the operation failed.
    pub async fn wait(&self, request: RequestId) -> Result<Box<[u8]>> {
        if request == RequestId::COMPLETE {
            return Ok(Box::default());
        }
        let status = self.until(|| Ok(self.messenger.take(request)?)).await?;
        let bytes = self.lent.borrow_mut().take(request).unwrap_or_default();
        status
            .failure
            .map_or(Ok(bytes), |failure| Err(failure.into()))
    }

    /// Waits for all members at a barrier.
    ///
    /// # Errors
    /// How it failed.
    pub async fn barrier(&self) -> Result<()> {
        let request = self.lent.borrow().barrier(&self.team)?;
        self.wait_for(&request).await
    }

    /// Sums `data`, 64-bit numbers, over all members.
    ///
    /// # Errors
    /// How it failed.
    pub async fn sum(&self, data: Vec<u8>) -> Result<Box<[u8]>> {
        let request = self.lent.borrow_mut().sum(&self.team, data.into())?;
        self.wait_for(&request).await?;
        let ended = self.lent.borrow_mut().take_sums().pop();
        Ok(ended.unwrap_or_default())
    }

    /// Computes for `time` on a core of its node.
    pub async fn compute(&self, time: Duration) {
        if !time.is_zero() {
            self.actor.compute(time).await;
        }
    }

    async fn wait_for(&self, request: &Request) -> Result<()> {
        self.until(|| match request.take() {
            None => Ok(None),
            Some(end) => Ok(end.map(Some)?),
        })
        .await
    }

    /// Makes progress until `done` returns a value. Where nothing has come, the simulation goes on with other ranks.
    async fn until<T>(&self, mut done: impl FnMut() -> Result<Option<T>>) -> Result<T> {
        loop {
            if let Some(value) = done()? {
                return Ok(value);
            }
            if self.messenger.progress()? == 0 {
                if let Some(value) = done()? {
                    return Ok(value);
                }
                self.actor.next().await;
            }
        }
    }

    /// Ends the rank in good order.
    ///
    /// # Errors
    /// What it leaves open.
    pub(crate) fn close(self) -> Result<()> {
        self.messenger.close(CLOSING).map_err(Error::from)
    }
}
