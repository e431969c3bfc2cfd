//! Puts with a notice through the real library, where the kit does not reach: lengths that go other
//! ways, and what happens around those that are under way.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tagwire_base::Rank;
use tagwire_base::bootstrap::LocalJob;
use tagwire_transport::{
    AmHeader, Arrival, ByteTransport, Class, EndpointId, Lane, Outcome, PeerEvent, Post,
    RecvBuffer, RegistrationHandle, RemoteAccess, RemoteMemory, SendBuffer, Token, Transport,
    Upcalls,
};
use tagwire_ucx::Ucx;

use super::options;

const LANE: Lane = Lane(0);

/// Bytes around what is written, which stay as they are.
const MARGIN: usize = 3;

/// A length that goes by rendezvous.
const LONG: usize = 1 << 20;

/// What does not come in this time never does.
const PATIENCE: Duration = Duration::from_secs(30);

/// Makes the checks of this file tests on `$transports` of the library `$library`.
#[macro_export]
macro_rules! writes {
    ($name:ident, $library:expr, $transports:expr) => {
        mod $name {
            use super::*;
            use $crate::suite::writes;

            #[test]
            fn writes_of_all_lengths_come_whole() {
                writes::come_whole($library, $transports);
            }

            #[test]
            fn refused_writes_end_and_break_nothing() {
                writes::are_refused($library, $transports);
            }

            #[test]
            fn flushes_wait_for_writes() {
                writes::are_flushed($library, $transports);
            }

            #[test]
            fn memory_may_be_taken_back_under_writes() {
                writes::stop_with_their_memory($library, $transports);
            }

            #[test]
            fn memory_comes_back_from_readers_that_stand_still() {
                writes::come_back_from_readers($library, $transports);
            }

            #[test]
            fn a_rank_writes_to_itself() {
                writes::go_round($library, $transports);
            }

            #[test]
            fn writes_end_with_their_writer() {
                writes::end_with_their_writer($library, $transports);
            }

            #[test]
            fn writes_come_before_the_goodbye() {
                writes::come_before_the_goodbye($library, $transports);
            }
        }
    };
}

/// Memory that is lent to transports: never freed, since a test that fails drops them last.
struct Memory(&'static [UnsafeCell<u8>]);

impl Memory {
    fn new(bytes: &[u8]) -> Self {
        let cells: Box<[_]> = bytes.iter().copied().map(UnsafeCell::new).collect();
        Self(Box::leak(cells))
    }

    fn start(&self) -> *mut u8 {
        UnsafeCell::raw_get(self.0.as_ptr())
    }

    fn send_buffer(&self) -> SendBuffer {
        // SAFETY: it stays, and is written to only when it is not lent.
        unsafe { SendBuffer::contiguous(self.start(), self.0.len()) }
    }

    fn recv_buffer(&self) -> RecvBuffer {
        // SAFETY: as for `send_buffer`.
        unsafe { RecvBuffer::contiguous(self.start(), self.0.len()) }
    }

    fn at<'a>(&self, offset: usize, key: &'a [u8]) -> RemoteMemory<'a> {
        RemoteMemory {
            address: (self.start().addr() + offset) as u64,
            key,
        }
    }

    /// What it holds, between calls of the rank that it is lent to.
    fn bytes(&self) -> Vec<u8> {
        // SAFETY: ranks write within their calls alone, and this thread makes them.
        unsafe { std::slice::from_raw_parts(self.start(), self.0.len()) }.to_vec()
    }

    /// Fills it, once it is not lent any more.
    fn fill(&self, byte: u8) {
        // SAFETY: nobody else uses it.
        unsafe { self.start().write_bytes(byte, self.0.len()) };
    }
}

/// Something that a rank was told.
#[derive(Debug, PartialEq)]
enum Told {
    Message,
    Notice(u64),
    End(Token, Outcome),
    Gone,
    Odd(String),
}

#[derive(Debug, Default)]
struct Log(Vec<Told>);

impl Log {
    fn notices(&self) -> Vec<u64> {
        let value = |told: &Told| match told {
            Told::Notice(value) => Some(*value),
            _ => None,
        };
        self.0.iter().filter_map(value).collect()
    }

    fn outcome(&self, token: Token) -> Option<Outcome> {
        self.0.iter().find_map(|told| match told {
            Told::End(of, outcome) if *of == token => Some(*outcome),
            _ => None,
        })
    }

    fn odd(&self) -> Option<&Told> {
        self.0.iter().find(|told| matches!(told, Told::Odd(_)))
    }
}

impl Upcalls for Log {
    fn deliver(&mut self, _: Arrival<'_>) {
        self.0.push(Told::Message);
    }

