//! Messages in: who sent them, whether it is their turn, what they are for.

use tagwire_base::Rank;
use tagwire_libfabric_sys::bindings::{FI_MULTI_RECV, FI_RECV};
use tagwire_transport::{Arrival, EndpointId, Error, Payload, PeerEvent};

use super::{Engine, Sink};
use crate::NAME;
use crate::fabric::Completion;
use crate::link::Turn;
use crate::wire::{self, Greets, HEADER, Header, Kind, MAX_HELLO};

/// How a message that is neither now nor later to be delivered was dealt with.
enum Place {
    Deliver(EndpointId),
    Done(usize),
}

impl Engine {
    /// Something came into a block: a message, or the word that the block is full.
    #[inline]
    pub(super) fn take_message(
        &mut self,
        chunk: u32,
        completion: &Completion,
        sink: &mut impl Sink,
    ) -> usize {
        let multi = self.receives.multi;
        let mut told = 0;
        if !multi || completion.flags & FI_RECV != 0 {
            told = self.read_message(chunk, completion, sink);
            let block = self.receives.chunks[chunk as usize].block;
            match self.peers.net.place(block, completion) {
                Some(place) => self.receives.note_message(chunk, place),
                // It is said to be elsewhere.
                None => self.receives.note_cut(chunk),
            }
        }
        if multi && completion.flags & FI_MULTI_RECV != 0 {
            self.receives.note_full(chunk);
        }
        told
    }

    #[inline]
    fn read_message(&mut self, chunk: u32, completion: &Completion, sink: &mut impl Sink) -> usize {
        let mut bytes = [0; HEADER];
        let block = self.receives.chunks[chunk as usize].block;
        let whole = self.peers.net.payload(block, completion);
        let header = whole
            .filter(|payload| payload.read_into(&mut bytes))
            .and_then(|_| Header::decode(&bytes));
        let (Some(whole), Some(header)) = (whole, header) else {
            return self.refuse(sink, "a message that is none of ours");
        };
        // The bytes stay where they are while the message is dealt with: nothing below gives the
        // block back to the provider.
        let payload = whole.slice(HEADER..whole.len());
        let endpoint = match self.peers.links.sender(&header) {
            Some(endpoint) => endpoint,
            // Of who has not shown that it is of this job no more is kept than its hello.
            None if payload.len() > MAX_HELLO => return self.refuse(sink, STRANGER),
            None => {
                let copy = payload.to_vec();
                return self.meet(&header, &copy, sink);
            }
        };
        let link = &mut self.peers.links[endpoint];
        if link.closed {
            return 0;
        }
        match link.turn(header.sequence) {
            Turn::Now => {}
            Turn::Early => {
                link.hold(header, payload.to_vec());
                return 0;
            }
            // Whoever has overheard it can say it again, and breaks nothing by it.
            Turn::Never if header.kind == Kind::Hello => {
                return self.refuse(sink, "a hello that was said before");
            }
            Turn::Never => return self.break_off(endpoint, "a message out of order", sink),
        }
        let place = if header.kind == Kind::Data {
            self.accept(endpoint, &header, sink)
        } else {
            Place::Done(self.obey(endpoint, &header, sink))
        };
        let told = match place {
            Place::Done(told) => told,
            Place::Deliver(from) => {
                let block = self.receives.chunks[chunk as usize].block;
                let Some(whole) = self.peers.net.payload(block, completion) else {
                    return 0;
                };
                sink.deliver(Arrival {
                    from,
                    header: header.words,
                    payload: whole.slice(HEADER..whole.len()),
                });
                1
            }
        };
        told + self.catch_up(endpoint, sink)
    }

    /// Takes note of a message of data, whose turn it is.
    #[inline]
    fn accept(&mut self, from: EndpointId, header: &Header, sink: &mut impl Sink) -> Place {
        let link = &mut self.peers.links[from];
        if !link.credit(header) {
            return Place::Done(self.break_off(from, "credit for what was not sent", sink));
        }
        link.consumed = link.consumed.wrapping_add(1);
        self.peers.owe_credit(from);
        Place::Deliver(from)
    }

    /// Delivers the messages that waited for the one before them.
    #[inline]
    fn catch_up(&mut self, from: EndpointId, sink: &mut impl Sink) -> usize {
        let mut told = 0;
        while let Some((header, bytes)) = self.peers.links[from].next_early() {
            if self.peers.links[from].closed {
                break;
            }
            if header.kind != Kind::Data {
                told += self.obey(from, &header, sink);
                continue;
            }
            match self.accept(from, &header, sink) {
                Place::Done(count) => told += count,
                Place::Deliver(from) => {
                    sink.deliver(Arrival {
                        from,
                        header: header.words,
                        payload: Payload::from_slice(&bytes),
                    });
                    told += 1;
                }
            }
        }
        told
    }

