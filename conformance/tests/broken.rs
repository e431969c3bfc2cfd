//! The conformance kit can fail: each defect that a transport may have is seen by the check that
//! is there for it.

use std::collections::BTreeSet;
use std::sync::Arc;

use tagwire_base::Rank;
use tagwire_conformance::Verdict;
use tagwire_conformance::byte::{CHECKS, Factory, Job};
use tagwire_conformance::network::{MemoryNetwork, MemoryOptions};
use tagwire_transport::null::{NullOptions, NullTransport};
use tagwire_transport::{
    AmHeader, Arrival, Body, ByteTransport, Capabilities, Class, CooperativeTransfers, EndpointId,
    Lane, Limits, Offer, Outcome, Payload, PeerEvent, Post, RecvBuffer, RegistrationHandle,
    RemoteAccess, RemoteMemory, Result, SendBuffer, Ticket, Token, Transport, Upcalls, WaitKey,
    Waiter,
};

/// What is wrong with a transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Defect {
    None,
    DropsOne,
    CorruptsAByte,
    CutsAByte,
    ChangesAHeader,
    Duplicates,
    Misorders,
    LosesAtBorders,
    CompletesTwice,
    NeverCompletes,
    ReportsWrongLength,
    GreetsTwice,
    GreetsLate,
    NeverGreets,
    SaysGoodbyeEarly,
    AlwaysSaysGoodbye,
    LosesWhenFull,
    NeverFull,
    NoRoomForControl,
    NewEndpointEachTime,
    TakesAnyAddress,
    FailsTwice,
    HidesFailures,
    SendsToTheDead,
    OneQueueForAll,
    SleepsOverWakes,
    RefusesInSilence,
    NeverRests,
    ZeroesGathered,
    OffersAnything,
    MendsTickets,
    ForgetsNotices,
    NotifiesTwice,
    NotifiesFirst,
    LongPutsAreLate,
    SaysNothing,
    ClaimsMoreThanItHas,
    MissesItsTarget,
    IgnoresKeys,
}

/// A transport with one defect.
struct Broken {
    inner: Box<dyn ByteTransport>,
    defect: Defect,
    seen: u64,
    /// A message that another one is to overtake.
    late: Option<(EndpointId, AmHeader, Vec<u8>)>,
    late_greeting: Option<PeerEvent>,
    goodbye_told: bool,
    failures: Vec<EndpointId>,
    extra_endpoints: u32,
    stuck: Option<EndpointId>,
    key: Vec<u8>,
}

/// Bytes of a buffer for many messages.
const BUFFER: usize = 64 << 10;

/// With fewer left in it one is said to be full.
const SPARE: usize = 256;

/// Breaks what is told.
struct Breaker<'a> {
    defect: Defect,
    seen: &'a mut u64,
    late: &'a mut Option<(EndpointId, AmHeader, Vec<u8>)>,
    late_greeting: &'a mut Option<PeerEvent>,
    goodbye_told: &'a mut bool,
    failures: &'a mut Vec<EndpointId>,
    above: &'a mut dyn Upcalls,
}

impl Breaker<'_> {
    fn pass(&mut self, arrival: &Arrival<'_>, header: AmHeader, payload: Payload<'_>) {
        self.above.deliver(Arrival {
            from: arrival.from,
            header,
            payload,
        })
    }

    /// Whether there is room for a message where buffers for many are said to be full with fewer than [`SPARE`] bytes left in them.
    fn fits(&mut self, len: usize) -> bool {
        let left = BUFFER - *self.seen as usize % BUFFER;
        *self.seen += len as u64;
        !(SPARE..len).contains(&left)
    }

    /// A message that is delivered from memory of our own.
    fn deliver_copy(&mut self, from: EndpointId, header: AmHeader, bytes: &[u8]) {
        self.above.deliver(Arrival {
            from,
            header,
            payload: Payload::from_slice(bytes),
        });
    }
}

