//! Error handlers and error codes of programs.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod common;

use std::cell::RefCell;
use std::sync::Arc;

use common::{
    Ints, WORLD, code, data, error_function, ignore, library, out, ranks, result, room, said, text,
    text_out,
};
use tagwire_shim::Process;
use tagwire_shim::abi::{Comm, Errhandler, Request};
use tagwire_shim::call::{communicators, complete, environment, errhandlers, keyvals, p2p};
use tagwire_shim::error::Class;
use tagwire_shim::raw::Pointer;

thread_local! {
    static PROCESS: RefCell<Option<Arc<Process>>> = const { RefCell::new(None) };
    static CALLS: RefCell<Vec<(Comm, i32)>> = const { RefCell::new(Vec::new()) };
}

extern "C-unwind" fn note(comm: *mut Comm, code: *mut i32) {
    let (comm, code) = (out::<Comm>(comm.cast()), out::<i32>(code.cast()));
    let (comm, code) = (comm.get().unwrap(), code.get().unwrap());
    // It may call MPI: nothing is locked.
    let process = PROCESS.with_borrow(|process| process.clone().unwrap());
    let mut handler = Errhandler::NULL;
    communicators::comm_get_errhandler(&process, comm, result(&mut handler)).unwrap();
    errhandlers::errhandler_free(&library(&process), result(&mut handler)).unwrap();
    communicators::comm_set_errhandler(&process, Comm::SELF, Errhandler::RETURN).unwrap();
    CALLS.with_borrow_mut(|calls| calls.push((comm, code)));
}

fn calls() -> Vec<(Comm, i32)> {
    CALLS.take()
}

#[test]
fn an_error_handler_is_called_and_the_call_returns_the_code() {
    ranks(1, |process, _| {
        PROCESS.set(Some(Arc::clone(process)));
        let some = &library(process);
        let mut handler = Errhandler::NULL;
        let function = Some(error_function(note));
        errhandlers::comm_create_errhandler(some, function, result(&mut handler)).unwrap();
        let made = handler;
        communicators::comm_set_errhandler(process, WORLD, handler).unwrap();
        let mut same = Errhandler::NULL;
        communicators::comm_get_errhandler(process, WORLD, result(&mut same)).unwrap();
        assert_eq!(same, made);
        for mut reference in [handler, same] {
            errhandlers::errhandler_free(some, result(&mut reference)).unwrap();
            assert_eq!(reference, Errhandler::NULL);
        }
        let stale = communicators::comm_set_errhandler(process, WORLD, made);
        assert_eq!(code(stale), Class::Errhandler);

        // The communicator keeps it, and so does its duplicate.
        let mut copy = Comm::NULL;
        communicators::comm_dup(process, WORLD, result(&mut copy)).unwrap();
        for comm in [WORLD, copy] {
            let error = p2p::send(process, data(&[1]).ints(1), 9, 0, comm).unwrap_err();
            let returned = process.raise(&error, "MPI_Send");
            assert_eq!(returned, Class::Rank as i32);
            assert_eq!(calls(), [(comm, Class::Rank as i32)]);
            errhandlers::comm_call_errhandler(process, comm, 4711).unwrap();
            assert_eq!(calls(), [(comm, 4711)]);
        }
        // It has a handle again where it is asked for.
        let mut shown = Errhandler::NULL;
        communicators::comm_get_errhandler(process, copy, result(&mut shown)).unwrap();
        communicators::comm_set_errhandler(process, Comm::SELF, shown).unwrap();
        errhandlers::errhandler_free(some, result(&mut shown)).unwrap();
        // What is of no communicator is raised on MPI_COMM_SELF.
        let error = communicators::comm_size(process, Comm::NULL, result(&mut 0)).unwrap_err();
        assert_eq!(process.raise(&error, "MPI_Comm_size"), Class::Comm as i32);
        assert_eq!(calls(), [(Comm::SELF, Class::Comm as i32)]);
        communicators::comm_free(process, result(&mut copy)).unwrap();
        PROCESS.set(None);
    });
}

extern "C-unwind" fn note_alone(comm: *mut Comm, code: *mut i32) {
    let (comm, code) = (out::<Comm>(comm.cast()), out::<i32>(code.cast()));
    let call = (comm.get().unwrap(), code.get().unwrap());
    CALLS.with_borrow_mut(|calls| calls.push(call));
}

/// A receive that is too short, of a communicator that is freed meanwhile.
#[test]
fn errors_of_a_request_go_by_the_handler_of_its_communicator_though_that_was_freed() {
    ranks(1, |process, _| {
        let some = &library(process);
        let (mut handler, mut comm) = (Errhandler::NULL, Comm::NULL);
        let function = Some(error_function(note_alone));
        errhandlers::comm_create_errhandler(some, function, result(&mut handler)).unwrap();
        for _round in 0..3 {
            communicators::comm_dup(process, WORLD, result(&mut comm)).unwrap();
            communicators::comm_set_errhandler(process, comm, handler).unwrap();
            let (freed, mut request, mut got) = (comm, Request::NULL, [0]);
            let (into, requested) = (room(&mut got), result(&mut request));
            p2p::irecv(process, into.ints(1), 0, 0, comm, requested).unwrap();
            p2p::send(process, data(&[1, 2]).ints(2), 0, 0, comm).unwrap();
            communicators::comm_free(process, result(&mut comm)).unwrap();
            let failed = complete::wait(process, result(&mut request), ignore());
            let failed = failed.unwrap_err();
            assert_eq!(process.raise(&failed, "MPI_Wait"), Class::Truncate as i32);
            assert_eq!(calls(), [(freed, Class::Truncate as i32)]);
        }
        errhandlers::errhandler_free(some, result(&mut handler)).unwrap();
    });
}

