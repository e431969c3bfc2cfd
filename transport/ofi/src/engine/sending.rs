//! Messages out: the credit, the buffers, what is owed to peers.

use tagwire_transport::data::ReadRegion;
use tagwire_transport::{AmHeader, Class, EndpointId, Outcome, Post, SendBuffer, Token};

use super::Op;
use super::peers::Peers;
use super::pool::{MAX_INJECT, MAX_SEND};
use crate::fabric::{OpId, Peer, Place, Registered, Took};
use crate::link::{Flush, Greeting};
use crate::wire::{self, Greets, HEADER, Header, Kind};

impl Peers {
    /// How many messages of `class` may be under way to a peer.
    #[inline]
    fn limit(&self, class: Class) -> u32 {
        match class {
            Class::Data => self.window - self.window / 8,
            Class::Control => self.window,
        }
    }

    /// Why nothing can be sent to `to` just now, if so; says hello first.
    #[inline]
    pub(crate) fn check(&mut self, to: EndpointId, limit: u32) -> Result<Peer, Post> {
        if self
            .links
            .get(to)
            .is_none_or(|link| link.closed || link.farewell_said)
        {
            return Err(Post::Gone);
        }
        let peer = self.reachable(to)?;
        if self.links[to].in_flight() >= limit {
            return Err(Post::Busy);
        }
        Ok(peer)
    }

    /// Where a peer is that knows who this is; says hello first.
    #[inline]
    pub(super) fn reachable(&mut self, to: EndpointId) -> Result<Peer, Post> {
        let link = &self.links[to];
        let Some(peer) = link.peer else {
            return Err(Post::Gone);
        };
        if link.greeting != Greeting::Heard {
            return Err(self.greet(to, peer));
        }
        Ok(peer)
    }

    #[inline]
    fn header(&self, to: EndpointId, kind: Kind, words: AmHeader) -> [u8; HEADER] {
        let link = &self.links[to];
        let header = Header {
            sequence: link.sent,
            kind,
            source: self.identity.rank,
            stamp: self.identity.stamp,
            slot: link.slot,
            credit: link.consumed,
            words,
        };
        header.encode()
    }

    /// Sends a message by copy.
    #[inline]
    pub(crate) fn post(
        &mut self,
        to: EndpointId,
        class: Class,
        words: AmHeader,
        data: &[u8],
    ) -> Post {
        let fill = |room: &mut [u8]| room.copy_from_slice(data);
        self.post_filled(to, class, words, data.len(), fill)
    }