impl Upcalls for Breaker<'_> {
    fn deliver(&mut self, arrival: Arrival<'_>) {
        *self.seen += 1;
        // Not the first few: a check must look further than its first message.
        let now = *self.seen % 16 == 15;
        let mut bytes = arrival.payload.to_vec();
        let fits = self.defect != Defect::LosesAtBorders || self.fits(bytes.len());
        match self.defect {
            Defect::DropsOne if now => return,
            Defect::CorruptsAByte if now && !bytes.is_empty() => {
                let middle = bytes.len() / 2;
                bytes[middle] ^= 1;
                return self.pass(&arrival, arrival.header, Payload::from_slice(&bytes));
            }
            Defect::CutsAByte if now && !bytes.is_empty() => {
                let cut = &bytes[..bytes.len() - 1];
                return self.pass(&arrival, arrival.header, Payload::from_slice(cut));
            }
            Defect::ChangesAHeader if now => {
                let mut header = arrival.header;
                header.0[1] ^= 1 << 63;
                return self.pass(&arrival, header, arrival.payload);
            }
            Defect::LosesAtBorders if !fits => return,
            Defect::Duplicates if now => self.deliver_copy(arrival.from, arrival.header, &bytes),
            Defect::Misorders if now && self.late.is_none() => {
                *self.late = Some((arrival.from, arrival.header, bytes));
                return;
            }
            _ => {}
        }
        self.pass(&arrival, arrival.header, arrival.payload);
        if let Some((from, header, bytes)) = self.late.take() {
            self.deliver_copy(from, header, &bytes);
        }
        if let Some(greeting) = self.late_greeting.take() {
            self.above.peer(greeting);
        }
    }

    fn complete(&mut self, token: Token, outcome: Outcome) {
        match (self.defect, outcome) {
            (Defect::NeverCompletes, _) => return,
            (Defect::CompletesTwice, _) => self.above.complete(token, outcome),
            (Defect::ReportsWrongLength, Outcome::Done(count)) => {
                return self.above.complete(token, Outcome::Done(count + 1));
            }
            _ => {}
        }
        self.above.complete(token, outcome);
    }

    fn notice(&mut self, immediate: u64) {
        match self.defect {
            Defect::ForgetsNotices if immediate % 4 == 2 => return,
            Defect::NotifiesTwice => self.above.notice(immediate),
            _ => {}
        }
        self.above.notice(immediate);
    }

    fn peer(&mut self, event: PeerEvent) {
        match (self.defect, event) {
            (Defect::NeverGreets, PeerEvent::Up { .. })
            | (Defect::HidesFailures, PeerEvent::Failed(_)) => {}
            (Defect::GreetsLate, up @ PeerEvent::Up { .. }) => *self.late_greeting = Some(up),
            (Defect::GreetsTwice, PeerEvent::Up { endpoint, rank }) => {
                self.above.peer(PeerEvent::Up { endpoint, rank });
                self.above.peer(PeerEvent::Up { endpoint, rank });
            }
            (Defect::SaysGoodbyeEarly, PeerEvent::Left(_)) if *self.goodbye_told => {}
            (_, PeerEvent::Failed(endpoint)) => {
                self.failures.push(endpoint);
                self.above.peer(PeerEvent::Failed(endpoint));
            }
            (_, event) => self.above.peer(event),
        }
    }
}

impl Broken {
    fn new(mut inner: Box<dyn ByteTransport>, defect: Defect) -> Self {
        if defect == Defect::AlwaysSaysGoodbye {
            inner.leave();
        }
        Self {
            inner,
            defect,
            seen: 0,
            late: None,
            late_greeting: None,
            goodbye_told: false,
            failures: Vec::new(),
            extra_endpoints: 0,
            stuck: None,
            key: Vec::new(),
        }
    }

