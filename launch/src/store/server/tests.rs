//! A server whose turns the test takes: what it does does not depend on when its thread runs.

use std::fs::File;
use std::io::{Read, Write};
use std::sync::mpsc::channel;

use tagwire_base::JobSecret;

use super::super::wire::{Hello, Reply, RequestId, Who};
use super::*;
use crate::proof::Nonce;

const SECRET: JobSecret = JobSecret::from_bytes([5; JobSecret::LEN]);

struct Stage {
    server: Server,
    reports: Reports,
    name: String,
}

/// A client, whose number is that of its coming.
struct Client {
    stream: File,
    id: ClientId,
    incoming: FrameBuffer,
}

impl Stage {
    fn new(size: u32) -> Self {
        let name = format!("tagwire-stage-{}", JobSecret::generate().unwrap().to_hex());
        let listener = socket::listen(&name).unwrap();
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let wake = Arc::new(rustix::event::eventfd(0, flags).unwrap());
        let (_, commands) = channel();
        let reports = Reports::new().unwrap();
        let told = (commands, reports.clone());
        let keys = KeySpace::new(size, SECRET, Nonce::draw().unwrap());
        let server = Server::new(listener, wake, told, keys, size).unwrap();
        Self {
            server,
            reports,
            name,
        }
    }

    fn connect(&mut self, number: u64) -> Client {
        let socket = socket::connect(&self.name, Duration::from_secs(5)).unwrap();
        self.server.accept();
        Client {
            stream: socket.into(),
            id: ClientId(number),
            incoming: FrameBuffer::default(),
        }
    }

    /// Lets a client come in as a rank.
    fn member(&mut self, number: u64, rank: u32) -> Client {
        let mut client = self.connect(number);
        let hello = Hello::of(Who::Rank(rank)).unwrap();
        self.say(&mut client, &Request::Hello(hello.clone()));
        let [Reply::Challenge(challenge)] = client.hear()[..] else {
            panic!("no challenge");
        };
        let proof = hello.proof(&SECRET, &challenge);
        self.say(&mut client, &Request::Proof(proof));
        assert!(matches!(client.hear()[..], [Reply::Granted(..)]));
        client
    }

    fn say(&mut self, client: &mut Client, request: &Request) {
        client.send(request);
        self.server.serve(client.id, EventFlags::IN);
    }
}

impl Client {
    fn send(&mut self, request: &Request) {
        let bytes = request.encode(RequestId(1));
        self.stream.write_all(&bytes).unwrap();
    }

    /// Returns the replies that are here, of which there is one at least.
    fn hear(&mut self) -> Vec<Reply> {
        let mut bytes = [0; 4096];
        let count = self.stream.read(&mut bytes).unwrap();
        self.incoming.extend(&bytes[..count]);
        let frames = std::iter::from_fn(|| self.incoming.next_frame().unwrap());
        frames.map(|frame| Reply::decode(&frame).unwrap()).collect()
    }
}

/// The last words of a rank that has ended may lie behind more than is read at once.
#[test]
fn a_goodbye_behind_much_else_is_heard() {
    let mut stage = Stage::new(2);
    let mut watcher = stage.member(0, 0);
    let mut leaver = stage.member(1, 1);
    for _ in 0..2 {
        leaver.send(&Request::Put {
            key: "key".to_owned(),
            value: vec![7; READ_CHUNK * 3 / 4],
        });
    }
    leaver.send(&Request::Leave);
    stage.server.rank_ended(Rank::new(1));
    assert_eq!(watcher.hear(), [Reply::Left(Rank::new(1))]);
}

/// A rank that ends in silence has failed, though its connection is still there.
#[test]
fn the_end_of_a_silent_rank_is_its_failure() {
    let mut stage = Stage::new(2);
    let mut watcher = stage.member(0, 0);
    let silent = stage.member(1, 1);
    stage.server.rank_ended(Rank::new(1));
    assert_eq!(watcher.hear(), [Reply::Failed(Rank::new(1))]);
    assert!(!stage.server.connections.contains_key(&silent.id));
}

/// Who does not take its replies is not read, and neither is who is sent away.
#[test]
fn a_client_is_read_while_its_replies_go_out() {
    let mut stage = Stage::new(1);
    let client = stage.connect(0);
    let connection = stage.server.connections.get_mut(&client.id).unwrap();
    assert_eq!(connection.wanted(), EventFlags::IN);
    connection.backlog = MAX_BACKLOG - 1;
    assert_eq!(connection.wanted(), EventFlags::IN);
    connection.backlog = MAX_BACKLOG;
    assert_eq!(connection.wanted(), EventFlags::empty());
    (connection.backlog, connection.closing) = (0, true);
    assert_eq!(connection.wanted(), EventFlags::empty());
    connection.outgoing.push_back(Chunk {
        bytes: vec![1],
        sent: 0,
        descriptor: None,
    });
    assert_eq!(connection.wanted(), EventFlags::OUT);
}

