//! Sessions, process sets, and communicators that are made of groups alone.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]
#![allow(unsafe_code)]

mod common;

use std::cell::RefCell;
use std::sync::Arc;

use common::sites::{FAR, NEAR};
use common::{
    Ints, SUM, WORLD, code, count, data, ignore, library, list, nowhere, out, ranks, result, room,
    said, text, text_out,
};
use tagwire_base::bootstrap::LocalJob;
use tagwire_shim::Process;
use tagwire_shim::abi::{Comm, Errhandler, Group, Info, Request, Session};
use tagwire_shim::call::{
    bsend, collectives, communicators, complete, errhandlers, groups, infos, intercommunicators,
    interface, p2p, sessions,
};
use tagwire_shim::error::{Class, On};
use tagwire_shim::functions::SessionErrorFunction;
use tagwire_shim::raw::Pointer;

fn open(process: &Process) -> Session {
    sessions::open(process, Info::NULL, Errhandler::RETURN).unwrap()
}

fn value(process: &Arc<Process>, info: Info, key: &std::ffi::CStr) -> Option<String> {
    let (mut room, mut length, mut flag) = ([0; 64], 64, 0);
    let (into, length) = (text_out(&mut room), result(&mut length));
    let found = result(&mut flag);
    infos::info_get_string(&library(process), info, text(key), length, into, found).unwrap();
    (flag == 1).then(|| said(&room).to_owned())
}

#[test]
fn sets_have_names_sizes_and_groups() {
    ranks(3, |process, me| {
        let mut session = open(process);
        let (mut number, mut info) = (0, Info::NULL);
        sessions::session_get_num_psets(process, session, Info::NULL, result(&mut number)).unwrap();
        assert_eq!(number, 2);
        for (number, name, size) in [(0, c"mpi://WORLD", 3), (1, c"mpi://SELF", 1)] {
            let (mut room, mut length) = ([0; 32], 0);
            let nth = |length: &mut i32, room: &mut [u8]| {
                let (length, name) = (result(length), text_out(room));
                sessions::session_get_nth_pset(process, session, Info::NULL, number, length, name)
            };
            // Without room the length is told.
            nth(&mut length, &mut room).unwrap();
            assert_eq!((room[0], length as usize), (0, name.to_bytes().len() + 1));
            nth(&mut length, &mut room).unwrap();
            assert_eq!(said(&room), name.to_str().unwrap());
            let new = result(&mut info);
            sessions::session_get_pset_info(process, session, text(name), new).unwrap();
            assert_eq!(value(process, info, c"mpi_size"), Some(size.to_string()));
            infos::info_free(&library(process), result(&mut info)).unwrap();
            let (mut group, mut members, mut rank) = (Group::NULL, 0, -1);
            let new = result(&mut group);
            sessions::group_from_session_pset(process, session, text(name), new).unwrap();
            groups::group_size(process, group, result(&mut members)).unwrap();
            groups::group_rank(process, group, result(&mut rank)).unwrap();
            assert_eq!((members, rank), (size, if size == 3 { me } else { 0 }));
            groups::group_free(process, result(&mut group)).unwrap();
        }
        let mut group = Group::EMPTY;
        let new = result(&mut group);
        let none = sessions::group_from_session_pset(process, session, text(c"mpi://NONE"), new);
        assert_eq!((code(none), group), (Class::Arg, Group::NULL));
        let new = result(&mut info);
        let none = sessions::session_get_pset_info(process, session, text(c"none"), new);
        let none = none.unwrap_err();
        assert_eq!(none.code(), Class::Arg as i32);
        assert_eq!(none.raised_on(), On::Session(session));
        sessions::session_get_info(process, session, result(&mut info)).unwrap();
        let level = value(process, info, c"thread_level").unwrap();
        assert_eq!(level, "MPI_THREAD_MULTIPLE");
        infos::info_free(&library(process), result(&mut info)).unwrap();
        let kept = session;
        sessions::session_finalize(process, result(&mut session)).unwrap();
        assert_eq!(session, Session::NULL);
        let stale = sessions::session_get_info(process, kept, result(&mut info));
        assert_eq!(code(stale), Class::Session);
    });
}

