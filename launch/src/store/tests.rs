use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant};

use tagwire_base::{Bootstrap, MemberEvent};

use super::wire::{Frame, FrameBuffer, Grant, Hello, Reply, Request, RequestId, Who};
use super::*;
use crate::proof::Nonce;

const LONG: Duration = Duration::from_secs(30);

fn join(store: &Store, rank: u32) -> StoreBootstrap {
    StoreBootstrap::connect(store.membership(Rank::new(rank))).unwrap()
}

/// Polls until `wanted` events have come.
fn events(client: &mut StoreBootstrap, wanted: usize) -> Vec<MemberEvent> {
    let until = Instant::now() + LONG;
    let mut events = client.poll_events();
    while events.len() < wanted {
        assert!(Instant::now() < until, "only {events:?} came");
        thread::sleep(Duration::from_millis(1));
        events.extend(client.poll_events());
    }
    events
}

/// A connection that speaks bytes.
struct Raw(OwnedFd);

impl Raw {
    fn new(store: &Store) -> Self {
        Self(socket::connect(store.name(), LONG).unwrap())
    }

    fn send(&self, bytes: &[u8]) {
        // The store may hang up in the middle; what it replied before still counts.
        let _ = File::from(self.0.try_clone().unwrap()).write_all(bytes);
    }

    /// Says hello as `rank`, and proves that it belongs to the job of `store`. The welcome is still to be read.
    fn introduce(&self, store: &Store, rank: u32) {
        let hello = Hello::of(Who::Rank(rank)).unwrap();
        self.send(&Request::Hello(hello.clone()).encode(RequestId(1)));
        let mut bytes = [0; CHALLENGE];
        let mut stream = File::from(self.0.try_clone().unwrap());
        stream.read_exact(&mut bytes).unwrap();
        let mut buffer = FrameBuffer::default();
        let challenge = match Reply::decode(&next_frame(&mut buffer, &bytes)).unwrap() {
            Reply::Challenge(challenge) => challenge,
            other => panic!("no challenge: {other:?}"),
        };
        let proof = hello.proof(&store.secret, &challenge);
        self.send(&Request::Proof(proof).encode(RequestId(1)));
    }

    /// Everything up to the end of the stream, as replies.
    fn until_the_end(&self) -> Vec<Reply> {
        let mut bytes = Vec::new();
        let _ = File::from(self.0.try_clone().unwrap()).read_to_end(&mut bytes);
        let mut buffer = FrameBuffer::default();
        buffer.extend(&bytes);
        let mut replies = Vec::new();
        while let Some(frame) = buffer.next_frame().unwrap() {
            replies.push(Reply::decode(&frame).unwrap());
        }
        replies
    }
}

/// How long a challenge is on the wire.
const CHALLENGE: usize = 4 + 8 + Nonce::LEN;

fn next_frame(buffer: &mut FrameBuffer, bytes: &[u8]) -> Frame {
    buffer.extend(bytes);
    buffer.next_frame().unwrap().unwrap()
}

/// Lets a rank of a job of two in on a connection that the test serves, with what the store knows.
fn let_in(stream: &mut (impl Read + Write), buffer: &mut FrameBuffer, secret: &JobSecret) {
    let (id, Request::Hello(hello)) = next_request(stream, buffer) else {
        panic!("no hello");
    };
    let challenge = Nonce::draw().unwrap();
    stream
        .write_all(&Reply::Challenge(challenge).encode(id))
        .unwrap();
    let (id, Request::Proof(_)) = next_request(stream, buffer) else {
        panic!("no proof");
    };
    let grant = Grant::Welcome {
        size: 2,
        round: 0,
        nonce: challenge,
    };
    let welcome = Reply::Granted(grant, hello.answer(secret, &challenge, &grant));
    stream.write_all(&welcome.encode(id)).unwrap();
}

/// The next request on a connection that the test serves.
fn next_request(stream: &mut impl Read, buffer: &mut FrameBuffer) -> (RequestId, Request) {
    loop {
        if let Some(frame) = buffer.next_frame().unwrap() {
            return (frame.id, Request::decode(&frame).unwrap());
        }
        let mut bytes = [0; 4096];
        let count = stream.read(&mut bytes).unwrap();
        assert!(count > 0, "the client has gone");
        buffer.extend(&bytes[..count]);
    }
}

