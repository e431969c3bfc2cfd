//! First contact when something is in its way: a shortage that passes, an end, the loss of the store; and how long a
//! rank that opens waits for the others.
#![cfg(not(loom))]
#![allow(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use std::collections::VecDeque;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tagwire_base::bootstrap::{LocalBootstrap, LocalJob};
use tagwire_base::{
    Bootstrap, ContextId, Error as BaseError, JobSecret, Locality, MemberEvent, Rank,
    SourceSelector, Tag, TagSelector,
};
use tagwire_conformance::network::matching::{MatchNetwork, MatchOptions};
use tagwire_conformance::network::{MemoryNetwork, MemoryOptions};
use tagwire_pml::cm::{Cm, CmOptions};
use tagwire_pml::contact::OpenTimeout;
use tagwire_pml::ob1::{Ob1, Ob1Options};
use tagwire_pml::pml::Pml;
use tagwire_pml::{Error, Failure, RequestId, SendMode, Status};
use tagwire_transport::{RecvBuffer, SendBuffer};

const TAG: Tag = Tag::user(7).expect("not negative");
const WORLD: ContextId = ContextId::WORLD;
const RANKS: u32 = 3;

/// What the bootstrap of a rank does next instead of what is asked, and what it was asked.
#[derive(Default)]
struct Script {
    gets: VecDeque<BaseError>,
    events: Vec<MemberEvent>,
    asked: usize,
    fences: Vec<Duration>,
    reports_ends: bool,
    fence_fails: bool,
}

/// A bootstrap that follows a script.
struct Scripted {
    inner: LocalBootstrap,
    script: Arc<Mutex<Script>>,
}

impl Bootstrap for Scripted {
    fn rank(&self) -> Rank {
        self.inner.rank()
    }
    fn size(&self) -> u32 {
        self.inner.size()
    }
    fn locality(&self) -> Locality {
        self.inner.locality()
    }
    fn secret(&self) -> &JobSecret {
        self.inner.secret()
    }
    fn reports_ends(&self) -> bool {
        self.script.lock().unwrap().reports_ends
    }
    fn put(&mut self, key: &str, value: &[u8]) -> tagwire_base::Result<()> {
        self.inner.put(key, value)
    }
    fn get(&mut self, rank: Rank, key: &str, timeout: Duration) -> tagwire_base::Result<Vec<u8>> {
        let mut script = self.script.lock().unwrap();
        script.asked += 1;
        match script.gets.pop_front() {
            Some(error) => Err(error),
            None => self.inner.get(rank, key, timeout),
        }
    }
    fn fence(&mut self, timeout: Duration) -> tagwire_base::Result<()> {
        let mut script = self.script.lock().unwrap();
        script.fences.push(timeout);
        if script.fence_fails {
            return Err(BaseError::FenceTimeout(timeout));
        }
        // The ranks of these tests are opened one after the other.
        Ok(())
    }
    fn put_descriptor(&mut self, descriptor: BorrowedFd<'_>) -> tagwire_base::Result<()> {
        self.inner.put_descriptor(descriptor)
    }
    fn get_descriptor(&mut self, rank: Rank, timeout: Duration) -> tagwire_base::Result<OwnedFd> {
        self.inner.get_descriptor(rank, timeout)
    }
    fn poll_events(&mut self) -> Vec<MemberEvent> {
        std::mem::take(&mut self.script.lock().unwrap().events)
    }
    fn leave(&mut self) {
        self.inner.leave();
    }
}

/// Ranks of one layer, and the script of the first.
struct World {
    ranks: Vec<Box<dyn Pml>>,
    script: Arc<Mutex<Script>>,
}

fn shortage() -> BaseError {
    BaseError::system("open a file", rustix::io::Errno::MFILE)
}

