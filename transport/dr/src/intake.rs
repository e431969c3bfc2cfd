//! What comes up from the transport inside: checked, put in order, acknowledged, and told to the layer above once.

use tagwire_base::{Rank, Time};
use tagwire_transport::{
    AmHeader, Arrival, EndpointId, Error, Outcome, Payload, PeerEvent, Token, Upcalls,
};

use crate::NAME;
use crate::counters::Counters;
use crate::link::{Health, Link, Links};
use crate::options::DrOptions;
use crate::window::Turn;
use crate::wire::{ABOVE, Header, Kind, SHORT, is_all_intact, is_intact, read_above, read_seen};

/// Buffers of messages that are kept for later ones.
pub(crate) const MOST_SPARE: usize = 64;

/// Everything but the transport inside.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) options: DrOptions,
    pub(crate) links: Links,
    pub(crate) counters: Counters,
    /// Peers for whom there is something to do.
    pub(crate) listed: Vec<EndpointId>,
    /// Peers whom ticks look at.
    pub(crate) active: Vec<EndpointId>,
    /// Peers that are told that contact has ended, and then the transport inside, as of failures.
    pub(crate) to_end: Vec<EndpointId>,
    /// This rank leaves.
    pub(crate) leaves: bool,
    /// Buffers for messages that are kept.
    pub(crate) spare: Vec<Vec<u8>>,
    /// Copies of what is checked.
    scratch: Vec<u8>,
}