/// A client, and the other end of its connection, which the test serves.
fn with_a_store_of_the_test() -> (StoreBootstrap, File, FrameBuffer) {
    let name = format!("tagwire-test-{}", JobSecret::generate().unwrap().to_hex());
    let listener = socket::listen(&name).unwrap();
    rustix::io::ioctl_fionbio(&listener, false).unwrap();
    let client = thread::spawn(move || {
        StoreBootstrap::connect(Membership {
            rank: Rank::new(0),
            size: 2,
            local_rank: 0,
            local_size: 2,
            store: name,
            secret: JobSecret::from_bytes([1; JobSecret::LEN]),
            application: None,
        })
    });
    let accepted = rustix::net::accept(&listener).unwrap();
    let (mut stream, mut buffer) = (File::from(accepted), FrameBuffer::default());
    let secret = JobSecret::from_bytes([1; JobSecret::LEN]);
    let_in(&mut stream, &mut buffer, &secret);
    (client.join().unwrap().unwrap(), stream, buffer)
}

/// What the kernel cuts, as it does where a process is out of descriptors, is the failure of that request.
#[test]
fn a_cut_descriptor_fails_one_request() {
    let (mut client, mut stream, mut buffer) = with_a_store_of_the_test();
    let server = thread::spawn(move || {
        let (id, _) = next_request(&mut stream, &mut buffer);
        // More at once than a client takes: the kernel cuts them and marks the message.
        let many = vec![stream.as_fd(); 2 * socket::MAX_DESCRIPTORS];
        let mut space = [std::mem::MaybeUninit::uninit(); 256];
        let mut control = rustix::net::SendAncillaryBuffer::new(&mut space);
        assert!(control.push(rustix::net::SendAncillaryMessage::ScmRights(&many)));
        let bytes = Reply::Descriptor.encode(id);
        let flags = rustix::net::SendFlags::empty();
        rustix::net::sendmsg(
            &stream,
            &[std::io::IoSlice::new(&bytes)],
            &mut control,
            flags,
        )
        .unwrap();
        let news = Reply::Failed(Rank::new(1)).encode(RequestId::default());
        stream.write_all(&news).unwrap();
        for _ in 0..2 {
            let (id, request) = next_request(&mut stream, &mut buffer);
            match request {
                Request::GetDescriptor { .. } => {
                    let own = stream.try_clone().unwrap().into();
                    let bytes = Reply::Descriptor.encode(id);
                    socket::send(&own, &bytes, Some(stream.as_fd())).unwrap();
                }
                _ => stream.write_all(&Reply::Done.encode(id)).unwrap(),
            }
        }
    });
    let error = client.get_descriptor(Rank::new(1), LONG).unwrap_err();
    assert!(error.is_shortage(), "{error}");
    assert!(error.to_string().contains("ulimit -n"), "{error}");
    assert_eq!(events(&mut client, 1), [MemberEvent::Failed(Rank::new(1))]);
    client.put("key", b"value").unwrap();
    client.get_descriptor(Rank::new(1), LONG).unwrap();
    server.join().unwrap();
}

/// A store that reads nothing for a while is slow, not lost.
#[test]
fn requests_to_a_slow_store_are_sent_whole_or_not_at_all() {
    let (mut client, mut stream, mut buffer) = with_a_store_of_the_test();
    let put = Request::Put {
        key: "key".to_owned(),
        value: vec![7; wire::MAX_VALUE],
    };
    // Until the socket takes no more, and then some.
    let mut given_up = 0;
    while client.unsent_len() == 0 {
        assert!(client.ask(&put, None, Duration::ZERO).unwrap().is_none());
        given_up += 1;
        assert!(given_up < 1000, "the socket takes everything");
    }
    for _ in 0..3 {
        let late = client.get(Rank::new(1), "late", Duration::ZERO);
        assert!(late.unwrap_err().is_shortage());
    }
    let server = thread::spawn(move || {
        loop {
            let (id, request) = next_request(&mut stream, &mut buffer);
            if matches!(request, Request::Get { key, .. } if key == "last") {
                let reply = Reply::Value(b"value".to_vec());
                return stream.write_all(&reply.encode(id)).unwrap();
            }
        }
    });
    let value = client.get(Rank::new(1), "last", LONG).unwrap();
    assert_eq!(value, b"value");
    server.join().unwrap();
}

