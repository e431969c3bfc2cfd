//! The kit over providers that return, and ask for, what those of this machine do not: a wrapper of one
//! of them. Skipped, loudly, where there is no libfabric.
#![allow(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tagwire_base::bootstrap::LocalBootstrap;
use tagwire_conformance::assert_check;
use tagwire_conformance::byte::{Factory, Job};
use tagwire_libfabric_sys::bindings::{FI_ECANCELED, FI_EIO};
use tagwire_transport::{
    AmHeader, Arrival, ByteTransport, Class, EndpointId, Lane, Outcome, PeerEvent, Post,
    RecvBuffer, RemoteAccess, RemoteMemory, Result, SendBuffer, Token, Transport, Upcalls,
};

use super::{Exposed, Ofi};
use crate::config::OfiOptions;
use crate::engine::{Engine, Op};
use crate::fabric::faulty::{self, Fate};
use crate::fixture::{self, Ranks};
use crate::open::{Use, open_info};

type Open = fn(&OfiOptions, &LocalBootstrap) -> Result<Ofi>;

/// Opens a rank whose posts find the provider busy, and whose operations fail, as the script says.
fn faulty(options: &OfiOptions, member: &LocalBootstrap) -> Result<Ofi> {
    let mut ofi = Ofi::open(options, member)?;
    ofi.engine.peers.net.make_faulty();
    Ok(ofi)
}

/// Opens a rank of a provider that wants registrations bound to the endpoint (`FI_MR_ENDPOINT`).
fn bound(options: &OfiOptions, member: &LocalBootstrap) -> Result<Ofi> {
    let mut ofi = Ofi::open(options, member)?;
    ofi.engine.peers.net.ask_for_bound_registrations();
    Ok(ofi)
}

/// Opens a rank of a provider without multi-receive (`FI_MULTI_RECV`).
fn plain(options: &OfiOptions, member: &LocalBootstrap) -> Result<Ofi> {
    let mut info = open_info(options, 8, Use::Bytes)?;
    info.withhold_multi_receives();
    let engine = Engine::open(info, options, member)?;
    assert!(!engine.receives_many());
    Ok(Ofi {
        ordered: false,
        exposed: Exposed::default(),
        engine,
    })
}

fn check(name: &str, patience: u32, open: Open) {
    let Some(options) = fixture::options(Use::Bytes) else {
        return;
    };
    faulty::be_busy(patience);
    let factory = Factory::new(8, move |size| {
        let Ranks { ranks, silent } = fixture::open_all(size, &options, open);
        let boxed = |ofi| Box::new(ofi) as Box<dyn ByteTransport>;
        let job = Job::new(ranks.into_iter().map(boxed).collect());
        Ok(job.with_kill(move |rank, transport| fixture::die(&silent, rank, transport)))
    });
    assert_check(name, &factory);
    faulty::clear();
}

macro_rules! kit {
    ($name:ident, $patience:literal, $open:ident) => {
        mod $name {
            fn check(name: &str) {
                super::check(name, $patience, super::$open);
            }

            tagwire_conformance::transport_conformance!(@for_each tests);
        }
    };
}

kit!(without_room, 3, faulty);
kit!(bound_registrations, 0, bound);
kit!(plain_receives, 0, plain);

/// What a rank told.
#[derive(Default)]
struct Events {
    ends: Vec<(Token, Outcome)>,
    messages: usize,
    failures: usize,
}

impl Upcalls for Events {
    fn deliver(&mut self, _: Arrival<'_>) {
        self.messages += 1;
    }

    fn complete(&mut self, token: Token, outcome: Outcome) {
        self.ends.push((token, outcome));
    }

    fn peer(&mut self, event: PeerEvent) {
        self.failures += usize::from(matches!(event, PeerEvent::Failed(_)));
    }
}

