//! The object that a rank owns: its calls, and its own lock.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tagwire_base::{Bootstrap, Rank};
use tagwire_matching::Engine;

use crate::allocation::Allocation;
use crate::byte::ByteTransport;
use crate::capability::{Capabilities, ThreadMode, WaitObject};
use crate::data::{RecvBuffer, SendBuffer, WriteRegion};
use crate::error::Result;
use crate::matching::{
    Cancel, ClaimId, Directed, MatchCounts, MatchEnvelope, MatchLevels, MatchLimits, MatchPattern,
    MatchRemote, MatchTransport, MatchUpcalls, Posted, Probed, Refusal, Sent,
};
use crate::message::{EndpointId, Lane, Token};
use crate::shm::config::{CrossAttach, ShmOptions};
use crate::shm::layout::{AREA, MAX_SHORT};
use crate::shm::matching::deliver::{Deliver, drain_rings};
use crate::shm::matching::layout::RECEIVES;
use crate::shm::matching::list::MatchList;
use crate::shm::matching::lock::{self, Held};
use crate::shm::matching::receiver::Placing;
use crate::shm::matching::recovery;
use crate::shm::matching::sender_matcher::{SenderMatcher, Visits};
use crate::shm::matching::state::State;
use crate::shm::matching::table;
use crate::shm::matching::wire::{BITS, IGNORABLE};
use crate::shm::transfer::Lost;
use crate::shm::{NAME, Shm};
use crate::transport::Transport;
use crate::wait::Waiter;

/// Shared memory as a transport that matches.
pub struct ShmMatch {
    pub(super) shm: Shm,
    pub(super) state: State,
    sender_matcher: SenderMatcher,
    /// A posting call has looked into the rings since the last call of progress.
    has_looked: bool,
    /// Attempts to get the lock that failed, in a row.
    shut_out: u32,
}

/// How long a call waits for the lock before it goes without.
const LOCK_LIMIT: Duration = Duration::from_millis(50);

impl ShmMatch {
    /// Opens the transport of the rank that `bootstrap` is for, as [`Shm::open`] does. All ranks
    /// of a job open the same.
    ///
    /// # Errors
    /// As [`Shm::open`].
    pub fn open(options: ShmOptions, bootstrap: &mut dyn Bootstrap) -> Result<Self> {
        let rank = bootstrap.rank();
        let options = ShmOptions {
            matches: true,
            ..options
        };
        let shm = Shm::open(options, bootstrap)?;
        let map = shm.segment.map_target().map_err(|error| {
            tagwire_base::Error::system(format!("{NAME}: map the match list"), error)
        })?;
        let list = MatchList::open(map, shm.options.headers, shm.options.overflow);
        Ok(Self {
            state: State::new(rank, list),
            shm,
            sender_matcher: SenderMatcher::new(),
            has_looked: false,
            shut_out: 0,
        })
    }

    /// As [`Shm::set_descriptor_source`].
    pub fn set_descriptor_source(
        &mut self,
        source: impl FnMut(Rank) -> tagwire_base::Result<std::os::fd::OwnedFd> + Send + 'static,
    ) {
        self.shm.set_descriptor_source(source);
    }

    /// As [`Shm::memory_in_use`].
    ///
    /// # Errors
    /// As there.
    pub fn memory_in_use(&self) -> Result<u64> {
        self.shm.memory_in_use()
    }

    // ---- the lock

    /// Takes the own lock, if it is to be had soon.
    #[inline]
    fn lock(&mut self) -> Option<Held> {
        let word = &self.state.receiver.list.table.map.head().lock;
        let rank = self.state.receiver.rank.as_u32();
        if let Some(held) = lock::try_lock(word, rank) {
            return Some(held);
        }
        for _ in 0..200 {
            std::hint::spin_loop();
            if let Some(held) = lock::try_lock(word, rank) {
                return Some(held);
            }
        }
        self.lock_late()
    }

