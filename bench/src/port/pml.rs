//! Messages matched by a pml of ours.

use std::sync::Arc;
use std::time::Duration;

use tagwire_base::{Bootstrap, Config, ContextId, Rank, Tag};
use tagwire_pml::{Counters, Messenger, ProgressThread, RequestId, SendMode, ThreadLevel};
use tagwire_transport::Allocation;

use super::Port;
use crate::buffer::{Incoming, Outgoing};
use crate::error::Result;

/// A rank's messenger.
#[derive(Debug)]
pub(crate) struct PmlPort {
    /// Drives the rank while its benchmark computes, where that was asked for.
    driver: Option<ProgressThread>,
    messenger: Arc<Messenger>,
    deadline: Duration,
}

const WORLD: ContextId = ContextId::WORLD;

impl PmlPort {
    /// Opens the rank, for as many threads as `threads`.
    pub(crate) fn open(
        config: &Config,
        threads: u32,
        bootstrap: Box<dyn Bootstrap>,
    ) -> Result<Self> {
        let level = if threads > 1 {
            ThreadLevel::Multiple
        } else {
            ThreadLevel::from_config(config)
        };
        let messenger = Arc::new(tagwire_pml::open(config, level, bootstrap)?);
        // Without the handler, the signal ends the rank instead of making it tell.
        let flag = messenger.dump_flag();
        let _ = signal_hook::flag::register(signal_hook::consts::SIGUSR1, Arc::clone(&flag));
        Ok(Self {
            driver: ProgressThread::from_config(config, &messenger)?,
            messenger,
            deadline: config.duration("close-timeout"),
        })
    }

    /// The rank, for operations beyond those of a port.
    pub(crate) const fn messenger(&self) -> &Arc<Messenger> {
        &self.messenger
    }

    /// Leaves the job in good order.
    pub(crate) fn close(mut self) -> Result<()> {
        self.driver = None;
        Ok(self.messenger.close(self.deadline)?)
    }
}

impl Port for PmlPort {
    type Request = RequestId;

    fn rank(&self) -> Rank {
        self.messenger.rank()
    }

    fn size(&self) -> u32 {
        self.messenger.size()
    }

    #[inline]
    fn isend(&self, data: Outgoing, to: Rank, tag: Tag) -> Result<RequestId> {
        Ok(self
            .messenger
            .isend(data.buffer(), to, tag, WORLD, SendMode::Standard)?)
    }

    #[inline]
    fn irecv(&self, data: Incoming, from: Rank, tag: Tag) -> Result<RequestId> {
        Ok(self
            .messenger
            .irecv(data.buffer(), from.into(), tag.into(), WORLD)?)
    }

    #[inline]
    fn wait_all(&self, requests: &mut Vec<RequestId>) -> Result<()> {
        self.messenger.wait_all_quiet(requests, None)?;
        requests.clear();
        Ok(())
    }

    #[inline]
    fn send(&self, data: Outgoing, to: Rank, tag: Tag) -> Result<()> {
        Ok(self
            .messenger
            .send(data.buffer(), to, tag, WORLD, SendMode::Standard)?)
    }

    #[inline]
    fn recv(&self, data: Incoming, from: Rank, tag: Tag) -> Result<()> {
        let status = self
            .messenger
            .recv(data.buffer(), from.into(), tag.into(), WORLD)?;
        status.ok().map_err(tagwire_pml::Error::Failed)?;
        Ok(())
    }

    fn allocate(&self, len: usize) -> Result<Option<Allocation>> {
        Ok(self.messenger.allocate(len)?)
    }

    fn counters(&self) -> Option<Counters> {
        self.messenger.counters().ok()
    }
}
