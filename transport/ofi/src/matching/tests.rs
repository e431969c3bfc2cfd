//! The kit over a provider that finds no room, and what becomes of tagged operations that end as few
//! do: a wrapper of one of this machine's. Skipped, loudly, where there is no libfabric.
#![allow(unsafe_code)]

use tagwire_base::Rank;
use tagwire_base::bootstrap::LocalBootstrap;
use tagwire_conformance::assert_check;
use tagwire_conformance::matching::{Factory, Job};
use tagwire_libfabric_sys::bindings::{FI_ECANCELED, FI_EINVAL, FI_EIO, FI_EOVERRUN, FI_ETRUNC};
use tagwire_transport::{
    Cancel, EndpointId, Found, Lane, MatchEnvelope, MatchPattern, MatchTransport, MatchUpcalls,
    Outcome, PeerEvent, Posted, Probed, ReceiveEnd, RecvBuffer, Result, SendBuffer, Sent, Token,
    Transport,
};

use super::tags::Tags;
use super::{Incoming, OfiMatch};
use crate::config::OfiOptions;
use crate::engine::Op;
use crate::fabric::faulty::{self, Fate};
use crate::fabric::{OpId, Took};
use crate::fixture::{self, Ranks};
use crate::open::Use;

/// Opens a rank that follows the script.
fn open(options: &OfiOptions, member: &LocalBootstrap) -> Result<OfiMatch> {
    let mut ofi = OfiMatch::open(options, member)?;
    ofi.bytes.engine.peers.net.make_faulty();
    Ok(ofi)
}

fn check(name: &str, little_data: bool) {
    // The provider shows no unexpected messages.
    if name == "dumps_name_messages_and_peers" {
        return;
    }
    let Some(options) = fixture::options(Use::Matching) else {
        return;
    };
    faulty::be_busy(3);
    let factory = Factory::new(8, move |size, wanted| {
        let options = OfiOptions {
            unexpected_bytes: wanted.unexpected_bytes,
            unexpected_messages: wanted.unexpected_messages,
            little_data,
            ..options.clone()
        };
        let Ranks { ranks, silent } = fixture::open_all(size, &options, open);
        let boxed = |ofi| Box::new(ofi) as Box<dyn MatchTransport>;
        let job = Job::new(ranks.into_iter().map(boxed).collect());
        Ok(job.with_kill(move |rank, transport| fixture::die(&silent, rank, transport)))
    });
    assert_check(name, &factory.boundaries(&[16 * 1024]));
    faulty::clear();
}

mod without_room {
    fn check(name: &str) {
        super::check(name, false);
    }

    tagwire_conformance::match_conformance!(@for_each tests);
}

mod without_room_little_data {
    fn check(name: &str) {
        super::check(name, true);
    }

    tagwire_conformance::match_conformance!(@for_each tests);
}

/// What a rank told.
#[derive(Debug, Default)]
struct Events {
    sent: Vec<(Token, Outcome)>,
    received: Vec<(Token, ReceiveEnd)>,
    probed: Vec<(Token, Option<Found>)>,
    failures: usize,
    breaches: usize,
}

impl MatchUpcalls for Events {
    fn sent(&mut self, token: Token, outcome: Outcome) {
        self.sent.push((token, outcome));
    }

    fn received(&mut self, token: Token, end: ReceiveEnd) {
        self.received.push((token, end));
    }

    fn probed(&mut self, token: Token, found: Option<Found>) {
        self.probed.push((token, found));
    }

    fn peer(&mut self, event: PeerEvent) {
        self.failures += usize::from(matches!(event, PeerEvent::Failed(_)));
        self.breaches += usize::from(matches!(event, PeerEvent::Protocol(..)));
    }
}

/// The bits of a message of the tests.
const BITS: u64 = 42;

/// Short, sent from a buffer of the transport, and announced.
const LENGTHS: [usize; 3] = [8, 4_000, 100_000];

const LONG: usize = LENGTHS[2];

/// Two ranks in contact; the buffers of both.
struct Pair {
    ranks: Vec<OfiMatch>,
    events: [Events; 2],
    /// The second, as the first knows it, and the other way round.
    ends: [EndpointId; 2],
    bytes: Vec<u8>,
    /// Each receive has a place of its own.
    room: Vec<Vec<u8>>,
}