/// A get from a living rank has the slot that a send to one that is gone had: it is not given up with
/// that, while the provider goes on writing to its buffer.
#[test]
fn gets_from_the_living_are_not_given_up_with_the_gone() {
    let Some(mut pair) = Pair::open(faulty) else {
        return;
    };
    // The one that fails is this rank itself.
    let address = pair.ranks[0].address();
    let itself = pair.ranks[0]
        .connect(tagwire_base::Rank::new(0), &address)
        .unwrap();
    pair.until(|pair| {
        let hello = pair.ranks[0].send(Lane(0), itself, Class::Data, AmHeader([0, 0]), &[]);
        hello == Post::Posted
    });
    pair.until(|pair| pair.events[0].messages > 0);
    let sending = |pair: &Pair| {
        pair.ranks[0]
            .engine
            .peers
            .links
            .iter()
            .any(|(_, l)| l.sending > 0)
    };
    pair.until(|pair| !sending(pair));
    faulty::destine(Fate::Send(FI_EIO));
    // SAFETY: the memory is kept longer than the ranks, and left alone meanwhile.
    let data = unsafe { SendBuffer::contiguous(pair.own.as_ptr(), 1000) };
    let rank = &mut pair.ranks[0];
    let posted = rank.send_zero_copy(Lane(0), itself, AmHeader([1, 0]), &data, Token(1));
    assert_eq!(posted, Post::Posted);
    let slots = |pair: &Pair, wanted: fn(&Op) -> bool| -> Vec<u32> {
        let ops = pair.ranks[0].engine.peers.ops.iter();
        ops.filter(|(_, op)| wanted(op))
            .map(|(id, _)| id.slot())
            .collect()
    };
    let before = slots(&pair, |op| matches!(op, Op::ZeroCopy { .. }));
    pair.until(|pair| pair.events[0].failures > 0 && !pair.events[0].ends.is_empty());
    assert_eq!(pair.events[0].ends, [(Token(1), Outcome::PeerFailed)]);
    pair.memory.fill(9);
    pair.access(Token(2), false);
    assert_eq!(slots(&pair, |op| matches!(op, Op::Access(_))), before);
    // The owner of the memory computes.
    loop {
        pair.ranks[0].progress(Lane(0), &mut pair.events[0]);
        if pair.ranks[0].engine.peers.dying.is_empty() {
            break;
        }
    }
    assert_eq!(pair.events[0].ends.len(), 1, "{:?}", pair.events[0].ends);
    pair.until(|pair| pair.events[0].ends.len() == 2);
    assert_eq!(
        pair.events[0].ends[1],
        (Token(2), Outcome::Done(LEN as u64))
    );
    assert_eq!(pair.own, vec![9; LEN]);
    // Nor does a flush wait for ever for what was given up.
    let to = pair.to;
    assert_eq!(pair.ranks[0].flush(Lane(0), to, Token(3)), Post::Posted);
    pair.until(|pair| pair.events[0].ends.len() == 3);
}

/// Two ranks in contact, of which the first can reach memory of the second.
struct Pair {
    ranks: Vec<Ofi>,
    /// How to make each go without a word.
    silent: Vec<Arc<AtomicBool>>,
    events: [Events; 2],
    to: EndpointId,
    /// Of the second.
    memory: Vec<u8>,
    key: Vec<u8>,
    /// Of the first.
    own: Vec<u8>,
}

const LEN: usize = 10_000;

impl Pair {
    fn open(open: Open) -> Option<Self> {
        Self::of_length(LEN, open)
    }

    /// The same with so many bytes each.
    fn of_length(len: usize, open: Open) -> Option<Self> {
        let options = fixture::options(Use::Bytes)?;
        let Ranks { mut ranks, silent } = fixture::open_all(2, &options, open);
        let address = ranks[1].address();
        let to = ranks[0]
            .connect(tagwire_base::Rank::new(1), &address)
            .unwrap();
        let mut memory = vec![0; len];
        // SAFETY: the memory is kept longer than the ranks.
        let target = unsafe { RecvBuffer::contiguous(memory.as_mut_ptr(), len) };
        let key = ranks[1].register(&target).unwrap().key;
        let mut pair = Self {
            ranks,
            silent,
            events: [Events::default(), Events::default()],
            to,
            memory,
            key,
            own: vec![7; len],
        };
        pair.until(|pair| {
            let hello = pair.ranks[0].send(Lane(0), to, Class::Data, AmHeader([0, 0]), &[]);
            hello == Post::Posted
        });
        pair.until(|pair| pair.events[1].messages > 0);
        Some(pair)
    }

    fn until(&mut self, mut done: impl FnMut(&mut Self) -> bool) {
        while !done(self) {
            for (rank, events) in self.ranks.iter_mut().zip(&mut self.events) {
                rank.progress(Lane(0), events);
            }
        }
    }

