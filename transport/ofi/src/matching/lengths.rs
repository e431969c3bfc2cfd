//! Lengths of announced messages, where the provider's completions have no room for them.
//!
//! ```text
//!   announce ── empty tagged message: number ──>   matches: waits for
//!            ── length of that number ─────────>   this, which is just behind
//! ```
//!
//! The two travel by different queues of the provider, so either may be seen first. A look does not wait:
//! its result must come without the sender, who may have had no room for the length. It has not seen the
//! message yet.

use std::collections::HashMap;

use tagwire_transport::{EndpointId, MatchUpcalls};

use super::OfiMatch;
use super::incoming::Incoming;
use super::outgoing::SLOT_BITS;
use super::tags::{MAX_MESSAGE, NUMBER_BITS, Tags};
use crate::fabric::Completion;

/// A message that was seen before its length.
#[derive(Debug)]
struct Waiting {
    slot: u32,
    from: EndpointId,
    number: u32,
    completion: Completion,
}

/// Lengths that have come, and messages without.
#[derive(Debug, Default)]
pub(super) struct Lengths {
    come: HashMap<EndpointId, HashMap<u32, u64>>,
    waiting: Vec<Waiting>,
}

impl Lengths {
    /// Takes note of a length; returns whether a correct peer can have told it.
    #[must_use]
    fn note(&mut self, from: EndpointId, number: u32, length: u64) -> bool {
        let of_it = self.come.entry(from).or_default();
        let sane = number >> NUMBER_BITS == 0 && length <= MAX_MESSAGE;
        // As many sends as one can tell apart.
        let room = of_it.len() < 1 << SLOT_BITS;
        sane && room && of_it.insert(number, length).is_none()
    }

    pub(super) fn find(&self, from: EndpointId, number: u32) -> Option<u64> {
        self.come.get(&from)?.get(&number).copied()
    }

    /// The message is no longer in matching: its number may name another one.
    pub(super) fn forget(&mut self, from: EndpointId, number: u32) {
        if let Some(of_it) = self.come.get_mut(&from) {
            of_it.remove(&number);
        }
    }

    /// Whether what the operation in `slot` has seen waits for its length.
    pub(super) fn holds(&self, slot: u32) -> bool {
        self.waiting.iter().any(|one| one.slot == slot)
    }

    /// What waits no longer.
    fn take(&mut self, let_go: impl Fn(&Waiting) -> bool) -> Vec<Waiting> {
        let (taken, kept) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(let_go);
        self.waiting = kept;
        taken
    }
}

impl OfiMatch {
    /// Whether what the operation in `slot` has seen has to wait for its length; then it does.
    #[cold]
    pub(super) fn waits_for_length(&mut self, slot: u32, completion: &Completion) -> bool {
        let takes = matches!(
            self.incoming.get(slot),
            Some(Incoming::Posted { .. } | Incoming::Taking { .. })
        );
        let Some((from, number)) = self.without_length(completion).filter(|_| takes) else {
            return false;
        };
        if let Some(Incoming::Posted { op, .. }) = self.incoming.get_mut(slot) {
            *op = None;
        }
        self.lengths.waiting.push(Waiting {
            slot,
            from,
            number,
            completion: *completion,
        });
        true
    }

    /// Sender and number of the announcement that an operation has seen, where its length has not come
    /// and still may.
    pub(super) fn without_length(&mut self, completion: &Completion) -> Option<(EndpointId, u32)> {
        let (source, _) = self.tags.read(completion.tag);
        if !self.asks.lack_length()
            || !Tags::is_announcement(completion.tag)
            || source.as_u32() >= self.size
        {
            return None;
        }
        let from = self.bytes.engine.peers.links.at(source);
        let (number, _) = self.asks.decode(completion.data);
        let may_come = !self.bytes.engine.peers.links[from].closed;
        (may_come && self.lengths.find(from, number).is_none()).then_some((from, number))
    }

    /// A length has come; returns whether it may.
    pub(super) fn note_length(
        &mut self,
        from: EndpointId,
        (number, length): (u32, u64),
        upcalls: &mut dyn MatchUpcalls,
    ) -> bool {
        if !self.asks.lack_length() || !self.lengths.note(from, number, length) {
            return false;
        }
        let is_it = |one: &Waiting| one.from == from && one.number == number;
        for one in self.lengths.take(is_it) {
            self.end_incoming(one.slot, Ok(one.completion), upcalls);
        }
        true
    }

    /// No length comes any more from a peer that is gone.
    pub(super) fn bury_lengths(&mut self, gone: EndpointId, upcalls: &mut dyn MatchUpcalls) {
        self.lengths.come.remove(&gone);
        for one in self.lengths.take(|one| one.from == gone) {
            self.end_incoming(one.slot, Ok(one.completion), upcalls);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_told_once_and_are_such() {
        let from = EndpointId(3);
        let mut lengths = Lengths::default();
        assert!(lengths.note(from, 7, 100));
        assert_eq!(lengths.find(from, 7), Some(100));
        assert_eq!(lengths.find(EndpointId(2), 7), None);
        assert!(!lengths.note(from, 7, 100), "told twice");
        lengths.forget(from, 7);
        assert_eq!(lengths.find(from, 7), None);
        assert!(lengths.note(from, 7, MAX_MESSAGE));
        assert!(!lengths.note(from, 8, MAX_MESSAGE + 1));
        assert!(!lengths.note(from, 1 << NUMBER_BITS, 1));
    }
}
