//! Buffered sends.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod common;

use common::{INT, Ints, WORLD, code, count_out, data, ignore, ranks, result, room};
use tagwire_shim::Process;
use tagwire_shim::abi::{Comm, Datatype, PROC_NULL, Request};
use tagwire_shim::call::{bsend, collectives, communicators, complete, datatypes, duplicates, p2p};
use tagwire_shim::error::Class;
use tagwire_shim::raw::{Pointer, Twin};

/// So long that they wait for their receives.
const LONG: usize = 1 << 18;

const OVERHEAD: usize = 512;

fn send(process: &Process, values: &[i32], to: i32, tag: i32, comm: Comm) -> tagwire_shim::Result {
    bsend::bsend(
        process,
        data(values).ints(values.len() as i64),
        to,
        tag,
        comm,
    )
}

fn receive(process: &Process, length: usize, from: i32, tag: i32, comm: Comm) -> Vec<i32> {
    let mut got = vec![-1; length];
    let into = room(&mut got);
    p2p::recv(process, into.ints(length as i64), from, tag, comm, ignore()).unwrap();
    got
}

fn attach(process: &Process, buffer: &mut [u8]) {
    bsend::buffer_attach(process, room(buffer), buffer.len() as i64).unwrap();
}

fn detach(process: &Process) -> (usize, i32) {
    let (mut address, mut size) = (Pointer(std::ptr::null_mut()), -1);
    bsend::buffer_detach(process, result(&mut address), count_out(&mut size)).unwrap();
    (address.0.addr(), size)
}

fn barrier(process: &Process) {
    collectives::barrier(process, WORLD).unwrap();
}

/// Both ranks send before they receive, change what they have sent, and their buffer comes back once all is delivered.
#[test]
fn what_is_buffered_is_a_copy() {
    ranks(2, |process, me| {
        let other = 1 - me;
        let mut buffer = vec![0; 3 * (4 * LONG + OVERHEAD)];
        let size = buffer.len() as i32;
        attach(process, &mut buffer);
        let mut values = vec![0; LONG];
        for tag in 0..3 {
            values.fill(tag + 10 * me);
            send(process, &values, other, tag, WORLD).unwrap();
        }
        values.fill(-1);
        assert_eq!(
            code(send(process, &values, other, 9, WORLD)),
            Class::Buffer,
            "it is full"
        );
        barrier(process);
        // In another order than they were sent in, and what is delivered gives room.
        for tag in [1, 0, 2] {
            let got = receive(process, LONG, other, tag, WORLD);
            assert!(got.iter().all(|value| *value == tag + 10 * other));
        }
        bsend::buffer_flush(process).unwrap();
        send(process, &values, other, 4, WORLD).unwrap();
        assert_eq!(receive(process, LONG, other, 4, WORLD), values);
        assert_eq!(detach(process), (buffer.as_ptr().addr(), size));
        assert_eq!(detach(process), (0, 0), "there is none");
        assert_eq!(code(send(process, &values, other, 9, WORLD)), Class::Buffer);
    });
}

#[test]
fn all_kinds_of_buffered_sends_arrive() {
    ranks(2, |process, me| {
        let other = 1 - me;
        let mut buffer = vec![0; 1 << 16];
        attach(process, &mut buffer);
        let mut request = Request::NULL;
        let mut values = [1, 2, 3, 4];
        let sent = result(&mut request);
        bsend::ibsend(process, data(&values).ints(4), other, 0, WORLD, sent).unwrap();
        values = [5, 6, 7, 8];
        assert_ne!(request, Request::NULL);
        complete::wait(process, result(&mut request), ignore()).unwrap();
        assert_eq!(receive(process, 4, other, 0, WORLD), [1, 2, 3, 4]);

        // With gaps.
        let mut every_second = Datatype::NULL;
        datatypes::type_vector(process, Twin::Int, 2, 1, 2, INT, result(&mut every_second))
            .unwrap();
        let uncommitted = bsend::bsend(process, data(&values).of(1, every_second), other, 1, WORLD);
        assert_eq!(code(uncommitted), Class::Type);
        datatypes::type_commit(process, result(&mut every_second)).unwrap();
        bsend::bsend(process, data(&values).of(1, every_second), other, 1, WORLD).unwrap();
        assert_eq!(receive(process, 2, other, 1, WORLD), [5, 7]);

        let sent = result(&mut request);
        bsend::bsend_init(process, data(&values).ints(4), other, 2, WORLD, sent).unwrap();
        for _ in 0..3 {
            complete::start(process, result(&mut request)).unwrap();
            complete::wait(process, result(&mut request), ignore()).unwrap();
            assert_eq!(receive(process, 4, other, 2, WORLD), values);
        }
        complete::request_free(process, result(&mut request)).unwrap();

        send(process, &values, PROC_NULL, 0, WORLD).unwrap();
        assert_eq!(code(send(process, &values, 2, 0, WORLD)), Class::Rank);
        assert_eq!(code(send(process, &values, other, -1, WORLD)), Class::Tag);
        let second = bsend::buffer_attach(process, room(&mut [0; 8]), 8);
        assert_eq!(code(second), Class::Buffer);
        detach(process);
        let negative = bsend::buffer_attach(process, room(&mut [0; 8]), -1);
        assert_eq!(code(negative), Class::Arg);
    });
}

