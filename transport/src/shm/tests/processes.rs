//! Peers in processes of their own: the test program runs itself again as rank 1.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tagwire_base::{Bootstrap, Error, JobSecret, Locality, MemberEvent, Result};

use super::*;
use crate::cooperative::{CooperativeTransfers, Offer, Ticket};
use crate::data::{RecvBuffer, SendBuffer};
use crate::shm::offers::{self, Chunk, Side, Taken};
use crate::transport::Transport;

const PART: &str = "SHM_TEST_PART";
const ADDRESS: &str = "SHM_TEST_ADDRESS";
const SECRET: &str = "SHM_TEST_SECRET";
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// Just what a rank must know.
pub(super) struct Given {
    pub rank: u32,
    pub secret: JobSecret,
}

impl Bootstrap for Given {
    fn rank(&self) -> Rank {
        Rank::new(self.rank)
    }
    fn size(&self) -> u32 {
        2
    }
    fn locality(&self) -> Locality {
        Locality {
            local_rank: self.rank,
            local_size: 2,
            first_local: Rank::new(0),
            address: None,
        }
    }
    fn secret(&self) -> &JobSecret {
        &self.secret
    }
    fn put(&mut self, _: &str, _: &[u8]) -> Result<()> {
        Ok(())
    }
    fn get(&mut self, _: Rank, _: &str, _: Duration) -> Result<Vec<u8>> {
        Err(Error::Bootstrap("there is no store".to_owned()))
    }
    fn fence(&mut self, _: Duration) -> Result<()> {
        Ok(())
    }
    fn put_descriptor(&mut self, _: BorrowedFd<'_>) -> Result<()> {
        Ok(())
    }
    fn get_descriptor(&mut self, _: Rank, _: Duration) -> Result<OwnedFd> {
        Err(Error::Bootstrap("there is no store".to_owned()))
    }
    fn poll_events(&mut self) -> Vec<MemberEvent> {
        Vec::new()
    }
    fn leave(&mut self) {}
}

fn member(rank: u32, secret: JobSecret) -> Member {
    let shm = Shm::open(ShmOptions::default(), &mut Given { rank, secret }).unwrap();
    Member {
        shm,
        log: Log::default(),
    }
}

/// Opens rank 0 here and starts rank 1, which plays `part`.
fn with_child(part: &str) -> (Member, Child) {
    let secret = JobSecret::generate().unwrap();
    let parent = member(0, secret.clone());
    let address: String = parent
        .shm
        .address()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "shm::tests::processes::plays_its_part",
            "--nocapture",
        ])
        .env(PART, part)
        .env(ADDRESS, address)
        .env(SECRET, secret.to_hex())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    (parent, child)
}

fn until(member: &mut Member, what: &str, done: impl Fn(&Log) -> bool) {
    let start = Instant::now();
    while !done(&member.log) {
        assert!(start.elapsed() < PATIENCE, "waited in vain for {what}");
        member.progress();
        member.look_after_peers();
        std::thread::yield_now();
    }
}

/// What the child does; in the parent's run of the tests, nothing.
#[test]
fn plays_its_part() {
    let Ok(part) = std::env::var(PART) else {
        return;
    };
    let hex = std::env::var(ADDRESS).unwrap();
    let address: Vec<u8> = (0..hex.len() / 2)
        .map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap())
        .collect();
    let secret = JobSecret::from_hex(&std::env::var(SECRET).unwrap()).unwrap();
    let mut own = member(1, secret);
    let to = own.shm.connect(Rank::new(0), &address).unwrap();
    for number in 0..10 {
        assert_eq!(own.send(to, Class::Data, number, &[3; 99]), Post::Posted);
    }
    if part != "die at once" {
        until(&mut own, "an offer", |log| !log.messages.is_empty());
        let (_, second, first) = own.log.messages.pop_front().unwrap();
        let first = u64::from_le_bytes(first.try_into().unwrap());
        let mut target = vec![0; 64 << 20];
        // SAFETY: the buffer lives as long as the process does anything with it.
        let data = unsafe { RecvBuffer::contiguous(target.as_mut_ptr(), target.len()) };
        let post = own
            .shm
            .claim(LANE, to, Ticket([first, second]), &data, Token(1));
        assert_eq!(post, Post::Posted);
        if part == "stop in the middle" {
            // A chunk is claimed, and the copying never begins.
            let area = own.shm.peers[to.index()].inbound.clone().unwrap();
            let claims = &area.offers[first as u32 as usize].claims;
            let taken = offers::take(claims, Side::Claimer, 16 << 10, |_| 8);
            assert_eq!(taken, Taken::Chunk(Chunk { first: 0, count: 8 }));
            let own = rustix::process::getpid();
            rustix::process::kill_process(own, rustix::process::Signal::STOP).unwrap();
            // Other threads may be told first.
            std::thread::sleep(PATIENCE);
        }
        own.progress();
        if part == "finish" {
            until(&mut own, "the end", |log| !log.completions.is_empty());
            assert_eq!(own.log.completions, [(1, Outcome::Done(64 << 20))]);
            assert!(target == pattern());
            own.leave();
            return;
        }
    }
    let own = rustix::process::getpid();
    rustix::process::kill_process(own, rustix::process::Signal::KILL).unwrap();
    std::thread::sleep(PATIENCE);
}

