//! The object that a rank owns, and its verbs.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use tagwire_base::Rank;
use tagwire_base::bootstrap::Bootstrap;
use tagwire_transport::flow::{Count, Flows};
use tagwire_transport::{
    Cancel, Capabilities, ClaimId, EndpointId, Found, Lane, MatchEnvelope, MatchLevels,
    MatchLimits, MatchPattern, MatchRemote, MatchTransport, MatchUpcalls, Outcome, Payload, Post,
    Posted, Probed, ReceiveEnd, RecvBuffer, Refusal, Result, SendBuffer, Sent, Token, Transport,
    Waiter,
};
use tagwire_ucx_sys::Started;

use super::unexpected::{Claims, Place, Taken, empty_list};
use crate::NAME;
use crate::byte::Ucx;
use crate::config::UcxOptions;
use crate::layout::{ACCESS, COUNTED, SOURCE_MASK, SOURCE_SHIFT, USER_MASK};
use crate::operations::Purpose;
use crate::piece::Piece;

/// Length up to which sends are expected to be complete at once.
const MAX_SHORT: usize = 1024;

/// Messages to one peer that may be under way.
const MAX_UNDER_WAY: usize = 1 << 16;

/// UCX as a transport that matches.
pub struct UcxMatch {
    /// What it is without matching: peers, packets, and access to memory.
    pub(super) bytes: Ucx,
    pub(super) flows: Flows,
    /// Unexpected messages that are out of UCX: all of them earlier than those in it.
    pub(super) list: RefCell<VecDeque<Taken>>,
    pub(super) claims: Claims,
}

impl UcxMatch {
    /// Opens the library, a context and a worker.
    ///
    /// # Errors
    /// When the library cannot be loaded, or has no transport that was asked for.
    pub fn open(options: UcxOptions, bootstrap: &dyn Bootstrap) -> Result<Self> {
        let allowance = Count {
            messages: options.unexpected_messages as u64,
            bytes: options.unexpected_bytes as u64,
        };
        // Half of it is told.
        let untold = Count {
            messages: allowance.messages.saturating_sub(1) / 2,
            bytes: allowance.bytes.saturating_sub(1) / 2,
        };
        Ok(Self {
            bytes: Ucx::open(options, bootstrap)?,
            flows: Flows::new(allowance, untold),
            list: RefCell::new(empty_list()),
            claims: Claims::default(),
        })
    }

    /// The endpoint of `rank`, where there was contact.
    pub(super) fn peer(&self, rank: Rank) -> Option<EndpointId> {
        self.bytes.core.shared.inbox.borrow().find(rank)
    }

    /// Starts a receive by `start`, which says what became of it at once.
    #[inline]
    fn begin(&mut self, data: &RecvBuffer, token: Token, from: From) -> Posted {
        let Some(region) = data.region() else {
            return Posted::Refused(Refusal::Shape);
        };
        let core = &mut self.bytes.core;
        let purpose = Purpose::Receive(token, region.len() as u64);
        let index = core.operations.take(&core.shared, purpose, None);
        let done = &core.operations.get(index).mark;
        let (start, len) = (region.as_ptr(), region.len());
        // SAFETY: the region is lent until the receive has ended, which it has once the mark
        // ended; a message that was taken is used up by this, its one receive.
        let started = unsafe {
            match from {
                From::Matching((tag, mask)) => {
                    core.worker.receive_tagged(start, len, tag, mask, done)
                }
                From::Taken(message) => core.worker.receive_taken(message, start, len, done),
            }
        };
        let Started::Open(request) = started else {
            core.operations.give(index);
            return Posted::Busy;
        };
        match core.ended_at_once(index) {
            Some(finished) => {
                let (tag, length) = (finished.tag, finished.length);
                Posted::Done(self.receive_end(finished.status, tag, length))
            }
            None => {
                core.operations.get_mut(index).request = NonNull::new(request);
                Posted::Open
            }
        }
    }

