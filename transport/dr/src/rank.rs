//! The adaptor as a transport.

use std::fmt;
use std::sync::Arc;

use tagwire_base::Rank;
use tagwire_transport::{
    AmHeader, Arrival, Body, ByteTransport, Capabilities, Class, CooperativeTransfers, EndpointId,
    Error, Lane, Limits, Outcome, PeerEvent, Post, Preference, RemoteAccess, Result, Token,
    Transport, Upcalls, Waiter,
};

use crate::NAME;
use crate::counters::Counters;
use crate::intake::{Core, Intake, activate};
use crate::link::{Health, Link, Links};
use crate::options::DrOptions;
use crate::parting::Farewell;
use crate::rail::Rail;
use crate::waiter::DrWaiter;
use crate::window::WINDOW;
use crate::wire::{ABOVE, Header, Kind, write_above};

/// Calls of progress between two looks at the timers.
const TICK: u32 = 32;

/// Messages of each peer that one call of progress delivers, where the transport inside can be told so.
const BURST: usize = 64;

/// What addresses begin with: a magic number, and the number of the first message.
const MAGIC: [u8; 4] = *b"dr2:";

/// A transport whose messages come once, whole and in order, whatever the one inside does with them.
pub struct Dr {
    rail: Rail,
    core: Core,
    waiter: Arc<DrWaiter>,
    capabilities: Capabilities,
    limits: Limits,
    farewell: Option<Farewell>,
    /// Calls of progress before the next look at the timers.
    calls_left: u32,
    /// Whether the rank is called only for what comes, once that was asked: then each call that finds nothing looks at the timers.
    is_called: Option<bool>,
}

impl Dr {
    /// Puts dr between `rank` and its transport.
    ///
    /// # Errors
    /// When the transport has no room for what is put in front of a message.
    pub fn new(transport: Box<dyn ByteTransport>, rank: Rank, options: DrOptions) -> Result<Self> {
        let inside = transport.limits();
        if inside.max_send < LEAST_SEND {
            return Err(Error::Unsupported {
                transport: transport.name(),
                what: "messages long enough for dr",
            });
        }
        let max_send = inside.max_send - ABOVE;
        let mut limits = Limits::copying(inside.max_inline.saturating_sub(ABOVE), max_send);
        limits.memory_per_peer = inside.memory_per_peer + WINDOW as usize * max_send;
        limits.wait_object = inside.wait_object;
        Ok(Self {
            waiter: Arc::new(DrWaiter::new(transport.waiter(), options.clock.clone())),
            capabilities: kept(transport.capabilities()),
            limits,
            rail: transport.into(),
            core: Core::new(Links::new(rank), options),
            farewell: None,
            calls_left: TICK,
            is_called: None,
        })
    }