    /// Posts a put of everything, with a notice where the provider has one that can be used, or a get.
    fn access(&mut self, token: Token, put: bool) {
        let memory = (self.memory.as_ptr().addr() as u64, self.key.clone());
        self.until(|pair| {
            let target = RemoteMemory {
                address: memory.0,
                key: &memory.1,
            };
            let (own, to) = (&mut pair.own, pair.to);
            let (start, len, rank) = (own.as_mut_ptr(), own.len(), &mut pair.ranks[0]);
            let notice = (rank.limits().immediate_width > 0).then_some(token.0);
            // SAFETY: the memory is kept longer than the ranks, and left alone meanwhile.
            let post = unsafe {
                match put {
                    true => {
                        let data = SendBuffer::contiguous(start, len);
                        rank.put(Lane(0), to, &data, target, notice, token)
                    }
                    false => {
                        let data = RecvBuffer::contiguous(start, len);
                        rank.get(Lane(0), to, &data, target, token)
                    }
                }
            };
            assert!(matches!(post, Post::Posted | Post::Busy), "{post:?}");
            post == Post::Posted
        });
    }
}

#[test]
fn remote_accesses_that_find_no_room_are_made_again() {
    let Some(mut pair) = Pair::open(faulty) else {
        return;
    };
    faulty::be_busy(3);
    for number in 0..30 {
        pair.access(Token(number), number % 2 == 0);
        pair.until(|pair| pair.events[0].ends.len() as u64 > number);
    }
    for call in ["fi_writemsg", "fi_readmsg"] {
        assert!(faulty::refused(call) > 0, "{call}");
    }
    let done = |number| (Token(number), Outcome::Done(LEN as u64));
    assert_eq!(pair.events[0].ends, (0..30).map(done).collect::<Vec<_>>());
    assert_eq!(pair.memory, vec![7; LEN]);
}

/// The connection breaks when a part of a write has come: the target lives.
#[test]
fn a_write_that_is_cut_off_by_a_death_does_no_harm_to_its_target() {
    let Some(mut pair) = Pair::of_length(64 << 20, plain) else {
        return;
    };
    pair.access(Token(1), true);
    // SAFETY: inside of the memory, which the provider writes to.
    pair.until(|pair| unsafe { pair.memory.as_ptr().read_volatile() } != 0);
    let dying = Box::new(pair.ranks.remove(0));
    fixture::die(&pair.silent, tagwire_base::Rank::new(0), dying);
    // More often than its end takes to be read, which not all providers report.
    for _ in 0..10_000 {
        pair.ranks[0].progress(Lane(0), &mut pair.events[1]);
    }
    pair.ranks.clear();
    assert!(pair.memory.last() == Some(&0), "the write was not cut off");
}

/// One that fails is impossible, the next one is not, and a flush has waited for both.
#[test]
fn a_remote_access_that_the_provider_cancels_ends_once_and_alone() {
    for (error, put) in [FI_ECANCELED, FI_EIO].into_iter().zip([true, false]) {
        let Some(mut pair) = Pair::open(faulty) else {
            return;
        };
        faulty::destine(Fate::Access(error));
        pair.access(Token(1), put);
        pair.until(|pair| !pair.events[0].ends.is_empty());
        assert!(faulty::is_fulfilled());
        pair.access(Token(2), put);
        let to = pair.to;
        assert_eq!(pair.ranks[0].flush(Lane(0), to, Token(3)), Post::Posted);
        pair.until(|pair| pair.events[0].ends.len() == 3);
        let ends = [
            (Token(1), Outcome::Impossible),
            (Token(2), Outcome::Done(LEN as u64)),
            (Token(3), Outcome::Done(0)),
        ];
        assert_eq!(pair.events[0].ends, ends);
        assert_eq!(pair.events[0].failures, 0);
    }
}

/// A post that returns another error than that it is busy was not made.
#[test]
fn a_remote_access_that_is_refused_says_so() {
    let Some(mut pair) = Pair::open(faulty) else {
        return;
    };
    faulty::answer("fi_readmsg", FI_EIO);
    // SAFETY: the memory is kept longer than the ranks.
    let data = unsafe { RecvBuffer::contiguous(pair.own.as_mut_ptr(), LEN) };
    let source = RemoteMemory {
        address: pair.memory.as_ptr().addr() as u64,
        key: &pair.key,
    };
    let post = pair.ranks[0].get(Lane(0), pair.to, &data, source, Token(1));
    assert_eq!(post, Post::Unsupported);
    pair.access(Token(2), false);
    pair.until(|pair| !pair.events[0].ends.is_empty());
    assert_eq!(pair.events[0].ends, [(Token(2), Outcome::Done(LEN as u64))]);
}