impl Core {
    pub(crate) fn new(links: Links, options: DrOptions) -> Self {
        Self {
            options,
            links,
            counters: Counters::default(),
            listed: Vec::new(),
            active: Vec::new(),
            to_end: Vec::new(),
            leaves: false,
            spare: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// There is something to do for a peer.
    pub(crate) fn list(&mut self, endpoint: EndpointId) {
        if let Some(link) = self.links.find(endpoint)
            && !std::mem::replace(&mut link.is_listed, true)
        {
            self.listed.push(endpoint);
        }
    }

    /// A peer has done what no correct peer does: contact with it ends.
    #[cold]
    fn break_off(&mut self, endpoint: EndpointId, reason: &str) -> Option<PeerEvent> {
        let peer = self.links.rank(endpoint)?;
        let link = self.links.find(endpoint)?;
        let was_alive = link.health == Health::Alive;
        link.end(Health::Gone);
        self.to_end.push(endpoint);
        let error = Error::Protocol {
            transport: NAME,
            peer,
            reason: reason.to_owned(),
        };
        was_alive.then_some(PeerEvent::Protocol(Some(endpoint), error))
    }

    /// A peer does not reply: it has failed, whatever the transport inside knows of it, by which it is told so. Returns what the layer
    /// above is told.
    pub(crate) fn give_up(&mut self, endpoint: EndpointId, now: Time) -> Option<PeerEvent> {
        let rank = self.links.rank(endpoint)?;
        let link = self.links.find(endpoint)?;
        if link.health != Health::Alive {
            return None;
        }
        tracing::warn!(
            peer = rank.as_u32(),
            "dr: nothing was acknowledged for as long as dr-timeout says: the peer counts as failed"
        );
        link.abandon();
        link.end(Health::GivenUp);
        link.repeat(now, now, self.options.disconnect_timeout);
        Some(PeerEvent::Failed(endpoint))
    }

    /// A peer says that it has given up this rank. Returns what the layer above is told.
    #[cold]
    fn given_up(&mut self, endpoint: EndpointId, is_asked: bool) -> Option<PeerEvent> {
        let rank = self.links.rank(endpoint)?;
        let link = self.links.find(endpoint)?;
        let was_alive = link.health == Health::Alive;
        if was_alive {
            tracing::warn!(
                peer = rank.as_u32(),
                "dr: the peer has given up this rank, which has acknowledged nothing to it for as long as dr-timeout says, \
                 or has sent it what it does not understand"
            );
            // What is under way to it does not arrive any more.
            link.abandon();
            link.end(Health::Gone);
        }
        link.settle();
        link.owes_end = is_asked;
        self.list(endpoint);
        was_alive.then_some(PeerEvent::Failed(endpoint))
    }

    /// Something comes of a peer with which contact has ended. One that was given up is told, unless it knows.
    #[cold]
    fn hear_after_end(&mut self, endpoint: EndpointId, header: AmHeader) {
        let (now, linger) = (self.options.clock.now(), self.options.disconnect_timeout);
        let (Some(header), Some(link)) = (Header::open(header), self.links.find(endpoint)) else {
            return;
        };
        if header.kind == Kind::End {
            link.settle();
            link.owes_end = header.is_urgent;
            self.list(endpoint);
        } else if link.health == Health::GivenUp && !link.is_settled {
            link.repeat(now, now, linger);
            activate(link, &mut self.active, endpoint);
        }
    }

    /// This rank leaves: it says goodbye to who has not, and answers who has, until that is known to have come.
    pub(crate) fn say_goodbyes(&mut self, now: Time) {
        self.leaves = true;
        let linger = self.options.disconnect_timeout;
        let mut concerned = Vec::new();
        for (endpoint, link) in self.links.iter_mut() {
            match (link.health, link.unsure) {
                (Health::Alive, _) => (link.owes_goodbye, link.says_goodbye) = (true, true),
                (Health::Left, Some(heard)) => {
                    link.repeat(now, heard, linger);
                    activate(link, &mut self.active, endpoint);
                }
                _ => continue,
            }
            concerned.push(endpoint);
        }
        concerned
            .into_iter()
            .for_each(|endpoint| self.list(endpoint));
    }

    /// The bootstrap says that a peer has left. What it said last may be under way, or lost: contact with it ends a while later.
    pub(crate) fn note_left(&mut self, rank: Rank) {
        let until = self.options.clock.now() + self.options.disconnect_timeout;
        let Some(endpoint) = self.links.endpoint(rank) else {
            return;
        };
        let link = self.links.open(endpoint, &self.options);
        if let Some(link) = link.filter(|link| link.health == Health::Alive) {
            link.left_until.get_or_insert(until);
            activate(link, &mut self.active, endpoint);
        }
    }

    /// A peer has ended, as the transport inside or the bootstrap says. Returns what the layer above is told.
    pub(crate) fn ended(&mut self, endpoint: EndpointId, left: bool) -> Option<PeerEvent> {
        let event = |left| match left {
            true => PeerEvent::Left(endpoint),
            false => PeerEvent::Failed(endpoint),
        };
        let Some(link) = self.links.find(endpoint) else {
            return self.links.end_silent(endpoint).then(|| event(left));
        };
        let was_alive = link.health == Health::Alive;
        let has_sent = link.receiver.has_gap() || link.receiver.consumed() != self.options.first;
        // One that has sent something says goodbye behind it, unless it has heard this rank's.
        let lacks = has_sent && !link.says_goodbye;
        link.end(Health::Gone);
        was_alive.then(|| event(left && !lacks))
    }
}

/// Stands between the transport inside and the layer above.
pub(crate) struct Intake<'a, U: ?Sized> {
    pub(crate) core: &'a mut Core,
    pub(crate) above: &'a mut U,
}

impl<U: Upcalls + ?Sized> Intake<'_, U> {
    #[inline]
    fn arrived(&mut self, from: EndpointId, header: AmHeader, payload: Payload<'_>) {
        let core = &mut *self.core;
        let Some(link) = core.links.open(from, &core.options) else {
            return;
        };
        let mut copy = [0; SHORT];
        let (payload, is_intact) = if payload.len() <= SHORT {
            let copy = &mut copy[..payload.len()];
            payload.copy_to_slice(copy);
            let is_intact = is_intact(link.starts.1, header, copy);
            (Payload::from_slice(copy), is_intact)
        } else {
            let scratch = &mut core.scratch;
            let is_intact = is_all_intact(link.starts.1, header, payload, scratch);
            (payload, is_intact)
        };
        if !is_intact {
            core.counters.corrupt += 1;
            return;
        }
        if link.health.is_over() {
            return core.hear_after_end(from, header);
        }
        let Some(header) = Header::open(header) else {
            return self.break_off(from, "a header that is none");
        };
        if header.kind == Kind::End {
            let event = core.given_up(from, header.is_urgent);
            return self.tell(event);
        }
        let clock = &core.options.clock;
        let spare = &mut core.spare;
        let known = link.sender.acknowledge(
            (header.consumed, header.is_again),
            spare,
            MOST_SPARE,
            || clock.now(),
        );
        if known.is_none() && link.health == Health::Alive {
            return self.break_off(from, "it acknowledges messages that were never sent");
        }
        if header.is_urgent {
            link.receiver.owe();
        }
        let taken = if header.kind == Kind::Note {
            heed(link, (&header, known == Some(true)), payload, || {
                clock.now()
            })
        } else {
            activate(link, &mut core.active, from);
            let counters = &mut core.counters;
            take(link, counters, (from, &header, payload), self.above)
        };
        if let Err(reason) = taken {
            return self.break_off(from, reason);
        }
        if link.says_goodbye || link.health == Health::Left {
            let linger = core.leaves.then_some(core.options.disconnect_timeout);
            link.hear_parting(header.is_final, core.options.clock.now(), linger);
            activate(link, &mut core.active, from);
        }
        if link.receiver.owes_note() | link.sender.has_lost()
            && !std::mem::replace(&mut link.is_listed, true)
        {
            core.listed.push(from);
        }
    }

