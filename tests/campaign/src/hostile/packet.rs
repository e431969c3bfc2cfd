//! Packets of chance: near to those of a correct peer, so that they come far.

use std::collections::VecDeque;

use tagwire_conformance::Chance;
use tagwire_transport::{AmHeader, Arrival, Outcome, PeerEvent, Token, Upcalls};

/// How many packets of the victim are known at a time.
const KNOWN: usize = 32;
/// The kinds of packets that there are (docs/wire.md).
const KINDS: [u64; 35] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32,
    33, 40, 41, 42, 43, 44, 45, 46, 255,
];
/// Those of services, and a whole message.
const SERVICES: [u64; 11] = [27, 28, 29, 30, 40, 41, 42, 43, 44, 45, 46];
const MESSAGE: u64 = 1;
/// Kinds below this have a place in their sender's sequence.
const FIRST_CONTROL: u64 = 16;
/// Payload of a packet, in bytes.
const PAYLOAD: u64 = 96;

/// What a villain has heard, and how it goes on.
#[derive(Debug)]
pub struct Heard {
    packets: VecDeque<(AmHeader, Vec<u8>)>,
    /// Those of what services have to do with each other: said again as they are, they are answers.
    unanswered: VecDeque<(AmHeader, Vec<u8>)>,
    sequence: u64,
    /// One in so many packets is none of a correct peer.
    care: u64,
}

impl Heard {
    /// Returns a villain that has heard nothing: a rash one, or one that waits for its moment.
    pub fn new(chance: &mut Chance) -> Self {
        Self {
            packets: VecDeque::new(),
            unanswered: VecDeque::new(),
            sequence: 0,
            care: chance.one_of(&[1, 2, 8, 40]),
        }
    }

    /// Notes a packet of the victim.
    pub fn note(&mut self, header: AmHeader, payload: Vec<u8>) {
        let is_of_services = SERVICES.contains(&(header.0[0] & 0xff));
        if is_of_services || is_internal(header) {
            keep(&mut self.unanswered, header, payload.clone());
        }
        keep(&mut self.packets, header, payload);
    }

    /// Returns a packet: a correct one, an answer, one of chance, or one that was heard, with changes.
    pub fn packet(&mut self, chance: &mut Chance) -> (AmHeader, Vec<u8>) {
        if self.is_rash(chance) {
            return self.hostile(chance);
        }
        let answer = match chance.below(3) {
            0 => None,
            _ => self.unanswered.pop_front(),
        };
        let (header, payload) = answer.unwrap_or_else(|| sound(chance));
        (self.in_turn(chance, header), payload)
    }

    /// Returns an answer to a packet of services, where there is one to be answered.
    pub fn answer(&mut self) -> Option<(AmHeader, Vec<u8>)> {
        self.unanswered.pop_front()
    }

    /// Whether the next packet is to be none of a correct peer.
    pub fn is_rash(&self, chance: &mut Chance) -> bool {
        chance.below(self.care) == 0
    }

    /// Returns a packet of chance, or one that was heard, as it was or with changes.
    pub fn hostile(&mut self, chance: &mut Chance) -> (AmHeader, Vec<u8>) {
        let known = chance.below(self.packets.len() as u64) as usize;
        let (header, payload) = match (chance.below(6), self.packets.get(known)) {
            (0, Some((header, payload))) => (*header, payload.clone()),
            (1..4, Some((header, payload))) => changed(chance, *header, payload.clone()),
            _ => (drawn(chance), body(chance)),
        };
        (self.in_turn(chance, header), payload)
    }

    /// Gives a packet of a sequence its number there, mostly: others wait for those before them.
    fn in_turn(&mut self, chance: &mut Chance, header: AmHeader) -> AmHeader {
        let AmHeader([first, second]) = header;
        if first & 0xff >= FIRST_CONTROL || chance.below(16) == 0 {
            return header;
        }
        let number = self.sequence;
        self.sequence += 1;
        AmHeader([first, number << 32 | second & 0xffff_ffff])
    }
}