impl Pair {
    fn open() -> Option<Self> {
        Self::open_with(|options| options)
    }

    fn open_with(but: fn(OfiOptions) -> OfiOptions) -> Option<Self> {
        let options = but(fixture::options(Use::Matching)?);
        let Ranks { mut ranks, .. } = fixture::open_all(2, &options, open);
        let addresses = [ranks[1].address(), ranks[0].address()];
        let there = ranks[0].connect(Rank::new(1), &addresses[0]).unwrap();
        let back = ranks[1].connect(Rank::new(0), &addresses[1]).unwrap();
        let mut pair = Self {
            ranks,
            events: Default::default(),
            ends: [there, back],
            bytes: (0..LONG).map(|place| place as u8).collect(),
            room: Vec::new(),
        };
        for from in [0, 1] {
            pair.post(1 - from, Token(0));
            pair.send(from, 8, Token(0));
        }
        pair.until(|pair| pair.events.iter().all(|events| !events.received.is_empty()));
        // What is behind the messages comes too.
        for _ in 0..1000 {
            pair.step();
        }
        pair.events = Default::default();
        Some(pair)
    }

    fn step(&mut self) {
        for (rank, events) in self.ranks.iter_mut().zip(&mut self.events) {
            rank.progress(Lane(0), events);
        }
    }

    fn until(&mut self, mut done: impl FnMut(&mut Self) -> bool) {
        while !done(self) {
            self.step();
        }
    }

    /// Starts a send of `len` bytes, once there is room; returns how that went.
    fn start(&mut self, from: usize, len: usize, token: Token) -> Sent {
        let mut answer = Sent::Busy;
        self.until(|pair| {
            // SAFETY: the bytes are kept longer than the ranks.
            let data = unsafe { SendBuffer::contiguous(pair.bytes.as_ptr(), len) };
            let to = pair.ends[from];
            answer = pair.ranks[from].send(Lane(0), to, BITS, &data, false, token);
            answer != Sent::Busy
        });
        answer
    }

    /// As [`start`](Self::start), to a peer that is there.
    fn send(&mut self, from: usize, len: usize, token: Token) {
        assert_ne!(self.start(from, len, token), Sent::Gone);
    }

    /// Tries to post a receive of the messages of all.
    fn try_post(&mut self, rank: usize, token: Token) -> Posted {
        let mut room = vec![0; LONG];
        // SAFETY: the room is kept longer than the ranks, and stays where it is.
        let data = unsafe { RecvBuffer::contiguous(room.as_mut_ptr(), room.len()) };
        self.room.push(room);
        self.ranks[rank].post(Lane(0), PATTERN, &data, token)
    }

    fn post(&mut self, rank: usize, token: Token) {
        self.until(|pair| pair.try_post(rank, token) == Posted::Open);
    }

    fn probe(&mut self, rank: usize, claim: bool, token: Token) -> Option<Found> {
        self.until(|pair| {
            pair.ranks[rank].probe(Lane(0), PATTERN, claim, token) == Probed::Pending
        });
        self.until(|pair| !pair.events[rank].probed.is_empty());
        let (told, found) = self.events[rank].probed.remove(0);
        assert_eq!(told, token);
        found
    }

    /// Sends messages of all lengths to a rank which posts receives for them before and after: contact
    /// is as good as ever.
    fn exchange(&mut self, from: usize) {
        let to = 1 - from;
        self.events = Default::default();
        for (number, len) in (1..).zip(LENGTHS.into_iter().cycle().take(12)) {
            let token = Token(number);
            if number % 2 == 0 {
                self.post(to, token);
            }
            self.send(from, len, token);
            if number % 2 == 1 {
                self.post(to, token);
            }
            self.until(|pair| !pair.events[to].received.is_empty());
            let end = ReceiveEnd::Matched(envelope(from, len), Outcome::Done(len as u64));
            assert_eq!(self.events[to].received.remove(0), (token, end));
            let room = self.room.last().unwrap();
            assert_eq!(room[..len], self.bytes[..len]);
        }
        self.until(|pair| pair.events[from].sent.len() == 12 / LENGTHS.len());
        assert_eq!(self.trouble(), 0);
    }

