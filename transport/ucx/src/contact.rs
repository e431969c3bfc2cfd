//! What arrives, and from whom: every byte of a peer is checked here.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::c_void;
use std::ptr::NonNull;

use tagwire_base::Rank;
use tagwire_base::bootstrap::JobSecret;
use tagwire_transport::{AmHeader, Arrival, EndpointId, Error, Payload, PeerEvent, Upcalls};
use zerocopy::FromBytes;

use crate::NAME;
use crate::upcalls::LentUpcalls;
use crate::wire::{Access, Control, ControlKind, DATA_MESSAGES, Prefix, Write, is_session_of};

/// A peer, as what it sends is looked at. The index is that of its endpoint.
#[derive(Debug)]
pub(crate) struct Inbound {
    pub(crate) rank: Rank,
    /// It has said hello, and with it the number in its messages.
    is_known: bool,
    /// Its end was told: nothing of it is looked at any more.
    pub(crate) closed: bool,
    /// Writes of it whose bytes are under way, by rendezvous.
    landing: usize,
    /// It has said goodbye, which is heeded once these have landed.
    goodbye: Option<ControlKind>,
    /// Writes of it that are dealt with.
    written: u64,
    /// At how many it wants to be told so.
    asked: Option<u64>,
}

/// A write whose bytes are still with its sender.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Landing {
    pub(crate) from: EndpointId,
    pub(crate) access: Access,
    /// What UCX knows it by.
    pub(crate) message: NonNull<c_void>,
}

/// What came while nobody could be told.
pub(crate) enum Early {
    Message(EndpointId, AmHeader, Vec<u8>),
    Notice(u64),
    Event(PeerEvent),
}

/// What arrives.
pub(crate) struct Inbox {
    own: Rank,
    /// Ranks of the job.
    size: u32,
    secret: JobSecret,
    inbound: Vec<Inbound>,
    by_rank: HashMap<Rank, EndpointId>,
    by_session: HashMap<u32, EndpointId>,
    /// Ranks that failed before there was contact.
    lost: HashSet<Rank>,
    /// The sender of the last message: most messages are from the same one as the one before.
    last: Option<(u32, EndpointId)>,
    early: VecDeque<Early>,
    /// Guests that said hello, with their addresses, to be greeted.
    pub(crate) greeted: Vec<(EndpointId, Vec<u8>)>,
    /// Guests that said goodbye, whose connections are to be closed.
    pub(crate) parted: Vec<EndpointId>,
    /// Guests that have read our goodbye.
    pub(crate) heard: Vec<EndpointId>,
    /// What peers have received of us: messages and bytes.
    pub(crate) credits: Vec<(EndpointId, u32, u64)>,
    /// What peers want with our memory, or say of what we want with theirs.
    pub(crate) accesses: Vec<(EndpointId, ControlKind, Access)>,
    /// Puts of peers whose bytes have come.
    pub(crate) puts: Vec<(EndpointId, Access, Vec<u8>)>,
    /// Writes whose bytes are to be fetched.
    pub(crate) landings: Vec<Landing>,
    /// Peers that are to be told that so many of their writes are dealt with.
    pub(crate) unanswered: Vec<(EndpointId, u64)>,
    /// Peers that have dealt with so many writes of ours.
    pub(crate) flushed: Vec<(EndpointId, u64)>,
    upcalls: Option<LentUpcalls>,
    /// How many things were told since somebody asked.
    told: usize,
}

impl Inbox {
    pub(crate) fn new(own: Rank, size: u32, secret: JobSecret) -> Self {
        Self {
            own,
            size,
            secret,
            inbound: Vec::new(),
            by_rank: HashMap::new(),
            by_session: HashMap::new(),
            lost: HashSet::new(),
            last: None,
            early: VecDeque::new(),
            greeted: Vec::new(),
            parted: Vec::new(),
            heard: Vec::new(),
            credits: Vec::new(),
            accesses: Vec::new(),
            puts: Vec::new(),
            landings: Vec::new(),
            unanswered: Vec::new(),
            flushed: Vec::new(),
            upcalls: None,
            told: 0,
        }
    }

