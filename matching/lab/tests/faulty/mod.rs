//! A plain engine with a fault of a real library.

use tagwire_matching::{
    ArriveOutcome, CancelOutcome, Capacity, Cookie, Engine, Envelope, Handle, Pattern, PostOutcome,
    QueueStats, Stats,
};

/// What is wrong with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    None,
    /// The mask of any-tag has no bits, so that it takes internal tags as well (Open MPI's custom matching).
    AnyTagTakesInternal,
    /// The any-source list is compared with the wrong entry, so that a directed receive always wins (libfabric's srx).
    DirectedWins,
    /// A search that takes nothing out moves on twice behind a node of two entries (Open MPI's arrays).
    ProbeSkipsNode,
    /// Not the earliest that fits but the latest.
    Latest,
}

#[derive(Debug)]
pub struct Faulty {
    fault: Fault,
    capacity: Capacity,
    posted: Vec<(Pattern, Cookie, Handle)>,
    unexpected: Vec<(Envelope, Cookie, Handle)>,
    stats: Stats,
}

impl Faulty {
    pub fn new(fault: Fault, capacity: Capacity) -> Self {
        Self {
            fault,
            capacity,
            posted: Vec::new(),
            unexpected: Vec::new(),
            stats: Stats::default(),
        }
    }

    fn accepts(&self, pattern: &Pattern, envelope: &Envelope) -> bool {
        if self.fault == Fault::AnyTagTakesInternal && pattern.tag.is_any() {
            return pattern.context == envelope.context && pattern.source.accepts(envelope.source);
        }
        pattern.accepts(envelope)
    }

    fn find_posted(&self, envelope: &Envelope) -> Option<usize> {
        let accepts = |place: &usize| self.accepts(&self.posted[*place].0, envelope);
        let mut fitting = (0..self.posted.len()).filter(accepts);
        match self.fault {
            Fault::Latest => fitting.next_back(),
            Fault::DirectedWins => {
                let directed = |place: &usize| !self.posted[*place].0.source.is_any();
                fitting.clone().find(directed).or_else(|| fitting.next())
            }
            _ => fitting.next(),
        }
    }

    fn find_unexpected(&self, pattern: &Pattern) -> Option<usize> {
        let accepts = |place: &usize| self.accepts(pattern, &self.unexpected[*place].0);
        let mut fitting = (0..self.unexpected.len()).filter(accepts);
        match self.fault {
            Fault::Latest => fitting.next_back(),
            _ => fitting.next(),
        }
    }

    fn take_unexpected(&mut self, pattern: &Pattern) -> Option<(Envelope, Cookie)> {
        if self.unexpected.is_empty() {
            return None;
        }
        let Some(place) = self.find_unexpected(pattern) else {
            self.stats.unexpected.misses += 1;
            return None;
        };
        self.stats.unexpected.hits += 1;
        let (envelope, cookie, _) = self.unexpected.remove(place);
        Some((envelope, cookie))
    }
}

fn enter(stats: &mut QueueStats, length: usize) -> Handle {
    let handle = Handle::from_parts(stats.queued as u32, 0);
    stats.queued += 1;
    stats.high_water = stats.high_water.max(length as u32 + 1);
    handle
}

impl Engine for Faulty {
    fn post(&mut self, pattern: Pattern, cookie: Cookie) -> PostOutcome {
        if let Some((_, taken)) = self.take_unexpected(&pattern) {
            return PostOutcome::Matched(taken);
        }
        if self.posted.len() >= self.capacity.posted as usize {
            return PostOutcome::Full;
        }
        let handle = enter(&mut self.stats.posted, self.posted.len());
        self.posted.push((pattern, cookie, handle));
        PostOutcome::Queued(handle)
    }

    fn arrive(&mut self, envelope: Envelope, cookie: Cookie) -> ArriveOutcome {
        if let Some(taken) = self.arrive_expected(envelope) {
            return ArriveOutcome::Matched(taken);
        }
        if self.unexpected.len() >= self.capacity.unexpected as usize {
            return ArriveOutcome::Full;
        }
        let handle = enter(&mut self.stats.unexpected, self.unexpected.len());
        self.unexpected.push((envelope, cookie, handle));
        ArriveOutcome::Queued(handle)
    }

    fn arrive_expected(&mut self, envelope: Envelope) -> Option<Cookie> {
        if self.posted.is_empty() {
            return None;
        }
        let Some(place) = self.find_posted(&envelope) else {
            self.stats.posted.misses += 1;
            return None;
        };
        self.stats.posted.hits += 1;
        Some(self.posted.remove(place).1)
    }

    fn expects(&mut self, envelope: Envelope) -> Option<Cookie> {
        self.stats.posted.probes += u64::from(!self.posted.is_empty());
        self.find_posted(&envelope)
            .map(|place| self.posted[place].1)
    }

    fn probe(&mut self, pattern: Pattern) -> Option<(Envelope, Cookie)> {
        self.stats.unexpected.probes += u64::from(!self.unexpected.is_empty());
        let place = match self.fault {
            Fault::ProbeSkipsNode => {
                let is_seen = |place: &usize| (place / 2).is_multiple_of(2);
                let accepts = |place: &usize| self.accepts(&pattern, &self.unexpected[*place].0);
                (0..self.unexpected.len()).filter(is_seen).find(accepts)
            }
            _ => self.find_unexpected(&pattern),
        };
        place.map(|place| (self.unexpected[place].0, self.unexpected[place].1))
    }

    fn claim(&mut self, pattern: Pattern) -> Option<(Envelope, Cookie)> {
        self.take_unexpected(&pattern)
    }

    fn cancel(&mut self, handle: Handle) -> CancelOutcome {
        let place = self.posted.iter().position(|entry| entry.2 == handle);
        place.map_or(CancelOutcome::AlreadyMatched, |place| {
            CancelOutcome::Cancelled(self.posted.remove(place).1)
        })
    }

    fn discard(&mut self, handle: Handle) -> CancelOutcome {
        let place = self.unexpected.iter().position(|entry| entry.2 == handle);
        place.map_or(CancelOutcome::AlreadyMatched, |place| {
            CancelOutcome::Cancelled(self.unexpected.remove(place).1)
        })
    }

    fn posted_len(&self) -> usize {
        self.posted.len()
    }

    fn unexpected_len(&self) -> usize {
        self.unexpected.len()
    }

    fn stats(&self) -> Stats {
        self.stats
    }

    fn for_each_posted(&self, visit: &mut dyn FnMut(Pattern, Cookie)) {
        self.posted
            .iter()
            .for_each(|(pattern, cookie, _)| visit(*pattern, *cookie));
    }

    fn for_each_unexpected(&self, visit: &mut dyn FnMut(Envelope, Cookie)) {
        self.unexpected
            .iter()
            .for_each(|(envelope, cookie, _)| visit(*envelope, *cookie));
    }
}
