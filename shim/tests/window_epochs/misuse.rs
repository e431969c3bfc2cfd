//! Calls that are wrong where they are made, and the class of the error that each has (MPI-5.0, sections 12.5 and 12.6.2).

use tagwire_conformance::Chance;
use tagwire_shim::abi::{Datatype, Op, Request};
use tagwire_shim::call::datatypes;
use tagwire_shim::call::windows::{accumulates, creation, synchronization, transfers};
use tagwire_shim::error::Class;
use tagwire_shim::raw::{In, Out, Place, Twin};
use tagwire_shim::{Process, Result};

use crate::common::windows::{EXCLUSIVE, Made, SHARED};
use crate::common::{DOUBLE, SUM, data, one_sided, result, room};
use crate::program::Kind;
use crate::rank::Rank;
use crate::shapes::VALUES;

/// A call and its error. Nothing has changed after it.
#[derive(Debug, Clone)]
pub struct Wrong {
    call: Call,
    class: Class,
}

/// A call; a number is a member.
#[derive(Debug, Clone, Copy)]
enum Call {
    Fence,
    Start,
    Complete,
    Post,
    Wait,
    Test,
    Lock(usize),
    Unlock(usize),
    LockAll,
    UnlockAll,
    Flush(usize),
    FlushLocally(usize),
    FlushAll,
    FlushAllLocally,
    Put(usize),
    Get(usize),
    Accumulate(usize),
    FetchAndOp(usize),
    CompareAndSwap(usize),
    PutByRequest(usize),
    GetByRequest(usize),
    AccumulateByRequest(usize),
    GetAccumulateByRequest(usize),
    Free,
    LockOfKind(i32),
    FenceWith(i32),
    LockWith(usize, i32),
    /// A byte, at a displacement.
    PutAt(i32, i64),
    PutOf(usize, i64, Datatype),
    PutUncommitted(usize),
    PutLonger(usize),
    AccumulateBy(usize, Op, Datatype),
    AccumulateOthers(usize),
    SwapOf(usize, Datatype),
}

/// What a process has open on a window.
#[derive(Debug)]
pub struct State {
    pub size: usize,
    /// This process.
    pub me: usize,
    /// The members that it may access.
    pub open: Vec<usize>,
    /// After a fence.
    pub has_accessed: bool,
    /// A fence lets it access all.
    pub is_fenced: bool,
    pub is_exposed: bool,
}

fn sync(calls: Vec<Call>, chance: &mut Chance) -> Wrong {
    Wrong {
        call: chance.one_of(&calls),
        class: Class::RmaSync,
    }
}

/// Returns accesses to a member.
fn accesses(member: usize) -> Vec<Call> {
    vec![
        Call::Put(member),
        Call::Get(member),
        Call::Accumulate(member),
        Call::FetchAndOp(member),
        Call::CompareAndSwap(member),
    ]
}

/// Returns calls that need a lock of a member.
fn passive(member: usize) -> Vec<Call> {
    vec![
        Call::Flush(member),
        Call::FlushLocally(member),
        Call::Unlock(member),
        Call::PutByRequest(member),
        Call::GetByRequest(member),
        Call::AccumulateByRequest(member),
        Call::GetAccumulateByRequest(member),
    ]
}

/// Returns a call that is wrong outside of all epochs, of a window of so many members. After a fence that is not said to be the last one
/// accesses are none.
pub fn outside(size: usize, is_fenced: bool, chance: &mut Chance) -> Wrong {
    if chance.below(4) == 0 {
        return anywhere(chance);
    }
    let member = chance.below(size as u64) as usize;
    let others = [
        Call::Complete,
        Call::Wait,
        Call::Test,
        Call::UnlockAll,
        Call::FlushAll,
        Call::FlushAllLocally,
    ];
    let mut calls = [&others[..], &passive(member)].concat();
    if !is_fenced {
        calls.extend(accesses(member));
    }
    sync(calls, chance)
}

/// Returns a call that is wrong in any state.
fn anywhere(chance: &mut Chance) -> Wrong {
    let (call, class) = chance.one_of(&[
        (Call::LockOfKind(7), Class::Locktype),
        (Call::FenceWith(1), Class::Assert),
        (Call::LockWith(0, 4096), Class::Assert),
    ]);
    Wrong { call, class }
}