    /// A holder that takes long has been put aside by the system, or has died.
    #[cold]
    fn lock_late(&mut self) -> Option<Held> {
        self.shut_out = self.shut_out.wrapping_add(1);
        if !self.shut_out.is_multiple_of(64) {
            std::thread::yield_now();
        } else if let Some(held) = self.take_over() {
            return Some(held);
        }
        let word = &self.state.receiver.list.table.map.head().lock;
        lock::try_lock(word, self.state.receiver.rank.as_u32())
    }

    /// Takes the own lock, for calls that have to do their work now.
    fn lock_patiently(&mut self) -> Option<Held> {
        if let Some(held) = self.lock() {
            return Some(held);
        }
        let deadline = self.shm.clock.now() + LOCK_LIMIT;
        while self.shm.clock.now() < deadline {
            if let Some(held) = self.lock() {
                return Some(held);
            }
        }
        self.take_over()
    }

    fn take_over(&mut self) -> Option<Held> {
        let State {
            receiver, failures, ..
        } = &mut self.state;
        recovery::take_over(&mut self.shm, receiver, failures)
    }

    fn unlock(&mut self, held: Held) {
        self.shut_out = 0;
        lock::unlock(&self.state.receiver.list.table.map.head().lock, held);
    }

    // ---- what calls have in common

    /// Does what every holder of the lock does first.
    #[inline]
    fn catch_up(&mut self, upcalls: Option<&mut dyn MatchUpcalls>) -> usize {
        let completions = &mut self.state.completions;
        self.state
            .receiver
            .catch_up(&mut self.shm, completions, upcalls)
    }

    /// Runs the pending operations. What ends by it is reported at once, or later without `upcalls`.
    #[inline(always)]
    fn run_pending(&mut self, upcalls: Option<&mut dyn MatchUpcalls>) -> usize {
        let State {
            receiver,
            controls,
            completions,
            ..
        } = &mut self.state;
        let events =
            receiver
                .pending
                .run(&mut self.shm, &mut receiver.receives, controls, completions);
        match upcalls {
            Some(upcalls) if events != 0 => events + completions.report(upcalls),
            _ => events,
        }
    }

    #[inline]
    fn rings_are_ready(&self) -> bool {
        self.shm.inbound.iter().any(|way| way.consumer.is_ready())
    }

    /// Looks into the own rings from within a posting call, the first since progress; what ends is
    /// reported later. A sender that sleeps has looked after its messages before, but may have been
    /// sent off by a receiver inside its calls, which then goes and computes.
    ///
    /// Not from every posting call: each look takes the line away that the sender writes next.
    /// With it a window of receives cost four times as much (1.6 against 6 M messages/s).
    fn look_now(&mut self) {
        if std::mem::replace(&mut self.has_looked, true) {
            return;
        }
        if self.rings_are_ready() {
            drain_rings(&mut self.shm, &mut self.state, None);
        }
    }

    /// Receives the message that is kept under a header, which has left matching. Under the lock.
    fn receive_kept(&mut self, header: u32, region: WriteRegion, token: Token) -> Posted {
        let Some(kept) = self.state.receiver.list.kept(header) else {
            return self.state.receiver.damaged();
        };
        if kept.is_answered() {
            let peer = self.shm.by_rank.get(&kept.envelope.source);
            if peer.is_none_or(|at| self.shm.peers[at.index()].inbound.is_none()) {
                // It has matched for us before we took note of its contact. Should it be gone as well, the
                // message is not taken for one that waits.
                self.state.receiver.list.mark_claimed(header);
                let mut deliver = Deliver::new(&mut self.state, None);
                self.shm.look_at_contacts(&mut deliver);
            }
        }
        self.state
            .receiver
            .receive_kept(&self.shm, header, &kept, region, token)
    }

    // ---- parts of progress

    /// Does the work of a holder of the own lock.
    #[inline]
    fn hold(&mut self, peers: bool, upcalls: &mut dyn MatchUpcalls) -> usize {
        let mut events = self.catch_up(Some(&mut *upcalls));
        events += drain_rings(&mut self.shm, &mut self.state, Some(&mut *upcalls));
        if peers {
            events += self.attend_peers(&mut *upcalls);
        }
        self.state.receiver.run_cancels(upcalls);
        if self.state.receiver.has_starved() {
            self.state.receiver.allow_more(&self.shm);
        }
        events
    }

