//! Panics while buffers are lent.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use tagwire::{Combine, Session};
use tagwire_base::bootstrap::{JobSecret, LocalJob, Locality, MemberEvent};
use tagwire_base::{Bootstrap, Rank};

use crate::{Outcome, say, sleep_until_killed};

const TAG: i32 = 77;

/// Rank 0 panics in a scope with a long send under way, which rank 1 never receives.
pub fn unmatched() -> Outcome {
    let session = Session::open()?;
    if session.rank() == 1 {
        sleep_until_killed();
    }
    let data = vec![1u8; 1 << 20];
    let _ = catch_unwind(AssertUnwindSafe(|| {
        session.scope(|scope| {
            let _send = session.world().isend(scope, &data, 1, TAG).unwrap();
            panic!("as planned");
        })
    }));
    say(0, "left the scope");
    sleep_until_killed();
}

/// A receive during which the bootstrap, which is the program's own, panics.
pub fn in_recv() -> Outcome {
    let session = with_panicking_bootstrap()?;
    let mut message = [0u8; 8];
    let _ = catch_unwind(AssertUnwindSafe(|| {
        let _ = session.world().recv(&mut message, 0, TAG);
    }));
    say(0, "got its buffer back");
    sleep_until_killed();
}

/// The same, while the end of a scope waits.
pub fn at_scopes_end() -> Outcome {
    let session = with_panicking_bootstrap()?;
    let mut message = [0u8; 8];
    let _ = catch_unwind(AssertUnwindSafe(|| {
        session.scope(|scope| drop(session.world().irecv(scope, &mut message, 0, TAG)));
    }));
    say(0, "got its buffer back");
    sleep_until_killed();
}

fn with_panicking_bootstrap() -> Result<Session, Box<dyn std::error::Error>> {
    let job = LocalJob::new(1)?;
    let bootstrap = Panicking(Box::new(job.member(Rank::new(0))));
    Ok(Session::builder().open_with(Box::new(bootstrap))?)
}

/// Does what the one inside does, until it is asked for news.
struct Panicking(Box<dyn Bootstrap>);

impl Bootstrap for Panicking {
    fn rank(&self) -> Rank {
        self.0.rank()
    }

    fn size(&self) -> u32 {
        self.0.size()
    }

    fn locality(&self) -> Locality {
        self.0.locality()
    }

    fn secret(&self) -> &JobSecret {
        self.0.secret()
    }

    fn put(&mut self, key: &str, value: &[u8]) -> tagwire_base::Result<()> {
        self.0.put(key, value)
    }

    fn get(&mut self, rank: Rank, key: &str, timeout: Duration) -> tagwire_base::Result<Vec<u8>> {
        self.0.get(rank, key, timeout)
    }

    fn fence(&mut self, timeout: Duration) -> tagwire_base::Result<()> {
        self.0.fence(timeout)
    }

    fn put_descriptor(&mut self, descriptor: BorrowedFd<'_>) -> tagwire_base::Result<()> {
        self.0.put_descriptor(descriptor)
    }

    fn get_descriptor(&mut self, rank: Rank, timeout: Duration) -> tagwire_base::Result<OwnedFd> {
        self.0.get_descriptor(rank, timeout)
    }

    fn poll_events(&mut self) -> Vec<MemberEvent> {
        panic!("as planned");
    }

    fn leave(&mut self) {
        self.0.leave();
    }
}

/// An operation of the program's own panics, while the other rank is in the same collective.
pub fn in_a_reduction() -> Outcome {
    let session = Session::open()?;
    let panics = Combine::ordered(|_: u32, _: u32| panic!("an operation"));
    session.world().allreduce(&mut [session.rank()], &panics)?;
    Err("the operation did not panic".into())
}
