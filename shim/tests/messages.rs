//! Messages and requests, on ranks that are threads of the test.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod common;

use common::{
    BYTE, DOUBLE, INT, Ints, WORLD, array, count, data, ignore, ignore_all, ranks, result, room,
    status, statuses,
};
use tagwire_shim::Process;
use tagwire_shim::abi::{
    ANY_SOURCE, ANY_TAG, Comm, Datatype, PROC_NULL, Request, Status, UNDEFINED,
};
use tagwire_shim::call::{communicators, complete, datatypes, environment, p2p};
use tagwire_shim::error::Class;
use tagwire_shim::raw::Twin;

const EMPTY: Status = Status::EMPTY;

fn code(result: tagwire_shim::Result) -> Class {
    Class::of(result.unwrap_err().code()).unwrap()
}

#[test]
fn blocking_messages_arrive_with_their_status() {
    ranks(2, |process, me| {
        for (length, tag) in [(0, 0), (1, 7), (1000, i32::MAX), (1 << 17, 3)] {
            let values: Vec<i32> = (0..length as i32).collect();
            if me == 0 {
                p2p::send(process, data(&values).ints(length), 1, tag, WORLD).unwrap();
                p2p::ssend(process, data(&values).ints(length), 1, tag, WORLD).unwrap();
                continue;
            }
            for any in [false, true] {
                let mut got = vec![-1; length as usize + 1];
                let mut ended = EMPTY.with_error(77);
                let (source, wanted) = match any {
                    true => (ANY_SOURCE, ANY_TAG),
                    false => (0, tag),
                };
                let into = room(&mut got);
                let status = status(&mut ended);
                p2p::recv(
                    process,
                    into.ints(length + 1),
                    source,
                    wanted,
                    WORLD,
                    status,
                )
                .unwrap();
                assert_eq!((ended.source, ended.tag), (0, tag));
                assert_eq!(ended.bytes(), 4 * length as u64);
                assert_eq!(ended.error, 77, "a single call leaves it");
                assert!(got.starts_with(&values) && got[length as usize] == -1);
            }
        }
    });
}

/// Wrong arguments are errors of their classes, and nothing is begun.
#[test]
fn wrong_arguments_have_their_classes() {
    ranks(1, |process, _| {
        let (value, comm) = ([1], Comm(1 << 26 | 5));
        let send = |count, datatype, to, tag, comm| {
            code(p2p::send(
                process,
                data(&value).of(count, datatype),
                to,
                tag,
                comm,
            ))
        };
        assert_eq!(send(-1, INT, 0, 0, WORLD), Class::Count);
        assert_eq!(send(1, Datatype::NULL, 0, 0, WORLD), Class::Type);
        assert_eq!(send(1, Datatype(1 << 27), 0, 0, WORLD), Class::Type);
        assert_eq!(send(0, Datatype(1 << 27), 0, 0, WORLD), Class::Type);
        assert_eq!(send(1, INT, 1, 0, WORLD), Class::Rank);
        assert_eq!(send(1, INT, -7, 0, WORLD), Class::Rank);
        assert_eq!(send(1, INT, 0, -5, WORLD), Class::Tag);
        assert_eq!(send(1, INT, 0, ANY_TAG, WORLD), Class::Tag);
        assert_eq!(send(1, INT, 0, 0, Comm::NULL), Class::Comm);
        assert_eq!(send(1, INT, 0, 0, comm), Class::Comm);
        let mut made = Datatype::NULL;
        datatypes::type_contiguous(process, Twin::Int, 2, INT, result(&mut made)).unwrap();
        assert_eq!(send(1, made, 0, 0, WORLD), Class::Type, "not committed");
        let sent = p2p::send(process, common::in_place().ints(1), 0, 0, WORLD);
        assert_eq!(code(sent), Class::Buffer);
        for mut request in [Request(0), Request(1 << 30), Request(1 << 30 | 3)] {
            let waited = complete::wait(process, result(&mut request), ignore());
            assert_eq!(code(waited), Class::Request, "{request:?}");
        }
        let mut flag = 0;
        let source = 3;
        let probed = p2p::iprobe(process, source, 0, WORLD, result(&mut flag), ignore());
        assert_eq!(code(probed), Class::Rank);
    });
}

/// As MPICH takes them: programs pass the null handle with what they have none of.
#[test]
fn no_elements_need_no_datatype() {
    ranks(2, |process, me| {
        let (mut value, none, mut got) = ([1], Datatype::NULL, Status::EMPTY);
        if me == 0 {
            p2p::send(process, data(&value).of(0, none), 1, 3, WORLD).unwrap();
        } else {
            let into = room(&mut value);
            p2p::recv(process, into.of(0, none), 0, 3, WORLD, status(&mut got)).unwrap();
            assert_eq!(got, Status::new(0, 3, 0));
        }
    });
}

