//! What the ranks of a simulated job take: nothing for who is silent, little for who is not.
#![allow(unsafe_code, clippy::unwrap_used, reason = "counts allocations")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};
use std::time::Duration;

use tagwire_base::{ContextId, Rank, SourceSelector, Tag, TagSelector};
use tagwire_bench_sim::{Arguments, BUSY_PEER, RANK, program, run};
use tagwire_pml::ob1::{Ob1, Ob1Options};
use tagwire_pml::{PointToPoint, RequestId, SendMode};
use tagwire_sim::presets::preset;
use tagwire_sim::{SimJob, SimNetwork, SimOptions};
use tagwire_transport::{RecvBuffer, SendBuffer};

/// Most bytes that a rank keeps of a peer.
const PEER: u64 = 1 << 10;

/// Counts the bytes that are allocated, and the most of them.
struct Counting;

static NOW: AtomicIsize = AtomicIsize::new(0);
static MOST: AtomicIsize = AtomicIsize::new(0);

fn change(bytes: isize) {
    let now = NOW.fetch_add(bytes, Relaxed) + bytes;
    MOST.fetch_max(now, Relaxed);
}

// SAFETY: everything is the system's allocator's; counting touches two numbers.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        change(layout.size() as isize);
        // SAFETY: the caller's promise, handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        change(-(layout.size() as isize));
        // SAFETY: as above.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn now() -> u64 {
    NOW.load(Relaxed) as u64
}

/// Returns the most bytes that a job takes.
fn most(name: &str, ranks: u32) -> u64 {
    let before = NOW.load(Relaxed);
    MOST.store(before, Relaxed);
    let options = SimOptions::of(preset("niagara").unwrap().machine);
    let arguments = Arguments {
        rounds: 2,
        bytes: 8,
        compute: Duration::ZERO,
    };
    run(program(name).unwrap(), ranks, &options, arguments).unwrap();
    (MOST.load(Relaxed) - before) as u64
}

/// Sends a message from one rank to another, and takes its end on both.
fn send(ranks: &mut [Ob1], from: usize, to: usize) {
    let (bytes, mut room) = ([1; 8], [0; 8]);
    // SAFETY: both are complete before this returns.
    let (data, into) = unsafe {
        let into = RecvBuffer::contiguous(room.as_mut_ptr(), room.len());
        (SendBuffer::contiguous(bytes.as_ptr(), bytes.len()), into)
    };
    let (tag, world) = (Tag::user(1).unwrap(), ContextId::WORLD);
    let source = SourceSelector::exact(Rank::new(from as u32));
    let received = ranks[to]
        .irecv(into, source, TagSelector::exact(tag), world)
        .unwrap();
    let there = Rank::new(to as u32);
    let sent = ranks[from]
        .isend(data, there, tag, world, SendMode::Standard)
        .unwrap();
    let is_sent = |rank: &Ob1| sent == RequestId::COMPLETE || rank.is_complete(sent);
    while !(ranks[to].is_complete(received) && is_sent(&ranks[from])) {
        for rank in [from, to] {
            ranks[rank].progress();
        }
    }
    assert_eq!(ranks[to].take(received).unwrap().unwrap().failure, None);
    if sent != RequestId::COMPLETE {
        ranks[from].take(sent).unwrap().unwrap();
    }
    assert_eq!(room, bytes);
}

/// Returns what a rank has that has exchanged messages with so many peers, in all layers.
fn rank_with(peers: u32) -> u64 {
    let size = peers + 1;
    let options = SimOptions::of(preset("niagara").unwrap().machine);
    let network = SimNetwork::new(size, options);
    let job = SimJob::new(&network);
    let open = |rank| {
        let (transport, clock) = network.open(Rank::new(rank));
        let bootstrap = Box::new(job.member(Rank::new(rank), clock));
        Ob1::open(&Ob1Options::default(), Box::new(transport), bootstrap).unwrap()
    };
    let before = now();
    let mut ranks: Vec<_> = (0..size).map(open).collect();
    for from in 0..ranks.len() {
        for to in 0..ranks.len() {
            if from != to {
                send(&mut ranks, from, to);
            }
        }
    }
    (now() - before) / u64::from(size)
}

/// One test: what it counts is the process's.
#[test]
fn ranks_take_what_is_said() {
    // Tables double when they are full.
    let peer = (rank_with(64) - rank_with(32)) / 32;
    println!("a peer: {peer} bytes");
    assert!(peer <= PEER, "{peer}");
    // Of a ping-pong all ranks but two are silent.
    let (few, many) = (most("ping-pong", 1000), most("ping-pong", 3000));
    let silent = (many - few) / 2000;
    println!("a silent rank: {silent} bytes");
    assert!(silent <= RANK, "{silent}");
    // Among more ranks each has as much: those with whom it does not speak take nothing.
    let more = (most("ping-pong", 12_000) - many) / 9000;
    println!("the same among 12,000: {more} bytes");
    assert!(more <= silent + silent / 10, "{silent}, {more}");
    // Six neighbours, of whom each rank is one in turn, with what is under way to and from them.
    let (few, many) = (most("halo3d", 1000), most("halo3d", 3000));
    let busy = ((many - few) / 2000).saturating_sub(silent) / 6;
    println!("a peer with messages under way: {busy} bytes");
    assert!(busy <= BUSY_PEER, "{busy}");
}
