//! Victims over transports of bytes: ob1, and data reliability under it.

use std::time::Duration;

use tagwire_base::bootstrap::{Bootstrap, LocalBootstrap, LocalJob};
use tagwire_conformance::Chance;
use tagwire_conformance::network::{MemoryNetwork, MemoryOptions};
use tagwire_dr::{Dr, DrOptions, crc};
use tagwire_pml::contact::{KEY, Stack};
use tagwire_pml::ob1::{Ob1, Ob1Options};
use tagwire_pml::{Messenger, ThreadLevel, WaitPolicy};
use tagwire_transport::shm::{Shm, ShmOptions};
use tagwire_transport::{AmHeader, ByteTransport, Class, EndpointId, Lane};

use super::packet::Heard;
use super::{Answer, Bed, Target, VICTIM, VILLAIN, Villain};

const LANE: Lane = Lane(0);
/// How long either side waits for the other to open.
const PATIENCE: Duration = Duration::from_secs(30);

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
        let job = LocalJob::new(2).map_err(|why| why.to_string())?;
        let shm = |mut member: LocalBootstrap| {
            let opened = Shm::open(ShmOptions::default(), &mut member);
            opened
                .map(|shm| Box::new(shm) as Box<dyn ByteTransport>)
                .map_err(|why| why.to_string())
        };
        let network = MemoryNetwork::new(2, MemoryOptions::full());
        let (victim, villain): (Box<dyn ByteTransport>, Box<dyn ByteTransport>) = match self.below {
            Below::Shm => (shm(job.member(VICTIM))?, shm(job.member(VILLAIN))?),
            Below::Memory => (
                Box::new(network.rank(VICTIM)),
                Box::new(network.rank(VILLAIN)),
            ),
            Below::Dr => {
                let dr = Dr::new(Box::new(network.rank(VICTIM)), VICTIM, DrOptions::default());
                (
                    Box::new(dr.map_err(|why| why.to_string())?),
                    Box::new(network.rank(VILLAIN)),
                )
            }
        };
        let stack = Stack::new("ob1", victim.name());
        // What dr puts in front of the address of the transport inside, the victim's has too.
        let mut address = victim.address();
        let inside = address.len() - villain.address().len();
        address.truncate(inside);
        address.extend(villain.address());
        let opened = open(
            &job,
            |member| Ob1::open(&Ob1Options::default(), victim, member),
            &stack.card(&address),
        )?;
        let card = job
            .member(VILLAIN)
            .get(VICTIM, KEY, PATIENCE)
            .map_err(|why| why.to_string())?;
        let theirs = &card[stack.card(&[]).len() + inside..];
        let mut rail = villain;
        let to = rail
            .connect(VICTIM, theirs)
            .map_err(|why| why.to_string())?;
        let seals = self.below == Below::Dr;
        Ok(Bed {
            victim: Messenger::new(opened, ThreadLevel::Single, WaitPolicy::adaptive(true)),
            villain: Box::new(Rail {
                rail,
                to,
                seals,
                number: 0,
                heard: Heard::new(chance),
            }),
        })
    }
}

/// Opens the victim's layer, while the villain puts its card.
///
/// # Errors
/// When the layer does not open.
pub fn open<L: Send>(
    job: &LocalJob,
    layer: impl FnOnce(Box<dyn Bootstrap>) -> tagwire_pml::Result<L> + Send,
    card: &[u8],
) -> Result<L, String> {
    std::thread::scope(|scope| {
        let opened = scope.spawn(|| layer(Box::new(job.member(VICTIM))));
        let mut member = job.member(VILLAIN);
        let put = member.put(KEY, card).and_then(|()| member.fence(PATIENCE));
        put.map_err(|why| why.to_string())?;
        let opened = opened.join().map_err(|_| "opening has panicked")?;
        opened.map_err(|why| why.to_string())
    })
}

/// A villain with a transport of bytes.
struct Rail {
    rail: Box<dyn ByteTransport>,
    to: EndpointId,
    /// Whether packets are sealed as those of data reliability.
    seals: bool,
    number: u64,
    heard: Heard,
}

impl Villain for Rail {
    fn send(&mut self, chance: &mut Chance) -> Answer {
        let (mut header, mut payload) = self.heard.packet(chance);
        if self.seals {
            (header, payload) = self.sealed(chance, header, &payload);
        }
        let class = chance.one_of(&[Class::Data, Class::Control]);
        let post = self.rail.send(LANE, self.to, class, header, &payload);
        post.into()
    }

    fn hear(&mut self) {
        self.rail.progress(LANE, &mut self.heard);
    }
}

impl Rail {
    /// Puts a packet into one of data reliability (transport/dr/src/wire.rs), whose fields are of chance, or right.
    fn sealed(
        &mut self,
        chance: &mut Chance,
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
        let start = crc::with_words(0, [1, 0], &[]);
        let sum = crc::with_words(start, [first, consumed], &bytes);
        (AmHeader([first, u64::from(sum) << 32 | consumed]), bytes)
    }
}
