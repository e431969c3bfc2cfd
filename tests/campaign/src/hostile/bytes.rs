//! Victims over transports of bytes: ob1, and data reliability under it.

use std::sync::Arc;
use std::time::Duration;

use tagwire_base::Rank;
use tagwire_base::bootstrap::{Bootstrap, LocalJob};
use tagwire_conformance::Chance;
use tagwire_conformance::network::{MemoryNetwork, MemoryOptions};
use tagwire_dr::{Dr, DrOptions, crc};
use tagwire_pml::contact::{KEY, Stack};
use tagwire_pml::ob1::{Ob1, Ob1Options};
use tagwire_pml::{Layer, Messenger, ThreadLevel, WaitPolicy};
use tagwire_transport::shm::{Shm, ShmOptions};
use tagwire_transport::{
    AmHeader, Arrival, ByteTransport, Class, EndpointId, Lane, Outcome, PeerEvent, Token, Upcalls,
};

use super::packet::Heard;
use super::{Answer, Bed, Target, VICTIM, VILLAINS, Villain, villains};

const LANE: Lane = Lane(0);

/// ob1 over a transport.
#[derive(Debug)]
pub struct Bytes {
    name: &'static str,
    about: &'static str,
    below: Below,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Below {
    Memory,
    Shm,
    Dr,
}

/// The network of the conformance kits, with cooperative transfers and remote access.
pub const MEMORY: Bytes = Bytes {
    name: "ob1-memory",
    about: "packets of ob1 and of services, over a network in memory",
    below: Below::Memory,
};
/// Shared memory.
pub const SHM: Bytes = Bytes {
    name: "ob1-shm",
    about: "the same over shared memory",
    below: Below::Shm,
};
/// Data reliability, whose packets have the right checksum.
pub const DR: Bytes = Bytes {
    name: "dr-memory",
    about: "packets of data reliability with right checksums, with packets of ob1 in them",
    below: Below::Dr,
};

impl Target for Bytes {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn open(&self, chance: &mut Chance) -> Result<Bed, String> {
        let job = job()?;
        // Without remote access of the network's own, services go by packets.
        let has_remote = chance.is_true();
        let options = MemoryOptions {
            get: has_remote,
            put: has_remote,
            ..MemoryOptions::full()
        };
        let network = MemoryNetwork::new(1 + VILLAINS, options);
        let rail = |rank| -> Result<Box<dyn ByteTransport>, String> {
            if self.below != Below::Shm {
                return Ok(Box::new(network.rank(rank)));
            }
            let opened = Shm::open(ShmOptions::default(), &mut job.member(rank));
            Ok(Box::new(opened.map_err(|why| why.to_string())?))
        };
        let mut victim = rail(VICTIM)?;
        let inside = victim.address().len();
        if self.below == Below::Dr {
            let dr = Dr::new(victim, VICTIM, DrOptions::default());
            victim = Box::new(dr.map_err(|why| why.to_string())?);
        }
        let stack = Stack::new("ob1", victim.name());
        // What dr puts in front of the address of the transport inside.
        let mut front = victim.address();
        front.truncate(front.len() - inside);
        let mut rails = Vec::new();
        for rank in villains() {
            let rail = rail(rank)?;
            let address = [&front[..], &rail.address()].concat();
            join(&job, rank, &stack.card(&address))?;
            rails.push(rail);
        }
        let opened = Ob1::open(&Ob1Options::default(), victim, Box::new(job.member(VICTIM)));
        let opened = opened.map_err(|why| why.to_string())?;
        let card = card(&job)?;
        let theirs = &card[stack.card(&[]).len() + front.len()..];
        let mut all: Vec<Box<dyn Villain>> = Vec::new();
        for (rank, mut rail) in villains().zip(rails) {
            let to = rail
                .connect(VICTIM, theirs)
                .map_err(|why| why.to_string())?;
            all.push(Box::new(Rail {
                rail,
                to,
                seals: (self.below == Below::Dr).then_some(rank),
                number: 0,
                heard: Heard::new(chance),
            }));
        }
        Ok(Bed {
            victim: messenger(opened),
            villains: all,
        })
    }
}

/// Returns a victim with a layer.
pub fn messenger(layer: impl Into<Layer>) -> Arc<Messenger> {
    let policy = WaitPolicy::adaptive(true);
    Arc::new(Messenger::new(layer, ThreadLevel::Single, policy))
}

/// Returns a job of a victim and its villains.
///
/// # Errors
/// When there is none.
pub fn job() -> Result<LocalJob, String> {
    LocalJob::new(1 + VILLAINS).map_err(|why| why.to_string())
}

/// Joins a villain to a job, with its card. The victim comes last: nobody waits for it.
///
/// # Errors
/// When the card is not taken.
pub fn join(job: &LocalJob, villain: Rank, card: &[u8]) -> Result<(), String> {
    let mut member = job.member(villain);
    member.put(KEY, card).map_err(|why| why.to_string())?;
    match member.fence(Duration::ZERO) {
        Ok(()) | Err(tagwire_base::Error::FenceTimeout(_)) => Ok(()),
        Err(why) => Err(why.to_string()),
    }
}

/// Returns the victim's card.
///
/// # Errors
/// When it has none.
pub fn card(job: &LocalJob) -> Result<Vec<u8>, String> {
    let mut member = job.member(Rank::new(VILLAINS));
    let card = member.get(VICTIM, KEY, Duration::ZERO);
    card.map_err(|why| why.to_string())
}

/// A villain with a transport of bytes.
struct Rail {
    rail: Box<dyn ByteTransport>,
    to: EndpointId,
    /// Its rank, where packets are sealed as those of data reliability.
    seals: Option<Rank>,
    number: u64,
    heard: Heard,
}

impl Villain for Rail {
    fn send(&mut self, chance: &mut Chance) -> Answer {
        let (mut header, mut payload) = self.heard.packet(chance);
        if let Some(rank) = self.seals {
            (header, payload) = self.sealed(chance, rank, header, &payload);
        }
        let class = chance.one_of(&[Class::Data, Class::Control]);
        let post = self.rail.send(LANE, self.to, class, header, &payload);
        post.into()
    }

