//! Accumulates between hosts, which their target does: all operations on all kinds of lengths, in their order, atomic beside each other.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod common;

use std::sync::Arc;

use common::sites::{FAR, Site};
use common::windows::{Ints, Made, SHARED, window};
use common::{INT, SUM, data, ignore, one_sided, result, room};
use tagwire_base::bootstrap::LocalJob;
use tagwire_shim::Process;
use tagwire_shim::abi::{Datatype, Op, Request};
use tagwire_shim::call::windows::accumulates;
use tagwire_shim::call::{complete, datatypes};
use tagwire_shim::raw::{Elements, In, Out, Twin};

const REPLACE: Op = Op(0x3c);
const NO_OP: Op = Op(0x3d);
const MAXLOC: Op = Op(0x39);
const SHORT_INT: Datatype = Datatype(0x22c);

/// Runs `body` on every rank of a job between two hosts, over each network that is there.
fn far(test: &str, size: u32, body: impl Fn(&Arc<Process>, i32) + Sync) {
    for site in FAR.into_iter().filter(|site| site.is_there(test)) {
        on(site, size, &body);
    }
}

fn on(site: Site, size: u32, body: &(impl Fn(&Arc<Process>, i32) + Sync)) {
    let job = LocalJob::new(size).unwrap();
    std::thread::scope(|scope| {
        for number in 0..size {
            let job = &job;
            scope.spawn(move || {
                let process = site.open(job, size, number).unwrap();
                body(&process, number as i32);
                process.finalize().unwrap();
            });
        }
    });
}

impl Ints {
    fn change(&self, values: &[i32], op: Op, rank: i32, at: i64) {
        let count = values.len() as i64;
        let origin: Elements<In> = data(values).of(count, INT);
        let place = self.place(rank, at, count);
        one_sided::accumulate(&self.process, origin, place, op, self.win).unwrap();
    }

    fn change_and_get(&self, values: &[i32], old: &mut [i32], op: Op, rank: i32, at: i64) {
        let count = values.len() as i64;
        let (origin, place) = (data(values).of(count, INT), self.place(rank, at, count));
        let result = room(old).of(count, INT);
        one_sided::get_accumulate(&self.process, origin, result, place, op, self.win).unwrap();
    }
}

/// Every rank adds to the same values, singly and in arrays that are longer than a message, and nothing is lost.
#[test]
fn sums_of_all_ranks_are_whole() {
    const LENGTH: usize = 40_000;
    const ROUNDS: usize = 60;
    far("sums_of_all_ranks_are_whole", 3, |process, me| {
        let window = window(process, Made::Allocated, LENGTH);
        window.fence().unwrap();
        let ones = vec![1; LENGTH];
        let mut old = vec![0; ROUNDS];
        for (round, old) in old.iter_mut().enumerate() {
            window.change(&[1], SUM, 0, 0);
            window.change(&ones[..17], SUM, 0, 100);
            if round % 20 == 0 {
                window.change(&ones, SUM, 0, 0);
            }
            window.fetch_add(old, 0, 1).unwrap();
        }
        window.fence().unwrap();
        assert!(old.is_sorted_by(|before, after| before < after), "{old:?}");
        if me == 0 {
            let all = window.own(LENGTH);
            let (each, rounds) = (3 * ROUNDS as i32, 3 * ROUNDS as i32 / 20);
            let beside = |index| match index {
                0 | 1 => each,
                100..117 => each,
                _ => 0,
            };
            let expected: Vec<_> = (0..LENGTH).map(|index| rounds + beside(index)).collect();
            assert!(all == expected, "{:?}", &all[..130]);
        }
        window.fence().unwrap();
        window.free().unwrap();
    });
}

/// Accumulates of one origin at one place are in their order (MPI-5.0, section 12.7.2): those that the target does, and those of data
/// with gaps, which the origin does.
#[test]
fn accumulates_of_an_origin_are_in_order() {
    far("accumulates_of_an_origin_are_in_order", 2, |process, me| {
        let window = window(process, Made::Created, 64);
        let mut apart = Datatype(0);
        datatypes::type_vector(process, Twin::Int, 2, 1, 3, INT, result(&mut apart)).unwrap();
        datatypes::type_commit(process, result(&mut apart)).unwrap();
        if me == 1 {
            window.lock(SHARED, 0).unwrap();
            for number in 0..40 {
                let (mut before, mut after) = ([-1; 4], [-1; 4]);
                window.change(&[number; 4], REPLACE, 0, 8);
                window.change_and_get(&[0; 4], &mut before, NO_OP, 0, 8);
                let values = [1000 + number; 2];
                let origin: Elements<In> = data(&values).of(2, INT);
                let place = window.elements(0, 8, 1, apart);
                one_sided::accumulate(process, origin, place, SUM, window.win).unwrap();
                window.change_and_get(&[0; 4], &mut after, NO_OP, 0, 8);
                window.flush(0).unwrap();
                assert_eq!(before, [number; 4]);
                let sum = 1000 + 2 * number;
                assert_eq!(after, [sum, number, number, sum]);
            }
            window.unlock(0).unwrap();
        }
        window.fence().unwrap();
        window.free().unwrap();
    });
}