/// Returns a call that is wrong inside of an epoch.
pub fn inside(kind: &Kind, state: &State, chance: &mut Chance) -> Wrong {
    if chance.below(8) == 0 {
        return anywhere(chance);
    }
    let any = chance.below(state.size as u64) as usize;
    let is_open = state.open.contains(&any);
    let mut calls = vec![];
    if state.is_exposed {
        calls.extend([Call::Post, Call::Fence, Call::Free]);
        calls.extend([Call::Lock(state.me), Call::LockAll]);
    } else {
        calls.extend([Call::Wait, Call::Test]);
    }
    let others = [Call::Fence, Call::Start, Call::LockAll, Call::Free];
    match kind {
        Kind::Fence { .. } => {
            calls.extend([Call::Complete, Call::UnlockAll, Call::FlushAll]);
            calls.extend(passive(any));
            if state.has_accessed {
                calls.extend([Call::Start, Call::Post, Call::Lock(any), Call::LockAll]);
            }
        }
        Kind::Group { .. } => {
            calls.extend([Call::UnlockAll, Call::FlushAll]);
            calls.extend(passive(any));
            match state.open.is_empty() {
                true => calls.push(Call::Complete),
                false => calls.extend(others.into_iter().chain([Call::Lock(any)])),
            }
            if !is_open && !state.is_fenced {
                calls.extend(accesses(any));
            }
        }
        Kind::Locks { .. } => {
            calls.extend([Call::Complete, Call::UnlockAll]);
            if !state.open.is_empty() {
                calls.extend(others);
            }
            if state.open.contains(&state.me) {
                calls.push(Call::Post);
            }
            match is_open {
                true => calls.push(Call::Lock(any)),
                false => calls.extend(passive(any)),
            }
            if !is_open && !state.is_fenced {
                calls.extend(accesses(any));
            }
        }
        Kind::LockAll { .. } => {
            calls.extend(others);
            calls.extend([Call::Complete, Call::Post]);
            calls.extend([Call::Lock(any), Call::Unlock(any)]);
        }
    }
    sync(calls, chance)
}

/// Returns an access to a member that may be accessed, of a window of so many, of so many bytes, with a wrong argument.
pub fn arguments(
    (made, size): (Made, usize),
    (target, bytes): (usize, usize),
    chance: &mut Chance,
) -> Wrong {
    let byte = VALUES[0].handle;
    let negative = match made {
        // Displacements are addresses: it is none of what is attached.
        Made::Dynamic => Class::RmaRange,
        _ => Class::Disp,
    };
    let (call, class) = chance.one_of(&[
        (Call::PutAt(size as i32, 0), Class::Rank),
        (Call::PutAt(-7, 0), Class::Rank),
        (Call::PutAt(target as i32, bytes as i64), Class::RmaRange),
        (Call::PutAt(target as i32, i64::MIN), negative),
        (Call::PutOf(target, -1, byte), Class::Count),
        (Call::PutOf(target, 1, Datatype::NULL), Class::Type),
        (Call::PutUncommitted(target), Class::Type),
        (Call::PutLonger(target), Class::Truncate),
        (Call::AccumulateBy(target, Op(0x20), byte), Class::Op),
        (Call::AccumulateBy(target, Op(0x28), DOUBLE), Class::Op),
        (Call::AccumulateBy(target, Op(0x3d), byte), Class::Op),
        (Call::AccumulateOthers(target), Class::Type),
        (Call::SwapOf(target, DOUBLE), Class::Type),
    ]);
    Wrong { call, class }
}

/// Memory at the origin, which no wrong call changes.
struct Ends {
    from: [u64; 2],
    into: [u64; 2],
}

impl Wrong {
    /// Makes the call, and checks its error.
    pub fn make(&self, rank: &Rank) {
        let mut ends = Ends {
            from: [1, 2],
            into: [3, 4],
        };
        let done = self.call(rank, &mut ends);
        let error = done.expect_err(&format!("{:?}", self.call));
        let class = Class::of(error.code());
        assert_eq!(class, Some(self.class), "{:?}: {error:?}", self.call);
        assert_eq!(ends.into, [3, 4], "{:?}", self.call);
    }

