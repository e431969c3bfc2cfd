//! Infos.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod common;

use std::ffi::CString;
use std::sync::Arc;

use common::{WORLD, code, early_library, extra, library, ranks, result, said, text, text_out};
use tagwire_shim::Process;
use tagwire_shim::abi::{Comm, Info};
use tagwire_shim::call::{communicators, infos};
use tagwire_shim::error::Class;

fn made(process: &Arc<Process>, entries: &[(&str, &str)]) -> Info {
    let mut info = Info::NULL;
    infos::info_create(&library(process), result(&mut info)).unwrap();
    for (key, value) in entries {
        set(process, info, key, value).unwrap();
    }
    info
}

fn set(process: &Arc<Process>, info: Info, key: &str, value: &str) -> tagwire_shim::Result {
    let (key, value) = (CString::new(key).unwrap(), CString::new(value).unwrap());
    infos::info_set(&library(process), info, text(&key), text(&value))
}

fn get(process: &Arc<Process>, info: Info, key: &str) -> Option<String> {
    let key = CString::new(key).unwrap();
    let (mut room, mut flag, mut length) = ([1; 1024], 7, 1024);
    let (into, key) = (text_out(&mut room), text(&key));
    let (length_out, flag_out) = (result(&mut length), result(&mut flag));
    infos::info_get_string(&library(process), info, key, length_out, into, flag_out).unwrap();
    (flag == 1).then(|| {
        assert_eq!(length as usize, said(&room).len() + 1);
        said(&room).to_owned()
    })
}

fn keys(process: &Arc<Process>, info: Info) -> Vec<String> {
    let mut count = 0;
    infos::info_get_nkeys(&library(process), info, result(&mut count)).unwrap();
    let key = |number| {
        let mut room = [1; 256];
        infos::info_get_nthkey(&library(process), info, number, text_out(&mut room)).unwrap();
        said(&room).to_owned()
    };
    (0..count).map(key).collect()
}

#[test]
fn infos_keep_their_keys_in_order() {
    ranks(1, |process, _| {
        let some = &library(process);
        let info = made(process, &[("b", "1"), ("a", "two"), ("c", "")]);
        assert_eq!(keys(process, info), ["b", "a", "c"]);
        set(process, info, "b", "one").unwrap();
        assert_eq!(get(process, info, "b").unwrap(), "one");
        assert_eq!(get(process, info, "c").unwrap(), "");
        assert_eq!(get(process, info, "d"), None);
        let mut copy = Info::NULL;
        infos::info_dup(some, info, result(&mut copy)).unwrap();
        infos::info_delete(some, info, text(c"b")).unwrap();
        assert_eq!(keys(process, info), ["a", "c"]);
        assert_eq!(keys(process, copy), ["b", "a", "c"]);
        let again = infos::info_delete(some, info, text(c"b"));
        assert_eq!(code(again), Class::InfoNokey);
        for number in [-1, 2] {
            let key = infos::info_get_nthkey(some, info, number, text_out(&mut [0; 256]));
            assert_eq!(code(key), Class::Arg);
        }
        let mut freed = info;
        infos::info_free(some, result(&mut freed)).unwrap();
        assert_eq!(freed, Info::NULL);
        assert_eq!(code(set(process, info, "a", "1")), Class::Info);
        assert_eq!(code(set(process, Info::NULL, "a", "1")), Class::Info);
        infos::info_free(some, result(&mut copy)).unwrap();
    });
}

