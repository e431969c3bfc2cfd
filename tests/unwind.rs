//! A panic of others' code inside of a call that lends a buffer: the process ends before the buffer is freed.
//!
//! The code of others is a bootstrap here, which panics when the rank makes contact with a peer that it has
//! only heard of.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use tagwire::{ANY_SOURCE, Context, Error, Session};
use tagwire_base::bootstrap::{LocalBootstrap, LocalJob};
use tagwire_base::{Bootstrap, JobSecret, Locality, MemberEvent, Rank};

/// A bootstrap that panics once it is armed.
struct Panicky {
    inner: LocalBootstrap,
    armed: Arc<AtomicBool>,
}

impl Bootstrap for Panicky {
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

    fn put(&mut self, key: &str, value: &[u8]) -> tagwire_base::Result<()> {
        self.inner.put(key, value)
    }

    fn get(&mut self, rank: Rank, key: &str, timeout: Duration) -> tagwire_base::Result<Vec<u8>> {
        assert!(!self.armed.swap(false, SeqCst), "the bootstrap panics");
        self.inner.get(rank, key, timeout)
    }

    fn fence(&mut self, timeout: Duration) -> tagwire_base::Result<()> {
        self.inner.fence(timeout)
    }

    fn put_descriptor(&mut self, descriptor: BorrowedFd<'_>) -> tagwire_base::Result<()> {
        self.inner.put_descriptor(descriptor)
    }

    fn get_descriptor(&mut self, rank: Rank, timeout: Duration) -> tagwire_base::Result<OwnedFd> {
        self.inner.get_descriptor(rank, timeout)
    }

    fn poll_events(&mut self) -> Vec<MemberEvent> {
        self.inner.poll_events()
    }

    fn leave(&mut self) {
        self.inner.leave();
    }
}

/// Bytes of a buffer.
const LEN: usize = 3000;

/// The tag of what rank 1 sends, and of what rank 0 starts.
const TAG: i32 = 5;

/// A call that panics: its name, and what the message of the process that it ends says of it.
type Case = (&'static str, &'static str);

const CASES: [Case; 5] = [
    ("isend", "a send"),
    ("isend_owned", "a send"),
    ("send_init", "the making of a persistent send"),
    ("psend_init", "the making of a partitioned send"),
    ("precv_init", "the making of a partitioned receive"),
];

/// What rank 1 does, so that rank 0 hears of it: it sends what the case receives.
fn run_rank_1(session: &Session, case: &str) {
    let world = session.world();
    let send = (case == "precv_init").then(|| world.psend_init(vec![1u8; LEN], 1, 0, TAG).unwrap());
    world.send(&[1u8], 0, 1).unwrap();
    // Rank 0 ends before it sends anything.
    drop(world.recv(&mut [0u8], 0, 1));
    drop(send);
}

/// The call of a case, with all that has to come before it; `arm` makes its contact with rank 1 panic.
fn run_rank_0(world: Context<'_>, case: &str, arm: &dyn Fn()) {
    let patience = Some(Duration::from_secs(60));
    let room = vec![0u8; LEN];
    world.wait_probe(ANY_SOURCE, 1, patience).unwrap();
    arm();
    match case {
        "isend" => world
            .session()
            .scope(|scope| drop(world.isend(scope, &room[..], 1, TAG))),
        "isend_owned" => drop(world.isend_owned(room, 1, TAG)),
        "send_init" => drop(world.send_init(room, 1, TAG)),
        "psend_init" => drop(world.psend_init(room, 1, 1, TAG)),
        "precv_init" => drop(world.precv_init(room, 1, 1, TAG)),
        other => panic!("there is no case {other}"),
    }
}

/// Which case a process of its own runs.
const CASE: &str = "UNWIND_CASE";

#[test]
#[ignore = "ends the process: `a_panic_ends_the_process_before_a_lent_buffer_is_freed` runs it in one of its own"]
fn one_case() {
    let case = std::env::var(CASE).unwrap();
    let job = LocalJob::new(2).unwrap();
    let (inner, other) = (job.member(Rank::new(0)), job.member(Rank::new(1)));
    let theirs = case.clone();
    std::thread::spawn(move || {
        let session = Session::builder().open_with(Box::new(other)).unwrap();
        run_rank_1(&session, &theirs);
    });
    let armed = Arc::new(AtomicBool::new(false));
    let bootstrap = Panicky {
        inner,
        armed: Arc::clone(&armed),
    };
    let session = Session::builder().open_with(Box::new(bootstrap)).unwrap();
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        run_rank_0(session.world(), &case, &|| armed.store(true, SeqCst));
    }));
    // Not through the end of the session, which has something lent.
    eprintln!("unwound: {}", unwound.is_err());
    std::process::exit(1);
}

#[test]
fn a_panic_ends_the_process_before_a_lent_buffer_is_freed() {
    const SIGABRT: i32 = 6;
    for (case, named) in CASES {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["one_case", "--exact", "--ignored", "--nocapture"])
            .env(CASE, case)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn();
        let ended = child.unwrap().wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.signal(), Some(SIGABRT), "{case}: {told}");
        let told_as = format!("a panic in {named}, while buffers are lent");
        assert!(told.contains("the bootstrap panics"), "{case}: {told}");
        assert!(told.contains(&told_as), "{case}: {told}");
    }
}

/// A panic while a receive is matched leaves open what the sender may know of: the elements do not come back.
#[test]
fn a_receive_whose_matching_panicked_keeps_its_elements() {
    let job = LocalJob::new(2).unwrap();
    let (inner, other) = (job.member(Rank::new(0)), job.member(Rank::new(1)));
    let (posted, over) = (AtomicBool::new(false), AtomicBool::new(false));
    let soon = |bootstrap: Box<dyn Bootstrap>| {
        let builder = Session::builder().setting("close-timeout", "100ms");
        builder.open_with(bootstrap).unwrap()
    };
    std::thread::scope(|threads| {
        threads.spawn(|| {
            let session = soon(Box::new(other));
            while !posted.load(SeqCst) {
                session.progress().unwrap();
            }
            let send = session.world().psend_init(vec![1u8; 64], 1, 0, TAG);
            while !over.load(SeqCst) {
                session.progress().unwrap();
            }
            drop(send);
        });
        let armed = Arc::new(AtomicBool::new(false));
        let bootstrap = Panicky {
            inner,
            armed: Arc::clone(&armed),
        };
        let session = soon(Box::new(bootstrap));
        let recv = session
            .world()
            .precv_init(vec![0u8; 64], 1, 1, TAG)
            .unwrap();
        armed.store(true, SeqCst);
        posted.store(true, SeqCst);
        let moved = || catch_unwind(AssertUnwindSafe(|| session.progress().unwrap()));
        while moved().is_ok() {}
        let taken = recv.into_data();
        over.store(true, SeqCst);
        assert!(matches!(taken, Err(Error::UnderWay)), "{taken:?}");
    });
}