    #[cold]
    fn attend_peers(&mut self, upcalls: &mut dyn MatchUpcalls) -> usize {
        let mut deliver = Deliver::new(&mut self.state, Some(&mut *upcalls));
        let mut events = self.shm.attend_peers(&mut deliver);
        for (endpoint, reason) in std::mem::take(&mut self.state.broken) {
            if self.shm.is_alive(endpoint) {
                let mut deliver = Deliver::new(&mut self.state, Some(&mut *upcalls));
                events += self
                    .shm
                    .break_off(endpoint, reason.to_owned(), &mut deliver);
            }
        }
        let State {
            receiver,
            completions,
            ..
        } = &mut self.state;
        if !receiver.late.is_empty() {
            events += receiver.take_events(&self.shm, completions, Some(&mut *upcalls));
        }
        self.take_failures(upcalls);
        events
    }

    /// Ends the peers that the bootstrap calls failed. Under the lock.
    fn take_failures(&mut self, upcalls: &mut dyn MatchUpcalls) {
        for rank in std::mem::take(&mut self.state.failures) {
            let mut deliver = Deliver::new(&mut self.state, Some(&mut *upcalls));
            ByteTransport::peer_failed(&mut self.shm, rank, &mut deliver);
        }
    }

    #[inline]
    fn move_transfers(&mut self, upcalls: &mut dyn MatchUpcalls) -> usize {
        let mut deliver = Deliver::new(&mut self.state, Some(upcalls));
        let events = self.shm.move_transfers(&mut deliver);
        // Peers are ended under the lock.
        while let Some((endpoint, reason)) = self.shm.transfers.take_lost() {
            match reason {
                Lost::Insane(what) => self.state.broken.push((endpoint, what)),
                Lost::Dead => {
                    let rank = self.shm.peers[endpoint.index()].rank;
                    self.state.failures.push(rank);
                }
            }
        }
        self.shm.note_attention();
        events
    }

    /// Sends what was kept back, and the bytes that were asked for.
    fn push(&mut self, upcalls: &mut dyn MatchUpcalls) -> usize {
        let events = self.state.controls.push(&mut self.shm);
        events + self.state.sender.push(&mut self.shm, upcalls)
    }
}

impl Transport for ShmMatch {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        self.shm.capabilities()
    }

    fn address(&self) -> Vec<u8> {
        self.shm.address()
    }

    fn connect(&mut self, peer: Rank, address: &[u8]) -> Result<EndpointId> {
        let endpoint = self.shm.connect(peer, address)?;
        self.state.know(endpoint, peer);
        Ok(endpoint)
    }

    fn leave(&mut self) {
        Transport::leave(&mut self.shm);
    }

    fn allocate(&mut self, len: usize) -> Option<Allocation> {
        let memory = self.shm.allocate(len);
        self.state.receiver.receives.span = self.shm.arena.span;
        memory
    }

    #[cfg(feature = "partitioned")]
    fn channels(&mut self, peer: EndpointId) -> Option<(&mut dyn crate::Channels, EndpointId)> {
        self.shm.channels(peer)
    }

    #[cfg(feature = "coll")]
    fn boards(&mut self, peer: EndpointId) -> Option<(&mut dyn crate::Boards, EndpointId)> {
        self.shm.boards(peer)
    }

    fn waiter(&self) -> Arc<dyn Waiter> {
        Transport::waiter(&self.shm)
    }

    fn describe(&self, out: &mut dyn fmt::Write) {
        Transport::describe(&self.shm, out);
        for (target, rank) in self.state.sender.targets.iter().zip(&self.state.ranks) {
            if !target.held.is_empty() {
                let held = target.held.len();
                let _ = writeln!(out, "shm: rank {rank}: {held} messages kept back for it");
            }
        }
        if let Some((holder, _)) = lock::holder(&self.state.receiver.list.table.map.head().lock) {
            let _ = writeln!(out, "shm: rank {holder} has the lock of the match list");
        }
    }
}