#[test]
fn a_get_waits_for_the_put() {
    let store = Store::start(2).unwrap();
    let mut reader = join(&store, 0);
    let mut writer = join(&store, 1);
    assert_eq!((reader.rank(), reader.size()), (Rank::new(0), 2));
    assert_eq!(writer.locality().local_rank, 1);
    let early = reader.get(Rank::new(1), "address", Duration::ZERO);
    assert!(
        matches!(early, Err(tagwire_base::Error::BootstrapTimeout { .. })),
        "{early:?}"
    );
    let thread = thread::spawn(move || {
        thread::sleep(Duration::from_millis(20));
        writer.put("address", &[7; 40_000]).unwrap();
        writer.put("address", &[8; 65_536]).unwrap();
        writer.put("other", b"").unwrap();
        writer
    });
    assert!(reader.get(Rank::new(1), "address", LONG).unwrap().len() >= 40_000);
    let _writer = thread.join().unwrap();
    assert_eq!(
        reader.get(Rank::new(1), "address", LONG).unwrap(),
        [8; 65_536]
    );
    assert_eq!(reader.get(Rank::new(1), "other", LONG).unwrap(), b"");
    let nobody = reader
        .get(Rank::new(2), "address", LONG)
        .unwrap_err()
        .to_string();
    assert!(nobody.contains("no rank 2"), "{nobody}");
}

#[test]
fn late_answers_are_not_mistaken() {
    let store = Store::start(2).unwrap();
    let (mut reader, mut writer) = (join(&store, 0), join(&store, 1));
    for round in 0..200u32 {
        let key = format!("key {round}");
        let _ = reader.get(Rank::new(1), &key, Duration::ZERO);
        writer.put(&key, &round.to_le_bytes()).unwrap();
        let value = reader.get(Rank::new(1), &key, LONG).unwrap();
        assert_eq!(value, round.to_le_bytes());
    }
}

#[test]
fn keys_and_values_past_the_limit_are_refused_at_once() {
    let store = Store::start(1).unwrap();
    let mut client = join(&store, 0);
    client
        .put("big", &vec![0; wire::MAX_VALUE + 1])
        .unwrap_err();
    client.put(&"k".repeat(wire::MAX_KEY + 1), b"").unwrap_err();
    client.put(&"k".repeat(wire::MAX_KEY), b"").unwrap();
}

#[test]
fn fences_bring_everybody_together() {
    const RANKS: u32 = 8;
    let store = Store::start(RANKS).unwrap();
    thread::scope(|scope| {
        for rank in 0..RANKS {
            let store = &store;
            scope.spawn(move || {
                let mut client = join(store, rank);
                for step in 0..20u32 {
                    client.put("step", &step.to_le_bytes()).unwrap();
                    client.fence(LONG).unwrap();
                    let next = Rank::new((rank + 1) % RANKS);
                    let theirs = client.get(next, "step", LONG).unwrap();
                    assert_eq!(theirs, step.to_le_bytes());
                    client.fence(LONG).unwrap();
                }
                client.leave();
            });
        }
    });
}

#[test]
fn a_fence_gives_up_after_its_time_and_names_the_dead() {
    let store = Store::start(2).unwrap();
    let mut client = join(&store, 0);
    let error = client
        .fence(Duration::from_millis(10))
        .unwrap_err()
        .to_string();
    assert!(error.contains("not complete within 10ms"), "{error}");
    store.rank_ended(Rank::new(1));
    let error = client.fence(LONG).unwrap_err().to_string();
    assert!(
        error.contains("rank 1 ended without reaching the fence"),
        "{error}"
    );
}

#[test]
fn descriptors_travel() {
    let store = Store::start(2).unwrap();
    let (mut giver, mut taker) = (join(&store, 0), join(&store, 1));
    let early = taker.get_descriptor(Rank::new(0), Duration::from_millis(5));
    assert!(matches!(
        early,
        Err(tagwire_base::Error::BootstrapTimeout { .. })
    ));
    let (ours, theirs) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    giver.put_descriptor(theirs.as_fd()).unwrap();
    drop(theirs);
    for _ in 0..2 {
        let writer = taker.get_descriptor(Rank::new(0), LONG).unwrap();
        let flags = rustix::io::fcntl_getfd(&writer).unwrap();
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
        File::from(writer).write_all(b"through").unwrap();
    }
    let mut bytes = [0; 14];
    let mut reader = File::from(ours);
    reader.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"throughthrough");
    giver.leave();
    let error = taker
        .get_descriptor(Rank::new(0), LONG)
        .unwrap_err()
        .to_string();
    assert!(error.contains("rank 0 left"), "{error}");
    // The store's copy went with the goodbye, so the pipe has no writer left.
    assert_eq!(reader.read(&mut bytes).unwrap(), 0);
}

