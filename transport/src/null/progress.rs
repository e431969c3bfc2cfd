//! What progress reports: first contact with the own rank, then what was sent to it, then puts
//! and the ends of operations.

use super::rank::NullTransport;
use crate::message::{Arrival, Payload, PeerEvent, Upcalls};

impl NullTransport {
    pub(super) fn greet(&mut self, upcalls: &mut dyn Upcalls) -> usize {
        let Some(endpoint) = self.greeting.take() else {
            return 0;
        };
        upcalls.peer(PeerEvent::Up {
            endpoint,
            rank: self.rank,
        });
        1
    }

    /// Delivers up to a burst of messages.
    pub(super) fn deliver(&mut self, upcalls: &mut dyn Upcalls) -> usize {
        let Some(from) = self.own else {
            return 0;
        };
        let count = self.queue.len().min(self.options.burst);
        for message in self.queue.drain(..count) {
            upcalls.deliver(Arrival {
                from,
                header: message.header,
                payload: Payload::from_slice(&message.bytes),
            });
        }
        count
    }

    pub(super) fn complete(&mut self, upcalls: &mut dyn Upcalls) -> usize {
        let count = self.completions.len() + self.notices.len();
        for immediate in self.notices.drain(..) {
            upcalls.notice(immediate);
        }
        for (token, outcome) in self.completions.drain(..) {
            upcalls.complete(token, outcome);
        }
        count
    }
}
