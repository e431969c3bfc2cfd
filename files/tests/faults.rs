//! System calls that fail, each in its turn: who reports it, and what is in the file then.

use std::sync::Arc;

use tagwire_files::{Errno, File, Kind};

use crate::accesses::{expected, read, write};
use crate::common::cases::Case;
use crate::common::memory::{Fault, Memory, When};
use crate::common::{Chance, cases_of, open, open_on_a_host, ranks, ranks_of_a_host};

const ERRORS: [(Errno, Kind); 3] = [
    (Errno::NOSPC, Kind::NoSpace),
    (Errno::IO, Kind::Io),
    (Errno::DQUOT, Kind::Quota),
];

/// Groups: on which host each member is.
const GROUPS: [&[u64]; 3] = [&[0], &[0, 0, 0], &[0, 1, 0, 1]];

/// Cases with each group, of 256: each fails at every of its calls in turn.
const CASES: u64 = 6;

/// The k-th call of a write fails for every k. Those report it, and only those, whose bytes it was to write. What is reported as
/// written is in the file, and nothing else has changed.
#[test]
fn a_failed_write_is_reported_by_those_whose_bytes_they_were() {
    for hosts in GROUPS {
        let memory = Memory::default();
        ranks(hosts.len() as u32, |team| {
            let hints = Case::new(team.size(), &mut Chance::new(0)).hints;
            let host = hosts[team.me()];
            let file = open(team, Arc::new(memory.clone()), hints, host).unwrap();
            fail_writes(&file, &memory);
        });
    }
}

/// The same where members map memory of each other.
#[test]
fn a_failed_write_of_a_host_is_reported_by_those_whose_bytes_they_were() {
    let memory = Memory::default();
    ranks_of_a_host(3, |team| {
        let hints = Case::new(3, &mut Chance::new(0)).hints;
        let file = open_on_a_host(team, Arc::new(memory.clone()), hints).unwrap();
        fail_writes(&file, &memory);
    });
}

/// Fails each call of writes in turn.
fn fail_writes(file: &File, memory: &Memory) {
    let (me, size) = (file.team().me(), file.team().size());
    for seed in 0..cases_of(CASES) {
        let mut call = 0;
        loop {
            let mut chance = Chance::new(seed + 77);
            let case = Case::new(size, &mut chance);
            let (errno, kind) = ERRORS[(seed + call) as usize % 3];
            file.change_hints(|hints| *hints = case.hints.clone());
            if me == 0 {
                memory.set(&case.file);
                memory.fail(When::Once(call, Fault::Failed(errno)));
                memory.failed();
            }
            file.team().barrier().unwrap();
            let part = &case.members[me];
            let outcome = write(file, part, true);
            file.team().barrier().unwrap();
            let what = format!("seed {seed}, call {call}: {outcome:?}");
            let failed = match memory.calls() > call {
                true => peeked(memory, file, me),
                false => None,
            };
            let own = part.own();
            let is_lost =
                |offset: &u64| failed.as_ref().is_some_and(|range| range.contains(offset));
            let lost = own.iter().position(is_lost);
            assert_eq!(outcome.error.is_some(), lost.is_some(), "{what}");
            assert_eq!(outcome.bytes, lost.unwrap_or(own.len()) as u64, "{what}");
            if let Some(error) = &outcome.error {
                assert_eq!((error.kind(), error.errno()), (kind, Some(errno)), "{what}");
            }
            let now = memory.bytes();
            for (offset, byte) in own.iter().zip(&part.data).take(outcome.bytes as usize) {
                assert_eq!(now[*offset as usize], *byte, "{what}");
            }
            holes_are_as_before(&case, &now, &what);
            file.team().barrier().unwrap();
            if failed.is_none() {
                break;
            }
            call += 1;
        }
    }
    file.close().unwrap();
}

/// Returns what the call was to write that failed: all members ask.
fn peeked(memory: &Memory, file: &File, me: usize) -> Option<std::ops::Range<u64>> {
    let mut told = [0; 16];
    if me == 0
        && let Some(range) = memory.failed().pop()
    {
        told[..8].copy_from_slice(&range.start.to_ne_bytes());
        told[8..].copy_from_slice(&range.end.to_ne_bytes());
    }
    file.team().broadcast(&mut told, 0).unwrap();
    let word = |at: usize| u64::from_ne_bytes(told[at..at + 8].try_into().unwrap());
    (word(8) > 0).then(|| word(0)..word(8))
}

/// What no member writes is as it was before.
fn holes_are_as_before(case: &Case, now: &[u8], what: &str) {
    let mut written = vec![false; now.len()];
    for part in &case.members {
        for offset in part.own() {
            if let Some(byte) = written.get_mut(*offset as usize) {
                *byte = true;
            }
        }
    }
    for (at, byte) in now.iter().enumerate() {
        if !written[at] {
            let before = case.file.get(at).copied().unwrap_or(0);
            assert_eq!(*byte, before, "{what}: a hole at {at}");
        }
    }
}

/// The k-th call of a read fails for every k: what is reported as read is right, and who has not got all says why.
#[test]
fn a_failed_read_is_reported_by_those_who_lack_bytes() {
    for hosts in GROUPS {
        let memory = Memory::default();
        ranks(hosts.len() as u32, |team| {
            let (me, size) = (team.me(), team.size());
            let hints = Case::new(size, &mut Chance::new(0)).hints;
            let file = open(team, Arc::new(memory.clone()), hints, hosts[me]).unwrap();
            for seed in 0..cases_of(CASES) {
                for call in 0.. {
                    let case = Case::new(size, &mut Chance::new(seed + 5));
                    file.change_hints(|hints| *hints = case.hints.clone());
                    if me == 0 {
                        memory.set(&case.written());
                        memory.fail(When::Once(call, Fault::Failed(Errno::IO)));
                    }
                    file.team().barrier().unwrap();
                    let part = &case.members[me];
                    let (outcome, bytes) = read(&file, part, true);
                    file.team().barrier().unwrap();
                    let what = format!("seed {seed}, call {call}: {outcome:?}");
                    let wanted = expected(part, &memory.bytes());
                    let done = outcome.bytes as usize;
                    assert_eq!(bytes[..done], wanted[..done], "{what}");
                    assert_eq!(outcome.error.is_none(), done == wanted.len(), "{what}");
                    let has_failed = memory.calls() > call;
                    file.team().barrier().unwrap();
                    if !has_failed {
                        break;
                    }
                }
            }
            file.close().unwrap();
        });
    }
}

/// What could not be put on the storage fails on all members, and the next call is good again.
#[test]
fn all_members_hear_of_a_failed_sync() {
    let memory = Memory::default();
    ranks(3, |team| {
        let me = team.me();
        let file = open(team, Arc::new(memory.clone()), Default::default(), 0).unwrap();
        if me == 0 {
            memory.fail_sync(Errno::IO);
        }
        file.team().barrier().unwrap();
        assert_eq!(file.sync().unwrap_err().kind(), Kind::Io);
        file.sync().unwrap();
        file.close().unwrap();
    });
}