impl MatchTransport for ShmMatch {
    fn remote(&mut self) -> Option<&mut dyn MatchRemote> {
        Some(&mut self.shm)
    }

    fn match_limits(&self) -> MatchLimits {
        MatchLimits {
            bits: BITS,
            ignorable: IGNORABLE,
            ignorable_in_part: false,
            directed: Directed::BySource,
            max_message: u64::MAX >> 16,
            max_short: MAX_SHORT,
            max_posted: RECEIVES,
            lanes: 1,
            memory_per_peer: AREA,
            thread_mode: ThreadMode::Transport,
            wait_object: WaitObject::Futex,
        }
    }

    #[inline]
    fn send(
        &mut self,
        _lane: Lane,
        to: EndpointId,
        bits: u64,
        data: &SendBuffer,
        synchronous: bool,
        token: Token,
    ) -> Sent {
        self.state
            .sender
            .send(&mut self.shm, to, bits, data, synchronous, token)
    }

    fn post(
        &mut self,
        _lane: Lane,
        pattern: MatchPattern,
        data: &RecvBuffer,
        token: Token,
    ) -> Posted {
        let Some(region) = data.region() else {
            return Posted::Refused(Refusal::Shape);
        };
        if (pattern.bits | pattern.ignore) & !BITS != 0 {
            return Posted::Refused(Refusal::ReservedBits);
        }
        let Some(wanted) = table::pattern(&pattern) else {
            return Posted::Refused(Refusal::Ignore);
        };
        self.state.receiver.receives.grow();
        let Some(held) = self.lock_patiently() else {
            return Posted::Busy;
        };
        self.catch_up(None);
        match self.state.receiver.post(pattern, wanted, region, token) {
            Placing::Queued => {
                self.look_now();
                self.unlock(held);
            }
            Placing::Kept(index) => {
                let posted = self.receive_kept(index, region, token);
                self.unlock(held);
                self.run_pending(None);
                return posted;
            }
            Placing::Full => {
                self.unlock(held);
                return Posted::Full;
            }
        }
        self.run_pending(None);
        if self.state.receiver.is_held_back() {
            self.state.receiver.rouse_holders(&self.shm, false);
        }
        if let Some(end) = self.state.completions.take_receive(token) {
            return Posted::Done(end);
        }
        Posted::Open
    }

    fn probe(&mut self, _lane: Lane, pattern: MatchPattern, claim: bool, _token: Token) -> Probed {
        if (pattern.bits | pattern.ignore) & !BITS != 0 {
            return Probed::Refused(Refusal::ReservedBits);
        }
        let Some(wanted) = table::pattern(&pattern) else {
            return Probed::Refused(Refusal::Ignore);
        };
        let Some(held) = self.lock_patiently() else {
            return Probed::Busy;
        };
        self.catch_up(None);
        if self.rings_are_ready() {
            drain_rings(&mut self.shm, &mut self.state, None);
        }
        let found = self.state.receiver.list.probe(wanted, claim);
        self.unlock(held);
        self.run_pending(None);
        match found {
            Some(found) => Probed::Found(found),
            None => {
                if self.state.receiver.is_held_back() {
                    self.state.receiver.rouse_holders(&self.shm, true);
                }
                Probed::Nothing
            }
        }
    }

    fn receive_claimed(
        &mut self,
        _lane: Lane,
        claim: ClaimId,
        data: &RecvBuffer,
        token: Token,
    ) -> Posted {
        let Some(region) = data.region() else {
            return Posted::Refused(Refusal::Shape);
        };
        let Some(header) = self.state.receiver.list.claimed(claim) else {
            return Posted::Refused(Refusal::Unknown);
        };
        self.state.receiver.receives.grow();
        if self.state.receiver.receives.next().is_none() {
            return Posted::Full;
        }
        let Some(held) = self.lock_patiently() else {
            return Posted::Busy;
        };
        self.catch_up(None);
        let posted = self.receive_kept(header, region, token);
        self.unlock(held);
        self.run_pending(None);
        posted
    }

