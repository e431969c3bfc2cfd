//! The door to remote memory access: what any thread of a rank calls.

use std::sync::Arc;
use std::time::Duration;

use tagwire_base::Rank;
use tagwire_transport::{Capabilities, RecvBuffer, SendBuffer};

use super::Messenger;
use crate::error::{Error, Result};
use crate::layer::Layer;
use crate::rma::{Atomic, Key, Remote, Rma, What};
use crate::service::Wire;
use crate::slab::Handle;

/// Memory of this rank that peers may reach.
#[derive(Debug)]
pub struct Region {
    handle: Handle,
    key: Vec<u8>,
}

impl Region {
    /// Returns what peers need to [reach](Window::reach) it; opaque, and not more than a few dozen bytes.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        &self.key
    }
}

/// Memory of a peer that this rank may reach.
#[derive(Debug, Clone)]
pub struct Target(Arc<Remote>);

impl Target {
    /// Returns whose memory it is.
    #[must_use]
    pub fn rank(&self) -> Rank {
        self.0.rank
    }

    /// Returns how many bytes there are.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "a size of memory, and no list")]
    pub fn len(&self) -> u64 {
        self.0.key.length
    }

    /// Returns what the transport does of accesses to it by itself; the rest goes by packets.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        self.0.capabilities
    }
}

/// An access that was started. It is there until its end was [taken](Window::test), or [flushed](Window::flush) where it was not
/// [kept](Window::keeping).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccessId(Handle);

/// Remote memory access of a rank: [`Messenger::window`].
///
/// Buffers are lent until the access has ended. Accesses have no order among themselves. An access that goes by the transport
/// alone needs nothing of its target; others need that the target makes progress.
#[derive(Debug, Clone, Copy)]
pub struct Window<'m> {
    messenger: &'m Messenger,
    keeps: bool,
}

impl Messenger {
    /// Returns the calls of remote memory access.
    #[must_use]
    pub const fn window(&self) -> Window<'_> {
        Window::of(self)
    }
}

impl<'m> Window<'m> {
    const fn of(messenger: &'m Messenger) -> Self {
        let keeps = false;
        Self { messenger, keeps }
    }

    /// Returns the same calls where a [flush](Self::flush), of another thread too, leaves the ends of the accesses that are started:
    /// each is there until it is [taken](Self::test).
    #[must_use]
    pub const fn keeping(mut self) -> Self {
        self.keeps = true;
        self
    }

    fn call<T>(self, body: impl FnOnce(&mut Rma, &mut Wire<'_>) -> Result<T>) -> Result<T> {
        self.messenger.call(|layer| with(layer, body))
    }

    /// Returns the name of the rank's transport, and what it does by itself.
    ///
    /// # Errors
    /// [`Error::WrongThread`].
    pub fn transport(self) -> Result<(&'static str, Capabilities)> {
        self.messenger.call(|layer| {
            let transport = layer.transport();
            Ok((transport.name(), transport.capabilities()))
        })
    }

    /// Lets peers that are given the key reach `memory`, which is lent until [`withdraw`](Self::withdraw) or the end of the
    /// process: they read and write it at any time, and words of it atomically.
    ///
    /// # Errors
    /// [`Error::BadRegion`] when it is not contiguous; [`Error::WrongThread`].
    pub fn expose(self, memory: &RecvBuffer) -> Result<Region> {
        self.call(|rma, wire| {
            let (handle, key) = rma.regions.expose(memory, wire)?;
            Ok(Region { handle, key })
        })
    }

    /// Lets nobody reach the region any more. Accesses of peers that are under way, or come later, are refused; its memory is
    /// the caller's again.
    ///
    /// # Errors
    /// [`Error::WrongThread`].
    pub fn withdraw(self, region: Region) -> Result<()> {
        self.call(|rma, wire| {
            rma.regions.withdraw(region.handle, wire);
            Ok(())
        })
    }

    /// Returns the region of which `rank` has given `key`.
    ///
    /// # Errors
    /// [`Error::BadRegion`] when it is no key, or the transport has nothing by which the memory is reached; when the rank does
    /// not exist or cannot be reached; [`Error::WrongThread`].
    pub fn reach(self, rank: Rank, key: &[u8]) -> Result<Target> {
        let key = Key::decode(key).ok_or(Error::BadRegion("has another key"))?;
        let own = rank == self.messenger.rank();
        self.messenger.call(|layer| {
            let terms = layer.terms(rank)?;
            let remote = Remote::new(rank, &terms, key, own);
            let remote = remote.ok_or(Error::BadRegion(
                "lies behind a transport of messages alone",
            ))?;
            Ok(Target(Arc::new(remote)))
        })
    }

    /// Starts to write `data` into a region, from `offset` on. It has ended when the buffer is the caller's again; its bytes
    /// are visible after a [flush](Self::flush).
    ///
    /// # Errors
    /// [`Error::OutsideRegion`]; [`Error::WrongThread`].
    pub fn put(self, data: SendBuffer, target: &Target, offset: u64) -> Result<AccessId> {
        self.start(target, offset, What::Put(data))
    }

    /// Starts to read into `room`, from `offset` on.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn get(self, room: RecvBuffer, target: &Target, offset: u64) -> Result<AccessId> {
        self.start(target, offset, What::Get(room))
    }

