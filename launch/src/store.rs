//! The bootstrap store: a small key-value store inside the launcher, through which ranks find
//! each other before they can talk, and hear of each other's end.
//!
//! ```text
//!   launcher process                                rank process
//!  +-----------------------------------+           +------------------+
//!  | supervisor --"rank 3 ended"--+    |           | StoreBootstrap   |
//!  |                              v    |  abstract |  put, get, fence |
//!  |             Server (epoll) -- KeySpace <-socket--+  descriptors     |
//!  |             one thread     decides|           |  member events   |
//!  +-----------------------------------+           +------------------+
//! ```
//!
//! The socket lies in the abstract namespace, so that nothing is left behind however the
//! launcher ends. Any process on the machine may knock there: another user's is sent away by
//! its credentials, one that does not prove the job's secret after its first message. A rank looks at the
//! credentials of who listens before it says anything. A store that
//! other machines reach listens on TCP; there the secret alone decides. Both sides prove that they know it, and neither
//! sends it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::EventfdFlags;
use tagwire_base::{JobSecret, Rank};

use crate::error::{Error, Result};
use crate::files::FileLimit;
use crate::proof::Nonce;

mod admission;
mod client;
mod host;
mod key_space;
mod server;
mod socket;
pub mod wire;

pub(crate) use client::NotIn;
pub use client::{Membership, StoreBootstrap};
pub(crate) use host::{HostLink, HostMessage};
pub(crate) use key_space::Report;
pub use socket::{connect_tcp, is_own_user, watch_tcp};

use key_space::KeySpace;
use server::{Control, Reports, Server};

/// A running store. Dropping it ends its thread and closes every connection.
#[derive(Debug)]
pub struct Store {
    name: String,
    secret: JobSecret,
    size: u32,
    control: Option<Sender<Control>>,
    reports: Reports,
    wake: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
    /// Room for the descriptors of all ranks, on whatever host.
    _files: FileLimit,
}

impl Store {
    /// Starts a store for a job of `size` ranks on a socket with a fresh name.
    ///
    /// # Errors
    /// When the system has no socket, thread or randomness to give.
    pub fn start(size: u32) -> Result<Self> {
        let secret = JobSecret::generate()?;
        // A name that nobody can take before us; it is no secret.
        let name = format!("tagwire-{}", &JobSecret::generate()?.to_hex()[..32]);
        Self::start_as(size, &name, secret)
    }

    /// As [`Store::start`], on a socket of this name.
    pub(crate) fn start_as(size: u32, name: &str, secret: JobSecret) -> Result<Self> {
        let keys = KeySpace::new(size, secret.clone(), Nonce::draw()?);
        Self::start_at(size, name, secret, keys)
    }

    /// Starts a store that a rank serves for one session, at what [`Store::name`] is to return.
    pub(crate) fn start_for_session(size: u32, name: &str, secret: JobSecret) -> Result<Self> {
        let mut keys = KeySpace::new(size, secret.clone(), Nonce::draw()?);
        keys.allow_one_stay();
        match name.strip_prefix(socket::TCP) {
            Some(address) => Self::start_at_address(size, address, secret, keys),
            None => Self::start_at(size, name, secret, keys),
        }
    }

    fn start_at(size: u32, name: &str, secret: JobSecret, keys: KeySpace) -> Result<Self> {
        let listener = socket::listen(name).map_err(|error| {
            Error::system(format!("listen on the store's socket '{name}'"), error)
        })?;
        Self::serve(size, name.to_owned(), secret, listener, keys)
    }

    /// Starts a store that other machines reach at `address`, such as `10.0.0.1:7471` (port 0: any
    /// that is free). Who knows the secret is a member: on a network that is not trusted it has
    /// to be one.
    ///
    /// # Errors
    /// As [`Store::start`]; and when `address` cannot be listened at.
    pub fn start_tcp(size: u32, address: &str, secret: JobSecret) -> Result<Self> {
        Self::start_for_hosts(size, size, address, secret)
    }