    fn cancel(&mut self, _lane: Lane, token: Token) -> Cancel {
        let Some(held) = self.lock_patiently() else {
            let receiver = &mut self.state.receiver;
            let Some(index) = receiver.receives.find(token) else {
                return Cancel::TooLate;
            };
            receiver.cancels.push(receiver.receives.name(index));
            return Cancel::Pending;
        };
        self.catch_up(None);
        let receiver = &mut self.state.receiver;
        let found = receiver.receives.find(token);
        let cancelled = found.is_some_and(|index| receiver.cancel(index));
        self.unlock(held);
        self.run_pending(None);
        if cancelled {
            Cancel::Cancelled
        } else {
            Cancel::TooLate
        }
    }

    fn progress(&mut self, _lane: Lane, upcalls: &mut dyn MatchUpcalls) -> usize {
        self.has_looked = false;
        // What ended before comes first.
        let mut events = self.state.completions.report(upcalls);
        let contacts = self.shm.header.contacts.word.load(Relaxed) != self.shm.seen_contacts;
        let peers = contacts
            | self.shm.attention
            | !self.state.broken.is_empty()
            | !self.state.failures.is_empty();
        let has_work = peers
            || self.state.receiver.was_visited()
            || self.rings_are_ready()
            || !self.state.receiver.cancels.is_empty();
        if has_work && let Some(held) = self.lock() {
            events += self.hold(peers, upcalls);
            self.unlock(held);
        }
        if self.shm.attention {
            events += self.move_transfers(upcalls);
        }
        events += self.run_pending(Some(upcalls));
        events += self.state.completions.report(upcalls);
        if !self.state.sender.sends.is_empty() || !self.state.controls.is_empty() {
            events += self.push(upcalls);
        }
        if events != 0 {
            self.sender_matcher.busy();
        } else if !self.state.sender.targets.dirty.is_empty() {
            let mut visits = Visits {
                rank: self.state.receiver.rank,
                shm: &mut self.shm,
                sender: &mut self.state.sender,
                completions: &mut self.state.completions,
            };
            events = self.sender_matcher.idle(&mut visits, upcalls);
        }
        events
    }

    fn look_after_peers(&mut self, upcalls: &mut dyn MatchUpcalls) {
        let Some(held) = self.lock_patiently() else {
            return;
        };
        self.catch_up(Some(upcalls));
        let mut deliver = Deliver::new(&mut self.state, Some(upcalls));
        self.shm.look_after(&mut deliver);
        self.unlock(held);
        self.run_pending(Some(upcalls));
        self.state.completions.report(upcalls);
        self.state.sender.wake_untaken(&self.shm);
    }

    fn peer_failed(&mut self, rank: Rank, upcalls: &mut dyn MatchUpcalls) {
        self.state.failures.push(rank);
        // Its process may still have the lock.
        if let Some(held) = self.lock_patiently() {
            self.catch_up(Some(upcalls));
            self.take_failures(upcalls);
            self.unlock(held);
        }
        self.run_pending(Some(upcalls));
        self.state.completions.report(upcalls);
    }

    fn unfinished(&self) -> usize {
        self.state.controls.len() + self.state.receiver.pending.len() + self.state.completions.len()
    }

    fn matcher(&self) -> &'static str {
        table::ENGINE
    }

    fn counts(&self) -> MatchCounts {
        let State {
            receiver, sender, ..
        } = &self.state;
        MatchCounts {
            fetched: receiver.fetched,
            kept_back: sender.kept_back,
            engine: Some(receiver.list.table.engine.stats()),
        }
    }

    fn levels(&self) -> MatchLevels {
        let targets = self.state.sender.targets.iter();
        MatchLevels {
            held: targets.map(|target| target.held.len()).sum(),
            ..self.state.receiver.list.levels()
        }
    }

    fn visit_unexpected(&self, visit: &mut dyn FnMut(&MatchEnvelope)) {
        self.state.receiver.list.visit(visit);
    }
}

impl fmt::Debug for ShmMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShmMatch")
            .field("rank", &self.state.receiver.rank)
            .field(
                "cross_attach",
                &(self.shm.options.cross_attach != CrossAttach::Off),
            )
            .finish_non_exhaustive()
    }
}
