//! Waits for several requests: their statuses and errors, from any thread, and what leaves with a wait.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod common;

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use common::{
    Ints, WORLD, array, code, data, ignore, ignore_all, ranks, ranks_with, result, room, status,
    statuses,
};
use tagwire_shim::Process;
use tagwire_shim::abi::{PROC_NULL, Request, Status};
use tagwire_shim::call::{collectives, complete, generalized, p2p};
use tagwire_shim::error::{Class, On};
use tagwire_shim::raw::Statuses;

/// No code of an error: what a program has left in a status.
const LEFT: i32 = 2112;

/// Starts a receive of `room.len()` numbers under `tag`, and sends this rank two.
fn receive(process: &Process, into: &mut [i32], tag: i32) -> Request {
    let mut request = Request::NULL;
    let (length, requested) = (into.len() as i64, result(&mut request));
    p2p::irecv(process, room(into).ints(length), 0, tag, WORLD, requested).unwrap();
    p2p::send(process, data(&[tag, tag]).ints(2), 0, tag, WORLD).unwrap();
    request
}

/// Statuses as the program has left them.
fn left<const N: usize>() -> [Status; N] {
    [Status::EMPTY.with_error(LEFT); N]
}

/// Waits for all in a thread that did not initialize MPI.
fn waitall_beside(
    process: &Process,
    all: &mut [Request],
    ends: Option<&mut [Status]>,
) -> tagwire_shim::Result {
    std::thread::scope(|scope| {
        let wait = || {
            let set: Statuses = ends.map_or_else(ignore_all, statuses);
            complete::waitall(process, all.len() as i32, array(all), set)
        };
        scope.spawn(wait).join().unwrap()
    })
}

#[test]
fn another_thread_waits_for_several_messages() {
    ranks(1, |process, _| {
        let mut rooms = [[0; 2]; 4];
        let [one, two, three, four] = &mut rooms;
        let mut sent = Request::NULL;
        p2p::isend(process, data(&[7]).ints(1), 0, 9, WORLD, result(&mut sent)).unwrap();
        let mut all = [
            sent,
            receive(process, one, 1),
            Request::NULL,
            receive(process, two, 2),
        ];
        let mut ends = left::<4>();
        waitall_beside(process, &mut all, Some(&mut ends)).unwrap();
        assert_eq!(all, [Request::NULL; 4]);
        assert_eq!(ends.map(|end| end.bytes()), [0, 8, 0, 8]);
        assert_eq!([ends[1].tag, ends[3].tag], [1, 2]);

        let mut seventh = [0];
        p2p::recv(process, room(&mut seventh).ints(1), 0, 9, WORLD, ignore()).unwrap();
        p2p::isend(process, data(&[7]).ints(1), 0, 9, WORLD, result(&mut sent)).unwrap();
        let mut all = [
            sent,
            receive(process, three, 3),
            Request::NULL,
            receive(process, four, 4),
        ];
        waitall_beside(process, &mut all, None).unwrap();
        assert_eq!(all, [Request::NULL; 4]);
        p2p::recv(process, room(&mut seventh).ints(1), 0, 9, WORLD, ignore()).unwrap();
        assert_eq!(rooms, [[1, 1], [2, 2], [3, 3], [4, 4]]);
    });
}

/// What was waited for before the messages, by itself, keeps its status.
#[test]
fn another_thread_waits_for_an_operation_before_messages() {
    ranks(1, |process, _| {
        let mut rooms = [[0; 2]; 2];
        let [one, two] = &mut rooms;
        let first = receive(process, one, 1);
        let mut all = [first, Request::NULL, receive(process, two, 2)];
        collectives::ibarrier(process, WORLD, result(&mut all[1])).unwrap();
        let mut ends = left::<3>();
        waitall_beside(process, &mut all, Some(&mut ends)).unwrap();
        assert_eq!(all, [Request::NULL; 3]);
        assert_eq!(ends.map(|end| end.bytes()), [8, 0, 8]);
        assert_eq!([ends[0].tag, ends[2].tag], [1, 2]);
    });
}

/// A wait for several waits for the operation among them too.
#[test]
fn another_thread_waits_for_an_operation_under_way() {
    let entered = AtomicUsize::new(0);
    ranks(2, |process, me| {
        if me == 1 {
            // Long enough for the other to wait, most of the time.
            std::thread::sleep(Duration::from_millis(20));
            entered.store(1, SeqCst);
            return collectives::barrier(process, WORLD).unwrap();
        }
        let mut all = [Request::NULL; 2];
        let mut got = [0];
        collectives::ibarrier(process, WORLD, result(&mut all[0])).unwrap();
        let (nobody, request) = (room(&mut got), result(&mut all[1]));
        p2p::irecv(process, nobody.ints(1), PROC_NULL, 0, WORLD, request).unwrap();
        waitall_beside(process, &mut all, None).unwrap();
        assert_eq!((all, entered.load(SeqCst)), ([Request::NULL; 2], 1));
    });
}