/// The group of the world set but for its last member, in the reverse order.
fn reversed(process: &Process, session: Session, size: i32) -> Group {
    let (mut all, mut group) = (Group::NULL, Group::NULL);
    let (name, new) = (text(c"MPI://world"), result(&mut all));
    sessions::group_from_session_pset(process, session, name, new).unwrap();
    let picked: Vec<i32> = (0..size - 1).rev().collect();
    groups::group_incl(process, all, size - 1, list(&picked), result(&mut group)).unwrap();
    groups::group_free(process, result(&mut all)).unwrap();
    group
}

#[test]
fn communicators_are_made_of_groups() {
    ranks(4, |process, me| {
        let mut session = open(process);
        let group = reversed(process, session, 4);
        let (mut comm, name) = (Comm::WORLD, text(c"org.example/first"));
        let new = result(&mut comm);
        let (info, handler) = (Info::NULL, Errhandler::RETURN);
        communicators::comm_create_from_group(process, group, name, info, handler, new).unwrap();
        assert_eq!(comm == Comm::NULL, me == 3);
        if me < 3 {
            let (mut rank, mut sum) = (-1, [0]);
            communicators::comm_rank(process, comm, result(&mut rank)).unwrap();
            assert_eq!(rank, 2 - me);
            let own = [me];
            let (from, into) = (data(&own), room(&mut sum));
            collectives::allreduce(process, from, into.ints(1), SUM, comm).unwrap();
            assert_eq!(sum, [3]);

            // The session's buffer is for its communicators, and for those that are made of them; others have none.
            let mut memory = vec![0_u8; 4096];
            let (into, mut copy) = (room(&mut memory), Comm::NULL);
            sessions::session_attach_buffer(process, session, into, 4096).unwrap();
            communicators::comm_dup(process, comm, result(&mut copy)).unwrap();
            let other = (rank + 1) % 3;
            let mut got = [-1];
            for of in [comm, copy] {
                bsend::bsend(process, data(&[rank]).ints(1), other, 7, of).unwrap();
                let into = room(&mut got);
                p2p::recv(process, into.ints(1), (rank + 2) % 3, 7, of, ignore()).unwrap();
                assert_eq!(got, [(rank + 2) % 3]);
            }
            let none = bsend::bsend(process, data(&[rank]).ints(1), me, 7, WORLD);
            assert_eq!(code(none), Class::Buffer);
            // Without one of its own, that of the process is.
            let (mut at, mut size) = (Pointer(std::ptr::null_mut()), 0);
            let (at, size) = (result(&mut at), count(&mut size));
            sessions::session_detach_buffer(process, session, at, size).unwrap();
            bsend::buffer_attach(process, into, 4096).unwrap();
            bsend::bsend(process, data(&[rank]).ints(1), rank, 8, comm).unwrap();
            p2p::recv(process, room(&mut got).ints(1), rank, 8, comm, ignore()).unwrap();
            bsend::buffer_detach(process, at, size).unwrap();
            sessions::session_attach_buffer(process, session, into, 4096).unwrap();
            sessions::session_flush_buffer(process, session).unwrap();
            let mut request = Request::NULL;
            sessions::session_iflush_buffer(process, session, result(&mut request)).unwrap();
            complete::wait(process, result(&mut request), ignore()).unwrap();
            let (mut at, mut size) = (Pointer(std::ptr::null_mut()), 0);
            let (at_of, size_of) = (result(&mut at), count(&mut size));
            sessions::session_detach_buffer(process, session, at_of, size_of).unwrap();
            assert_eq!((at.0.cast_const().cast(), size), (memory.as_ptr(), 4096));
            for comm in [&mut comm, &mut copy] {
                communicators::comm_free(process, result(comm)).unwrap();
            }
        }
        sessions::session_finalize(process, result(&mut session)).unwrap();
    });
}

/// The same members make two at once, on threads that come in any order: names tell them apart, and so do tags.
#[test]
fn names_tell_communicators_apart() {
    ranks(2, |process, me| {
        let mut session = open(process);
        let mut group = Group::NULL;
        let new = result(&mut group);
        sessions::group_from_session_pset(process, session, text(c"mpi://WORLD"), new).unwrap();
        let make = |number: i32| {
            let mut comm = Comm::NULL;
            let name = [c"one", c"two"][number as usize % 2];
            let (info, handler, new) = (Info::NULL, Errhandler::RETURN, result(&mut comm));
            match number / 2 {
                0 => {
                    let name = text(name);
                    communicators::comm_create_from_group(process, group, name, info, handler, new)
                }
                _ => communicators::comm_create_group(process, WORLD, group, number, new),
            }
            .unwrap();
            let mut sum = [0];
            let own = [10 * number];
            let (from, into) = (data(&own), room(&mut sum));
            collectives::allreduce(process, from, into.ints(1), SUM, comm).unwrap();
            assert_eq!(sum, [20 * number]);
            communicators::comm_free(process, result(&mut comm)).unwrap();
        };
        for _round in 0..5 {
            std::thread::scope(|scope| {
                for number in 0..4 {
                    // In different orders.
                    let make = &make;
                    scope.spawn(move || make(if me == 0 { number } else { 3 - number }));
                }
            });
        }
        sessions::session_finalize(process, result(&mut session)).unwrap();
    });
}

