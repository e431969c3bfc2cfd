//! What peers tell that no correct one does, and what providers return that few do. Skipped, loudly,
//! where there is no libfabric.
#![allow(unsafe_code)]

use std::time::Duration;

use tagwire_base::bootstrap::LocalJob;
use tagwire_base::{ManualClock, Rank};
use tagwire_libfabric_sys::bindings::{
    FI_ECANCELED, FI_ECONNREFUSED, FI_ECONNRESET, FI_EHOSTUNREACH, FI_EIO, FI_ENETDOWN,
    FI_ENETUNREACH, FI_EOVERRUN, FI_ETRUNC,
};
use tagwire_transport::{
    AmHeader, Arrival, Class, EndpointId, Error, Outcome, PeerEvent, Post, SendBuffer, Token,
};

use super::peers::{END_LIMIT, WAY_LIMIT};
use super::{Engine, Op, Sink};
use crate::config::OfiOptions;
use crate::fabric::faulty::{self, Fate};
use crate::fabric::{Completion, Fault, Took};
use crate::fixture;
use crate::open::{Use, open_info};
use crate::wire::{self, Greets, HEADER, Header, Kind, MAX_HELLO, NO_SLOT};

/// What an engine told.
#[derive(Default)]
struct Events {
    peers: Vec<PeerEvent>,
    messages: Vec<u64>,
    /// The bytes of the last message.
    bytes: Vec<u8>,
    ends: Vec<(Token, Outcome)>,
    /// Tagged operations that failed.
    given_up: Vec<u32>,
}

impl Sink for Events {
    fn deliver(&mut self, arrival: Arrival<'_>) {
        self.messages.push(arrival.header.0[0]);
        self.bytes = arrival.payload.to_vec();
    }

    fn complete(&mut self, token: Token, outcome: Outcome) {
        self.ends.push((token, outcome));
    }

    fn tagged(&mut self, number: u32, end: Result<Completion, Fault>) {
        if end.is_err() {
            self.given_up.push(number);
        }
    }

    fn peer(&mut self, event: PeerEvent) {
        self.peers.push(event);
    }
}

impl Engine {
    /// Whether many messages come into one block.
    pub(crate) const fn receives_many(&self) -> bool {
        self.receives.multi
    }
}

impl Events {
    /// How often a peer was said to have failed.
    fn failures(&self) -> usize {
        let failed = |event: &&PeerEvent| matches!(event, PeerEvent::Failed(_));
        self.peers.iter().filter(failed).count()
    }
}

/// Waiting ranks leave their core to threads of the provider, where it has such.
#[test]
fn providers_with_threads_are_known() {
    let Some(options) = fixture::options(Use::Bytes) else {
        return;
    };
    for (provider, has_threads) in [("tcp;ofi_rxm", false), ("sockets", true)] {
        let options = OfiOptions {
            provider: provider.to_owned(),
            ..options.clone()
        };
        let job = LocalJob::new(1).unwrap();
        match open_info(&options, 1, Use::Bytes) {
            Ok(info) => {
                let engine = Engine::open(info, &options, &job.member(Rank::new(0))).unwrap();
                assert_eq!(engine.has_threads(), has_threads, "{provider}");
            }
            Err(error) => println!("SKIPPED: {error}"),
        }
    }
}

/// Two ranks over TCP, of which the first can reach the second; nothing without a libfabric.
fn pair() -> Option<([Engine; 2], EndpointId)> {
    Some(pair_by(&fixture::options(Use::Bytes)?))
}

/// The same by options.
fn pair_by(options: &OfiOptions) -> ([Engine; 2], EndpointId) {
    let job = LocalJob::new(2).unwrap();
    let [mut one, two] = [0, 1].map(|rank| {
        let info = open_info(options, 2, Use::Bytes).unwrap();
        Engine::open(info, options, &job.member(Rank::new(rank))).unwrap()
    });
    let to = one
        .peers
        .connect(Rank::new(1), &two.peers.address())
        .unwrap();
    ([one, two], to)
}

/// Two ranks that have exchanged a message each way, and what they heard.
fn acquainted() -> Option<Acquainted> {
    Some(acquaint(pair()?))
}

/// Two ranks that know each other, what they heard, and how each calls the other.
type Acquainted = ([Engine; 2], [Events; 2], [EndpointId; 2]);