    /// Failures and breaches, at both ends.
    fn trouble(&self) -> usize {
        let of_one = |events: &Events| events.failures + events.breaches;
        self.events.iter().map(of_one).sum()
    }
}

const PATTERN: MatchPattern = MatchPattern {
    source: None,
    bits: BITS,
    ignore: 0,
};

fn envelope(source: usize, len: usize) -> MatchEnvelope {
    MatchEnvelope {
        source: Rank::new(source as u32),
        bits: BITS,
        length: len as u64,
    }
}

/// Each call that posts a tagged operation.
#[test]
fn tagged_operations_that_find_no_room_are_made_again() {
    let Some(mut pair) = Pair::open() else { return };
    faulty::be_busy(3);
    for round in 0..10 {
        pair.exchange(round % 2);
        for len in LENGTHS {
            pair.send(0, len, Token(1));
            let mut claim = None;
            pair.until(|pair| {
                claim = pair.probe(1, true, Token(2)).and_then(|found| found.claim);
                claim.is_some()
            });
            let mut room = vec![0; len];
            // SAFETY: the room is kept until the message is in it.
            let data = unsafe { RecvBuffer::contiguous(room.as_mut_ptr(), len) };
            let rank = &mut pair.ranks[1];
            let posted = rank.receive_claimed(Lane(0), claim.unwrap(), &data, Token(3));
            if posted == Posted::Open {
                pair.until(|pair| !pair.events[1].received.is_empty());
                pair.events[1].received.clear();
            }
            assert_eq!(room, pair.bytes[..len]);
        }
    }
    for call in [
        "fi_tinject",
        "fi_tinjectdata",
        "fi_tsend",
        "fi_trecv",
        "fi_trecvmsg",
    ] {
        assert!(faulty::refused(call) > 0, "{call}");
    }
    assert_eq!(pair.trouble(), 0);
}

#[test]
fn a_tagged_send_that_the_provider_cancels_ends_contact_and_ends_once() {
    for (error, len) in [(FI_ECANCELED, LONG), (FI_EIO, LONG), (FI_ECANCELED, 4_000)] {
        let Some(mut pair) = Pair::open() else { return };
        pair.post(1, Token(9));
        faulty::destine(Fate::TaggedSend(error));
        let sent = pair.start(0, len, Token(5));
        pair.until(|pair| pair.events[0].failures > 0);
        for _ in 0..1000 {
            pair.step();
        }
        assert!(faulty::is_fulfilled());
        let ends: &[_] = match sent {
            Sent::Open => &[(Token(5), Outcome::PeerFailed)],
            _ => &[],
        };
        assert_eq!(pair.events[0].sent, ends);
        assert_eq!(pair.events[0].failures, 1);
        assert_eq!(pair.start(0, 8, Token(6)), Sent::Gone);
    }
}

/// The rank itself, as its transport knows it.
fn meet_itself(pair: &mut Pair, rank: usize) -> EndpointId {
    let address = pair.ranks[rank].address();
    let itself = Rank::new(rank as u32);
    pair.ranks[rank].connect(itself, &address).unwrap()
}