#[test]
fn goodbyes_and_failures_are_told_apart() {
    let store = Store::start(4).unwrap();
    let mut watcher = join(&store, 0);
    let mut polite = join(&store, 1);
    let rude = join(&store, 2);
    assert_eq!(watcher.poll_events(), []);
    polite.leave();
    store.rank_ended(Rank::new(1));
    assert_eq!(events(&mut watcher, 1), [MemberEvent::Left(Rank::new(1))]);
    polite.put("late", b"").unwrap_err();
    // Its connection ends before its process does.
    drop(rude);
    assert_eq!(events(&mut watcher, 1), [MemberEvent::Failed(Rank::new(2))]);
    // This one never connected.
    store.rank_ended(Rank::new(3));
    assert_eq!(events(&mut watcher, 1), [MemberEvent::Failed(Rank::new(3))]);
    store.rank_ended(Rank::new(2));
    watcher.put("sync", b"").unwrap();
    assert_eq!(watcher.poll_events(), [], "an end is told once");
}

#[test]
fn a_goodbye_still_in_the_socket_is_heard() {
    for _ in 0..100 {
        let store = Store::start(2).unwrap();
        let mut watcher = join(&store, 0);
        let leaver = Raw::new(&store);
        leaver.introduce(&store, 1);
        events_settle(&mut watcher);
        leaver.send(&Request::Leave.encode(RequestId(2)));
        store.rank_ended(Rank::new(1));
        assert_eq!(events(&mut watcher, 1), [MemberEvent::Left(Rank::new(1))]);
    }
}

/// A round trip, so that what was sent to the store before has been looked at.
fn events_settle(client: &mut StoreBootstrap) {
    for _ in 0..3 {
        client.put("settle", b"").unwrap();
    }
}

#[test]
fn events_between_a_request_and_its_answer_are_kept() {
    let store = Store::start(3).unwrap();
    let mut waiter = join(&store, 0);
    let mut giver = join(&store, 1);
    let thread = thread::spawn(move || {
        let value = waiter.get(Rank::new(1), "late", LONG).unwrap();
        (value, waiter.poll_events())
    });
    store.rank_ended(Rank::new(2));
    assert_eq!(events(&mut giver, 1), [MemberEvent::Failed(Rank::new(2))]);
    giver.put("late", b"here").unwrap();
    let (value, events) = thread.join().unwrap();
    assert_eq!(value, b"here");
    assert_eq!(events, [MemberEvent::Failed(Rank::new(2))]);
}

#[test]
fn who_does_not_know_the_secret_is_refused_and_disconnected() {
    let store = Store::start(2).unwrap();
    let mut member = join(&store, 0);
    let mut wrong = store.membership(Rank::new(1));
    wrong.secret = JobSecret::generate().unwrap();
    let error = StoreBootstrap::connect(wrong).unwrap_err().to_string();
    assert!(error.contains("wrong job secret"), "{error}");

    let pending_peer = Raw::new(&store);
    pending_peer.send(
        &Request::Get {
            rank: 0,
            key: "a".to_owned(),
        }
        .encode(RequestId(1)),
    );
    assert!(matches!(
        &pending_peer.until_the_end()[..],
        [Reply::Refused(_)]
    ));
    assert_eq!(
        member.poll_events(),
        [],
        "a pending_peer's end is nobody's failure"
    );
    let mut second = join(&store, 1);
    second.put("fine", b"").unwrap();
}

#[test]
fn garbage_ends_only_its_own_connection() {
    let store = Store::start(3).unwrap();
    let mut member = join(&store, 0);
    let oversized = 0x7fff_ffff_u32.to_le_bytes();
    let no_descriptor = Request::PutDescriptor.encode(RequestId(2));
    for garbage in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        &[0; 64],
        &[0xff; 4096],
        &oversized,
    ] {
        let pending_peer = Raw::new(&store);
        pending_peer.send(garbage);
        assert_eq!(pending_peer.until_the_end(), []);
    }
    let rank = Raw::new(&store);
    rank.introduce(&store, 1);
    rank.send(&no_descriptor);
    let replies = rank.until_the_end();
    assert!(
        matches!(&replies[..], [Reply::Granted(..), Reply::Refused(_)]),
        "{replies:?}"
    );
    assert_eq!(events(&mut member, 1), [MemberEvent::Failed(Rank::new(1))]);
    member.put("still", b"here").unwrap();
    join(&store, 2).put("too", b"").unwrap();
}