    /// Receives a message that was taken out of UCX's matching.
    fn receive_taken(&mut self, taken: Taken, data: &RecvBuffer, token: Token) -> Posted {
        let envelope = taken.envelope();
        let bytes = match taken.place {
            Place::There(message) => return self.begin(data, token, From::Taken(message)),
            Place::Lost => {
                return Posted::Done(ReceiveEnd::Matched(envelope, Outcome::PeerFailed));
            }
            Place::Here(bytes) => bytes,
        };
        let count = bytes.len().min(data.capacity());
        let Some(region) = data.region() else {
            return Posted::Refused(Refusal::Shape);
        };
        // SAFETY: the buffer is lent for this call at least.
        unsafe { RecvBuffer::of(region) }.write(0, Payload::from_slice(&bytes));
        Posted::Done(ReceiveEnd::Matched(envelope, Outcome::Done(count as u64)))
    }
}

/// Where a receive gets its message from.
enum From {
    /// The first that matches these bits under this mask.
    Matching((u64, u64)),
    /// This one.
    Taken(crate::worker::Message),
}

/// What UCX is to look for: bits and mask.
#[inline]
fn bits_of(pattern: &MatchPattern) -> Result<(u64, u64), Refusal> {
    if pattern.bits & !USER_MASK != 0 {
        return Err(Refusal::ReservedBits);
    }
    if pattern.ignore & !USER_MASK != 0 {
        return Err(Refusal::Ignore);
    }
    let mask = ACCESS | USER_MASK & !pattern.ignore;
    match pattern.source {
        None => Ok((pattern.bits, mask)),
        Some(source) => {
            let bits = u64::from(source.as_u32()) << SOURCE_SHIFT;
            Ok((pattern.bits | bits, mask | SOURCE_MASK))
        }
    }
}

impl fmt::Debug for UcxMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UcxMatch(rank {})", self.bytes.core.rank)
    }
}

impl Transport for UcxMatch {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        self.bytes.core.capabilities() | Capabilities::ALL_OR_NOTHING
    }

    fn address(&self) -> Vec<u8> {
        self.bytes.address()
    }

    fn connect(&mut self, peer: Rank, address: &[u8]) -> Result<EndpointId> {
        self.bytes.connect(peer, address)
    }

    fn leave(&mut self) {
        Transport::leave(&mut self.bytes);
    }

    fn has_left(&self) -> bool {
        self.bytes.has_left()
    }

    fn waiter(&self) -> Arc<dyn Waiter> {
        self.bytes.waiter()
    }

    fn describe(&self, out: &mut dyn fmt::Write) {
        self.bytes.describe(out);
    }
}

impl MatchTransport for UcxMatch {
    fn match_limits(&self) -> MatchLimits {
        let mut limits = MatchLimits::UNLIMITED;
        limits.bits = USER_MASK;
        limits.ignorable = USER_MASK;
        limits.max_message = u64::MAX >> 1;
        limits.max_short = MAX_SHORT;
        limits.memory_per_peer = self.bytes.core.options().unexpected_bytes;
        limits.wait_object = self.bytes.core.wait_object();
        limits
    }

    #[inline]
    fn send(
        &mut self,
        _lane: Lane,
        to: EndpointId,
        bits: u64,
        data: &SendBuffer,
        synchronous: bool,
        token: Token,
    ) -> Sent {
        if bits & !USER_MASK != 0 {
            return Sent::Refused(Refusal::ReservedBits);
        }
        let Some(region) = data.region() else {
            return Sent::Refused(Refusal::Shape);
        };
        let Some(link) = self.bytes.core.links.get(to.index()) else {
            return Sent::Refused(Refusal::Unknown);
        };
        let Some(endpoint) = link.endpoint else {
            return match self.bytes.core.absences.no_way(to) {
                Post::Busy => Sent::Busy,
                _ => Sent::Gone,
            };
        };
        if !link.established || link.under_way >= MAX_UNDER_WAY {
            return Sent::Busy;
        }
        let len = region.len() as u64;
        let counted = !synchronous && self.count_sent(to, len);
        let core = &mut self.bytes.core;
        let own = u64::from(core.rank.as_u32()) << SOURCE_SHIFT;
        let tag = own | bits | if counted { COUNTED } else { 0 };
        let purpose = Purpose::Lent(token, len);
        let index = core.operations.take(&core.shared, purpose, Some(to.0));
        let mark = &core.operations.get(index).mark;
        let bytes = Piece {
            start: region.as_ptr(),
            len: region.len(),
        };
        // SAFETY: links hold open endpoints; the region is lent until the send has ended, which it
        // has once the mark ended.
        let started = unsafe {
            core.worker
                .send_tagged(endpoint, tag, bytes, !counted, mark)
        };
        let done = started == Started::Done;
        if !core.note_start(to, index, started) {
            if counted {
                self.flows.note_unsent(to, len);
            }
            return Sent::Gone;
        }
        if done { Sent::Done } else { Sent::Open }
    }

