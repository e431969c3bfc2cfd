//! Windows of a bare transport of ours, beside a pml.
//!
//! A thread of the rank makes progress, asleep in the kernel while nothing comes: where writes take the target's
//! processor, as over TCP, nobody else may be there to lend it.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use tagwire_base::bootstrap::SharedBootstrap;
use tagwire_base::{Bootstrap, Config, Rank};
use tagwire_pml::WaitPolicy;
use tagwire_transport::{
    Arrival, ByteTransport, Capabilities, EndpointId, Lane, Outcome, PeerEvent, Post,
    RegistrationHandle, RemoteMemory, Token, Upcalls, Waiter,
};

use super::rail::{Connected, connect};
use super::window::{Exchange, Window, Windows};
use crate::buffer::{Incoming, Outgoing};
use crate::error::{Error, Result};

const LANE: Lane = Lane(0);
/// The token of writes, whose ends are that of the flush behind them.
const WRITE: Token = Token(0);

/// A rank's transport for remote access.
pub(crate) struct RailWindows {
    shared: Arc<Shared>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// What the rank's threads share.
struct Shared {
    driver: Mutex<Driver>,
    waiter: Arc<dyn Waiter>,
    policy: WaitPolicy,
}

struct Driver {
    rail: Box<dyn ByteTransport>,
    endpoints: Vec<Option<EndpointId>>,
    next_flush: u64,
    core: Core,
}

/// What upcalls change.
#[derive(Default)]
struct Core {
    /// The tokens of those that are under way.
    flushes: HashSet<u64>,
    failure: Option<String>,
}

impl Upcalls for Core {
    #[inline]
    fn deliver(&mut self, _: Arrival<'_>) {
        self.fail("a message came where there are writes only");
    }

    #[inline]
    fn complete(&mut self, token: Token, outcome: Outcome) {
        if !matches!(outcome, Outcome::Done(_)) {
            self.fail(&format!("remote access failed: {outcome:?}"));
        }
        self.flushes.remove(&token.0);
    }

    #[inline]
    fn peer(&mut self, event: PeerEvent) {
        match event {
            PeerEvent::Left(_) | PeerEvent::Failed(_) => {
                self.fail("a rank ended before the benchmark did");
            }
            PeerEvent::Protocol(_, error) => self.fail(&error.to_string()),
            _ => {}
        }
    }
}

impl Core {
    #[inline]
    fn fail(&mut self, reason: &str) {
        self.failure.get_or_insert_with(|| reason.to_owned());
    }
}

impl Driver {
    #[inline]
    fn progress(&mut self) -> usize {
        self.rail.progress(LANE, &mut self.core)
    }

    /// # Errors
    /// What went wrong so far.
    #[inline]
    fn check(&self) -> Result<()> {
        let failure = self.core.failure.as_ref();
        failure.map_or(Ok(()), |reason| Err(Error::Peer(reason.clone())))
    }

    #[inline]
    fn endpoint(&self, rank: Rank) -> Result<EndpointId> {
        let found = self.endpoints.get(rank.index()).copied().flatten();
        found.ok_or_else(|| Error::Peer(format!("no endpoint for rank {rank}")))
    }
}

impl Shared {
    /// A thread that panicked has ended the test.
    #[inline]
    fn lock(&self) -> MutexGuard<'_, Driver> {
        self.driver.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes progress until `done` returns a value.
    fn until<T>(&self, mut done: impl FnMut(&mut Driver) -> Result<Option<T>>) -> Result<T> {
        let mut looks = 0_u32;
        loop {
            {
                let mut driver = self.lock();
                if let Some(value) = done(&mut driver)? {
                    return Ok(value);
                }
                driver.progress();
                driver.check()?;
            }
            looks = looks.wrapping_add(1);
            match looks % 16 {
                0 => std::thread::yield_now(),
                _ => std::hint::spin_loop(),
            }
        }
    }

    /// Repeats `post` until the transport takes it.
    #[inline]
    fn insist(&self, mut post: impl FnMut(&mut Driver) -> Result<Post>) -> Result<()> {
        self.until(|driver| match post(driver)? {
            Post::Posted => Ok(Some(())),
            Post::Busy => Ok(None),
            Post::Gone => Err(Error::Peer(
                "a rank ended before the benchmark did".to_owned(),
            )),
            Post::Unsupported => Err(lacks(driver.rail.name())),
        })
    }