#[test]
fn predefined_error_handlers_stay() {
    ranks(1, |process, _| {
        for predefined in [Errhandler::RETURN, Errhandler::ABORT, Errhandler::ARE_FATAL] {
            communicators::comm_set_errhandler(process, WORLD, predefined).unwrap();
            let mut handler = Errhandler::NULL;
            communicators::comm_get_errhandler(process, WORLD, result(&mut handler)).unwrap();
            assert_eq!(handler, predefined);
            errhandlers::errhandler_free(&library(process), result(&mut handler)).unwrap();
        }
        communicators::comm_set_errhandler(process, WORLD, Errhandler::RETURN).unwrap();
        errhandlers::comm_call_errhandler(process, WORLD, Class::Tag as i32).unwrap();
        let mut null = Errhandler::NULL;
        let freed = errhandlers::errhandler_free(&library(process), result(&mut null));
        assert_eq!(code(freed), Class::Errhandler);
        let mut handler = Errhandler::NULL;
        let made =
            errhandlers::comm_create_errhandler(&library(process), None, result(&mut handler));
        assert_eq!(code(made), Class::Arg);
    });
}

fn string(process: &Arc<Process>, code: i32) -> String {
    let (mut room, mut length) = ([1; 512], 0);
    let into = text_out(&mut room);
    environment::error_string(&library(process), code, into, result(&mut length)).unwrap();
    assert_eq!(said(&room).len(), length as usize);
    said(&room).to_owned()
}

fn class(process: &Arc<Process>, code: i32) -> tagwire_shim::Result<i32> {
    let mut class = 0;
    environment::error_class(&library(process), code, result(&mut class))?;
    Ok(class)
}

fn last_used(process: &Arc<Process>) -> i32 {
    let (mut value, mut flag) = (Pointer(std::ptr::null_mut()), 0);
    let into = result(&mut value);
    keyvals::comm_get_attr(process, WORLD, 506, into, result(&mut flag)).unwrap();
    *common::given(value.0)
}

#[test]
fn programs_add_classes_codes_and_strings() {
    ranks(1, |process, _| {
        let some = &library(process);
        let (mut made, mut first, mut second) = (0, 0, 0);
        assert_eq!(last_used(process), 0x3fff);
        errhandlers::add_error_class(some, result(&mut made)).unwrap();
        assert!(made > 0x3fff);
        assert_eq!(last_used(process), made);
        errhandlers::add_error_code(some, made, result(&mut first)).unwrap();
        errhandlers::add_error_code(some, Class::Other as i32, result(&mut second)).unwrap();
        assert_eq!(last_used(process), second);
        assert_eq!(class(process, made).unwrap(), made);
        assert_eq!(class(process, first).unwrap(), made);
        assert_eq!(class(process, second).unwrap(), Class::Other as i32);
        assert_eq!(class(process, 3).unwrap(), 3);
        assert_eq!(code(class(process, second + 1).map(drop)), Class::Arg);
        assert_eq!(string(process, first), "");
        errhandlers::add_error_string(some, first, text(c"too hot")).unwrap();
        errhandlers::add_error_string(some, made, text(c"weather")).unwrap();
        assert_eq!(string(process, first), "too hot");

        // What still has something is not removed.
        let class_with_string = errhandlers::remove_error_class(some, made);
        assert_eq!(code(class_with_string), Class::Other);
        errhandlers::remove_error_string(some, made).unwrap();
        assert_eq!(string(process, made), "");
        let class_with_codes = errhandlers::remove_error_class(some, made);
        assert_eq!(code(class_with_codes), Class::Other);
        assert_eq!(
            code(errhandlers::remove_error_code(some, first)),
            Class::Other
        );
        errhandlers::remove_error_string(some, first).unwrap();
        errhandlers::remove_error_code(some, first).unwrap();
        errhandlers::remove_error_class(some, made).unwrap();
        for gone in [
            errhandlers::remove_error_class(some, made),
            errhandlers::remove_error_code(some, first),
            errhandlers::remove_error_class(some, second),
            errhandlers::remove_error_class(some, 0),
            errhandlers::remove_error_code(some, 3),
            errhandlers::remove_error_string(some, 3),
            errhandlers::remove_error_string(some, second),
            errhandlers::add_error_string(some, 3, text(c"no")),
            errhandlers::add_error_code(some, first, result(&mut made)),
            errhandlers::add_error_code(some, second, result(&mut made)),
        ] {
            assert_eq!(code(gone), Class::Arg);
        }
    });
}
