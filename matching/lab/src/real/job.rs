//! The ranks of a plan, in this process and driven by one thread.

use std::thread;
use std::time::Duration;

use tagwire_base::bootstrap::{LocalJob, SharedBootstrap};
use tagwire_base::clock::Clock;
use tagwire_base::{Config, ContextId, Rank, Registry, SourceSelector, TagSelector};
use tagwire_matching::{Engines, Envelope, Pattern};
use tagwire_pml::{Messenger, RequestId, SendMode, Status, ThreadLevel};
use tagwire_transport::matching::MatchLevels;

use super::content::{Room, message};
use super::plan::{Action, LONGEST, Plan, Step};
use super::{Ran, Way};

/// The ranks, and what is under way.
pub(super) struct Job {
    own: Messenger,
    /// Those that only send, from rank 1 on.
    peers: Vec<Messenger>,
    /// This rank's contexts, by their numbers in the plan.
    contexts: Vec<ContextId>,
    /// The receives that were queued, by their numbers; `None`: its end was taken.
    receives: Vec<Option<Posted>>,
    /// Sends that are not complete, with their ranks.
    sends: Vec<(u32, RequestId)>,
    /// The messages that are queued behind the last call.
    queued: Vec<Envelope>,
    /// Messages that have to be queued now, and that were so far.
    length: u64,
    ever: u64,
    /// Rounds of progress in which nothing happened.
    idle: u32,
    most: MatchLevels,
    clock: Clock,
}

/// A receive.
struct Posted {
    request: RequestId,
    room: Room,
}

impl Job {
    pub(super) fn open(plan: &Plan, way: Way<'_>, known: &Engines) -> Result<Self, String> {
        let config = config(way, known)?;
        let local = LocalJob::new(plan.ranks).map_err(words)?;
        let open = |rank, level| {
            let member = SharedBootstrap::new(Box::new(local.member(Rank::new(rank))));
            tagwire_pml::open(&config, level, Box::new(member)).map_err(words)
        };
        // Opening waits for the other ranks.
        let (own, peers) = thread::scope(|scope| {
            let open = &open;
            let opened: Vec<_> = (1..plan.ranks)
                .map(|rank| scope.spawn(move || open(rank, ThreadLevel::Multiple)))
                .collect();
            let own = open(0, ThreadLevel::Single);
            let joined = opened.into_iter().map(|thread| {
                let joined = thread.join();
                joined.unwrap_or_else(|_| Err("a rank panicked".to_owned()))
            });
            let peers: Result<Vec<Messenger>, String> = joined.collect();
            (own, peers)
        });
        let (own, peers) = (own?, peers?);
        let others = (0..plan.contexts).map(|_| own.open_context());
        let mut contexts = vec![ContextId::WORLD];
        for context in others {
            contexts.push(context.map_err(words)?);
        }
        Ok(Self {
            own,
            peers,
            contexts,
            receives: Vec::new(),
            sends: Vec::new(),
            queued: plan.queued.clone(),
            length: 0,
            ever: 0,
            idle: 0,
            most: MatchLevels::default(),
            clock: Clock::default(),
        })
    }

    /// Does one step, and waits until what follows from it has been seen.
    pub(super) fn make(&mut self, step: &Step) -> Result<(), String> {
        match step.action {
            Action::Post {
                pattern,
                bytes,
                takes,
            } => self.post(pattern, bytes, takes),
            Action::Send {
                envelope,
                number,
                bytes,
                goes_to,
            } => self.send(envelope, (number, bytes), goes_to),
            Action::Probe { pattern, finds } => self.probe(pattern, finds),
            Action::Claim { pattern, takes } => self.claim(pattern, takes),
            Action::Cancel { receive, withdrawn } => self.cancel(receive, withdrawn),
        }?;
        self.look_at_lists()
    }