#[test]
fn a_client_that_does_not_read_holds_up_nobody() {
    const GETS: u32 = 20_000;
    let store = Store::start(2).unwrap();
    let mut member = join(&store, 0);
    member.put("big", &[1; wire::MAX_VALUE]).unwrap();
    let greedy = Raw::new(&store);
    greedy.introduce(&store, 1);
    // 1.3 GB of replies are asked for, by a thread that the store blocks, and none is read.
    let asker = Raw(greedy.0.try_clone().unwrap());
    let asking = thread::spawn(move || {
        let get = Request::Get {
            rank: 0,
            key: "big".to_owned(),
        };
        asker.send(
            &(2..GETS)
                .flat_map(|id| get.encode(RequestId(id)))
                .collect::<Vec<u8>>(),
        );
    });
    for _ in 0..1000 {
        member.put("alive", b"").unwrap();
    }
    // Now a little is read: the store goes on where it stopped, in order.
    let mut source = File::from(greedy.0.try_clone().unwrap());
    let mut buffer = FrameBuffer::default();
    let mut chunk = vec![0; 1 << 16];
    let mut expected = 1;
    while expected < 200 {
        let count = source.read(&mut chunk).unwrap();
        assert!(count > 0, "the store hung up");
        buffer.extend(&chunk[..count]);
        while let Some(frame) = buffer.next_frame().unwrap() {
            assert_eq!(frame.id, RequestId(expected));
            expected += 1;
        }
    }
    rustix::net::shutdown(&greedy.0, rustix::net::Shutdown::Both).unwrap();
    asking.join().unwrap();
    assert_eq!(events(&mut member, 1), [MemberEvent::Failed(Rank::new(1))]);
}

#[test]
fn a_store_that_is_gone_is_named() {
    let store = Store::start(2).unwrap();
    let name = store.name().to_owned();
    let membership = store.membership(Rank::new(1));
    let mut client = join(&store, 0);
    drop(store);
    assert_eq!(
        client.poll_events(),
        [MemberEvent::StoreLost],
        "the others live, but nothing will be heard of them"
    );
    assert_eq!(client.poll_events(), [], "it is reported once");
    for error in [
        client.put("a", b"").unwrap_err(),
        client.get(Rank::new(1), "a", LONG).unwrap_err(),
        client.fence(LONG).unwrap_err(),
        StoreBootstrap::connect(membership).unwrap_err(),
    ] {
        assert!(error.to_string().contains(&name), "{error}");
    }
    client.leave();
}

#[test]
fn another_size_than_the_job_s_is_refused() {
    let store = Store::start(2).unwrap();
    let mut membership = store.membership(Rank::new(0));
    membership.size = 3;
    let error = StoreBootstrap::connect(membership).unwrap_err().to_string();
    assert!(
        error.contains("of 3 ranks") && error.contains("of 2"),
        "{error}"
    );
}

mod between_machines {
    use super::*;

    fn secret(byte: u8) -> JobSecret {
        JobSecret::from_bytes([byte; JobSecret::LEN])
    }

    fn start(size: u32) -> (Store, String) {
        let store = Store::start_tcp(size, "127.0.0.1:0", secret(1)).unwrap();
        let address = store.address().unwrap().to_owned();
        (store, address)
    }

    fn member(rank: u32, size: u32, address: &str) -> StoreBootstrap {
        let membership = Membership::remote(Rank::new(rank), size, address, secret(1));
        StoreBootstrap::connect(membership).unwrap()
    }

    #[test]
    fn keys_fences_and_ends_are_as_on_one_machine() {
        let (_store, address) = start(2);
        let (mut a, mut b) = (member(0, 2, &address), member(1, 2, &address));
        a.put("key", b"value").unwrap();
        assert_eq!(b.get(Rank::new(0), "key", LONG).unwrap(), b"value");
        thread::scope(|scope| {
            scope.spawn(|| a.fence(LONG).unwrap());
            b.fence(LONG).unwrap();
        });
        b.leave();
        assert_eq!(events(&mut a, 1), [MemberEvent::Left(Rank::new(1))]);
        assert_eq!(a.locality().local_size, 1);
        assert_eq!(a.locality().address, Some([127, 0, 0, 1].into()));
    }

