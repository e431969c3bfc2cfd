//! Peers of a bundle of rails: one endpoint each, the ways to it, and what is owed to it.

use std::collections::HashMap;

use tagwire_base::Rank;
use tagwire_transport::{EndpointId, PeerEvent};

use super::order::{Incoming, Outgoing};
use super::weigh::Meter;

/// What a way is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Both directions.
    Open,
    /// It takes nothing any more; what the peer has sent by it may still come.
    Mute,
    /// Nothing comes any more, after a goodbye or without one.
    Ended { left: bool },
}

/// A rail to a peer.
#[derive(Debug)]
pub(super) struct PeerRail {
    /// What the rail calls the peer.
    pub(super) theirs: EndpointId,
    pub(super) state: State,
    /// What it had taken is to be sent again, or has been.
    is_written_off: bool,
    /// When the rail was told that the peer is gone: it is to say so in turn.
    pub(super) ending_since: Option<u64>,
    pub(super) meter: Meter,
    /// What is to be said by this way.
    pub(super) owes_hello: bool,
    pub(super) owes_bye: bool,
    pub(super) owes_probe: bool,
    pub(super) owes_echo: Option<u32>,
    /// The peer is to be told, by another, that this one is given up.
    pub(super) owes_down: bool,
}

/// All ways are asked for a sign of life.
#[derive(Debug)]
pub(super) struct Round {
    pub(super) number: u32,
    /// Bits of the rails.
    pub(super) asked: u32,
    pub(super) answered: u32,
    /// When the first replied: the peer is awake since.
    pub(super) first_answer: Option<u64>,
}

/// A peer.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) rank: Rank,
    /// By rail.
    pub(super) ways: Vec<Option<PeerRail>>,
    pub(super) out: Outgoing,
    pub(super) incoming: Incoming,
    /// It is to be told what was consumed.
    pub(super) owes_note: bool,
    /// We have its address.
    pub(super) is_connected: bool,
    /// The layer above has been told of it.
    pub(super) is_known: bool,
    /// It has left or failed.
    pub(super) is_gone: bool,
    /// How many messages it has sent in all, once it has said goodbye.
    pub(super) last: Option<u32>,
    /// Since when it has left by one rail and not by all.
    pub(super) parting_since: Option<u64>,
    /// This rank leaves.
    says_bye: bool,
    /// One of the rails may lose what it has taken.
    rails_lose: bool,
    /// Since when it has heard the goodbye of this rank by one rail and not by all.
    pub(super) heard_since: Option<u64>,
    /// The bootstrap holds it for dead.
    pub(super) is_dead: bool,
    /// It was waited for no more while it lacked messages, by a rank that leaves.
    is_abandoned: bool,
    pub(super) round: Option<Round>,
    pub(super) rounds: u32,
    /// It is in the list of those for whom there is something to do.
    pub(super) is_listed: bool,
}

impl Link {
    fn new(rank: Rank, rails: usize) -> Self {
        Self {
            rank,
            ways: (0..rails).map(|_| None).collect(),
            out: Outgoing::default(),
            incoming: Incoming::default(),
            owes_note: false,
            is_connected: false,
            is_known: false,
            is_gone: false,
            last: None,
            parting_since: None,
            says_bye: false,
            rails_lose: false,
            heard_since: None,
            is_dead: false,
            is_abandoned: false,
            round: None,
            rounds: 0,
            is_listed: false,
        }
    }

    pub(super) fn way(&mut self, rail: usize) -> Option<&mut PeerRail> {
        self.ways.get_mut(rail)?.as_mut()
    }

    /// The rails that take something.
    pub(super) fn open(&self) -> impl Iterator<Item = usize> {
        let ways = self.ways.iter().enumerate();
        ways.filter(|(_, way)| is_open(way.as_ref()))
            .map(|(rail, _)| rail)
    }

