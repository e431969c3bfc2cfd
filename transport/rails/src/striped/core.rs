//! What comes up from the rails: it is put in order, acknowledged, and told to the layer above once.

use tagwire_base::Rank;
use tagwire_transport::{Arrival, EndpointId, Error, Outcome, Payload, PeerEvent, Token, Upcalls};

use super::config::StripedOptions;
use super::links::{Link, Links, State};
use super::order::Turn;
use super::parting::Farewell;
use super::rail::{MOST, NAME};
use super::reads::Reads;
use super::wire::{ABOVE, Header, Kind, read_above};

/// Everything but the rails.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) options: StripedOptions,
    pub(super) links: Links,
    pub(super) reads: Reads,
    /// Peers for whom there is something to do.
    pub(super) listed: Vec<EndpointId>,
    /// Peers that a rail is to be told of, as failed.
    pub(super) to_end: Vec<(usize, Rank)>,
    pub(super) farewell: Option<Farewell>,
    /// Buffers for messages that are kept.
    pub(super) spare: Vec<Vec<u8>>,
}

impl Core {
    pub(super) fn new(rails: usize, options: StripedOptions) -> Self {
        Self {
            options,
            links: Links::new(rails),
            reads: Reads::default(),
            listed: Vec::new(),
            to_end: Vec::new(),
            farewell: None,
            spare: Vec::new(),
        }
    }

    /// There is something to do for a peer.
    pub(super) fn list(&mut self, ours: EndpointId) {
        if let Some(link) = self.links.get(ours)
            && !std::mem::replace(&mut link.is_listed, true)
        {
            self.listed.push(ours);
        }
    }

    /// Gives `rail` up for a peer, which is told of it.
    pub(super) fn give_up(&mut self, ours: EndpointId, rail: usize) {
        let now = self.options.now();
        if let Some(link) = self.links.get(ours)
            && link.close_way(rail, now)
        {
            self.to_end.push((rail, link.rank));
        }
        self.list(ours);
    }

    /// Nothing comes by `rail` any more.
    pub(super) fn end_way(
        &mut self,
        ours: EndpointId,
        rail: usize,
        left: bool,
        above: &mut dyn Upcalls,
    ) {
        let Some(link) = self.links.get(ours) else {
            return;
        };
        link.end_way(rail, State::Ended { left });
        if let Some(event) = link.end(ours) {
            above.peer(event);
        }
        self.list(ours);
    }

    /// A peer has done what no correct peer does: contact with it ends.
    #[cold]
    fn protocol(&mut self, ours: EndpointId, reason: &str, above: &mut dyn Upcalls) {
        let Some(link) = self.links.get(ours) else {
            return;
        };
        let (peer, rails) = (link.rank, link.ways.len());
        for rail in 0..rails {
            self.give_up(ours, rail);
        }
        if let Some(link) = self.links.get(ours) {
            link.forget();
        }
        let error = Error::Protocol {
            transport: NAME,
            peer,
            reason: reason.to_owned(),
        };
        above.peer(PeerEvent::Protocol(Some(ours), error));
    }
}

/// Stands between a rail and the layer above.
pub(super) struct RailUpcalls<'a> {
    rail: usize,
    core: &'a mut Core,
    above: &'a mut dyn Upcalls,
}

impl<'a> RailUpcalls<'a> {
    pub(super) fn new(rail: usize, core: &'a mut Core, above: &'a mut dyn Upcalls) -> Self {
        Self { rail, core, above }
    }

