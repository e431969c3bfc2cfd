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
use crate::link::Greeting;
use crate::wire::Kind;

/// How long the reply to a goodbye may take to get out.
const LAST_ANSWER: Duration = Duration::from_millis(100);

/// How long a rank that leaves asks for replies without a pause.
const EAGER: Duration = Duration::from_millis(1);

/// How long it then leaves the core to others.
const PAUSE: Duration = Duration::from_micros(100);

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

    /// Tells a peer that this rank ends; returns whether that is done with.
    fn say_goodbye(&mut self, to: EndpointId) -> bool {
        let kind = if self.leaving {
            Kind::Goodbye
        } else {
            Kind::Abort
        };
        let post = self.post_own(to, kind, 0);
        if post == Post::Posted {
            self.links[to].farewell_said = true;
        }
        post != Post::Busy
    }

    /// Tells all peers that this rank ends, and gives them a little time to hear it.
    pub(super) fn say_farewell(&mut self) {
        // Who has said goodbye already is not to be told.
        while self.progress(&mut IgnoreUpcalls) > 0 {}
        let start = self.clock.now();
        while self.clock.now().since(start) < self.disconnect_timeout {
            // Those as well whose first word comes only now.
            let in_contact = |endpoint: &EndpointId| {
                let link = &self.links[*endpoint];
                let met = link.greeting != Greeting::Unsaid || link.stamp.is_some();
                met && !link.closed && !link.farewell_said
            };
            let all = self.links.iter().map(|(endpoint, _)| endpoint);
            let left: Vec<_> = all.filter(in_contact).collect();
            let mut told_all = true;
            for endpoint in left {
                told_all &= self.say_goodbye(endpoint);
            }
            self.progress(&mut IgnoreUpcalls);
            let are_gone = self.parting.is_empty() && self.dying.is_empty();
            if told_all && are_gone && !self.waits_to_be_heard() {
                return;
            }
            if self.clock.now().since(start) < EAGER {
                std::thread::yield_now();
            } else {
                std::thread::sleep(PAUSE);
            }
        }
    }

    /// Whether a peer has still to be given what was sent, or to say that it heard the goodbye.
    fn waits_to_be_heard(&self) -> bool {
        self.links.iter().any(|(_, link)| {
            let unanswered = self.leaving && link.farewell_said && !link.farewell_heard;
            !link.closed && (link.sending > 0 || unanswered)
        })
    }
}

/// Hears nothing: for the last moments.
struct IgnoreUpcalls;

impl Sink for IgnoreUpcalls {
    fn deliver(&mut self, _: Arrival<'_>) {}

    fn complete(&mut self, _: Token, _: Outcome) {}

    fn peer(&mut self, _: PeerEvent) {}
}
