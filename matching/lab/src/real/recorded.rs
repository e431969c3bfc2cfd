//! A job of this process whose ranks are threads, and whose engines are recorded: what ranks do by themselves, in the order in
//! which the machine has them take turns.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tagwire_base::bootstrap::{LocalJob, SharedBootstrap};
use tagwire_base::clock::Clock;
use tagwire_base::{Config, ContextId, Rank};
use tagwire_matching::{Engines, Pattern};
use tagwire_pml::{Messenger, RequestId, Status, ThreadLevel};

use super::Way;
use super::content::Room;
use super::job::{DEADLINE, config, words};
use super::plan::MOST_RANKS;
use crate::trace::Trace;

/// A rank of the job.
pub(crate) struct Member<'a> {
    pub(crate) port: Messenger,
    watch: &'a Watch,
}

/// What all ranks know of each other.
#[derive(Debug)]
struct Watch {
    /// Why one has failed, the first that did.
    why: Mutex<Option<String>>,
    has_failed: AtomicBool,
    /// Things that happened at any rank.
    events: AtomicU64,
    /// Ranks that are done.
    done: AtomicU32,
    clock: Clock,
}

/// A receive that was posted.
#[derive(Debug)]
pub(crate) struct Posted {
    pub(crate) request: RequestId,
    pub(crate) room: Room,
}