    /// The same with `len` bytes, which `fill` writes where they are sent from.
    #[inline]
    pub(crate) fn post_filled(
        &mut self,
        to: EndpointId,
        class: Class,
        words: AmHeader,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Post {
        if len > MAX_SEND {
            return Post::Unsupported;
        }
        let peer = match self.check(to, self.limit(class)) {
            Ok(peer) => peer,
            Err(post) => return post,
        };
        let header = self.header(to, Kind::Data, words);
        let total = HEADER + len;
        if total > self.inject_size.min(MAX_INJECT) {
            return self.post_copied(to, peer, &header, len, fill);
        }
        let mut bytes = [0; MAX_INJECT];
        bytes[..HEADER].copy_from_slice(&header);
        fill(&mut bytes[HEADER..total]);
        let took = self.net.inject(peer, &bytes[..total]);
        self.note(to, took)
    }

    /// Sends a message from a buffer of the pool.
    fn post_copied(
        &mut self,
        to: EndpointId,
        peer: Peer,
        header: &[u8; HEADER],
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Post {
        let Ok(place) = self.pool.take(&mut self.net) else {
            return Post::Busy;
        };
        let (first, rest) = self.net.room(place, HEADER + len).split_at_mut(HEADER);
        first.copy_from_slice(header);
        fill(rest);
        let op = self.ops.insert(Op::Send { link: to, place });
        let took = self.net.send(peer, place, HEADER + len, op);
        self.note_op(to, took, op, place)
    }

    /// Sends a copy of `data` as a tagged message; it has no more bytes than fit in a buffer.
    pub(crate) fn send_copy_tagged(
        &mut self,
        to: EndpointId,
        peer: Peer,
        tag: u64,
        data: &SendBuffer,
    ) -> Took {
        let Ok(place) = self.take_place() else {
            return Took::Busy;
        };
        data.copy_out(0, self.net.room(place, data.len()));
        let op = self.ops.insert(Op::Send { link: to, place });
        let took = self.net.send_tagged(peer, tag, place, data.len(), op);
        if took == Took::Yes {
            self.links[to].sending += 1;
        } else {
            self.ops.free(op);
            self.put_place(place);
        }
        took
    }

    /// Room for a message.
    pub(crate) fn take_place(&mut self) -> Result<Place, i32> {
        self.pool.take(&mut self.net)
    }

    pub(crate) fn put_place(&mut self, place: Place) {
        self.pool.put_back(place);
    }

    /// Sends a message of which `data` is not copied, registered where the provider asks for that.
    ///
    /// # Safety
    /// `data` is lent until `token` completes.
    #[allow(unsafe_code, reason = "buffers are lent to the provider")]
    pub(crate) unsafe fn post_zero_copy(
        &mut self,
        to: EndpointId,
        words: AmHeader,
        data: ReadRegion,
        registered: Option<Registered>,
        token: Token,
    ) -> Post {
        let peer = match self.check(to, self.limit(Class::Data)) {
            Ok(peer) => peer,
            Err(post) => return post,
        };
        let header = self.header(to, Kind::Data, words);
        let Ok(place) = self.pool.take(&mut self.net) else {
            return Post::Busy;
        };
        self.net.room(place, HEADER).copy_from_slice(&header);
        let op = self.ops.insert(Op::ZeroCopy {
            link: to,
            place,
            token,
            len: data.len(),
            registered: None,
        });
        let own = registered.as_ref();
        // SAFETY: the caller says that the buffer is lent until the token completes, which it does after the
        // operation; that keeps the registration.
        let took = unsafe { self.net.send_both(peer, place, HEADER, data, own, op) };
        self.ops.keep(op, registered);
        self.note_op(to, took, op, place)
    }

    /// Takes note of what became of a send that has an operation and a buffer.
    #[inline]
    fn note_op(&mut self, to: EndpointId, took: Took, op: OpId, place: Place) -> Post {
        if took == Took::Yes {
            self.links[to].sending += 1;
        } else {
            self.ops.free(op);
            self.pool.put_back(place);
        }
        self.note(to, took)
    }

    #[inline]
    fn note(&mut self, to: EndpointId, took: Took) -> Post {
        match took {
            Took::Yes => {
                self.links[to].note_sent();
                Post::Posted
            }
            Took::Busy => Post::Busy,
            Took::Failed(code) if self.waits_for_way(to, code) => Post::Busy,
            Took::Failed(code) => {
                self.lose_later(to, code);
                Post::Gone
            }
        }
    }

    /// Tells a peer who this is, once; returns that there is more to wait for, or why not.
    #[cold]
    fn greet(&mut self, to: EndpointId, peer: Peer) -> Post {
        if self.links[to].greeting == Greeting::Said {
            return Post::Busy;
        }
        let header = self.header(to, Kind::Hello, AmHeader([u64::from(to.0), 0]));
        let greets = Greets {
            stamp: self.identity.stamp,
            first: self.links[to].sent,
            slot: u64::from(to.0),
            to: self.links[to].rank,
        };
        let payload = wire::hello(&self.identity.secret, &self.identity.address, greets);
        let fill = |room: &mut [u8]| room.copy_from_slice(&payload);
        match self.post_copied(to, peer, &header, payload.len(), fill) {
            Post::Posted => {
                self.links[to].greeting = Greeting::Said;
                Post::Busy
            }
            other => other,
        }
    }

    /// Sends a message of the engine's own, which needs no credit: there are few of them.
    pub(super) fn post_own(&mut self, to: EndpointId, kind: Kind, word: u64) -> Post {
        match self.check(to, u32::MAX) {
            Ok(peer) => self.post_word(to, peer, kind, word),
            Err(post) => post,
        }
    }

    /// The same to a peer that may have left.
    pub(super) fn post_word(&mut self, to: EndpointId, peer: Peer, kind: Kind, word: u64) -> Post {
        let header = self.header(to, kind, AmHeader([word, 0]));
        self.post_copied(to, peer, &header, 0, |_| {})
    }

    /// Asks a peer, once what was written is complete here, whether it is there as well.
    pub(crate) fn ask_flush(&mut self, to: EndpointId, token: Option<Token>) {
        let number = self.next_flush;
        self.next_flush += 1;
        self.links[to].flushes.push(Flush {
            number,
            token,
            asked: false,
            covers: 0,
        });
        self.list(to);
    }

    /// Takes note that there is something to do for a peer.
    #[inline]
    pub(crate) fn list(&mut self, endpoint: EndpointId) {
        if !std::mem::replace(&mut self.links[endpoint].listed, true) {
            self.listed.push(endpoint);
        }
    }

    /// Takes note that a message was consumed; credit is told in batches.
    #[inline]
    pub(super) fn owe_credit(&mut self, endpoint: EndpointId) {
        if self.links[endpoint].untold() >= self.window / 4 {
            self.list(endpoint);
        }
    }

    /// Does what is owed to the peers for whom something is to be done, as far as there is room.
    pub(super) fn serve_listed(&mut self) {
        let mut listed = std::mem::take(&mut self.listed);
        listed.retain(|endpoint| {
            let again = !self.serve(*endpoint);
            self.links[*endpoint].listed = again;
            again
        });
        self.listed.append(&mut listed);
    }

    /// Does what is owed to one peer; returns whether that was all.
    fn serve(&mut self, to: EndpointId) -> bool {
        if self.links[to].farewell_said {
            return true;
        }
        while let Some(answer) = self.links[to].answers.first().copied() {
            if self.post_own(to, Kind::Flushed, answer) == Post::Busy {
                return false;
            }
            if !self.links[to].answers.is_empty() {
                self.links[to].answers.remove(0);
            }
        }
        if !self.ask_flushes(to) {
            return false;
        }
        self.links[to].closed
            || self.links[to].untold() < self.window / 4
            || self.post_own(to, Kind::Credit, 0) != Post::Busy
    }

    /// Ends the flushes that have not been asked for: all that was written is visible, since it has been delivered.
    fn end_flushes(&mut self, to: EndpointId) {
        let link = &mut self.links[to];
        let ended: Vec<Flush> = link.flushes.extract_if(.., |flush| !flush.asked).collect();
        link.unflushed = !link.flushes.is_empty();
        for token in ended.into_iter().filter_map(|flush| flush.token) {
            self.tell_later(token, Outcome::Done(0));
        }
    }

    /// Asks for the flushes that have not been asked for; returns whether that is done.
    fn ask_flushes(&mut self, to: EndpointId) -> bool {
        let link = &self.links[to];
        if link.accessing > 0 || link.closed {
            // The last access to complete lists the peer again.
            return true;
        }
        if self.delivers == Some(true) && !link.undelivered {
            self.end_flushes(to);
            return true;
        }
        for place in 0..link.flushes.len() {
            let flush = self.links[to].flushes[place];
            if flush.asked {
                continue;
            }
            match self.post_own(to, Kind::Flush, flush.number) {
                Post::Posted => {
                    let covers = self.links[to].written;
                    let flush = &mut self.links[to].flushes[place];
                    (flush.asked, flush.covers) = (true, covers);
                }
                Post::Busy => return false,
                _ => return true,
            }
        }
        true
    }
}
