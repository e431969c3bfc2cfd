//! Envelopes that senders hold back for want of credit, and how receivers get at those that they need.
//!
//! **Pulls.** Each posted receive without a match asks every starved peer for an envelope (`PULL`), so that no receive
//! hangs on the budget. The sender takes the first that fits out of its queue (`PULLED`), and sends nothing else from
//! there until the receiver says what became of it: it found its receive (`PULL_TAKEN`), or came too late and goes back
//! to its place (`PULL_RETURNED`).
//!
//! **Peeks.** A probe that finds nothing here asks the starved peers (`PEEK`) for the first message that it
//! would see. The sender replies as it does to a pull (`PEEKED`). The receiver shows the envelope to probes, gives it to a
//! claim (`PULL_TAKEN`), or gives it back (`PULL_RETURNED`): at once when a receive asks that peer
//! for something, else after a few rounds, so that nothing waits for a probe that never comes
//! again. A probe that repeats asks again.

use tagwire_base::{ContextId, TagSelector};
use tagwire_matching::Pattern;
use tagwire_transport::Payload;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use super::header::{ControlHeader, EnvelopeHeader, Kind, RendezvousBody};
use super::peeks::{Question, Shown};
use super::peer::{Health, PeerIndex, Peers, PullWish};
use super::pending::{Operation, Pending};
#[cfg(test)]
use super::protocol::PacketKinds;
use super::protocols::State;
use super::request::Requests;
use crate::slab::Handle;

impl Kind {
    /// An envelope in reply to a pull: names the receive that it is meant for.
    pub(super) const PULLED: Self = Self::envelope(6);
    /// An envelope in reply to a peek: names the tag that was asked for.
    pub(super) const PEEKED: Self = Self::envelope(7);
    /// To a sender that holds envelopes back: a receive waits for one like this. Handle: the receive; argument: the
    /// receive's place in the order of posting.
    pub(super) const PULL: Self = Self::control(20);
    /// To a sender: the pulled envelope has found its receive.
    pub(super) const PULL_TAKEN: Self = Self::control(21);
    /// To a sender: the pulled envelope came too late; put it back in its place.
    pub(super) const PULL_RETURNED: Self = Self::control(22);
    /// To a sender that holds envelopes back: a probe looks for one like this.
    pub(super) const PEEK: Self = Self::control(24);
}

/// The packets about envelopes that are held back.
#[cfg(test)]
pub(super) const KINDS: PacketKinds = &[
    Kind::PULLED,
    Kind::PEEKED,
    Kind::PULL,
    Kind::PULL_TAKEN,
    Kind::PULL_RETURNED,
    Kind::PEEK,
];

/// What follows the header of a [`Kind::PULL`] or [`Kind::PEEK`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct PullBody {
    /// The tag wanted; `i32::MIN` for any of the users'.
    pub tag: i32,
    /// The context wanted.
    pub context: u16,
    /// Zero.
    pub reserved: u16,
}

impl PullBody {
    const fn new(tag: TagSelector, context: ContextId) -> Self {
        Self {
            tag: tag.as_i32(),
            context: context.as_u16(),
            reserved: 0,
        }
    }

    /// Returns what `payload` asks for; `None` where it is cut short.
    fn read(payload: Payload<'_>) -> Option<(TagSelector, ContextId)> {
        let mut body = Self::new_zeroed();
        let whole = payload.read_into(body.as_mut_bytes());
        let wanted = (
            TagSelector::from_i32(body.tag),
            ContextId::new(body.context),
        );
        whole.then_some(wanted)
    }
}

/// For how many rounds a shown envelope stays.
const SHOWN_FOR: u8 = 16;

/// How many different questions to one peer may be open.
const MOST_ASKED: usize = 16;

/// How many different questions of one peer are remembered. More than the peer has open: packets
/// may change places on their way.
const MOST_REMEMBERED: usize = 4 * MOST_ASKED;

/// What is held back, with all that it takes to deal with it.
pub(super) struct Held<'a> {
    pub peers: &'a mut Peers,
    pub requests: &'a mut Requests,
    pub pending: &'a mut Pending,
}