    /// Where a remote access goes instead.
    fn miss<'a>(&self, memory: RemoteMemory<'a>, key: &'a [u8]) -> RemoteMemory<'a> {
        match self.defect {
            Defect::MissesItsTarget if memory.address % 2 == 1 => RemoteMemory {
                address: memory.address - 1,
                ..memory
            },
            Defect::IgnoresKeys => RemoteMemory { key, ..memory },
            _ => memory,
        }
    }

    fn told<R>(
        &mut self,
        above: &mut dyn Upcalls,
        tell: impl FnOnce(&mut dyn ByteTransport, &mut dyn Upcalls) -> R,
    ) -> R {
        let mut breaker = Breaker {
            defect: self.defect,
            seen: &mut self.seen,
            late: &mut self.late,
            late_greeting: &mut self.late_greeting,
            goodbye_told: &mut self.goodbye_told,
            failures: &mut self.failures,
            above,
        };
        tell(&mut *self.inner, &mut breaker)
    }
}

/// A waiter that forgets what came before the sleep.
struct Forgetful(Arc<dyn Waiter>);

impl Waiter for Forgetful {
    fn arm(&self) -> WaitKey {
        self.0.arm()
    }
    fn sleep(&self, _: WaitKey, timeout: std::time::Duration) {
        let fresh = self.0.arm();
        self.0.sleep(fresh, timeout);
    }
    fn disarm(&self) {
        self.0.disarm();
    }
    fn wake(&self) {
        self.0.wake();
    }
}

impl Transport for Broken {
    fn name(&self) -> &'static str {
        "broken"
    }

    fn capabilities(&self) -> Capabilities {
        let mut all = self.inner.capabilities();
        if self.defect == Defect::ClaimsMoreThanItHas {
            all |= Capabilities::ZERO_COPY;
        }
        all
    }

    fn address(&self) -> Vec<u8> {
        self.inner.address()
    }

    fn connect(&mut self, peer: Rank, address: &[u8]) -> Result<EndpointId> {
        let answer = self.inner.connect(peer, address);
        match (self.defect, answer) {
            (Defect::TakesAnyAddress, Err(_)) => Ok(EndpointId(0)),
            (Defect::NewEndpointEachTime, Ok(EndpointId(number))) => {
                self.extra_endpoints += 1;
                Ok(EndpointId(number + self.extra_endpoints - 1))
            }
            (_, answer) => answer,
        }
    }

    fn leave(&mut self) {
        self.inner.leave();
    }

    fn waiter(&self) -> Arc<dyn Waiter> {
        match self.defect {
            Defect::SleepsOverWakes => Arc::new(Forgetful(self.inner.waiter())),
            _ => self.inner.waiter(),
        }
    }

    fn describe(&self, out: &mut dyn std::fmt::Write) {
        if self.defect != Defect::SaysNothing {
            self.inner.describe(out);
        }
    }
}

impl RemoteAccess for Broken {
    fn put(
        &mut self,
        lane: Lane,
        to: EndpointId,
        data: &SendBuffer,
        target: RemoteMemory<'_>,
        immediate: Option<u64>,
        token: Token,
    ) -> Post {
        let key = self.key.clone();
        let target = self.miss(target, &key);
        let is_late = match self.defect {
            Defect::NotifiesFirst => immediate.is_some(),
            Defect::LongPutsAreLate => immediate.is_none() && data.len() >= 15_000,
            _ => false,
        };
        if is_late {
            // The bytes are still on their way.
            let nothing = SendBuffer::EMPTY;
            return self.inner.put(lane, to, &nothing, target, immediate, token);
        }
        self.inner.put(lane, to, data, target, immediate, token)
    }

    fn get(
        &mut self,
        lane: Lane,
        from: EndpointId,
        data: &RecvBuffer,
        source: RemoteMemory<'_>,
        token: Token,
    ) -> Post {
        let key = self.key.clone();
        let source = self.miss(source, &key);
        self.inner.get(lane, from, data, source, token)
    }

    fn flush(&mut self, lane: Lane, to: EndpointId, token: Token) -> Post {
        self.inner.flush(lane, to, token)
    }