    /// The rails by which it is reached, or has left.
    pub(super) fn in_use(&self) -> impl Iterator<Item = usize> {
        let ways = self.ways.iter().enumerate();
        ways.filter_map(|(rail, way)| match way.as_ref()?.state {
            State::Open | State::Ended { left: true } => Some(rail),
            State::Mute | State::Ended { left: false } => None,
        })
    }

    /// This rank leaves: a goodbye is to be said by each rail.
    /// Where rails lose messages, what it lacks when it is abandoned is lost.
    pub(super) fn owe_byes(&mut self, rails_lose: bool) {
        (self.says_bye, self.rails_lose) = (true, rails_lose);
        let ways = self.ways.iter_mut().flatten();
        ways.for_each(|way| way.owes_bye = true);
    }

    /// It is waited for no more: what it has not acknowledged to a rank that leaves is lost.
    pub(super) fn abandon(&mut self) {
        self.is_abandoned |= self.rails_lose && self.lacks_messages();
    }

    /// Whether it may lack messages of a rank that leaves, or has left.
    pub(super) fn is_unheard(&self, is_waited_for: bool) -> bool {
        self.is_abandoned || is_waited_for && self.lacks_messages()
    }

    fn lacks_messages(&self) -> bool {
        self.says_bye && !self.is_gone && !self.is_dead && !self.out.is_empty()
    }

    /// Whether one who leaves should wait for it: a goodbye is unsaid, or a message unacknowledged.
    pub(super) fn is_waited_for(&self) -> bool {
        let mut open = self.ways.iter().flatten();
        !self.is_gone
            && open.any(|way| way.state == State::Open && (way.owes_bye || !self.out.is_empty()))
    }

    /// The rails that were told so long ago that the peer is gone, and have not said so in turn.
    pub(super) fn unended(&self, now: u64, patience: u64) -> impl Iterator<Item = usize> {
        let ways = self.ways.iter().enumerate();
        let late = move |way: &PeerRail| {
            let ended = matches!(way.state, State::Ended { .. });
            let since = way.ending_since.filter(|_| !ended);
            since.is_some_and(|since| now.saturating_sub(since) >= patience)
        };
        ways.filter(move |(_, way)| way.as_ref().is_some_and(late))
            .map(|(rail, _)| rail)
    }

    /// The meters of the open ways, by rail.
    pub(super) fn meters(&self) -> Vec<Option<&Meter>> {
        let open = |way: &'_ Option<PeerRail>| is_open(way.as_ref());
        let ways = self.ways.iter();
        ways.map(|way| way.as_ref().filter(|_| open(way)).map(|way| &way.meter))
            .collect()
    }

    /// As [`meters`](Self::meters), to be changed.
    pub(super) fn meters_mut(&mut self) -> Vec<Option<&mut Meter>> {
        let ways = self.ways.iter_mut();
        ways.map(|way| {
            let open = way.as_mut().filter(|way| way.state == State::Open);
            open.map(|way| &mut way.meter)
        })
        .collect()
    }

    /// `rail` goes there, and calls it `theirs`.
    fn enter(&mut self, rail: usize, theirs: EndpointId) {
        self.ways[rail].get_or_insert_with(|| PeerRail {
            theirs,
            state: State::Open,
            is_written_off: false,
            ending_since: None,
            meter: Meter::default(),
            owes_hello: false,
            owes_bye: false,
            owes_probe: false,
            owes_echo: None,
            owes_down: false,
        });
    }

    /// Nothing is to go by `rail` any more, and it is to end what is under way; returns whether it has
    /// to be told.
    pub(super) fn close_way(&mut self, rail: usize, now: u64) -> bool {
        let Some(way) = self.way(rail) else {
            return false;
        };
        if matches!(way.state, State::Ended { .. }) || way.ending_since.is_some() {
            return false;
        }
        (way.state, way.ending_since) = (State::Mute, Some(now));
        self.write_off();
        true
    }