/// Has each rank act, and returns the traces of their engines, by rank.
///
/// # Errors
/// What the first rank that failed could not do, or what the job refused.
pub(crate) fn recorded(
    ranks: u32,
    way: Way<'_>,
    known: &Engines,
    act: impl Fn(&Member<'_>) -> Result<(), String> + Sync,
) -> Result<Vec<Trace>, String> {
    if ranks as usize > MOST_RANKS {
        return Err(format!(
            "it has {ranks} ranks, and a job of this process has at most {MOST_RANKS}"
        ));
    }
    let folder = tempfile::tempdir().map_err(words)?;
    let record = format!("record={}", folder.path().display());
    let settings = [way.settings, &[record]].concat();
    let settings = &settings[..];
    let config = config(Way { settings, ..way }, known)?;
    let local = LocalJob::new(ranks).map_err(words)?;
    let watch = Watch {
        why: Mutex::new(None),
        has_failed: AtomicBool::new(false),
        events: AtomicU64::new(0),
        done: AtomicU32::new(0),
        clock: Clock::default(),
    };
    thread::scope(|scope| {
        for rank in 0..ranks {
            let (config, local, watch, act) = (&config, &local, &watch, &act);
            let run = move || {
                let member = SharedBootstrap::new(Box::new(local.member(Rank::new(rank))));
                let ran =
                    Member::open(config, member, watch).and_then(|member| member.run(ranks, act));
                if let Err(why) = ran {
                    watch.fail(&format!("rank {rank}: {why}"));
                }
            };
            let spawned = thread::Builder::new().spawn_scoped(scope, run);
            if let Err(error) = spawned {
                watch.fail(&format!("there is no thread for rank {rank}: {error}"));
            }
        }
    });
    let failed = watch.why.into_inner();
    match failed.unwrap_or_else(PoisonError::into_inner) {
        Some(why) => Err(why),
        None => {
            let read = Trace::read_all(&[folder.path().to_owned()], false);
            let traces = read.map_err(words)?.into_iter();
            Ok(traces.map(|(_, trace)| trace).collect())
        }
    }
}

impl Watch {
    fn fail(&self, why: &str) {
        let mut first = self.why.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert_with(|| why.to_owned());
        self.has_failed.store(true, Ordering::Release);
    }

    fn check(&self) -> Result<(), String> {
        match self.has_failed.load(Ordering::Acquire) {
            true => Err("another one has failed".to_owned()),
            false => Ok(()),
        }
    }
}

impl<'a> Member<'a> {
    fn open(config: &Config, bootstrap: SharedBootstrap, watch: &'a Watch) -> Result<Self, String> {
        let port = tagwire_pml::open(config, ThreadLevel::Multiple, Box::new(bootstrap));
        let port = port.map_err(words)?;
        Ok(Self { port, watch })
    }

    /// Acts, waits for the others, so that nobody misses what this rank does for them, and closes.
    fn run(self, ranks: u32, act: &impl Fn(&Self) -> Result<(), String>) -> Result<(), String> {
        let acted = act(&self).and_then(|()| {
            self.watch.done.fetch_add(1, Ordering::AcqRel);
            self.until("the other ranks were not done", || {
                let done = self.watch.done.load(Ordering::Acquire);
                Ok((done == ranks).then_some(()))
            })
        });
        if let Err(why) = &acted {
            // Before the rank closes, which others wait for.
            let rank = self.port.rank().as_u32();
            self.watch.fail(&format!("rank {rank}: {why}"));
        }
        let closed = self.port.close(DEADLINE).map_err(words);
        acted.and(closed)
    }

    /// Makes progress until something is there. `what` was not, where nothing happened at any rank for long.
    pub(crate) fn until<T>(
        &self,
        what: &str,
        mut look: impl FnMut() -> Result<Option<T>, String>,
    ) -> Result<T, String> {
        let clock = &self.watch.clock;
        let (mut seen, mut idle, mut since) = (0, 0_u32, clock.now());
        loop {
            if let Some(found) = look()? {
                return Ok(found);
            }
            self.watch.check()?;
            let events = self.port.progress().map_err(words)? as u64;
            let before = self.watch.events.fetch_add(events, Ordering::Relaxed);
            if events > 0 || before != seen {
                (seen, idle, since) = (before + events, 0, clock.now());
                continue;
            }
            // Time alone passes as well while the process is stopped.
            idle = idle.saturating_add(1);
            if idle > IDLE && clock.now().since(since) > DEADLINE {
                let seconds = DEADLINE.as_secs();
                return Err(format!(
                    "{what} after {seconds} s in which nothing happened"
                ));
            }
            thread::yield_now();
        }
    }

    /// Computes for so many nanoseconds.
    pub(crate) fn compute(&self, nanos: u64) {
        let clock = &self.watch.clock;
        let end = clock.now() + Duration::from_nanos(nanos);
        while clock.now() < end {
            std::hint::spin_loop();
        }
    }

    /// Waits without progress until others have done something, and stops where a rank fails.
    pub(crate) fn wait_for(&self, mut is_done: impl FnMut() -> bool) -> Result<(), String> {
        while !is_done() {
            self.watch.check()?;
            thread::yield_now();
        }
        Ok(())
    }

    /// Posts a receive with room for so many bytes.
    pub(crate) fn irecv(&self, pattern: Pattern, bytes: usize) -> Result<Posted, String> {
        let room = Room::default();
        let (buffer, context) = (room.buffer(bytes), pattern.context);
        let request = self
            .port
            .irecv(buffer, pattern.source, pattern.tag, context);
        let request = request.map_err(words)?;
        Ok(Posted { request, room })
    }

    /// Takes the end of a request, where it has come.
    pub(crate) fn ended(&self, request: RequestId) -> Result<Option<Status>, String> {
        let status = self.port.take(request).map_err(words)?;
        match status.as_ref().and_then(|status| status.failure.as_ref()) {
            Some(failure) => Err(failure.to_string()),
            None => Ok(status),
        }
    }

    /// Opens so many contexts beside the world's, and returns all: the same of all ranks, which do so alike.
    pub(crate) fn contexts(&self, others: usize) -> Result<Vec<ContextId>, String> {
        let opened = (0..others).map(|_| self.port.open_context().map_err(words));
        std::iter::once(Ok(ContextId::WORLD))
            .chain(opened)
            .collect()
    }

    /// Tells the others that a thread of this rank has failed.
    pub(crate) fn fail(&self, why: &str) {
        let rank = self.port.rank().as_u32();
        self.watch.fail(&format!("rank {rank}: {why}"));
    }
}

/// Rounds of progress of a rank without anything happening anywhere, before its wait may be given up.
const IDLE: u32 = 100_000;
