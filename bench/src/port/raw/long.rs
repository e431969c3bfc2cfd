//! Messages that do not leave as a copy: lent, offered, read, or sent in parts.

use tagwire_base::Rank;
use tagwire_transport::{
    Class, EndpointId, Offer, Payload, Post, RegistrationHandle, RemoteMemory, Ticket, Token,
};

use super::{Core, Driver, Kind, LANE, OpenOffer, Pending, RawPort, Request, Source, claim_token};
use crate::buffer::Outgoing;
use crate::error::Result;

/// From this length on messages are lent, as ob1 does: what is shorter is copied in less time than it takes
/// to look after its end.
pub(super) const LEND_FROM: usize = 4 << 10;

/// Memory that peers may read: benchmarks never free it, so that it stays registered.
pub(super) struct Exposed {
    address: u64,
    len: usize,
    registration: RegistrationHandle,
}

impl Source {
    /// What an `Offer` or a `Read` says.
    #[inline]
    pub(super) fn parse(kind: Kind, payload: Payload<'_>) -> Option<Self> {
        let word = |at: usize| {
            let mut bytes = [0; 8];
            let whole = payload.slice(at..at + 8).read_into(&mut bytes);
            whole.then(|| u64::from_le_bytes(bytes))
        };
        if kind == Kind::Offer {
            return Some(Self::Offered(Ticket([word(0)?, word(8)?])));
        }
        let address = word(0)?;
        let key = payload.slice(8..payload.len());
        let mut bytes = vec![0; key.len()].into_boxed_slice();
        key.copy_to_slice(&mut bytes);
        Some(Self::Exposed {
            address,
            key: bytes,
        })
    }
}

impl RawPort {
    /// Sends a message in one piece, from where it lies.
    #[inline]
    pub(super) fn send_lent(
        &self,
        to: Rank,
        endpoint: EndpointId,
        number: u64,
        data: Outgoing,
    ) -> Result<Request> {
        let header = Kind::Whole.header(number, data.len());
        let mut lent = Request::Done;
        let sent = self.insist(to, |driver| {
            let (offer, token) = driver.core.next_offer();
            let posted = driver
                .rail
                .send_zero_copy(LANE, endpoint, header, &data.buffer(), token);
            if posted == Post::Posted {
                driver.core.open(endpoint, None, number, data);
                lent = Request::Offer(offer);
            }
            posted
        })?;
        if !sent {
            self.insist(to, |driver| {
                let rail = &mut driver.rail;
                rail.send(LANE, endpoint, Class::Data, header, data.bytes())
            })?;
        }
        Ok(lent)
    }

    #[inline]
    pub(super) fn send_long(
        &self,
        to: Rank,
        endpoint: EndpointId,
        number: u64,
        data: Outgoing,
    ) -> Result<Request> {
        let mut offered = None;
        if self.driver.borrow().cooperative {
            self.insist(to, |driver| {
                let (offer, token) = driver.core.next_offer();
                match driver.rail.offer(LANE, endpoint, &data.buffer(), token) {
                    Offer::Busy => Post::Busy,
                    Offer::Unsupported => Post::Unsupported,
                    Offer::Open(ticket) => {
                        driver.core.open(endpoint, Some(ticket), number, data);
                        let words = ticket.0.map(u64::to_le_bytes).concat();
                        offered = Some((offer, Kind::Offer, words));
                        Post::Posted
                    }
                }
            })?;
        }
        if offered.is_none() {
            let mut driver = self.driver.borrow_mut();
            if let Some(words) = driver.readable(data) {
                let (offer, _) = driver.core.next_offer();
                driver.core.open(endpoint, None, number, data);
                offered = Some((offer, Kind::Read, words));
            }
        }
        let Some((offer, kind, words)) = offered else {
            self.send_parts(to, endpoint, number, data)?;
            return Ok(Request::Done);
        };
        let header = kind.header(number, data.len());
        self.insist(to, |driver| {
            driver
                .rail
                .send(LANE, endpoint, Class::Data, header, &words)
        })?;
        Ok(Request::Offer(offer))
    }

    #[inline]
    fn send_parts(
        &self,
        to: Rank,
        endpoint: EndpointId,
        number: u64,
        data: Outgoing,
    ) -> Result<()> {
        let mut done = 0;
        while done < data.len() {
            let sent = self.insist(to, |driver| driver.send_part(endpoint, number, data, done))?;
            debug_assert!(sent, "every transport sends");
            done += (data.len() - done).min(self.driver.borrow().longest);
        }
        Ok(())
    }
}