/// A receive that waits for bytes of a rank that is gone ends, and its slot goes to a receive that has
/// nothing to do with that: it is not given up, as it would be together with the message that it takes.
#[test]
fn receives_are_not_given_up_with_those_from_the_gone() {
    let Some(mut pair) = Pair::open() else { return };
    let itself = meet_itself(&mut pair, 0);
    pair.post(0, Token(1));
    pair.send(1, LONG, Token(2));
    // It is asked for its bytes, and the one who has them does not look.
    while pair.ranks[0].counts().fetched == 0 || !pair.ranks[0].owed.is_empty() {
        pair.ranks[0].progress(Lane(0), &mut pair.events[0]);
    }
    let op_of = |pair: &Pair, wanted: fn(&Incoming) -> Option<OpId>| {
        let mut all = pair.ranks[0].incoming.iter();
        all.find_map(|(_, one)| wanted(one)).unwrap()
    };
    let waiting = op_of(&pair, |one| match one {
        Incoming::Fetching { op, .. } => *op,
        _ => None,
    });
    faulty::destine(Fate::TaggedSend(FI_EIO));
    assert_eq!(pair.start(0, 4_000, Token(3)), Sent::Done);
    while pair.events[0].received.is_empty() {
        pair.ranks[0].progress(Lane(0), &mut pair.events[0]);
    }
    let end = ReceiveEnd::Matched(envelope(1, LONG), Outcome::PeerFailed);
    assert_eq!(pair.events[0].received, [(Token(1), end)]);
    assert_eq!(pair.try_post(0, Token(4)), Posted::Open);
    let posted = |one: &Incoming| match one {
        Incoming::Posted { op, .. } => *op,
        _ => None,
    };
    let op = op_of(&pair, posted);
    assert_eq!(op.slot(), waiting.slot(), "the slot is used again");
    loop {
        pair.ranks[0].progress(Lane(0), &mut pair.events[0]);
        if pair.ranks[0].bytes.engine.peers.dying.is_empty() {
            break;
        }
    }
    assert_eq!(op_of(&pair, posted), op, "it was posted once");
    assert!(pair.ranks[0].bytes.engine.peers.ops.get(op).is_some());
    pair.ends[0] = itself;
    pair.send(0, 8, Token(5));
    pair.until(|pair| pair.events[0].received.len() == 2);
    let end = ReceiveEnd::Matched(envelope(0, 8), Outcome::Done(8));
    assert_eq!(pair.events[0].received[1], (Token(4), end));
}

/// A post of the bytes that were asked for, which the provider refuses for good.
#[test]
fn tagged_sends_that_are_refused_end_contact() {
    for (call, len) in [
        ("fi_tinject", 8),
        ("fi_tsend", 4_000),
        ("fi_tinjectdata", LONG),
        ("fi_tsend", LONG),
    ] {
        let Some(mut pair) = Pair::open() else { return };
        pair.post(1, Token(9));
        faulty::answer(call, FI_EIO);
        let sent = pair.start(0, len, Token(5));
        pair.until(|pair| pair.events[0].failures > 0);
        assert!(faulty::is_fulfilled());
        match sent {
            Sent::Open => assert_eq!(pair.events[0].sent, [(Token(5), Outcome::PeerFailed)]),
            other => assert_eq!((other, pair.events[0].sent.len()), (Sent::Gone, 0)),
        }
        assert_eq!(pair.start(0, 8, Token(6)), Sent::Gone);
    }
}

/// Its message is lost, as far as the provider reports, but it waits for the next: nobody has asked to
/// take it back.
#[test]
fn a_receive_that_fails_or_is_cancelled_unasked_stays_posted() {
    for error in [FI_ECANCELED, FI_EIO] {
        let Some(mut pair) = Pair::open() else { return };
        pair.post(1, Token(1));
        faulty::destine(Fate::TaggedReceive(error));
        pair.send(0, 8, Token(5));
        pair.until(|_| faulty::is_fulfilled());
        assert_eq!(pair.events[1].received, []);
        pair.send(0, 4_000, Token(6));
        pair.until(|pair| !pair.events[1].received.is_empty());
        let end = ReceiveEnd::Matched(envelope(0, 4_000), Outcome::Done(4_000));
        assert_eq!(pair.events[1].received, [(Token(1), end)]);
        pair.exchange(0);
        pair.exchange(1);
    }
}

/// The cancellation is the provider's own.
#[test]
fn a_receive_that_is_taken_back_ends_once() {
    let Some(mut pair) = Pair::open() else { return };
    pair.post(1, Token(1));
    assert_eq!(pair.ranks[1].cancel(Lane(0), Token(1)), Cancel::Pending);
    pair.until(|pair| !pair.events[1].received.is_empty());
    assert_eq!(pair.events[1].received, [(Token(1), ReceiveEnd::Cancelled)]);
    pair.exchange(0);
}