#[test]
fn no_process_sends_and_receives_nothing() {
    ranks(1, |process, _| {
        let (mut value, mut ended, mut flag) = ([7], EMPTY, 0);
        p2p::send(process, data(&value).ints(1), PROC_NULL, 0, WORLD).unwrap();
        let into = room(&mut value);
        p2p::recv(
            process,
            into.ints(1),
            PROC_NULL,
            0,
            WORLD,
            status(&mut ended),
        )
        .unwrap();
        assert_eq!(
            (ended.source, ended.tag, ended.bytes()),
            (PROC_NULL, ANY_TAG, 0)
        );
        assert_eq!(value, [7]);
        let flagged = result(&mut flag);
        p2p::iprobe(process, PROC_NULL, 0, WORLD, flagged, status(&mut ended)).unwrap();
        assert_eq!((flag, ended.source), (1, PROC_NULL));
    });
}

/// A send that is complete at once is a request all the same: waits for any of several count it.
#[test]
fn requests_of_any_kind_are_waited_for_in_any_way() {
    ranks(2, |process, me| {
        let other = 1 - me;
        for round in 0..40 {
            let out: Vec<Vec<i32>> = (0..6).map(|n| vec![me * 100 + n; 1 << (3 * n)]).collect();
            let mut into: Vec<Vec<i32>> = out.iter().map(|one| vec![-1; one.len()]).collect();
            let mut requests = vec![Request::NULL; 13];
            for (n, (out, into)) in out.iter().zip(&mut into).enumerate() {
                let (length, tag) = (out.len() as i64, n as i32);
                let request = result(&mut requests[n]);
                p2p::irecv(process, room(into).ints(length), other, tag, WORLD, request).unwrap();
                let request = result(&mut requests[6 + n]);
                p2p::isend(process, data(out).ints(length), other, tag, WORLD, request).unwrap();
                assert_ne!(requests[6 + n], Request::NULL);
            }
            finish(process, &mut requests, round % 4);
            assert!(requests.iter().all(|request| *request == Request::NULL));
            for (n, into) in into.iter().enumerate() {
                assert!(into.iter().all(|value| *value == other * 100 + n as i32));
            }
        }
    });
}

/// Waits for 12 requests and a null one.
fn finish(process: &Process, requests: &mut [Request], how: i32) {
    let count = requests.len() as i32;
    match how {
        0 => {
            let mut ends = [EMPTY; 13];
            let all = array(requests);
            complete::waitall(process, count, all, statuses(&mut ends)).unwrap();
            assert!(ends.iter().all(|end| end.error == 0));
            assert_eq!((ends[12].source, ends[12].tag), (ANY_SOURCE, ANY_TAG));
        }
        1 => {
            let mut seen = Vec::new();
            for _ in 0..12 {
                let mut index = UNDEFINED;
                let all = array(requests);
                complete::waitany(process, count, all, result(&mut index), ignore()).unwrap();
                assert_eq!(requests[index as usize], Request::NULL);
                seen.push(index);
            }
            seen.sort_unstable();
            assert_eq!(seen, (0..12).collect::<Vec<_>>());
            let mut index = 0;
            let all = array(requests);
            complete::waitany(process, count, all, result(&mut index), ignore()).unwrap();
            assert_eq!(index, UNDEFINED);
        }
        2 => {
            let mut left = 12;
            while left > 0 {
                let (mut done, mut indices) = (0, [0; 13]);
                let all = array(requests);
                let (number, places) = (result(&mut done), array(&mut indices));
                complete::waitsome(process, count, all, number, places, ignore_all()).unwrap();
                assert!(done > 0);
                left -= done;
            }
        }
        _ => {
            let mut flag = 0;
            while flag == 0 {
                let all = array(requests);
                let flag = result(&mut flag);
                complete::testall(process, count, all, flag, ignore_all()).unwrap();
            }
        }
    }
}

