//! A rank: opening, closing, contexts, failures.

use std::sync::{Arc, RwLock};

use tagwire_base::bootstrap::SharedBootstrap;
use tagwire_base::{Bootstrap, Config, Owner};
use tagwire_launch as launch;
use tagwire_launch::asked::Asked;
use tagwire_pml::{Engines, Given, ProgressThread, ThreadLevel};

use crate::buffer::Buffer;
use crate::coll;
use crate::context::Context;
use crate::descriptor::WaitDescriptor;
use crate::error::{Error, Result};
use crate::orphans::Orphans;
use crate::panics::Named;
use crate::plain::Plain;
use crate::scope::Scope;
use crate::settings;
use crate::shared::{Group, Shared};
use crate::tasks::Tasks;

/// How to open a [`Session`]: settings beyond the environment, and the thread level.
///
/// ```
/// use tagwire::{Session, ThreadLevel};
///
/// let session = Session::builder()
///     .threads(ThreadLevel::Multiple)
///     .setting("engine", "source")
///     .open()?;
/// assert_eq!(session.size(), 1);
/// # session.close()?;
/// # Ok::<(), tagwire::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
#[must_use = "a builder does nothing until it opens"]
pub struct Builder {
    overrides: Vec<(String, String)>,
    level: Option<ThreadLevel>,
    engines: Engines,
}

impl Builder {
    /// Sets a setting, over what the environment says. See `tagwire info` for their names.
    pub fn setting(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.overrides.push((name.into(), value.into()));
        self
    }

    /// Has the setting `engine` know engines of the program beside those of the library: `docs/engines.md`.
    pub fn engines(mut self, engines: Engines) -> Self {
        self.engines = engines;
        self
    }

    /// From which threads the session will be called; else the setting `thread-level` says, whose
    /// default is [`ThreadLevel::Single`].
    pub const fn threads(mut self, level: ThreadLevel) -> Self {
        self.level = Some(level);
        self
    }

    /// Joins the job that this process was started in: `tagwire run`'s, or one of its own.
    ///
    /// # Errors
    /// When a setting is wrong, the launcher's variables are, or the transport cannot be opened.
    pub fn open(self) -> Result<Session> {
        let bootstrap = launch::detect::detect()?.bootstrap;
        self.open_with(bootstrap)
    }

    /// Joins the job that `bootstrap` knows.
    ///
    /// From now on the process reports on standard error what goes wrong, as much as the setting
    /// `log` asks for; a program with a `tracing` subscriber of its own keeps that instead.
    ///
    /// # Errors
    /// As [`Builder::open`].
    pub fn open_with(self, bootstrap: Box<dyn Bootstrap>) -> Result<Session> {
        self.open_over(bootstrap, None)
    }

    /// The same over a transport that is given, in place of what the setting names.
    pub(crate) fn open_over(
        self,
        bootstrap: Box<dyn Bootstrap>,
        given: Option<Given>,
    ) -> Result<Session> {
        let registry = settings::registry_with(&self.engines);
        let registry = match given {
            Some(given) => registry.with_value(given),
            None => registry,
        };
        let config = Config::from_process(
            &registry,
            self.overrides
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str())),
        )?;
        tagwire_base::log::to_stderr(&config, format!("rank {}", bootstrap.rank()));
        let level = self
            .level
            .unwrap_or_else(|| ThreadLevel::from_config(&config));
        let bootstrap = SharedBootstrap::new(bootstrap);
        let world = Arc::new(coll::open(&config, level, &bootstrap)?);
        let messenger = Arc::clone(world.messenger());
        let asked = Asked::new(messenger.dumps().flag());
        let named = Named::new(messenger.rank().as_u32(), messenger.size());
        Ok(Session {
            driver: ProgressThread::from_config(&config, &messenger)?,
            owner: Owner::here(),
            bootstrap,
            asked,
            _named: named,
            shared: Shared {
                world,
                groups: RwLock::default(),
                messenger,
                orphans: Orphans::default(),
                tasks: Tasks::default(),
                close_timeout: config.duration("close-timeout"),
            },
            closed: false,
        })
    }
}

/// One rank of a job: an object, of which a process usually has one.
///
/// A session may be moved and shared between threads; which of them may call says its
/// [`ThreadLevel`], and a call from another is refused with an error. At the level
/// [`ThreadLevel::Single`], the thread that opened the session is the one.
///
/// Dropping a session closes it with the deadline of the setting `close-timeout`, without a
/// word; [`close`](Session::close) reports what went wrong.
///
/// A session belongs to the process that opened it. A child that this process forks must not use its copy: calls in the
/// child are refused with [`tagwire_base::Error::OtherProcess`], and dropping the copy there does nothing, so that the
/// peers notice nothing of the child. (A child that calls `exec` has no copy.)
#[derive(Debug)]
pub struct Session {
    /// The process that opened it.
    owner: Owner,
    bootstrap: SharedBootstrap,
    /// Declared in front of the messenger: it names the messenger's flag.
    asked: Asked,
    _named: Named,
    /// Moves messages on while the program computes, where that was asked for.
    driver: Option<ProgressThread>,
    pub(crate) shared: Shared,
    closed: bool,
}

