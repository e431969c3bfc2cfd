//! Victims over transports of bytes: ob1, and data reliability or a bundle of networks under it.

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
use tagwire_rails::{Striped, StripedOptions};
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
    Striped,
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

/// Several networks as one.
pub const STRIPED: Bytes = Bytes {
    name: "striped-memory",
    about: "packets of a bundle of two networks, by either of them, with packets of ob1 in them",
    below: Below::Striped,
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
        let network = || MemoryNetwork::new(1 + VILLAINS, options.clone());
        let networks = match self.below {
            Below::Shm => Vec::new(),
            Below::Striped => vec![network(), network()],
            Below::Memory | Below::Dr => vec![network()],
        };
        let rails = |rank| -> Result<Rails, String> {
            if self.below != Below::Shm {
                let rails = networks.iter().map(|network| network.rank(rank));
                return Ok(rails.map(|rail| Box::new(rail) as _).collect());
            }
            let opened = Shm::open(ShmOptions::default(), &mut job.member(rank));
            Ok(vec![Box::new(opened.map_err(|why| why.to_string())?)])
        };
        let inside = rails(VICTIM)?;
        let own = addresses(&inside);
        let victim = self.wrapped(inside)?;
        let stack = Stack::new("ob1", victim.name());
        // The addresses of the transports inside are in it, which all have the same length.
        let around = victim.address();
        let mut all_rails = Vec::new();
        for rank in villains() {
            let rails = rails(rank)?;
            let mut address = around.clone();
            for (own, theirs) in own.iter().zip(addresses(&rails)) {
                replace(&mut address, own, &theirs)?;
            }
            join(&job, rank, &stack.card(&address))?;
            all_rails.push(rails);
        }
        let opened = Ob1::open(&Ob1Options::default(), victim, Box::new(job.member(VICTIM)));
        let opened = opened.map_err(|why| why.to_string())?;
        let mut all: Vec<Box<dyn Villain>> = Vec::new();
        for (rank, rails) in villains().zip(all_rails) {
            let ways = rails.into_iter().zip(&own).map(|(mut rail, theirs)| {
                let to = rail.connect(VICTIM, theirs);
                to.map(|to| (rail, to)).map_err(|why| why.to_string())
            });
            all.push(Box::new(Bare {
                ways: ways.collect::<Result<_, _>>()?,
                wraps: match self.below {
                    Below::Memory | Below::Shm => Wraps::Nothing,
                    Below::Dr => Wraps::Reliability(rank),
                    Below::Striped => Wraps::Bundle,
                },
                number: 0,
                taken: 0,
                heard: Heard::new(chance),
            }));
        }
        Ok(Bed {
            victim: messenger(opened),
            villains: all,
        })
    }
}

impl Bytes {
    /// Returns what a victim's layer stands on.
    fn wrapped(&self, mut rails: Rails) -> Result<Box<dyn ByteTransport>, String> {
        if self.below == Below::Striped {
            let striped = Striped::new(rails, StripedOptions::default());
            return Ok(Box::new(striped.map_err(|why| why.to_string())?));
        }
        let rail = rails.pop().ok_or("a victim has a transport")?;
        if self.below != Below::Dr {
            return Ok(rail);
        }
        let dr = Dr::new(rail, VICTIM, DrOptions::default());
        Ok(Box::new(dr.map_err(|why| why.to_string())?))
    }
}

fn addresses(rails: &Rails) -> Vec<Vec<u8>> {
    rails.iter().map(|rail| rail.address()).collect()
}