#[test]
fn a_queue_that_ran_over_ends_remote_accesses() {
    let Some(mut pair) = Pair::open(faulty) else {
        return;
    };
    pair.access(Token(1), false);
    let to = pair.to;
    assert_eq!(pair.ranks[0].flush(Lane(0), to, Token(2)), Post::Posted);
    faulty::destine(Fate::Overrun);
    while pair.events[0].ends.len() < 2 {
        pair.ranks[0].progress(Lane(0), &mut pair.events[0]);
    }
    pair.events[0].ends.sort_by_key(|(token, _)| token.0);
    let ends = [1, 2].map(|token| (Token(token), Outcome::PeerFailed));
    assert_eq!(pair.events[0].ends, ends);
    assert_eq!(pair.events[0].failures, 1);
}

/// A key is there once a registration was bound and enabled, not before.
#[test]
fn registrations_are_bound_and_enabled_before_their_keys_are_told() {
    let Some(mut pair) = Pair::open(|options, member| {
        let mut ofi = faulty(options, member)?;
        ofi.engine.peers.net.ask_for_bound_registrations();
        Ok(ofi)
    }) else {
        return;
    };
    let before = faulty::enabled();
    assert!(before > 0, "that of the target");
    pair.access(Token(1), true);
    pair.access(Token(2), false);
    assert_eq!(faulty::enabled(), before + 1, "that of the local buffer");
    pair.until(|pair| pair.events[0].ends.len() == 2);
    let done = [1, 2].map(|token| (Token(token), Outcome::Done(LEN as u64)));
    assert_eq!(pair.events[0].ends, done);
}

/// Puts from the same memory register it once, and what took its place is registered anew.
#[test]
fn puts_from_the_same_memory_register_it_once() {
    let name = "byte::tests::puts_from_the_same_memory_register_it_once";
    fixture::alone(name, register_once);
}

fn register_once() {
    let Some(mut pair) = Pair::open(bound) else {
        return;
    };
    let cache = |pair: &Pair| pair.ranks[0].engine.peers.registrations.to_string();
    let begin = faulty::enabled();
    pair.access(Token(1), true);
    let is_kept = !cache(&pair).starts_with("0 ");
    pair.until(|pair| pair.events[0].ends.len() == 1);
    if !is_kept {
        println!("SKIPPED: userfaultfd: {}", cache(&pair));
        return;
    }
    for token in 2..5 {
        pair.access(Token(token), true);
        pair.until(|pair| pair.events[0].ends.len() as u64 == token);
    }
    assert_eq!(faulty::enabled(), begin + 1);
    let mut text = String::new();
    pair.ranks[0].describe(&mut text);
    assert!(text.contains("3 hits, 1 misses, 0 of which"), "{text}");
    // Other pages, of the same bytes, under the same addresses.
    let page = rustix::param::page_size();
    let own = pair.own.as_mut_ptr_range();
    let start = own.start.map_addr(|start| start.next_multiple_of(page));
    // SAFETY: a page of the test's own, which no operation has, and its copy in the place of it.
    unsafe {
        use rustix::mm::{MapFlags, MremapFlags, ProtFlags, mmap_anonymous, mremap_fixed};
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        let copy = mmap_anonymous(std::ptr::null_mut(), page, rights, MapFlags::PRIVATE).unwrap();
        std::ptr::copy_nonoverlapping(start, copy.cast(), page);
        mremap_fixed(copy, page, page, MremapFlags::MAYMOVE, start.cast()).unwrap();
    }
    pair.access(Token(5), true);
    pair.until(|pair| pair.events[0].ends.len() == 5);
    assert_eq!(faulty::enabled(), begin + 2);
}

/// Nothing watches memory where the provider wants no local registrations; where it does, nothing is left of that.
#[test]
fn memory_is_watched_where_the_provider_wants_registrations() {
    let name = "byte::tests::memory_is_watched_where_the_provider_wants_registrations";
    fixture::alone(name, || {
        for (open, most) in [(faulty as Open, 0), (bound, 1)] {
            let Some(mut pair) = Pair::open(open) else {
                return;
            };
            pair.access(Token(1), true);
            pair.until(|pair| pair.events[0].ends.len() == 1);
            let cache = pair.ranks[0].engine.peers.registrations.to_string();
            let kept = usize::from(!cache.starts_with("0 "));
            assert!(kept <= most, "{cache}");
            fixture::expect_watchers(kept);
            drop(pair);
            fixture::expect_watchers(0);
        }
    });
}