    pub(crate) fn lend(&mut self, upcalls: Option<LentUpcalls>) {
        self.upcalls = upcalls;
    }

    /// Takes a message.
    #[inline]
    pub(crate) fn take_data(&mut self, header: &[u8], body: &[u8]) {
        let source = if header.is_empty() { body } else { header };
        let Ok((prefix, rest)) = Prefix::ref_from_prefix(source) else {
            self.complain("a message without a header");
            return;
        };
        let bytes = if header.is_empty() { rest } else { body };
        let Some(from) = self.known(prefix.session.get()) else {
            return;
        };
        let header = AmHeader([prefix.header[0].get(), prefix.header[1].get()]);
        self.deliver(from, header, bytes);
    }

    /// Takes the header of a write of `len` bytes; returns who sent it and where it is to go,
    /// unless it is none to be looked at.
    #[inline]
    pub(crate) fn take_write(&mut self, header: &[u8], len: usize) -> Option<(EndpointId, Access)> {
        let Some(write) = Write::read(header, len) else {
            self.complain("a write that is not one");
            return None;
        };
        let from = self.known(write.session.get())?;
        Some((from, write.access))
    }

    /// Notes a write whose bytes are to be fetched, unless its sender has more of them under way
    /// than a correct one. Returns whether it was noted.
    #[must_use]
    pub(crate) fn begin_landing(&mut self, landing: Landing) -> bool {
        let inbound = &mut self.inbound[landing.from.index()];
        let is_allowed = inbound.landing < MOST_LANDINGS;
        if is_allowed {
            inbound.landing += 1;
            self.landings.push(landing);
        }
        is_allowed
    }

    /// As [`end_write`](Self::end_write), of one whose bytes were to be fetched.
    pub(crate) fn end_landing(&mut self, from: EndpointId, notice: Option<u64>) -> bool {
        let noted = self.end_write(from, notice);
        let inbound = &mut self.inbound[from.index()];
        inbound.landing -= 1;
        if inbound.landing > 0 || inbound.closed {
            return noted;
        }
        match inbound.goodbye.take() {
            Some(goodbye) => self.part(from, goodbye),
            None => return noted,
        }
        true
    }

    /// A write is dealt with: it lies in its place, which `notice` reports, or was refused. Returns
    /// whether there is something to look at now.
    #[inline]
    pub(crate) fn end_write(&mut self, from: EndpointId, notice: Option<u64>) -> bool {
        let inbound = &mut self.inbound[from.index()];
        if inbound.closed {
            return false;
        }
        inbound.written += 1;
        let waits = inbound.asked.is_some();
        if let Some(immediate) = notice {
            self.notify(immediate);
        }
        waits && self.answer_flush(from)
    }

    /// Has the peer told of its writes where it waits for no more than are dealt with; returns
    /// whether it does.
    fn answer_flush(&mut self, from: EndpointId) -> bool {
        let inbound = &mut self.inbound[from.index()];
        let written = inbound.written;
        let answers = inbound.asked.take_if(|asked| *asked <= written).is_some();
        if answers {
            self.unanswered.push((from, written));
        }
        answers
    }

    #[inline]
    fn notify(&mut self, immediate: u64) {
        match &mut self.upcalls {
            Some(upcalls) => {
                self.told += 1;
                upcalls.as_mut().notice(immediate);
            }
            None => self.early.push_back(Early::Notice(immediate)),
        }
    }

    /// Who sends under this number, if that is somebody to be listened to.
    #[inline]
    fn known(&mut self, session: u32) -> Option<EndpointId> {
        match self.last {
            Some((last, from)) if last == session => Some(from),
            _ => self.sender(session).unwrap_or_else(|reason| {
                self.complain(reason);
                None
            }),
        }
    }

