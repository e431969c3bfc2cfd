//! What is counted of a group of calls: those of the program, of the library, or all, in one context or in all.

use std::collections::BTreeSet;

use serde::Serialize;
use tagwire_matching::{Envelope, Pattern};

use super::distribution::{Distribution, Quantiles};
use super::order::Order;

/// Counts of a group of calls. The queues are those of the group alone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Group {
    pub(crate) posts: u64,
    pub(crate) arrivals: u64,
    pub(crate) probes: u64,
    pub(crate) probes_found: u64,
    pub(crate) cancels: u64,
    pub(crate) discards: u64,
    any_source: u64,
    any_tag: u64,
    any_both: u64,
    pub(crate) unexpected: u64,
    pub(crate) bytes: Distribution,
    pub(crate) receives: Queue,
    pub(crate) messages: Queue,
    pub(crate) order: Order,
    longest_wildcard: u64,
    sources: BTreeSet<u32>,
    tags: BTreeSet<i32>,
    pairs: BTreeSet<(u32, i32)>,
    /// The most of the traces that were added.
    most: [usize; 3],
    span: u64,
    traces: u64,
}

/// One queue of the group.
#[derive(Debug, Clone, Default)]
pub(crate) struct Queue {
    /// Entries when it was searched.
    pub(crate) length: Distribution,
    /// Entries that were compared, where one matched and where none did.
    pub(crate) hits: Distribution,
    pub(crate) misses: Distribution,
    pub(crate) head_hits: u64,
    /// How long entries waited, in nanoseconds.
    pub(crate) residence: Distribution,
    /// Entries, weighted by time.
    over_time: Distribution,
    now: u64,
    since: u64,
    high_water: u64,
}

/// What is printed of a group.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Summary {
    pub(crate) traces: u64,
    pub(crate) span_ns: u64,
    pub(crate) posts: u64,
    pub(crate) arrivals: u64,
    /// Probes and claims, and those of them for which a message was here.
    pub(crate) probes: u64,
    pub(crate) probes_found: u64,
    pub(crate) cancels: u64,
    pub(crate) discards: u64,
    /// Receives of any source alone, any tag alone, both.
    pub(crate) any_source: u64,
    pub(crate) any_tag: u64,
    pub(crate) any_both: u64,
    /// Share of receives.
    pub(crate) wildcard_share: f64,
    /// Messages that found no receive.
    pub(crate) unexpected: u64,
    /// Share of messages.
    pub(crate) unexpected_share: f64,
    /// The most of a trace.
    pub(crate) sources: usize,
    pub(crate) tags: usize,
    pub(crate) pairs: usize,
    pub(crate) longest_wildcard_ns: u64,
    pub(crate) bytes: Quantiles,
    pub(crate) receives: QueueSummary,
    pub(crate) messages: QueueSummary,
    /// Share of pairs of matches in a row whose receives were posted in this order.
    pub(crate) in_order_share: f64,
    /// Kendall's tau between the orders of posting and of matching, in windows.
    pub(crate) tau: f64,
    /// Runs of matches that emptied the queue of receives.
    pub(crate) drains: u64,
    pub(crate) drain_entries: Quantiles,
    pub(crate) drain_ns: Quantiles,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct QueueSummary {
    pub(crate) length: Quantiles,
    pub(crate) length_over_time: Quantiles,
    /// Of all searches.
    pub(crate) depth: Quantiles,
    pub(crate) hit_depth: Quantiles,
    pub(crate) miss_depth: Quantiles,
    /// Share of the hits.
    pub(crate) head_hit_share: f64,
    pub(crate) residence_ns: Quantiles,
    pub(crate) high_water: u64,
}

impl Group {
    pub(crate) fn note_post(&mut self, pattern: &Pattern) {
        self.posts += 1;
        match (pattern.source.is_any(), pattern.tag.is_any()) {
            (true, true) => self.any_both += 1,
            (true, false) => self.any_source += 1,
            (false, true) => self.any_tag += 1,
            (false, false) => {}
        }
    }

    pub(crate) const fn note_probe(&mut self, has_found: bool) {
        self.probes += 1;
        self.probes_found += has_found as u64;
    }

    pub(crate) fn note_message(&mut self, envelope: &Envelope) {
        let (source, tag) = (envelope.source.as_u32(), envelope.tag.as_i32());
        self.arrivals += 1;
        self.sources.insert(source);
        self.tags.insert(tag);
        self.pairs.insert((source, tag));
    }