    /// Makes progress until told to stop.
    #[inline]
    fn drive(&self, stop: &AtomicBool) {
        let mut idle = 0_u32;
        while !stop.load(Ordering::Acquire) {
            let events = self.lock().progress();
            idle = if events > 0 {
                0
            } else {
                idle.saturating_add(1)
            };
            if idle <= self.policy.yields {
                std::thread::yield_now();
                continue;
            }
            {
                let driver = &mut *self.lock();
                driver.rail.look_after_peers(&mut driver.core);
            }
            let key = self.waiter.arm();
            // What came before the arming is seen here; what comes after it wakes.
            if self.lock().progress() == 0 && !stop.load(Ordering::Acquire) {
                self.waiter.sleep(key, self.policy.sleep);
            } else {
                self.waiter.disarm();
            }
        }
    }
}

#[inline]
fn lacks(name: &str) -> Error {
    Error::Usage(format!(
        "transport {name} has no remote writes, which rma takes: 'tagwire info' says which transports have put, such as shm, ofi:tcp and ucx:tcp"
    ))
}

impl RailWindows {
    /// Opens the transport that `config` names once more, for remote access.
    ///
    /// # Errors
    /// Where it has none.
    #[inline]
    pub(crate) fn open(config: &Config, mut bootstrap: SharedBootstrap) -> Result<Self> {
        let policy = WaitPolicy::from_config(config, bootstrap.locality().local_size);
        let check = |rail: &dyn ByteTransport| match rail.capabilities() {
            all if all.contains(Capabilities::PUT) => Ok(()),
            _ => Err(lacks(rail.name())),
        };
        let Connected { rail, endpoints } = connect(config, &mut bootstrap, check)?;
        let (waiter, policy) = (rail.waiter(), policy.over(rail.capabilities()));
        let shared = Arc::new(Shared {
            driver: Mutex::new(Driver {
                rail,
                endpoints,
                next_flush: WRITE.0 + 1,
                core: Core::default(),
            }),
            waiter,
            policy,
        });
        let stop = Arc::new(AtomicBool::new(false));
        let (driven, stopped) = (Arc::clone(&shared), Arc::clone(&stop));
        let thread = std::thread::Builder::new()
            .name("remote access".to_owned())
            .spawn(move || driven.drive(&stopped));
        let thread =
            thread.map_err(|source| Error::system("start a thread for remote access", source))?;
        Ok(Self {
            shared,
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for RailWindows {
    #[inline]
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.shared.waiter.wake();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing more to say.
            let _ = thread.join();
        }
        // A rank that unwinds has failed.
        if !std::thread::panicking() {
            self.shared.lock().rail.leave();
        }
    }
}

impl Windows for RailWindows {
    #[inline]
    fn open(&self, room: Incoming, exchange: Exchange<'_>) -> Result<Box<dyn Window + '_>> {
        let buffer = room.buffer();
        let address = buffer.region().map_or(0, |region| region.address());
        let handle = self.shared.lock().rail.register(&buffer)?;
        let own = [&address.to_le_bytes(), &handle.key[..]].concat();
        let mut targets = Vec::new();
        for (rank, bytes) in exchange(&own)? {
            let Some((address, key)) = bytes.split_first_chunk() else {
                return Err(Error::Peer(format!("rank {rank} sent no key")));
            };
            if targets.len() <= rank.index() {
                targets.resize_with(rank.index() + 1, || None);
            }
            targets[rank.index()] = Some(Target {
                endpoint: self.shared.lock().endpoint(rank)?,
                address: u64::from_le_bytes(*address),
                key: key.to_vec(),
            });
        }
        Ok(Box::new(RailWindow {
            shared: &self.shared,
            room,
            targets,
            handle: Some(handle),
        }))
    }
}

/// A rank's memory.
struct Target {
    endpoint: EndpointId,
    address: u64,
    key: Vec<u8>,
}

struct RailWindow<'p> {
    shared: &'p Shared,
    room: Incoming,
    /// By rank; none of those that are no peers.
    targets: Vec<Option<Target>>,
    /// There until the drop.
    handle: Option<RegistrationHandle>,
}

impl RailWindow<'_> {
    #[inline]
    fn target(&self, rank: Rank) -> Result<&Target> {
        let found = self.targets.get(rank.index()).and_then(Option::as_ref);
        found.ok_or_else(|| Error::Peer(format!("rank {rank} has no window for this one")))
    }
}

impl Window for RailWindow<'_> {
    #[inline]
    fn put(&self, data: Outgoing, to: Rank, offset: usize) -> Result<()> {
        let target = self.target(to)?;
        let memory = RemoteMemory {
            address: target.address + offset as u64,
            key: &target.key,
        };
        let buffer = data.buffer();
        self.shared.insist(|driver| {
            let rail = &mut driver.rail;
            Ok(rail.put(LANE, target.endpoint, &buffer, memory, None, WRITE))
        })
    }

    #[inline]
    fn flush(&self, to: &[Rank]) -> Result<()> {
        // All are under way before the first is waited for.
        let mut tokens = Vec::with_capacity(to.len());
        for rank in to {
            let endpoint = self.target(*rank)?.endpoint;
            self.shared.insist(|driver| {
                let token = driver.next_flush;
                let posted = driver.rail.flush(LANE, endpoint, Token(token));
                if posted == Post::Posted {
                    driver.next_flush += 1;
                    driver.core.flushes.insert(token);
                    tokens.push(token);
                }
                Ok(posted)
            })?;
        }
        self.shared.until(|driver| {
            let under_way = |token: &u64| driver.core.flushes.contains(token);
            Ok((!tokens.iter().any(under_way)).then_some(()))
        })
    }

    #[inline]
    fn has_reached(&self, offset: usize, value: u64) -> Result<bool> {
        if self.room.shared_word(offset) >= value {
            return Ok(true);
        }
        let mut driver = self.shared.lock();
        driver.progress();
        driver.check()?;
        Ok(self.room.shared_word(offset) >= value)
    }
}

impl Drop for RailWindow<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take() {
            self.shared.lock().rail.deregister(handle);
        }
    }
}
