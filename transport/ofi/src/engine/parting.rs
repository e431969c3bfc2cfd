//! The end of contact in good order: goodbyes, and that they were heard.
//!
//! ```text
//!     leaving                              staying
//!        ── goodbye ──────────────────────────>     Left is told; nothing more is sent but this:
//!        <───────────────────────── heard ──
//!     closes                               closes its side, once that is out
//! ```
//!
//! A system that closes a TCP connection in which something lies unread resets it, and what was
//! said last is lost on the way. So a rank that leaves reads on until each peer has replied, by
//! the word that it has heard or by a goodbye of its own: nothing comes after either. A peer that
//! does not call progress cannot reply, which the timeout of disconnects bounds.

use std::time::Duration;

use tagwire_base::Time;
use tagwire_transport::{Arrival, EndpointId, Outcome, PeerEvent, Post, Token};

use super::{Engine, Sink};
use crate::link::Link;
use crate::wire::Kind;

/// How long the reply to a goodbye may take to get out.
const LAST_ANSWER: Duration = Duration::from_millis(100);

/// How long a rank that was dropped before it had left leaves the core to others while nothing comes.
const PAUSE: Duration = Duration::from_micros(100);

/// The goodbye of this rank, once it is to be said.
#[derive(Debug)]
pub(super) struct Farewell {
    /// When peers are waited for no more.
    until: Time,
    /// What had come was read once: nothing is said before.
    drained: bool,
}

/// A peer that has said goodbye.
#[derive(Debug)]
pub(super) struct Parting {
    endpoint: EndpointId,
    /// It was told that this was heard, or need not be told.
    answered: bool,
    /// When the connection is closed whether the reply is out or not.
    until: Time,
}

impl Engine {
    /// The peer leaves: it is told that this was heard, unless it hears a goodbye anyway.
    pub(super) fn hear_goodbye(&mut self, from: EndpointId, sink: &mut impl Sink) -> usize {
        sink.peer(PeerEvent::Left(from));
        self.parting.push(Parting {
            endpoint: from,
            answered: self.links[from].farewell_said,
            until: self.clock.now() + LAST_ANSWER,
        });
        1 + self.end_link(from, sink)
    }

    /// The peer says that it has heard our goodbye; returns whether that can be.
    #[must_use]
    pub(super) fn note_heard(&mut self, from: EndpointId) -> bool {
        let link = &mut self.links[from];
        self.leaving && link.farewell_said && !std::mem::replace(&mut link.farewell_heard, true)
    }

    /// Acknowledges goodbyes, and lets go of peers that have been replied to.
    #[cold]
    pub(super) fn part(&mut self) {
        let now = self.clock.now();
        let mut parting = std::mem::take(&mut self.parting);
        parting.retain_mut(|one| {
            one.answered = one.answered || self.answer_goodbye(one.endpoint) != Post::Busy;
            let link = &self.links[one.endpoint];
            let quiet = link.sending == 0 && link.accessing == 0;
            let done = one.answered && quiet || now >= one.until;
            if done {
                self.disconnect(one.endpoint);
            }
            !done
        });
        self.parting.append(&mut parting);
    }

    fn answer_goodbye(&mut self, to: EndpointId) -> Post {
        match self.reachable(to) {
            Ok(peer) => self.post_word(to, peer, Kind::GoodbyeHeard, 0),
            Err(post) => post,
        }
    }

    /// Tells a peer that this rank ends, if there is room.
    fn say_goodbye(&mut self, to: EndpointId) {
        let kind = if self.leaving {
            Kind::Goodbye
        } else {
            Kind::Abort
        };
        let post = self.post_own(to, kind, 0);
        self.links[to].farewell_said = post == Post::Posted;
    }

    /// Begins to say goodbye; progress goes on with it.
    pub(crate) fn leave(&mut self) {
        self.leaving = true;
        self.begin_farewell();
    }

    fn begin_farewell(&mut self) {
        if self.farewell.is_none() {
            self.farewell = Some(Farewell {
                until: self.clock.now() + self.disconnect_timeout,
                drained: false,
            });
        }
    }

    /// Tells peers that this rank ends, if it does: those as well whose first message comes only now. What has come
    /// was read: who has said goodbye already is not to be told.
    pub(super) fn say_goodbyes(&mut self) {
        let Some(farewell) = &mut self.farewell else {
            return;
        };
        farewell.drained = true;
        let untold = self.links.iter().filter(|(_, link)| link.is_untold());
        let untold: Vec<_> = untold.map(|(endpoint, _)| endpoint).collect();
        for endpoint in untold {
            self.say_goodbye(endpoint);
        }
    }

    /// Returns whether all peers have heard the goodbye, or are waited for no more.
    pub(crate) fn has_left(&self) -> bool {
        self.farewell.as_ref().is_some_and(|farewell| {
            self.broken
                || farewell.drained && !self.waits_to_be_heard()
                || self.clock.now() >= farewell.until
        })
    }

    /// Whether a peer has still to be told, to be given what was sent, or to say that it heard the goodbye.
    fn waits_to_be_heard(&self) -> bool {
        let waits = |link: &Link| {
            let unanswered = self.leaving && link.farewell_said && !link.farewell_heard;
            link.is_untold() || !link.closed && (link.sending > 0 || unanswered)
        };
        let mut links = self.links.iter();
        !self.parting.is_empty() || !self.dying.is_empty() || links.any(|(_, link)| waits(link))
    }

    /// Says goodbye in a rank that was dropped before it had left, and waits until that is heard: nobody makes progress
    /// after it.
    pub(super) fn leave_now(&mut self) {
        // What nobody has made progress for has had no time at all.
        self.farewell.take_if(|farewell| !farewell.drained);
        self.begin_farewell();
        while !self.has_left() {
            if self.progress(&mut IgnoreUpcalls) == 0 {
                std::thread::sleep(PAUSE);
            }
        }
    }
}

/// Hears nothing: for the last moments.
struct IgnoreUpcalls;

impl Sink for IgnoreUpcalls {
    fn deliver(&mut self, _: Arrival<'_>) {}

    fn complete(&mut self, _: Token, _: Outcome) {}

    fn peer(&mut self, _: PeerEvent) {}
}