    /// `rail` is at its end: what it has taken is to be sent again.
    pub(super) fn end_way(&mut self, rail: usize, state: State) {
        let Some(way) = self.way(rail) else { return };
        if matches!(way.state, State::Ended { .. }) {
            return;
        }
        way.state = state;
        // Of others as well: what was said of them may have gone by this one.
        for way in self.ways.iter_mut().flatten() {
            way.owes_down = way.state == State::Ended { left: false };
        }
        // What was acknowledged by this rail may not have got there.
        self.owes_note = true;
        self.write_off();
    }

    /// Sees to what rails had taken that take nothing any more.
    pub(super) fn write_off(&mut self) {
        for rail in 0..self.ways.len() {
            let lost = self.way(rail).is_some_and(|way| {
                way.state != State::Open && !std::mem::replace(&mut way.is_written_off, true)
            });
            if lost {
                self.out.lose_rail(rail);
            }
        }
    }

    /// How the peer has ended, once it has by all rails.
    pub(super) fn end(&mut self, endpoint: EndpointId) -> Option<PeerEvent> {
        let mut states = self.ways.iter().flatten().map(|way| way.state);
        let all = states.all(|state| matches!(state, State::Ended { .. }));
        if self.is_gone || !all {
            return None;
        }
        let mut states = self.ways.iter().flatten().map(|way| way.state);
        let left = states.any(|state| state == State::Ended { left: true });
        let lacks = self.incoming.has_gap()
            || (self.last).is_some_and(|last| last != self.incoming.consumed());
        if !left {
            self.abandon();
        }
        self.forget();
        Some(if left && !lacks {
            PeerEvent::Left(endpoint)
        } else {
            PeerEvent::Failed(endpoint)
        })
    }

    /// Nothing comes from it or goes to it any more.
    pub(super) fn forget(&mut self) {
        self.is_gone = true;
        self.out.clear();
        self.incoming.clear();
        self.round = None;
    }
}

fn is_open(way: Option<&PeerRail>) -> bool {
    way.is_some_and(|way| way.state == State::Open)
}

/// All peers.
#[derive(Debug)]
pub(super) struct Links {
    list: Vec<Link>,
    by_rank: HashMap<Rank, EndpointId>,
    /// For each rail, our endpoint for each of its own.
    of_rail: Vec<Vec<Option<EndpointId>>>,
}

impl Links {
    pub(super) fn new(rails: usize) -> Self {
        Self {
            list: Vec::new(),
            by_rank: HashMap::new(),
            of_rail: vec![Vec::new(); rails],
        }
    }

    /// Our endpoint for `rank`, which `rail` calls `theirs`.
    pub(super) fn enter(&mut self, rank: Rank, rail: usize, theirs: EndpointId) -> EndpointId {
        let next = EndpointId(self.list.len() as u32);
        let ours = *self.by_rank.entry(rank).or_insert(next);
        if ours == next {
            self.list.push(Link::new(rank, self.of_rail.len()));
        }
        let names = &mut self.of_rail[rail];
        if names.len() <= theirs.index() {
            names.resize(theirs.index() + 1, None);
        }
        names[theirs.index()] = Some(ours);
        self.list[ours.index()].enter(rail, theirs);
        ours
    }

    #[inline]
    pub(super) fn ours(&self, rail: usize, theirs: EndpointId) -> Option<EndpointId> {
        self.of_rail[rail].get(theirs.index()).copied().flatten()
    }

    pub(super) fn find(&self, rank: Rank) -> Option<EndpointId> {
        self.by_rank.get(&rank).copied()
    }

    #[inline]
    pub(super) fn get(&mut self, endpoint: EndpointId) -> Option<&mut Link> {
        self.list.get_mut(endpoint.index())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (EndpointId, &Link)> {
        (0..).map(EndpointId).zip(&self.list)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (EndpointId, &mut Link)> {
        (0..).map(EndpointId).zip(&mut self.list)
    }
}