    #[inline]
    fn post(
        &mut self,
        _lane: Lane,
        pattern: MatchPattern,
        data: &RecvBuffer,
        token: Token,
    ) -> Posted {
        let bits = match bits_of(&pattern) {
            Ok(bits) => bits,
            Err(refusal) => return Posted::Refused(refusal),
        };
        if data.region().is_none() {
            return Posted::Refused(Refusal::Shape);
        }
        if let Some(place) = self.find_in_list(&pattern)
            && let Some(taken) = self.list.get_mut().remove(place)
        {
            return self.receive_taken(taken, data, token);
        }
        self.begin(data, token, From::Matching(bits))
    }

    fn probe(&mut self, _lane: Lane, pattern: MatchPattern, claim: bool, _token: Token) -> Probed {
        let bits = match bits_of(&pattern) {
            Ok(bits) => bits,
            Err(refusal) => return Probed::Refused(refusal),
        };
        if let Some(place) = self.find_in_list(&pattern) {
            let list = self.list.get_mut();
            let envelope = list[place].envelope();
            let taken = if claim { list.remove(place) } else { None };
            let claim = taken.map(|taken| self.claims.add(taken));
            return Probed::Found(Found { envelope, claim });
        }
        let Some((message, info)) = self.bytes.core.worker.probe(bits.0, bits.1, claim) else {
            return Probed::Nothing;
        };
        let taken = Taken {
            tag: info.sender_tag,
            length: info.length as u64,
            place: Place::There(message),
        };
        Probed::Found(Found {
            envelope: taken.envelope(),
            claim: claim.then(|| self.claims.add(taken)),
        })
    }

    fn receive_claimed(
        &mut self,
        _lane: Lane,
        claim: ClaimId,
        data: &RecvBuffer,
        token: Token,
    ) -> Posted {
        if data.region().is_none() {
            return Posted::Refused(Refusal::Shape);
        }
        match self.claims.take(claim) {
            Some(taken) => self.receive_taken(taken, data, token),
            None => Posted::Refused(Refusal::Unknown),
        }
    }

    fn cancel(&mut self, _lane: Lane, token: Token) -> Cancel {
        let is_it = |purpose| matches!(purpose, Purpose::Receive(of, _) if of == token);
        let core = &mut self.bytes.core;
        let found = core.operations.iter().find(|(_, slot)| is_it(slot.purpose));
        let Some((index, operation)) = found else {
            return Cancel::TooLate;
        };
        if operation.mark.ended.get() {
            return Cancel::TooLate;
        }
        core.cancel(operation);
        // UCX reports a receive that it takes back at once.
        match core.ended_at_once(index) {
            Some(_) => Cancel::Cancelled,
            None => Cancel::TooLate,
        }
    }

    fn progress(&mut self, _lane: Lane, upcalls: &mut dyn MatchUpcalls) -> usize {
        self.advance(upcalls)
    }

    fn look_after_peers(&mut self, upcalls: &mut dyn MatchUpcalls) {
        self.bytes.core.end_overdue();
        self.advance(upcalls);
    }

    fn peer_failed(&mut self, rank: Rank, _upcalls: &mut dyn MatchUpcalls) {
        self.bytes.core.peer_failed(rank);
    }

    fn remote(&mut self) -> Option<&mut dyn MatchRemote> {
        Some(&mut self.bytes)
    }

    fn levels(&self) -> MatchLevels {
        let operations = self.bytes.core.operations.iter();
        let posted = operations
            .filter(|(_, slot)| matches!(slot.purpose, Purpose::Receive(..)))
            .count();
        MatchLevels {
            posted,
            ..self.count_unexpected()
        }
    }

    fn visit_unexpected(&self, visit: &mut dyn FnMut(&MatchEnvelope)) {
        self.empty_into_list();
        for taken in self.list.borrow().iter() {
            visit(&taken.envelope());
        }
    }
}
