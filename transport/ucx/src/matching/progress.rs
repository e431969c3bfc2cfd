//! What has arrived and what has ended.

use tagwire_transport::{Arrival, MatchUpcalls, Outcome, PeerEvent, ReceiveEnd};
use tagwire_ucx_sys::{UCS_ERR_MESSAGE_TRUNCATED, UCS_OK, ucs_status_t};

use super::UcxMatch;
use crate::contact::Early;
use crate::layout::envelope_of;
use crate::link::Ended;
use crate::operations::Purpose;

impl UcxMatch {
    /// Makes progress and reports it; returns how many things happened.
    #[inline]
    pub(super) fn advance(&mut self, upcalls: &mut dyn MatchUpcalls) -> usize {
        let count = self.pump();
        self.bytes.core.end_peers(count);
        let told = self.tell(upcalls);
        if told == 0 {
            self.bytes.core.after_progress(count);
        } else {
            self.bytes.core.waiter.disturbed();
        }
        told
    }

    #[inline]
    fn pump(&mut self) -> u32 {
        let count = self.bytes.core.worker.progress();
        if self.bytes.core.attend() {
            self.take_credits();
            self.bytes.serve();
        }
        count
    }

    /// Events first, then the ends that they explain.
    #[inline]
    fn tell(&mut self, upcalls: &mut dyn MatchUpcalls) -> usize {
        let mut told = 0;
        loop {
            let early = self.bytes.core.shared.inbox.borrow_mut().next_early();
            let Some(early) = early else {
                break;
            };
            told += 1;
            self.tell_early(early, upcalls);
        }
        told += self
            .bytes
            .core
            .tell_flushes(|token, outcome| upcalls.complete(token, outcome));
        if self.bytes.core.ended.is_empty() {
            return told;
        }
        let mut ended = std::mem::take(&mut self.bytes.core.ended);
        for one in ended.drain(..) {
            told += 1;
            self.tell_end(&one, upcalls);
        }
        // Nothing ends in between: what ends is noted by `attend` alone.
        self.bytes.core.ended = ended;
        told
    }

    fn tell_early(&mut self, early: Early, upcalls: &mut dyn MatchUpcalls) {
        match early {
            Early::Event(event) => {
                if let PeerEvent::Left(gone) | PeerEvent::Failed(gone) = event {
                    self.inherit(self.bytes.core.links[gone.index()].rank);
                }
                upcalls.peer(event);
            }
            Early::Notice(immediate) => upcalls.notice(immediate),
            Early::Message(from, header, bytes) => {
                upcalls.packet(Arrival::kept(from, header, &bytes))
            }
        }
    }

    fn tell_end(&mut self, ended: &Ended, upcalls: &mut dyn MatchUpcalls) {
        match ended.purpose {
            Purpose::Receive(token, _) => {
                let end = self.receive_end(ended.status, ended.tag, ended.length);
                upcalls.received(token, end);
            }
            _ => {
                let Some((token, outcome)) = ended.outcome(&self.bytes.core.links) else {
                    return;
                };
                match ended.purpose {
                    Purpose::Lent(..) => upcalls.sent(token, outcome),
                    _ => upcalls.complete(token, outcome),
                }
            }
        }
    }

    /// How a receive ended that a message has matched.
    #[inline]
    pub(super) fn receive_end(
        &mut self,
        status: ucs_status_t,
        tag: u64,
        length: u64,
    ) -> ReceiveEnd {
        self.count_received(tag, length);
        let outcome = match status {
            UCS_OK => Outcome::Done(length),
            // UCX gives no bytes of a message that is too long.
            UCS_ERR_MESSAGE_TRUNCATED => Outcome::Done(0),
            _ => Outcome::PeerFailed,
        };
        ReceiveEnd::Matched(envelope_of(tag, length), outcome)
    }
}