fn pattern() -> Vec<u8> {
    periodic(64 << 20, 2048, |i| ((i * 7) >> 3) as u8)
}

/// Offers 64 MiB to the child, which made contact.
fn offer_to(parent: &mut Member, source: &[u8]) {
    until(parent, "contact", |log| log.messages.len() == 10);
    let to = parent.log.ups[0].0;
    // SAFETY: the caller keeps the bytes until the transfer has ended.
    let data = unsafe { SendBuffer::contiguous(source.as_ptr(), source.len()) };
    let Offer::Open(ticket) = parent.shm.offer(LANE, to, &data, Token(5)) else {
        panic!("no offer")
    };
    let first = ticket.0[0].to_le_bytes();
    let post = parent.send(to, Class::Control, ticket.0[1], &first);
    assert_eq!(post, Post::Posted);
}

#[test]
fn what_a_dead_peer_sent_is_delivered_and_then_it_has_failed() {
    let (mut parent, mut child) = with_child("die at once");
    child.wait().unwrap();
    until(&mut parent, "the failure", |log| !log.failed.is_empty());
    assert_eq!(parent.log.messages.len(), 10);
    assert!(
        parent
            .log
            .messages
            .iter()
            .all(|(_, _, data)| data == &[3; 99])
    );
    let gone = parent.log.failed[0];
    assert_eq!(parent.log.ups, [(gone, Rank::new(1))]);
    assert_eq!(parent.send(gone, Class::Data, 1, b""), Post::Gone);
}

#[test]
fn a_buffer_comes_back_from_a_peer_killed_in_the_middle() {
    let (mut parent, mut child) = with_child("die in the middle");
    let source = pattern();
    offer_to(&mut parent, &source);
    let start = Instant::now();
    // The parent does not copy: the transfer is open when the child dies.
    while !matches!(child.try_wait(), Ok(Some(_))) {
        assert!(start.elapsed() < PATIENCE);
        std::thread::yield_now();
    }
    until(&mut parent, "the buffer", |log| {
        !log.completions.is_empty() && !log.failed.is_empty()
    });
    assert_eq!(parent.log.completions, [(5, Outcome::PeerFailed)]);
}

/// Waits until the child has stopped itself.
fn wait_for_stop(child: &Child) {
    let id = rustix::process::Pid::from_child(child);
    let options = rustix::process::WaitOptions::UNTRACED;
    let (_, status) = rustix::process::waitpid(Some(id), options)
        .unwrap()
        .unwrap();
    assert!(status.stopped(), "{status:?}");
}

/// An operation that a death ends does so together with the word of who is dead: nothing more is sent to it.
#[test]
fn an_operation_that_a_death_ends_says_who_is_dead() {
    let (mut parent, mut child) = with_child("stop in the middle");
    let source = pattern();
    offer_to(&mut parent, &source);
    wait_for_stop(&child);
    // A chunk is copied while it lives.
    parent.progress();
    child.kill().unwrap();
    child.wait().unwrap();
    let start = Instant::now();
    while parent.log.completions.is_empty() {
        parent.progress();
        assert!(start.elapsed() < PATIENCE);
    }
    assert_eq!(parent.log.completions, [(5, Outcome::PeerFailed)]);
    assert_eq!(parent.log.failed.len(), 1);
}

#[test]
fn a_peer_that_is_stopped_keeps_the_buffer() {
    let (mut parent, mut child) = with_child("stop in the middle");
    let source = pattern();
    offer_to(&mut parent, &source);
    wait_for_stop(&child);
    // Whoever takes it for dead is told so; the buffer is another thing.
    parent.shm.peer_failed(Rank::new(1), &mut parent.log);
    assert_eq!(parent.log.failed.len(), 1);
    for _ in 0..1000 {
        parent.progress();
        parent.look_after_peers();
    }
    assert_eq!(parent.log.completions, []);
    child.kill().unwrap();
    until(&mut parent, "the buffer", |log| !log.completions.is_empty());
    assert_eq!(parent.log.completions, [(5, Outcome::PeerFailed)]);
    child.wait().unwrap();
}

/// Closing takes bounded time, and names who may still touch a buffer, which is not given back.
#[test]
fn who_closes_knows_which_buffers_are_held() {
    let (mut parent, mut child) = with_child("stop in the middle");
    let source = pattern();
    offer_to(&mut parent, &source);
    wait_for_stop(&child);
    assert_eq!(parent.shm.abandon_transfers(), [Rank::new(1)]);
    child.kill().unwrap();
    child.wait().unwrap();
    drop(parent.shm);
    assert_eq!(parent.log.completions, []);
}

#[test]
fn two_processes_share_the_copying() {
    let (mut parent, mut child) = with_child("finish");
    let source = pattern();
    offer_to(&mut parent, &source);
    until(&mut parent, "the end", |log| !log.completions.is_empty());
    assert_eq!(parent.log.completions, [(5, Outcome::Done(64 << 20))]);
    until(&mut parent, "the goodbye", |log| !log.left.is_empty());
    assert!(child.wait().unwrap().success());
    assert!(parent.log.failed.is_empty());
}