    #[cold]
    fn break_off(&mut self, endpoint: EndpointId, reason: &str) {
        if let Some(event) = self.core.break_off(endpoint, reason) {
            self.above.peer(event);
        }
    }

    fn tell(&mut self, event: Option<PeerEvent>) {
        if let Some(event) = event {
            self.above.peer(event);
        }
    }
}

/// Takes what a note says.
fn heed(
    link: &mut Link,
    (header, is_news): (&Header, bool),
    payload: Payload<'_>,
    now: impl Fn() -> Time,
) -> Result<(), &'static str> {
    let seen = read_seen(payload).ok_or("a note of another length")?;
    if header.is_again && !is_news {
        link.sender.came_again(now());
    }
    if seen.iter().any(|word| *word != 0) {
        let (consumed, is_overdue) = (header.consumed, header.is_overdue);
        link.sender.heed_seen(consumed, &seen, is_overdue, now());
    }
    Ok(())
}

/// Takes a message, or the goodbye behind the last, in its turn.
#[inline]
fn take<U: Upcalls + ?Sized>(
    link: &mut Link,
    counters: &mut Counters,
    (from, header, payload): (EndpointId, &Header, Payload<'_>),
    above: &mut U,
) -> Result<(), &'static str> {
    if header.kind == Kind::Message && payload.len() < ABOVE {
        return Err("a message without a header");
    }
    match link.receiver.turn(header.number) {
        Turn::Now => {}
        Turn::Early => {
            counters.early += 1;
            let bytes = payload.to_vec();
            link.receiver.hold(header.number, header.kind, bytes);
            return Ok(());
        }
        Turn::Again => {
            counters.duplicates += 1;
            return Ok(());
        }
        Turn::Never => return Err("a message too far ahead of its turn"),
    }
    deliver(link, (from, header.kind, payload), above);
    while let Some((kind, bytes)) = link.receiver.next_early() {
        deliver(link, (from, kind, Payload::from_slice(&bytes)), above);
    }
    Ok(())
}

/// Delivers the message whose turn it is.
#[inline]
fn deliver<U: Upcalls + ?Sized>(
    link: &mut Link,
    (from, kind, payload): (EndpointId, Kind, Payload<'_>),
    above: &mut U,
) {
    link.receiver.step();
    if kind != Kind::Message {
        let was_alive = link.health == Health::Alive;
        link.end(Health::Left);
        link.receiver.owe();
        if was_alive {
            above.peer(PeerEvent::Left(from));
        }
        return;
    }
    // Behind a goodbye nothing is the layer's above.
    if link.health != Health::Alive {
        return;
    }
    let mut words = [0; ABOVE];
    payload.copy_to_slice(&mut words);
    above.deliver(Arrival {
        from,
        header: read_above(&words),
        payload: payload.slice(ABOVE..payload.len()),
    });
}

/// Ticks look at a peer from now on.
#[inline]
pub(crate) fn activate(link: &mut Link, active: &mut Vec<EndpointId>, endpoint: EndpointId) {
    if !std::mem::replace(&mut link.is_active, true) {
        active.push(endpoint);
    }
}

impl<U: Upcalls + ?Sized> Upcalls for Intake<'_, U> {
    #[inline]
    fn deliver(&mut self, arrival: Arrival<'_>) {
        self.arrived(arrival.from, arrival.header, arrival.payload);
    }

    fn complete(&mut self, token: Token, outcome: Outcome) {
        // The transport inside was given none.
        debug_assert!(false, "{token:?} ended with {outcome:?}");
    }

    fn peer(&mut self, event: PeerEvent) {
        match event {
            PeerEvent::Up { endpoint, rank } => {
                self.core.links.enter(endpoint, rank);
                self.above.peer(PeerEvent::Up { endpoint, rank });
            }
            PeerEvent::Left(endpoint) => {
                let event = self.core.ended(endpoint, true);
                self.tell(event);
            }
            PeerEvent::Failed(endpoint) => {
                let event = self.core.ended(endpoint, false);
                self.tell(event);
            }
            PeerEvent::Protocol(Some(endpoint), error) => {
                if self.core.ended(endpoint, false).is_some() {
                    self.above.peer(PeerEvent::Protocol(Some(endpoint), error));
                }
            }
            other => self.above.peer(other),
        }
    }
}
