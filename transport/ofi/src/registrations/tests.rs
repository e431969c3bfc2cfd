//! The cache over a provider that is none, with real memory. Tests of what a process has one of run in a process of their own.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::{env, fs, thread};

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{
    Advice, MapFlags, MprotectFlags, MremapFlags, ProtFlags, madvise, mmap, mmap_anonymous,
    mprotect, mremap, mremap_fixed, munmap,
};
use rustix::process::{Resource, getrlimit, setrlimit};
use tagwire_libfabric_sys::bindings::{FI_READ, FI_RECV, FI_SEND, fi_ops, fid, fid_mr};

use super::{Counts, Registrations, watch};
use crate::fabric::Registered;
use crate::fixture::{alone, expect_watchers};

thread_local! {
    static MADE: Cell<u64> = const { Cell::new(0) };
    static CLOSED: Cell<u64> = const { Cell::new(0) };
}

unsafe extern "C" fn close(mr: *mut fid) -> c_int {
    CLOSED.set(CLOSED.get() + 1);
    // SAFETY: made by `registration`, and closed once.
    drop(unsafe { Box::from_raw(mr.cast::<fid_mr>()) });
    0
}

/// Makes a registration of no provider, with a key to know it by.
fn registration(key: u64) -> Registered {
    MADE.set(MADE.get() + 1);
    // SAFETY: numbers, pointers and optional functions, for which zero is a value.
    let (mut mr, mut ops): (Box<fid_mr>, fi_ops) =
        unsafe { (Box::new(std::mem::zeroed()), std::mem::zeroed()) };
    ops.close = Some(close);
    mr.fid.ops = Box::leak(Box::new(ops));
    mr.key = key;
    Registered::new(NonNull::from(Box::leak(mr)))
}

/// Whether the kernel tells how memory changes; says so where it does not.
fn is_watchable() -> bool {
    let opened = watch::Watch::of_process();
    if let Err(error) = &opened {
        println!("SKIPPED: userfaultfd: {error}");
    }
    opened.is_ok()
}

fn page() -> usize {
    rustix::param::page_size()
}

const PAGES: usize = 4;

fn len() -> usize {
    PAGES * page()
}

const READ_WRITE: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

/// Maps memory at `place`, in the place of what is there, or anywhere.
fn map(place: Option<*mut u8>, flags: MapFlags) -> rustix::io::Result<*mut u8> {
    let fixed = place.map_or(MapFlags::empty(), |_| flags);
    let place = place.unwrap_or(ptr::null_mut()).cast();
    // SAFETY: the tests' own memory, in which nothing else lies.
    unsafe { mmap_anonymous(place, len(), READ_WRITE, MapFlags::PRIVATE | fixed) }
        .map(<*mut _>::cast)
}

fn memory() -> *mut u8 {
    map(None, MapFlags::empty()).unwrap()
}

fn map_over(place: *mut u8) {
    map(Some(place), MapFlags::FIXED).unwrap();
}

fn unmap(place: *mut u8) {
    // SAFETY: as above.
    unsafe { munmap(place.cast(), len()) }.unwrap();
}

fn move_to(from: *mut u8, to: *mut u8) {
    // SAFETY: as above.
    unsafe { mremap_fixed(from.cast(), len(), len(), MremapFlags::MAYMOVE, to.cast()) }.unwrap();
}

fn discard(place: *mut u8, advice: Advice) {
    // SAFETY: as above.
    unsafe { madvise(place.cast(), len(), advice) }.unwrap();
}

fn cache() -> Registrations {
    Registrations::new(16, Some(1 << 30))
}

fn lend_part(cache: &mut Registrations, start: *mut u8, len: usize, access: u64) -> Registered {
    cache
        .lend(start, len, access, |_, _, _| Ok(registration(0)))
        .unwrap()
}

fn lend(cache: &mut Registrations, start: *mut u8) -> Registered {
    lend_part(cache, start, len(), FI_SEND)
}