    #[test]
    fn without_the_secret_nobody_takes_part() {
        let (_store, address) = start(2);
        let pending_peer = Membership::remote(Rank::new(1), 2, &address, secret(2));
        let error = StoreBootstrap::connect(pending_peer)
            .unwrap_err()
            .to_string();
        assert!(error.contains("secret"), "{error}");
    }

    /// An impostor at the address of the store gets no secret, and nobody stays with it.
    #[test]
    fn a_store_without_the_secret_has_no_ranks() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let impostor = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let_in(&mut stream, &mut FrameBuffer::default(), &secret(2));
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest);
            rest
        });
        let membership = Membership::remote(Rank::new(1), 2, &address, secret(1));
        let error = StoreBootstrap::connect(membership).unwrap_err().to_string();
        assert!(
            error.contains("does not know the job's secret") && error.contains(&address),
            "{error}"
        );
        assert_eq!(impostor.join().unwrap(), b"", "it is told nothing more");
    }

    /// Somebody between a rank and its store changes a byte of what the store grants: who has the secret is told nothing that the
    /// store has not said.
    #[test]
    fn what_a_store_grants_cannot_be_changed_on_the_way() {
        // In the body of a welcome: the number of ranks, the round, the store's nonce; nothing.
        const CHANGED: [Option<usize>; 5] = [Some(0), Some(4), Some(8), Some(39), None];
        let ranks = CHANGED.len() as u32;
        let (_store, address) = start(ranks);
        for (rank, place) in (0..ranks).zip(CHANGED) {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let here = listener.local_addr().unwrap().to_string();
            let there = std::net::TcpStream::connect(&address).unwrap();
            let middle = thread::spawn(move || {
                let (client, _) = listener.accept().unwrap();
                let (from_client, to_store) = (client.try_clone().unwrap(), there.try_clone());
                let back = thread::spawn(move || hand_on(from_client, to_store.unwrap(), None));
                hand_on(there, client, place);
                back.join().unwrap();
            });
            let membership = Membership::remote(Rank::new(rank), ranks, &here, secret(1));
            let joined = StoreBootstrap::connect(membership);
            let error = joined.as_ref().err().map(ToString::to_string);
            let is_found = error.map(|error| error.contains("has changed what it said"));
            assert_eq!(is_found, place.map(|_| true), "byte {place:?}");
            drop(joined);
            middle.join().unwrap();
        }
    }

    /// Hands frames on until there are no more, with a byte changed of the body of a welcome.
    fn hand_on(mut from: std::net::TcpStream, mut to: std::net::TcpStream, place: Option<usize>) {
        let mut bytes = [0; 4096];
        // Either side may hang up.
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            // A frame of a welcome comes alone, behind the proof that was asked for.
            if let (Some(place), [_, _, _, _, 65, _, _, _, _, _, _, _, body @ ..]) =
                (place, &mut bytes[..count])
            {
                body[place] ^= 1;
            }
            if to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(std::net::Shutdown::Write);
    }

    /// What ranks show each other is not what the store asks for, and is the same for all of them.
    #[test]
    fn ranks_have_a_secret_of_their_own() {
        let (_store, address) = start(2);
        let both = || [0, 1].map(|rank| member(rank, 2, &address));
        let [mut a, mut b] = both();
        assert_eq!(a.secret(), b.secret());
        assert_ne!(a.secret(), &secret(1));
        let before = a.secret().clone();
        a.leave();
        b.leave();
        // What was overheard in one session is good in no other.
        let [a, b] = both();
        assert_eq!(a.secret(), b.secret());
        assert_ne!(a.secret(), &before);
    }

    #[test]
    fn jobs_with_one_secret_have_ranks_secrets_of_their_own() {
        let jobs = [start(1), start(1)];
        let secrets = jobs.each_ref().map(|(_store, address)| {
            let mut rank = member(0, 1, address);
            let secret = rank.secret().clone();
            rank.leave();
            secret
        });
        assert_ne!(secrets[0], secrets[1]);
    }

    /// Those who say hello and prove nothing crowd only each other.
    #[test]
    fn strangers_that_say_hello_keep_no_rank_out() {
        let (store, _) = start(2);
        let crowd: Vec<_> = (0..2 + 2 * server::SPARE_STRANGERS)
            .map(|_| {
                let pending_peer = Raw::new(&store);
                let hello = Hello::of(Who::Rank(0)).unwrap();
                pending_peer.send(&Request::Hello(hello).encode(RequestId(1)));
                pending_peer
            })
            .collect();
        let (mut a, mut b) = (join(&store, 0), join(&store, 1));
        a.put("key", b"value").unwrap();
        assert_eq!(b.get(Rank::new(0), "key", LONG).unwrap(), b"value");
        drop(crowd);
    }

    #[test]
    fn strangers_that_only_connect_keep_no_rank_out() {
        let (_store, address) = start(2);
        let crowd: Vec<_> = (0..2 + 2 * server::SPARE_STRANGERS)
            .map(|_| std::net::TcpStream::connect(&address).unwrap())
            .collect();
        let (mut a, mut b) = (member(0, 2, &address), member(1, 2, &address));
        a.put("key", b"value").unwrap();
        assert_eq!(b.get(Rank::new(0), "key", LONG).unwrap(), b"value");
        drop(crowd);
    }

    #[test]
    fn a_rank_that_was_dropped_unheard_comes_again() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let busy = thread::spawn(move || {
            // Dropped, dropped after a challenge, then welcome.
            drop(listener.accept().unwrap());
            let (mut stream, _) = listener.accept().unwrap();
            let (id, _) = next_request(&mut stream, &mut FrameBuffer::default());
            let challenge = Reply::Challenge(Nonce::draw().unwrap());
            stream.write_all(&challenge.encode(id)).unwrap();
            let _ = next_request(&mut stream, &mut FrameBuffer::default());
            drop(stream);
            let (mut stream, _) = listener.accept().unwrap();
            let mut buffer = FrameBuffer::default();
            let_in(&mut stream, &mut buffer, &secret(1));
            stream
        });
        let member = member(1, 2, &address);
        assert_eq!(member.rank(), Rank::new(1));
        busy.join().unwrap();
    }

    #[test]
    fn who_loses_the_store_loses_everyone() {
        let (store, address) = start(3);
        let mut member = member(1, 3, &address);
        drop(store);
        let lost = [0, 2].map(|rank| MemberEvent::Failed(Rank::new(rank)));
        assert_eq!(events(&mut member, 2), lost);
        assert_eq!(member.poll_events(), [], "it is told once");
    }

    /// A host that is busy, or behind a wall that swallows packets.
    #[test]
    fn who_does_not_take_a_connection_is_given_up_in_the_time_that_is_left() {
        use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket};
        let full = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        let anywhere: std::net::SocketAddr = ([127, 0, 0, 1], 0).into();
        bind(&full, &anywhere).unwrap();
        listen(&full, 0).unwrap();
        let place: std::net::SocketAddr = getsockname(&full).unwrap().try_into().unwrap();
        let soon = Duration::from_millis(100);
        let waiting: Vec<_> =
            std::iter::from_fn(|| std::net::TcpStream::connect_timeout(&place, soon).ok())
                .collect();
        assert!(!waiting.is_empty(), "the first are taken");
        let start = std::time::Instant::now();
        let error = socket::connect(&format!("{}{place}", socket::TCP), soon).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
        assert!(
            start.elapsed() < socket::CONNECT_TIMEOUT,
            "{:?}",
            start.elapsed()
        );
    }

    #[test]
    fn what_cannot_be_reached_is_named() {
        let (store, address) = start(2);
        let taken = Store::start_tcp(2, &address, secret(1)).unwrap_err();
        assert!(taken.to_string().contains(&address), "{taken}");
        drop(store);
        let nobody = Membership::remote(Rank::new(1), 2, &address, secret(1));
        let error = StoreBootstrap::connect(nobody).unwrap_err().to_string();
        assert!(error.contains(&address), "{error}");
    }
}

/// News that comes in one piece with a reply is news all the same.
#[test]
fn events_right_behind_an_answer_are_heard() {
    for _ in 0..300 {
        let store = Store::start(2).unwrap();
        let (mut a, mut b) = (join(&store, 0), join(&store, 1));
        thread::scope(|scope| {
            scope.spawn(move || {
                b.fence(LONG).unwrap();
                b.leave();
            });
            a.fence(LONG).unwrap();
        });
        assert_eq!(events(&mut a, 1), [MemberEvent::Left(Rank::new(1))]);
    }
}