/// Lets two ranks, of which the first can reach the second, exchange a message each way.
fn acquaint(([mut one, mut two], there): ([Engine; 2], EndpointId)) -> Acquainted {
    let back = two
        .peers
        .connect(Rank::new(0), &one.peers.address())
        .unwrap();
    let mut events = [Events::default(), Events::default()];
    let mut said = [false; 2];
    while events.iter().any(|events| events.messages.is_empty()) {
        if !said[0] {
            said[0] = one.peers.post(there, Class::Data, AmHeader([0, 0]), &[]) == Post::Posted;
        }
        if !said[1] {
            said[1] = two.peers.post(back, Class::Data, AmHeader([0, 0]), &[]) == Post::Posted;
        }
        one.progress(&mut events[0]);
        two.progress(&mut events[1]);
    }
    // The other's completions come too.
    for _ in 0..1000 {
        one.progress(&mut events[0]);
        two.progress(&mut events[1]);
    }
    events.iter_mut().for_each(|events| events.messages.clear());
    ([one, two], events, [there, back])
}

/// Numbers and credits wrap, with a window that is full on the way.
#[test]
fn numbers_of_messages_wrap() {
    let Some(options) = fixture::options(Use::Bytes) else {
        return;
    };
    for before in [1, 2, 3, 200] {
        let options = OfiOptions {
            first_message: 0_u32.wrapping_sub(before),
            ..options.clone()
        };
        let (mut ranks, mut events, [to, back]) = acquaint(pair_by(&options));
        exchange(&mut ranks, &mut events, to, (1..1000, 100));
        ranks.reverse();
        events.reverse();
        exchange(&mut ranks, &mut events, back, (1..1000, 100));
        for events in &events {
            assert_eq!(events.peers.len(), 1, "from {before} before the wrap");
        }
    }
}

/// Three ranks over TCP, of which the first has met both others; what they heard, and how the first
/// calls the others.
fn three() -> Option<(Vec<Engine>, Vec<Events>, [EndpointId; 2])> {
    let options = fixture::options(Use::Bytes)?;
    let mut ranks = fixture::open_all(3, &options, |options, member| {
        let info = open_info(options, 3, Use::Bytes)?;
        Engine::open(info, options, member)
    })
    .ranks;
    let mut events: Vec<Events> = (0..3).map(|_| Events::default()).collect();
    let to = [1, 2].map(|other| {
        let address = ranks[other].peers.address();
        let to = ranks[0]
            .peers
            .connect(Rank::new(other as u32), &address)
            .unwrap();
        let mut said = false;
        while events[other].messages.is_empty() {
            said =
                said || ranks[0].peers.post(to, Class::Data, AmHeader([0, 0]), &[]) == Post::Posted;
            for (rank, events) in ranks.iter_mut().zip(&mut events) {
                rank.progress(events);
            }
        }
        to
    });
    // The completions of what was said come too.
    while ranks[0]
        .peers
        .links
        .iter()
        .any(|(_, link)| link.sending > 0)
    {
        ranks[0].progress(&mut events[0]);
    }
    events.iter_mut().for_each(|events| events.messages.clear());
    Some((ranks, events, to))
}

/// Lends `bytes` to a message, which has to be taken; returns the slot of the operation.
fn lend(rank: &mut Engine, to: EndpointId, bytes: &[u8], token: Token) -> u32 {
    // SAFETY: callers keep the bytes longer than the ranks.
    let data = unsafe { SendBuffer::contiguous(bytes.as_ptr(), bytes.len()) };
    let data = data.region().unwrap();
    // SAFETY: as above.
    let posted = unsafe {
        rank.peers
            .post_zero_copy(to, AmHeader([token.0, 0]), data, None, token)
    };
    assert_eq!(posted, Post::Posted);
    let is_it = |op: &Op| matches!(op, Op::ZeroCopy { token: one, .. } if *one == token);
    let (op, _) = rank.peers.ops.iter().find(|(_, op)| is_it(op)).unwrap();
    op.slot()
}