#[test]
fn what_ranks_report_reaches_the_launcher_once() {
    let mut stage = Stage::new(2);
    let mut rank = stage.member(0, 1);
    assert!(stage.reports.take().is_empty());
    stage.say(&mut rank, &Request::Abort { status: 7 });
    assert_eq!(rank.hear(), [Reply::Done]);
    assert_eq!(stage.reports.take(), [Report::Abort(Rank::new(1), 7)]);
    assert!(stage.reports.take().is_empty());
}

/// Pending peers who are late are dropped, members are not.
#[test]
fn a_stranger_is_dropped_when_its_time_is_over() {
    let mut stage = Stage::new(2);
    let _member = stage.member(0, 0);
    let _silent = stage.connect(1);
    let mut speaking = stage.connect(2);
    let hello = Hello::of(Who::Rank(1)).unwrap();
    stage.say(&mut speaking, &Request::Hello(hello));
    assert!(stage.server.keys.is_challenged(speaking.id));
    let due = stage.server.door.due().unwrap();
    stage.server.housekeep(due - Duration::from_nanos(1));
    assert_eq!(stage.server.connections.len(), 3);
    stage.server.housekeep(due + HELLO_DEADLINE);
    let left: Vec<ClientId> = stage.server.connections.keys().copied().collect();
    assert_eq!(left, [ClientId(0)]);
    assert!(
        !stage.server.keys.is_challenged(speaking.id),
        "it is forgotten"
    );
    assert_eq!(stage.server.door.due(), None);
}

/// One who crowds is read before it is dropped, and whoever has said hello stays.
#[test]
fn a_hello_that_has_come_meanwhile_is_heard_before_its_stranger_is_dropped() {
    let mut stage = Stage::new(1);
    let mut first = stage.connect(0);
    let hello = Hello::of(Who::Rank(0)).unwrap();
    first.send(&Request::Hello(hello));
    let most = 1 + SPARE_STRANGERS as u64;
    let _crowd: Vec<Client> = (1..=most + 1).map(|number| stage.connect(number)).collect();
    assert!(stage.server.connections.contains_key(&first.id));
    assert!(
        !stage.server.connections.contains_key(&ClientId(1)),
        "it said nothing"
    );
    assert!(matches!(first.hear()[..], [Reply::Challenge(_)]));
    // Those who say hello and prove nothing crowd each other.
    let mut others = Vec::new();
    for number in 0..=most {
        let hello = Hello::of(Who::Rank(0)).unwrap();
        let mut other = stage.connect(most + 2 + number);
        stage.say(&mut other, &Request::Hello(hello));
        others.push(other);
    }
    assert!(!stage.server.connections.contains_key(&first.id));
    assert!(!stage.server.keys.is_challenged(first.id));
}

/// Who has proved nothing has neither memory nor descriptors of the store: a value or a descriptor of a member is no first word.
#[test]
fn a_stranger_gets_no_memory() {
    let put = Request::Put {
        key: "key".to_owned(),
        value: vec![7; super::super::wire::MAX_VALUE],
    };
    let mut stage = Stage::new(2);
    let mut member = stage.member(0, 0);
    let mut stranger = stage.connect(1);
    // The head alone says how long it will be.
    stranger
        .stream
        .write_all(&put.encode(RequestId(1))[..12])
        .unwrap();
    stage.server.serve(stranger.id, EventFlags::IN);
    assert!(!stage.server.connections.contains_key(&stranger.id));
    assert_eq!(stage.server.door.oldest(), None, "it is forgotten");

    let stranger = stage.connect(2);
    let hello = Request::Hello(Hello::of(Who::Rank(1)).unwrap()).encode(RequestId(1));
    let socket = OwnedFd::from(stranger.stream);
    let passed = File::open("/dev/null").unwrap();
    socket::send(&socket, &hello, Some(passed.as_fd())).unwrap();
    stage.server.serve(stranger.id, EventFlags::IN);
    assert!(!stage.server.connections.contains_key(&stranger.id));

    // The longest that a pending peer may say.
    let longest = Request::Hello(
        Hello::of(Who::Host {
            ranks: 1,
            name: "n".repeat(super::super::wire::MAX_KEY),
        })
        .unwrap(),
    );
    let mut other = stage.connect(3);
    stage.say(&mut other, &longest);
    assert!(matches!(other.hear()[..], [Reply::Challenge(_)]));
    // A member may say as much as before.
    stage.say(&mut member, &put);
    stage.server.serve(member.id, EventFlags::IN);
    assert!(matches!(member.hear()[..], [Reply::Done]));
}