thread_local! {
    static CALLS: RefCell<Vec<(Session, i32)>> = const { RefCell::new(Vec::new()) };
}

extern "C-unwind" fn note(session: *mut Session, code: *mut i32) {
    let (session, code) = (out::<Session>(session.cast()), out::<i32>(code.cast()));
    let call = (session.get().unwrap(), code.get().unwrap());
    CALLS.with_borrow_mut(|calls| calls.push(call));
}

#[test]
fn errors_of_sessions_have_their_handlers() {
    ranks(1, |process, _| {
        let some = &library(process);
        let mut handler = Errhandler::NULL;
        // SAFETY: in the calling conventions of the platforms that the tests run on, a variadic call with no further arguments is
        // one of a function without them.
        let function = unsafe {
            std::mem::transmute::<extern "C-unwind" fn(*mut Session, *mut i32), SessionErrorFunction>(
                note,
            )
        };
        errhandlers::session_create_errhandler(some, Some(function), result(&mut handler)).unwrap();
        let mut session = sessions::open(process, Info::NULL, handler).unwrap();
        let failed = sessions::session_get_nth_pset(
            process,
            session,
            Info::NULL,
            2,
            result(&mut 0),
            text_out(&mut []),
        );
        let raised = process.raise(&failed.unwrap_err(), "MPI_Session_get_nth_pset");
        assert_eq!(raised, Class::Arg as i32);
        sessions::session_call_errhandler(some, session, Class::Io as i32).unwrap();
        let expected = [(session, Class::Arg as i32), (session, Class::Io as i32)];
        assert_eq!(CALLS.take(), expected);
        let mut same = Errhandler::NULL;
        sessions::session_get_errhandler(process, session, result(&mut same)).unwrap();
        assert_eq!(same, handler);
        // It is for sessions alone.
        let other = communicators::comm_set_errhandler(process, WORLD, handler);
        assert_eq!(code(other), Class::Errhandler);
        sessions::session_set_errhandler(process, session, Errhandler::RETURN).unwrap();
        for mut reference in [handler, same] {
            errhandlers::errhandler_free(some, result(&mut reference)).unwrap();
        }
        sessions::session_finalize(process, result(&mut session)).unwrap();
    });
}