    /// Takes what a message says besides being one; `Err` says what is wrong with it.
    fn heed(&mut self, ours: EndpointId, header: &Header) -> Result<(), &'static str> {
        let (rail, now) = (self.rail, self.core.options.now());
        let core = &mut *self.core;
        let Some(link) = core.links.get(ours) else {
            return Ok(());
        };
        if !link.out.acknowledge(header.consumed, &mut core.spare) {
            return Err("it acknowledges messages that were never sent");
        }
        link.owes_note |= header.is_urgent;
        match header.kind {
            Kind::Message | Kind::Note | Kind::Hello => {}
            Kind::Probe => {
                if let Some(way) = link.way(rail) {
                    way.owes_echo = Some(header.number);
                }
            }
            Kind::Echo => {
                if let Some(round) = &mut link.round
                    && round.number == header.number
                {
                    round.answered |= 1 << rail;
                    round.first_answer.get_or_insert(now);
                }
            }
            Kind::Bye => link.last = Some(header.number),
            Kind::Down => {
                let down = header.number as usize;
                if down >= MOST {
                    return Err("it gives up a rail that there cannot be");
                }
                core.give_up(ours, down);
            }
        }
        if header.is_urgent || header.kind == Kind::Probe {
            self.core.list(ours);
        }
        Ok(())
    }

    /// Delivers a message in its turn, and those that have waited for it.
    fn take(
        &mut self,
        ours: EndpointId,
        number: u32,
        arrival: &Arrival<'_>,
    ) -> Result<(), &'static str> {
        let Some(link) = self.core.links.get(ours) else {
            return Ok(());
        };
        let mut above = [0; ABOVE];
        if !arrival.payload.read_into(&mut above) {
            return Err("a message without a header");
        }
        match link.incoming.turn(number) {
            Turn::Now => {}
            Turn::Early => {
                link.incoming.hold(number, arrival.payload.to_vec());
                return Ok(());
            }
            Turn::Again => {
                // Its sender does not know: what told it was lost with a rail.
                link.owes_note = true;
                self.core.list(ours);
                return Ok(());
            }
            Turn::Never => return Err("a message too far ahead of its turn"),
        }
        link.incoming.step();
        self.above.deliver(Arrival {
            from: ours,
            header: read_above(&above),
            payload: arrival.payload.slice(ABOVE..arrival.payload.len()),
        });
        self.take_early(ours);
        Ok(())
    }

    /// Delivers what came before its turn and has it now.
    fn take_early(&mut self, ours: EndpointId) {
        while let Some(link) = self.core.links.get(ours)
            && let Some(bytes) = link.incoming.next_early()
        {
            link.incoming.step();
            let payload = Payload::from_slice(&bytes);
            let mut above = [0; ABOVE];
            payload.copy_to_slice(&mut above);
            self.above.deliver(Arrival {
                from: ours,
                header: read_above(&above),
                payload: payload.slice(ABOVE..payload.len()),
            });
        }
        if let Some(link) = self.core.links.get(ours)
            && link.incoming.owes()
        {
            link.owes_note = true;
            self.core.list(ours);
        }
    }

    fn up(&mut self, theirs: EndpointId, rank: Rank) {
        let ours = self.core.links.enter(rank, self.rail, theirs);
        if let Some(link) = self.core.links.get(ours)
            && !link.is_gone
            && !std::mem::replace(&mut link.is_known, true)
        {
            let endpoint = ours;
            self.above.peer(PeerEvent::Up { endpoint, rank });
        }
    }
}

impl Upcalls for RailUpcalls<'_> {
    fn deliver(&mut self, arrival: Arrival<'_>) {
        let rail = self.rail;
        let alive = |link: &Link| !link.is_gone;
        let Some(ours) = self.core.links.ours(rail, arrival.from) else {
            return;
        };
        if !self.core.links.get(ours).is_some_and(|link| alive(link)) {
            return;
        }
        let taken = match Header::decode(arrival.header) {
            None => Err("a header that is none"),
            Some(header) => match self.heed(ours, &header) {
                Ok(()) if header.kind == Kind::Message => self.take(ours, header.number, &arrival),
                other => other,
            },
        };
        if let Err(reason) = taken {
            self.core.protocol(ours, reason, self.above);
        }
    }

    fn complete(&mut self, token: Token, outcome: Outcome) {
        self.core.piece_ended(token, outcome, self.above);
    }

    fn peer(&mut self, event: PeerEvent) {
        let rail = self.rail;
        match event {
            PeerEvent::Up { endpoint, rank } => self.up(endpoint, rank),
            PeerEvent::Left(theirs) => {
                if let Some(ours) = self.core.links.ours(rail, theirs) {
                    self.core.end_way(ours, rail, true, self.above);
                }
            }
            PeerEvent::Failed(theirs) => {
                if let Some(ours) = self.core.links.ours(rail, theirs) {
                    self.core.end_way(ours, rail, false, self.above);
                }
            }
            PeerEvent::Protocol(Some(theirs), error) => {
                let ours = self.core.links.ours(rail, theirs);
                tracing::warn!(rail, "a rail is given up: {error}");
                match ours {
                    Some(ours) => self.core.end_way(ours, rail, false, self.above),
                    None => self.above.peer(PeerEvent::Protocol(None, error)),
                }
            }
            PeerEvent::Protocol(None, error) => self.above.peer(PeerEvent::Protocol(None, error)),
            _ => {}
        }
    }
}
