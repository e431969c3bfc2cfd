//! Victims over transports that match.

use tagwire_conformance::Chance;
use tagwire_conformance::network::matching::{MatchNetwork, MatchOptions};
use tagwire_pml::cm::{Cm, CmOptions};
use tagwire_pml::contact::Stack;
use tagwire_transport::shm::{ShmMatch, ShmOptions};
use tagwire_transport::{
    Arrival, EndpointId, Found, Lane, MatchTransport, MatchUpcalls, Outcome, PeerEvent, ReceiveEnd,
    Sent, Token,
};

use super::bytes::{card, job, join, messenger};
use super::packet::Heard;
use super::places::Scattered;
use super::{Answer, Bed, Target, VICTIM, VILLAINS, Villain, villains};

const LANE: Lane = Lane(0);

/// cm over a transport.
#[derive(Debug)]
pub struct Matching {
    name: &'static str,
    about: &'static str,
    is_shm: bool,
}

/// The network of the conformance kits.
pub const MEMORY: Matching = Matching {
    name: "cm-memory",
    about: "messages with match bits of chance, over a network in memory that matches and has no packets of services",
    is_shm: false,
};
/// Matching in shared memory.
pub const SHM: Matching = Matching {
    name: "cm-shm",
    about: "messages with match bits of chance, and packets of services, over shared memory that matches",
    is_shm: true,
};

impl Target for Matching {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn open(&self, chance: &mut Chance) -> Result<Bed, String> {
        let job = job()?;
        let network = MatchNetwork::new(1 + VILLAINS, MatchOptions::default());
        let rail = |rank| -> Result<Box<dyn MatchTransport>, String> {
            if !self.is_shm {
                return Ok(Box::new(network.rank(rank)));
            }
            let opened = ShmMatch::open(ShmOptions::default(), &mut job.member(rank));
            Ok(Box::new(opened.map_err(|why| why.to_string())?))
        };
        let victim = rail(VICTIM)?;
        let stack = Stack::new("cm", victim.name());
        let mut rails = Vec::new();
        for rank in villains() {
            let rail = rail(rank)?;
            join(&job, rank, &stack.card(&rail.address()))?;
            rails.push(rail);
        }
        let opened = Cm::open(&CmOptions::default(), victim, Box::new(job.member(VICTIM)));
        let opened = opened.map_err(|why| why.to_string())?;
        let card = card(&job)?;
        let theirs = &card[stack.card(&[]).len()..];
        let mut villains: Vec<Box<dyn Villain>> = Vec::new();
        for mut rail in rails {
            let to = rail
                .connect(VICTIM, theirs)
                .map_err(|why| why.to_string())?;
            villains.push(Box::new(Rail {
                rail,
                to,
                heard: Listener(Heard::new(chance)),
            }));
        }
        Ok(Bed {
            victim: messenger(opened),
            villains,
        })
    }
}

struct Rail {
    rail: Box<dyn MatchTransport>,
    to: EndpointId,
    heard: Listener,
}

/// Hears the packets of services.
struct Listener(Heard);

impl MatchUpcalls for Listener {
    fn sent(&mut self, _: Token, _: Outcome) {}

    fn received(&mut self, _: Token, _: ReceiveEnd) {}

    fn probed(&mut self, _: Token, _: Option<Found>) {}

    fn peer(&mut self, _: PeerEvent) {}

    fn packet(&mut self, arrival: Arrival<'_>) {
        self.0.note(arrival.header, arrival.payload.to_vec());
    }
}

impl Villain for Rail {
    fn send(&mut self, chance: &mut Chance) -> Answer {
        // A message breaks nothing, whatever its match bits are. Packets of ob1 are none of this layer's.
        let is_rash = self.heard.0.is_rash(chance) && chance.below(3) > 0;
        let packet = match is_rash {
            true => Some(self.heard.0.hostile(chance)),
            false => self.heard.0.answer(),
        };
        if let Some(remote) = self.rail.remote()
            && let Some((mut header, payload)) = packet
        {
            // The highest byte of a packet's first word is 0: others are the transport's own.
            header.0[0] &= !(0xff << 56);
            return remote.send_packet(self.to, header, &payload).into();
        }
        let bits = match chance.is_true() {
            true => chance.word(),
            false => chance.below(2) << 32 | chance.below(4),
        };
        let len = chance.one_of(&[0, 8, 2_000, 60_000]);
        let sent = self.rail.send(
            LANE,
            self.to,
            bits,
            &Scattered::of(len),
            chance.is_true(),
            Token(1),
        );
        match sent {
            Sent::Done | Sent::Open => Answer::Sent,
            Sent::Busy | Sent::Refused(_) => Answer::Refused,
            Sent::Gone => Answer::Gone,
        }
    }

    fn hear(&mut self) {
        self.rail.progress(LANE, &mut self.heard);
    }
}