/// The bytes of a long message do not come: whoever waits for them hears that its peer has failed.
#[test]
fn a_transfer_that_the_provider_cancels_ends_contact() {
    let Some(mut pair) = Pair::open() else { return };
    pair.post(1, Token(1));
    pair.send(0, LONG, Token(5));
    // The announcement has matched; what is behind it comes next.
    pair.until(|pair| pair.ranks[1].counts().fetched > 0 && pair.ranks[1].owed.is_empty());
    faulty::destine(Fate::TaggedReceive(FI_ECANCELED));
    pair.until(|pair| !pair.events[1].received.is_empty());
    let end = ReceiveEnd::Matched(envelope(0, LONG), Outcome::PeerFailed);
    assert_eq!(pair.events[1].received, [(Token(1), end)]);
    pair.until(|pair| pair.events[1].failures > 0);
    assert_eq!(pair.start(1, 8, Token(6)), Sent::Gone);
}

/// Only a stranger, or a peer that keeps to no rules, sends what is longer than any message that goes at
/// once; the error is the provider's own.
#[test]
fn a_tagged_message_that_is_cut_is_a_message_all_the_same() {
    let Some(mut pair) = Pair::open() else { return };
    pair.post(1, Token(1));
    let len = 3 * pair.ranks[1].rooms.longest;
    let tag = pair.ranks[0].tags.message(Rank::new(0), BITS);
    send_raw(&mut pair, tag, len);
    pair.until(|pair| !pair.events[1].received.is_empty());
    let (token, end) = pair.events[1].received.remove(0);
    let ReceiveEnd::Matched(seen, Outcome::Done(_)) = end else {
        panic!("{end:?}");
    };
    assert_eq!(
        (token, seen.source, seen.bits),
        (Token(1), Rank::new(0), BITS)
    );
    pair.exchange(0);
    pair.exchange(1);
}

/// The same of the provider's word for it alone, of which the true length is known.
#[test]
fn a_message_that_is_said_to_be_cut_is_taken() {
    let Some(mut pair) = Pair::open() else { return };
    faulty::destine(Fate::TaggedReceive(FI_ETRUNC.into()));
    pair.exchange(0);
    assert!(faulty::is_fulfilled());
}

/// More, or fewer, bytes than were asked for: no correct peer sends that.
#[test]
fn a_peer_that_sends_other_bytes_than_asked_for_is_given_up() {
    for len in [LONG + 1, LONG - 1] {
        let Some(mut pair) = Pair::open() else { return };
        pair.bytes.push(0);
        pair.post(1, Token(1));
        pair.send(0, LONG, Token(5));
        // The first does not look at what is asked for.
        while pair.ranks[1].counts().fetched == 0 || !pair.ranks[1].owed.is_empty() {
            let (rank, events) = (&mut pair.ranks[1], &mut pair.events[1]);
            rank.progress(Lane(0), events);
            pair.ranks[0]
                .bytes
                .engine
                .progress(&mut super::Collect(&mut Vec::new()));
        }
        let slot = pair.ranks[1].incoming.iter().find(|(_, one)| one.moves());
        let number = pair.ranks[1].incoming.number(slot.unwrap().0, 32, 62);
        send_raw(&mut pair, Tags::private(number.unwrap()), len);
        while pair.events[1].received.is_empty() {
            pair.ranks[1].progress(Lane(0), &mut pair.events[1]);
            pair.ranks[0]
                .bytes
                .engine
                .progress(&mut super::Collect(&mut Vec::new()));
        }
        let end = ReceiveEnd::Matched(envelope(0, LONG), Outcome::PeerFailed);
        assert_eq!(pair.events[1].received, [(Token(1), end)]);
        pair.ranks[1].progress(Lane(0), &mut pair.events[1]);
        assert_eq!(pair.events[1].breaches, 1, "{len}");
        assert_eq!(pair.start(1, 8, Token(6)), Sent::Gone);
    }
}

/// Sends from the first rank what its transport would not.
fn send_raw(pair: &mut Pair, tag: u64, len: usize) {
    let to = pair.ends[0];
    // SAFETY: the bytes are kept longer than the ranks.
    let data = unsafe { SendBuffer::contiguous(pair.bytes.as_ptr(), len) };
    let region = data.region().unwrap();
    let engine = &mut pair.ranks[0].bytes.engine;
    let peer = engine.peers.links[to].peer.unwrap();
    let op = engine.peers.ops.insert(Op::Orphan);
    // SAFETY: as above.
    while unsafe {
        engine
            .peers
            .net
            .send_region_tagged(peer, tag, region, None, op)
    } != Took::Yes
    {
        engine.progress(&mut super::Collect(&mut Vec::new()));
    }
}

