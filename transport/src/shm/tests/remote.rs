//! One-sided access: what the conformance kit does not see.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;

use super::*;
use crate::data::{RecvBuffer, SendBuffer};
use crate::remote::{RegistrationHandle, RemoteAccess, RemoteMemory};
use crate::shm::CrossAttach;

/// Memory that peers write while this side looks.
struct Watched {
    start: *mut u8,
    len: usize,
}

// SAFETY: the memory is only reached by volatile accesses and by peers.
unsafe impl Send for Watched {}
// SAFETY: as above.
unsafe impl Sync for Watched {}

impl Watched {
    fn of(start: *mut u8, len: usize) -> Self {
        Self { start, len }
    }

    fn buffer(&self) -> RecvBuffer {
        // SAFETY: each test keeps the memory for longer than its registrations.
        unsafe { RecvBuffer::contiguous(self.start, self.len) }
    }

    fn at(&self, key: &RegistrationHandle) -> (u64, Vec<u8>) {
        (self.start.addr() as u64, key.key.clone())
    }

    fn bytes(&self) -> Vec<u8> {
        // SAFETY: within the memory.
        let byte = |at| unsafe { self.start.add(at).read_volatile() };
        (0..self.len).map(byte).collect()
    }

    fn first(&self) -> u8 {
        // SAFETY: as above.
        unsafe { self.start.read_volatile() }
    }

    fn fill(&self, value: u8) {
        // SAFETY: within the memory.
        (0..self.len).for_each(|at| unsafe { self.start.add(at).write_volatile(value) });
    }
}

fn target<'a>((address, key): &'a (u64, Vec<u8>), offset: u64) -> RemoteMemory<'a> {
    RemoteMemory {
        address: address + offset,
        key,
    }
}

fn put(member: &mut Member, to: EndpointId, data: &[u8], at: RemoteMemory<'_>) -> Option<Outcome> {
    // SAFETY: the slice outlives the operation, which ends with the call of progress.
    let buffer = unsafe { SendBuffer::contiguous(data.as_ptr(), data.len()) };
    match member.shm.put(LANE, to, &buffer, at, None, Token(1)) {
        Post::Posted => {}
        _ => return None,
    }
    member.progress();
    member.log.completions.pop().map(|(_, outcome)| outcome)
}

/// Where the system call is forbidden, memory in the arena is reached all the same, words of it by atomic operations too.
#[test]
fn the_arena_is_reached_without_attach_and_has_atomics() {
    let options = ShmOptions {
        arena: 1 << 20,
        cross_attach: CrossAttach::Off,
        ..ShmOptions::default()
    };
    let (mut a, mut b, to_b, _) = pair(&options);
    let memory = b.shm.allocate(4096).unwrap();
    let watched = Watched::of(memory.as_ptr().as_ptr(), 4096);
    let handle = b.shm.register(&watched.buffer()).unwrap();
    let place = watched.at(&handle);
    assert_eq!(
        put(&mut a, to_b, &[7; 100], target(&place, 8)),
        Some(Outcome::Done(100))
    );
    assert_eq!(
        watched.bytes()[..108],
        [[0; 8].as_slice(), &[7; 100]].concat()
    );
    for expected in 0..3_u64 {
        let posted = a.shm.fetch_add(LANE, to_b, target(&place, 0), 1, Token(2));
        assert_eq!(posted, Post::Posted);
        a.progress();
        assert_eq!(a.log.completions.pop(), Some((2, Outcome::Done(expected))));
    }
    // No word begins there.
    let posted = a.shm.fetch_add(LANE, to_b, target(&place, 4), 1, Token(2));
    assert_eq!(posted, Post::Posted);
    a.progress();
    assert_eq!(a.log.completions.pop(), Some((2, Outcome::Impossible)));

    let heap = [0_u8; 64];
    // SAFETY: it outlives the registration, and nobody writes to it.
    let buffer = unsafe { SendBuffer::contiguous(heap.as_ptr(), heap.len()) };
    let heap_handle = b.shm.expose(&buffer).unwrap();
    let heap_place = (heap.as_ptr().addr() as u64, heap_handle.key.clone());
    // What was only exposed is not written, and of the heap nothing is reached without the call.
    assert_eq!(
        put(&mut a, to_b, &[1], target(&heap_place, 0)),
        Some(Outcome::Impossible)
    );
    let mut room = [0_u8; 8];
    // SAFETY: it outlives the operation.
    let room = unsafe { RecvBuffer::contiguous(room.as_mut_ptr(), room.len()) };
    let posted = a
        .shm
        .get(LANE, to_b, &room, target(&heap_place, 0), Token(3));
    assert_eq!(posted, Post::Unsupported);
    b.shm.deregister(handle);
    b.shm.deregister(heap_handle);
    assert_eq!(
        put(&mut a, to_b, &[1], target(&place, 0)),
        Some(Outcome::Impossible)
    );
}

