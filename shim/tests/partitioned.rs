//! Partitioned communication, on ranks that are threads of the test.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod common;

use common::{
    DOUBLE, INT, WORLD, array, code, data, ignore, list, nowhere, ranks, result, room, status,
    statuses,
};
use tagwire_shim::abi::{Datatype, Info, PROC_NULL, Request, Status};
use tagwire_shim::call::{collectives, complete, datatypes, p2p, partitioned as part};
use tagwire_shim::error::Class;
use tagwire_shim::raw::Twin;

/// The ends have different numbers of partitions; each way of saying that some are ready.
#[test]
fn partitions_arrive_one_by_one() {
    ranks(2, |process, me| {
        let (mut request, mut flag) = (Request::NULL, 0);
        let requested = result(&mut request);
        let info = Info::NULL;
        if me == 0 {
            let mut values = vec![0_i32; 24];
            part::psend_init(
                process,
                data(&values),
                6,
                4,
                INT,
                1,
                3,
                WORLD,
                info,
                requested,
            )
            .unwrap();
            for round in 0..5 {
                complete::start(process, result(&mut request)).unwrap();
                let base = 100 * round;
                values
                    .iter_mut()
                    .enumerate()
                    .for_each(|(n, value)| *value = base + n as i32);
                part::pready(process, 5, request).unwrap();
                part::pready_range(process, 1, 2, request).unwrap();
                part::pready_list(process, 3, list(&[4, 0, 3]), request).unwrap();
                let again = part::pready(process, 5, request).unwrap_err();
                assert_ne!(again.code(), 0);
                complete::wait(process, result(&mut request), ignore()).unwrap();
                assert_ne!(request, Request::NULL);
            }
        } else {
            let mut values = vec![-1_i32; 24];
            let into = room(&mut values);
            part::precv_init(process, into, 3, 8, INT, 0, 3, WORLD, info, requested).unwrap();
            part::parrived(process, request, 2, result(&mut flag)).unwrap();
            assert_eq!(flag, 1, "inactive");
            for round in 0..5 {
                complete::start(process, result(&mut request)).unwrap();
                for one in [2, 0, 1] {
                    flag = 0;
                    while flag == 0 {
                        part::parrived(process, request, one, result(&mut flag)).unwrap();
                    }
                    assert_eq!(values[8 * one as usize], 100 * round + 8 * one);
                }
                complete::wait(process, result(&mut request), ignore()).unwrap();
                assert_eq!(values[23], 100 * round + 23);
            }
            let wrong = part::pready(process, 0, request).unwrap_err();
            assert_eq!(wrong.code(), Class::Request as i32);
        }
        complete::request_free(process, result(&mut request)).unwrap();
    });
}

/// Every second double, each partition of three.
#[test]
fn partitions_have_gaps() {
    ranks(2, |process, me| {
        let mut gapped = Datatype::NULL;
        datatypes::type_create_resized(process, Twin::Int, DOUBLE, 0, 16, result(&mut gapped))
            .unwrap();
        datatypes::type_commit(process, result(&mut gapped)).unwrap();
        let (mut request, mut flag, info) = (Request::NULL, 0, Info::NULL);
        let requested = result(&mut request);
        let mut values = vec![-1.0; 24];
        if me == 0 {
            values
                .iter_mut()
                .enumerate()
                .for_each(|(n, value)| *value = n as f64);
            part::psend_init(
                process,
                data(&values),
                4,
                3,
                gapped,
                1,
                9,
                WORLD,
                info,
                requested,
            )
            .unwrap();
        } else {
            let into = room(&mut values);
            part::precv_init(process, into, 2, 6, gapped, 0, 9, WORLD, info, requested).unwrap();
        }
        for _round in 0..3 {
            complete::start(process, result(&mut request)).unwrap();
            if me == 0 {
                part::pready_range(process, 0, 3, request).unwrap();
            } else {
                while flag == 0 {
                    part::parrived(process, request, 1, result(&mut flag)).unwrap();
                }
                assert_eq!((values[12], values[13], values[22]), (12.0, -1.0, 22.0));
            }
            let mut ended = Status::EMPTY;
            complete::wait(process, result(&mut request), status(&mut ended)).unwrap();
            if me == 1 {
                assert_eq!(ended, Status::new(0, 9, 12 * 8), "as of a plain receive");
            }
        }
        if me == 1 {
            for (place, value) in values.iter().enumerate() {
                assert_eq!(*value, if place % 2 == 0 { place as f64 } else { -1.0 });
            }
        }
        complete::request_free(process, result(&mut request)).unwrap();
    });
}