fn both(script: impl Fn() -> Script) -> [World; 2] {
    let open = |matches: bool| {
        let job = LocalJob::new(RANKS).unwrap();
        let network = MemoryNetwork::new(RANKS, MemoryOptions::default());
        let matching = MatchNetwork::new(RANKS, MatchOptions::default());
        let first = Arc::new(Mutex::new(script()));
        let ranks = (0..RANKS).map(Rank::new).map(|rank| {
            let script = match rank.as_u32() {
                0 => Arc::clone(&first),
                _ => Arc::default(),
            };
            let inner = job.member(rank);
            let bootstrap = Box::new(Scripted { inner, script });
            if matches {
                let rail = Box::new(matching.rank(rank));
                Box::new(Cm::open(&CmOptions::default(), rail, bootstrap).unwrap()) as Box<dyn Pml>
            } else {
                let rail = Box::new(network.rank(rank));
                Box::new(Ob1::open(&Ob1Options::default(), rail, bootstrap).unwrap())
            }
        });
        World {
            ranks: ranks.collect(),
            script: first,
        }
    };
    [open(false), open(true)]
}

impl World {
    fn script(&self) -> std::sync::MutexGuard<'_, Script> {
        self.script.lock().unwrap()
    }

    fn send(&mut self, from: usize, to: u32, data: &[u8]) -> Result<RequestId, Error> {
        // SAFETY: the tests keep their buffers until the request has ended.
        let data = unsafe { SendBuffer::contiguous(data.as_ptr(), data.len()) };
        let mode = SendMode::Standard;
        self.ranks[from].isend(data, Rank::new(to), TAG, WORLD, mode)
    }

    fn receive(&mut self, at: usize, from: u32, room: &mut [u8]) -> RequestId {
        // SAFETY: as for `send`.
        let data = unsafe { RecvBuffer::contiguous(room.as_mut_ptr(), room.len()) };
        let from = SourceSelector::exact(Rank::new(from));
        self.ranks[at]
            .irecv(data, from, TagSelector::ANY, WORLD)
            .unwrap()
    }

    /// Moves all ranks on until an operation of rank `at` has ended.
    fn end_of(&mut self, at: usize, request: RequestId) -> Status {
        for _ in 0..100_000 {
            if let Some(status) = self.ranks[at].take(request).unwrap() {
                return status;
            }
            for rank in &mut self.ranks {
                rank.progress();
                rank.look_after_peers();
            }
        }
        panic!(
            "rank {at} still waits: {:?}",
            self.ranks[at].describe(request)
        );
    }

    /// Lets rank 0 hear from rank 1, which it is not connected to.
    fn hear_from_1(&mut self) {
        let mut room = [0];
        let receive = self.receive(0, 1, &mut room);
        let sent = self.send(1, 0, &[1]).unwrap();
        assert!(self.end_of(0, receive).ok().is_ok());
        assert!(self.end_of(1, sent).ok().is_ok());
    }
}

/// Begun by this rank or by the peer: a shortage is the error of that call, and the next one is as good as any.
#[test]
fn a_shortage_is_the_error_of_one_call() {
    for mut world in both(Script::default) {
        world.hear_from_1();
        for to in [1, 2] {
            world.script().gets.push_back(shortage());
            let error = world.send(0, to, &[2]).unwrap_err();
            assert!(error.is_shortage(), "to {to}: {error}");
            assert_eq!(world.ranks[0].failed(), [], "to {to}");
            assert_eq!(world.ranks[0].open_work(), None, "to {to}");
            let mut room = [0];
            let receive = world.receive(to as usize, 0, &mut room);
            let sent = world.send(0, to, &[2]).unwrap();
            assert!(world.end_of(to as usize, receive).ok().is_ok());
            assert!(world.end_of(0, sent).ok().is_ok());
            assert_eq!(room, [2]);
        }
    }
}

/// What a rank has to send by itself waits, and is tried again when the rank looks after its peers.
#[test]
fn an_answer_waits_for_the_end_of_a_shortage() {
    const LENGTH: usize = 1 << 20;
    let [mut world, _] = both(Script::default);
    for _ in 0..3 {
        world.script().gets.push_back(shortage());
    }
    let (data, mut room) = (vec![5; LENGTH], vec![0; LENGTH]);
    let receive = world.receive(0, 1, &mut room);
    let sent = world.send(1, 0, &data).unwrap();
    for _ in 0..1000 {
        world.ranks.iter_mut().for_each(|rank| {
            rank.progress();
        });
    }
    assert_eq!(world.script().asked, 1, "not with each look");
    assert!(world.ranks[0].open_work().is_some());
    assert!(world.end_of(0, receive).ok().is_ok());
    assert!(world.end_of(1, sent).ok().is_ok());
    assert_eq!(world.script().asked, 4);
    assert_eq!(world.ranks[0].failed(), []);
    assert!(room == data);
}