    /// Who sends under this number; nobody where the peer's end was told.
    #[cold]
    fn sender(&mut self, session: u32) -> Result<Option<EndpointId>, &'static str> {
        let from = self.by_session.get(&session).copied();
        let from = from.ok_or("a message under a number that nobody has")?;
        if self.inbound[from.index()].closed {
            return Ok(None);
        }
        self.last = Some((session, from));
        Ok(Some(from))
    }

    #[inline]
    fn deliver(&mut self, from: EndpointId, header: AmHeader, bytes: &[u8]) {
        let Some(upcalls) = &mut self.upcalls else {
            // From within a send to the own rank.
            self.early
                .push_back(Early::Message(from, header, bytes.to_vec()));
            return;
        };
        self.told += 1;
        let arrival = Arrival {
            from,
            header,
            payload: Payload::from_slice(bytes),
        };
        upcalls.as_mut().deliver(arrival);
    }

    /// Takes a control message.
    pub(crate) fn take_control(&mut self, bytes: &[u8]) {
        let Ok((control, payload)) = Control::ref_from_prefix(bytes) else {
            self.complain("a control message that is too short");
            return;
        };
        let kind = match control.kind() {
            Ok(kind) => kind,
            Err(reason) => return self.refuse(named(control.rank.get()), reason),
        };
        if kind == ControlKind::Hello {
            self.greet(control, payload);
            return;
        }
        match self.sender(control.session.get()) {
            Ok(Some(from)) if self.inbound[from.index()].rank != named(control.rank.get()) => {
                self.complain("a control message under the number of another rank");
            }
            Ok(Some(from)) => self.heed(from, kind, control, payload),
            Ok(None) => {}
            Err(reason) => self.complain(reason),
        }
    }

    fn heed(&mut self, from: EndpointId, kind: ControlKind, control: &Control, payload: &[u8]) {
        match kind {
            ControlKind::Hello => {}
            ControlKind::Heard => self.heard.push(from),
            ControlKind::Credit => {
                let credit = (from, control.a.get(), control.b.get());
                self.credits.push(credit);
            }
            ControlKind::Get | ControlKind::Refused | ControlKind::Ready | ControlKind::Placed => {
                match Access::read_from_bytes(payload) {
                    Ok(access) => self.accesses.push((from, kind, access)),
                    Err(_) => self.complain("an access that is not one"),
                }
            }
            ControlKind::Put => match Access::read_from_prefix(payload) {
                Ok((access, [])) => self.accesses.push((from, kind, access)),
                Ok((access, bytes)) if access.length.get() == bytes.len() as u64 => {
                    self.puts.push((from, access, bytes.to_vec()));
                }
                _ => self.complain("a put that is not one"),
            },
            ControlKind::Flush => {
                self.inbound[from.index()].asked = Some(control.b.get());
                self.answer_flush(from);
            }
            ControlKind::Flushed => self.flushed.push((from, control.b.get())),
            ControlKind::Leaving | ControlKind::Failing => {
                let inbound = &mut self.inbound[from.index()];
                if inbound.landing > 0 {
                    // It waits for our reply, and what it wrote before comes meanwhile.
                    inbound.goodbye = Some(kind);
                } else {
                    self.part(from, kind);
                }
            }
        }
    }

    /// A peer has said goodbye, in good order or not.
    fn part(&mut self, from: EndpointId, goodbye: ControlKind) {
        self.close(from);
        self.parted.push(from);
        self.tell(match goodbye {
            ControlKind::Leaving => PeerEvent::Left(from),
            _ => PeerEvent::Failed(from),
        });
    }

    /// A peer introduces itself.
    fn greet(&mut self, control: &Control, address: &[u8]) {
        let rank = named(control.rank.get());
        if !control.proves(&self.secret, address) {
            return self.refuse(rank, "it does not know the job's secret".to_owned());
        }
        if rank.as_u32() >= self.size {
            return self.refuse(rank, format!("the job has {} ranks", self.size));
        }
        if control.to.get() != self.own.as_u32() {
            return self.refuse(rank, format!("it greets rank {}", control.to));
        }
        if self.lost.contains(&rank) {
            return;
        }
        let endpoint = self.inbound(rank);
        let inbound = &mut self.inbound[endpoint.index()];
        if inbound.closed {
            return;
        }
        if inbound.is_known {
            return self.refuse(rank, "it says hello twice".to_owned());
        }
        let session = control.session.get();
        if !is_session_of(session, rank, self.size) {
            return self.refuse(rank, "it has the number of another rank".to_owned());
        }
        inbound.is_known = true;
        self.by_session.insert(session, endpoint);
        self.greeted.push((endpoint, address.to_vec()));
        self.tell(PeerEvent::Up { endpoint, rank });
    }

    /// The endpoint for `rank`, made on first contact.
    pub(crate) fn inbound(&mut self, rank: Rank) -> EndpointId {
        *self.by_rank.entry(rank).or_insert_with(|| {
            self.inbound.push(Inbound {
                rank,
                is_known: false,
                closed: false,
                landing: 0,
                goodbye: None,
                written: 0,
                asked: None,
            });
            EndpointId(self.inbound.len() as u32 - 1)
        })
    }

    pub(crate) fn all_inbound(&self) -> &[Inbound] {
        &self.inbound
    }

    pub(crate) fn find(&self, rank: Rank) -> Option<EndpointId> {
        self.by_rank.get(&rank).copied()
    }

    pub(crate) fn is_lost(&self, rank: Rank) -> bool {
        self.lost.contains(&rank)
    }

    /// `rank` failed: it is not greeted, and cannot be reached, any more.
    pub(crate) fn lose(&mut self, rank: Rank) {
        self.lost.insert(rank);
    }

    /// Looks at nothing more of `endpoint`; returns whether that is news.
    pub(crate) fn close(&mut self, endpoint: EndpointId) -> bool {
        let inbound = &mut self.inbound[endpoint.index()];
        if self.last.is_some_and(|(_, from)| from == endpoint) {
            self.last = None;
        }
        !std::mem::replace(&mut inbound.closed, true)
    }

    /// Tells the layer above, now or as soon as it can be told.
    pub(crate) fn tell(&mut self, event: PeerEvent) {
        match &mut self.upcalls {
            Some(upcalls) => {
                self.told += 1;
                upcalls.as_mut().peer(event);
            }
            None => self.early.push_back(Early::Event(event)),
        }
    }

    /// Something came that no correct peer sends.
    #[cold]
    pub(crate) fn complain(&mut self, reason: &str) {
        let error = Error::Protocol {
            transport: NAME,
            peer: NOBODY,
            reason: reason.to_owned(),
        };
        self.tell(PeerEvent::Protocol(None, error));
    }

    #[cold]
    fn refuse(&mut self, peer: Rank, reason: String) {
        let error = Error::Refused {
            transport: NAME,
            peer,
            reason,
        };
        self.tell(PeerEvent::Protocol(None, error));
    }

    /// Tells what came early, which is nothing as a rule.
    #[inline]
    pub(crate) fn tell_early(&mut self, upcalls: &mut dyn Upcalls) {
        if !self.early.is_empty() {
            self.tell_early_now(upcalls);
        }
    }

    #[cold]
    fn tell_early_now(&mut self, upcalls: &mut dyn Upcalls) {
        while let Some(early) = self.early.pop_front() {
            self.told += 1;
            match early {
                Early::Event(event) => upcalls.peer(event),
                Early::Notice(immediate) => upcalls.notice(immediate),
                Early::Message(from, header, bytes) => {
                    upcalls.deliver(Arrival::kept(from, header, &bytes))
                }
            }
        }
    }

    /// Takes the first of what came early.
    pub(crate) fn next_early(&mut self) -> Option<Early> {
        self.early.pop_front()
    }

    /// How many things were told since the last call.
    pub(crate) fn take_told(&mut self) -> usize {
        std::mem::take(&mut self.told)
    }
}

/// Writes of one peer whose bytes may be under way, by rendezvous. A correct peer begins no more than
/// `DATA_MESSAGES` at once, by its own count. That count falls when UCX has let go of the bytes at its
/// end, which may be before they are here and before this rank has taken note of them.
const MOST_LANDINGS: usize = 4 * DATA_MESSAGES;

/// Whom a message is said to be of that names nobody.
const NOBODY: Rank = Rank::new(Rank::MAX);

/// The rank that a message is of, by its own word: any number.
fn named(number: u32) -> Rank {
    Rank::new(number.min(NOBODY.as_u32()))
}

#[cfg(test)]
mod tests;