/// Sends messages of the numbers, of `len` bytes, and waits until the last has come.
fn exchange(
    [one, two]: &mut [Engine; 2],
    events: &mut [Events; 2],
    to: EndpointId,
    (numbers, len): (std::ops::Range<u64>, usize),
) {
    let bytes = vec![7; len];
    let last = numbers.end - 1;
    for number in numbers {
        while one
            .peers
            .post(to, Class::Data, AmHeader([number, 0]), &bytes)
            == Post::Busy
        {
            one.progress(&mut events[0]);
            two.progress(&mut events[1]);
        }
    }
    while events[1].messages.last() != Some(&last) {
        one.progress(&mut events[0]);
        two.progress(&mut events[1]);
    }
}

/// Of each call that moves messages.
#[test]
fn a_provider_without_room_makes_senders_wait() {
    let Some((mut ranks, mut events, [to, _])) = acquainted() else {
        return;
    };
    ranks
        .iter_mut()
        .for_each(|rank| rank.peers.net.make_faulty());
    faulty::be_busy(3);
    for len in [8, 4000] {
        exchange(&mut ranks, &mut events, to, (0..300, len));
        let expected: Vec<u64> = (0..300).collect();
        assert_eq!(events[1].messages, expected, "{len} bytes");
        events[1].messages.clear();
    }
    let bytes = vec![7; 1000];
    for number in 0..30 {
        // SAFETY: the bytes live longer than the ranks.
        let data = unsafe { SendBuffer::contiguous(bytes.as_ptr(), bytes.len()) };
        let post = |rank: &mut Engine| {
            let data = data.region().unwrap();
            // SAFETY: as above.
            unsafe {
                rank.peers
                    .post_zero_copy(to, AmHeader([number, 0]), data, None, Token(number))
            }
        };
        while post(&mut ranks[0]) == Post::Busy {
            ranks[0].progress(&mut events[0]);
            ranks[1].progress(&mut events[1]);
        }
    }
    while events[1].messages.len() < 30 || events[0].ends.len() < 30 {
        ranks[0].progress(&mut events[0]);
        ranks[1].progress(&mut events[1]);
    }
    let ended = |number| (Token(number), Outcome::Done(bytes.len() as u64));
    assert_eq!(events[0].ends, (0..30).map(ended).collect::<Vec<_>>());
    for call in ["fi_inject", "fi_send", "fi_sendmsg", "fi_recvmsg"] {
        assert!(faulty::refused(call) > 0, "{call}");
    }
    faulty::be_busy(0);
    assert_eq!(events[0].failures() + events[1].failures(), 0);
}

/// Each look that finds nothing is a call of the system over sockets.
#[test]
fn nothing_is_looked_for_between_a_message_and_its_answer() {
    let Some((mut ranks, mut events, [to, _])) = acquainted() else {
        return;
    };
    ranks[1].peers.net.make_faulty();
    for number in 0..10 {
        let header = AmHeader([number, 0]);
        while ranks[0].peers.post(to, Class::Data, header, &[]) != Post::Posted {
            ranks[0].progress(&mut events[0]);
        }
        let mut looks = 0;
        while events[1].messages.len() as u64 == number {
            ranks[0].progress(&mut events[0]);
            looks = faulty::reads();
            ranks[1].progress(&mut events[1]);
        }
        assert_eq!(faulty::reads() - looks, 1, "message {number}");
    }
}

#[test]
fn a_send_that_the_provider_cancels_ends_contact_and_ends_once() {
    let bytes = vec![7; 1000];
    for error in [FI_ECANCELED, FI_EIO] {
        let Some((mut ranks, mut events, [to, _])) = acquainted() else {
            return;
        };
        ranks[0].peers.net.make_faulty();
        faulty::destine(Fate::Send(error));
        // SAFETY: the bytes live longer than the ranks.
        let data = unsafe { SendBuffer::contiguous(bytes.as_ptr(), bytes.len()) };
        let data = data.region().unwrap();
        // SAFETY: as above.
        let posted = unsafe {
            ranks[0]
                .peers
                .post_zero_copy(to, AmHeader([1, 0]), data, None, Token(5))
        };
        assert_eq!(posted, Post::Posted);
        while events[0].ends.is_empty() {
            ranks[0].progress(&mut events[0]);
        }
        assert!(faulty::is_fulfilled());
        for _ in 0..1000 {
            ranks[0].progress(&mut events[0]);
        }
        assert_eq!(events[0].ends, [(Token(5), Outcome::PeerFailed)]);
        assert_eq!(events[0].failures(), 1);
        let again = ranks[0].peers.post(to, Class::Data, AmHeader([2, 0]), &[]);
        assert_eq!(again, Post::Gone);
    }
}