    fn hear(&mut self) {
        if self.seals.is_none() {
            self.rail.progress(LANE, &mut self.heard);
            return;
        }
        let mut outside = Outside(&mut self.heard);
        self.rail.progress(LANE, &mut outside);
    }
}

/// Hears packets of data reliability, and notes what is in them.
struct Outside<'a>(&'a mut Heard);

impl Upcalls for Outside<'_> {
    fn deliver(&mut self, arrival: Arrival<'_>) {
        let bytes = arrival.payload.to_vec();
        if let Some((above, payload)) = bytes.split_first_chunk::<16>() {
            let (first, second) = above.split_at(8);
            let word = |bytes: &[u8]| {
                bytes
                    .iter()
                    .rev()
                    .fold(0, |word, byte| word << 8 | u64::from(*byte))
            };
            self.0
                .note(AmHeader([word(first), word(second)]), payload.to_vec());
        }
    }

    fn complete(&mut self, _: Token, _: Outcome) {}

    fn peer(&mut self, _: PeerEvent) {}
}

impl Rail {
    /// Puts a packet into one of data reliability (transport/dr/src/wire.rs), whose fields are of chance, or right.
    fn sealed(
        &mut self,
        chance: &mut Chance,
        rank: Rank,
        above: AmHeader,
        payload: &[u8],
    ) -> (AmHeader, Vec<u8>) {
        let mut bytes: Vec<u8> = above.0.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend(payload);
        let kind = match chance.below(8) {
            0 => chance.below(6),
            _ => 0,
        };
        let flags = match chance.below(8) {
            0 => chance.below(16) << 8,
            _ => 0,
        };
        let number = match chance.below(8) {
            0 => chance.word() & 0xffff_ffff,
            1 => self.number.wrapping_sub(chance.below(4)) & 0xffff_ffff,
            2 => self.number + chance.below(200),
            _ => {
                self.number += 1;
                self.number - 1
            }
        };
        let consumed = match chance.below(8) {
            0 => chance.word() & 0xffff_ffff,
            _ => chance.below(4),
        };
        let first = number << 32 | flags | kind;
        let start = crc::with_words(0, [rank, VICTIM].map(|rank| rank.as_u32().into()), &[]);
        let sum = crc::with_words(start, [first, consumed], &bytes);
        (AmHeader([first, u64::from(sum) << 32 | consumed]), bytes)
    }
}