    fn fence(&mut self, lane: Lane, to: EndpointId) -> Post {
        self.inner.fence(lane, to)
    }

    fn register(&mut self, data: &RecvBuffer) -> Result<RegistrationHandle> {
        let handle = self.inner.register(data)?;
        self.key.clone_from(&handle.key);
        Ok(handle)
    }

    fn expose(&mut self, data: &SendBuffer) -> Result<RegistrationHandle> {
        let handle = self.inner.expose(data)?;
        self.key.clone_from(&handle.key);
        Ok(handle)
    }

    fn deregister(&mut self, handle: RegistrationHandle) {
        self.inner.deregister(handle);
    }
}

impl CooperativeTransfers for Broken {
    fn offer(&mut self, lane: Lane, to: EndpointId, data: &SendBuffer, token: Token) -> Offer {
        match self.inner.offer(lane, to, data, token) {
            Offer::Open(ticket) => Offer::Open(ticket),
            _ if self.defect == Defect::OffersAnything => Offer::Open(Ticket::default()),
            answer => answer,
        }
    }

    fn claim(
        &mut self,
        lane: Lane,
        from: EndpointId,
        ticket: Ticket,
        data: &RecvBuffer,
        token: Token,
    ) -> Post {
        let ticket = match self.defect {
            Defect::MendsTickets => Ticket([ticket.0[0], !ticket.0[0]]),
            _ => ticket,
        };
        self.inner.claim(lane, from, ticket, data, token)
    }

    fn withdraw(&mut self, to: EndpointId, ticket: Ticket) {
        self.inner.withdraw(to, ticket);
    }
}

impl ByteTransport for Broken {
    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    fn send(
        &mut self,
        lane: Lane,
        to: EndpointId,
        class: Class,
        header: AmHeader,
        data: &[u8],
    ) -> Post {
        if self.defect == Defect::OneQueueForAll && self.stuck.is_some_and(|stuck| stuck != to) {
            return Post::Busy;
        }
        if self.defect == Defect::RefusesInSilence && self.seen == 0 {
            self.seen = 1;
            return Post::Busy;
        }
        let class = match self.defect {
            Defect::NoRoomForControl => Class::Data,
            _ => class,
        };
        let post = self.inner.send(lane, to, class, header, data);
        if post == Post::Busy {
            self.stuck = Some(to);
        }
        match (self.defect, post) {
            (Defect::NeverFull | Defect::LosesWhenFull, Post::Busy) => {
                self.seen += 1;
                // One is lost for each that is refused in the end.
                match self.defect {
                    Defect::LosesWhenFull if self.seen.is_multiple_of(2) => Post::Busy,
                    _ => Post::Posted,
                }
            }
            (Defect::SendsToTheDead, Post::Gone) => Post::Posted,
            (_, post) => post,
        }
    }

    fn send_from(&mut self, lane: Lane, to: EndpointId, header: AmHeader, body: &Body<'_>) -> Post {
        if self.defect == Defect::ZeroesGathered && body.bytes().is_none() {
            let zeros = vec![0; body.len()];
            return self.inner.send(lane, to, Class::Data, header, &zeros);
        }
        self.inner.send_from(lane, to, header, body)
    }

    fn progress(&mut self, lane: Lane, upcalls: &mut dyn Upcalls) -> usize {
        let count = self.told(upcalls, |inner, told| inner.progress(lane, told));
        if self.defect == Defect::SaysGoodbyeEarly && self.seen >= 3 && !self.goodbye_told {
            self.goodbye_told = true;
            upcalls.peer(PeerEvent::Left(EndpointId(0)));
        }
        count + usize::from(self.defect == Defect::NeverRests)
    }

    fn look_after_peers(&mut self, upcalls: &mut dyn Upcalls) {
        self.told(upcalls, |inner, told| inner.look_after_peers(told));
    }