/// Keeps a packet, in place of the oldest where there are many.
fn keep(packets: &mut VecDeque<(AmHeader, Vec<u8>)>, header: AmHeader, payload: Vec<u8>) {
    if packets.len() == KNOWN {
        packets.pop_front();
    }
    packets.push_back((header, payload));
}

/// Whether it is a message under a tag that no user has: of a group, or of how partitioned operations begin.
fn is_internal(header: AmHeader) -> bool {
    let [first, _] = header.0;
    first & 0xff == MESSAGE && first >> 63 == 1
}

/// Returns a message as correct peers send them: whole, synchronous, or its envelope.
fn sound(chance: &mut Chance) -> (AmHeader, Vec<u8>) {
    let (tag, context) = (chance.below(3), 0);
    let kind = chance.one_of(&[1, 1, 4, 5]);
    let first = tag << 32 | context << 16 | kind;
    let len = chance.below(PAYLOAD);
    let handle = (chance.below(1000) << 32 | 1).to_le_bytes();
    let message = chance.bytes(len as usize);
    match kind {
        1 => (AmHeader([first, len]), message),
        4 => (AmHeader([first, len]), [&handle[..], &message].concat()),
        _ => {
            let long = 1 + chance.below(200_000);
            let ticket = chance.bytes(16);
            let body = [&long.to_le_bytes()[..], &handle, &ticket, &[0; 8]].concat();
            (AmHeader([first, long]), body)
        }
    }
}

/// Returns a header of chance.
fn drawn(chance: &mut Chance) -> AmHeader {
    let kind = match chance.below(16) {
        0 => chance.below(256),
        _ => chance.one_of(&KINDS),
    };
    // Slot and generation of an operation, or tag and context of a message.
    let first = match chance.below(8) {
        0 => chance.word() & !0xff,
        1..5 => chance.below(8) << 32 | chance.below(6) << 8,
        _ => chance.below(4) << 32 | chance.below(2) << 16 | chance.below(4) << 8,
    };
    AmHeader([first | kind, small(chance)])
}

/// Returns numbers like those that lengths, offsets and handles are, and others.
fn small(chance: &mut Chance) -> u64 {
    match chance.below(6) {
        0 => chance.word(),
        1 => chance.below(100),
        2 => 1 << chance.below(64),
        3 => (1 << chance.below(64)) - 1,
        4 => chance.below(4) << 32 | chance.below(200_000),
        _ => chance.below(PAYLOAD),
    }
}

/// Returns a payload of chance.
fn body(chance: &mut Chance) -> Vec<u8> {
    let len = match chance.below(4) {
        0 => 0,
        _ => chance.below(PAYLOAD) as usize,
    };
    match chance.is_true() {
        true => chance.bytes(len),
        false => {
            let words = std::iter::repeat_with(|| small(chance).to_le_bytes());
            let mut bytes: Vec<u8> = words.take(len.div_ceil(8)).flatten().collect();
            bytes.truncate(len);
            bytes
        }
    }
}

/// Changes some of a packet.
fn changed(chance: &mut Chance, header: AmHeader, mut payload: Vec<u8>) -> (AmHeader, Vec<u8>) {
    let AmHeader([mut first, mut second]) = header;
    for _ in 0..1 + chance.below(3) {
        match chance.below(8) {
            0 | 1 => first = first & !0xff | chance.one_of(&KINDS),
            2 => first ^= 1 << chance.below(64),
            3 => second = small(chance),
            4 => second ^= 1 << chance.below(64),
            5 if !payload.is_empty() => {
                let at = chance.below(payload.len() as u64) as usize;
                payload[at] = chance.word() as u8;
            }
            6 => payload.truncate(chance.below(PAYLOAD) as usize),
            _ => {}
        }
    }
    (AmHeader([first, second]), payload)
}

impl Upcalls for Heard {
    fn deliver(&mut self, arrival: Arrival<'_>) {
        self.note(arrival.header, arrival.payload.to_vec());
    }

    fn complete(&mut self, _: Token, _: Outcome) {}

    fn peer(&mut self, _: PeerEvent) {}
}