    /// As [`Store::start_tcp`], for a job whose first `own` ranks are started here and the others on other hosts.
    pub(crate) fn start_for_hosts(
        size: u32,
        own: u32,
        address: &str,
        secret: JobSecret,
    ) -> Result<Self> {
        let mut keys = KeySpace::new(size, secret.clone(), Nonce::draw()?);
        keys.keep_first(own);
        Self::start_at_address(size, address, secret, keys)
    }

    fn start_at_address(
        size: u32,
        address: &str,
        secret: JobSecret,
        keys: KeySpace,
    ) -> Result<Self> {
        let (listener, place) = socket::listen_tcp(address)
            .map_err(|error| Error::system(format!("listen at '{address}'"), error))?;
        let name = format!("{}{place}", socket::TCP);
        Self::serve(size, name, secret, listener, keys)
    }

    fn serve(
        size: u32,
        name: String,
        secret: JobSecret,
        listener: OwnedFd,
        keys: KeySpace,
    ) -> Result<Self> {
        let files = FileLimit::of_store(size);
        let wake = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| Error::system("make the store's wake-up", error))?;
        let wake = Arc::new(wake);
        let (control, commands) = channel();
        let reports =
            Reports::new().map_err(|error| Error::system("make the store's wake-up", error))?;
        let told = (commands, reports.clone());
        let server = Server::new(listener, Arc::clone(&wake), told, keys, size)
            .map_err(|error| Error::system("watch the store's socket", error))?;
        let thread = std::thread::Builder::new()
            .name("tagwire-store".to_owned())
            .spawn(move || server.run())
            .map_err(|error| Error::system("start the store's thread", error))?;
        Ok(Self {
            name,
            secret,
            size,
            control: Some(control),
            reports,
            wake,
            thread: Some(thread),
            _files: files,
        })
    }

    /// The store's name: of a socket in the abstract namespace, or `tcp:` and an address.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The address at which other machines reach it; `None` for one of this machine alone.
    #[must_use]
    pub fn address(&self) -> Option<&str> {
        self.name.strip_prefix(socket::TCP)
    }

    /// What rank `rank` needs to know to connect, all ranks being on this machine.
    #[must_use]
    pub fn membership(&self, rank: Rank) -> Membership {
        Membership {
            rank,
            size: self.size,
            local_rank: rank.as_u32(),
            local_size: self.size,
            store: self.name.clone(),
            secret: self.secret.clone(),
            application: None,
        }
    }

    /// Tells the store that the process of `rank` has ended: unless it had said goodbye, the
    /// others hear that it failed. Never blocks.
    pub fn rank_ended(&self, rank: Rank) {
        if let Some(control) = &self.control {
            // The thread ends only when it cannot wait for events; its clients see that.
            let _ = control.send(Control::RankEnded(rank));
            self.wake();
        }
    }

    /// Returns what is readable once there are reports.
    pub(crate) fn waits_for(&self) -> BorrowedFd<'_> {
        self.reports.as_fd()
    }

    /// Returns what ranks and other hosts have reported since.
    pub(crate) fn take_reports(&self) -> Vec<Report> {
        self.reports.take()
    }

    /// Tells other hosts that the job ends.
    pub(crate) fn end_job(&self, status: u32) {
        if let Some(control) = &self.control {
            let _ = control.send(Control::EndJob(status));
            self.wake();
        }
    }

    /// Returns whether all members are gone within `timeout`.
    pub(crate) fn wait_until_empty(&self, timeout: Duration) -> bool {
        let (sender, empty) = channel();
        if let Some(control) = &self.control {
            let _ = control.send(Control::WhenEmpty(sender));
            self.wake();
        }
        empty.recv_timeout(timeout).is_ok()
    }

    fn wake(&self) {
        // Fails only when the counter is full, and then the thread is about to wake.
        let _ = rustix::io::write(&*self.wake, &1u64.to_ne_bytes());
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.control = None;
        self.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
