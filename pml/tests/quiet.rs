//! A small message takes no system call and no allocation: ob1 over shared memory, two ranks in
//! one thread, so that nobody ever waits.
#![cfg(all(target_os = "linux", not(loom)))]
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    reason = "filters its own system calls; a test that panics fails"
)]

#[path = "common/pair.rs"]
mod pair;

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use pair::pair;
use tagwire_base::{ContextId, SourceSelector, Tag, TagSelector};
use tagwire_conformance::allocations::{CountingAllocator, allocations};
use tagwire_pml::{Messenger, RequestId, SendMode, ThreadLevel, WaitPolicy};
use tagwire_transport::{RecvBuffer, SendBuffer};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const MESSAGES: u64 = 10_000;
const WORLD: ContextId = ContextId::WORLD;

/// Sends `bytes` from one rank to the other, which may have posted its receive before.
fn send(from: &Messenger, to: &Messenger, bytes: &[u8], expected: bool, mode: SendMode) {
    let mut place = [0u8; 1024];
    let post = |place: &mut [u8]| {
        // SAFETY: the receive is waited for before this function returns.
        let buffer = unsafe { RecvBuffer::contiguous(place.as_mut_ptr(), place.len()) };
        let source = SourceSelector::exact(from.rank());
        to.irecv(buffer, source, TagSelector::ANY, WORLD).unwrap()
    };
    let posted = expected.then(|| post(&mut place));
    // SAFETY: the send is complete before this function returns.
    let buffer = unsafe { SendBuffer::contiguous(bytes.as_ptr(), bytes.len()) };
    let tag = Tag::user(1).unwrap();
    let sent = from.isend(buffer, to.rank(), tag, WORLD, mode).unwrap();
    let is_synchronous = mode == SendMode::Synchronous;
    // The first one makes contact.
    if sent != RequestId::COMPLETE && !is_synchronous {
        from.wait(sent, None).unwrap();
    }
    if !expected {
        to.progress().unwrap();
    }
    let received = posted.unwrap_or_else(|| post(&mut place));
    let status = to.wait(received, None).unwrap();
    if is_synchronous {
        from.wait(sent, None).unwrap();
    }
    assert_eq!(status.failure, None);
    assert!(place[..status.length] == *bytes);
}

/// Messages to and fro: of one line, and of several, posted first and not, and such as wait for their receive.
fn ping_pong([a, b]: &[Messenger; 2], messages: u64) {
    let long = [7; 1024];
    for number in 0..messages / 2 {
        let short = number.to_le_bytes();
        let bytes: &[u8] = if number % 4 == 3 { &long } else { &short };
        // A long one that nobody expects is kept on the heap, as it has to be.
        let expected = number % 3 != 0 || bytes.len() > short.len();
        let mode = match number % 5 {
            4 => SendMode::Synchronous,
            _ => SendMode::Standard,
        };
        send(a, b, bytes, expected, mode);
        send(b, a, bytes, expected, mode);
    }
}

#[test]
fn small_messages_allocate_nothing() {
    let ranks = pair(ThreadLevel::Single, WaitPolicy::adaptive(false));
    // First contact, and the lists that grow once.
    ping_pong(&ranks, MESSAGES);
    let before = allocations();
    ping_pong(&ranks, MESSAGES);
    assert_eq!(allocations() - before, 0);
    // The counter counts.
    drop(std::hint::black_box(vec![1u8; 100]));
    assert_eq!(allocations() - before, 1);
}

/// Kills this process when the current thread makes a system call, but for its end and for the
/// clock, which is a system call on machines whose clock cannot be read otherwise. Returns
/// whether the filter is in force.
fn forbid_system_calls() -> bool {
    const fn instruction(code: u32, jump: u8, k: u32) -> libc::sock_filter {
        libc::sock_filter {
            code: code as u16,
            jt: jump,
            jf: 0,
            k,
        }
    }
    const fn allowed(call: libc::c_long, jump: u8) -> libc::sock_filter {
        let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
        instruction(equal, jump, call as u32)
    }
    let answer = libc::BPF_RET | libc::BPF_K;
    let mut program = [
        // The number is the first word of what a filter sees.
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        allowed(libc::SYS_exit_group, 2),
        allowed(libc::SYS_clock_gettime, 1),
        instruction(answer, 0, libc::SECCOMP_RET_KILL_PROCESS),
        instruction(answer, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: takes integers.
    let no_new = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    let mode = libc::SECCOMP_MODE_FILTER;
    // SAFETY: the kernel copies the program, which is there, during the call.
    no_new == 0 && unsafe { libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const filter) } == 0
}

const PART: &str = "QUIET_TEST_PART";
/// This system lets nobody filter.
const NO_FILTER: i32 = 77;

/// What the child does; in the parent's run of the tests, nothing.
#[test]
fn plays_its_part() {
    let Ok(part) = std::env::var(PART) else {
        return;
    };
    let ranks = pair(ThreadLevel::Single, WaitPolicy::adaptive(false));
    ping_pong(&ranks, MESSAGES);
    if !forbid_system_calls() {
        std::process::exit(NO_FILTER);
    }
    ping_pong(&ranks, MESSAGES);
    if part == "loud" {
        std::thread::yield_now();
    }
    // SAFETY: ends the process, with nothing left to do in it.
    unsafe { libc::_exit(0) }
}

#[test]
fn small_messages_make_no_system_call() {
    let play = |part| {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "plays_its_part", "--nocapture"])
            .env(PART, part)
            .status()
            .unwrap()
    };
    let quiet = play("quiet");
    if quiet.code() == Some(NO_FILTER) {
        eprintln!("SKIPPED: this system does not let a process filter its system calls");
        return;
    }
    assert_eq!(quiet.code(), Some(0), "{quiet}");
    // The filter filters.
    let loud = play("loud");
    assert_eq!(loud.signal(), Some(libc::SIGSYS), "{loud}");
}
