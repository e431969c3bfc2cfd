//! How much a rank may send before somebody receives it.
//!
//! What a transport that matches sends at once lies at the receiver until a receive matches. So each sender counts what it
//! sends at once, the receiver reports what of it has matched, and past the allowance messages go in another way, in
//! which their bytes stay with the sender.

use crate::message::EndpointId;

/// Messages and bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// How many messages.
    pub messages: u64,
    /// How many bytes they have.
    pub bytes: u64,
}

impl Count {
    const fn plus(self, more: Self) -> Self {
        Self {
            messages: self.messages.saturating_add(more.messages),
            bytes: self.bytes.saturating_add(more.bytes),
        }
    }

    const fn since(self, earlier: Self) -> Self {
        Self {
            messages: self.messages - earlier.messages,
            bytes: self.bytes - earlier.bytes,
        }
    }

    const fn is_within(self, most: Self) -> bool {
        self.messages <= most.messages && self.bytes <= most.bytes
    }

    const fn message(bytes: u64) -> Self {
        Self { messages: 1, bytes }
    }
}

/// One peer. All is counted from the beginning.
#[derive(Debug, Clone, Copy, Default)]
struct Flow {
    sent: Count,
    /// How much of it has matched, as the peer says.
    matched: Count,
    received: Count,
    /// How much of that the peer was told.
    told: Count,
}

/// All peers.
#[derive(Debug)]
pub struct Flows {
    list: Vec<Flow>,
    /// For one sender.
    allowance: Count,
    /// A sender is told once it is more than this.
    untold: Count,
}

impl Flows {
    /// Returns flows of which each sender may send so much, and is told of so much at once.
    #[must_use]
    pub const fn new(allowance: Count, untold: Count) -> Self {
        Self {
            list: Vec::new(),
            allowance,
            untold,
        }
    }

    fn at(&mut self, endpoint: EndpointId) -> &mut Flow {
        if endpoint.index() >= self.list.len() {
            self.list.resize(endpoint.index() + 1, Flow::default());
        }
        &mut self.list[endpoint.index()]
    }

    /// Returns whether a message of so many `bytes` may be sent at once.
    #[inline]
    pub fn allows(&mut self, to: EndpointId, bytes: u64) -> bool {
        let allowance = self.allowance;
        let flow = self.at(to);
        let open = flow.sent.since(flow.matched);
        open.plus(Count::message(bytes)).is_within(allowance)
    }

    /// Takes note of a message that was sent at once.
    #[inline]
    pub fn note_sent(&mut self, to: EndpointId, bytes: u64) {
        let flow = self.at(to);
        flow.sent = flow.sent.plus(Count::message(bytes));
    }

    /// Takes back the note of the last message.
    pub fn note_unsent(&mut self, to: EndpointId, bytes: u64) {
        let flow = self.at(to);
        flow.sent = flow.sent.since(Count::message(bytes));
    }

    /// Takes note of how much has matched in all, as the peer says; returns whether that can be.
    #[must_use]
    pub fn note_matched(&mut self, by: EndpointId, matched: Count) -> bool {
        let flow = self.at(by);
        let can_be = flow.matched.is_within(matched) && matched.is_within(flow.sent);
        if can_be {
            flow.matched = matched;
        }
        can_be
    }

    /// Takes note of how much more has matched, as the peer says. More than was sent is not believed.
    pub fn note_more_matched(&mut self, by: EndpointId, more: Count) {
        let flow = self.at(by);
        let matched = flow.matched.plus(more);
        flow.matched = Count {
            messages: matched.messages.min(flow.sent.messages),
            bytes: matched.bytes.min(flow.sent.bytes),
        };
    }

    /// Takes note of a message that has matched here; returns whether it is time to tell its sender.
    #[inline]
    #[must_use]
    pub fn note_received(&mut self, from: EndpointId, bytes: u64) -> bool {
        let untold = self.untold;
        let flow = self.at(from);
        flow.received = flow.received.plus(Count::message(bytes));
        !flow.received.since(flow.told).is_within(untold)
    }

    /// Returns what a sender is to be told of: how much has matched in all, and since it was told the last time.
    pub fn tell(&mut self, from: EndpointId) -> (Count, Count) {
        let flow = self.at(from);
        let told = std::mem::replace(&mut flow.told, flow.received);
        (flow.received, flow.received.since(told))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn count(messages: u64, bytes: u64) -> Count {
        Count { messages, bytes }
    }

    #[test]
    fn the_allowance_is_used_up_and_given_back() {
        let to = EndpointId(0);
        let (four, one) = (count(4, 100), count(1, 50));
        let mut flows = Flows::new(four, one);
        assert!(!flows.allows(to, 101));
        for _ in 0..4 {
            assert!(flows.allows(to, 10));
            flows.note_sent(to, 10);
        }
        assert!(!flows.allows(to, 0));
        assert!(flows.note_matched(to, count(2, 20)));
        assert!(flows.allows(to, 80));
        assert!(!flows.allows(to, 81));
        assert!(!flows.note_matched(to, Count::default()), "it goes back");
        assert!(!flows.note_matched(to, count(5, 40)), "more than was sent");
        flows.note_unsent(to, 10);
        flows.note_more_matched(to, count(9, 9));
        assert!(flows.allows(to, 99), "1 byte is open");
        assert!(!flows.allows(to, 100));
    }

    #[test]
    fn senders_are_told_of_several_at_once() {
        let from = EndpointId(3);
        let mut flows = Flows::new(count(4, 100), count(1, 50));
        assert!(!flows.note_received(from, 50));
        assert!(flows.note_received(from, 0), "two messages");
        assert_eq!(flows.tell(from), (count(2, 50), count(2, 50)));
        assert!(flows.note_received(from, 51), "51 bytes");
        assert_eq!(flows.tell(from), (count(3, 101), count(1, 51)));
    }
}
