//! Groups whose ranks are threads of the test.
#![allow(dead_code)]

pub mod cases;
pub mod graphs;
pub mod shm;
pub mod sides;

use std::sync::Arc;
use std::time::Duration;

use tagwire_base::Rank;
use tagwire_base::bootstrap::LocalJob;
use tagwire_coll::{ALGORITHMS, Collective, Needs, Selection, Team};
use tagwire_conformance::network::{MemoryNetwork, MemoryOptions};
use tagwire_layout::{Basic, Layout, Operation, UserOperation};
use tagwire_pml::ob1::{Ob1, Ob1Options};
use tagwire_pml::{Messenger, ThreadLevel, WaitPolicy};
use tagwire_transport::ByteTransport;
use tagwire_transport::fault::FaultTransport;

/// In place of a selection: the table's, and ranks tell each other what they call.
pub const CHECKED: &str = "checked";

/// In front of a selection: reductions of floating-point numbers are in one tree.
pub const FIXED: &str = "fixed,";

/// Returns how many rounds a test makes, `usual` ones: as many more as properties have more cases, where that is said.
pub fn rounds(usual: u64) -> u64 {
    let cases = std::env::var("PROPTEST_CASES").ok();
    let cases = cases.and_then(|cases| cases.parse::<u64>().ok());
    cases.map_or(usual, |cases| (usual * cases).div_ceil(256).max(1))
}

/// Returns what forces the algorithms that any group can take: the first of each operation, then the second, and so on.
pub fn each_forced() -> Vec<String> {
    let any = || ALGORITHMS.iter().filter(|it| it.needs == Needs::Nothing);
    let of = |what: Collective, place: usize| {
        let mut own = any().filter(|it| it.collective == what);
        own.clone().nth(place).or_else(|| own.next())
    };
    let most = Collective::ALL
        .iter()
        .map(|what| any().filter(|it| it.collective == *what).count());
    (0..most.max().unwrap())
        .map(|place| {
            let names = Collective::ALL.iter().filter_map(|what| of(*what, place));
            names.map(ToString::to_string).collect::<Vec<_>>().join(",")
        })
        .collect()
}

/// Runs `body` on each of `size` ranks, with messages that overtake each other, and returns what each returned.
pub fn ranks<T: Send>(
    size: usize,
    selection: &str,
    body: impl Fn(&Arc<Team>) -> T + Sync,
) -> Vec<T> {
    on_network(&network(size), selection, |team, _| body(team))
}

/// The same with ranks that any of their threads may call.
pub fn threaded<T: Send>(size: usize, body: impl Fn(&Arc<Team>) -> T + Sync) -> Vec<T> {
    let selection = selection_of(size, "");
    open(
        &network(size),
        selection,
        ThreadLevel::Multiple,
        |team, _| body(team),
    )
}

/// The same for ranks on these hosts.
pub fn on_hosts<T: Send>(
    hosts: &[u32],
    forced: &str,
    body: impl Fn(&Arc<Team>) -> T + Sync,
) -> Vec<T> {
    let selection = selection_of(hosts.len(), forced).with_hosts(hosts, hosts.len() % 2 == 1);
    let level = ThreadLevel::Single;
    open(&network(hosts.len()), selection, level, |team, _| {
        body(team)
    })
}

pub fn network(size: usize) -> MemoryNetwork {
    MemoryNetwork::new(size as u32, MemoryOptions::full())
}

/// The same on a network of the caller's; `body` gets its rank's number too.
pub fn on_network<T: Send>(
    network: &MemoryNetwork,
    selection: &str,
    body: impl Fn(&Arc<Team>, usize) -> T + Sync,
) -> Vec<T> {
    let selection = selection_of(network.size() as usize, selection);
    open(network, selection, ThreadLevel::Single, body)
}

fn selection_of(size: usize, text: &str) -> Selection {
    let checks = text == CHECKED;
    let fixed = text.starts_with(FIXED);
    let forced = text.trim_start_matches(CHECKED).trim_start_matches(FIXED);
    let selection = Selection::parse(forced).unwrap().fixed(fixed);
    // Odd sizes are in pieces.
    selection.on_one_host(size % 2 == 1).checking(checks)
}

fn open<T: Send>(
    network: &MemoryNetwork,
    selection: Selection,
    level: ThreadLevel,
    body: impl Fn(&Arc<Team>, usize) -> T + Sync,
) -> Vec<T> {
    let size = network.size();
    let job = LocalJob::new(size).unwrap();
    let selection = Arc::new(selection);
    std::thread::scope(|scope| {
        let start = |number: u32| {
            let (job, selection, body) = (job.clone(), Arc::clone(&selection), &body);
            scope.spawn(move || {
                let rank = Rank::new(number);
                let rail: Box<dyn ByteTransport> = Box::new(network.rank(rank));
                let faults = "seed=7,delay=0..4,reorder=4".parse().unwrap();
                let rail = Box::new(FaultTransport::new(rail, rank, faults));
                let options = Ob1Options::default();
                let ob1 = Ob1::open(&options, rail, Box::new(job.member(rank))).unwrap();
                let policy = WaitPolicy::adaptive(true);
                let messenger = Arc::new(Messenger::new(ob1, level, policy));
                let team = Arc::new(Team::world(&messenger, selection));
                let end = body(&team, number as usize);
                let _ = messenger.close(Duration::from_secs(20));
                end
            })
        };
        let threads: Vec<_> = (0..size).map(start).collect();
        let ends = threads.into_iter().map(|thread| thread.join());
        ends.map(Result::unwrap).collect()
    })
}

/// Returns parts one behind the other.
pub fn joined(parts: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    parts.collect::<Vec<_>>().concat()
}

/// Compositions of x -> a x + b, which depend on their order: the operation and its layout.
pub fn composition() -> (Operation, Layout) {
    let compose = |_: &Layout, left: &[u8], into: &mut [u8]| {
        for (left, into) in left.chunks_exact(16).zip(into.chunks_exact_mut(16)) {
            let word =
                |bytes: &[u8], at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
            let (a, b) = (word(left, 0), word(left, 8));
            let (c, d) = (word(into, 0), word(into, 8));
            into[..8].copy_from_slice(&a.wrapping_mul(c).to_ne_bytes());
            into[8..].copy_from_slice(&a.wrapping_mul(d).wrapping_add(b).to_ne_bytes());
        }
    };
    let operation = UserOperation::new("composition", false, compose);
    let layout = Layout::of(Basic::U64).contiguous(2).unwrap();
    (Operation::User(Arc::new(operation)), layout)
}