/// A send to a rank that is gone has ended, and its slot is another's before the time is over after
/// which operations with the gone are given up: that one is not given up.
#[test]
fn operations_with_the_living_are_not_given_up_with_the_gone() {
    let Some((mut ranks, mut events, [gone, living])) = three() else {
        return;
    };
    let hand = ManualClock::default();
    (ranks[0].peers.clock, ranks[0].goodbyes.timeout) = (hand.clock(), Duration::ZERO);
    let bytes = vec![7; 60_000];
    ranks[0].peers.net.make_faulty();
    faulty::destine(Fate::Send(FI_EIO));
    let slot = lend(&mut ranks[0], gone, &bytes[..1000], Token(5));
    while events[0].ends.is_empty() {
        ranks[0].progress(&mut events[0]);
    }
    assert_eq!(events[0].ends, [(Token(5), Outcome::PeerFailed)]);
    assert_eq!(events[0].failures(), 1);
    // It asks the receiver, who computes, before it is sent.
    let again = lend(&mut ranks[0], living, &bytes, Token(9));
    assert_eq!(again, slot, "the slot is used again");
    hand.advance(END_LIMIT);
    ranks[0].progress(&mut events[0]);
    assert!(ranks[0].peers.dying.is_empty());
    assert_eq!(events[0].ends.len(), 1, "{:?}", events[0].ends);
    while events[0].ends.len() < 2 || events[2].messages.is_empty() {
        ranks[0].progress(&mut events[0]);
        ranks[2].progress(&mut events[2]);
    }
    let done = Outcome::Done(bytes.len() as u64);
    assert_eq!(events[0].ends[1], (Token(9), done));
    assert_eq!(
        (&events[2].messages[..], &events[2].bytes),
        (&[9][..], &bytes)
    );
    assert_eq!(events[0].failures(), 1);
}

/// What the provider never ends is given up once its time is over, by the rank's clock, and no earlier.
#[test]
fn operations_with_the_gone_are_given_up_on_time() {
    let Some((mut ranks, mut events, _)) = acquainted() else {
        return;
    };
    let hand = ManualClock::default();
    (ranks[0].peers.clock, ranks[0].goodbyes.timeout) = (hand.clock(), Duration::ZERO);
    // An operation that the provider knows nothing of does not end by itself.
    let op = ranks[0].peers.ops.insert(Op::Tagged { number: 3 });
    ranks[0].peers.give_up_soon(op);
    hand.advance(END_LIMIT - Duration::from_nanos(1));
    for _ in 0..100 {
        ranks[0].progress(&mut events[0]);
    }
    assert!(!ranks[0].peers.dying.is_empty());
    assert_eq!(events[0].given_up, []);
    hand.advance(Duration::from_nanos(1));
    ranks[0].progress(&mut events[0]);
    assert!(ranks[0].peers.dying.is_empty());
    assert_eq!(events[0].given_up, [3]);
}

/// Two ranks that go on after a receive of one ended with `error`, though nobody's message was in it.
fn after_a_receive_failed(error: u64) -> Option<[Events; 2]> {
    let (mut ranks, mut events, [to, back]) = acquainted()?;
    ranks[0].peers.net.make_faulty();
    faulty::destine(Fate::Receive(error));
    let there = ranks[1].peers.links[back].peer.unwrap();
    while ranks[1].peers.net.inject(there, &[0xff; 100]) == Took::Busy {
        ranks[1].progress(&mut events[1]);
    }
    while !faulty::is_fulfilled() {
        ranks[1].progress(&mut events[1]);
        ranks[0].progress(&mut events[0]);
    }
    exchange(&mut ranks, &mut events, to, (1..300, 100));
    ranks.reverse();
    events.reverse();
    exchange(&mut ranks, &mut events, back, (1..300, 100));
    Some(events)
}

