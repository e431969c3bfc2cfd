//! Peers: one has state from the first message on, to it or from it.

use std::time::Duration;

use tagwire_base::{Rank, Time};
use tagwire_transport::EndpointId;

use crate::options::DrOptions;
use crate::parting::{LastWords, Saying};
use crate::receiver::Receiver;
use crate::sender::Sender;
use crate::wire::start;

/// What is known of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Health {
    Alive,
    /// It has said goodbye: nothing more comes, and what it sends again is answered.
    Left,
    /// It has failed, or the transport inside holds it for gone.
    Gone,
    /// This rank has given it up, and tells it so.
    GivenUp,
}

impl Health {
    /// Whether nothing of it is taken any more.
    #[inline]
    pub(crate) const fn is_over(self) -> bool {
        matches!(self, Self::Gone | Self::GivenUp)
    }
}

/// A peer to which there were messages.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    /// What checksums begin with, of packets to the peer and from it.
    pub(crate) starts: (u32, u32),
    pub(crate) health: Health,
    /// A goodbye is to be sent.
    pub(crate) owes_goodbye: bool,
    /// This rank leaves: a peer that has heard so says no goodbye of its own.
    pub(crate) says_goodbye: bool,
    /// When contact ends with a peer that has left by the bootstrap's word, whose goodbye has not come.
    pub(crate) left_until: Option<Time>,
    /// An end is to be sent, as a reply or not.
    pub(crate) owes_end: bool,
    /// When something came last of a peer that has said goodbye, and has not said that it knows this was heard.
    pub(crate) unsure: Option<Time>,
    /// What is said to a peer that has said goodbye, or was given up, until it replies.
    pub(crate) last_words: Option<LastWords>,
    /// It has said that it knows how contact ended.
    pub(crate) is_settled: bool,
    /// It is owed the final note, or was sent it.
    pub(crate) says_final: bool,
    /// This rank leaves, or has left, and the peer may lack messages.
    pub(crate) is_unheard: bool,
    /// It is in the list of those for whom there is something to do.
    pub(crate) is_listed: bool,
    /// It is in the list of those whom ticks look at.
    pub(crate) is_active: bool,
}

impl Link {
    fn new(own: Rank, peer: Rank, options: &DrOptions) -> Self {
        Self {
            sender: Sender::new(options.first, options.retry),
            receiver: Receiver::new(options.first),
            starts: (start(own, peer), start(peer, own)),
            health: Health::Alive,
            owes_goodbye: false,
            says_goodbye: false,
            left_until: None,
            owes_end: false,
            unsure: None,
            last_words: None,
            is_settled: false,
            says_final: false,
            is_unheard: false,
            is_listed: false,
            is_active: false,
        }
    }

    /// Nothing is sent to it any more.
    pub(crate) fn end(&mut self, health: Health) {
        self.health = health;
        self.owes_goodbye = false;
        (self.left_until, self.unsure, self.last_words) = (None, None, None);
        self.sender.clear();
        self.receiver.clear();
    }

    /// It is waited for no more, by a rank that leaves: what it lacks is lost.
    pub(crate) fn abandon(&mut self) {
        self.is_unheard |= self.says_goodbye && self.sender.lacks_messages();
    }

    /// Whether one who leaves should wait for it: something is not acknowledged, or the peer may not know that it is.
    pub(crate) fn is_waited_for(&self) -> bool {
        let is_owed = self.owes_goodbye || self.receiver.owes_note() && self.says_goodbye;
        let is_alive = self.health == Health::Alive;
        self.last_words.is_some() || is_alive && (is_owed || !self.sender.is_empty())
    }

    /// Whether the peer has acknowledged the goodbye of this rank, or has said its own: nothing more is waited for.
    pub(crate) fn has_parted(&self) -> bool {
        self.says_goodbye && !self.owes_goodbye && self.sender.is_empty()
    }

    /// Something has come where one of the two leaves. A rank that leaves too has `linger` for a peer that does not know that its
    /// goodbye was heard.
    #[cold]
    pub(crate) fn hear_parting(&mut self, is_final: bool, now: Time, linger: Option<Duration>) {
        if self.health == Health::Alive {
            if self.has_parted() && !std::mem::replace(&mut self.says_final, true) {
                self.receiver.owe();
            }
        } else if is_final {
            self.settle();
        } else if !self.is_settled {
            self.unsure = Some(now);
            if let Some(linger) = linger {
                let wait = self.sender.trip.timeout();
                self.repeat(now + wait, now, linger);
            }
        }
    }

    /// Last words are said from `next` on, until the peer replies, or was silent for `linger` since `heard`.
    pub(crate) fn repeat(&mut self, next: Time, heard: Time, linger: Duration) {
        let wait = self.sender.trip.timeout();
        let new = || LastWords::new(next, wait);
        let words = self.last_words.get_or_insert_with(new);
        words.heard(heard, linger);
    }