/// Values that have padding: it is not written.
#[test]
fn padding_is_the_programs() {
    far("padding_is_the_programs", 2, |process, me| {
        let window = window(process, Made::Allocated, 64);
        window.fence().unwrap();
        if me == 0 {
            window.change(&[-1; 64], REPLACE, 0, 0);
        }
        window.fence().unwrap();
        // A short, 2 bytes of padding, and an int.
        let pair = |value: i16, index| [i32::from(value), index];
        if me == 1 {
            let pairs = [pair(5, 7), pair(6, 8), pair(-2, 9)].concat();
            let origin: Elements<In> = data(&pairs).of(3, SHORT_INT);
            let place = window.elements(0, 2, 3, SHORT_INT);
            one_sided::accumulate(process, origin, place, MAXLOC, window.win).unwrap();
        }
        window.fence().unwrap();
        if me == 0 {
            let high = -65_536;
            let expected = [-1, -1, high | 5, 7, high | 6, 8, -1, -1, -1];
            assert_eq!(window.own(9), expected);
        }
        window.fence().unwrap();
        window.free().unwrap();
    });
}

/// An origin does not wait for its target: it goes on while that makes no progress, and all is done with the epoch.
#[test]
fn an_origin_goes_on_without_its_target() {
    let (told, goes) = std::sync::mpsc::channel();
    let goes = std::sync::Mutex::new(goes);
    far("an_origin_goes_on_without_its_target", 2, |process, me| {
        let window = window(process, Made::Allocated, 8);
        window.fence().unwrap();
        if me == 0 {
            for _ in 0..100 {
                window.change(&[1], SUM, 1, 3);
            }
            told.send(()).unwrap();
        } else {
            let goes = goes.lock().unwrap();
            let limit = std::time::Duration::from_secs(60);
            goes.recv_timeout(limit).expect("the origin waits");
        }
        window.fence().unwrap();
        assert_eq!(window.own(4)[3], if me == 1 { 100 } else { 0 });
        window.fence().unwrap();
        window.free().unwrap();
    });
}

/// Ranks swap a value for the next, beside sums of others; a request has ended with its result.
#[test]
fn swaps_and_requests_have_their_results() {
    const TURNS: i32 = 50;
    far("swaps_and_requests_have_their_results", 3, |process, me| {
        let window = window(process, Made::Allocated, 8);
        window.lock_all().unwrap();
        let mut won = 0;
        while won < TURNS {
            let mut found = 0;
            let zero = [0];
            window.change_and_get(&zero, std::slice::from_mut(&mut found), NO_OP, 0, 2);
            window.flush(0).unwrap();
            let (next, mut was) = ([found + 1], [-1]);
            let (compare, target) = ([found], window.place(0, 2, 1));
            let (new, old): (In, Out) = (data(&next), room(&mut was));
            let (compare, at) = (data(&compare), target.displacement);
            one_sided::compare_and_swap(process, new, compare, old, INT, 0, at, window.win)
                .unwrap();
            window.flush(0).unwrap();
            won += i32::from(was == [found]);
            let (mut request, mut sum) = (Request::NULL, [-1]);
            let (one, into) = ([1], room(&mut sum).of(1, INT));
            let (one, place) = (data(&one).of(1, INT), window.place(0, 3, 1));
            let request = result(&mut request);
            accumulates::rget_accumulate(process, one, into, place, SUM, window.win, request)
                .unwrap();
            complete::wait(process, request, ignore()).unwrap();
            assert!(sum[0] >= won - 1, "{sum:?}");
        }
        window.unlock_all().unwrap();
        window.fence().unwrap();
        if me == 0 {
            assert_eq!(window.own(3)[2], 3 * TURNS);
        }
        window.fence().unwrap();
        window.free().unwrap();
    });
}