    fn complete(&mut self, token: Token, outcome: Outcome) {
        self.0.push(Told::End(token, outcome));
    }

    fn peer(&mut self, event: PeerEvent) {
        match event {
            PeerEvent::Up { .. } => {}
            PeerEvent::Left(_) => self.0.push(Told::Gone),
            other => self.0.push(Told::Odd(format!("{other:?}"))),
        }
    }

    fn notice(&mut self, immediate: u64) {
        self.0.push(Told::Notice(immediate));
    }
}

/// A rank that writes, and one that is written to.
struct Pair {
    writer: Ucx,
    owner: Ucx,
    to: EndpointId,
    logs: [Log; 2],
}

impl Pair {
    /// Two ranks in contact; nothing where the library is not there.
    fn open(library: Option<String>, transports: &str) -> Option<Self> {
        let Some(library) = library else {
            println!("SKIPPED: this version of UCX is not installed");
            return None;
        };
        let job = LocalJob::new(2).unwrap();
        let open = |rank| {
            let options = options(&library, transports);
            Ucx::open(options, &job.member(Rank::new(rank))).unwrap()
        };
        let (mut writer, mut owner) = (open(0), open(1));
        let to = writer.connect(Rank::new(1), &owner.address()).unwrap();
        let back = owner.connect(Rank::new(0), &writer.address()).unwrap();
        let mut pair = Self {
            writer,
            owner,
            to,
            logs: Default::default(),
        };
        let hello = AmHeader::default();
        pair.insist(|pair| pair.writer.send(LANE, to, Class::Data, hello, b""));
        pair.insist(|pair| pair.owner.send(LANE, back, Class::Data, hello, b""));
        pair.drive(|pair| pair.logs.iter().all(|log| log.0.contains(&Told::Message)));
        Some(pair)
    }

    fn progress(&mut self) {
        self.writer.progress(LANE, &mut self.logs[0]);
        self.owner.progress(LANE, &mut self.logs[1]);
    }

    fn drive(&mut self, done: impl Fn(&Self) -> bool) {
        let start = Instant::now();
        while !done(self) {
            self.progress();
            assert!(start.elapsed() < PATIENCE, "{:?}", self.logs);
        }
        let odd = self.logs.iter().find_map(Log::odd);
        assert_eq!(odd, None);
    }

    fn insist(&mut self, verb: impl Fn(&mut Self) -> Post) {
        let start = Instant::now();
        loop {
            match verb(self) {
                Post::Posted => return,
                Post::Busy => self.progress(),
                other => panic!("{other:?}"),
            }
            assert!(start.elapsed() < PATIENCE, "it stays busy");
        }
    }

    /// Ends both ranks at once: each waits for the other.
    fn close(self) {
        let (writer, owner) = (self.writer, self.owner);
        std::thread::scope(|scope| {
            scope.spawn(move || drop(writer));
            drop(owner);
        });
    }

    /// Memory of the owner that holds zeros, and its registration.
    fn target(&mut self, len: usize) -> (Memory, RegistrationHandle) {
        let memory = Memory::new(&vec![0; len]);
        let handle = self.owner.register(&memory.recv_buffer()).unwrap();
        (memory, handle)
    }

    /// Writes all of `source`; the value that is told is the token's.
    fn write(&mut self, source: &Memory, target: RemoteMemory<'_>, token: u64) {
        let data = source.send_buffer();
        self.insist(|pair| {
            pair.writer
                .put(LANE, pair.to, &data, target, Some(token), Token(token))
        });
    }
}

fn pattern(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|place| (place * 7 + seed) as u8 | 1).collect()
}

/// Eagerly in one piece and in several, and by rendezvous: all bytes, and no others.
pub fn come_whole(library: Option<String>, transports: &str) {
    let Some(mut pair) = Pair::open(library, transports) else {
        return;
    };
    let lengths = [0, 1, 8, 8 << 10, 64 << 10, (64 << 10) + 1, LONG];
    for (number, len) in (1..).zip(lengths) {
        let (memory, handle) = pair.target(len + 2 * MARGIN);
        let bytes = pattern(number, len);
        let source = Memory::new(&bytes);
        pair.write(&source, memory.at(MARGIN, &handle.key), number as u64);
        pair.drive(|pair| pair.logs[1].notices().last() == Some(&(number as u64)));
        let margin = [0; MARGIN];
        assert_eq!(memory.bytes(), [&margin, &bytes[..], &margin].concat());
        let token = Token(number as u64);
        pair.drive(|pair| pair.logs[0].outcome(token).is_some());
        let outcome = pair.logs[0].outcome(token);
        assert_eq!(outcome, Some(Outcome::Done(len as u64)));
        pair.owner.deregister(handle);
    }
    assert_eq!(pair.logs[1].notices().len(), lengths.len());
    pair.close();
}