/// Puts an address in the place of another of the same length.
fn replace(all: &mut [u8], old: &[u8], new: &[u8]) -> Result<(), String> {
    let mut places = all.windows(old.len());
    let place = places.position(|part| part == old);
    let at = place.filter(|_| old.len() == new.len());
    let at = at.ok_or("an address is not as it was thought to be")?;
    all[at..at + new.len()].copy_from_slice(new);
    Ok(())
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

/// Transports of one rank.
type Rails = Vec<Box<dyn ByteTransport>>;

/// What a villain puts around its packets.
#[derive(Debug, Clone, Copy)]
enum Wraps {
    Nothing,
    /// Packets of data reliability from a rank.
    Reliability(Rank),
    /// Packets of a bundle.
    Bundle,
}

/// A villain with transports of bytes.
struct Bare {
    ways: Vec<(Box<dyn ByteTransport>, EndpointId)>,
    wraps: Wraps,
    number: u64,
    /// How many packets of the victim have come in packets around them.
    taken: u64,
    heard: Heard,
}

impl Villain for Bare {
    fn send(&mut self, chance: &mut Chance) -> Answer {
        let (mut header, mut payload) = self.heard.packet(chance);
        match self.wraps {
            Wraps::Nothing => {}
            Wraps::Reliability(rank) => {
                (header, payload) = self.sealed(chance, rank, header, &payload);
            }
            Wraps::Bundle => (header, payload) = self.bundled(chance, header, &payload),
        }
        let class = chance.one_of(&[Class::Data, Class::Control]);
        let way = chance.below(self.ways.len() as u64) as usize;
        let (rail, to) = &mut self.ways[way];
        rail.send(LANE, *to, class, header, &payload).into()
    }

    fn hear(&mut self) {
        for (rail, _) in &mut self.ways {
            match self.wraps {
                Wraps::Nothing => rail.progress(LANE, &mut self.heard),
                _ => {
                    let mut outside = Outside {
                        heard: &mut self.heard,
                        taken: &mut self.taken,
                    };
                    rail.progress(LANE, &mut outside)
                }
            };
        }
    }
}

/// Hears packets of data reliability or of a bundle, and notes what is in them.
struct Outside<'a> {
    heard: &'a mut Heard,
    taken: &'a mut u64,
}

impl Upcalls for Outside<'_> {
    fn deliver(&mut self, arrival: Arrival<'_>) {
        let bytes = arrival.payload.to_vec();
        let AmHeader([around, _]) = arrival.header;
        if around & 0xff == 0 {
            *self.taken = (*self.taken).max((around >> 32) + 1);
        }
        if let Some((above, payload)) = bytes.split_first_chunk::<16>() {
            let (first, second) = above.split_at(8);
            let word = |bytes: &[u8]| {
                bytes
                    .iter()
                    .rev()
                    .fold(0, |word, byte| word << 8 | u64::from(*byte))
            };
            self.heard
                .note(AmHeader([word(first), word(second)]), payload.to_vec());
        }
    }

    fn complete(&mut self, _: Token, _: Outcome) {}

    fn peer(&mut self, _: PeerEvent) {}
}

impl Bare {
    /// Puts a packet into one of a bundle (transport/rails/src/striped/wire.rs), whose fields are of chance, or right.
    fn bundled(
        &mut self,
        chance: &mut Chance,
        above: AmHeader,
        payload: &[u8],
    ) -> (AmHeader, Vec<u8>) {
        let (kind, flags) = match self.heard.is_rash(chance) {
            true => (chance.below(9), chance.below(3) << 8),
            false => (0, 0),
        };
        let (number, consumed) = self.numbers(chance);
        let header = AmHeader([number << 32 | flags | kind, consumed]);
        (header, inside(above, payload))
    }

    /// Returns the number of the next packet, and how many of the victim's were taken, or others.
    fn numbers(&mut self, chance: &mut Chance) -> (u64, u64) {
        // Who waits for its moment does this right.
        let is_rash = self.heard.is_rash(chance);
        let of = |chance: &mut Chance| if is_rash { chance.below(8) } else { 7 };
        let number = match of(chance) {
            0 => chance.word() & 0xffff_ffff,
            1 => self.number.wrapping_sub(chance.below(4)) & 0xffff_ffff,
            2 => self.number + chance.below(200),
            _ => {
                self.number += 1;
                self.number - 1
            }
        };
        let consumed = match of(chance) {
            0 => chance.word() & 0xffff_ffff,
            _ => self.taken.saturating_sub(chance.below(2)),
        };
        (number, consumed)
    }

    /// Puts a packet into one of data reliability (transport/dr/src/wire.rs), whose fields are of chance, or right.
    fn sealed(
        &mut self,
        chance: &mut Chance,
        rank: Rank,
        above: AmHeader,
        payload: &[u8],
    ) -> (AmHeader, Vec<u8>) {
        let bytes = inside(above, payload);
        let kind = match chance.below(8) {
            0 => chance.below(6),
            _ => 0,
        };
        let flags = match chance.below(8) {
            0 => chance.below(16) << 8,
            _ => 0,
        };
        let (number, consumed) = self.numbers(chance);
        let first = number << 32 | flags | kind;
        let start = crc::with_words(0, [rank, VICTIM].map(|rank| rank.as_u32().into()), &[]);
        let sum = crc::with_words(start, [first, consumed], &bytes);
        (AmHeader([first, u64::from(sum) << 32 | consumed]), bytes)
    }
}

/// Returns a packet as it lies in one of those around it: its header, and its payload behind.
fn inside(above: AmHeader, payload: &[u8]) -> Vec<u8> {
    let mut bytes: Vec<u8> = above.0.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.extend(payload);
    bytes
}
