//! How much a rank may send before somebody receives it.
//!
//! What is sent at once lies at the receiver until a receive matches. So each sender counts what it
//! sends at once, the receiver reports what of it has matched, and past the allowance messages are
//! announced only: their bytes stay with the sender.

use tagwire_transport::EndpointId;

/// Messages and bytes, counted from the beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Count {
    pub(super) messages: u64,
    pub(super) bytes: u64,
}

impl Count {
    const fn add(&mut self, bytes: u64) {
        self.messages += 1;
        self.bytes += bytes;
    }

    const fn since(self, earlier: Self) -> Self {
        Self {
            messages: self.messages - earlier.messages,
            bytes: self.bytes - earlier.bytes,
        }
    }
}

/// One peer.
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
pub(super) struct Flows {
    list: Vec<Flow>,
    /// For one sender.
    allowance: Count,
}

impl Flows {
    pub(super) const fn new(allowance: Count) -> Self {
        Self {
            list: Vec::new(),
            allowance,
        }
    }

    fn at(&mut self, endpoint: EndpointId) -> &mut Flow {
        if endpoint.index() >= self.list.len() {
            self.list.resize(endpoint.index() + 1, Flow::default());
        }
        &mut self.list[endpoint.index()]
    }

    /// Whether `bytes` more may be sent at once.
    #[inline]
    pub(super) fn allows(&mut self, to: EndpointId, bytes: usize) -> bool {
        let allowance = self.allowance;
        let flow = self.at(to);
        let open = flow.sent.since(flow.matched);
        open.messages < allowance.messages && open.bytes + bytes as u64 <= allowance.bytes
    }

    #[inline]
    pub(super) fn note_sent(&mut self, to: EndpointId, bytes: usize) {
        self.at(to).sent.add(bytes as u64);
    }

    /// Takes note of what the peer says; returns whether that can be.
    #[must_use]
    pub(super) fn note_told(&mut self, by: EndpointId, matched: Count) -> bool {
        let flow = self.at(by);
        let sane = |now: u64, before: u64, most: u64| before <= now && now <= most;
        if sane(matched.messages, flow.matched.messages, flow.sent.messages)
            && sane(matched.bytes, flow.matched.bytes, flow.sent.bytes)
        {
            flow.matched = matched;
            return true;
        }
        false
    }

    /// Takes note of a message that has matched; returns what the peer is to be told, when it is
    /// time for that.
    #[inline]
    pub(super) fn note_matched(&mut self, from: EndpointId, bytes: u64) -> Option<Count> {
        let allowance = self.allowance;
        let flow = self.at(from);
        flow.received.add(bytes);
        let untold = flow.received.since(flow.told);
        if untold.messages > allowance.messages / 4 || untold.bytes > allowance.bytes / 4 {
            flow.told = flow.received;
            return Some(flow.received);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_allowance_is_used_up_and_given_back() {
        let to = EndpointId(0);
        let mut flows = Flows::new(Count {
            messages: 4,
            bytes: 100,
        });
        assert!(!flows.allows(to, 101));
        for _ in 0..4 {
            assert!(flows.allows(to, 10));
            flows.note_sent(to, 10);
        }
        assert!(!flows.allows(to, 0));
        let two = Count {
            messages: 2,
            bytes: 20,
        };
        assert!(flows.note_told(to, two));
        assert!(flows.allows(to, 80));
        assert!(!flows.allows(to, 81));
        assert!(!flows.note_told(to, Count::default()), "it goes back");
        let five = Count {
            messages: 5,
            bytes: 40,
        };
        assert!(!flows.note_told(to, five), "more than was sent");
    }
}