#[test]
fn who_has_left_is_not_reached() {
    let (mut a, mut b, to_b, _) = pair(&ShmOptions::default());
    let mut memory = vec![0_u8; 64];
    let watched = Watched::of(memory.as_mut_ptr(), memory.len());
    let handle = b.shm.register(&watched.buffer()).unwrap();
    let place = watched.at(&handle);
    b.leave();
    // Not noticed yet, but the registration is struck out.
    assert_eq!(
        put(&mut a, to_b, &[1; 8], target(&place, 0)),
        Some(Outcome::Impossible)
    );
    a.progress();
    a.look_after_peers();
    assert_eq!(put(&mut a, to_b, &[1; 8], target(&place, 0)), None);
    assert_eq!(a.shm.flush(LANE, to_b, Token(4)), Post::Gone);
    assert_eq!(watched.bytes(), [0; 64]);
}

#[test]
fn a_rank_has_so_many_registrations_and_no_more() {
    let (_a, mut b, ..) = pair(&ShmOptions::default());
    let mut memory = vec![0_u8; 64];
    let watched = Watched::of(memory.as_mut_ptr(), memory.len());
    let mut handles: Vec<_> = (0..1024)
        .map(|_| b.shm.register(&watched.buffer()).unwrap())
        .collect();
    let error = b.shm.register(&watched.buffer()).unwrap_err();
    assert!(error.to_string().contains("1024"), "{error}");
    b.shm.deregister(handles.remove(700));
    handles.push(b.shm.register(&watched.buffer()).unwrap());
    handles
        .into_iter()
        .for_each(|handle| b.shm.deregister(handle));
}

/// A peer puts all the while; from the moment at which a registration has ended, nothing changes any more.
fn nothing_is_written_behind_the_end(options: &ShmOptions, in_arena: bool) {
    const LEN: usize = 48 << 10;
    let (mut a, mut b, to_b, _) = pair(options);
    let mut heap = vec![0_u8; LEN];
    let shared = in_arena.then(|| b.shm.allocate(LEN).unwrap());
    let start = match &shared {
        Some(memory) => memory.as_ptr().as_ptr(),
        None => heap.as_mut_ptr(),
    };
    let watched = Watched::of(start, LEN);
    let place: Mutex<Option<(u64, Vec<u8>)>> = Mutex::new(None);
    let is_over = AtomicBool::new(false);
    let mut reached = 0;
    std::thread::scope(|scope| {
        let initiator = scope.spawn(|| {
            let mut value = 0_u8;
            let mut done = 0_u64;
            while !is_over.load(SeqCst) {
                let known = place.lock().unwrap().clone();
                let Some(known) = known else { continue };
                value = value % 250 + 1;
                let data = [value; LEN];
                let outcome = put(&mut a, to_b, &data, target(&known, 0));
                assert!(
                    matches!(outcome, Some(Outcome::Done(_) | Outcome::Impossible)),
                    "{outcome:?}"
                );
                done += u64::from(outcome == Some(Outcome::Done(LEN as u64)));
            }
            done
        });
        for round in 0..100 {
            watched.fill(0);
            let handle = b.shm.register(&watched.buffer()).unwrap();
            *place.lock().unwrap() = Some(watched.at(&handle));
            while watched.first() == 0 {
                std::thread::yield_now();
            }
            b.shm.deregister(handle);
            watched.fill(251);
            for _ in 0..5 {
                std::thread::yield_now();
                assert!(
                    watched.bytes().iter().all(|byte| *byte == 251),
                    "round {round}"
                );
            }
            reached += 1;
        }
        is_over.store(true, SeqCst);
        assert!(initiator.join().unwrap() >= reached);
    });
}

#[test]
fn nothing_is_written_behind_the_end_of_a_registration() {
    nothing_is_written_behind_the_end(&ShmOptions::default(), false);
    let options = ShmOptions {
        arena: 1 << 20,
        ..ShmOptions::default()
    };
    nothing_is_written_behind_the_end(&options, true);
}