/// Also where a call has reported it before, and nobody asks for statuses.
#[test]
fn an_error_that_was_seen_is_reported_by_who_waits() {
    ranks(2, |process, me| {
        if me == 0 {
            p2p::send(process, data(&[1, 2, 3]).ints(3), 1, 0, WORLD).unwrap();
            return;
        }
        let (mut short, mut request, mut flag) = ([0; 2], Request::NULL, 0);
        let (from, to) = (room(&mut short), result(&mut request));
        p2p::irecv(process, from.ints(2), 0, 0, WORLD, to).unwrap();
        while flag == 0 {
            let flag = result(&mut flag);
            complete::request_get_status(process, request, flag, ignore()).unwrap();
        }
        let mut requests = [request];
        let ended = complete::waitall(process, 1, array(&mut requests), ignore_all());
        assert_eq!(code(ended), Class::InStatus);
        assert_eq!(requests, [Request::NULL]);
    });
}

#[test]
fn a_message_that_is_too_long_is_an_error_in_its_status() {
    ranks(2, |process, me| {
        if me == 0 {
            let values = [1, 2, 3];
            p2p::send(process, data(&values).ints(3), 1, 0, WORLD).unwrap();
            p2p::send(process, data(&values).ints(1), 1, 1, WORLD).unwrap();
            return;
        }
        let (mut short, mut fits) = ([0; 2], [0; 2]);
        let mut requests = [Request::NULL; 2];
        let [first, second] = &mut requests;
        p2p::irecv(
            process,
            room(&mut short).ints(2),
            0,
            0,
            WORLD,
            result(first),
        )
        .unwrap();
        p2p::irecv(
            process,
            room(&mut fits).ints(2),
            0,
            1,
            WORLD,
            result(second),
        )
        .unwrap();
        let mut ends = [EMPTY; 2];
        let all = array(&mut requests);
        let ended = complete::waitall(process, 2, all, statuses(&mut ends));
        assert_eq!(code(ended), Class::InStatus);
        assert_eq!(ends[0].error, Class::Truncate as i32);
        assert_eq!((ends[1].error, fits[0]), (0, 1));
        assert_eq!(requests, [Request::NULL; 2]);
    });
}

/// Persistent requests are inactive at first, test true then, and start again and again.
#[test]
fn persistent_requests_start_again() {
    ranks(2, |process, me| {
        let other = 1 - me;
        let (mut out, mut into) = ([0_i32; 4], [0_i32; 4]);
        let mut requests = [Request::NULL; 2];
        let [send, recv] = &mut requests;
        p2p::send_init(process, data(&out).ints(4), other, 5, WORLD, result(send)).unwrap();
        let room_of = room(&mut into);
        p2p::recv_init(process, room_of.ints(4), other, 5, WORLD, result(recv)).unwrap();
        let mut flag = 0;
        complete::test(
            process,
            result(&mut requests[0]),
            result(&mut flag),
            ignore(),
        )
        .unwrap();
        assert_eq!(flag, 1);
        for round in 0..20 {
            out.fill(round * 2 + me);
            complete::startall(process, 2, array(&mut requests)).unwrap();
            let again = complete::start(process, result(&mut requests[0]));
            assert_eq!(code(again), Class::Request, "it is active");
            let all = array(&mut requests);
            complete::waitall(process, 2, all, ignore_all()).unwrap();
            assert!(requests.iter().all(|request| *request != Request::NULL));
            assert_eq!(into, [round * 2 + other; 4]);
        }
        for request in &mut requests {
            complete::request_free(process, result(request)).unwrap();
            assert_eq!(*request, Request::NULL);
        }
    });
}

/// Persistent requests keep what their handles stood for.
#[test]
fn datatypes_and_communicators_are_freed_before_the_start() {
    ranks(2, |process, me| {
        let other = 1 - me;
        let (mut pair, mut twin) = (Datatype::NULL, Comm::NULL);
        datatypes::type_vector(process, Twin::Int, 2, 1, 2, INT, result(&mut pair)).unwrap();
        datatypes::type_commit(process, result(&mut pair)).unwrap();
        communicators::comm_dup(process, WORLD, result(&mut twin)).unwrap();
        let (out, mut into) = ([me, -1, me + 10], [-7; 3]);
        let mut requests = [Request::NULL; 2];
        let [send, recv] = &mut requests;
        p2p::send_init(
            process,
            data(&out).of(1, pair),
            other,
            5,
            twin,
            result(send),
        )
        .unwrap();
        let room_of = room(&mut into);
        p2p::recv_init(process, room_of.of(1, pair), other, 5, twin, result(recv)).unwrap();
        datatypes::type_free(process, result(&mut pair)).unwrap();
        for _round in 0..3 {
            complete::startall(process, 2, array(&mut requests)).unwrap();
            let all = array(&mut requests);
            complete::waitall(process, 2, all, ignore_all()).unwrap();
            assert_eq!(into, [other, -7, other + 10]);
        }
        for request in &mut requests {
            complete::request_free(process, result(request)).unwrap();
        }
        communicators::comm_free(process, result(&mut twin)).unwrap();
    });
}