impl Driver {
    /// Address and key of memory that peers may read from now on; `None` where they may not.
    #[inline]
    fn readable(&mut self, data: Outgoing) -> Option<Vec<u8>> {
        if data.len() < self.read_from {
            return None;
        }
        let buffer = data.buffer();
        let (address, len) = (buffer.region()?.address(), data.len());
        let is_same = |known: &Exposed| (known.address, known.len) == (address, len);
        let at = match self.exposed.iter().position(is_same) {
            Some(at) => at,
            None => {
                let registration = self.rail.expose(&buffer).ok()?;
                self.exposed.push(Exposed {
                    address,
                    len,
                    registration,
                });
                self.exposed.len() - 1
            }
        };
        let key = &self.exposed[at].registration.key;
        let words = [&address.to_le_bytes()[..], key].concat();
        (words.len() <= self.longest).then_some(words)
    }

    /// Fetches the bytes of a long message whose receive is posted; returns what is left to do.
    #[inline]
    pub(super) fn fetch(
        &mut self,
        from: EndpointId,
        number: u64,
        length: usize,
        source: Source,
    ) -> Option<Pending> {
        let receive = self.core.peer(from).receive(number)?;
        let token = claim_token(from, number);
        let posted = match &source {
            Source::Offered(ticket) => {
                let room = receive.data.buffer();
                self.rail.claim(LANE, from, *ticket, &room, token)
            }
            Source::Exposed { address, key } => {
                receive.is_read = true;
                let room = receive.data.buffer();
                let part = room.part(0..length);
                let source = RemoteMemory {
                    address: *address,
                    key,
                };
                part.map_or(Post::Unsupported, |part| {
                    self.rail.get(LANE, from, &part, source, token)
                })
            }
        };
        match posted {
            Post::Posted | Post::Gone => None,
            Post::Busy => Some(Pending::Fetch {
                from,
                number,
                length,
                source,
            }),
            Post::Unsupported => Some(Pending::Say {
                to: from,
                kind: Kind::Refuse,
                number,
            }),
        }
    }
}

impl Core {
    /// The number and the token of the next send that stays open.
    #[inline]
    fn next_offer(&self) -> (u64, Token) {
        let number = self.first_offer + self.offers.len() as u64;
        (number, Token(number << 1))
    }

    #[inline]
    fn open(&mut self, to: EndpointId, ticket: Option<Ticket>, number: u64, data: Outgoing) {
        self.offers.push_back(OpenOffer {
            to,
            ticket,
            number,
            data,
            is_done: false,
        });
    }

    /// The receiver of a long message has read it, or cannot fetch it.
    #[inline]
    pub(super) fn answered(&mut self, from: EndpointId, kind: Kind, number: u64) {
        let is_meant = |offer: &OpenOffer| offer.to == from && offer.number == number;
        let Some(at) = self.offers.iter().position(is_meant) else {
            return;
        };
        let offer = self.first_offer + at as u64;
        match (kind, self.offers[at].ticket) {
            (Kind::Got, _) => self.finish_offer(offer),
            (_, Some(ticket)) => self
                .pending
                .push_back(Pending::Withdraw { to: from, ticket }),
            (_, None) => self
                .pending
                .push_back(Pending::SendParts { offer, done: 0 }),
        }
    }

    /// The bytes of a long message cannot be had. Of an offer its sender sees the same and sends parts.
    #[inline]
    pub(super) fn not_fetched(&mut self, from: EndpointId, number: u64) {
        let receive = self.peer(from).receive(number);
        if receive.is_some_and(|receive| receive.is_read) {
            self.pending.push_back(Pending::Say {
                to: from,
                kind: Kind::Refuse,
                number,
            });
        }
    }

    /// The bytes of a long message are here.
    #[inline]
    pub(super) fn fetched(&mut self, from: EndpointId, number: u64) {
        let peer = self.peer(from);
        let mut is_read = false;
        if let Some(receive) = peer.receive(number) {
            receive.is_done = true;
            is_read = receive.is_read;
        }
        peer.retire();
        if is_read {
            self.pending.push_back(Pending::Say {
                to: from,
                kind: Kind::Got,
                number,
            });
        }
    }
}
