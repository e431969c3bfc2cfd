//! Requests of other kinds than messages and collectives, and looks at requests that leave them as they are.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]
#![allow(unsafe_code)]

mod common;

use std::ffi::c_void;
use std::sync::atomic::{AtomicI32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{
    INT, Ints, SUM, WORLD, array, code, data, extra, given, ignore, ignore_all, list, number, out,
    ranks, result, room, status, statuses,
};
use tagwire_shim::Process;
use tagwire_shim::abi::{Comm, Datatype, Errhandler, Info, PROC_NULL, Request, Status, UNDEFINED};
use tagwire_shim::call::{
    bsend, collectives, communicators, complete, datatypes, duplicates, environment, generalized,
    keyvals, p2p, sendrecv, statuses as looks,
};
use tagwire_shim::error::Class;
use tagwire_shim::raw::{Pointer, Ref, StatusRef, Twin};

/// Runs `look` until it says that all is complete.
fn until(mut look: impl FnMut() -> bool) {
    while !look() {
        std::thread::yield_now();
    }
}

#[test]
fn looks_leave_requests_as_they_are() {
    ranks(2, |process, me| {
        let other = 1 - me;
        let mut rooms = [[0; 2]; 3];
        let mut requests = [Request::NULL; 4];
        for (place, into) in rooms.iter_mut().enumerate() {
            let (into, request) = (room(into), result(&mut requests[place + 1]));
            p2p::irecv(process, into.ints(2), other, place as i32, WORLD, request).unwrap();
        }
        let (mut flag, mut index, mut count) = (0, 7, 7);
        let mut one = Status::EMPTY;
        {
            let (flag, index) = (result(&mut flag), result(&mut index));
            let all = list(&requests);
            looks::request_get_status_any(process, 4, all, index, flag, status(&mut one)).unwrap();
        }
        assert_eq!((flag, index), (0, UNDEFINED));
        let all = list(&requests);
        let mut indices = [0; 4];
        let (done, places) = (result(&mut count), array(&mut indices));
        looks::request_get_status_some(process, 4, all, done, places, ignore_all()).unwrap();
        assert_eq!(count, 0);
        collectives::barrier(process, WORLD).unwrap();
        p2p::send(process, data(&[me, 1]).ints(2), other, 1, WORLD).unwrap();
        until(|| {
            let (flag, index) = (result(&mut flag), result(&mut index));
            let one = status(&mut one);
            looks::request_get_status_any(process, 4, all, index, flag, one).unwrap();
            flag.get().unwrap() == 1
        });
        assert_eq!((index, one.source, one.tag, one.bytes()), (2, other, 1, 8));
        let mut both = [Status::EMPTY; 4];
        let (done, places) = (result(&mut count), array(&mut indices));
        let of = statuses(&mut both);
        looks::request_get_status_some(process, 4, all, done, places, of).unwrap();
        assert_eq!((count, indices[0], both[0].tag), (1, 2, 1));
        let ended = result(&mut flag);
        looks::request_get_status_all(process, 4, all, ended, ignore_all()).unwrap();
        assert_eq!(flag, 0);
        collectives::barrier(process, WORLD).unwrap();
        for tag in [0, 2] {
            p2p::send(process, data(&[tag, 1]).ints(1), other, tag, WORLD).unwrap();
        }
        until(|| {
            let (ended, of) = (result(&mut flag), statuses(&mut both));
            looks::request_get_status_all(process, 4, all, ended, of).unwrap();
            flag == 1
        });
        assert_eq!(both.map(|one| one.bytes()), [0, 4, 8, 4]);
        assert_eq!(both[3].tag, 2);
        // They are still there to be waited for.
        let of = statuses(&mut both);
        complete::waitall(process, 4, array(&mut requests), of).unwrap();
        assert_eq!(both.map(|one| one.bytes()), [0, 4, 8, 4]);
        assert_eq!(rooms[1], [other, 1]);
        let all = list(&requests);
        let (done, places) = (result(&mut count), array(&mut indices));
        looks::request_get_status_some(process, 4, all, done, places, ignore_all()).unwrap();
        assert_eq!(count, UNDEFINED, "none is active any more");
        let (flag_of, index_of) = (result(&mut flag), result(&mut index));
        looks::request_get_status_any(process, 4, all, index_of, flag_of, ignore()).unwrap();
        assert_eq!((flag, index), (1, UNDEFINED));
        let wrong = looks::request_get_status_all(process, -1, all, flag_of, ignore_all());
        assert_eq!(code(wrong), Class::Count);
    });
}

/// Sends that are complete, null and inactive requests, receives that are there, that come, and that fail, operations: in one call.
#[test]
fn requests_of_every_kind_are_waited_for_together() {
    ranks(2, |process, me| {
        let other = 1 - me;
        let mut rooms = [[0; 2]; 4];
        let mut requests = [Request::NULL; 8];
        {
            let [_, sent, _, inactive, barrier, ..] = &mut requests;
            p2p::isend(process, data(&[me]).ints(1), other, 9, WORLD, result(sent)).unwrap();
            let never = room::<i32>(&mut []);
            p2p::recv_init(process, never.ints(0), other, 8, WORLD, result(inactive)).unwrap();
            collectives::ibarrier(process, WORLD, result(barrier)).unwrap();
        }
        let persistent = requests[3];
        // The place of each, its room in numbers, and its tag.
        let receives = [(0, 2, 9), (2, 2, 1), (5, 1, 2), (7, 2, 3)];
        for ((place, length, tag), into) in receives.into_iter().zip(&mut rooms) {
            let (into, request) = (room(into), result(&mut requests[place]));
            p2p::irecv(process, into.ints(length), other, tag, WORLD, request).unwrap();
        }
        for tag in 1..4 {
            p2p::send(process, data(&[me, tag]).ints(2), other, tag, WORLD).unwrap();
        }
        let mut ends = [Status::EMPTY; 8];
        let all = array(&mut requests);
        let ended = complete::waitall(process, 8, all, statuses(&mut ends));
        assert_eq!(code(ended), Class::InStatus);
        let truncated = Class::Truncate as i32;
        assert_eq!(ends.map(|one| one.error), [0, 0, 0, 0, 0, truncated, 0, 0]);
        let good = [0, 2, 7];
        assert_eq!(good.map(|place| ends[place].bytes()), [4, 8, 8]);
        assert_eq!(good.map(|place| ends[place].tag), [9, 1, 3]);
        let taken = [rooms[0], rooms[1], rooms[3]];
        assert_eq!(taken, [[other, 0], [other, 1], [other, 3]]);
        let mut left = [Request::NULL; 8];
        left[3] = persistent;
        assert_eq!(requests, left);
        complete::request_free(process, result(&mut requests[3])).unwrap();

        // One that is none is an error at once, though one before it is under way.
        let stale = persistent;
        let mut both = [Request::NULL, stale];
        let (into, request) = (room(&mut rooms[0]), result(&mut both[0]));
        p2p::irecv(process, into.ints(2), other, 4, WORLD, request).unwrap();
        let wrong = complete::waitall(process, 2, array(&mut both), ignore_all());
        assert_eq!(code(wrong), Class::Request);
        complete::cancel(process, result(&mut both[0])).unwrap();
        complete::wait(process, result(&mut both[0]), ignore()).unwrap();
    });
}

#[test]
fn exchanges_are_one_request() {
    ranks(3, |process, me| {
        let (next, before) = ((me + 1) % 3, (me + 2) % 3);
        // Long, so that neither half is complete at once.
        let own = vec![me; 100_000];
        let mut got = vec![-1; 100_000];
        let (mut request, mut one) = (Request::NULL, Status::EMPTY);
        let (from, into) = (data(&own), room(&mut got));
        let requested = result(&mut request);
        sendrecv::isendrecv(
            process,
            from.ints(100_000),
            next,
            5,
            into.ints(100_000),
            before,
            5,
            WORLD,
            requested,
        )
        .unwrap();
        complete::wait(process, result(&mut request), status(&mut one)).unwrap();
        assert_eq!(
            (request, one.source, one.bytes()),
            (Request::NULL, before, 400_000)
        );
        assert!(got.iter().all(|number| *number == before));

        // Every second number is replaced.
        let mut second = Datatype::NULL;
        datatypes::type_vector(process, Twin::Int, 50_000, 1, 2, INT, result(&mut second)).unwrap();
        datatypes::type_commit(process, result(&mut second)).unwrap();
        let mut both = own.clone();
        let requested = result(&mut request);
        let into = room(&mut both);
        sendrecv::isendrecv_replace(
            process,
            into.of(1, second),
            next,
            6,
            before,
            6,
            WORLD,
            requested,
        )
        .unwrap();
        datatypes::type_free(process, result(&mut second)).unwrap();
        let mut flag = 0;
        until(|| {
            let (request, flag) = (result(&mut request), result(&mut flag));
            complete::test(process, request, flag, status(&mut one)).unwrap();
            flag.get().unwrap() == 1
        });
        assert_eq!((one.tag, one.bytes()), (6, 200_000));
        let expected = |place| if place % 2 == 0 { before } else { me };
        assert!((0..100_000).all(|place| both[place] == expected(place)));

        // From nobody, to nobody.
        let requested = result(&mut request);
        sendrecv::isendrecv(
            process,
            from.ints(1),
            PROC_NULL,
            0,
            into.ints(1),
            PROC_NULL,
            0,
            WORLD,
            requested,
        )
        .unwrap();
        complete::wait(process, result(&mut request), status(&mut one)).unwrap();
        assert_eq!(one.source, PROC_NULL);
        // What is wrong with the send leaves no receive behind.
        let wrong = sendrecv::isendrecv(
            process,
            from.ints(1),
            3,
            0,
            into.ints(1),
            before,
            0,
            WORLD,
            requested,
        );
        assert_eq!(code(wrong), Class::Rank);
        collectives::barrier(process, WORLD).unwrap();
    });
}

/// What a generalized request has called.
#[derive(Default)]
struct Calls {
    queried: AtomicI32,
    freed: AtomicI32,
    cancelled: AtomicI32,
    code: AtomicI32,
    process: Mutex<Option<Arc<Process>>>,
}

unsafe extern "C-unwind" fn query(extra: *mut c_void, status: *mut Status) -> i32 {
    let calls: &Calls = given(extra);
    calls.queried.fetch_add(1, SeqCst);
    // SAFETY: the library gives one.
    let status = unsafe { StatusRef::new(status) };
    let process = calls.process.lock().unwrap().clone().unwrap();
    // It may call MPI.
    environment::status_set_elements(&process, status, INT, 3).unwrap();
    environment::status_set_cancelled(&process, status, 1).unwrap();
    status.change(|status| status.with_source(9).with_tag(8));
    calls.code.load(SeqCst)
}

unsafe extern "C-unwind" fn free(extra: *mut c_void) -> i32 {
    let calls: &Calls = given(extra);
    calls.freed.fetch_add(1, SeqCst);
    0
}

unsafe extern "C-unwind" fn cancel(extra: *mut c_void, complete: i32) -> i32 {
    let calls: &Calls = given(extra);
    calls.cancelled.fetch_add(1 + 10 * complete, SeqCst);
    calls.code.load(SeqCst)
}

fn generalized(process: &Process, calls: &Calls) -> Request {
    let mut request = Request::NULL;
    let (functions, requested) = ((Some(query as _), Some(free as _)), result(&mut request));
    let (query, free) = functions;
    generalized::grequest_start(process, query, free, Some(cancel), extra(calls), requested)
        .unwrap();
    request
}

fn counts(calls: &Calls) -> [i32; 3] {
    [&calls.queried, &calls.freed, &calls.cancelled].map(|count| count.load(SeqCst))
}

#[test]
fn operations_of_the_program_are_asked_once_and_freed_once() {
    ranks(1, |process, _| {
        let calls = Calls::default();
        *calls.process.lock().unwrap() = Some(Arc::clone(process));
        let mut request = generalized(process, &calls);
        let (mut flag, mut one) = (7, Status::EMPTY);
        complete::test(process, result(&mut request), result(&mut flag), ignore()).unwrap();
        assert_eq!((flag, counts(&calls)), (0, [0, 0, 0]));
        complete::cancel(process, result(&mut request)).unwrap();
        generalized::grequest_complete(process, request).unwrap();
        complete::cancel(process, result(&mut request)).unwrap();
        for _look in 0..2 {
            let (flag, one) = (result(&mut flag), status(&mut one));
            complete::request_get_status(process, request, flag, one).unwrap();
        }
        assert_eq!((flag, counts(&calls)), (1, [1, 0, 12]));
        let mut another = generalized(process, &calls);
        generalized::grequest_complete(process, another).unwrap();
        let mut all = [request, another];
        let mut both = [Status::EMPTY; 2];
        complete::waitall(process, 2, array(&mut all), statuses(&mut both)).unwrap();
        assert_eq!(counts(&calls), [2, 2, 12]);
        assert_eq!(all, [Request::NULL; 2]);
        for one in both.into_iter().chain([one]) {
            assert_eq!((one.source, one.tag, one.bytes()), (9, 8, 12));
            assert!(one.is_cancelled());
        }

        // Freed before it has ended: nobody is asked, and the program still says when.
        let kept = generalized(process, &calls);
        another = kept;
        complete::request_free(process, result(&mut another)).unwrap();
        assert_eq!((another, counts(&calls)), (Request::NULL, [2, 2, 12]));
        generalized::grequest_complete(process, kept).unwrap();
        assert_eq!(counts(&calls), [2, 3, 12]);
        let gone = generalized::grequest_complete(process, kept);
        assert_eq!(code(gone), Class::Request);
        // Freed after that.
        let mut ended = generalized(process, &calls);
        generalized::grequest_complete(process, ended).unwrap();
        complete::request_free(process, result(&mut ended)).unwrap();
        assert_eq!(counts(&calls), [2, 4, 12]);

        // A code of the program is the call's; the request is gone.
        calls.code.store(Class::Buffer as i32, SeqCst);
        let mut failing = generalized(process, &calls);
        let failed = complete::cancel(process, result(&mut failing));
        assert_eq!(code(failed), Class::Buffer);
        generalized::grequest_complete(process, failing).unwrap();
        let failed = complete::wait(process, result(&mut failing), ignore());
        assert_eq!((code(failed), failing), (Class::Buffer, Request::NULL));
        assert_eq!(counts(&calls), [3, 5, 13]);
        *calls.process.lock().unwrap() = None;

        let mut into = [0];
        let requested = result(&mut request);
        p2p::irecv(process, room(&mut into).ints(1), 0, 0, WORLD, requested).unwrap();
        let other = generalized::grequest_complete(process, request);
        assert_eq!(code(other), Class::Request);
        p2p::send(process, data(&[1]).ints(1), 0, 0, WORLD).unwrap();
        complete::wait(process, requested, ignore()).unwrap();
    });
}

/// Another thread says that it has ended while this one sleeps.
#[test]
fn a_wait_for_an_operation_of_the_program_is_woken() {
    ranks(1, |process, _| {
        let calls = Calls::default();
        *calls.process.lock().unwrap() = Some(Arc::clone(process));
        for _round in 0..3 {
            let mut request = generalized(process, &calls);
            let kept = request;
            std::thread::scope(|scope| {
                scope.spawn(move || {
                    // Long enough for the other to fall asleep, most of the time.
                    std::thread::sleep(Duration::from_millis(20));
                    generalized::grequest_complete(process, kept).unwrap();
                });
                complete::wait(process, result(&mut request), ignore()).unwrap();
            });
        }
        assert_eq!(counts(&calls), [3, 3, 0]);
        *calls.process.lock().unwrap() = None;
    });
}

unsafe extern "C-unwind" fn copy_next(
    _: Comm,
    _: i32,
    _: *mut c_void,
    value: *mut c_void,
    copied: *mut c_void,
    flag: *mut i32,
) -> i32 {
    out(copied).set(number(value.addr() + 1));
    // SAFETY: the library gives it.
    unsafe { Ref::new(flag) }.set(1);
    0
}

#[test]
fn duplicates_are_made_meanwhile() {
    ranks(4, |process, me| {
        let mut key = 0;
        let none = number(0);
        let copies = Some(copy_next as tagwire_shim::functions::CommCopy);
        keyvals::comm_create_keyval(process, copies, None, result(&mut key), none).unwrap();
        keyvals::comm_set_attr(process, WORLD, key, number(40)).unwrap();
        let (mut half, mut requests) = (Comm::NULL, [Request::NULL; 3]);
        communicators::comm_split(process, WORLD, me % 2, me, result(&mut half)).unwrap();
        let mut made = [Comm::NULL; 3];
        for (place, of) in [WORLD, half, WORLD].into_iter().enumerate() {
            let (new, request) = (result(&mut made[place]), result(&mut requests[place]));
            match place {
                2 => duplicates::comm_idup_with_info(process, of, Info::NULL, new, request),
                _ => duplicates::comm_idup(process, of, new, request),
            }
            .unwrap();
        }
        // What is asked of it alone may be asked before it has been made.
        let name = common::text(c"first");
        communicators::comm_set_name(process, made[0], name).unwrap();
        communicators::comm_set_errhandler(process, made[0], Errhandler::RETURN).unwrap();
        // Set after the call: the duplicates do not have it.
        keyvals::comm_set_attr(process, WORLD, key, number(50)).unwrap();
        // A collective of the same communicator goes on beside.
        let (mut sum, own) = ([0], [me]);
        collectives::allreduce(process, data(&own), room(&mut sum).ints(1), SUM, WORLD).unwrap();
        assert_eq!(sum, [6]);
        complete::waitall(process, 3, array(&mut requests), ignore_all()).unwrap();
        for (comm, expected) in made.into_iter().zip([6, 2 + 2 * (me % 2), 6]) {
            let (into, from) = (room(&mut sum), data(&own));
            collectives::allreduce(process, from, into.ints(1), SUM, comm).unwrap();
            assert_eq!(sum, [expected]);
        }
        let (mut value, mut flag) = (Pointer(std::ptr::null_mut()), 0);
        let (found, is_there) = (result(&mut value), result(&mut flag));
        keyvals::comm_get_attr(process, made[0], key, found, is_there).unwrap();
        assert_eq!((value.0.addr(), flag), (41, 1));
        let (mut name, mut length) = ([0; 128], 0);
        let (text, length) = (common::text_out(&mut name), result(&mut length));
        communicators::comm_get_name(process, made[0], text, length).unwrap();
        assert_eq!(common::said(&name), "first");
        let mut compared = 0;
        communicators::comm_compare(process, made[1], half, result(&mut compared)).unwrap();
        assert_eq!(compared, 202, "congruent");
        for comm in made.iter_mut().chain([&mut half]) {
            communicators::comm_free(process, result(comm)).unwrap();
        }
    });
}

#[test]
fn what_is_buffered_is_delivered_meanwhile() {
    ranks(2, |process, me| {
        let mut memory = vec![0_u8; 1 << 20];
        let mut request = Request::NULL;
        // Without a buffer there is nothing to deliver.
        bsend::buffer_iflush(process, result(&mut request)).unwrap();
        complete::wait(process, result(&mut request), ignore()).unwrap();
        let room_of = room(&mut memory);
        bsend::comm_attach_buffer(process, WORLD, room_of, 1 << 20).unwrap();
        let own = vec![me; 100_000];
        let mut got = vec![-1; 100_000];
        bsend::bsend(process, data(&own).ints(100_000), 1 - me, 0, WORLD).unwrap();
        bsend::comm_iflush_buffer(process, WORLD, result(&mut request)).unwrap();
        let (into, from) = (room(&mut got), 1 - me);
        p2p::recv(process, into.ints(100_000), from, 0, WORLD, ignore()).unwrap();
        complete::wait(process, result(&mut request), ignore()).unwrap();
        assert_eq!((request, got[99_999]), (Request::NULL, 1 - me));
        let (mut at, mut size) = (Pointer(std::ptr::null_mut()), 0);
        let (at, size) = (result(&mut at), common::count(&mut size));
        bsend::comm_detach_buffer(process, WORLD, at, size).unwrap();
    });
}

/// As other libraries do, and programs expect.
#[test]
fn of_several_that_have_ended_the_first_is_taken() {
    ranks(1, |process, _| {
        let mut requests = [Request::NULL; 4];
        let sent = [1, 2, 3, 4];
        for request in &mut requests {
            p2p::isend(process, data(&sent).ints(4), 0, 0, WORLD, result(request)).unwrap();
        }
        let mut got = [0; 4];
        for expected in 0..4 {
            p2p::recv(process, room(&mut got).ints(4), 0, 0, WORLD, ignore()).unwrap();
            let (mut index, mut flag) = (-1, 0);
            let (found, is_there) = (result(&mut index), result(&mut flag));
            let all = array(&mut requests);
            match expected % 2 {
                0 => complete::testany(process, 4, all, found, is_there, ignore()).unwrap(),
                _ => complete::waitany(process, 4, all, found, ignore()).unwrap(),
            }
            assert_eq!(index, expected);
        }
    });
}

/// Both see that it has ended, and nobody that it was taken before.
#[test]
fn two_threads_look_at_one_collective() {
    ranks(1, |process, _| {
        for _round in 0..2_000 {
            let mut request = Request::NULL;
            collectives::ibarrier(process, WORLD, result(&mut request)).unwrap();
            let look = || {
                let mut flag = 0;
                until(|| {
                    let ended = result(&mut flag);
                    complete::request_get_status(process, request, ended, ignore()).unwrap();
                    flag == 1
                });
            };
            std::thread::scope(|scope| {
                scope.spawn(look);
                look();
            });
            complete::wait(process, result(&mut request), ignore()).unwrap();
        }
    });
}

/// A request that is given twice is a mistake; the ends that were taken before it is seen are reported all the same.
#[test]
fn what_was_taken_is_reported_beside_a_stale_request() {
    ranks(1, |process, _| {
        for waits in [true, false] {
            let (mut one, mut two) = ([-1], [-1]);
            let mut all = [Request::NULL; 3];
            for (place, (into, tag)) in [(&mut one, 1), (&mut two, 2)].into_iter().enumerate() {
                let request = result(&mut all[place]);
                p2p::irecv(process, room(into).ints(1), 0, tag, WORLD, request).unwrap();
                p2p::send(process, data(&[tag]).ints(1), 0, tag, WORLD).unwrap();
            }
            all[2] = all[0];
            let (mut done, mut places) = (-1, [-1; 3]);
            let call = match waits {
                true => complete::waitsome,
                false => complete::testsome,
            };
            let (number, found) = (result(&mut done), array(&mut places));
            let outcome = call(process, 3, array(&mut all), number, found, ignore_all());
            assert_eq!(code(outcome), Class::Request);
            assert_eq!((done, places[0], places[1]), (2, 0, 1));
            assert_eq!(all[..2], [Request::NULL; 2]);
            assert_eq!((one, two), ([1], [2]));
        }
    });
}