    fn call(&self, rank: &Rank, ends: &mut Ends) -> Result {
        let (process, win) = (&*rank.process, rank.win);
        let number = |member: usize| member as i32;
        match self.call {
            Call::Fence => synchronization::win_fence(process, 0, win),
            Call::Start => synchronization::win_start(process, rank.group(&[0]), 0, win),
            Call::Complete => synchronization::win_complete(process, win),
            Call::Post => synchronization::win_post(process, rank.group(&[0]), 0, win),
            Call::Wait => synchronization::win_wait(process, win),
            Call::Test => synchronization::win_test(process, win, result(&mut 0)),
            Call::Lock(member) => {
                synchronization::win_lock(process, SHARED, number(member), 0, win)
            }
            Call::Unlock(member) => synchronization::win_unlock(process, number(member), win),
            Call::LockAll => synchronization::win_lock_all(process, 0, win),
            Call::UnlockAll => synchronization::win_unlock_all(process, win),
            Call::Flush(member) => one_sided::win_flush(process, number(member), win),
            Call::FlushLocally(member) => one_sided::win_flush_local(process, number(member), win),
            Call::FlushAll => synchronization::win_flush_all(process, win),
            Call::FlushAllLocally => synchronization::win_flush_local_all(process, win),
            Call::Free => creation::win_free(process, result(&mut { win })),
            Call::LockOfKind(kind) => synchronization::win_lock(process, kind, 0, 0, win),
            Call::FenceWith(assertion) => synchronization::win_fence(process, assertion, win),
            Call::LockWith(member, assertion) => {
                synchronization::win_lock(process, EXCLUSIVE, number(member), assertion, win)
            }
            _ => self.access(rank, ends),
        }
    }

    fn access(&self, rank: &Rank, ends: &mut Ends) -> Result {
        let (process, win) = (&*rank.process, rank.win);
        let [byte, _, word, _] = VALUES.map(|value| value.handle);
        let (from, into): (In, Out) = (data(&ends.from), room(&mut ends.into));
        let at = |member: usize, count, datatype| rank.place(member, (0, count, datatype));
        let one = |member: usize| at(member, 1, byte);
        let mut asked = Request::NULL;
        let request = &mut asked;
        match self.call {
            Call::Put(to) => one_sided::put(process, from.of(1, byte), one(to), win),
            Call::Get(to) => one_sided::get(process, into.of(1, byte), one(to), win),
            Call::Accumulate(to) => {
                one_sided::accumulate(process, from.of(1, byte), one(to), SUM, win)
            }
            Call::FetchAndOp(to) => {
                let Place {
                    rank, displacement, ..
                } = one(to);
                one_sided::fetch_and_op(process, from, into, byte, rank, displacement, SUM, win)
            }
            Call::CompareAndSwap(to) => swap(process, (from, into), one(to), win),
            Call::SwapOf(to, datatype) => swap(process, (from, into), at(to, 1, datatype), win),
            Call::PutByRequest(to) => {
                transfers::rput(process, from.of(1, byte), one(to), win, result(request))
            }
            Call::GetByRequest(to) => {
                transfers::rget(process, into.of(1, byte), one(to), win, result(request))
            }
            Call::AccumulateByRequest(to) => {
                let (from, request) = (from.of(1, byte), result(request));
                accumulates::raccumulate(process, from, one(to), SUM, win, request)
            }
            Call::GetAccumulateByRequest(to) => {
                let (from, into) = (from.of(1, byte), into.of(1, byte));
                let request = result(request);
                accumulates::rget_accumulate(process, from, into, one(to), SUM, win, request)
            }
            Call::PutAt(number, displacement) => {
                let place = rank.byte_at(number, displacement);
                one_sided::put(process, from.of(1, byte), place, win)
            }
            Call::PutOf(to, count, datatype) => {
                let place = at(to, count, datatype);
                one_sided::put(process, from.of(count, datatype), place, win)
            }
            Call::PutLonger(to) => one_sided::put(process, from.of(2, byte), one(to), win),
            Call::PutUncommitted(to) => {
                let mut pair = Datatype::NULL;
                datatypes::type_contiguous(process, Twin::Int, 1, byte, result(&mut pair))?;
                let done = one_sided::put(process, from.of(1, pair), at(to, 1, pair), win);
                datatypes::type_free(process, result(&mut pair))?;
                done
            }
            Call::AccumulateBy(to, op, datatype) => {
                let place = at(to, 1, datatype);
                one_sided::accumulate(process, from.of(1, datatype), place, op, win)
            }
            Call::AccumulateOthers(to) => {
                let place = at(to, 4, byte);
                one_sided::accumulate(process, from.of(1, word), place, SUM, win)
            }
            call => panic!("{call:?} is no access"),
        }
    }
}

fn swap(
    process: &Process,
    (from, into): (In, Out),
    place: Place,
    win: tagwire_shim::abi::Win,
) -> Result {
    let (rank, displacement, datatype) = (place.rank, place.displacement, place.datatype);
    one_sided::compare_and_swap(process, from, from, into, datatype, rank, displacement, win)
}