/// Also within the call that posts them.
pub fn go_round(library: Option<String>, transports: &str) {
    let Some(mut pair) = Pair::open(library, transports) else {
        return;
    };
    let address = pair.writer.address();
    pair.to = pair.writer.connect(Rank::new(0), &address).unwrap();
    for (number, len) in (1..).zip([8, 64 << 10, LONG]) {
        let target = Memory::new(&vec![0; len]);
        let handle = pair.writer.register(&target.recv_buffer()).unwrap();
        let source = Memory::new(&pattern(4, len));
        pair.write(&source, target.at(0, &handle.key), number);
        pair.drive(|pair| pair.logs[0].notices().last() == Some(&number));
        assert_eq!(target.bytes(), source.bytes());
        pair.drive(|pair| pair.logs[0].outcome(Token(number)).is_some());
        pair.writer.deregister(handle);
    }
    pair.close();
}

/// Whichever way they went, and the next one comes.
pub fn are_refused(library: Option<String>, transports: &str) {
    let Some(mut pair) = Pair::open(library, transports) else {
        return;
    };
    for (number, len) in (1..).step_by(2).zip([8, LONG]) {
        let (memory, handle) = pair.target(len);
        let source = Memory::new(&pattern(1, len));
        pair.owner.deregister(handle.clone());
        pair.write(&source, memory.at(0, &handle.key), number);
        pair.drive(|pair| pair.logs[0].outcome(Token(number)).is_some());
        let outcome = match len {
            LONG => Outcome::Impossible,
            _ => Outcome::Done(len as u64),
        };
        assert_eq!(pair.logs[0].outcome(Token(number)), Some(outcome));
        let again = pair.owner.register(&memory.recv_buffer()).unwrap();
        pair.write(&source, memory.at(0, &again.key), number + 1);
        pair.drive(|pair| !pair.logs[1].notices().is_empty());
        assert_eq!(pair.logs[1].notices(), [number + 1]);
        pair.logs[1].0.clear();
        pair.drive(|pair| pair.logs[0].outcome(Token(number + 1)).is_some());
        pair.owner.deregister(again);
    }
    pair.close();
}

/// Also where the notices would have told of them.
pub fn are_flushed(library: Option<String>, transports: &str) {
    let Some(mut pair) = Pair::open(library, transports) else {
        return;
    };
    let lengths = [LONG, 8, 30_000, LONG];
    let (memory, handle) = pair.target(lengths.iter().sum());
    let sources = lengths.map(|len| Memory::new(&pattern(2, len)));
    let mut offset = 0;
    for (number, source) in (1..).zip(&sources) {
        pair.write(source, memory.at(offset, &handle.key), number);
        offset += source.0.len();
    }
    let to = pair.to;
    assert_eq!(pair.writer.fence(LANE, to), Post::Busy);
    pair.insist(|pair| pair.writer.flush(LANE, to, Token(100)));
    pair.drive(|pair| pair.logs[0].outcome(Token(100)).is_some());
    assert_eq!(pair.logs[0].outcome(Token(100)), Some(Outcome::Done(0)));
    let wanted: Vec<_> = sources.iter().map(Memory::bytes).collect();
    assert_eq!(memory.bytes(), wanted.concat());
    pair.insist(|pair| pair.writer.fence(LANE, to));
    pair.drive(|pair| (1..=4).all(|token| pair.logs[0].outcome(Token(token)).is_some()));
    pair.close();
}

/// Once memory is taken back, nobody writes to it; what was under way ends one way or the other.
pub fn stop_with_their_memory(library: Option<String>, transports: &str) {
    const WRITES: u64 = 4;
    let Some(mut pair) = Pair::open(library, transports) else {
        return;
    };
    for rounds in [0, 1, 2, 4, 8] {
        let (memory, handle) = pair.target(LONG);
        let source = Memory::new(&pattern(1, LONG));
        pair.logs = Default::default();
        for number in 1..=WRITES {
            pair.write(&source, memory.at(0, &handle.key), number);
        }
        let has_stopped = AtomicBool::new(false);
        let Pair {
            writer,
            owner,
            logs: [sent, received],
            ..
        } = &mut pair;
        std::thread::scope(|scope| {
            // The writer has to move as well: its bytes are under way.
            scope.spawn(|| {
                while !has_stopped.load(Ordering::Relaxed) {
                    writer.progress(LANE, sent);
                }
            });
            for _ in 0..rounds {
                owner.progress(LANE, received);
            }
            owner.deregister(handle);
            memory.fill(0xee);
            has_stopped.store(true, Ordering::Relaxed);
        });
        let ended = |pair: &Pair, number| pair.logs[0].outcome(Token(number)).is_some();
        pair.drive(|pair| (1..=WRITES).all(|number| ended(pair, number)));
        assert_eq!(memory.bytes(), vec![0xee; LONG]);
    }
    pair.close();
}

