//! Checks of the kit for matching transports can fail: each of these defects is seen by the check that is
//! there for it.

#![allow(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tagwire_base::Rank;
use tagwire_conformance::Verdict;
use tagwire_conformance::matching::{CHECKS, Factory, Job};
use tagwire_conformance::network::matching::{MatchNetwork, MatchOptions};
use tagwire_transport::matching::{
    Cancel, ClaimId, MatchEnvelope, MatchLevels, MatchLimits, MatchPattern, Posted, Probed, Sent,
};
use tagwire_transport::{
    Capabilities, EndpointId, Lane, MatchTransport, MatchUpcalls, RecvBuffer, Result, SendBuffer,
    Token, Transport, Waiter,
};

/// What is wrong with a transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Defect {
    None,
    /// While one sender is held, so are all.
    HoldsAll,
    /// Senders do not move what their receivers compute over.
    LeavesItToTheReceiver,
    /// Some messages have other bytes.
    SendsOtherBytes,
}

static ZEROS: [u8; 100_000] = [0; 100_000];

/// A transport with one defect.
struct Broken {
    inner: Box<dyn MatchTransport>,
    defect: Defect,
    rank: u32,
    sends: u64,
    /// The rank that is held, plus one.
    held: Arc<AtomicU32>,
}

impl Broken {
    /// Takes note of whether this rank is held.
    fn note(&self) {
        let own = self.rank + 1;
        let (from, to) = match self.inner.levels().held {
            0 => (own, 0),
            _ => (0, own),
        };
        let _ = self
            .held
            .compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed);
    }
}

impl Transport for Broken {
    fn name(&self) -> &'static str {
        "broken"
    }

    fn capabilities(&self) -> Capabilities {
        // It claims what it does not do.
        self.inner.capabilities() | Capabilities::COOPERATIVE
    }

    fn address(&self) -> Vec<u8> {
        self.inner.address()
    }

    fn connect(&mut self, peer: Rank, address: &[u8]) -> Result<EndpointId> {
        self.inner.connect(peer, address)
    }

    fn leave(&mut self) {
        self.inner.leave();
    }

    fn waiter(&self) -> Arc<dyn Waiter> {
        self.inner.waiter()
    }

    fn describe(&self, out: &mut dyn std::fmt::Write) {
        self.inner.describe(out);
    }
}

impl MatchTransport for Broken {
    fn match_limits(&self) -> MatchLimits {
        self.inner.match_limits()
    }

    fn send(
        &mut self,
        lane: Lane,
        to: EndpointId,
        bits: u64,
        data: &SendBuffer,
        synchronous: bool,
        token: Token,
    ) -> Sent {
        let held = self.held.load(Ordering::Relaxed);
        if self.defect == Defect::HoldsAll && held != 0 && held != self.rank + 1 {
            return Sent::Busy;
        }
        self.sends += 1;
        if self.defect == Defect::SendsOtherBytes && self.sends.is_multiple_of(7) {
            let zeros = &ZEROS;
            let len = data.len().min(zeros.len());
            // SAFETY: the zeros are there for good.
            let data = unsafe { SendBuffer::contiguous(zeros.as_ptr(), len) };
            return self.inner.send(lane, to, bits, &data, synchronous, token);
        }
        self.inner.send(lane, to, bits, data, synchronous, token)
    }

    fn post(
        &mut self,
        lane: Lane,
        pattern: MatchPattern,
        data: &RecvBuffer,
        token: Token,
    ) -> Posted {
        self.inner.post(lane, pattern, data, token)
    }

    fn probe(&mut self, lane: Lane, pattern: MatchPattern, claim: bool, token: Token) -> Probed {
        self.inner.probe(lane, pattern, claim, token)
    }

    fn receive_claimed(
        &mut self,
        lane: Lane,
        claim: ClaimId,
        data: &RecvBuffer,
        token: Token,
    ) -> Posted {
        self.inner.receive_claimed(lane, claim, data, token)
    }

    fn cancel(&mut self, lane: Lane, token: Token) -> Cancel {
        self.inner.cancel(lane, token)
    }

    fn progress(&mut self, lane: Lane, upcalls: &mut dyn MatchUpcalls) -> usize {
        let events = self.inner.progress(lane, upcalls);
        self.note();
        events
    }

    fn look_after_peers(&mut self, upcalls: &mut dyn MatchUpcalls) {
        self.inner.look_after_peers(upcalls);
    }

    fn peer_failed(&mut self, rank: Rank, upcalls: &mut dyn MatchUpcalls) {
        self.inner.peer_failed(rank, upcalls);
    }

    fn unfinished(&self) -> usize {
        self.inner.unfinished()
    }

    fn levels(&self) -> MatchLevels {
        self.inner.levels()
    }

    fn visit_unexpected(&self, visit: &mut dyn FnMut(&MatchEnvelope)) {
        self.inner.visit_unexpected(visit);
    }
}

fn factory(defect: Defect) -> Factory {
    Factory::new(8, move |size, wanted| {
        let network = MatchNetwork::new(
            size,
            MatchOptions {
                unexpected_bytes: wanted.unexpected_bytes,
                unexpected_messages: wanted.unexpected_messages,
                helping: defect != Defect::LeavesItToTheReceiver,
                ..MatchOptions::default()
            },
        );
        let held = Arc::new(AtomicU32::new(0));
        let open = |rank| {
            Box::new(Broken {
                inner: Box::new(network.rank(Rank::new(rank))),
                defect,
                rank,
                sends: 0,
                held: Arc::clone(&held),
            }) as Box<dyn MatchTransport>
        };
        Ok(Job::new((0..size).map(open).collect()))
    })
}

/// Which check sees which defect.
const SEEN: &[(Defect, &str)] = &[
    (Defect::HoldsAll, "one_held_sender_leaves_others_alone"),
    (Defect::LeavesItToTheReceiver, "a_sender_alone_delivers"),
    (Defect::SendsOtherBytes, "each_message_is_had_once"),
];

fn run(name: &str, defect: Defect) -> Verdict {
    let check = CHECKS
        .iter()
        .find(|check| check.name() == name)
        .expect("the table names checks");
    check.run(&factory(defect))
}

#[test]
fn every_defect_is_seen() {
    for (defect, name) in SEEN {
        let verdict = run(name, *defect);
        assert!(
            matches!(verdict, Verdict::Failed(_)),
            "{name} does not see {defect:?}: {verdict:?}"
        );
    }
}

#[test]
fn the_wrapper_without_a_defect_passes() {
    for (_, name) in SEEN {
        assert_eq!(run(name, Defect::None), Verdict::Passed, "{name}");
    }
}