/// A freed request's operation goes on.
#[test]
fn active_requests_are_freed() {
    ranks(2, |process, me| {
        let other = 1 - me;
        let (out, mut into) = (vec![me; 100_000], vec![-1; 100_000]);
        let (mut send, mut recv) = (Request::NULL, Request::NULL);
        let length = out.len() as i64;
        p2p::isend(
            process,
            data(&out).ints(length),
            other,
            1,
            WORLD,
            result(&mut send),
        )
        .unwrap();
        complete::request_free(process, result(&mut send)).unwrap();
        let room_of = room(&mut into);
        p2p::irecv(
            process,
            room_of.ints(length),
            other,
            1,
            WORLD,
            result(&mut recv),
        )
        .unwrap();
        complete::wait(process, result(&mut recv), ignore()).unwrap();
        assert!(into.iter().all(|value| *value == other));
        // Both have received: what was freed has ended.
        let mut token = [0_u8];
        let (token_in, token_out) = (data(&[1_u8]), room(&mut token));
        p2p::sendrecv(
            process,
            token_in.of(1, BYTE),
            other,
            2,
            token_out.of(1, BYTE),
            other,
            2,
            WORLD,
            ignore(),
        )
        .unwrap();
    });
}

/// Columns of a matrix, received as rows; a message that ends inside of an element.
#[test]
fn data_with_gaps_is_packed_on_its_way() {
    const N: usize = 300;
    ranks(2, |process, me| {
        let mut column = Datatype::NULL;
        let n = N as i64;
        datatypes::type_vector(process, Twin::Int, n, 1, n, DOUBLE, result(&mut column)).unwrap();
        datatypes::type_commit(process, result(&mut column)).unwrap();
        let matrix: Vec<f64> = (0..N * N).map(|n| n as f64).collect();
        if me == 0 {
            let start = data(&matrix[3..]);
            p2p::send(process, start.of(1, column), 1, 0, WORLD).unwrap();
            p2p::send(process, data(&matrix).of(n, DOUBLE), 1, 1, WORLD).unwrap();
            p2p::send(process, data(&matrix).of(7, BYTE), 1, 2, WORLD).unwrap();
            return;
        }
        let mut row = vec![0.0; N];
        p2p::recv(process, room(&mut row).of(n, DOUBLE), 0, 0, WORLD, ignore()).unwrap();
        assert!(
            row.iter()
                .enumerate()
                .all(|(i, value)| *value == (i * N + 3) as f64)
        );
        let mut into = vec![-1.0; N * N];
        p2p::recv(
            process,
            room(&mut into).of(1, column),
            0,
            1,
            WORLD,
            ignore(),
        )
        .unwrap();
        for (place, value) in into.iter().enumerate() {
            let expected = if place % N == 0 {
                (place / N) as f64
            } else {
                -1.0
            };
            assert_eq!(*value, expected, "at {place}");
        }
        let (mut ended, mut number) = (EMPTY, 0);
        let into = room(&mut into);
        p2p::recv(process, into.of(1, column), 0, 2, WORLD, status(&mut ended)).unwrap();
        let number_of = count(&mut number);
        environment::get_count(process, status(&mut ended), DOUBLE, number_of).unwrap();
        assert_eq!(number, UNDEFINED, "7 bytes are no whole doubles");
    });
}

/// Sources of wildcards are numbers of the communicator.
#[test]
fn sources_are_numbered_in_their_communicator() {
    ranks(3, |process, me| {
        let mut turned = Comm::NULL;
        communicators::comm_split(process, WORLD, 0, -me, result(&mut turned)).unwrap();
        let mut rank = -1;
        communicators::comm_rank(process, turned, result(&mut rank)).unwrap();
        assert_eq!(rank, 2 - me);
        let value = [rank];
        if rank != 0 {
            p2p::send(process, data(&value).ints(1), 0, 4, turned).unwrap();
        } else {
            for _ in 0..2 {
                let (mut got, mut ended) = ([-1], EMPTY);
                let (into, any) = (room(&mut got), ANY_SOURCE);
                p2p::recv(process, into.ints(1), any, 4, turned, status(&mut ended)).unwrap();
                assert_eq!(ended.source, got[0]);
            }
        }
        communicators::comm_free(process, result(&mut turned)).unwrap();
        assert_eq!(turned, Comm::NULL);
    });
}