/// A look that fails has seen nothing, and neither has a claim; what they stopped goes on.
#[test]
fn looks_and_claims_that_fail_have_seen_nothing() {
    let Some(mut pair) = Pair::open() else { return };
    for claim in [false, true] {
        pair.send(0, 8, Token(5));
        pair.until(|pair| pair.probe(1, false, Token(1)).is_some());
        faulty::destine(Fate::TaggedReceive(FI_EIO));
        assert_eq!(pair.probe(1, claim, Token(2)), None);
        assert!(faulty::is_fulfilled());
        assert_eq!(pair.ranks[1].claiming, 0);
        pair.post(1, Token(3));
        pair.until(|pair| !pair.events[1].received.is_empty());
        pair.exchange(0);
    }
}

/// The word of it is read, comes as an error that is no operation's, and stays so or not. The receives
/// of any source have to be taken back by who posted them, of which the provider reports nothing any more.
#[test]
fn a_queue_that_ran_over_ends_contact_and_all_operations() {
    let overrun = FI_EOVERRUN.into();
    for fate in [Fate::Queue(overrun), Fate::Event(overrun), Fate::Overrun] {
        let Some(mut pair) = Pair::open() else { return };
        pair.post(0, Token(1));
        assert_eq!(pair.start(0, LONG, Token(5)), Sent::Open);
        faulty::destine(fate);
        while pair.events[0].sent.is_empty() || pair.events[0].failures == 0 {
            pair.ranks[0].progress(Lane(0), &mut pair.events[0]);
        }
        assert_eq!(pair.events[0].sent, [(Token(5), Outcome::PeerFailed)]);
        assert_eq!(pair.events[0].failures, 1);
        assert_eq!(pair.start(0, 8, Token(6)), Sent::Gone);
        pair.step();
        assert_eq!(pair.ranks[0].cancel(Lane(0), Token(1)), Cancel::Cancelled);
        assert_eq!(pair.events[0].received, []);
        faulty::clear();
    }
}

/// Nothing is written to the buffer of a receive that was taken back after the queue had run over,
/// though the peer lives, and sends: the provider is not driven any more.
#[test]
fn a_queue_that_ran_over_leaves_buffers_alone() {
    let Some(mut pair) = Pair::open() else { return };
    pair.post(0, Token(1));
    faulty::destine(Fate::Queue(FI_EOVERRUN.into()));
    while pair.events[0].failures == 0 {
        pair.ranks[0].progress(Lane(0), &mut pair.events[0]);
    }
    if pair.ranks[0].cancel(Lane(0), Token(1)) == Cancel::Pending {
        while pair.events[0].received.is_empty() {
            pair.ranks[0].progress(Lane(0), &mut pair.events[0]);
        }
    }
    for token in 0..2000 {
        // SAFETY: the bytes are kept longer than the ranks.
        let data = unsafe { SendBuffer::contiguous(pair.bytes.as_ptr(), 4_000) };
        let to = pair.ends[1];
        let _ = pair.ranks[1].send(Lane(0), to, BITS, &data, false, Token(token));
        pair.step();
    }
    let room = pair.room.last().unwrap();
    assert!(room.iter().all(|byte| *byte == 0), "the peer wrote to it");
}