    /// Starts to change the word at `offset`, which is a multiple of 8 in its owner's memory.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn atomic(self, atomic: Atomic, target: &Target, offset: u64) -> Result<AccessId> {
        self.start(target, offset, What::Atomic(atomic))
    }

    fn start(self, target: &Target, offset: u64, what: What) -> Result<AccessId> {
        self.call(|rma, wire| {
            let handle = rma.start(&target.0, offset, what, wire)?;
            if self.keeps {
                rma.keep(handle);
            }
            Ok(AccessId(handle))
        })
    }

    /// Makes progress once, and takes the end of an access, if it has come: of an atomic operation what the word was, of others
    /// any number.
    ///
    /// # Errors
    /// [`Error::Failed`] when the peer is gone; [`Error::NoSuchRegion`] when it has withdrawn the region;
    /// [`Error::StaleRequest`]; [`Error::WrongThread`].
    pub fn test(self, access: AccessId) -> Result<Option<u64>> {
        self.messenger.progress()?;
        self.call(|rma, _| rma.take(access.0))
    }

    /// Returns whether an access has ended, without progress and without taking its end. One whose end was taken has.
    ///
    /// # Errors
    /// [`Error::WrongThread`].
    pub fn has_ended(self, access: AccessId) -> Result<bool> {
        self.call(|rma, _| Ok(rma.has_ended(access.0)))
    }

    /// Waits for the end of an access and takes it.
    ///
    /// # Errors
    /// As [`test`](Self::test); [`Error::TimedOut`].
    pub fn wait(self, access: AccessId, timeout: Option<Duration>) -> Result<u64> {
        self.messenger.count_call()?;
        self.messenger
            .wait_until(timeout, |layer| with(layer, |rma, _| rma.take(access.0)))
    }

    /// Makes progress once, and moves a [flush](Self::flush) of one target on. Returns whether all accesses to the memory of its rank have
    /// ended, and what they have put is visible there: ask again where not.
    ///
    /// # Errors
    /// That of the first access that did not work, once all have ended; [`Error::WrongThread`].
    pub fn test_flush(self, target: &Target) -> Result<bool> {
        self.messenger.progress()?;
        self.call(|rma, wire| rma.flush(&target.0, wire))
    }

    /// Waits until all accesses to the memory of the targets' ranks have ended, those of other threads too, and what they have
    /// put is visible there. Takes the ends of those that were not [kept](Self::keeping).
    ///
    /// # Errors
    /// That of the first that did not work, once all have ended; else as [`wait`](Self::wait).
    pub fn flush(self, targets: &[&Target], timeout: Option<Duration>) -> Result<()> {
        self.messenger.count_call()?;
        let (mut left, mut first) = (targets.to_vec(), Ok(()));
        self.messenger.wait_until(timeout, |layer| {
            with(layer, |rma, wire| {
                left.retain(|target| match rma.flush(&target.0, wire) {
                    Ok(is_flushed) => !is_flushed,
                    Err(error) => {
                        if first.is_ok() {
                            first = Err(error);
                        }
                        false
                    }
                });
                Ok(left.is_empty().then_some(()))
            })
        })?;
        first
    }
}

/// Calls `body` with the service of a layer, and what it works with.
fn with<T>(
    layer: &mut Layer,
    body: impl FnOnce(&mut Rma, &mut Wire<'_>) -> Result<T>,
) -> Result<T> {
    let (services, mut wire) = layer.services();
    body(&mut services.rma, &mut wire)
}
