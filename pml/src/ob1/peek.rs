//! Probes behind spent budgets: asking senders what they hold back.
//!
//! A probe that finds nothing here asks the starved peers (`Peek`) for the first message that it
//! would see. The sender answers as it answers a pull: it takes the envelope out of its queue
//! (`Peeked`) and sends nothing else from there. The receiver shows it to probes, gives it to a
//! claim (`PullTaken`), or gives it back (`PullReturned`): at once when a receive asks that peer
//! for something, else after a few rounds, so that nothing waits for a probe that never comes
//! again. A probe that repeats asks again.

use tagwire_base::{ContextId, Rank, TagSelector};
use tagwire_matching::{Engine, Envelope, Pattern};
use tagwire_transport::Payload;
use zerocopy::{FromZeros, IntoBytes};

use super::Ob1;
use super::core::{Chore, Core};
use super::header::{ControlHeader, EnvelopeHeader, Kind, PullBody, RendezvousBody};
use super::peeks::{Question, Shown};
use super::peer::{Health, PeerIndex};
use super::reading::Source;
use super::unexpected::{Content, Unexpected};
use crate::slab::Handle;
use crate::types::{MessageId, Status};

/// For how many rounds a shown envelope stays.
const SHOWN_FOR: u8 = 16;

/// How many different questions to one peer may be open.
const MOST_ASKED: usize = 16;

/// How many different questions of one peer are remembered. More than the peer has open: packets
/// may change places on their way.
const MOST_REMEMBERED: usize = 4 * MOST_ASKED;

impl Core {
    /// What a starved peer shows of such a message; asks them where none does.
    #[cold]
    pub(super) fn peek(&mut self, pattern: Pattern) -> Option<Status> {
        let index = self.showing(&pattern)?;
        let peer = self.peers.get(index)?;
        let shown = peer.peeks.shown.as_ref()?;
        Some(status(peer.rank, shown))
    }

    /// Takes what a starved peer shows of such a message; asks them where none does.
    #[cold]
    pub(super) fn take_shown(&mut self, pattern: Pattern) -> Option<(MessageId, Status)> {
        let index = self.showing(&pattern)?;
        let peer = self.peers.get_mut(index)?;
        let shown = peer.peeks.shown.take()?;
        let status = status(peer.rank, &shown);
        self.say(index, Kind::PullTaken, shown.sender);
        self.budget.keep(0);
        let message = self.unexpected.insert(Unexpected {
            peer: index,
            tag: shown.tag,
            context: shown.context,
            length: shown.length,
            charged: 0,
            queued: None,
            synchronous: None,
            content: Content::Rendezvous {
                sender: shown.sender,
                source: Source::Asked,
            },
        });
        Some((MessageId(message), status))
    }

    /// The peer that shows an answer to just this question; asks all of them where none does.
    fn showing(&mut self, pattern: &Pattern) -> Option<PeerIndex> {
        for place in 0..self.budget.starving().len() {
            let index = self.budget.starving()[place];
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
        let body = PullBody {
            tag: pattern.tag.as_i32(),
            context: pattern.context.as_u16(),
            reserved: 0,
        };
        let header = ControlHeader {
            kind: Kind::Peek,
            handle: Handle::NONE,
            argument: 0,
        };
        self.chores
            .push_back(Chore::control(index, header, body.as_bytes()));
    }

    /// Gives back what `index` shows, so that its queue moves on.
    pub(super) fn give_back(&mut self, index: PeerIndex) {
        if let Some(peer) = self.peers.get_mut(index)
            && let Some(shown) = peer.peeks.shown.take()
        {
            self.say(index, Kind::PullReturned, shown.sender);
        }
    }

    /// What is shown for too long goes back.
    pub(super) fn age_shown(&mut self, index: PeerIndex) -> usize {
        let shown = self.peers.get_mut(index).map(|peer| &mut peer.peeks.shown);
        match shown {
            Some(Some(shown)) if shown.rounds < SHOWN_FOR => {
                shown.rounds += 1;
                self.chores.push_back(Chore::Age(index));
            }
            _ => self.give_back(index),
        }
        // Counts as an event: whoever sleeps now would keep the peer's queue.
        1
    }

    /// An envelope that a peer shows.
    pub(super) fn peeked(
        &mut self,
        from: PeerIndex,
        header: EnvelopeHeader,
        body: &RendezvousBody,
    ) {
        let sender = Handle::from_wire(body.sender);
        let asked = TagSelector::from_i32(body.receiver as i32);
        let Some(peer) = self.peers.get_mut(from) else {
            return;
        };
        let question = (asked, header.context);
        peer.peeks.asked.retain(|other| *other != question);
        let source = peer.rank;
        // A receive that was posted meanwhile comes first, and has asked for itself.
        let envelope = Envelope {
            source,
            tag: header.tag,
            context: header.context,
        };
        let wanted = self.engine.expects(envelope).is_some();
        let Some(peer) = self.peers.get_mut(from) else {
            return;
        };
        if wanted || peer.peeks.shown.is_some() || !asked.accepts(header.tag) {
            return self.say(from, Kind::PullReturned, sender);
        }
        peer.peeks.shown = Some(Shown {
            asked,
            context: header.context,
            tag: header.tag,
            length: body.length as usize,
            sender,
            rounds: 0,
        });
        self.chores.push_back(Chore::Age(from));
    }

    /// A probe of the peer looks for something that this rank may hold back.
    pub(super) fn question(&mut self, from: PeerIndex, payload: Payload<'_>) {
        let mut body = PullBody::new_zeroed();
        if !payload.read_into(body.as_mut_bytes()) {
            return self.broken(from, "a peek that is cut short");
        }
        let Some(peer) = self.peers.get_mut(from) else {
            return;
        };
        let tag = TagSelector::from_i32(body.tag);
        let context = ContextId::new(body.context);
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
        self.flush_later(from);
    }
}

impl Ob1 {
    /// While envelopes are held back and no receive of the peer waits for any: shows the first
    /// that a probe of the peer looks for.
    pub(super) fn answer_questions(&mut self, index: PeerIndex) {
        let Some(peer) = self.core.peers.get_mut(index) else {
            return;
        };
        let mut found = None;
        for (number, question) in peer.peeks.questions.iter_mut().enumerate() {
            if question.tried {
                continue;
            }
            question.tried = true;
            let place = peer.queue.iter().position(|handle| {
                self.core
                    .requests
                    .get(*handle)
                    .is_some_and(|request| request.is_held_for(question.tag, question.context))
            });
            if let Some(place) = place {
                found = Some((number, place, question.tag));
                break;
            }
        }
        let Some((number, place, tag)) = found else {
            return;
        };
        let asked = u64::from(tag.as_i32() as u32);
        let sent = self.send_held(index, place, Kind::Peeked, asked);
        if let Some(peer) = self.core.peers.get_mut(index) {
            if sent {
                peer.peeks.questions.remove(number);
            } else if let Some(question) = peer.peeks.questions.get_mut(number) {
                question.tried = false;
            }
        }
        if !sent {
            self.core.flush_later(index);
        }
    }
}

fn status(source: Rank, shown: &Shown) -> Status {
    Status {
        source,
        tag: shown.tag,
        length: shown.length,
        cancelled: false,
        failure: None,
    }
}