#[test]
fn the_interface_tells_of_itself() {
    ranks(1, |process, _| {
        let some = &library(process);
        let mut info = Info::NULL;
        interface::abi_get_info(some, result(&mut info)).unwrap();
        for key in [c"mpi_aint_size", c"mpi_count_size", c"mpi_offset_size"] {
            assert_eq!(value(process, info, key).as_deref(), Some("8"));
        }
        infos::info_free(some, result(&mut info)).unwrap();
        interface::abi_get_fortran_info(some, result(&mut info)).unwrap();
        for (key, expected) in [
            (c"mpi_integer_size", "4"),
            (c"mpi_double_precision_size", "8"),
            (c"mpi_real8_supported", "true"),
            (c"mpi_real16_supported", "false"),
        ] {
            assert_eq!(value(process, info, key).as_deref(), Some(expected));
        }
        // What the library says of itself can be set; another size cannot.
        interface::abi_set_fortran_info(some, info).unwrap();
        infos::info_set(some, info, text(c"mpi_integer_size"), text(c"8")).unwrap();
        let refused = interface::abi_set_fortran_info(some, info);
        assert_eq!(code(refused), Class::Abi);
        infos::info_free(some, result(&mut info)).unwrap();

        let (mut yes, mut no, mut is_set) = ([0], [7], 9);
        let get = |yes: &mut [i32], no: &mut [i32], is_set: &mut i32| {
            let (yes, no) = (room(yes), room(no));
            interface::abi_get_fortran_booleans(some, 4, yes, no, result(is_set)).unwrap();
        };
        get(&mut yes, &mut no, &mut is_set);
        assert_eq!((yes, no, is_set), ([0], [7], 0));
        let set = |size, mut yes: [i32; 1], mut no: [i32; 1]| {
            let (yes, no) = (room(&mut yes), room(&mut no));
            interface::abi_set_fortran_booleans(some, size, yes, no)
        };
        let asked = |size, is_set: &mut i32| {
            let (yes, no) = (nowhere(), nowhere());
            interface::abi_get_fortran_booleans(some, size, yes, no, result(is_set))
        };
        for size in [1, 2, 8, 16] {
            is_set = 9;
            asked(size, &mut is_set).unwrap();
            assert_eq!(is_set, 0, "of {size} bytes");
        }
        assert_eq!(code(asked(3, &mut is_set)), Class::Arg);
        set(4, [-1], [0]).unwrap();
        asked(8, &mut is_set).unwrap();
        assert_eq!(is_set, 0);
        get(&mut yes, &mut no, &mut is_set);
        assert_eq!((yes, no, is_set), ([-1], [0], 1));
        assert_eq!(code(set(4, [1], [0])), Class::Abi);
        assert_eq!(code(set(8, [1], [0])), Class::Abi);

        interface::get_hw_resource_info(process, result(&mut info)).unwrap();
        let shared = value(process, info, c"mpi_shared_memory");
        assert_eq!(shared.as_deref(), Some("true"));
        infos::info_free(some, result(&mut info)).unwrap();
        let mut size = 0;
        let inter = intercommunicators::comm_remote_size(process, WORLD, result(&mut size));
        let inter = inter.unwrap_err();
        assert_eq!(
            (inter.code(), inter.raised_on()),
            (Class::Comm as i32, On::Comm(WORLD))
        );
    });
}

/// Two hosts, and where the transport between ranks of a host has no memory for both, each rank alone: windows of shared memory can be made
/// by those who are together.
#[test]
fn ranks_are_together_where_they_share_memory() {
    let sites = [NEAR].into_iter().chain(FAR);
    for (site, together) in sites.zip([4, 1, 1, 2, 2]) {
        if !site.is_there("ranks_are_together_where_they_share_memory") {
            continue;
        }
        let job = LocalJob::new(4).unwrap();
        let rank = |number: u32| {
            let process = site.open(&job, 4, number).unwrap();
            let (mut near, mut members) = (Comm::NULL, 0);
            let new = result(&mut near);
            communicators::comm_split_type(&process, WORLD, 221, 0, Info::NULL, new).unwrap();
            communicators::comm_size(&process, near, result(&mut members)).unwrap();
            assert_eq!(members, together, "{site:?}");
            communicators::comm_free(&process, result(&mut near)).unwrap();
            process.finalize().unwrap();
        };
        std::thread::scope(|scope| {
            (0..4).for_each(|number| {
                scope.spawn(move || rank(number));
            });
        });
    }
}

/// By resources that an info names.
#[test]
fn groups_are_split_by_what_an_info_names() {
    ranks(3, |process, me| {
        let some = &library(process);
        let mut info = Info::NULL;
        infos::info_create(some, result(&mut info)).unwrap();
        let split = |kind, info| {
            let (mut comm, mut size) = (WORLD, 0);
            communicators::comm_split_type(process, WORLD, kind, me, info, result(&mut comm))
                .unwrap();
            if comm != Comm::NULL {
                communicators::comm_size(process, comm, result(&mut size)).unwrap();
                communicators::comm_free(process, result(&mut comm)).unwrap();
            }
            size
        };
        assert_eq!([222, 223, 224].map(|kind| split(kind, info)), [0; 3]);
        assert_eq!([222, 223, 224].map(|kind| split(kind, Info::NULL)), [0; 3]);
        let set = |key, value| infos::info_set(some, info, text(key), text(value)).unwrap();
        set(c"mpi_pset_name", c"mpi://SELF");
        assert_eq!([223, 224].map(|kind| split(kind, info)), [0, 1]);
        set(c"mpi_pset_name", c"mpi://WORLD");
        assert_eq!(split(224, info), 3);
        set(c"mpi_hw_resource_type", c"mpi_shared_memory");
        assert_eq!([222, 223, 224].map(|kind| split(kind, info)), [0, 3, 3]);
        set(c"mpi_hw_resource_type", c"something");
        assert_eq!([223, 224].map(|kind| split(kind, info)), [0, 0]);
        infos::info_free(some, result(&mut info)).unwrap();
    });
}