impl Session {
    /// Joins the job that this process was started in, with the settings of the environment.
    ///
    /// ```no_run
    /// let session = tagwire::Session::open()?;
    /// println!("rank {} of {}", session.rank(), session.size());
    /// session.close()?;
    /// # Ok::<(), tagwire::Error>(())
    /// ```
    ///
    /// # Errors
    /// When a setting is wrong, the launcher's variables are, or the transport cannot be opened.
    pub fn open() -> Result<Self> {
        Self::builder().open()
    }

    /// Opens a session with more than the environment says.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// This rank's number, from 0.
    #[must_use]
    pub fn rank(&self) -> u32 {
        self.shared.messenger.rank().as_u32()
    }

    /// How many ranks the job has.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.shared.messenger.size()
    }

    /// Ends the whole job with `status`, and this process with it (`MPI_Abort`). The launcher is asked to end the other
    /// ranks: `tagwire run` does, with that status (1 in place of one that the system would cut to 0), and so do launchers with a PMI or PMIx. Under others
    /// the end of this process is what they see, as a failure of this rank.
    ///
    /// Nothing that is under way completes, and no destructor runs. A launcher that is not heard of within 5 s is left alone.
    pub fn abort(&self, status: i32) -> ! {
        // As the system cuts a status; a job that was aborted is never a good one.
        let status = if status & 0xff == 0 { 1 } else { status };
        self.bootstrap.clone().abort(status);
        std::process::exit(status)
    }

    /// The context that all ranks of the job have from the start.
    #[must_use]
    pub const fn world(&self) -> Context<'_> {
        Context::new(self, Group::WORLD)
    }

    /// A buffer of `count` elements, all bytes of which are zero, for messages: from the memory that this rank shares with the
    /// others of its host, as far as the setting `shm-arena` reaches, else from the heap ([`Buffer::is_shared`]
    /// reports). Large messages between two such buffers, or between one and any other, are copied once and by
    /// whichever rank waits, also where the system forbids cross-memory attach. Pages of it are given out whole: it is for
    /// few large buffers, not for many small ones. The buffer may outlive the session.
    ///
    /// ```
    /// # let session = tagwire::Session::open()?;
    /// let mut samples = session.alloc::<f64>(1 << 16)?;
    /// samples[0] = 1.5;
    /// session.try_scope(|scope| {
    ///     let world = session.world();
    ///     let mut room = [0.0];
    ///     world.isend(scope, &samples[..1], session.rank(), 7)?;
    ///     world.recv(&mut room, session.rank(), 7)?;
    ///     assert_eq!(room, [1.5]);
    ///     Ok(())
    /// })?;
    /// # session.close()?;
    /// # Ok::<(), tagwire::Error>(())
    /// ```
    ///
    /// # Errors
    /// When called from a thread that may not.
    ///
    /// # Panics
    /// When it is more than there can be, as a vector does.
    pub fn alloc<T: Plain>(&self, count: usize) -> Result<Buffer<T>> {
        let bytes = count.checked_mul(size_of::<T>());
        let shared = match bytes {
            Some(bytes) => self.shared.messenger.allocate(bytes)?,
            None => None,
        };
        Ok(Buffer::new(shared, count))
    }

    /// Runs `body` with a [`Scope`], in which buffers can be lent to sends and receives, and
    /// waits for all of them before it returns. How operations ended whose request was dropped is lost:
    /// [`try_scope`](Session::try_scope) reports it.
    ///
    /// When `body` panics, receives that nothing matched are taken back first, and what is left, such
    /// as a send whose receive is never posted, is waited for up to the setting `close-timeout`.
    /// After that the process ends with a message that names the operation, its peer and its tag:
    /// the buffers cannot be given back.
    ///
    /// Buffers outlive the scope, and are not touched in it once they are lent:
    ///
    /// ```
    /// # let session = tagwire::Session::open()?;
    /// let (ping, mut pong) = ([1u64, 2, 3], [0u64; 3]);
    /// session.scope(|scope| {
    ///     let world = session.world();
    ///     let receive = world.irecv(scope, &mut pong, session.rank(), 7)?;
    ///     world.isend(scope, &ping, session.rank(), 7)?;
    ///     receive.wait()?;
    ///     Ok::<(), tagwire::Error>(())
    /// })?;
    /// assert_eq!(ping, pong);
    /// # session.close()?;
    /// # Ok::<(), tagwire::Error>(())
    /// ```
    ///
    /// What a receive writes to cannot be read before the scope is left:
    ///
    /// ```compile_fail,E0503
    /// # let session = tagwire::Session::open()?;
    /// let mut pong = [0u64; 3];
    /// session.scope(|scope| {
    ///     let receive = session.world().irecv(scope, &mut pong, 0, 7);
    ///     if pong[0] == 0 {} // error: cannot use `pong[_]` because it was mutably borrowed
    /// });
    /// # Ok::<(), tagwire::Error>(())
    /// ```
    ///
    /// Nor can a second receive write to it:
    ///
    /// ```compile_fail,E0499
    /// # let session = tagwire::Session::open()?;
    /// let mut pong = [0u64; 3];
    /// session.scope(|scope| {
    ///     let first = session.world().irecv(scope, &mut pong, 0, 7);
    ///     let second = session.world().irecv(scope, &mut pong, 0, 8); // error
    /// });
    /// # Ok::<(), tagwire::Error>(())
    /// ```
    ///
    /// What a send reads from cannot be changed, even when its request has been dropped:
    ///
    /// ```compile_fail,E0506
    /// # let session = tagwire::Session::open()?;
    /// let mut ping = [1u64, 2, 3];
    /// session.scope(|scope| {
    ///     drop(session.world().isend(scope, &ping, 0, 7));
    ///     ping[0] = 4; // error: cannot assign to `ping[_]` because it is borrowed
    /// });
    /// # Ok::<(), tagwire::Error>(())
    /// ```
    ///
    /// A buffer that ends inside of the scope cannot be lent:
    ///
    /// ```compile_fail,E0597
    /// # let session = tagwire::Session::open()?;
    /// session.scope(|scope| {
    ///     let mut pong = [0u64; 3];
    ///     let receive = session.world().irecv(scope, &mut pong, 0, 7); // error
    /// });
    /// # Ok::<(), tagwire::Error>(())
    /// ```
    ///
    /// And a request cannot leave its scope:
    ///
    /// ```compile_fail
    /// # let session = tagwire::Session::open()?;
    /// let ping = [1u64, 2, 3];
    /// let send = session.scope(|scope| session.world().isend(scope, &ping, 0, 7)); // error
    /// # Ok::<(), tagwire::Error>(())
    /// ```
    pub fn scope<'env, R>(
        &'env self,
        body: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R,
    ) -> R {
        Scope::run(&self.shared, body, |_| false).0
    }

    /// As [`scope`](Session::scope), for a `body` that returns a [`Result`], so that `?` needs no type named in it.
    ///
    /// Operations whose end `body` did not take are waited for, and the first failure among them is returned. When `body`
    /// itself fails, its receives that nothing matched are taken back first: the scope does not wait for messages that
    /// only the rest of `body` would have brought about.
    ///
    /// ```
    /// # let session = tagwire::Session::open()?;
    /// let (ping, mut pong) = ([1u64, 2, 3], [0u64; 3]);
    /// session.try_scope(|scope| {
    ///     let world = session.world();
    ///     world.irecv(scope, &mut pong, session.rank(), 7)?;
    ///     world.isend(scope, &ping, session.rank(), 7)?;
    ///     Ok(())
    /// })?;
    /// assert_eq!(ping, pong);
    /// # session.close()?;
    /// # Ok::<(), tagwire::Error>(())
    /// ```
    ///
    /// # Errors
    /// That of `body`, else the first failure of an operation that was waited for here.
    pub fn try_scope<'env, R>(
        &'env self,
        body: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> Result<R>,
    ) -> Result<R> {
        let (result, ended) = Scope::run(&self.shared, body, Result::is_err);
        let value = result?;
        ended.map(|()| value)
    }

    /// Makes progress once, and wakes tasks whose operations are complete; returns how many things happened. Waits do so by
    /// themselves: only a program that computes for long while others wait for it gains by calling this.
    ///
    /// # Errors
    /// When called from a thread that may not.
    pub fn progress(&self) -> Result<usize> {
        self.shared.orphans.reap(&self.shared.messenger);
        let events = self.shared.messenger.progress()?;
        self.shared.tasks.wake_complete(&self.shared.messenger);
        Ok(events)
    }

    /// Returns a descriptor that becomes readable when this rank has something to do, to wait for messages and other things in one
    /// `poll`, or in a runtime for asynchronous programs.
    ///
    /// As with `ucp_worker_arm` and `fi_trywait`, a program makes progress, [arms](WaitDescriptor::arm) the descriptor, and waits
    /// only where it may. After each longest sleep (setting `sleep`, and shorter where transports say so: a millisecond over shared
    /// memory and a network) the descriptor is readable also when nothing has come.
    ///
    /// The order matters where a runtime remembers that a descriptor was readable, as one does that uses `epoll` with edges:
    /// clear what it remembers, then arm, then wait. What comes between the first two is taken by `arm`, what comes later
    /// makes the descriptor readable anew. What is cleared after `arm` may be the word of what has
    /// come. Futures need no descriptor: see [`drive`](Session::drive).
    ///
    /// ```
    /// use rustix::event::{PollFd, PollFlags, poll};
    ///
    /// # let session = tagwire::Session::open()?;
    /// let (ping, mut pong) = ([1u64, 2, 3], [0u64; 3]);
    /// let descriptor = session.wait_fd()?;
    /// session.try_scope(|scope| {
    ///     let mut receive = session.world().irecv(scope, &mut pong, session.rank(), 7)?;
    ///     session.world().isend(scope, &ping, session.rank(), 7)?;
    ///     while let Err(open) = receive.test() {
    ///         receive = open;
    ///         if descriptor.arm()? {
    ///             // Beside other descriptors.
    ///             let mut all = [PollFd::new(&descriptor, PollFlags::IN)];
    ///             let _ = poll(&mut all, None);
    ///         }
    ///     }
    ///     Ok(())
    /// })?;
    /// # drop(descriptor);
    /// # session.close()?;
    /// # Ok::<(), tagwire::Error>(())
    /// ```
    ///
    /// A thread sleeps for the rank, at any [`ThreadLevel`]; it makes no calls.
    ///
    /// # Errors
    /// When the system has no descriptor or no thread left.
    pub fn wait_fd(&self) -> Result<WaitDescriptor> {
        let opened = tagwire_pml::WaitDescriptor::open(&self.shared.messenger)?;
        Ok(WaitDescriptor(opened))
    }

    /// The ranks known to have failed, in the order of discovery.
    ///
    /// # Errors
    /// When called from a thread that may not.
    pub fn failed(&self) -> Result<Vec<u32>> {
        Ok(self
            .shared
            .messenger
            .failed()?
            .into_iter()
            .map(|rank| rank.as_u32())
            .collect())
    }

    /// Takes note of all failures so far: from now on receives from any source work again, among
    /// the living. Returns the failed ranks. (The MPI standard's fault-tolerance chapter calls it
    /// `MPIX_Comm_failure_ack`.)
    ///
    /// # Errors
    /// When called from a thread that may not.
    pub fn acknowledge_failures(&self) -> Result<Vec<u32>> {
        let failed = self.shared.messenger.acknowledge_failures()?;
        Ok(failed.into_iter().map(|rank| rank.as_u32()).collect())
    }

    /// What this rank waits for, in words: what `SIGUSR1` prints.
    ///
    /// # Errors
    /// When called from a thread that may not.
    pub fn describe(&self) -> Result<String> {
        Ok(self.shared.messenger.dump()?)
    }

    /// Returns the flag that asks this rank what it waits for.
    #[cfg(feature = "testing")]
    pub(crate) fn dump_flag(&self) -> Arc<std::sync::atomic::AtomicBool> {
        self.shared.messenger.dumps().flag()
    }

    /// Finishes what is under way and leaves the job.
    ///
    /// # Errors
    /// When that took longer than the setting `close-timeout`; the error names what was open, and
    /// the session is closed all the same.
    pub fn close(mut self) -> Result<()> {
        self.shut()
    }

    fn shut(&mut self) -> Result<()> {
        self.closed = true;
        if !self.owner.is_here() {
            self.forget();
            return Err(self.owner.refusal().into());
        }
        self.driver = None;
        self.asked = Asked::none();
        let closed = self
            .shared
            .messenger
            .close(self.shared.close_timeout)
            .map_err(Error::from);
        self.shared.orphans.reap_all(&self.shared.messenger);
        closed
    }

    /// Leaves everything as it is, in a forked child: memory and sockets are shared with the owner, and the threads are
    /// not there.
    fn forget(&mut self) {
        std::mem::forget(self.driver.take());
        std::mem::forget(std::mem::replace(&mut self.asked, Asked::none()));
        std::mem::forget(Arc::clone(&self.shared.messenger));
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if !self.owner.is_here() {
            self.forget();
        } else if !self.closed && !std::thread::panicking() {
            let _ = self.shut();
        }
        // A buffer that a peer may still touch is worth less than what would be overwritten.
        self.shared.orphans.abandon();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_session_leaves_no_signal_handler_behind() {
        for closes in [true, false] {
            let session = Session::open().unwrap();
            let flag = session.shared.messenger.dumps().flag();
            let holders = Arc::strong_count(&flag);
            if closes {
                session.close().unwrap();
            } else {
                drop(session);
            }
            // The messenger's, the handler's.
            assert_eq!(Arc::strong_count(&flag), holders - 2);
        }
    }
}