/// A communicator's own buffer is used for its messages alone; an automatic one has no end.
#[test]
fn communicators_have_buffers() {
    ranks(2, |process, me| {
        let other = 1 - me;
        let mut comm = Comm::NULL;
        communicators::comm_dup(process, WORLD, result(&mut comm)).unwrap();
        let values = vec![me; LONG];
        let mut small = [0; 64];
        attach(process, &mut small);
        let automatic = common::automatic();
        bsend::comm_attach_buffer(process, comm, automatic, 0).unwrap();
        for tag in 0..8 {
            send(process, &values, other, tag, comm).unwrap();
        }
        assert_eq!(code(send(process, &values, other, 0, WORLD)), Class::Buffer);
        barrier(process);
        for tag in 0..8 {
            let got = receive(process, LONG, other, tag, comm);
            assert!(got.iter().all(|value| *value == other));
        }
        bsend::comm_flush_buffer(process, comm).unwrap();
        let (mut address, mut size) = (Pointer(std::ptr::null_mut()), -1);
        let (at, bytes) = (result(&mut address), count_out(&mut size));
        bsend::comm_detach_buffer(process, comm, at, bytes).unwrap();
        assert_eq!((address.0.addr(), size), (2, 0));
        assert_eq!(code(send(process, &values, other, 0, comm)), Class::Buffer);
        communicators::comm_free(process, result(&mut comm)).unwrap();
        assert_eq!(detach(process).1, 64);
    });
}

/// A communicator that is still being made has a buffer attached, and keeps it.
#[test]
fn a_duplicate_keeps_the_buffer_that_it_had_before_it_was_made() {
    ranks(2, |process, me| {
        let (mut comm, mut request) = (Comm::NULL, Request::NULL);
        let (new, requested) = (result(&mut comm), result(&mut request));
        duplicates::comm_idup(process, WORLD, new, requested).unwrap();
        let mut memory = vec![0_u8; 4096];
        let room_of = room(&mut memory);
        bsend::comm_attach_buffer(process, comm, room_of, 4096).unwrap();
        complete::wait(process, result(&mut request), ignore()).unwrap();
        send(process, &[me], 1 - me, 0, comm).unwrap();
        assert_eq!(receive(process, 1, 1 - me, 0, comm), [1 - me]);
        let (mut address, mut size) = (Pointer(std::ptr::null_mut()), -1);
        let (at, bytes) = (result(&mut address), count_out(&mut size));
        bsend::comm_detach_buffer(process, comm, at, bytes).unwrap();
        assert_eq!((address.0.addr(), size), (memory.as_ptr().addr(), 4096));
        communicators::comm_free(process, result(&mut comm)).unwrap();
    });
}

/// A rank that leaves with messages in its buffer delivers them before.
#[test]
fn the_end_waits_for_what_is_buffered() {
    ranks(2, |process, me| {
        if me == 0 {
            bsend::buffer_attach(process, common::automatic(), 0).unwrap();
            send(process, &vec![7; LONG], 1, 0, WORLD).unwrap();
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert_eq!(receive(process, LONG, 0, 0, WORLD), vec![7; LONG]);
    });
}

/// Several threads send from one buffer. (None flushes it before all have received: it would wait for what others send.)
#[test]
fn threads_share_a_buffer() {
    const THREADS: i32 = 4;
    const ROUNDS: i32 = 50;
    ranks(2, |process, me| {
        let other = 1 - me;
        let mut buffer = vec![0; 3 * THREADS as usize * (4 * 4096 + OVERHEAD)];
        attach(process, &mut buffer);
        std::thread::scope(|scope| {
            for tag in 0..THREADS {
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let values = vec![round * THREADS + tag; 4096];
                        send(process, &values, other, tag, WORLD).unwrap();
                        assert_eq!(receive(process, 4096, other, tag, WORLD), values);
                    }
                });
            }
        });
        assert_eq!(detach(process).1 as usize, buffer.len());
    });
}