/// A hello that was overheard says nothing new; one that is longer than any is not kept. Both ranks go on.
#[test]
fn a_hello_that_was_overheard_breaks_nothing() {
    let Some((mut ranks, mut events, [to, back])) = acquainted() else {
        return;
    };
    let overheard = |stamp: u32, engine: &Engine| {
        let identity = &engine.peers.identity;
        let (slot, first) = (u64::from(back.0), 0);
        let header = Header {
            sequence: first,
            kind: Kind::Hello,
            source: identity.rank,
            stamp,
            slot: NO_SLOT,
            credit: 0,
            words: AmHeader([slot, 0]),
        };
        let to = Rank::new(0);
        let greets = Greets {
            stamp,
            first,
            slot,
            to,
        };
        let payload = wire::hello(&identity.secret, &identity.address, greets);
        [&header.encode()[..], &payload].concat()
    };
    let own = ranks[1].peers.identity.stamp;
    let again = overheard(own, &ranks[1]);
    // The same under a number of nobody, behind whose proof there is more than a hello has.
    let mut long = overheard(!own, &ranks[1]);
    long.resize(HEADER + MAX_HELLO + 1, 0);
    let there = ranks[1].peers.links[back].peer.unwrap();
    for (hello, why) in [(again, "said before"), (long, "a stranger")] {
        let heard = events[0].peers.len();
        let inject_size = ranks[1].peers.inject_size();
        if hello.len() > inject_size {
            eprintln!("SKIPPED: the provider injects {inject_size} bytes");
            continue;
        }
        while ranks[1].peers.net.inject(there, &hello) == Took::Busy {
            ranks[1].progress(&mut events[1]);
        }
        while events[0].peers.len() == heard {
            ranks[1].progress(&mut events[1]);
            ranks[0].progress(&mut events[0]);
        }
        let told = format!("{:?}", events[0].peers.last());
        assert!(
            told.contains("Protocol(None") && told.contains(why),
            "{told}"
        );
    }
    exchange(&mut ranks, &mut events, to, (1..300, 100));
    ranks.reverse();
    events.reverse();
    exchange(&mut ranks, &mut events, back, (1..300, 100));
}

/// Only a stranger can have sent what is longer than any message: nobody else suffers.
#[test]
fn a_message_that_is_cut_is_nobodys() {
    let Some(events) = after_a_receive_failed(FI_ETRUNC.into()) else {
        return;
    };
    assert_eq!(events[0].peers.len() + events[1].peers.len(), 2, "they met");
}

/// The queue is read with that result, or has an error that is no operation's, and it stays so or not.
#[test]
fn a_queue_that_ran_over_ends_contact_with_all() {
    let overrun = FI_EOVERRUN.into();
    for fate in [Fate::Queue(overrun), Fate::Event(overrun), Fate::Overrun] {
        let Some((mut ranks, mut events, [to, _])) = acquainted() else {
            return;
        };
        ranks[0].peers.net.make_faulty();
        let bytes = vec![7; 1000];
        // SAFETY: the bytes live longer than the ranks.
        let data = unsafe { SendBuffer::contiguous(bytes.as_ptr(), bytes.len()) };
        let data = data.region().unwrap();
        // SAFETY: as above.
        let posted = unsafe {
            ranks[0]
                .peers
                .post_zero_copy(to, AmHeader([1, 0]), data, None, Token(5))
        };
        assert_eq!(posted, Post::Posted);
        faulty::destine(fate);
        while events[0].ends.is_empty() {
            ranks[0].progress(&mut events[0]);
        }
        assert_eq!(faulty::is_fulfilled(), fate != Fate::Overrun);
        assert_eq!(events[0].failures(), 1, "what came is not known any more");
        let post = ranks[0].peers.post(to, Class::Data, AmHeader([1, 0]), &[]);
        assert_eq!(post, Post::Gone);
        // A queue that would go on is not read any more: what it says of the send was said.
        faulty::clear();
        for _ in 0..1000 {
            ranks[0].progress(&mut events[0]);
            ranks[1].progress(&mut events[1]);
        }
        assert_eq!(events[0].ends, [(Token(5), Outcome::PeerFailed)]);
        let address = ranks[1].peers.address();
        let error = ranks[0].peers.connect(Rank::new(1), &address).unwrap_err();
        assert!(error.to_string().contains("completion queue"), "{error}");
    }
}

