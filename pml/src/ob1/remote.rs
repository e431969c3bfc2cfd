//! Rendezvous by get: the sender lets its peer read the bytes, the receiver fetches them into its
//! buffer once it has matched, and says so. For transports without cooperative transfers.

use std::mem;

use tagwire_transport::byte::RemoteMemory;
use tagwire_transport::{Outcome, Post, Token};

use super::Ob1;
use super::core::{Chore, Core};
use super::header::{Kind, RendezvousBody};
use super::rail::LANE;
use super::reading::{MAX_KEY, Reach, Reading, WINDOW};
use super::request::{Buffer, Phase};
use crate::slab::Handle;
use crate::types::Failure;

impl Ob1 {
    /// Lets the peer read the bytes of this send; answers address and key.
    pub(super) fn expose(&mut self, handle: Handle) -> Option<(u64, &[u8])> {
        let request = self.core.requests.get_mut(handle)?;
        let packet = self.core.peers.get(request.peer)?.lengths.packet;
        if self.piece == 0 || request.wanted <= packet {
            return None;
        }
        if request.reach.is_none() {
            let data = request.send_buffer();
            data.region()?;
            let registration = self.rail.expose(data).ok()?;
            let fits = size_of::<RendezvousBody>() + registration.key.len() <= packet;
            if registration.key.len() > MAX_KEY || !fits {
                self.rail.deregister(registration);
                return None;
            }
            request.reach = Some(Box::new(Reach::Exposed(registration)));
        }
        let address = request.send_buffer().region()?.address();
        match request.reach.as_deref() {
            Some(Reach::Exposed(registration)) => Some((address, &registration.key)),
            _ => None,
        }
    }

    /// Ends the exposure of a send: its peer can read nothing more.
    pub(super) fn hide(&mut self, handle: Handle) {
        let Some(request) = self.core.requests.get_mut(handle) else {
            return;
        };
        if let Some(Reach::Exposed(registration)) = request.reach.take().map(|reach| *reach) {
            self.rail.deregister(registration);
        }
    }

    /// A send whose bytes could be read is over.
    pub(super) fn conclude(&mut self, handle: Handle) -> usize {
        self.hide(handle);
        self.core.finish(handle, None);
        1
    }

    /// Asks for more of the bytes that a receive reads.
    pub(super) fn read(&mut self, handle: Handle) -> usize {
        let (core, rail, piece) = (&mut self.core, &mut self.rail, self.piece);
        let Some(request) = core.requests.get_mut(handle) else {
            return 0;
        };
        let Some(peer) = core.peers.get(request.peer) else {
            return 0;
        };
        let (Buffer::Recv(data), Some(Reach::Reading(reading))) =
            (&request.buffer, request.reach.as_deref_mut())
        else {
            return 0;
        };
        if request.phase != Phase::Reading || peer.health != super::peer::Health::Alive {
            return 0;
        }
        let mut posted = 0;
        while reading.asked < request.wanted && reading.under_way < WINDOW && !reading.failed {
            let end = request.wanted.min(reading.asked + piece);
            let part = data.part(reading.asked..end);
            let source = RemoteMemory {
                address: reading.address.wrapping_add(reading.asked as u64),
                key: &reading.key,
            };
            let answer = part.map_or(Post::Unsupported, |part| {
                let token = Token(handle.to_wire());
                rail.get(LANE, peer.endpoint, &part, source, token)
            });
            match answer {
                Post::Posted => {
                    reading.asked = end;
                    reading.under_way += 1;
                    request.lent = true;
                    posted += 1;
                }
                // What is under way brings us back here.
                Post::Busy if reading.under_way > 0 => break,
                Post::Busy => {
                    core.chores.push_back(Chore::Read(handle));
                    break;
                }
                Post::Gone | Post::Unsupported => reading.failed = true,
            }
        }
        core.read_on(handle);
        posted
    }
}

impl Core {
    /// Begins to read the bytes of a matched message.
    pub(super) fn start_reading(&mut self, receive: Handle, reading: Reading) {
        let Some(request) = self.requests.get_mut(receive) else {
            return;
        };
        request.phase = Phase::Reading;
        request.moved = 0;
        request.reach = Some(Box::new(Reach::Reading(reading)));
        self.chores.push_back(Chore::Read(receive));
    }

    /// A get of a receive has ended.
    #[cold]
    pub(super) fn piece_came(&mut self, handle: Handle, outcome: Outcome) {
        let Some(request) = self.requests.get_mut(handle) else {
            return;
        };
        let Some(Reach::Reading(reading)) = request.reach.as_deref_mut() else {
            return;
        };
        reading.under_way -= 1;
        request.lent = reading.under_way > 0;
        match outcome {
            Outcome::Done(bytes) => request.moved += usize::try_from(bytes).unwrap_or(usize::MAX),
            _ => reading.failed = true,
        }
        self.read_on(handle);
    }

    /// What is next for a receive that reads: more pieces, the end, or another way.
    fn read_on(&mut self, handle: Handle) {
        let Some(request) = self.requests.get_mut(handle) else {
            return;
        };
        let Some(Reach::Reading(reading)) = request.reach.as_deref() else {
            return;
        };
        let (index, sender) = (request.peer, request.remote);
        let gone = self.peers.get(index).and_then(super::peer::Peer::failure);
        if reading.under_way > 0 {
            if !reading.failed && reading.asked < request.wanted {
                self.chores.push_back(Chore::Read(handle));
            }
        } else if let Some(failure) = gone {
            self.end_reading(handle, Some(failure));
        } else if reading.failed {
            request.reach = None;
            self.ask_for_fragments(handle);
        } else if request.moved >= request.wanted {
            self.say(index, Kind::Got, sender);
            self.end_reading(handle, None);
        } else if reading.asked >= request.wanted {
            // Fewer bytes came than the sender promised.
            let failure = Failure::Protocol(request.status.source);
            self.say(index, Kind::Got, sender);
            self.end_reading(handle, Some(failure));
        }
    }

    fn end_reading(&mut self, handle: Handle, failure: Option<Failure>) {
        if let Some(request) = self.requests.get_mut(handle) {
            request.reach = None;
        }
        self.finish(handle, failure);
    }

    /// Whether this send's bytes may still be read; it is then ended by a chore that sees to that
    /// first.
    pub(super) fn conclude_later(&mut self, handle: Handle, failure: Option<Failure>) -> bool {
        let Some(request) = self.requests.get_mut(handle) else {
            return false;
        };
        if !matches!(request.reach.as_deref(), Some(Reach::Exposed(_))) {
            return false;
        }
        // The first end stands.
        if mem::replace(&mut request.phase, Phase::Concluding) != Phase::Concluding {
            if failure.is_some() {
                request.status.failure = failure;
            }
            self.chores.push_back(Chore::Conclude(handle));
        }
        true
    }
}