/// A rank takes its memory back from a peer that has asked for it and does not take it: the peer counts as failed.
pub fn come_back_from_readers(library: Option<String>, transports: &str) {
    let Some(mut pair) = Pair::open(library, transports) else {
        return;
    };
    let (memory, handle) = pair.target(LONG);
    let into = Memory::new(&vec![0; LONG]);
    let to = pair.to;
    pair.insist(|pair| {
        let source = memory.at(0, &handle.key);
        pair.writer
            .get(LANE, to, &into.recv_buffer(), source, Token(1))
    });
    // The question arrives, and the reply is begun; whoever asked stands still.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(200) {
        pair.owner.progress(LANE, &mut pair.logs[1]);
    }
    let asked = Instant::now();
    pair.owner.deregister(handle);
    assert!(asked.elapsed() < PATIENCE / 5, "{:?}", asked.elapsed());
    memory.fill(0xee);
    while pair.logs[1].odd().is_none() {
        pair.owner.progress(LANE, &mut pair.logs[1]);
        assert!(asked.elapsed() < PATIENCE, "{:?}", pair.logs);
    }
    pair.close();
}

/// Of a writer that is said to have failed, nothing more is written or told.
pub fn end_with_their_writer(library: Option<String>, transports: &str) {
    const WRITES: u64 = 4;
    for rounds in [0, 8] {
        let Some(mut pair) = Pair::open(library.clone(), transports) else {
            return;
        };
        let (memory, handle) = pair.target(LONG);
        let source = Memory::new(&pattern(1, LONG));
        for number in 1..=WRITES {
            pair.write(&source, memory.at(0, &handle.key), number);
        }
        for _ in 0..rounds {
            pair.owner.progress(LANE, &mut pair.logs[1]);
        }
        pair.owner.peer_failed(Rank::new(0), &mut pair.logs[1]);
        while pair.logs[1].odd().is_none() {
            pair.owner.progress(LANE, &mut pair.logs[1]);
        }
        pair.owner.deregister(handle);
        memory.fill(0xee);
        let told = pair.logs[1].notices().len();
        // It lives all the same, and finds out.
        let start = Instant::now();
        while !(1..=WRITES).all(|number| pair.logs[0].outcome(Token(number)).is_some()) {
            pair.progress();
            pair.writer.look_after_peers(&mut pair.logs[0]);
            assert!(start.elapsed() < PATIENCE, "{:?}", pair.logs);
        }
        assert_eq!(memory.bytes(), vec![0xee; LONG]);
        assert_eq!(pair.logs[1].notices().len(), told);
        // Nobody would acknowledge its goodbye.
        pair.writer.peer_failed(Rank::new(1), &mut pair.logs[0]);
        pair.close();
    }
}

/// A rank that leaves right after its writes takes none of them along.
pub fn come_before_the_goodbye(library: Option<String>, transports: &str) {
    let Some(mut pair) = Pair::open(library, transports) else {
        return;
    };
    let lengths = [LONG, 8, LONG];
    let (memory, handle) = pair.target(lengths.iter().sum());
    let sources = lengths.map(|len| Memory::new(&pattern(3, len)));
    let mut offset = 0;
    for (number, source) in (1..).zip(&sources) {
        pair.write(source, memory.at(offset, &handle.key), number);
        offset += source.0.len();
    }
    let Pair {
        mut writer,
        mut owner,
        logs: [_, mut log],
        ..
    } = pair;
    std::thread::scope(|scope| {
        let leaving = scope.spawn(move || {
            writer.leave();
            drop(writer);
        });
        let start = Instant::now();
        while !leaving.is_finished() || !log.0.contains(&Told::Gone) {
            owner.progress(LANE, &mut log);
            assert!(start.elapsed() < PATIENCE, "{:?}", log.0);
        }
    });
    let mut before: Vec<_> = log.notices();
    before.sort_unstable();
    assert_eq!(before, [1, 2, 3]);
    assert_eq!(log.0.last(), Some(&Told::Gone));
    let wanted: Vec<_> = sources.iter().map(Memory::bytes).collect();
    assert_eq!(memory.bytes(), wanted.concat());
}