    fn peer_failed(&mut self, rank: Rank, upcalls: &mut dyn Upcalls) {
        if self.defect == Defect::FailsTwice
            && let Some(endpoint) = self.failures.first()
        {
            upcalls.peer(PeerEvent::Failed(*endpoint));
        }
        self.told(upcalls, |inner, told| inner.peer_failed(rank, told));
    }
}

/// Ranks with `defect` on the transport that has most, or on the one that has remote access.
fn factory(defect: Defect, remote: bool) -> Factory {
    Factory::new(if remote { 1 } else { 8 }, move |size| {
        if remote {
            let null = NullTransport::new(Rank::new(0), NullOptions::default());
            return Ok(Job::new(vec![Box::new(Broken::new(
                Box::new(null),
                defect,
            ))]));
        }
        let network = MemoryNetwork::new(size, MemoryOptions::full());
        let open = |number| {
            let inner = Box::new(network.rank(Rank::new(number)));
            Box::new(Broken::new(inner, defect)) as Box<dyn ByteTransport>
        };
        let ranks = (0..size).map(open).collect();
        Ok(Job::new(ranks).with_kill(move |rank, transport| {
            network.fail(rank);
            drop(transport);
        }))
    })
}

/// Which checks see which defect.
const SEEN: &[(Defect, &[&str])] = &[
    (
        Defect::DropsOne,
        &[
            "delivers_every_size",
            "delivers_each_message_once",
            "serves_many_peers",
            "reaches_itself",
            "last_words_are_delivered",
            "the_living_go_on",
        ],
    ),
    (
        Defect::CorruptsAByte,
        &["delivers_every_size", "delivers_each_message_once"],
    ),
    (
        Defect::CutsAByte,
        &["delivers_every_size", "reaches_itself"],
    ),
    (
        Defect::ChangesAHeader,
        &["delivers_every_size", "full_is_busy_and_recovers"],
    ),
    (
        Defect::Duplicates,
        &[
            "delivers_each_message_once",
            "keeps_order_per_peer",
            "the_living_go_on",
        ],
    ),
    (Defect::Misorders, &["keeps_order_per_peer"]),
    (Defect::LosesAtBorders, &["goes_on_with_any_length"]),
    (Defect::ZeroesGathered, &["sends_gathered_and_packed_data"]),
    (
        Defect::CompletesTwice,
        &[
            "transfers_every_size",
            "offers_can_be_withdrawn",
            "failure_ends_transfers",
        ],
    ),
    (
        Defect::NeverCompletes,
        &[
            "receiver_alone_transfers",
            "sender_alone_transfers",
            "offers_can_be_withdrawn",
        ],
    ),
    (
        Defect::ReportsWrongLength,
        &[
            "transfers_every_size",
            "short_receives_get_what_fits",
            "both_ways_at_once",
        ],
    ),
    (Defect::GreetsTwice, &["greets_once_before_messages"]),
    (Defect::GreetsLate, &["greets_once_before_messages"]),
    (
        Defect::NeverGreets,
        &["greets_once_before_messages", "answers_by_first_contact"],
    ),
    (
        Defect::SaysGoodbyeEarly,
        &["says_goodbye_after_the_last_message"],
    ),
    (
        Defect::AlwaysSaysGoodbye,
        &["who_says_no_goodbye_has_failed"],
    ),
    (Defect::LosesWhenFull, &["full_is_busy_and_recovers"]),
    (Defect::NeverFull, &["full_is_busy_and_recovers"]),
    (Defect::NoRoomForControl, &["control_passes_full_data"]),
    (
        Defect::OneQueueForAll,
        &["one_full_peer_leaves_others_alone"],
    ),
    (Defect::NeverRests, &["idle_progress_does_nothing"]),
    (
        Defect::NewEndpointEachTime,
        &["connects_to_the_same_endpoint"],
    ),
    (Defect::TakesAnyAddress, &["refuses_bad_addresses"]),
    (Defect::SaysNothing, &["describes_its_peers"]),
    (Defect::ForgetsNotices, &["notices_tell_what_is_there"]),
    (Defect::NotifiesTwice, &["notices_tell_what_is_there"]),
    (
        Defect::NotifiesFirst,
        &[
            "notices_tell_what_is_there",
            "puts_that_fail_give_no_notice",
        ],
    ),
    (
        Defect::LongPutsAreLate,
        &["puts_become_visible_in_the_order_that_is_promised"],
    ),
    (Defect::FailsTwice, &["failure_is_told_once"]),
    (
        Defect::HidesFailures,
        &["failure_is_told_once", "finds_the_dead"],
    ),
    (
        Defect::SendsToTheDead,
        &["failure_is_told_once", "strangers_may_fail"],
    ),
    (
        Defect::OffersAnything,
        &[
            "many_offers_are_open_at_once",
            "odd_shapes_are_moved_or_refused",
        ],
    ),
    (Defect::MendsTickets, &["forged_tickets_move_nothing"]),
    (
        Defect::ClaimsMoreThanItHas,
        &["states_consistent_limits", "sends_without_a_copy"],
    ),
    (
        Defect::SleepsOverWakes,
        &[
            "arrivals_before_sleep_are_not_slept_over",
            "other_threads_wake_a_sleeper",
            "messages_wake_a_sleeper",
        ],
    ),
    (
        Defect::RefusesInSilence,
        &["contact_wakes_those_who_were_refused"],
    ),
];