    fn post(&mut self, pattern: Pattern, bytes: usize, takes: Option<u64>) -> Result<(), String> {
        let posted = self.irecv(pattern, bytes)?;
        if let Some(number) = takes {
            self.length -= 1;
            return self.ends_with(&posted, number);
        }
        if self.own.is_complete(posted.request).map_err(words)? {
            return Err("the receive took a message at once, and there was none for it".to_owned());
        }
        self.receives.push(Some(posted));
        Ok(())
    }

    fn send(
        &mut self,
        envelope: Envelope,
        (number, bytes): (u64, usize),
        goes_to: Option<u32>,
    ) -> Result<(), String> {
        let rank = envelope.source.as_u32();
        let context = self.context(envelope.context);
        let data = message(number, bytes);
        let sent = self.rank(rank).isend(
            data,
            self.own.rank(),
            envelope.tag,
            context,
            SendMode::Standard,
        );
        self.sends.push((rank, sent.map_err(words)?));
        let Some(receive) = goes_to else {
            (self.length, self.ever) = (self.length + 1, self.ever + 1);
            return self.until(
                "the message was not among the unexpected ones",
                Self::is_queued,
            );
        };
        let posted = self.receives.get_mut(receive as usize);
        let posted = posted.and_then(Option::take);
        let posted = posted.ok_or("its receive had ended before")?;
        self.ends_with(&posted, number)
    }

    fn probe(&mut self, pattern: Pattern, finds: Option<Envelope>) -> Result<(), String> {
        let (from, tag, context) = self.selectors(pattern);
        let mut found = None;
        // A message that its sender keeps is asked for first.
        self.until("the probe found nothing", |job| {
            found = job.own.probe(from, tag, context).map_err(words)?;
            Ok(found.is_some() || finds.is_none())
        })?;
        let found = found.map(|status| (status.source, status.tag));
        let wanted = finds.map(|message| (message.source, message.tag));
        match found == wanted {
            true => Ok(()),
            false => Err(format!("the probe found {found:?} in place of {wanted:?}")),
        }
    }

    fn claim(&mut self, pattern: Pattern, takes: Option<(u64, usize)>) -> Result<(), String> {
        let (from, tag, context) = self.selectors(pattern);
        let mut claimed = None;
        self.until("no message was claimed", |job| {
            claimed = job.own.claim(from, tag, context).map_err(words)?;
            Ok(claimed.is_some() || takes.is_none())
        })?;
        match (claimed, takes) {
            (None, None) => Ok(()),
            (Some((message, _)), Some((number, bytes))) => {
                self.length -= 1;
                let room = Room::default();
                let request = self.own.irecv_claimed(room.buffer(bytes), message);
                let request = request.map_err(words)?;
                self.ends_with(&Posted { request, room }, number)
            }
            (Some(_), None) => Err("a message was claimed, and there was none".to_owned()),
            (None, Some(_)) => Err("no message was claimed, and there was one".to_owned()),
        }
    }

    fn cancel(&mut self, receive: u32, withdrawn: bool) -> Result<(), String> {
        let posted = self.receives.get_mut(receive as usize);
        // One whose end was taken has matched.
        let Some(posted) = posted.and_then(Option::take) else {
            return match withdrawn {
                true => Err("the receive had ended before it was taken back".to_owned()),
                false => Ok(()),
            };
        };
        let _ = self.own.cancel(posted.request).map_err(words)?;
        match (self.end_of(posted.request)?.cancelled, withdrawn) {
            (true, true) => Ok(()),
            (false, _) => Err("the receive had matched when it was taken back".to_owned()),
            (true, false) => Err("the receive was taken back, and had matched".to_owned()),
        }
    }

    /// Waits for a receive, which has to take the message of this number.
    fn ends_with(&mut self, posted: &Posted, number: u64) -> Result<(), String> {
        let status = self.end_of(posted.request)?;
        if let Some(failure) = status.failure {
            return Err(format!("its receive failed: {failure}"));
        }
        match posted.room.number() {
            found if found == number => Ok(()),
            found => Err(format!(
                "the receive took the message of call {found} in place of that of call {number}"
            )),
        }
    }