/// What a rank does whose queue ran over has an end all the same, and nothing of it reaches the
/// provider.
#[test]
fn operations_after_the_queue_ran_over_end() {
    let Some(mut pair) = Pair::open() else { return };
    pair.send(1, 8, Token(1));
    pair.until(|pair| pair.probe(0, false, Token(1)).is_some());
    // A look is under way, and another waits for room.
    faulty::destine(Fate::Held);
    let (rank, events) = (&mut pair.ranks[0], &mut pair.events[0]);
    assert_eq!(
        rank.probe(Lane(0), PATTERN, false, Token(2)),
        Probed::Pending
    );
    while !faulty::is_fulfilled() {
        rank.progress(Lane(0), events);
    }
    let slot = rank.incoming.enter(Incoming::Looking {
        token: Token(3),
        pattern: rank.tags.pattern(&PATTERN),
        claim: false,
    });
    faulty::be_busy(u32::MAX);
    rank.owed.push_back(super::Owed::Receive(slot));
    faulty::destine(Fate::Queue(FI_EOVERRUN.into()));
    while events.failures == 0 || events.probed.len() < 2 {
        rank.progress(Lane(0), events);
    }
    faulty::clear();
    events.probed.sort_by_key(|(token, _)| token.0);
    assert_eq!(events.probed, [(Token(2), None), (Token(3), None)]);
    let probed = rank.probe(Lane(0), PATTERN, true, Token(4));
    assert_eq!((probed, rank.claiming), (Probed::Nothing, 0));
    assert_eq!(pair.try_post(0, Token(5)), Posted::Open);
    pair.step();
    assert_eq!(pair.ranks[0].cancel(Lane(0), Token(5)), Cancel::Cancelled);
    assert_eq!(pair.events[0].received, []);
    assert_eq!(pair.ranks[0].unfinished(), 0);
    assert_eq!(pair.ranks[0].incoming.iter().count(), 0);
}

/// A transfer that is under way then ends, at either end, each once.
#[test]
fn a_queue_that_ran_over_ends_transfers() {
    for lost in [0, 1] {
        let Some(mut pair) = Pair::open() else { return };
        pair.post(1, Token(1));
        pair.send(0, LONG, Token(5));
        pair.until(|pair| pair.ranks[1].counts().fetched > 0 && pair.ranks[1].owed.is_empty());
        faulty::destine(Fate::Overrun);
        let is_over = |events: &Events| events.sent.len() + events.received.len() > 0;
        while !is_over(&pair.events[lost]) || pair.events[lost].failures == 0 {
            pair.ranks[lost].progress(Lane(0), &mut pair.events[lost]);
        }
        let events = &pair.events[lost];
        let end = ReceiveEnd::Matched(envelope(0, LONG), Outcome::PeerFailed);
        match lost {
            0 => assert_eq!(events.sent, [(Token(5), Outcome::PeerFailed)]),
            _ => assert_eq!(events.received, [(Token(1), end)]),
        }
        faulty::clear();
    }
}

/// Who can post no receive hears nobody: that is told, not waited for.
#[test]
fn a_provider_that_takes_no_tagged_receives_ends_contact() {
    let Some(mut pair) = Pair::open() else { return };
    faulty::answer("fi_trecv", FI_EINVAL);
    assert_eq!(pair.try_post(1, Token(1)), Posted::Busy);
    pair.until(|pair| pair.events[1].failures > 0);
    assert_eq!(pair.start(1, 8, Token(2)), Sent::Gone);
}

/// A flood leaves a sender room for the message that its receiver waits for.
#[test]
fn more_sends_are_open_than_a_flood_has() {
    const FLOOD: u64 = 300_000;
    let Some(mut pair) = Pair::open() else { return };
    for number in 1..=FLOOD {
        // It does not get there, where the provider would keep 16 KiB for it.
        faulty::answer("fi_tinjectdata", 0);
        // SAFETY: the bytes are kept longer than the ranks.
        let data = unsafe { SendBuffer::contiguous(pair.bytes.as_ptr(), LONG) };
        let (to, token) = (pair.ends[0], Token(number));
        let sent = pair.ranks[0].send(Lane(0), to, BITS, &data, false, token);
        assert_eq!(sent, Sent::Open, "send {number}");
    }
    assert!(faulty::is_fulfilled());
    pair.exchange(0);
}