/// The same, for remote access.
const SEEN_REMOTE: &[(Defect, &[&str])] = &[
    (
        Defect::MissesItsTarget,
        &["puts_exactly_where_told", "gets_exactly_what_was_named"],
    ),
    (Defect::IgnoresKeys, &["bad_keys_reach_nothing"]),
];

/// Defects looked at side by side. What gives up does so by sleeping, so they should not wait for
/// each other; nor should they keep each other from meeting the races that some are about.
const AT_ONCE: usize = 8;

/// Runs one check on a transport with `defect`; returns what went wrong if nothing did.
fn overlooked(defect: Defect, remote: bool, name: &str) -> Option<String> {
    let check = CHECKS
        .iter()
        .find(|check| check.name() == name)
        .expect("the tables name checks");
    match check.run(&factory(defect, remote)) {
        Verdict::Failed(_) => None,
        other => Some(format!("{name} does not see {defect:?}: {other:?}")),
    }
}

#[test]
fn every_defect_is_seen() {
    let all: Vec<(Defect, bool, &str)> = [(SEEN, false), (SEEN_REMOTE, true)]
        .into_iter()
        .flat_map(|(seen, remote)| {
            seen.iter()
                .map(move |(defect, names)| (*defect, remote, names))
        })
        .flat_map(|(defect, remote, names)| names.iter().map(move |name| (defect, remote, *name)))
        .collect();
    let mut missed = Vec::new();
    for some in all.chunks(AT_ONCE) {
        std::thread::scope(|scope| {
            let start =
                |(defect, remote, name)| scope.spawn(move || overlooked(defect, remote, name));
            let threads: Vec<_> = some.iter().copied().map(start).collect();
            missed.extend(
                threads
                    .into_iter()
                    .filter_map(|thread| thread.join().unwrap()),
            );
        });
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn every_check_can_fail() {
    let seen: BTreeSet<&str> = [SEEN, SEEN_REMOTE]
        .into_iter()
        .flatten()
        .flat_map(|(_, names)| names.iter().copied())
        .collect();
    for check in CHECKS {
        assert!(
            seen.contains(check.name()),
            "nothing makes {} fail",
            check.name()
        );
    }
}

#[test]
fn the_wrapper_without_a_defect_passes() {
    for remote in [false, true] {
        for check in CHECKS {
            let verdict = check.run(&factory(Defect::None, remote));
            assert!(
                !matches!(verdict, Verdict::Failed(_)),
                "{}: {verdict:?}",
                check.name()
            );
        }
    }
}