#[test]
fn values_are_cut_to_the_room_that_there_is() {
    ranks(1, |process, _| {
        let (some, info) = (&library(process), made(process, &[("key", "value")]));
        let (mut room, mut flag, mut length) = ([1; 16], 0, 0);
        let key = text(c"key");
        infos::info_get_valuelen(some, info, key, result(&mut length), result(&mut flag)).unwrap();
        assert_eq!((length, flag), (5, 1));
        infos::info_get(some, info, key, 3, text_out(&mut room), result(&mut flag)).unwrap();
        assert_eq!((said(&room), room[4]), ("val", 1));
        // The length that get_string is given has the zero byte in it; at zero nothing is written.
        room = [1; 16];
        for (given, expected) in [(0, None), (3, Some("va")), (6, Some("value"))] {
            length = given;
            let into = text_out(&mut room);
            let out = result(&mut length);
            infos::info_get_string(some, info, key, out, into, result(&mut flag)).unwrap();
            assert_eq!(length, 6);
            match expected {
                Some(expected) => assert_eq!(said(&room), expected),
                None => assert_eq!(room, [1; 16]),
            }
        }
        length = 4;
        let out = result(&mut length);
        let into = text_out(&mut room);
        infos::info_get_string(some, info, text(c"no"), out, into, result(&mut flag)).unwrap();
        assert_eq!((length, flag), (4, 0));
        let negative = infos::info_get(some, info, key, -1, text_out(&mut room), result(&mut flag));
        assert_eq!(code(negative), Class::Arg);
    });
}

#[test]
fn keys_and_values_have_limits() {
    ranks(1, |process, _| {
        let info = made(process, &[]);
        set(process, info, &"k".repeat(255), &"v".repeat(1023)).unwrap();
        assert_eq!(keys(process, info)[0].len(), 255);
        assert_eq!(get(process, info, &"k".repeat(255)).unwrap().len(), 1023);
        let long = set(process, info, &"k".repeat(256), "v");
        assert_eq!(code(long), Class::InfoKey);
        assert_eq!(code(set(process, info, "", "v")), Class::InfoKey);
        let long = set(process, info, "k", &"v".repeat(1024));
        assert_eq!(code(long), Class::InfoValue);
    });
}

#[test]
fn the_environment_is_known_and_is_not_changed() {
    ranks(1, |process, _| {
        let command = std::env::args().next().unwrap();
        assert_eq!(get(process, Info::ENV, "command").unwrap(), command);
        assert_eq!(get(process, Info::ENV, "maxprocs").unwrap(), "1");
        assert_eq!(code(set(process, Info::ENV, "a", "b")), Class::Info);
        let mut env = Info::ENV;
        let freed = infos::info_free(&library(process), result(&mut env));
        assert_eq!(code(freed), Class::Info);
        let mut info = Info::NULL;
        infos::info_create_env(&library(process), 0, extra(&0), result(&mut info)).unwrap();
        assert_eq!(get(process, info, "command").unwrap(), command);
        set(process, info, "a", "b").unwrap();
        // Without a process there are those of the program.
        let early = &early_library();
        infos::info_create(early, result(&mut info)).unwrap();
        infos::info_set(early, info, text(c"a"), text(c"b")).unwrap();
        infos::info_free(early, result(&mut info)).unwrap();
    });
}

#[test]
fn communicators_keep_hints_that_are_known() {
    ranks(2, |process, _| {
        let tags = "mpi_assert_no_any_tag";
        let info = made(process, &[(tags, "true"), ("color", "red")]);
        infos::comm_set_info(process, WORLD, info).unwrap();
        let hints = |comm| {
            let mut info = Info::NULL;
            infos::comm_get_info(process, comm, result(&mut info)).unwrap();
            (get(process, info, tags), keys(process, info).len())
        };
        let known = (Some("true".to_owned()), 1);
        assert_eq!(hints(WORLD), known);
        let (mut copy, mut other) = (Comm::NULL, Comm::NULL);
        communicators::comm_dup(process, WORLD, result(&mut copy)).unwrap();
        let none = Info::NULL;
        communicators::comm_dup_with_info(process, WORLD, none, result(&mut other)).unwrap();
        assert_eq!((hints(copy), hints(other)), (known, (None, 0)));
        let wrong = infos::comm_set_info(process, WORLD, Info(7));
        assert_eq!(code(wrong), Class::Info);
    });
}