/// The receiving side: asks for envelopes.
impl Held<'_> {
    /// Asks `index`, which is starved, for an envelope for `receive`, which waits.
    pub(super) fn pull(&mut self, index: PeerIndex, receive: Handle) {
        let (Some(peer), Some(request)) = (self.peers.get(index), self.requests.get(receive))
        else {
            return;
        };
        let (Some(place), common) = (request.place(), &request.common) else {
            return;
        };
        if peer.health != Health::Alive || !common.from.accepts(peer.rank) {
            return;
        }
        let body = PullBody::new(common.tag, common.context);
        let header = ControlHeader {
            kind: Kind::PULL,
            handle: receive,
            argument: place.order,
        };
        // What is shown to probes would keep the peer from replying.
        self.give_back(index);
        self.pending.control(index, header, body.as_bytes());
    }

    /// Returns the peer of those `starving` that shows a reply to just this question; asks all of them where none does.
    pub(super) fn showing(
        &mut self,
        starving: &[PeerIndex],
        pattern: &Pattern,
    ) -> Option<PeerIndex> {
        for index in starving.iter().copied() {
            let Some(peer) = self.peers.get(index) else {
                continue;
            };
            if !pattern.source.accepts(peer.rank) {
                continue;
            }
            match &peer.peeks.shown {
                Some(shown) if shown.answers(pattern) => return Some(index),
                Some(_) => self.give_back(index),
                None => {}
            }
            self.ask(index, pattern);
        }
        None
    }

    fn ask(&mut self, index: PeerIndex, pattern: &Pattern) {
        let Some(peer) = self.peers.get_mut(index) else {
            return;
        };
        let question = (pattern.tag, pattern.context);
        if peer.health != Health::Alive || peer.peeks.asked.contains(&question) {
            return;
        }
        if peer.peeks.asked.len() == MOST_ASKED {
            peer.peeks.asked.pop_front();
        }
        peer.peeks.asked.push_back(question);
        let body = PullBody::new(pattern.tag, pattern.context);
        let header = ControlHeader {
            kind: Kind::PEEK,
            handle: Handle::NONE,
            argument: 0,
        };
        self.pending.control(index, header, body.as_bytes());
    }

    /// Takes what `index` shows, for a claim.
    pub(super) fn take_shown(&mut self, index: PeerIndex) -> Option<Shown> {
        let shown = self.peers.get_mut(index)?.peeks.shown.take()?;
        self.pending.say(index, Kind::PULL_TAKEN, shown.sender);
        Some(shown)
    }

    /// Gives back what `index` shows, so that its queue makes progress.
    fn give_back(&mut self, index: PeerIndex) {
        if let Some(peer) = self.peers.get_mut(index)
            && let Some(shown) = peer.peeks.shown.take()
        {
            self.pending.say(index, Kind::PULL_RETURNED, shown.sender);
        }
    }

    /// Gives back what is shown for too long. Returns how many things happened: whoever sleeps now would keep the peer's
    /// queue.
    pub(super) fn age_shown(&mut self, index: PeerIndex) -> usize {
        let shown = self.peers.get_mut(index).map(|peer| &mut peer.peeks.shown);
        match shown {
            Some(Some(shown)) if shown.rounds < SHOWN_FOR => {
                shown.rounds += 1;
                self.pending.push(Operation::Age(index));
            }
            _ => self.give_back(index),
        }
        1
    }

    /// Shows an envelope that `from` has sent for that to probes; `wanted` where a receive takes it before.
    pub(super) fn peeked(
        &mut self,
        from: PeerIndex,
        header: EnvelopeHeader,
        body: &RendezvousBody,
        wanted: bool,
    ) {
        let sender = Handle::from_wire(body.sender);
        let asked = TagSelector::from_i32(body.receiver as i32);
        let Some(peer) = self.peers.get_mut(from) else {
            return;
        };
        let question = (asked, header.context);
        peer.peeks.asked.retain(|other| *other != question);
        if wanted || peer.peeks.shown.is_some() || !asked.accepts(header.tag) {
            return self.pending.say(from, Kind::PULL_RETURNED, sender);
        }
        peer.peeks.shown = Some(Shown {
            asked,
            context: header.context,
            tag: header.tag,
            length: body.length as usize,
            sender,
            rounds: 0,
        });
        self.pending.push(Operation::Age(from));
    }
}

