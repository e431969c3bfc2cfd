//! Peers: one has state from the first message on, to it or from it.

use tagwire_base::Rank;
use tagwire_transport::EndpointId;

use crate::options::DrOptions;
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
            is_listed: false,
            is_active: false,
        }
    }

    /// Nothing is sent to it any more.
    pub(crate) fn end(&mut self, health: Health) {
        self.health = health;
        self.owes_goodbye = false;
        self.sender.clear();
        self.receiver.clear();
    }

    /// Whether one who leaves should wait for it: something is not acknowledged.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.health == Health::Alive && (self.owes_goodbye || !self.sender.is_empty())
    }

    /// Whether ticks have nothing to look at.
    pub(crate) fn is_quiet(&self) -> bool {
        self.sender.is_empty() && self.receiver.is_quiet()
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

    /// Returns all peers that have state.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (EndpointId, Rank, &Link)> {
        let entries = (0..).map(EndpointId).zip(&self.entries);
        entries.filter_map(|(endpoint, entry)| {
            let entry = entry.as_ref()?;
            Some((endpoint, entry.rank, entry.link.as_deref()?))
        })
    }
}