/// No partitions, no bytes, no process.
#[test]
fn nothing_is_sent_in_partitions() {
    ranks(2, |process, me| {
        let mut value = [7_i32; 4];
        for (partitions, count) in [(0, 4), (3, 0)] {
            let mut request = Request::NULL;
            let (requested, info) = (result(&mut request), Info::NULL);
            if me == 0 {
                let from = data(&value);
                part::psend_init(
                    process, from, partitions, count, INT, 1, 0, WORLD, info, requested,
                )
                .unwrap();
            } else {
                let into = room(&mut value);
                part::precv_init(
                    process, into, partitions, count, INT, 0, 0, WORLD, info, requested,
                )
                .unwrap();
            }
            for _round in 0..2 {
                complete::start(process, result(&mut request)).unwrap();
                if me == 0 && partitions > 0 {
                    part::pready_range(process, 0, partitions - 1, request).unwrap();
                }
                complete::wait(process, result(&mut request), ignore()).unwrap();
            }
            complete::request_free(process, result(&mut request)).unwrap();
        }
        let (mut request, info) = (Request::NULL, Info::NULL);
        let requested = result(&mut request);
        let from = data(&value);
        part::psend_init(
            process, from, 2, 2, INT, PROC_NULL, 0, WORLD, info, requested,
        )
        .unwrap();
        complete::start(process, result(&mut request)).unwrap();
        part::pready(process, 0, request).unwrap();
        complete::wait(process, result(&mut request), ignore()).unwrap();
        complete::request_free(process, result(&mut request)).unwrap();
        assert_eq!(value, [7; 4]);

        let into = room(&mut value);
        part::precv_init(
            process, into, 2, 2, INT, PROC_NULL, 5, WORLD, info, requested,
        )
        .unwrap();
        let mut ended = Status::EMPTY;
        complete::start(process, result(&mut request)).unwrap();
        complete::wait(process, result(&mut request), status(&mut ended)).unwrap();
        assert_eq!(ended, Status::NO_PROC);
        complete::request_free(process, result(&mut request)).unwrap();
    });
}

/// What is erroneous is an error of its class (MPI-5.0, chapter 4).
#[test]
fn misuse_is_refused() {
    ranks(2, |process, me| {
        let (mut request, mut flag, info) = (Request::NULL, 0, Info::NULL);
        part::parrived(process, request, 0, result(&mut flag)).unwrap();
        assert_eq!(flag, 1, "null");
        let class = |done: tagwire_shim::Result| done.unwrap_err().code();
        let mut values = [1_i32; 8];
        let requested = result(&mut request);
        if me == 0 {
            let from = data(&values);
            part::psend_init(process, from, 4, 2, INT, 1, 0, WORLD, info, requested).unwrap();
            let early = part::pready(process, 0, request);
            assert_eq!(class(early), Class::Request as i32, "not started");
            complete::start(process, requested).unwrap();
            let arrived = part::parrived(process, request, 0, result(&mut flag));
            assert_eq!(class(arrived), Class::Request as i32, "a send");
            for number in [4, -1] {
                let beyond = part::pready(process, number, request);
                assert_eq!(class(beyond), Class::Arg as i32);
            }
            part::pready(process, 1, request).unwrap();
            let twice = part::pready(process, 1, request);
            assert_eq!(class(twice), Class::Arg as i32);
        } else {
            let into = room(&mut values);
            part::precv_init(process, into, 2, 4, INT, 0, 0, WORLD, info, requested).unwrap();
            complete::start(process, requested).unwrap();
            let beyond = part::parrived(process, request, 2, result(&mut flag));
            assert_eq!(class(beyond), Class::Arg as i32);
            let ready = part::pready(process, 0, request);
            assert_eq!(class(ready), Class::Request as i32, "a receive");
        }
        // Under way it is neither freed nor cancelled, and stays a request.
        assert_eq!(
            class(complete::request_free(process, requested)),
            Class::Request as i32
        );
        assert_eq!(
            class(complete::cancel(process, requested)),
            Class::Request as i32
        );
        if me == 0 {
            part::pready_list(process, 3, list(&[0, 2, 3]), request).unwrap();
        }
        complete::wait(process, requested, ignore()).unwrap();
        complete::request_free(process, requested).unwrap();
        let (from, into) = (data(&values), room(&mut values));
        let wild = part::precv_init(process, into, 1, 1, INT, -1, 0, WORLD, info, requested);
        assert_eq!(class(wild), Class::Rank as i32);
        let wild = part::precv_init(process, into, 1, 1, INT, 0, -2, WORLD, info, requested);
        assert_eq!(class(wild), Class::Tag as i32);
        let fewer = part::psend_init(process, from, -2, 1, INT, 0, 0, WORLD, info, requested);
        assert_eq!(class(fewer), Class::Arg as i32);
    });
}