/// The sending side: is asked for envelopes.
impl Held<'_> {
    /// A receive of the peer waits for something that this rank may hold back.
    ///
    /// # Errors
    /// What the peer did wrong.
    pub(super) fn wish(
        &mut self,
        from: PeerIndex,
        header: ControlHeader,
        payload: Payload<'_>,
    ) -> Result<(), &'static str> {
        let (tag, context) = PullBody::read(payload).ok_or("a pull that is cut short")?;
        let Some(peer) = self.peers.get_mut(from) else {
            return Ok(());
        };
        // It stays also where nothing is held back now: that may change before the receive matches.
        peer.wish(PullWish {
            receive: header.handle,
            order: header.argument,
            tag,
            context,
            tried: false,
        });
        peer.flush_later(from, self.pending);
        Ok(())
    }

    /// A probe of the peer looks for something that this rank may hold back.
    ///
    /// # Errors
    /// What the peer did wrong.
    pub(super) fn question(
        &mut self,
        from: PeerIndex,
        payload: Payload<'_>,
    ) -> Result<(), &'static str> {
        let (tag, context) = PullBody::read(payload).ok_or("a peek that is cut short")?;
        let Some(peer) = self.peers.get_mut(from) else {
            return Ok(());
        };
        let questions = &mut peer.peeks.questions;
        questions.retain(|other| (other.tag, other.context) != (tag, context));
        if questions.len() == MOST_REMEMBERED {
            questions.pop_front();
        }
        questions.push_back(Question {
            tag,
            context,
            tried: false,
        });
        peer.flush_later(from, self.pending);
        Ok(())
    }

    /// What became of the envelope that was sent in reply to a pull or a peek.
    ///
    /// # Errors
    /// What the peer did wrong.
    pub(super) fn answered(
        &mut self,
        from: PeerIndex,
        header: ControlHeader,
    ) -> Result<(), &'static str> {
        let Some(peer) = self.peers.get_mut(from) else {
            return Ok(());
        };
        let (send, place) = peer
            .pulled
            .take()
            .filter(|(send, _)| *send == header.handle)
            .ok_or("an answer to a pull that is not there")?;
        if header.kind == Kind::PULL_RETURNED {
            // What has been matched, or replied to in any other way, cannot come back.
            let request = self.requests.get_mut(send);
            let request = request
                .filter(|request| request.state.is_unasked())
                .ok_or("a pulled envelope returned after its match")?;
            request.state = State::Queued;
            peer.queue.insert(place.min(peer.queue.len()), send);
        }
        peer.refresh_clear();
        peer.flush_later(from, self.pending);
        Ok(())
    }

    /// Returns what is to leave the queue for `index` while envelopes are held back: the first that a receive of the peer
    /// waits for, else one that a probe of the peer looks for.
    pub(super) fn asked_for(&mut self, index: PeerIndex) -> Option<Asked> {
        let peer = self.peers.get_mut(index)?;
        let requests = &*self.requests;
        let queue = &peer.queue;
        let find = |tag: TagSelector, context| {
            queue.iter().position(|handle| {
                let request = requests.get(*handle);
                request.is_some_and(|request| request.is_held_for(tag, context))
            })
        };
        for (number, wish) in peer.wishes.iter_mut().enumerate() {
            if !std::mem::replace(&mut wish.tried, true)
                && let Some(place) = find(wish.tag, wish.context)
            {
                let receive = wish.receive.to_wire();
                return Some(Asked {
                    by: By::Wish(number),
                    place,
                    receive,
                });
            }
        }
        for (number, question) in peer.peeks.questions.iter_mut().enumerate() {
            if !std::mem::replace(&mut question.tried, true)
                && let Some(place) = find(question.tag, question.context)
            {
                let receive = u64::from(question.tag.as_i32() as u32);
                return Some(Asked {
                    by: By::Question(number),
                    place,
                    receive,
                });
            }
        }
        None
    }

    /// What was [asked for](Held::asked_for) is out, or is to be tried again.
    pub(super) fn settle(&mut self, index: PeerIndex, asked: &Asked, sent: bool) {
        let Some(peer) = self.peers.get_mut(index) else {
            return;
        };
        match asked.by {
            By::Wish(number) if sent => drop(peer.wishes.remove(number)),
            By::Wish(number) => peer.wishes[number].tried = false,
            By::Question(number) if sent => drop(peer.peeks.questions.remove(number)),
            By::Question(number) => peer.peeks.questions[number].tried = false,
        }
        if !sent {
            peer.flush_later(index, self.pending);
            return;
        }
        if let Some(handle) = peer.queue.remove(asked.place) {
            peer.pulled = Some((handle, asked.place));
            if let Some(request) = self.requests.get_mut(handle) {
                request.state = State::ANNOUNCED;
            }
        }
    }
}

/// What a peer asks for that is held back.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    by: By,
    /// Its place in the queue.
    pub place: usize,
    /// What the envelope names.
    pub receive: u64,
}

impl Asked {
    /// Returns what the envelope is.
    pub(super) const fn kind(&self) -> Kind {
        match self.by {
            By::Wish(_) => Kind::PULLED,
            By::Question(_) => Kind::PEEKED,
        }
    }
}

/// Who asks, by place in the peer's list.
#[derive(Debug, Clone, Copy)]
enum By {
    Wish(usize),
    Question(usize),
}