/// Whether memory at `start` is registered anew.
fn is_new(cache: &mut Registrations, start: *mut u8) -> bool {
    let before = MADE.get();
    lend(cache, start);
    MADE.get() > before
}

#[test]
fn the_same_memory_is_registered_once() {
    if !is_watchable() {
        return;
    }
    let (mut cache, start) = (cache(), memory());
    assert!(is_new(&mut cache, start) && !is_new(&mut cache, start));
    let before = MADE.get();
    lend_part(&mut cache, start.wrapping_add(5), 10, FI_SEND);
    lend_part(&mut cache, start.wrapping_add(page()), page(), FI_SEND);
    lend_part(&mut cache, start, len(), FI_RECV | FI_READ);
    assert_eq!(MADE.get(), before, "parts, and with other rights");
    let counts = Counts {
        hits: 4,
        misses: 1,
        ..Counts::default()
    };
    assert_eq!(cache.counts, counts);
    let text = "1 registrations of 16384 bytes kept; 4 hits, 1 misses, 0 of which are not kept, 0 evicted, 0 invalidated";
    assert_eq!(cache.to_string(), text.replace("16384", &len().to_string()));
    drop(cache);
    assert_eq!(CLOSED.get(), MADE.get());
    unmap(start);
}

/// A longer buffer at the same address is registered anew, in the place of the shorter one.
#[test]
fn a_longer_buffer_takes_the_place_of_a_shorter_one() {
    if !is_watchable() {
        return;
    }
    let (mut cache, start) = (cache(), memory());
    lend_part(&mut cache, start, 1, FI_SEND);
    assert!(is_new(&mut cache, start) && !is_new(&mut cache, start));
    assert_eq!((cache.kept.len(), cache.bytes), (1, len()));
    unmap(start);
}

