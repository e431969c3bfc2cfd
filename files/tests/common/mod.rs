//! Groups whose ranks are threads of the test, and files that are in their memory.

pub mod cases;
pub mod memory;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tagwire_base::Rank;
use tagwire_base::bootstrap::{Bootstrap, LocalBootstrap, LocalJob};
use tagwire_coll::{Selection, Team};
use tagwire_conformance::network::{MemoryNetwork, MemoryOptions};
pub use tagwire_conformance::{Chance, cases_of};
use tagwire_files::{File, Hints, Mode, Opening, Result, Site, Storage};
use tagwire_pml::ob1::{Ob1, Ob1Options};
use tagwire_pml::{Messenger, ThreadLevel, WaitPolicy};
use tagwire_transport::ByteTransport;
use tagwire_transport::shm::{Shm, ShmOptions};

/// Runs `body` on each of `size` ranks, and returns what each returned.
pub fn ranks<T: Send>(size: u32, body: impl Fn(Team) -> T + Sync) -> Vec<T> {
    let network = MemoryNetwork::new(size, MemoryOptions::full());
    ranks_over(size, |member| Box::new(network.rank(member.rank())), body)
}

/// The same over shared memory.
pub fn ranks_of_a_host<T: Send>(size: u32, body: impl Fn(Team) -> T + Sync) -> Vec<T> {
    let open = |member: &mut LocalBootstrap| -> Box<dyn ByteTransport> {
        Box::new(Shm::open(ShmOptions::default(), member).unwrap())
    };
    ranks_over(size, open, body)
}

fn ranks_over<T: Send>(
    size: u32,
    open: impl Fn(&mut LocalBootstrap) -> Box<dyn ByteTransport> + Sync,
    body: impl Fn(Team) -> T + Sync,
) -> Vec<T> {
    let job = LocalJob::new(size).unwrap();
    std::thread::scope(|scope| {
        let start = |number: u32| {
            let (job, open, body) = (job.clone(), &open, &body);
            scope.spawn(move || {
                let mut member = job.member(Rank::new(number));
                let rail = open(&mut member);
                let options = Ob1Options::default();
                let ob1 = Ob1::open(&options, rail, Box::new(member)).unwrap();
                let policy = WaitPolicy::adaptive(true);
                let messenger = Arc::new(Messenger::new(ob1, ThreadLevel::Single, policy));
                let selection = Arc::new(Selection::parse("").unwrap());
                let team = Team::world(&messenger, selection);
                let end = body(team);
                let _ = messenger.close(Duration::from_secs(20));
                end
            })
        };
        let threads: Vec<_> = (0..size).map(start).collect();
        let ends = threads.into_iter().map(|thread| thread.join());
        ends.map(|end| end.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

/// Opens a file for reading and writing, which is made where there is none.
pub fn open(team: Team, storage: Arc<dyn Storage>, hints: Hints, host: u64) -> Result<File> {
    open_as(team, storage, usual(), PathBuf::from("file"), (hints, host))
}

fn usual() -> Mode {
    Mode::READ | Mode::WRITE | Mode::CREATE
}

/// The same where all ranks are on one host.
pub fn open_on_a_host(team: Team, storage: Arc<dyn Storage>, hints: Hints) -> Result<File> {
    let site = Site {
        host: 0,
        is_only_host: true,
    };
    open_at(team, storage, usual(), PathBuf::from("file"), (hints, site))
}

pub fn open_as(
    team: Team,
    storage: Arc<dyn Storage>,
    mode: Mode,
    path: PathBuf,
    (hints, host): (Hints, u64),
) -> Result<File> {
    let site = Site {
        host,
        is_only_host: false,
    };
    open_at(team, storage, mode, path, (hints, site))
}

fn open_at(
    team: Team,
    storage: Arc<dyn Storage>,
    mode: Mode,
    path: PathBuf,
    (hints, site): (Hints, Site),
) -> Result<File> {
    let opening = Opening {
        storage,
        path,
        mode,
        hints,
        site,
    };
    File::open(team, Ok(opening))
}
