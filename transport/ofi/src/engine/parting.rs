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

use super::Sink;
use super::peers::Peers;
use crate::link::Link;
use crate::wire::Kind;

/// How long the reply to a goodbye may take to get out.
const LAST_ANSWER: Duration = Duration::from_millis(100);

/// The goodbye of this rank, once it is to be said.
#[derive(Debug)]
struct Farewell {
    /// When peers are waited for no more.
    until: Time,
    /// What had come was read once: nothing is said before.
    drained: bool,
}

/// A peer that has said goodbye.
#[derive(Debug)]
struct Parting {
    endpoint: EndpointId,
    /// It was told that this was heard, or need not be told.
    answered: bool,
    /// When the connection is closed whether the reply is out or not.
    until: Time,
}

/// The goodbyes of peers, and that of this rank.
#[derive(Debug)]
pub(super) struct Goodbyes {
    /// Peers that have left, and have to be told that this was heard.
    parting: Vec<Parting>,
    /// This rank's own, once it is to be said.
    farewell: Option<Farewell>,
    /// It has done all that it had to.
    leaving: bool,
    /// How long peers may take to hear it.
    pub(super) timeout: Duration,
}

impl Goodbyes {
    pub(super) const fn new(timeout: Duration) -> Self {
        Self {
            parting: Vec::new(),
            farewell: None,
            leaving: false,
            timeout,
        }
    }

    /// Whether there is something to do for them with each call of progress.
    pub(super) fn are_under_way(&self) -> bool {
        self.farewell.is_some() || !self.parting.is_empty()
    }

    /// Whether this rank has begun to say goodbye.
    pub(super) const fn has_begun(&self) -> bool {
        self.farewell.is_some()
    }

    /// Peers are not to be told that their goodbyes were heard: they are disconnected.
    pub(super) fn forget(&mut self) {
        self.parting.clear();
    }

    /// The peer leaves: it is told that this was heard, unless it hears a goodbye anyway.
    pub(super) fn hear(
        &mut self,
        peers: &mut Peers,
        from: EndpointId,
        sink: &mut impl Sink,
    ) -> usize {
        sink.peer(PeerEvent::Left(from));
        self.parting.push(Parting {
            endpoint: from,
            answered: peers.links[from].farewell_said,
            until: peers.clock.now() + LAST_ANSWER,
        });
        1 + peers.end_link(from, sink)
    }

    /// The peer says that it has heard our goodbye; returns whether that can be.
    #[must_use]
    pub(super) fn note_heard(&self, peers: &mut Peers, from: EndpointId) -> bool {
        let link = &mut peers.links[from];
        self.leaving && link.farewell_said && !std::mem::replace(&mut link.farewell_heard, true)
    }

    /// Acknowledges goodbyes, and lets go of peers that have been replied to.
    #[cold]
    pub(super) fn part(&mut self, peers: &mut Peers) {
        let now = peers.clock.now();
        self.parting.retain_mut(|one| {
            one.answered = one.answered || answer(peers, one.endpoint) != Post::Busy;
            let link = &peers.links[one.endpoint];
            let quiet = link.sending == 0 && link.accessing == 0;
            let done = one.answered && quiet || now >= one.until;
            if done {
                peers.disconnect(one.endpoint);
            }
            !done
        });
    }

    /// Begins to say goodbye in good order; progress goes on with it.
    pub(super) fn leave(&mut self, now: Time) {
        self.leaving = true;
        self.begin(now);
    }

    /// Begins to say that this rank ends.
    fn begin(&mut self, now: Time) {
        self.farewell.get_or_insert(Farewell {
            until: now + self.timeout,
            drained: false,
        });
    }

    /// The same where nobody makes progress after it: what nobody has made progress for has had no time at all.
    pub(super) fn begin_last(&mut self, now: Time) {
        self.farewell.take_if(|farewell| !farewell.drained);
        self.begin(now);
    }

    /// Tells peers that this rank ends, if it does: those as well whose first message comes only now. What has come
    /// was read: who has said goodbye already is not to be told.
    pub(super) fn say(&mut self, peers: &mut Peers) {
        let Some(farewell) = &mut self.farewell else {
            return;
        };
        farewell.drained = true;
        let untold = peers.links.iter().filter(|(_, link)| link.is_untold());
        let untold: Vec<_> = untold.map(|(endpoint, _)| endpoint).collect();
        let kind = match self.leaving {
            true => Kind::Goodbye,
            false => Kind::Abort,
        };
        for endpoint in untold {
            let post = peers.post_own(endpoint, kind, 0);
            peers.links[endpoint].farewell_said = post == Post::Posted;
        }
    }

    /// Returns whether all peers have heard the goodbye, or are waited for no more.
    pub(super) fn has_left(&self, peers: &Peers) -> bool {
        self.farewell.as_ref().is_some_and(|farewell| {
            peers.broken
                || farewell.drained && !self.wait_to_be_heard(peers)
                || peers.clock.now() >= farewell.until
        })
    }

    /// Whether a peer has still to be told, to be given what was sent, or to say that it heard the goodbye.
    fn wait_to_be_heard(&self, peers: &Peers) -> bool {
        let waits = |link: &Link| {
            let unanswered = self.leaving && link.farewell_said && !link.farewell_heard;
            link.is_untold() || !link.closed && (link.sending > 0 || unanswered)
        };
        let mut links = peers.links.iter();
        !self.parting.is_empty() || !peers.dying.is_empty() || links.any(|(_, link)| waits(link))
    }
}

fn answer(peers: &mut Peers, to: EndpointId) -> Post {
    match peers.reachable(to) {
        Ok(peer) => peers.post_word(to, peer, Kind::GoodbyeHeard, 0),
        Err(post) => post,
    }
}

/// Hears nothing: for the last moments.
pub(super) struct IgnoreUpcalls;

impl Sink for IgnoreUpcalls {
    fn deliver(&mut self, _: Arrival<'_>) {}

    fn complete(&mut self, _: Token, _: Outcome) {}

    fn peer(&mut self, _: PeerEvent) {}
}