    pub(crate) fn note_receive_left(&mut self, pattern: &Pattern, waited: u64) {
        if pattern.source.is_any() || pattern.tag.is_any() {
            self.longest_wildcard = self.longest_wildcard.max(waited);
        }
    }

    /// The trace ends at this time.
    pub(crate) fn end(&mut self, at: u64) {
        self.span = at;
        self.traces = 1;
        self.receives.change(at, 0);
        self.messages.change(at, 0);
        self.order.end();
        self.most = [self.sources.len(), self.tags.len(), self.pairs.len()];
    }

    /// Adds what was counted of another trace, after both have ended.
    pub(crate) fn add(&mut self, other: &Self) {
        self.posts += other.posts;
        self.arrivals += other.arrivals;
        self.probes += other.probes;
        self.probes_found += other.probes_found;
        self.cancels += other.cancels;
        self.discards += other.discards;
        self.any_source += other.any_source;
        self.any_tag += other.any_tag;
        self.any_both += other.any_both;
        self.unexpected += other.unexpected;
        self.bytes.add(&other.bytes);
        self.receives.add(&other.receives);
        self.messages.add(&other.messages);
        self.order.add(&other.order);
        self.longest_wildcard = self.longest_wildcard.max(other.longest_wildcard);
        for (most, other) in self.most.iter_mut().zip(other.most) {
            *most = (*most).max(other);
        }
        self.span = self.span.max(other.span);
        self.traces += other.traces;
    }

    pub(crate) fn summary(&self) -> Summary {
        let [sources, tags, pairs] = self.most;
        let wild = self.any_source + self.any_tag + self.any_both;
        Summary {
            traces: self.traces,
            span_ns: self.span,
            posts: self.posts,
            arrivals: self.arrivals,
            probes: self.probes,
            probes_found: self.probes_found,
            cancels: self.cancels,
            discards: self.discards,
            any_source: self.any_source,
            any_tag: self.any_tag,
            any_both: self.any_both,
            wildcard_share: share(wild, self.posts),
            unexpected: self.unexpected,
            unexpected_share: share(self.unexpected, self.arrivals),
            sources,
            tags,
            pairs,
            longest_wildcard_ns: self.longest_wildcard,
            bytes: self.bytes.quantiles(),
            receives: self.receives.summary(),
            messages: self.messages.summary(),
            in_order_share: self.order.in_order_share(),
            tau: self.order.tau(),
            drains: self.order.drained.count(),
            drain_entries: self.order.drained.quantiles(),
            drain_ns: self.order.drain_ns.quantiles(),
        }
    }
}

impl Queue {
    /// Notes a search that compared so many entries.
    pub(crate) fn search(&mut self, compared: u64, is_hit: bool) {
        self.length.note(self.now);
        match is_hit {
            true => self.hits.note(compared),
            false => self.misses.note(compared),
        }
        self.head_hits += u64::from(is_hit && compared == 1);
    }

    /// Notes that an entry came (1) or went (-1), or that time has passed (0).
    pub(crate) fn change(&mut self, at: u64, by: i64) {
        let passed = at.saturating_sub(self.since);
        self.over_time.note_for(self.now, passed);
        self.since = at;
        self.now = self.now.saturating_add_signed(by);
        self.high_water = self.high_water.max(self.now);
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.now == 0
    }

    fn add(&mut self, other: &Self) {
        self.length.add(&other.length);
        self.hits.add(&other.hits);
        self.misses.add(&other.misses);
        self.head_hits += other.head_hits;
        self.residence.add(&other.residence);
        self.over_time.add(&other.over_time);
        self.high_water = self.high_water.max(other.high_water);
    }

    fn summary(&self) -> QueueSummary {
        let mut depth = self.hits.clone();
        depth.add(&self.misses);
        QueueSummary {
            length: self.length.quantiles(),
            length_over_time: self.over_time.quantiles(),
            depth: depth.quantiles(),
            hit_depth: self.hits.quantiles(),
            miss_depth: self.misses.quantiles(),
            head_hit_share: share(self.head_hits, self.hits.count()),
            residence_ns: self.residence.quantiles(),
            high_water: self.high_water,
        }
    }
}

fn share(part: u64, all: u64) -> f64 {
    match all {
        0 => 0.0,
        all => part as f64 / all as f64,
    }
}
