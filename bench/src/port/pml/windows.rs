//! Windows of a pml's rank, by its remote memory access.
//!
//! While a rank has windows, a thread of its makes progress, asleep in the kernel while nothing comes: where writes take the
//! target's processor, as over TCP, nobody else may be there to lend it.

use std::sync::{Arc, PoisonError};

use tagwire_base::Rank;
use tagwire_pml::{Messenger, ProgressThread, Region, Target};
use tagwire_transport::Capabilities;

use super::PmlPort;
use crate::buffer::{Incoming, Outgoing};
use crate::error::{Error, Result};
use crate::port::window::{Exchange, Window, Windows};

impl PmlPort {
    /// Returns the port as what has windows. It is open for any thread.
    ///
    /// # Errors
    /// Where its transport has no remote writes.
    pub(crate) fn windows(&self) -> Result<&dyn Windows> {
        let (name, all) = self.messenger.window().transport()?;
        match all.contains(Capabilities::PUT) {
            true => Ok(self),
            false => Err(lacks(name)),
        }
    }

    /// Returns the thread that drives the rank while somebody has it; `None` where one does all the time.
    fn helper(&self) -> Result<Option<Arc<ProgressThread>>> {
        if self.driver.is_some() {
            return Ok(None);
        }
        let mut helper = self.helper.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = helper.upgrade() {
            return Ok(Some(running));
        }
        let started = Arc::new(ProgressThread::start(&self.messenger)?);
        *helper = Arc::downgrade(&started);
        Ok(Some(started))
    }
}

fn lacks(name: &str) -> Error {
    Error::Usage(format!(
        "transport {name} has no remote writes, which rma takes: 'tagwire info' says which transports have put, such as shm, ofi:tcp and ucx:tcp"
    ))
}

impl Windows for PmlPort {
    #[inline]
    fn open(&self, room: Incoming, exchange: Exchange<'_>) -> Result<Box<dyn Window + '_>> {
        let calls = self.messenger.window();
        let region = calls.expose(&room.buffer())?;
        let given = exchange(region.key())?;
        let mut window = PmlWindow {
            messenger: &self.messenger,
            room,
            targets: Vec::new(),
            region: Some(region),
            _helper: self.helper()?,
        };
        for (rank, key) in given {
            let target = calls.reach(rank, &key)?;
            if !target.capabilities().contains(Capabilities::PUT) {
                return Err(lacks(calls.transport()?.0));
            }
            if window.targets.len() <= rank.index() {
                window.targets.resize(rank.index() + 1, None);
            }
            window.targets[rank.index()] = Some(target);
        }
        Ok(Box::new(window))
    }
}

struct PmlWindow<'p> {
    messenger: &'p Messenger,
    room: Incoming,
    /// By rank; none of those that are no peers.
    targets: Vec<Option<Target>>,
    /// There until the drop.
    region: Option<Region>,
    _helper: Option<Arc<ProgressThread>>,
}

impl PmlWindow<'_> {
    #[inline]
    fn target(&self, rank: Rank) -> Result<&Target> {
        let found = self.targets.get(rank.index()).and_then(Option::as_ref);
        found.ok_or_else(|| Error::Peer(format!("rank {rank} has no window for this one")))
    }
}

impl Window for PmlWindow<'_> {
    #[inline]
    fn put(&self, data: Outgoing, to: Rank, offset: usize) -> Result<()> {
        let (calls, target) = (self.messenger.window(), self.target(to)?);
        // Its end is the flush's.
        calls.put(data.buffer(), target, offset as u64)?;
        Ok(())
    }

    #[inline]
    fn flush(&self, to: &[Rank]) -> Result<()> {
        let targets = to.iter().map(|rank| self.target(*rank));
        let targets = targets.collect::<Result<Vec<_>>>()?;
        Ok(self.messenger.window().flush(&targets, None)?)
    }

    #[inline]
    fn has_reached(&self, offset: usize, value: u64) -> Result<bool> {
        if self.room.shared_word(offset) >= value {
            return Ok(true);
        }
        self.messenger.progress()?;
        if self.messenger.failures() > 0 {
            return Err(Error::Peer(
                "a rank ended before the benchmark did".to_owned(),
            ));
        }
        Ok(self.room.shared_word(offset) >= value)
    }
}

impl Drop for PmlWindow<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(region) = self.region.take() {
            // What is refused here has ended the benchmark already.
            let _ = self.messenger.window().withdraw(region);
        }
    }
}