/// A reply that can never be sent ends the receive, by a name that does not call the peer dead.
#[test]
fn a_peer_that_cannot_be_answered_is_unreachable() {
    const LENGTH: usize = 1 << 20;
    let [mut world, _] = both(Script::default);
    let refusal = BaseError::Bootstrap("no".to_owned());
    world.script().gets.push_back(refusal);
    let (data, mut room) = (vec![5; LENGTH], vec![0; LENGTH]);
    let receive = world.receive(0, 1, &mut room);
    let sent = world.send(1, 0, &data).unwrap();
    let unreachable = Failure::Unreachable(Rank::new(1));
    assert_eq!(world.end_of(0, receive).failure, Some(unreachable));
    assert_eq!(
        world.ranks[1].take(sent).unwrap(),
        None,
        "it is alive and waits"
    );
    std::mem::forget(data);
}

/// A send meets what does not pass: it is refused, and the peer is none the worse.
#[test]
fn only_an_end_makes_a_peer_fail() {
    for mut world in both(Script::default) {
        world.hear_from_1();
        for to in [1, 2] {
            let refusal = BaseError::Bootstrap("no".to_owned());
            world.script().gets.push_back(refusal);
            let error = world.send(0, to, &[2]).unwrap_err();
            assert!(!error.is_shortage(), "to {to}: {error}");
            assert!(!world.ranks[0].failed().contains(&Rank::new(to)));
            // The same, and the bootstrap has news.
            world
                .script()
                .gets
                .push_back(BaseError::Bootstrap("no".to_owned()));
            let rank = Rank::new(to);
            world.script().events.push(MemberEvent::Failed(rank));
            let failure = match world.send(0, to, &[2]) {
                Ok(sent) => world.end_of(0, sent).failure,
                Err(Error::Failed(failure)) => Some(failure),
                Err(error) => panic!("to {to}: {error}"),
            };
            assert_eq!(failure, Some(Failure::PeerFailed(rank)));
            assert!(world.ranks[0].failed().contains(&rank));
        }
    }
}

/// Without the store nothing is heard of ranks that are not in contact: nobody waits for them. Those in contact stay.
#[test]
fn a_lost_store_ends_waits_for_strangers() {
    for mut world in both(Script::default) {
        world.hear_from_1();
        let (mut a, mut b) = ([0], [0]);
        let (friend, stranger) = (world.receive(0, 1, &mut a), world.receive(0, 2, &mut b));
        world.script().events.push(MemberEvent::StoreLost);
        let lost = Failure::Unreachable(Rank::new(2));
        assert_eq!(world.end_of(0, stranger).failure, Some(lost));
        let sent = world.send(1, 0, &[9]).unwrap();
        assert!(world.end_of(0, friend).ok().is_ok());
        assert!(world.end_of(1, sent).ok().is_ok());
        assert_eq!(a, [9]);
    }
}

#[test]
fn opening_has_no_limit_where_ends_are_reported() {
    for reports_ends in [false, true] {
        for world in both(|| Script {
            reports_ends,
            ..Script::default()
        }) {
            let limit = if reports_ends {
                Duration::MAX
            } else {
                OpenTimeout::DEFAULT
            };
            assert_eq!(world.script().fences, [limit]);
        }
    }
}

#[test]
fn a_rank_that_opens_too_late_is_an_error_that_names_the_setting() {
    let job = LocalJob::new(2).unwrap();
    let network = MemoryNetwork::new(2, MemoryOptions::default());
    let script = Arc::new(Mutex::new(Script {
        fence_fails: true,
        reports_ends: true,
        ..Script::default()
    }));
    let options = Ob1Options {
        open_timeout: OpenTimeout::Limit(Duration::from_secs(7)),
        ..Ob1Options::default()
    };
    let bootstrap = Scripted {
        inner: job.member(Rank::new(0)),
        script: Arc::clone(&script),
    };
    let rail = Box::new(network.rank(Rank::new(0)));
    let error = Ob1::open(&options, rail, Box::new(bootstrap)).unwrap_err();
    assert!(error.to_string().contains("'open-timeout'"), "{error}");
    assert_eq!(script.lock().unwrap().fences, [Duration::from_secs(7)]);
}