/// Ends whose sizes differ find out, each with the class of its side.
#[test]
fn sizes_that_differ_are_errors() {
    for (sent, received, expected) in [(6, 4, Class::Truncate), (4, 6, Class::Count)] {
        ranks(2, |process, me| {
            let (mut request, info) = (Request::NULL, Info::NULL);
            let mut values = [1_i32; 8];
            let requested = result(&mut request);
            if me == 0 {
                let from = data(&values);
                part::psend_init(
                    process,
                    from,
                    2,
                    sent / 2,
                    INT,
                    1,
                    0,
                    WORLD,
                    info,
                    requested,
                )
                .unwrap();
                complete::start(process, requested).unwrap();
                part::pready_range(process, 0, 1, request).unwrap();
            } else {
                let into = room(&mut values);
                part::precv_init(
                    process, into, 1, received, INT, 0, 0, WORLD, info, requested,
                )
                .unwrap();
                complete::start(process, requested).unwrap();
            }
            let ended = complete::wait(process, requested, ignore()).unwrap_err();
            assert_eq!(ended.code(), expected as i32);
        });
    }
}

/// Neither data of basic types nor of others that begin at their address.
#[test]
fn nothing_is_at_the_null_address() {
    ranks(1, |process, _| {
        let mut three = Datatype::NULL;
        datatypes::type_contiguous(process, Twin::Int, 3, INT, result(&mut three)).unwrap();
        datatypes::type_commit(process, result(&mut three)).unwrap();
        let (info, none) = (Info::NULL, nowhere());
        for datatype in [INT, three] {
            let mut request = Request::NULL;
            let requested = result(&mut request);
            let sends = part::psend_init(
                process,
                none.read(),
                2,
                4,
                datatype,
                0,
                0,
                WORLD,
                info,
                requested,
            );
            assert_eq!(code(sends), Class::Buffer);
            let receives =
                part::precv_init(process, none, 2, 4, datatype, 0, 0, WORLD, info, requested);
            assert_eq!(code(receives), Class::Buffer);
            let sends = p2p::isend(process, none.read().of(4, datatype), 0, 0, WORLD, requested);
            assert_eq!(code(sends), Class::Buffer);
            let all = collectives::bcast(process, none.of(4, datatype), 0, WORLD);
            assert_eq!(code(all), Class::Buffer);
            // None are anywhere.
            collectives::bcast(process, none.of(0, datatype), 0, WORLD).unwrap();
            part::psend_init(
                process,
                none.read(),
                0,
                4,
                datatype,
                0,
                0,
                WORLD,
                info,
                requested,
            )
            .unwrap();
            complete::request_free(process, result(&mut request)).unwrap();
        }
        datatypes::type_free(process, result(&mut three)).unwrap();
    });
}

/// Programs read the error of a status, though the call has reported none.
#[test]
fn statuses_of_several_say_that_they_ended_well() {
    ranks(1, |process, _| {
        let (values, mut got, info) = ([1, 2], [0, 0], Info::NULL);
        let mut both = [Request::NULL; 2];
        let (from, into) = (data(&values), room(&mut got));
        let [send, receive] = &mut both;
        part::psend_init(process, from, 1, 2, INT, 0, 0, WORLD, info, result(send)).unwrap();
        part::precv_init(process, into, 1, 2, INT, 0, 0, WORLD, info, result(receive)).unwrap();
        for how in ["waitall", "testall", "waitsome", "testsome"] {
            complete::startall(process, 2, array(&mut both)).unwrap();
            part::pready(process, 0, both[0]).unwrap();
            let mut all = [Status::EMPTY; 2];
            for one in &mut all {
                one.error = 2112;
            }
            let mut ended = 0;
            while ended < 2 {
                let (mut flag, mut indices) = (0, [0; 2]);
                let (given, set) = (array(&mut both), statuses(&mut all[ended as usize..]));
                let (count, places) = (result(&mut flag), array(&mut indices));
                match how {
                    "waitall" => complete::waitall(process, 2, given, set).unwrap(),
                    "testall" => complete::testall(process, 2, given, count, set).unwrap(),
                    "waitsome" => {
                        complete::waitsome(process, 2, given, count, places, set).unwrap();
                    }
                    _ => complete::testsome(process, 2, given, count, places, set).unwrap(),
                }
                ended += match how {
                    "waitall" => 2,
                    "testall" => 2 * flag,
                    _ => flag,
                };
            }
            assert_eq!(all.map(|one| one.error), [0, 0], "{how}");
        }
        assert_eq!(got, values);
        for request in &mut both {
            complete::request_free(process, result(request)).unwrap();
        }
    });
}