    /// Returns what there was to do so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let trips = self
            .core
            .links
            .iter()
            .map(|(_, _, link)| link.sender.trip.mean());
        Counters {
            round_trip: trips.flatten().max(),
            ..self.core.counters
        }
    }

    /// As [`ByteTransport::send`].
    #[inline]
    fn post(
        &mut self,
        to: EndpointId,
        class: Class,
        header: AmHeader,
        len: usize,
        fill: impl FnOnce(&mut Vec<u8>),
    ) -> Post {
        let core = &mut self.core;
        let link = core.links.open(to, &core.options);
        let Some(link) = link.filter(|link| link.health == Health::Alive) else {
            return Post::Gone;
        };
        if len > self.limits.max_send {
            return Post::Unsupported;
        }
        if !link.sender.has_room(class) {
            return Post::Busy;
        }
        let mut bytes = core.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.reserve(ABOVE + len);
        write_above(header, &mut bytes);
        fill(&mut bytes);
        let header = Header {
            kind: Kind::Message,
            is_urgent: false,
            is_overdue: false,
            is_final: false,
            is_again: false,
            number: link.sender.next(),
            consumed: link.receiver.consumed(),
        };
        let sealed = header.seal(link.starts.0, &bytes);
        let post = self.rail.post(to, class, sealed, &bytes);
        if post == Post::Posted {
            let clock = &core.options.clock;
            link.receiver.tell();
            link.sender.keep(bytes, Kind::Message, || clock.now());
            activate(link, &mut core.active, to);
        } else {
            core.spare.push(bytes);
        }
        post
    }

    /// As [`ByteTransport::progress`], with deliveries in line, and `burst` of them from each peer at most where the transport
    /// inside can be told so.
    #[inline]
    pub fn progress_with(&mut self, burst: usize, upcalls: &mut impl Upcalls) -> usize {
        let mut intake = Intake {
            core: &mut self.core,
            above: &mut *upcalls,
        };
        let events = self.rail.progress_in_line(burst, &mut intake);
        self.calls_left = self.calls_left.wrapping_sub(1);
        let is_due = self.calls_left == 0
            || self.waiter.is_armed()
            || events == 0 && self.is_called != Some(false);
        if is_due || !self.core.listed.is_empty() || self.farewell.is_some() {
            self.attend(is_due, upcalls);
        }
        events
    }

    /// Does what is due beside deliveries.
    #[cold]
    #[inline(never)]
    fn attend(&mut self, is_due: bool, above: &mut dyn Upcalls) {
        if is_due {
            self.calls_left = TICK;
            self.look_at_timers(above);
        }
        self.core.serve(&mut self.rail);
        self.core.end_broken(&mut self.rail, above);
        if self.farewell.is_some() {
            self.part();
        }
    }

    fn look_at_timers(&mut self, above: &mut dyn Upcalls) {
        if self.core.active.is_empty() && self.is_called.is_some() {
            return self.waiter.set_next(None, None);
        }
        let now = self.core.options.clock.now();
        let asks = || self.waiter.call_at(now);
        let is_called = *self.is_called.get_or_insert_with(asks);
        let to_sleep = is_called || self.waiter.is_armed();
        let next = self.core.tick(now, to_sleep, above);
        self.waiter.set_next(next, is_called.then_some(now));
    }

    /// Lets the transport inside leave once peers have what was sent to them, or are waited for no more.
    fn part(&mut self) {
        let Some(farewell) = self.farewell.filter(|farewell| !farewell.is_heard) else {
            return;
        };
        let waits = (self.core.links.iter()).any(|(_, _, link)| link.is_waited_for());
        if !waits || self.core.options.clock.now() >= farewell.until {
            self.end_farewell();
        }
    }

    /// Waits for peers no more.
    fn end_farewell(&mut self) {
        if let Some(farewell) = &mut self.farewell {
            farewell.is_heard = true;
        }
        self.core.abandon(&mut self.rail);
        self.rail.leave();
    }

    /// Lets the transport inside tell something that is no message.
    fn tell(
        &mut self,
        upcalls: &mut dyn Upcalls,
        tell: impl FnOnce(&mut dyn ByteTransport, &mut dyn Upcalls),
    ) {
        let mut intake = Intake {
            core: &mut self.core,
            above: &mut *upcalls,
        };
        tell(&mut *self.rail, &mut intake);
        self.attend(false, upcalls);
    }
}

/// The least messages that the transport inside has to carry, so that there is room for control messages of the layer above.
const LEAST_SEND: usize = ABOVE + 64;

/// What is offered of what the transport inside has. Remote access and cooperative transfers carry no checksums.
fn kept(inside: Capabilities) -> Capabilities {
    const KEPT: Capabilities = Capabilities::WAKE
        .union(Capabilities::FAILURE_DETECTION)
        .union(Capabilities::REMOTE)
        .union(Capabilities::LOCAL)
        .union(Capabilities::LOOPBACK)
        .union(Capabilities::THREADS);
    (inside & KEPT) | Capabilities::RELIABLE | Capabilities::ORDERED
}

impl Transport for Dr {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn address(&self) -> Vec<u8> {
        let mut address = MAGIC.to_vec();
        address.extend(self.core.options.first.to_le_bytes());
        address.extend(self.rail.address());
        address
    }

    fn connect(&mut self, peer: Rank, address: &[u8]) -> Result<EndpointId> {
        let bad = |reason: String| Error::BadAddress {
            transport: NAME,
            peer,
            reason,
        };
        let inside = address
            .strip_prefix(&MAGIC)
            .and_then(<[u8]>::split_first_chunk);
        let (first, inside) =
            inside.ok_or_else(|| bad("it is not that of a rank under dr".to_owned()))?;
        let (theirs, ours) = (u32::from_le_bytes(*first), self.core.options.first);
        if theirs != ours {
            return Err(bad(format!(
                "its messages begin with number {theirs}, those of this rank with {ours} (setting 'dr-first')"
            )));
        }
        let endpoint = self.rail.connect(peer, inside)?;
        self.core.links.enter(endpoint, peer);
        Ok(endpoint)
    }

    fn leave(&mut self) {
        if self.farewell.is_some() {
            return;
        }
        let options = &self.core.options;
        let now = options.clock.now();
        self.farewell = Some(Farewell {
            until: now + options.patience.max(options.disconnect_timeout),
            dropped_until: now + options.disconnect_timeout,
            is_heard: false,
        });
        self.core.say_goodbyes(now);
    }