/// What a rank announced that is gone is taken out, however often the provider has no room for that.
#[test]
fn what_the_gone_announced_is_swept_without_room_as_well() {
    let Some(mut pair) = Pair::open() else { return };
    for number in 0..5 {
        assert_eq!(pair.start(0, LONG, Token(number)), Sent::Open);
    }
    pair.until(|pair| pair.probe(1, false, Token(1)).is_some());
    for _ in 0..1000 {
        pair.step();
    }
    faulty::be_busy(3);
    pair.ranks[1].peer_failed(Rank::new(0), &mut pair.events[1]);
    while pair.events[1].failures == 0 {
        pair.ranks[1].progress(Lane(0), &mut pair.events[1]);
    }
    let back = pair.ranks[1].tags.announced_by(Rank::new(0));
    let ranks = &mut pair.ranks;
    let slot = ranks[1].incoming.enter(Incoming::Sweeping);
    faulty::be_busy(0);
    let step = ranks[1].sweep_step(slot, |net, _, op| net.peek(back, op));
    assert!(matches!(step, super::sweep::Step::Nothing), "{step:?}");
}

/// A look of the sweep that ends late is not taken for the operation that is next in its place.
#[test]
fn a_sweep_that_gets_no_answer_leaves_nothing_behind() {
    let Some(mut pair) = Pair::open() else { return };
    assert_eq!(pair.start(0, LONG, Token(5)), Sent::Open);
    pair.until(|pair| pair.probe(1, false, Token(1)).is_some());
    faulty::destine(Fate::Held);
    pair.ranks[1].peer_failed(Rank::new(0), &mut pair.events[1]);
    while pair.events[1].failures == 0 {
        pair.ranks[1].progress(Lane(0), &mut pair.events[1]);
    }
    assert!(faulty::is_fulfilled());
    assert_eq!(pair.try_post(1, Token(2)), Posted::Open);
    faulty::let_go();
    for _ in 0..1000 {
        pair.ranks[1].progress(Lane(0), &mut pair.events[1]);
    }
    assert_eq!(pair.events[1].received, []);
    assert_eq!(pair.ranks[1].incoming.iter().count(), 1, "the receive");
    // It is still a receive as all are.
    pair.ends[1] = meet_itself(&mut pair, 1);
    pair.send(1, 8, Token(7));
    pair.until(|pair| !pair.events[1].received.is_empty());
    let end = ReceiveEnd::Matched(envelope(1, 8), Outcome::Done(8));
    assert_eq!(pair.events[1].received, [(Token(2), end)]);
    // And was one: the next has its bytes in its own room.
    pair.post(1, Token(3));
    pair.send(1, 4_000, Token(8));
    pair.until(|pair| pair.events[1].received.len() == 2);
    assert_eq!(pair.room.last().unwrap()[..4_000], pair.bytes[..4_000]);
}

/// A receive that waits for room is taken back, and a look gets its place: it is made once.
#[test]
fn what_is_owed_to_a_receive_is_forgotten_with_it() {
    let Some(mut pair) = Pair::open() else { return };
    pair.post(1, Token(1));
    // It is to be posted again, for which there is no room.
    faulty::destine(Fate::TaggedReceive(FI_EIO));
    pair.send(0, 8, Token(5));
    faulty::be_busy(u32::MAX);
    while pair.ranks[1].owed.is_empty() {
        pair.ranks[1].progress(Lane(0), &mut pair.events[1]);
    }
    assert_eq!(pair.ranks[1].cancel(Lane(0), Token(1)), Cancel::Cancelled);
    assert_eq!(pair.ranks[1].unfinished(), 0);
    faulty::be_busy(0);
    assert_eq!(pair.probe(1, false, Token(2)), None);
    pair.exchange(0);
}

/// A receive that is posted again keeps out of the way of a claim, whose message it would take.
#[test]
fn a_receive_that_is_posted_again_waits_for_claims() {
    let Some(mut pair) = Pair::open() else { return };
    pair.post(1, Token(1));
    pair.send(0, 8, Token(5));
    faulty::destine(Fate::TaggedReceive(FI_EIO));
    pair.ranks[1].claiming = 1;
    pair.until(|pair| !pair.ranks[1].owed.is_empty());
    for _ in 0..1000 {
        pair.step();
    }
    assert_eq!(pair.ranks[1].unfinished(), 1);
    pair.ranks[1].claiming = 0;
    pair.until(|pair| pair.ranks[1].unfinished() == 0);
    pair.send(0, 8, Token(6));
    pair.until(|pair| !pair.events[1].received.is_empty());
}