    fn end_of(&mut self, request: RequestId) -> Result<Status, String> {
        let mut status = None;
        self.until("the receive was not complete", |job| {
            status = job.own.take(request).map_err(words)?;
            Ok(status.is_some())
        })?;
        status.ok_or_else(|| "a receive ended without a status".to_owned())
    }

    /// Makes progress until something is so; `what` is not within the deadline.
    fn until(
        &mut self,
        what: &str,
        mut is_so: impl FnMut(&Self) -> Result<bool, String>,
    ) -> Result<(), String> {
        let start = self.clock.now();
        self.idle = 0;
        loop {
            if is_so(self)? {
                return Ok(());
            }
            match self.progress()? {
                0 => self.idle += 1,
                _ => self.idle = 0,
            }
            if self.clock.now().since(start) > DEADLINE {
                let seconds = DEADLINE.as_secs();
                return Err(format!("{what} after {seconds} s, {}", self.state()));
            }
        }
    }

    /// Makes progress at this rank and where sends are under way, and at all ranks where nothing happens there. Returns how many
    /// things happened.
    fn progress(&mut self) -> Result<usize, String> {
        let mut sends = std::mem::take(&mut self.sends);
        let mut done = Ok(0);
        sends.retain(|&(rank, request)| {
            let sender = self.rank(rank);
            let events = sender.progress();
            let status = events.and_then(|events| Ok((events, sender.take(request)?)));
            match (status, &mut done) {
                (Ok((events, status)), Ok(sum)) => {
                    *sum += events;
                    status.is_none()
                }
                (Err(error), done) => {
                    *done = Err(words(error));
                    false
                }
                (Ok(_), Err(_)) => false,
            }
        });
        self.sends = sends;
        let mut sum = done? + self.own.progress().map_err(words)?;
        // A send may be complete whose message its layer still keeps.
        if sum == 0 {
            for peer in &self.peers {
                sum += peer.progress().map_err(words)?;
            }
        }
        Ok(sum)
    }

    /// Whether all messages are queued that have to be: at this rank, kept by their senders, or where a transport leaves them
    /// whose lists are full.
    fn is_queued(&self) -> Result<bool, String> {
        let statistics = self.own.statistics().map_err(words)?;
        Ok(match (statistics.levels, statistics.matching) {
            (None, Some(stats)) => stats.unexpected.queued == self.ever,
            (levels, _) => {
                let own = levels.unwrap_or_default().unexpected;
                // One thread drives all ranks: where nothing happens for long, nothing will.
                (own > 0 && self.idle > IDLE) || (own + self.held()?) as u64 == self.length
            }
        })
    }

    /// Messages that their senders keep.
    fn held(&self) -> Result<usize, String> {
        let all = self.peers.iter().chain([&self.own]);
        all.map(|rank| {
            let statistics = rank.statistics().map_err(words)?;
            Ok(statistics.levels.unwrap_or_default().held)
        })
        .sum()
    }

    /// Notes the longest lists of a transport that matches.
    fn look_at_lists(&mut self) -> Result<(), String> {
        let Some(levels) = self.own.statistics().map_err(words)?.levels else {
            return Ok(());
        };
        let held = (self.length as usize).saturating_sub(levels.unexpected);
        let most = &mut self.most;
        for (most, now) in [
            (&mut most.posted, levels.posted),
            (&mut most.unexpected, levels.unexpected),
            (&mut most.unexpected_bytes, levels.unexpected_bytes),
            (&mut most.held, held),
        ] {
            *most = now.max(*most);
        }
        Ok(())
    }

    /// What was counted, after so much time.
    pub(super) fn ran(&self, elapsed: Duration) -> Result<Ran, String> {
        let statistics = self.own.statistics().map_err(words)?;
        let mut counts = statistics.counts;
        if let Some(counts) = &mut counts {
            for peer in &self.peers {
                let own = peer.statistics().map_err(words)?.counts.unwrap_or_default();
                counts.kept_back += own.kept_back;
            }
        }
        Ok(Ran {
            elapsed,
            engine: statistics.matching,
            counts,
            most: self.most,
        })
    }