    /// Does what a message of the engine's own asks for.
    #[cold]
    fn obey(&mut self, from: EndpointId, header: &Header, sink: &mut impl Sink) -> usize {
        let link = &mut self.peers.links[from];
        if !link.credit(header) {
            return self.break_off(from, "credit for what was not sent", sink);
        }
        link.consumed = link.consumed.wrapping_add(1);
        self.peers.owe_credit(from);
        let word = header.words.0[0];
        match header.kind {
            Kind::Data | Kind::Credit | Kind::Hello => 0,
            Kind::Goodbye => self.goodbyes.hear(&mut self.peers, from, sink),
            Kind::GoodbyeHeard => {
                if self.goodbyes.note_heard(&mut self.peers, from) {
                    return 0;
                }
                self.break_off(from, "an answer that was not asked for", sink)
            }
            Kind::Abort => self.lose(from, sink),
            Kind::Flush => {
                self.peers.links[from].answers.push(word);
                self.peers.list(from);
                0
            }
            Kind::Flushed => self.end_flush(from, word, sink),
        }
    }

    /// A message of somebody who has not said who it is: it had better be a hello.
    #[cold]
    fn meet(&mut self, header: &Header, payload: &[u8], sink: &mut impl Sink) -> usize {
        let identity = &self.peers.identity;
        let greets = Greets {
            stamp: header.stamp,
            first: header.sequence,
            slot: header.words.0[0],
            to: identity.rank,
        };
        let address = wire::read_hello(payload, &identity.secret, greets)
            .filter(|address| header.kind == Kind::Hello && address.rank == header.source);
        let Some(address) = address else {
            return self.refuse(sink, STRANGER);
        };
        let endpoint = self.peers.links.at(header.source);
        if self.peers.links[endpoint].closed {
            // It comes too late: it was declared dead. What follows is no stranger's.
            let link = &mut self.peers.links[endpoint];
            link.stamp = link.stamp.or(Some(header.stamp));
            return 0;
        }
        if self.peers.links[endpoint].stamp.is_some() {
            return self.break_off(endpoint, "a second hello", sink);
        }
        if let Err(error) = self.peers.reach(endpoint, &address) {
            sink.peer(PeerEvent::Protocol(None, error));
            return 1;
        }
        // A hello may come late, and says like every message how much was consumed.
        if !self.peers.links[endpoint].credit(header) {
            return self.break_off(endpoint, "credit for what was not sent", sink);
        }
        let slot = header.words.0[0] as u32;
        self.peers.links[endpoint].meet(header, slot);
        sink.peer(PeerEvent::Up {
            endpoint,
            rank: header.source,
        });
        1
    }

    /// Ends contact with a peer that does not keep to the rules.
    #[cold]
    pub(crate) fn break_off(
        &mut self,
        endpoint: EndpointId,
        reason: &'static str,
        sink: &mut impl Sink,
    ) -> usize {
        let error = Error::Protocol {
            transport: NAME,
            peer: self.peers.links[endpoint].rank,
            reason: reason.to_owned(),
        };
        sink.peer(PeerEvent::Protocol(Some(endpoint), error));
        1 + self.close_link(endpoint, sink)
    }

    /// The peer has replied to a flush.
    fn end_flush(&mut self, from: EndpointId, number: u64, sink: &mut impl Sink) -> usize {
        let link = &mut self.peers.links[from];
        let found = link
            .flushes
            .iter()
            .position(|flush| flush.number == number && flush.asked);
        let Some(place) = found else {
            return self.break_off(from, "an answer that was not asked for", sink);
        };
        let flush = link.flushes.remove(place);
        // What was written since it was asked for may not be there.
        if link.flushes.is_empty() && link.written == flush.covers {
            (link.unflushed, link.undelivered) = (false, false);
        }
        match flush.token {
            Some(token) => {
                sink.complete(token, tagwire_transport::Outcome::Done(0));
                1
            }
            None => 0,
        }
    }

    /// Tells of a message that nobody of the job has sent. Whoever sends many fills no log with them.
    #[cold]
    fn refuse(&mut self, sink: &mut impl Sink, reason: &'static str) -> usize {
        self.refused += 1;
        if self.refused.is_power_of_two() {
            tracing::warn!(reason, refused = self.refused, "ofi: a message was refused");
        }
        let error = Error::Protocol {
            transport: NAME,
            peer: Rank::new(Rank::MAX),
            reason: reason.to_owned(),
        };
        sink.peer(PeerEvent::Protocol(None, error));
        1
    }
}

/// What is wrong with who is no rank of the job.
const STRANGER: &str = "a stranger that does not know the job's secret";