/// A request that is given twice is a mistake. Those before it have ended, and are no more.
#[test]
fn another_thread_waits_for_a_message_twice() {
    ranks(1, |process, _| {
        let mut rooms = [[0; 2]; 2];
        let [one, two] = &mut rooms;
        let twice = receive(process, one, 1);
        let mut all = [twice, receive(process, two, 2), twice];
        let mut ends = left::<3>();
        let wrong = waitall_beside(process, &mut all, Some(&mut ends));
        assert_eq!(code(wrong), Class::Request);
        assert_eq!(all, [Request::NULL, Request::NULL, twice]);
        assert_eq!([ends[0].tag, ends[1].tag], [1, 2]);
        assert_eq!(ends[2].error, LEFT);
    });
}

/// An error that a look has left is that of the wait, also where nobody asks for statuses.
#[test]
fn another_thread_waits_for_a_message_that_was_looked_at() {
    ranks(1, |process, _| {
        let (mut short, mut long) = ([0], [0; 2]);
        let mut all = [
            receive(process, &mut short, 1),
            receive(process, &mut long, 2),
        ];
        let (mut flag, mut end) = (0, Status::EMPTY);
        while flag == 0 {
            let (ended, end) = (result(&mut flag), status(&mut end));
            complete::request_get_status(process, all[0], ended, end).unwrap();
        }
        let failed = waitall_beside(process, &mut all, None);
        assert_eq!(code(failed), Class::InStatus);
        assert_eq!(all, [Request::NULL; 2]);
        assert_eq!(long, [2, 2]);
    });
}

/// Where one has failed the error of each status says how that ended (MPI-5.0, section 3.2.5), and the call's is the first.
#[test]
fn statuses_around_an_error_say_that_they_ended_well() {
    ranks(1, |process, _| {
        let (mut good, mut short, mut shorter, mut last) = ([0; 2], [0], [0], [0; 2]);
        let mut all = [
            receive(process, &mut good, 1),
            receive(process, &mut short, 2),
            receive(process, &mut shorter, 3),
            receive(process, &mut last, 4),
        ];
        let mut ends = left::<4>();
        let failed = complete::waitall(process, 4, array(&mut all), statuses(&mut ends));
        let failed = failed.unwrap_err();
        assert_eq!(Class::of(failed.code()), Some(Class::InStatus));
        assert!(failed.text().contains("tag 2 "), "{}", failed.text());
        let truncated = Class::Truncate as i32;
        assert_eq!(ends.map(|end| end.error), [0, truncated, truncated, 0]);
    });
}

/// The error of a status is left as it was where all ended well (MPI-5.0, section 3.2.5).
#[test]
fn statuses_of_collectives_keep_their_error() {
    ranks(1, |process, _| {
        for how in ["waitall", "testall", "waitsome", "testsome"] {
            let mut all = [Request::NULL];
            collectives::ibarrier(process, WORLD, result(&mut all[0])).unwrap();
            let mut ends = left::<1>();
            while all[0] != Request::NULL {
                let (mut ended, mut places) = (0, [0]);
                let (given, set) = (array(&mut all), statuses(&mut ends));
                let (count, places) = (result(&mut ended), array(&mut places));
                match how {
                    "waitall" => complete::waitall(process, 1, given, set),
                    "testall" => complete::testall(process, 1, given, count, set),
                    "waitsome" => complete::waitsome(process, 1, given, count, places, set),
                    _ => complete::testsome(process, 1, given, count, places, set),
                }
                .unwrap();
            }
            assert_eq!(ends[0].error, LEFT, "{how}");
        }
    });
}

#[test]
fn a_test_of_several_waits_for_none() {
    ranks(1, |process, _| {
        let (mut first, mut second, mut flag) = ([0; 2], [0; 2], 7);
        let mut all = [receive(process, &mut first, 1), Request::NULL];
        let (into, request) = (room(&mut second), result(&mut all[1]));
        p2p::irecv(process, into.ints(2), 0, 2, WORLD, request).unwrap();
        let given = all;
        let (requests, ended) = (array(&mut all), result(&mut flag));
        complete::testall(process, 2, requests, ended, ignore_all()).unwrap();
        assert_eq!((flag, all), (0, given));
        p2p::send(process, data(&[2, 2]).ints(2), 0, 2, WORLD).unwrap();
        while flag == 0 {
            let (requests, ended) = (array(&mut all), result(&mut flag));
            complete::testall(process, 2, requests, ended, ignore_all()).unwrap();
        }
        assert_eq!((all, second), ([Request::NULL; 2], [2, 2]));
    });
}