    /// The peer knows how it ended.
    pub(crate) fn settle(&mut self) {
        (self.unsure, self.last_words) = (None, None);
        self.is_settled = true;
    }

    /// Looks at the timer of last words; returns whether there is something to be said.
    pub(crate) fn tick_last_words(&mut self, now: Time) -> bool {
        let saying = self.last_words.as_mut().map(|words| words.tick(now));
        match saying {
            Some(Saying::Now) if self.health == Health::Left => self.receiver.owe(),
            Some(Saying::Now) => self.owes_end = true,
            Some(Saying::Over) => self.last_words = None,
            Some(Saying::Nothing) | None => {}
        }
        saying == Some(Saying::Now)
    }

    /// Returns when there is something to do although nothing comes.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let timers = [
            self.sender.deadline(),
            self.receiver.deadline(self.sender.trip.usual()),
            self.last_words.map(|words| words.deadline()),
            self.left_until,
        ];
        timers.into_iter().flatten().min()
    }

    /// Whether ticks have nothing to look at.
    pub(crate) fn is_quiet(&self) -> bool {
        let has_timer = self.last_words.is_some() || self.left_until.is_some();
        !has_timer && self.sender.is_empty() && self.receiver.is_quiet()
    }
}

/// What the transport inside has said of an endpoint.
#[derive(Debug)]
struct Entry {
    rank: Rank,
    link: Option<Box<Link>>,
    /// It has ended before there was a message.
    is_gone: bool,
}

/// All peers, by the endpoints of the transport inside, which are those of the layer above.
#[derive(Debug)]
pub(crate) struct Links {
    own: Rank,
    entries: Vec<Option<Entry>>,
}

impl Links {
    pub(crate) const fn new(own: Rank) -> Self {
        Self {
            own,
            entries: Vec::new(),
        }
    }

    /// The endpoint is that of `rank`.
    pub(crate) fn enter(&mut self, endpoint: EndpointId, rank: Rank) {
        if self.entries.len() <= endpoint.index() {
            self.entries.resize_with(endpoint.index() + 1, || None);
        }
        self.entries[endpoint.index()].get_or_insert(Entry {
            rank,
            link: None,
            is_gone: false,
        });
    }

    /// Returns the peer, with state from now on; `None` where it is not known, or has ended before.
    #[inline]
    pub(crate) fn open(&mut self, endpoint: EndpointId, options: &DrOptions) -> Option<&mut Link> {
        let entry = self.entries.get_mut(endpoint.index())?.as_mut()?;
        if entry.link.is_none() && !entry.is_gone {
            entry.link = Some(Box::new(Link::new(self.own, entry.rank, options)));
        }
        entry.link.as_deref_mut()
    }

    /// Returns the peer where it has state.
    #[inline]
    pub(crate) fn find(&mut self, endpoint: EndpointId) -> Option<&mut Link> {
        let entry = self.entries.get_mut(endpoint.index())?.as_mut()?;
        entry.link.as_deref_mut()
    }

    /// A peer has ended before there was a message; returns whether that is new.
    pub(crate) fn end_silent(&mut self, endpoint: EndpointId) -> bool {
        let entry = self.entries.get_mut(endpoint.index());
        entry.and_then(Option::as_mut).is_none_or(|entry| {
            entry.link.is_none() && !std::mem::replace(&mut entry.is_gone, true)
        })
    }

    pub(crate) fn rank(&self, endpoint: EndpointId) -> Option<Rank> {
        let entry = self.entries.get(endpoint.index())?.as_ref();
        entry.map(|entry| entry.rank)
    }

    /// Returns the endpoint of `rank`.
    pub(crate) fn endpoint(&self, rank: Rank) -> Option<EndpointId> {
        let mut entries = (0..).map(EndpointId).zip(&self.entries);
        let is_its = |entry: &Option<Entry>| entry.as_ref().is_some_and(|it| it.rank == rank);
        entries.find_map(|(endpoint, entry)| is_its(entry).then_some(endpoint))
    }

    /// Returns all peers that have state.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (EndpointId, &mut Link)> {
        let entries = (0..).map(EndpointId).zip(&mut self.entries);
        entries.filter_map(|(endpoint, entry)| {
            let link = entry.as_mut()?.link.as_deref_mut()?;
            Some((endpoint, link))
        })
    }

    /// Returns all peers that have state.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (EndpointId, Rank, &Link)> {
        let entries = (0..).map(EndpointId).zip(&self.entries);
        entries.filter_map(|(endpoint, entry)| {
            let entry = entry.as_ref()?;
            Some((endpoint, entry.rank, entry.link.as_deref()?))
        })
    }
}