/// What is no operation's and says nothing of the queue.
#[test]
fn errors_of_nothing_end_nothing() {
    let Some((mut ranks, mut events, [to, _])) = acquainted() else {
        return;
    };
    ranks[0].peers.net.make_faulty();
    faulty::destine(Fate::Event(FI_EIO));
    exchange(&mut ranks, &mut events, to, (0..300, 100));
    assert!(faulty::is_fulfilled());
    assert_eq!(events[0].failures() + events[1].failures(), 0);
}

/// A receive that is cancelled without having been asked is posted again.
#[test]
fn receives_that_the_provider_cancels_are_posted_again() {
    let Some(events) = after_a_receive_failed(FI_ECANCELED) else {
        return;
    };
    assert_eq!(events[0].failures() + events[1].failures(), 0);
}

/// Counts messages, and those whose bytes are not all their number's.
#[derive(Default)]
struct Counted {
    messages: u64,
    wrong: Vec<u64>,
}

impl Sink for Counted {
    fn deliver(&mut self, arrival: Arrival<'_>) {
        let number = arrival.header.0[0];
        let bytes = arrival.payload.to_vec();
        if number != self.messages || bytes.iter().any(|byte| *byte != number as u8) {
            self.wrong.push(number);
        }
        self.messages += 1;
    }

    fn complete(&mut self, _: Token, _: Outcome) {}

    fn peer(&mut self, event: PeerEvent) {
        panic!("nobody ends: {event:?}");
    }
}

/// A message is cut off where its sender dies; what comes into the rest of the block comes from others. The block must not
/// be given to the provider a second time: messages would be written over those that are still to be read.
#[test]
fn messages_after_one_that_was_cut_off_are_whole() {
    const MESSAGES: u64 = 1500;
    // So often both look whether something has come: far more often than a message takes.
    const ROUNDS: u32 = 1_000_000;
    let Some((mut ranks, mut events, [to, back])) = acquainted() else {
        return;
    };
    ranks[1].peers.net.make_faulty();
    let there = ranks[0].peers.links[to].peer.unwrap();
    faulty::destine(Fate::Receive(FI_ECONNRESET));
    while ranks[0].peers.net.inject(there, &[0xff; 100]) == Took::Busy {
        ranks[0].progress(&mut events[0]);
    }
    while !faulty::is_fulfilled() {
        ranks[0].progress(&mut events[0]);
        ranks[1].progress(&mut events[1]);
    }
    let mut counted = Counted::default();
    let (mut sent, mut idle) = (0, 0);
    while counted.messages < MESSAGES && idle < ROUNDS {
        let bytes = vec![sent as u8; 12_000];
        let words = AmHeader([sent, 0]);
        let posted =
            sent < MESSAGES && ranks[0].peers.post(to, Class::Data, words, &bytes) == Post::Posted;
        sent += u64::from(posted);
        ranks[0].progress(&mut events[0]);
        let told = ranks[1].progress(&mut counted);
        idle = if told == 0 && !posted { idle + 1 } else { 0 };
    }
    assert_eq!((counted.messages, counted.wrong), (MESSAGES, vec![]));
    assert!(!ranks[1].peers.links[back].closed);
}

/// A rank whose cable is out for a while when it says its first word: connections that are to be made are refused at once.
#[test]
fn a_peer_to_which_nothing_leads_for_now_is_waited_for() {
    for error in [FI_ENETDOWN, FI_ENETUNREACH, FI_EHOSTUNREACH] {
        let Some((mut ranks, to)) = pair() else {
            return;
        };
        let hand = ManualClock::default();
        (ranks[0].peers.clock, ranks[0].goodbyes.timeout) = (hand.clock(), Duration::ZERO);
        ranks[0].peers.net.make_faulty();
        let mut events = [Events::default(), Events::default()];
        for _ in 0..3 {
            let refusals = ranks[0].peers.net.refusals().count();
            faulty::answer("fi_send", error);
            let post = ranks[0].peers.post(to, Class::Data, AmHeader([1, 0]), &[]);
            assert_eq!(post, Post::Busy, "{error}");
            assert!(faulty::is_fulfilled());
            let noted = ranks[0].peers.net.refusals().count();
            assert!(noted > refusals, "nobody wakes who sleeps for long");
            hand.advance(WAY_LIMIT / 3);
            ranks[0].progress(&mut events[0]);
        }
        exchange(&mut ranks, &mut events, to, (1..300, 100));
        assert_eq!(events[0].failures(), 0, "{error}");
    }
}