/// What is done to memory, and whether it is kept again after that.
struct Way(&'static str, bool, fn(*mut u8));

/// What was done to the memory is seen in the next look-up, and after it the memory is kept anew, but for what was discarded.
#[test]
fn memory_that_was_given_back_is_registered_anew() {
    alone(
        "registrations::tests::memory_that_was_given_back_is_registered_anew",
        || {
            if !is_watchable() {
                return;
            }
            let ways = [
                Way("unmapped, mapped", true, |start| {
                    unmap(start);
                    map_over(start);
                }),
                Way("its last page unmapped, mapped", true, |start| {
                    let last = start.wrapping_add(len() - page());
                    // SAFETY: the test's own memory.
                    unsafe { munmap(last.cast(), page()) }.unwrap();
                    map_over(start);
                }),
                Way("mapped over", true, map_over),
                Way("moved away, mapped", true, |start| {
                    let other = memory();
                    move_to(start, other);
                    unmap(other);
                    map_over(start);
                }),
                Way("moved away and back", true, |start| {
                    let other = memory();
                    move_to(start, other);
                    move_to(other, start);
                }),
                Way("moved over", true, |start| move_to(memory(), start)),
                Way("shrunk, grown", true, |start| {
                    // SAFETY: the test's own memory.
                    unsafe {
                        let same =
                            mremap(start.cast(), len(), page(), MremapFlags::empty()).unwrap();
                        assert_eq!(same, start.cast());
                    }
                    map_over(start);
                }),
                Way("discarded", false, |start| {
                    discard(start, Advice::LinuxDontNeed)
                }),
                Way("discarded lazily", false, |start| {
                    discard(start, Advice::LinuxFree)
                }),
            ];
            for Way(way, again, change) in ways {
                let (mut cache, start) = (cache(), memory());
                assert!(
                    is_new(&mut cache, start) && !is_new(&mut cache, start),
                    "{way}"
                );
                change(start);
                assert_eq!(CLOSED.get() + 1, MADE.get());
                assert!(is_new(&mut cache, start), "{way}");
                assert_eq!(cache.counts.invalidated, 1, "{way}");
                assert_eq!(is_new(&mut cache, start), !again, "{way}");
                map_over(start);
                cache.refused.clear();
                assert!(
                    is_new(&mut cache, start) && !is_new(&mut cache, start),
                    "{way}, mapped over"
                );
                unmap(start);
            }
        },
    );
}

/// Memory that one thread unmaps and another maps, before the first one's event was read, is not taken for the old one.
#[test]
fn memory_is_new_before_the_event_of_the_old_was_read() {
    let name = "registrations::tests::memory_is_new_before_the_event_of_the_old_was_read";
    alone(name, || {
        if !is_watchable() {
            return;
        }
        let mut cache = cache();
        let place = Place::new(0);
        let start = place.start();
        assert!(is_new(&mut cache, start) && !is_new(&mut cache, start));
        thread::scope(|scope| {
            let held = watch::HELD.lock().unwrap();
            let unmapping = scope.spawn(|| unmap(place.start()));
            while map(Some(start), MapFlags::FIXED_NOREPLACE).is_err() {
                thread::yield_now();
            }
            assert!(is_new(&mut cache, start));
            assert!(
                !unmapping.is_finished(),
                "it waits for its event to be read"
            );
            drop(held);
            unmapping.join().unwrap();
        });
        assert!(
            is_new(&mut cache, start),
            "by that event, which is not known to be of before"
        );
        assert!(!is_new(&mut cache, start));
    });
}

/// The heap shrinks and grows again.
#[test]
fn the_heap_is_registered_anew_after_it_was_trimmed() {
    alone(
        "registrations::tests::the_heap_is_registered_anew_after_it_was_trimmed",
        || {
            if !is_watchable() {
                return;
            }
            let grow = |by: isize| {
                // SAFETY: this thread's allocations are not of the main heap, and the thread that has it waits.
                let end = unsafe { libc::sbrk(by) };
                assert_ne!(end.addr(), usize::MAX);
                end.cast::<u8>()
            };
            let spare = page() - grow(0).addr() % page();
            grow(spare as isize);
            let (mut cache, start) = (cache(), grow(len() as isize));
            assert!(is_new(&mut cache, start) && !is_new(&mut cache, start));
            grow(-(len() as isize));
            assert_eq!(grow(len() as isize), start);
            assert!(is_new(&mut cache, start) && !is_new(&mut cache, start));
        },
    );
}

/// A page of a file can be taken away through the file, and shared memory by another process.
#[test]
fn what_cannot_be_watched_is_registered_for_each_operation() {
    if !is_watchable() {
        return;
    }
    let file = memfd_create("test", MemfdFlags::empty()).unwrap();
    ftruncate(&file, len() as u64).unwrap();
    let other = File::open(env::current_exe().unwrap()).unwrap();
    let null = ptr::null_mut::<c_void>;
    // SAFETY: new memory, which the test gives back.
    let mapped = unsafe {
        [
            mmap(null(), len(), READ_WRITE, MapFlags::SHARED, &file, 0),
            mmap(null(), len(), READ_WRITE, MapFlags::PRIVATE, &file, 0),
            mmap(null(), len(), READ_WRITE, MapFlags::PRIVATE, &other, 0),
            mmap_anonymous(null(), len(), READ_WRITE, MapFlags::SHARED),
        ]
    };
    let mut cache = cache();
    for start in mapped {
        let start = start.unwrap().cast();
        assert!(is_new(&mut cache, start) && is_new(&mut cache, start));
        cache.refused.clear();
        assert!(is_new(&mut cache, start) && is_new(&mut cache, start));
        unmap(start);
    }
    assert_eq!((cache.counts.passing, cache.kept.len()), (16, 0));
    assert_eq!(CLOSED.get(), MADE.get());
}

/// Where the kernel gives no descriptor, everything is registered for each operation.
#[test]
fn without_a_watch_nothing_is_kept() {
    alone(
        "registrations::tests::without_a_watch_nothing_is_kept",
        || {
            let mut limit = getrlimit(Resource::Nofile);
            limit.current = Some(0);
            setrlimit(Resource::Nofile, limit).unwrap();
            let (mut cache, start) = (cache(), memory());
            assert!(is_new(&mut cache, start) && is_new(&mut cache, start));
            assert!(cache.watch.is_none() && cache.kept.is_empty());
            assert_eq!((cache.counts.misses, cache.counts.passing), (2, 2));
            unmap(start);
        },
    );
}

#[test]
fn memory_that_may_only_be_read_is_registered_for_that() {
    if !is_watchable() {
        return;
    }
    let (mut cache, start) = (cache(), memory());
    let rights = Cell::new(0);
    let mut ask = |access| {
        rights.set(0);
        let register = |_, _, access| {
            rights.set(access);
            Ok(registration(0))
        };
        drop(cache.lend(start, len(), access, register).unwrap());
        rights.get()
    };
    let protect = |flags| {
        // SAFETY: the test's own memory.
        unsafe { mprotect(start.cast(), len(), flags) }.unwrap();
    };
    protect(MprotectFlags::READ);
    assert_eq!([ask(FI_SEND), ask(FI_SEND)], [FI_SEND, 0]);
    protect(MprotectFlags::READ | MprotectFlags::WRITE);
    assert_eq!([ask(FI_SEND), ask(FI_RECV)], [0, super::RIGHTS]);
    assert_eq!(ask(FI_SEND), 0);
    unmap(start);
}

#[test]
fn the_least_recently_used_goes_first_and_what_is_in_use_stays() {
    if !is_watchable() {
        return;
    }
    let starts: Vec<_> = (0..5).map(|_| memory()).collect();
    let mut cache = Registrations::new(3, Some(1 << 30));
    for start in [0, 1, 2, 0, 3] {
        lend(&mut cache, starts[start]);
    }
    let is_kept = |cache: &Registrations| {
        starts
            .iter()
            .map(|s| cache.kept.contains_key(&s.addr()))
            .collect::<Vec<_>>()
    };
    assert_eq!(is_kept(&cache), [true, false, true, true, false]);
    let in_use = [2, 0, 3].map(|start| lend(&mut cache, starts[start]));
    let closed = CLOSED.get();
    // There is no room for others.
    assert!(is_new(&mut cache, starts[4]) && is_new(&mut cache, starts[4]));
    assert_eq!(is_kept(&cache), [true, false, true, true, false]);
    // What changes is forgotten, and closed with the last operation that has it.
    map_over(starts[0]);
    assert!(is_new(&mut cache, starts[4]) && !is_new(&mut cache, starts[4]));
    assert_eq!(CLOSED.get(), closed + 2, "those that were not kept");
    drop(in_use);
    assert_eq!(CLOSED.get(), closed + 3);
    assert_eq!(cache.counts.evicted, 1);

    let mut cache = Registrations::new(100, Some(2 * len()));
    for start in [0, 1, 0, 2] {
        lend(&mut cache, starts[start]);
    }
    assert_eq!(is_kept(&cache), [true, false, true, false, false]);
    assert_eq!((cache.bytes, cache.counts.evicted), (2 * len(), 1));
    for limits in [(0, Some(1 << 30)), (16, Some(0)), (16, Some(len() - 1))] {
        let mut cache = Registrations::new(limits.0, limits.1);
        assert!(is_new(&mut cache, starts[0]) && is_new(&mut cache, starts[0]));
        assert!(cache.watch.is_none());
    }
    starts.into_iter().for_each(unmap);
}

/// A device that has room for one registration alone is not filled by what is kept.
#[test]
fn what_is_kept_makes_way_where_the_provider_has_no_room() {
    if !is_watchable() {
        return;
    }
    let (mut cache, first, second) = (cache(), memory(), memory());
    let room = |_, _, _| match MADE.get() - CLOSED.get() {
        0 => Ok(registration(0)),
        _ => Err(-12),
    };
    let held = cache.lend(first, len(), FI_SEND, room).unwrap();
    assert_eq!(cache.lend(second, len(), FI_SEND, room).unwrap_err(), -12);
    drop(held);
    assert!(cache.lend(second, len(), FI_SEND, room).is_ok());
    assert!(cache.kept.is_empty());
    [first, second].into_iter().for_each(unmap);
}

/// Two caches have one thread between them, and pages that both keep are watched until the second gives them back.
#[test]
fn a_process_has_one_watch_and_nothing_of_it_is_left() {
    alone(
        "registrations::tests::a_process_has_one_watch_and_nothing_of_it_is_left",
        || {
            if !is_watchable() {
                return;
            }
            expect_watchers(0);
            let descriptors = || fs::read_dir("/proc/self/fd").unwrap().count();
            let begin = descriptors();
            let (mut first, mut second, start) = (cache(), cache(), memory());
            expect_watchers(0);
            lend(&mut first, start);
            expect_watchers(1);
            lend(&mut second, start);
            expect_watchers(1);
            drop(first);
            assert!(!is_new(&mut second, start));
            map_over(start);
            assert!(is_new(&mut second, start));
            drop(second);
            expect_watchers(0);
            assert_eq!(descriptors(), begin);
            map_over(start);
            let mut third = cache();
            assert!(is_new(&mut third, start) && !is_new(&mut third, start));
            expect_watchers(1);
        },
    );
}

/// A child that lives on does not hold the parent up, which would wait for somebody to read its events.
#[test]
fn a_forked_child_holds_nobody_up() {
    alone(
        "registrations::tests::a_forked_child_holds_nobody_up",
        || {
            if !is_watchable() {
                return;
            }
            let (mut cache, start) = (cache(), memory());
            lend(&mut cache, start);
            // What stays watched after it was discarded, and is waited for when it is unmapped.
            discard(start, Advice::LinuxDontNeed);
            // SAFETY: the child calls what is safe to call after a fork.
            let child = unsafe { libc::fork() };
            if child == 0 {
                // SAFETY: as above.
                unsafe {
                    libc::sleep(600);
                    libc::_exit(0);
                }
            }
            assert!(child > 0);
            drop(cache);
            expect_watchers(0);
            unmap(start);
            // SAFETY: the test's own child.
            unsafe {
                libc::kill(child, libc::SIGKILL);
                libc::waitpid(child, ptr::null_mut(), 0);
            }
        },
    );
}

/// A place in memory, with the number of the mapping that is there: the last that was published, and in the mapping itself.
struct Place {
    start: AtomicUsize,
    number: AtomicU64,
}

impl Place {
    /// Maps memory far below all else, where the kernel takes no gap for another mapping.
    fn new(index: usize) -> Self {
        let start = ptr::with_exposed_provenance_mut(0x1000_0000_0000 + (index << 24));
        let start = map(Some(start), MapFlags::FIXED_NOREPLACE).unwrap();
        Self {
            start: AtomicUsize::new(start.expose_provenance()),
            number: AtomicU64::new(0),
        }
    }

    fn start(&self) -> *mut u8 {
        ptr::with_exposed_provenance_mut(self.start.load(Ordering::Relaxed))
    }

    /// The next mapping is there: from now on nobody may see one of before.
    fn publish(&self, number: u64) {
        // SAFETY: the mapping is there, and this thread alone changes it.
        unsafe { self.start().cast::<u64>().write_volatile(number) };
        self.number.store(number, Ordering::SeqCst);
    }

    /// Puts a mapping in the place of the last, in one of many ways.
    fn renew(&self, way: u64, number: u64, partner: &Partner) {
        let start = self.start();
        match way {
            0 => {
                unmap(start);
                map_over(start);
            }
            1 => map_over(start),
            2 => {
                let other = memory();
                // SAFETY: new memory of the test's.
                unsafe { other.cast::<u64>().write(number) };
                move_to(other, start);
            }
            3 => {
                let other = memory();
                move_to(start, other);
                unmap(other);
                map_over(start);
            }
            4 => discard(start, Advice::LinuxDontNeed),
            // Another thread maps memory at the address, and shows it, before this one returns from unmapping.
            _ => {
                partner.number.store(number, Ordering::SeqCst);
                unmap(start);
                while partner.number.load(Ordering::SeqCst) != 0 {
                    thread::yield_now();
                }
                return;
            }
        }
        self.publish(number);
    }
}

/// What a thread that maps memory where another unmaps it is asked for.
#[derive(Default)]
struct Partner {
    number: AtomicU64,
    ended: AtomicBool,
}

impl Partner {
    fn run(&self, place: &Place) {
        while !self.ended.load(Ordering::SeqCst) {
            let number = self.number.load(Ordering::SeqCst);
            if number == 0 {
                thread::yield_now();
            } else if map(Some(place.start()), MapFlags::FIXED_NOREPLACE).is_ok() {
                place.publish(number);
                self.number.store(0, Ordering::SeqCst);
            }
        }
    }
}

/// How often a registration is found again, and how many have ended meanwhile, before that is enough.
const HITS: u64 = 20_000;
const ENDS: u64 = 200;

/// Threads change memory while its owner looks registrations up: none is of a mapping before the one that was there when the look-up
/// began.
#[test]
fn no_registration_is_of_a_mapping_of_before() {
    alone(
        "registrations::tests::no_registration_is_of_a_mapping_of_before",
        || {
            if !is_watchable() {
                return;
            }
            let places: Vec<_> = (0..3).map(Place::new).collect();
            let partners: Vec<_> = places.iter().map(|_| Partner::default()).collect();
            let ended = AtomicBool::new(false);
            let own = File::open("/proc/self/mem").unwrap();
            // What a device would have is the pages of the mapping that is there.
            let register = |start: *const u8, _, _| loop {
                let mut number = [0; 8];
                let read = own.read_at(&mut number, start.addr() as u64);
                match u64::from_ne_bytes(number) {
                    number if number > 0 && read.is_ok() => return Ok(registration(number)),
                    _ => thread::yield_now(),
                }
            };
            let mut cache = cache();
            let (mut looks, mut stale) = (0_u64, 0_u64);
            thread::scope(|scope| {
                // One place each of all ways, of what is discarded and mapped over, and of two threads that unmap and map.
                let ways: [fn(u64) -> u64; 3] = [|n| n % 6, |n| 1 + n % 2 * 3, |_| 5];
                for ((place, partner), way) in places.iter().zip(&partners).zip(ways) {
                    let ended = &ended;
                    scope.spawn(move || {
                        place.publish(1);
                        (2..)
                            .take_while(|_| !ended.load(Ordering::SeqCst))
                            .for_each(|number| place.renew(way(number), number, partner));
                        partner.ended.store(true, Ordering::SeqCst);
                    });
                    scope.spawn(|| partner.run(place));
                }
                while stale == 0 && (cache.counts.hits < HITS || cache.counts.invalidated < ENDS) {
                    for place in &places {
                        let number = place.number.load(Ordering::SeqCst);
                        cache.refused.clear();
                        if let Ok(found) = cache.lend(place.start(), len(), FI_SEND, register) {
                            looks += 1;
                            stale += u64::from(found.key() < number);
                        }
                    }
                }
                ended.store(true, Ordering::SeqCst);
            });
            println!("{looks} looks, {stale} stale; {cache}");
            assert_eq!(stale, 0);
        },
    );
}