    /// Takes what is still queued, and closes all ranks. One that waits for what does not come any more gives it up after `limit`.
    pub(super) fn end(mut self, limit: Duration) -> Result<(), String> {
        let ended = self.drain();
        let Self { own, peers, .. } = self;
        let closed = thread::scope(|scope| {
            let close = |rank: &Messenger| rank.close(limit).map_err(words);
            let threads: Vec<_> = peers
                .iter()
                .map(|peer| scope.spawn(move || close(peer)))
                .collect();
            let own = close(&own);
            let joined = threads.into_iter().map(|thread| {
                let joined = thread.join();
                joined.unwrap_or_else(|_| Err("a rank panicked".to_owned()))
            });
            joined.fold(own, Result::and)
        });
        ended.and(closed)
    }

    fn drain(&mut self) -> Result<(), String> {
        for posted in std::mem::take(&mut self.receives).into_iter().flatten() {
            let _ = self.own.cancel(posted.request).map_err(words)?;
            self.end_of(posted.request)?;
        }
        for envelope in std::mem::take(&mut self.queued) {
            let posted = self.irecv(Pattern::exact(envelope), LONGEST)?;
            self.end_of(posted.request)?;
        }
        self.until("a send was not complete", |job| Ok(job.sends.is_empty()))
    }

    fn irecv(&self, pattern: Pattern, bytes: usize) -> Result<Posted, String> {
        let room = Room::default();
        let (from, tag, context) = self.selectors(pattern);
        let request = self.own.irecv(room.buffer(bytes), from, tag, context);
        let request = request.map_err(words)?;
        Ok(Posted { request, room })
    }

    fn selectors(&self, pattern: Pattern) -> (SourceSelector, TagSelector, ContextId) {
        let context = self.context(pattern.context);
        (pattern.source, pattern.tag, context)
    }

    fn context(&self, number: ContextId) -> ContextId {
        self.contexts[usize::from(number.as_u16())]
    }

    fn rank(&self, rank: u32) -> &Messenger {
        match rank.checked_sub(1) {
            None => &self.own,
            Some(peer) => &self.peers[peer as usize],
        }
    }

    /// What matches, and what it has, for whoever waits in vain.
    fn state(&self) -> String {
        let statistics = match self.own.statistics() {
            Ok(statistics) => statistics,
            Err(error) => return error.to_string(),
        };
        let mut text = format!("under {} with {}", statistics.layer, statistics.matcher);
        if let (Some(levels), Ok(held)) = (statistics.levels, self.held()) {
            let (here, length) = (levels.unexpected, self.length);
            text +=
                &format!("; of {length} messages {here} are here, and their senders keep {held}");
        }
        text
    }
}

/// The settings of the ranks.
pub(super) fn config(way: Way<'_>, known: &Engines) -> Result<Config, String> {
    let registry = Registry::new(&tagwire_pml::settings::all());
    let registry = registry
        .with_names("engine", known.names())
        .with_value(known.clone());
    let mut config = Config::defaults(&registry);
    let own = [("pml", way.layer), ("transport", way.transport)];
    let engine = way.engine.map(|engine| ("engine", engine));
    let given = way.settings.iter().filter_map(|text| text.split_once('='));
    for (name, value) in own.into_iter().chain(engine).chain(given) {
        config.set(name, value).map_err(words)?;
    }
    Ok(config)
}

pub(super) fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Rounds of progress after which nothing more is under way.
const IDLE: u32 = 1000;

/// How long anything may take.
pub(super) const DEADLINE: Duration = Duration::from_secs(10);
/// How long ranks wait for each other at the end of a job that went wrong.
pub(super) const AFTER_FAILURE: Duration = Duration::from_secs(1);