#[test]
fn a_receive_from_nobody_says_so() {
    ranks(1, |process, _| {
        let (mut request, mut into) = (Request::NULL, [5]);
        let requested = result(&mut request);
        p2p::irecv(
            process,
            room(&mut into).ints(1),
            PROC_NULL,
            0,
            WORLD,
            requested,
        )
        .unwrap();
        let (mut flag, mut seen, mut end) = (0, Status::EMPTY, Status::EMPTY);
        let (ended, looked) = (result(&mut flag), status(&mut seen));
        complete::request_get_status(process, request, ended, looked).unwrap();
        complete::wait(process, result(&mut request), status(&mut end)).unwrap();
        assert_eq!((flag, seen.source, end.source), (1, PROC_NULL, PROC_NULL));
        assert_eq!(into, [5]);
    });
}

/// A send that was complete when its call returned is a request as any other.
#[test]
fn requests_that_had_ended_are_looked_at_cancelled_and_freed() {
    ranks(1, |process, _| {
        let (mut request, mut flag) = (Request::NULL, 0);
        let requested = result(&mut request);
        p2p::isend(process, data(&[7]).ints(1), 0, 1, WORLD, requested).unwrap();
        let (ended, mut end) = (result(&mut flag), Status::EMPTY.with_tag(3));
        complete::request_get_status(process, request, ended, status(&mut end)).unwrap();
        assert_eq!((flag, end.tag), (1, Status::EMPTY.tag));
        complete::cancel(process, requested).unwrap();
        complete::request_free(process, requested).unwrap();
        assert_eq!(request, Request::NULL);
        let mut got = [0];
        p2p::recv(process, room(&mut got).ints(1), 0, 1, WORLD, ignore()).unwrap();
        assert_eq!(got, [7]);
    });
}

#[test]
fn errors_are_raised_on_the_communicator_of_the_request() {
    ranks(1, |process, _| {
        let mut into = [0; 2];
        let mut request = receive(process, &mut into, 1);
        let wrong = generalized::grequest_complete(process, request).unwrap_err();
        assert_eq!(wrong.raised_on(), On::Comm(WORLD));
        complete::wait(process, result(&mut request), ignore()).unwrap();
    });
}

#[test]
fn a_status_says_whether_its_request_was_cancelled() {
    ranks(1, |process, _| {
        let (mut into, mut end) = ([0; 2], Status::EMPTY);
        for cancels in [true, false] {
            let mut request = Request::NULL;
            let requested = result(&mut request);
            if cancels {
                p2p::irecv(process, room(&mut into).ints(2), 0, 1, WORLD, requested).unwrap();
                complete::cancel(process, requested).unwrap();
            } else {
                request = receive(process, &mut into, 1);
            }
            complete::wait(process, result(&mut request), status(&mut end)).unwrap();
            let mut flag = 7;
            complete::test_cancelled(process, status(&mut end), result(&mut flag)).unwrap();
            assert_eq!(flag, i32::from(cancels));
        }
    });
}

/// Short messages that wait for others to leave with do so in a wait for requests that had ended: the rank may compute next.
#[test]
fn what_was_sent_leaves_with_a_wait() {
    const COUNT: i32 = 5;
    let settings = [("wait", "yield"), ("coalesce", "1K")];
    let received = AtomicUsize::new(0);
    ranks_with(2, &settings, |process, me| {
        for (round, how) in ["wait", "waitall", "persistent"].into_iter().enumerate() {
            if me == 1 {
                for tag in 0..COUNT {
                    let mut got = [-1];
                    p2p::recv(process, room(&mut got).ints(1), 0, tag, WORLD, ignore()).unwrap();
                    assert_eq!(got, [7]);
                }
                received.store(round + 1, SeqCst);
                continue;
            }
            let mut all = [Request::NULL; COUNT as usize];
            for (tag, request) in (0..).zip(&mut all) {
                let (sent, request) = (data(&[7]), result(request));
                match how {
                    "persistent" => {
                        p2p::send_init(process, sent.ints(1), 1, tag, WORLD, request).unwrap();
                        complete::start(process, request).unwrap();
                    }
                    _ => p2p::isend(process, sent.ints(1), 1, tag, WORLD, request).unwrap(),
                }
            }
            match how {
                "waitall" => complete::waitall(process, COUNT, array(&mut all), ignore_all()),
                _ => complete::wait(process, result(&mut all[4]), ignore()),
            }
            .unwrap();
            // No call of MPI.
            while received.load(SeqCst) <= round {
                std::thread::yield_now();
            }
            complete::waitall(process, COUNT, array(&mut all), ignore_all()).unwrap();
            for request in all.iter_mut().filter(|one| **one != Request::NULL) {
                complete::request_free(process, result(request)).unwrap();
            }
        }
    });
}