    fn has_left(&self) -> bool {
        let is_heard = self.farewell.is_some_and(|farewell| farewell.is_heard);
        is_heard && self.rail.has_left()
    }

    fn unheard(&self, out: &mut Vec<Rank>) {
        let leaves = self.farewell.is_some_and(|farewell| !farewell.is_heard);
        let may_lack = |link: &Link| {
            link.is_unheard
                || leaves && link.health == Health::Alive && link.sender.lacks_messages()
        };
        let lacking = (self.core.links.iter()).filter(|(_, _, link)| may_lack(link));
        out.extend(lacking.map(|(_, rank, _)| rank));
    }

    fn waiter(&self) -> Arc<dyn Waiter> {
        Arc::clone(&self.waiter) as Arc<dyn Waiter>
    }

    fn ways(&self, out: &mut Vec<String>) {
        out.push(format!("{NAME}: {}", self.counters()));
        self.rail.ways(out);
    }

    fn describe(&self, out: &mut dyn fmt::Write) {
        // The sink's own failure has nowhere else to be reported.
        let _ = writeln!(out, "{NAME}: {}", self.counters());
        for (_, rank, link) in self.core.links.iter() {
            let _ = writeln!(
                out,
                "{NAME}: rank {rank}: {:?}, next {}, {} not acknowledged, {} consumed, gap: {}",
                link.health,
                link.sender.next(),
                link.sender.len(),
                link.receiver.consumed(),
                link.receiver.has_gap(),
            );
        }
        self.rail.describe(out);
    }
}

impl RemoteAccess for Dr {}

impl CooperativeTransfers for Dr {}

impl ByteTransport for Dr {
    fn limits(&self) -> Limits {
        self.limits
    }

    fn preference(&self, to: EndpointId) -> Preference {
        Preference {
            remote_access: false,
            ..self.rail.preference(to)
        }
    }

    #[inline]
    fn send(
        &mut self,
        _lane: Lane,
        to: EndpointId,
        class: Class,
        header: AmHeader,
        data: &[u8],
    ) -> Post {
        self.post(to, class, header, data.len(), |bytes| {
            bytes.extend_from_slice(data);
        })
    }

    fn send_from(
        &mut self,
        _lane: Lane,
        to: EndpointId,
        header: AmHeader,
        body: &Body<'_>,
    ) -> Post {
        self.post(to, Class::Data, header, body.len(), |bytes| {
            body.append_to(bytes);
        })
    }

    fn progress(&mut self, _lane: Lane, mut upcalls: &mut dyn Upcalls) -> usize {
        self.progress_with(BURST, &mut upcalls)
    }

    fn look_after_peers(&mut self, upcalls: &mut dyn Upcalls) {
        self.tell(upcalls, |rail, intake| rail.look_after_peers(intake));
    }

    fn peer_failed(&mut self, rank: Rank, upcalls: &mut dyn Upcalls) {
        self.tell(upcalls, |rail, intake| rail.peer_failed(rank, intake));
    }

    fn peer_left(&mut self, rank: Rank, _upcalls: &mut dyn Upcalls) {
        self.core.note_left(rank);
    }
}

impl Drop for Dr {
    /// A rank that leaves, and is dropped before it has left, waits for that as long as [`DrOptions::disconnect_timeout`] says; then
    /// the transport inside does.
    fn drop(&mut self) {
        while let Some(farewell) = self.farewell.filter(|farewell| !farewell.is_heard) {
            if self.core.options.clock.now() >= farewell.dropped_until {
                self.end_farewell();
                return;
            }
            let key = self.waiter.arm();
            if self.progress_with(BURST, &mut IgnoreUpcalls) > 0 {
                self.waiter.disarm();
            } else {
                self.waiter.sleep(key, NAP);
            }
        }
    }
}

/// How long a rank that closes sleeps while nothing comes: what stands behind a queue without room has no other timer.
const NAP: std::time::Duration = std::time::Duration::from_millis(1);

/// Hears nothing: what comes while a rank closes.
struct IgnoreUpcalls;

impl Upcalls for IgnoreUpcalls {
    fn deliver(&mut self, _: Arrival<'_>) {}

    fn complete(&mut self, _: Token, _: Outcome) {}

    fn peer(&mut self, _: PeerEvent) {}
}

impl fmt::Debug for Dr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dr")
            .field("inside", &self.rail.name())
            .field("core", &self.core)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