#[test]
fn a_peer_to_which_nothing_leads_is_not_waited_for_for_ever() {
    let Some((mut ranks, to)) = pair() else {
        return;
    };
    let hand = ManualClock::default();
    (ranks[0].peers.clock, ranks[0].goodbyes.timeout) = (hand.clock(), Duration::ZERO);
    ranks[0].peers.net.make_faulty();
    let mut events = Events::default();
    for wanted in [Post::Busy, Post::Gone] {
        faulty::answer("fi_send", FI_ENETUNREACH);
        let post = ranks[0].peers.post(to, Class::Data, AmHeader([1, 0]), &[]);
        assert_eq!(post, wanted);
        hand.advance(WAY_LIMIT);
    }
    ranks[0].progress(&mut events);
    assert_eq!(events.failures(), 1);
}

/// What was sent before may be lost with the connection, and one that is there needs no new one.
#[test]
fn a_peer_that_was_reached_is_not_waited_for() {
    let errors = [(FI_ENETUNREACH, true), (FI_ECONNREFUSED, false)];
    for (error, met) in errors {
        let open = || match met {
            true => acquainted().map(|(ranks, _, [to, _])| (ranks, to)),
            false => pair(),
        };
        let Some((mut ranks, to)) = open() else {
            return;
        };
        ranks[0].peers.net.make_faulty();
        faulty::answer("fi_send", error);
        let bytes = vec![7; 10_000];
        let post = ranks[0]
            .peers
            .post(to, Class::Data, AmHeader([1, 0]), &bytes);
        assert_eq!(post, Post::Gone, "{error}");
        assert!(faulty::is_fulfilled());
    }
}

/// One that this rank has declared dead, and that does not know it.
#[test]
fn what_a_peer_says_that_was_declared_dead_is_no_strangers() {
    let Some(([mut one, mut two], to)) = pair() else {
        return;
    };
    let mut events = [Events::default(), Events::default()];
    two.peer_failed(Rank::new(0));
    // Longer than a hello, and shorter.
    for (number, len) in [(1, 2000), (2, 8)] {
        let bytes = vec![7; len];
        while one
            .peers
            .post(to, Class::Data, AmHeader([number, 0]), &bytes)
            != Post::Posted
        {
            one.progress(&mut events[0]);
            two.progress(&mut events[1]);
        }
    }
    while one.peers.links[to].sending > 0 {
        one.progress(&mut events[0]);
    }
    for _ in 0..1000 {
        one.progress(&mut events[0]);
        two.progress(&mut events[1]);
    }
    let told: Vec<_> = events[1]
        .peers
        .iter()
        .map(|event| format!("{event:?}"))
        .collect();
    assert_eq!((told, &events[1].messages[..]), (vec![], &[][..]));
}

/// Who cannot receive cannot hear that peers end either.
#[test]
fn a_provider_that_takes_no_receives_ends_contact() {
    let Some((mut ranks, mut events, [to, back])) = acquainted() else {
        return;
    };
    ranks[1].peers.net.make_faulty();
    faulty::answer("fi_recvmsg", FI_EIO);
    // As many messages as are in some blocks.
    let bytes = vec![7; 16_000];
    while events[1].failures() == 0 {
        let _ = ranks[0]
            .peers
            .post(to, Class::Data, AmHeader([0, 0]), &bytes);
        ranks[0].progress(&mut events[0]);
        ranks[1].progress(&mut events[1]);
    }
    assert!(faulty::is_fulfilled());
    let post = ranks[1]
        .peers
        .post(back, Class::Data, AmHeader([1, 0]), &[]);
    assert_eq!(post, Post::Gone);
}

#[test]
fn answers_to_no_goodbye_end_contact() {
    let Some(([mut one, mut two], to)) = pair() else {
        return;
    };
    let mut events = Events::default();
    while one.peers.post_own(to, Kind::GoodbyeHeard, 0) == Post::Busy {
        one.progress(&mut Events::default());
        two.progress(&mut events);
    }
    let breach = |event: &PeerEvent| match event {
        PeerEvent::Protocol(Some(_), Error::Protocol { reason, .. }) => {
            reason.contains("not asked for")
        }
        _ => false,
    };
    while !events.peers.iter().any(breach) {
        one.progress(&mut Events::default());
        two.progress(&mut events);
    }
}
