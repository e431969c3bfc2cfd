//! What has ended and is not reported yet.

use std::collections::VecDeque;

use crate::matching::{MatchUpcalls, ReceiveEnd};
use crate::message::{AmHeader, Arrival, EndpointId, Outcome, PeerEvent, Token};

/// What is to be reported.
#[derive(Debug)]
pub(super) enum Ended {
    Sent(Token, Outcome),
    Received(Token, ReceiveEnd),
    Packet(EndpointId, AmHeader, Vec<u8>),
    Access(Token, Outcome),
    Peer(PeerEvent),
}

impl Ended {
    #[inline(always)]
    pub(super) fn report(self, upcalls: &mut dyn MatchUpcalls) {
        match self {
            Self::Sent(token, outcome) => upcalls.sent(token, outcome),
            Self::Received(token, end) => upcalls.received(token, end),
            Self::Packet(from, header, bytes) => {
                upcalls.packet(Arrival::kept(from, header, &bytes))
            }
            Self::Access(token, outcome) => upcalls.complete(token, outcome),
            Self::Peer(event) => upcalls.peer(event),
        }
    }
}

/// What has ended where there was nobody to report it to, in order.
#[derive(Debug, Default)]
pub(super) struct Completions {
    queue: VecDeque<Ended>,
}

impl Completions {
    pub(super) fn push(&mut self, ended: Ended) {
        self.queue.push_back(ended);
    }

    /// Reports what has ended at once, or later where there are no `upcalls`.
    #[inline]
    pub(super) fn pass(&mut self, ended: Ended, upcalls: Option<&mut dyn MatchUpcalls>) {
        match upcalls {
            Some(upcalls) => ended.report(upcalls),
            None => self.push(ended),
        }
    }

    /// Reports everything.
    #[inline(always)]
    pub(super) fn report(&mut self, upcalls: &mut dyn MatchUpcalls) -> usize {
        if self.queue.is_empty() {
            return 0;
        }
        self.report_all(upcalls)
    }

    #[inline(never)]
    fn report_all(&mut self, upcalls: &mut dyn MatchUpcalls) -> usize {
        let mut events = 0;
        while let Some(ended) = self.queue.pop_front() {
            ended.report(upcalls);
            events += 1;
        }
        events
    }

    /// Takes the end of a receive that has just been posted, if it has one.
    #[inline]
    pub(super) fn take_receive(&mut self, token: Token) -> Option<ReceiveEnd> {
        if self.queue.is_empty() {
            return None;
        }
        let is_it =
            |ended: &Ended| matches!(ended, Ended::Received(received, _) if *received == token);
        let at = self.queue.iter().rposition(is_it)?;
        match self.queue.remove(at) {
            Some(Ended::Received(_, end)) => Some(end),
            _ => None,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }
}

/// Lends upcalls for one more call.
#[inline]
pub(super) fn lend<'a>(
    upcalls: &'a mut Option<&mut dyn MatchUpcalls>,
) -> Option<&'a mut dyn MatchUpcalls> {
    upcalls
        .as_mut()
        .map(|upcalls| &mut **upcalls as &mut dyn MatchUpcalls)
}
