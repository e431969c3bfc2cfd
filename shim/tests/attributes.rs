//! Attributes: their functions are called as the standard says, and may call MPI.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod common;

use std::ffi::c_void;
use std::sync::{Arc, Mutex};

use common::{INT, WORLD, code, extra, given, number, out, ranks, result};
use tagwire_shim::Process;
use tagwire_shim::abi::{Comm, Datatype};
use tagwire_shim::call::{communicators, datatypes, keyvals};
use tagwire_shim::error::Class;
use tagwire_shim::functions::{CommCopy, CommDelete, TypeCopy, TypeDelete};
use tagwire_shim::raw::Pointer;

/// What the functions of a key know and do.
struct State {
    process: Arc<Process>,
    log: Mutex<Vec<(&'static str, usize, usize)>>,
    /// What they return from now on.
    code: Mutex<i32>,
}

impl State {
    fn new(process: &Arc<Process>) -> Self {
        Self {
            process: Arc::clone(process),
            log: Mutex::default(),
            code: Mutex::new(0),
        }
    }

    fn log(&self) -> Vec<(&'static str, usize, usize)> {
        std::mem::take(&mut self.log.lock().unwrap())
    }

    fn did(&self, what: &'static str, object: usize, value: *mut c_void) -> i32 {
        self.log.lock().unwrap().push((what, object, value.addr()));
        *self.code.lock().unwrap()
    }
}

extern "C-unwind" fn copy_comm(
    comm: Comm,
    key: i32,
    extra: *mut c_void,
    value: *mut c_void,
    copy: *mut c_void,
    flag: *mut i32,
) -> i32 {
    let state = given::<State>(extra);
    // It may call MPI: nothing is locked.
    assert_eq!(get(&state.process, comm, key), Some(value.addr()));
    out(copy).set(number(value.addr() + 1));
    out(flag.cast()).set(i32::from(value.addr() != 13));
    state.did("copy", comm.0, value)
}

extern "C-unwind" fn delete_comm(
    comm: Comm,
    key: i32,
    value: *mut c_void,
    extra: *mut c_void,
) -> i32 {
    let state = given::<State>(extra);
    let mut size = 0;
    communicators::comm_size(&state.process, comm, result(&mut size)).unwrap();
    assert!(size > 0 && key > 0);
    state.did("delete", comm.0, value)
}

extern "C-unwind" fn copy_type(
    datatype: Datatype,
    _: i32,
    extra: *mut c_void,
    value: *mut c_void,
    copy: *mut c_void,
    flag: *mut i32,
) -> i32 {
    out(copy).set(number(value.addr() * 2));
    out(flag.cast()).set(1);
    given::<State>(extra).did("copy", datatype.0, value)
}

extern "C-unwind" fn delete_type(
    datatype: Datatype,
    _: i32,
    value: *mut c_void,
    extra: *mut c_void,
) -> i32 {
    given::<State>(extra).did("delete", datatype.0, value)
}

const COPY: Option<CommCopy> = Some(copy_comm);
const DELETE: Option<CommDelete> = Some(delete_comm);

fn key(process: &Process, copy: Option<CommCopy>, state: &State) -> i32 {
    let mut key = 0;
    let given = extra(state);
    keyvals::comm_create_keyval(process, copy, DELETE, result(&mut key), given).unwrap();
    key
}

fn get(process: &Process, comm: Comm, key: i32) -> Option<usize> {
    let (mut value, mut flag) = (Pointer(std::ptr::null_mut()), 7);
    let into = result(&mut value);
    keyvals::comm_get_attr(process, comm, key, into, result(&mut flag)).unwrap();
    (flag == 1).then_some(value.0.addr())
}

fn set(process: &Process, comm: Comm, key: i32, value: usize) -> tagwire_shim::Result {
    keyvals::comm_set_attr(process, comm, key, number(value))
}

#[test]
fn attributes_are_copied_and_deleted_by_their_functions() {
    ranks(2, |process, _| {
        let state = State::new(process);
        let (copied, dropped, kept) = (
            key(process, COPY, &state),
            key(process, None, &state),
            key(process, Some(common::duplicate_function()), &state),
        );
        assert_eq!(get(process, WORLD, copied), None);
        for (key, value) in [(copied, 10), (dropped, 20), (kept, 30)] {
            set(process, WORLD, key, value).unwrap();
        }
        set(process, WORLD, copied, 12).unwrap();
        assert_eq!(state.log(), [("delete", WORLD.0, 10)], "overwritten");

        let mut made = Comm::NULL;
        communicators::comm_dup(process, WORLD, result(&mut made)).unwrap();
        assert_eq!(state.log(), [("copy", WORLD.0, 12)]);
        assert_eq!(get(process, made, copied), Some(13));
        assert_eq!(get(process, made, dropped), None);
        assert_eq!(get(process, made, kept), Some(30));
        let mut again = Comm::NULL;
        communicators::comm_dup(process, made, result(&mut again)).unwrap();
        assert_eq!(get(process, again, copied), None, "the flag was not set");

        // A key that is freed stays with its attributes.
        let mut freed = copied;
        keyvals::comm_free_keyval(process, result(&mut freed)).unwrap();
        assert_eq!(freed, 0);
        assert_eq!(code(set(process, WORLD, copied, 1)), Class::Keyval);
        state.log();
        let handle = made.0;
        communicators::comm_free(process, result(&mut made)).unwrap();
        let log = state.log();
        assert!(log.contains(&("delete", handle, 13)) && log.contains(&("delete", handle, 30)));
        assert_eq!(log.len(), 2);

        keyvals::comm_delete_attr(process, WORLD, kept).unwrap();
        assert_eq!(state.log(), [("delete", WORLD.0, 30)]);
        let none = keyvals::comm_delete_attr(process, WORLD, kept);
        assert_eq!(code(none), Class::Keyval);
        communicators::comm_free(process, result(&mut again)).unwrap();
    });
}

/// An error of a function ends the call with its code, and what was there stays.
#[test]
fn errors_of_functions_end_the_call() {
    ranks(2, |process, _| {
        let state = State::new(process);
        let (copied, second) = (key(process, COPY, &state), key(process, COPY, &state));
        set(process, WORLD, copied, 5).unwrap();
        let mut made = Comm::NULL;
        communicators::comm_dup(process, WORLD, result(&mut made)).unwrap();
        let failing = Class::Other as i32;
        *state.code.lock().unwrap() = failing;
        let mut none = WORLD;
        let ended = communicators::comm_dup(process, WORLD, result(&mut none)).unwrap_err();
        assert_eq!((ended.code(), none), (failing, Comm::NULL));
        assert_eq!(set(process, made, copied, 9).unwrap_err().code(), failing);
        let deleted = keyvals::comm_delete_attr(process, made, copied);
        assert_eq!(deleted.unwrap_err().code(), failing);
        let mut kept = made;
        let freed = communicators::comm_free(process, result(&mut kept));
        assert_eq!((freed.unwrap_err().code(), kept), (failing, made));
        assert_eq!(get(process, made, copied), Some(6));
        *state.code.lock().unwrap() = 0;
        set(process, made, second, 8).unwrap();
        communicators::comm_free(process, result(&mut made)).unwrap();
        keyvals::comm_delete_attr(process, WORLD, copied).unwrap();
    });
}

#[test]
fn wrong_keys_are_errors() {
    ranks(1, |process, _| {
        let state = State::new(process);
        let mine = key(process, None, &state);
        let mut flag = 0;
        let mut value = Pointer(std::ptr::null_mut());
        for wrong in [0, -1, 77, 508, i32::MAX] {
            let found = keyvals::comm_get_attr(
                process,
                WORLD,
                wrong,
                result(&mut value),
                result(&mut flag),
            );
            assert_eq!(code(found), Class::Keyval, "{wrong}");
        }
        for predefined in 501..508 {
            assert_eq!(code(set(process, WORLD, predefined, 1)), Class::Keyval);
            let mut freed = predefined;
            let freed = keyvals::comm_free_keyval(process, result(&mut freed));
            assert_eq!(code(freed), Class::Keyval);
        }
        let other = keyvals::type_set_attr(process, INT, mine, number(1));
        assert_eq!(code(other), Class::Keyval, "a key of communicators");
        assert_eq!(code(set(process, Comm::NULL, mine, 1)), Class::Comm);
        let tags = get(process, WORLD, 501).unwrap();
        assert_eq!(*given::<i32>(number(tags).0), i32::MAX);
    });
}

#[test]
fn datatypes_have_attributes() {
    ranks(1, |process, _| {
        let state = State::new(process);
        let functions: (Option<TypeCopy>, Option<TypeDelete>) =
            (Some(copy_type), Some(delete_type));
        let (mut key, given) = (0, extra(&state));
        keyvals::type_create_keyval(process, functions.0, functions.1, result(&mut key), given)
            .unwrap();
        let get = |datatype| {
            let (mut value, mut flag) = (Pointer(std::ptr::null_mut()), 7);
            let into = result(&mut value);
            keyvals::type_get_attr(process, datatype, key, into, result(&mut flag)).unwrap();
            (flag == 1).then_some(value.0.addr())
        };
        keyvals::type_set_attr(process, INT, key, number(4)).unwrap();
        let mut made = Datatype::NULL;
        datatypes::type_dup(process, INT, result(&mut made)).unwrap();
        assert_eq!((get(INT), get(made)), (Some(4), Some(8)));
        let mut none = INT;
        *state.code.lock().unwrap() = 16;
        let failed = datatypes::type_dup(process, made, result(&mut none));
        assert_eq!((code(failed), none), (Class::Other, Datatype::NULL));
        let mut kept = made;
        assert!(datatypes::type_free(process, result(&mut kept)).is_err() && kept == made);
        *state.code.lock().unwrap() = 0;
        state.log();
        let handle = made.0;
        datatypes::type_free(process, result(&mut made)).unwrap();
        assert_eq!(state.log(), [("delete", handle, 8)]);
        keyvals::type_delete_attr(process, INT, key).unwrap();
        assert_eq!(state.log(), [("delete", INT.0, 4)]);
        keyvals::type_free_keyval(process, result(&mut key)).unwrap();
        assert_eq!(key, 0);
    });
}

/// At the end the attributes of `MPI_COMM_SELF` go, the last one first, while MPI still works.
#[test]
fn attributes_of_self_are_deleted_at_the_end() {
    let states = Mutex::new(Vec::new());
    ranks(2, |process, _| {
        // It outlives the process of this rank.
        let state: &State = Box::leak(Box::new(State::new(process)));
        for value in 1..=4 {
            let key = key(process, None, state);
            set(process, Comm::SELF, key, value).unwrap();
        }
        states.lock().unwrap().push(state);
    });
    for state in states.into_inner().unwrap() {
        let values: Vec<_> = state.log().iter().map(|entry| entry.2).collect();
        assert_eq!(values, [4, 3, 2, 1]);
    }
}
