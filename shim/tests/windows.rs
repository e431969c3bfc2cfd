//! Windows: how they are made, what is asked of them, and how put and get see memory after each kind of synchronization.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod common;

use common::sites::FAR;
use common::windows::{ALL, EXCLUSIVE, Ints, Made, SHARED, window};
use common::{
    BYTE, INT, WORLD, barrier, code, count_out, counts, data, library, number, one_sided, out_at,
    ranks, result, room, said, text, text_out,
};
use tagwire_base::bootstrap::LocalJob;
use tagwire_shim::Process;
use tagwire_shim::abi::{Comm, Datatype, Errhandler, Group, Info, PROC_NULL, Win};
use tagwire_shim::call::collectives::allgather;
use tagwire_shim::call::windows::{creation, queries, synchronization, transfers};
use tagwire_shim::call::{communicators, datatypes, groups, infos, keyvals};
use tagwire_shim::error::Class;
use tagwire_shim::raw::{Place, Pointer, Twin};

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Each rank writes its number into all others, by each kind of epoch, and reads what others have there.
fn exchange(window: &Ints, (me, size): (i32, i32), how: &str) {
    let all = group_of(&window.process, (0..size).collect());
    let each = |act: &dyn Fn(i32)| (0..size).for_each(act);
    let own = [me + 100];
    let put = |to: i32| window.put(&own, to, i64::from(me)).unwrap();
    match how {
        "fence" => {
            window.fence().unwrap();
            each(&put);
            window.fence().unwrap();
        }
        "start" => {
            window.post(all).unwrap();
            window.start(all).unwrap();
            each(&put);
            window.complete().unwrap();
            window.wait().unwrap();
        }
        "lock" => {
            each(&|to| {
                window.lock(EXCLUSIVE, to).unwrap();
                put(to);
                window.unlock(to).unwrap();
            });
        }
        "lock shared" => {
            each(&|to| {
                window.lock(SHARED, to).unwrap();
                put(to);
                window.flush(to).unwrap();
                window.unlock(to).unwrap();
            });
        }
        _ => {
            window.lock_all().unwrap();
            each(&put);
            window.unlock_all().unwrap();
        }
    }
    barrier(&window.process);
    let wanted: Vec<i32> = (0..size).map(|rank| rank + 100).collect();
    assert_eq!(window.own(size as usize), wanted, "{how}");
    window.lock_all().unwrap();
    for from in 0..size {
        let mut got = vec![0; size as usize];
        window.get(&mut got, from, 0).unwrap();
        window.flush(from).unwrap();
        assert_eq!(got, wanted, "{how}");
    }
    window.unlock_all().unwrap();
    barrier(&window.process);
}

fn group_of(process: &Process, ranks: Vec<i32>) -> Group {
    let (mut world, mut made) = (Group::NULL, Group::NULL);
    groups::comm_group(process, WORLD, result(&mut world)).unwrap();
    let list = common::list(&ranks);
    groups::group_incl(process, world, ranks.len() as i32, list, result(&mut made)).unwrap();
    made
}

#[test]
fn what_is_put_is_there_after_each_kind_of_epoch() {
    for size in [1, 2, 4] {
        ranks(size, |process, me| {
            for made in ALL {
                let window = window(process, made, size as usize);
                for how in ["fence", "start", "lock", "lock shared", "lock all"] {
                    exchange(&window, (me, size as i32), how);
                    window.fence().unwrap();
                    let zero = vec![0_i32; size as usize];
                    window.put(&zero, me, 0).unwrap();
                    window.fence().unwrap();
                    barrier(process);
                }
                window.free().unwrap();
            }
        });
    }
}

/// Elements with gaps, at the origin, at the target and at both.
#[test]
fn elements_with_gaps_go_where_their_datatypes_say() {
    ranks(2, |process, me| {
        let mut apart = Datatype::NULL;
        datatypes::type_vector(process, Twin::Int, 3, 1, 2, INT, result(&mut apart)).unwrap();
        datatypes::type_commit(process, result(&mut apart)).unwrap();
        for made in ALL {
            let window = window(process, made, 8);
            let win = window.win;
            window.fence().unwrap();
            let values = [1_i32, 2, 3, 4, 5, 6];
            if me == 0 {
                // One block to every second value.
                let (three, place) = (data(&values).of(3, INT), window.elements(1, 1, 1, apart));
                one_sided::put(process, three, place, win).unwrap();
            }
            window.fence().unwrap();
            if me == 1 {
                assert_eq!(window.own(8), [0, 1, 0, 2, 0, 3, 0, 0], "{made:?}");
            }
            window.fence().unwrap();
            if me == 0 {
                // Every second value to one block, and every second to every second.
                let (three, place) = (data(&values).of(1, apart), window.place(1, 0, 3));
                one_sided::put(process, three, place, win).unwrap();
                let (three, place) = (data(&values).of(1, apart), window.elements(1, 3, 1, apart));
                one_sided::put(process, three, place, win).unwrap();
            }
            window.fence().unwrap();
            if me == 1 {
                assert_eq!(window.own(8), [1, 3, 5, 1, 0, 3, 0, 5], "{made:?}");
            }
            if me == 0 {
                let mut got = [9_i32; 6];
                let place = window.elements(1, 3, 1, apart);
                one_sided::get(process, room(&mut got).of(1, apart), place, win).unwrap();
                window.fence().unwrap();
                assert_eq!(got, [1, 9, 3, 9, 5, 9], "{made:?}");
            } else {
                window.fence().unwrap();
            }
            window.free().unwrap();
        }
    });
}

/// Runs `body` on two ranks of one host, and of two where there is a network.
fn near_and_far(test: &str, body: impl Fn(&Arc<Process>, i32, &[Made]) + Sync) {
    ranks(2, |process, me| body(process, me, &ALL));
    let site = FAR[0];
    if site.is_there(test) {
        let job = LocalJob::new(2).unwrap();
        on_threads(2, |number| {
            let process = site.open(&job, 2, number).unwrap();
            body(&process, number as i32, site.kinds());
            process.finalize().unwrap();
        });
    }
}

fn on_threads(count: u32, body: impl Fn(u32) + Sync) {
    std::thread::scope(|scope| {
        for number in 0..count {
            let body = &body;
            scope.spawn(move || body(number));
        }
    });
}

/// Fewer data than the receiver has room for are as a shorter message; more do not fit.
#[test]
fn fewer_data_than_there_is_room_for_are_moved() {
    near_and_far("fewer_data", |process, me, kinds| {
        for made in kinds {
            let window = window(process, *made, 16);
            let (win, values) = (window.win, [1_i32, 2, 3, 4, 5]);
            // Pairs of `int`s, whose second is before the first.
            let (mut pair, lengths, places) = (Datatype::NULL, [1, 1], [1, 0]);
            let (lengths, places) = (counts(&lengths), counts(&places));
            let into = result(&mut pair);
            datatypes::type_indexed(process, Twin::Int, 2, lengths, places, INT, into).unwrap();
            datatypes::type_commit(process, result(&mut pair)).unwrap();
            let put = |count: i64, place: Place| {
                one_sided::put(process, data(&values).of(count, INT), place, win)
            };
            window.fence().unwrap();
            if me == 0 {
                put(1, window.place(1, 0, 2)).unwrap();
                // A whole element and the first half of the next.
                put(3, window.elements(1, 2, 4, pair)).unwrap();
                put(1, window.elements(1, 6, 1, pair)).unwrap();
                // One byte of a value; nothing at all.
                let place = window.place(1, 8, 1);
                one_sided::put(process, data(&[7_u8]).of(1, BYTE), place, win).unwrap();
                put(0, window.place(1, 9, 1)).unwrap();
                // The room past the data may be outside of the window.
                put(1, window.place(1, 15, 2)).unwrap();
                assert_eq!(code(put(3, window.place(1, 10, 2))), Class::Truncate);
            }
            window.fence().unwrap();
            if me == 1 {
                let first = i32::from_ne_bytes([7, 0, 0, 0]);
                let wanted = [1, 0, 2, 1, 0, 3, 0, 1, first, 0, 0, 0, 0, 0, 0, 1];
                assert_eq!(window.own(16), wanted, "{made:?}");
            }
            window.fence().unwrap();
            let (mut block, mut pairs) = ([9_i32; 4], [9_i32; 6]);
            if me == 0 {
                let into = room(&mut block).of(4, INT);
                one_sided::get(process, into, window.place(1, 2, 2), win).unwrap();
                let into = room(&mut pairs).of(3, pair);
                one_sided::get(process, into, window.place(1, 2, 1), win).unwrap();
                let into = room(&mut pairs[2..]).of(2, pair);
                one_sided::get(process, into, window.place(1, 1, 3), win).unwrap();
                let mut short = [9_i32; 1];
                let into = room(&mut short).of(1, INT);
                let got = one_sided::get(process, into, window.place(1, 0, 2), win);
                assert_eq!(code(got), Class::Truncate);
            }
            window.fence().unwrap();
            if me == 0 {
                assert_eq!(block, [2, 1, 9, 9], "{made:?}");
                assert_eq!(pairs, [9, 2, 2, 0, 9, 1], "{made:?}");
            }
            window.fence().unwrap();
            window.free().unwrap();
        }
    });
}

#[test]
fn ranks_of_two_hosts_share_no_window() {
    let site = FAR[0];
    if !site.is_there("ranks_of_two_hosts_share_no_window") {
        return;
    }
    let job = LocalJob::new(2).unwrap();
    on_threads(2, |number| {
        let process = site.open(&job, 2, number).unwrap();
        let (mut win, mut base) = (Win::NULL, Pointer(std::ptr::null_mut()));
        let (start, into) = (result(&mut base), result(&mut win));
        let made = creation::win_allocate_shared(&process, 8, 4, Info::NULL, WORLD, start, into);
        assert_eq!(code(made), Class::RmaShared);
        assert_eq!(win, Win::NULL);
        process.finalize().unwrap();
    });
}

/// The info tells what is obeyed: the alignment, and gaps that were asked for in time.
#[test]
fn the_info_of_a_window_has_what_is_obeyed() {
    ranks(1, |process, _| {
        let (mut given, some) = (Info::NULL, &library(process));
        infos::info_create(some, result(&mut given)).unwrap();
        let alignment = c"mpi_minimum_memory_alignment";
        infos::info_set(some, given, text(alignment), text(c"512")).unwrap();
        let (mut win, mut base) = (Win::NULL, Pointer(std::ptr::null_mut()));
        let (start, into) = (result(&mut base), result(&mut win));
        creation::win_allocate(process, 8, 4, given, WORLD, start, into).unwrap();
        let (gaps, value) = (c"alloc_shared_noncontig", text(c"true"));
        infos::info_set(some, given, text(gaps), value).unwrap();
        queries::win_set_info(process, win, given).unwrap();
        let mut info = Info::NULL;
        queries::win_get_info(process, win, result(&mut info)).unwrap();
        let said = value_of(process, info, alignment);
        assert_eq!(said.as_deref(), Some("512"));
        assert_eq!(value_of(process, info, gaps).as_deref(), Some("false"));
        creation::win_free(process, result(&mut win)).unwrap();
    });
}

#[test]
fn parts_of_a_shared_window_follow_each_other_and_are_seen_by_all() {
    ranks(4, |process, me| {
        for gaps in [false, true] {
            let (mut info, some) = (Info::NULL, &library(process));
            infos::info_create(some, result(&mut info)).unwrap();
            if gaps {
                let (key, value) = (text(c"alloc_shared_noncontig"), text(c"true"));
                infos::info_set(some, info, key, value).unwrap();
            }
            let (mut win, mut base) = (Win::NULL, Pointer(std::ptr::null_mut()));
            // The first has none.
            let bytes = 12 * i64::from(me);
            let (start, into) = (result(&mut base), result(&mut win));
            creation::win_allocate_shared(process, bytes, 4, info, WORLD, start, into).unwrap();
            synchronization::win_fence(process, 0, win).unwrap();
            let own: Vec<i32> = (0..3 * me).map(|value| value + 10 * me).collect();
            out_at(base).copy(data(&own), bytes as usize);
            synchronization::win_fence(process, 0, win).unwrap();
            let mut before = None;
            for rank in 0..4 {
                let (size, unit, start) = shared_query(process, win, rank).unwrap();
                assert_eq!((size, unit), (12 * i64::from(rank), 4));
                let got = out_at(start).read().to_vec(size as usize);
                let wanted = (0..3 * rank).map(|value| value + 10 * rank);
                let wanted: Vec<u8> = wanted.flat_map(i32::to_ne_bytes).collect();
                assert_eq!(got, wanted);
                let start = start.0.addr();
                if let Some(end) = before
                    && !gaps
                {
                    assert_eq!(start, end, "contiguous");
                }
                assert!(!gaps || size == 0 || start.is_multiple_of(4096));
                before = (size > 0).then_some(start + size as usize);
            }
            let (size, _, start) = shared_query(process, win, PROC_NULL).unwrap();
            assert_eq!(size, 12, "the first with memory");
            assert_eq!(start, shared_query(process, win, 1).unwrap().2);
            synchronization::win_fence(process, 0, win).unwrap();
            creation::win_free(process, result(&mut win)).unwrap();
            assert_eq!(win, Win::NULL);
        }
    });
}

fn shared_query(
    process: &Process,
    win: Win,
    rank: i32,
) -> tagwire_shim::Result<(i64, i32, Pointer)> {
    let (mut size, mut unit, mut start) = (7, 7, Pointer(std::ptr::null_mut()));
    let units = count_out(&mut unit);
    let (bytes, at) = (result(&mut size), result(&mut start));
    creation::win_shared_query(process, win, rank, bytes, units, at)?;
    Ok((size, unit, start))
}

#[test]
fn windows_of_other_kinds_are_asked_for_their_memory_too() {
    ranks(2, |process, _| {
        let allocated = window(process, Made::Allocated, 4);
        let (size, unit, start) = shared_query(process, allocated.win, 1).unwrap();
        assert_eq!((size, unit), (16, 4));
        assert!(!start.0.is_null());
        let created = window(process, Made::Created, 4);
        let (size, _, start) = shared_query(process, created.win, 1).unwrap();
        assert_eq!((size, start.0.is_null()), (0, true));
        let dynamic = window(process, Made::Dynamic, 4);
        let refused = shared_query(process, dynamic.win, 1);
        assert_eq!(code(refused.map(drop)), Class::RmaFlavor);
        for window in [allocated, created, dynamic] {
            window.free().unwrap();
        }
    });
}

fn attribute(process: &Process, win: Win, key: i32) -> Option<Pointer> {
    let (mut value, mut flag) = (Pointer(std::ptr::null_mut()), 0);
    let into = result(&mut value);
    keyvals::win_get_attr(process, win, key, into, result(&mut flag)).unwrap();
    (flag == 1).then_some(value)
}

#[test]
fn a_window_has_attributes_a_name_a_group_and_info() {
    ranks(2, |process, _| {
        let window = window(process, Made::Allocated, 4);
        let win = window.win;
        let int = |key| {
            let bytes = out_at(attribute(process, win, key).unwrap());
            i32::from_ne_bytes(bytes.read().to_vec(4).try_into().unwrap())
        };
        assert_eq!(attribute(process, win, 601), Some(window.base));
        assert_eq!(int(602), 4, "the unit");
        let size = out_at(attribute(process, win, 603).unwrap());
        assert_eq!(size.read().to_vec(8), 16_i64.to_ne_bytes());
        assert_eq!((int(604), int(605)), (312, 321));

        let mut key = 0;
        let null = Pointer(std::ptr::null_mut());
        keyvals::win_create_keyval(process, None, None, result(&mut key), null).unwrap();
        assert_eq!(attribute(process, win, key), None);
        keyvals::win_set_attr(process, win, key, number(5)).unwrap();
        assert_eq!(attribute(process, win, key), Some(number(5)));
        keyvals::win_delete_attr(process, win, key).unwrap();
        assert_eq!(attribute(process, win, key), None);
        let predefined = keyvals::win_set_attr(process, win, 602, number(5));
        assert_eq!(code(predefined), Class::Keyval);
        keyvals::win_free_keyval(process, result(&mut key)).unwrap();

        queries::win_set_name(process, win, text(c"halo")).unwrap();
        let (mut name, mut length) = ([1_u8; 128], 0);
        let into = text_out(&mut name);
        queries::win_get_name(process, win, into, result(&mut length)).unwrap();
        assert_eq!((said(&name), length), ("halo", 4));

        let mut group = Group::NULL;
        queries::win_get_group(process, win, result(&mut group)).unwrap();
        let mut members = 0;
        groups::group_size(process, group, result(&mut members)).unwrap();
        assert_eq!(members, 2);

        let (mut given, some) = (Info::NULL, &library(process));
        infos::info_create(some, result(&mut given)).unwrap();
        let (key, value) = (text(c"no_locks"), text(c"true"));
        infos::info_set(some, given, key, value).unwrap();
        infos::info_set(some, given, text(c"of no meaning"), value).unwrap();
        queries::win_set_info(process, win, given).unwrap();
        let mut info = Info::NULL;
        queries::win_get_info(process, win, result(&mut info)).unwrap();
        assert_eq!(
            value_of(process, info, c"no_locks").as_deref(),
            Some("true")
        );
        let ordering = value_of(process, info, c"accumulate_ordering");
        assert_eq!(ordering.as_deref(), Some("rar,raw,war,waw"));
        assert_eq!(value_of(process, info, c"of no meaning"), None);
        window.free().unwrap();
    });
}

fn value_of(process: &Arc<Process>, info: Info, key: &std::ffi::CStr) -> Option<String> {
    let (mut value, mut length, mut flag) = ([0_u8; 64], 64, 0);
    let into = text_out(&mut value);
    let (bytes, found) = (result(&mut length), result(&mut flag));
    infos::info_get_string(&library(process), info, text(key), bytes, into, found).unwrap();
    (flag == 1).then(|| said(&value).to_owned())
}

/// What is wrong with the arguments of one rank ends the call on all.
#[test]
fn arguments_of_one_rank_that_are_wrong_end_the_call_on_all() {
    ranks(2, |process, me| {
        for (size, unit, class) in [
            (-1, 1, Class::Size),
            (8, 0, Class::Disp),
            (8, -4, Class::Disp),
        ] {
            let (size, unit) = match me {
                1 => (size, unit),
                _ => (8, 1),
            };
            let (mut win, mut base) = (WORLD_WIN, Pointer(std::ptr::null_mut()));
            let (start, into) = (result(&mut base), result(&mut win));
            let made = creation::win_allocate(process, size, unit, Info::NULL, WORLD, start, into);
            assert_eq!(code(made), class);
            assert_eq!(win, Win::NULL);
        }
        let mut win = Win::NULL;
        let nowhere = common::nowhere();
        let made =
            creation::win_create(process, nowhere, 8, 1, Info::NULL, WORLD, result(&mut win));
        assert_eq!(code(made), Class::Base);
        // Without bytes there may be none.
        creation::win_create(process, nowhere, 0, 1, Info::NULL, WORLD, result(&mut win)).unwrap();
        creation::win_free(process, result(&mut win)).unwrap();
        let none = creation::win_free(process, result(&mut win));
        assert_eq!(code(none), Class::Win);
        // More than there is.
        let mut base = Pointer(std::ptr::null_mut());
        let (start, into) = (result(&mut base), result(&mut win));
        let made = creation::win_allocate(process, i64::MAX / 2, 1, Info::NULL, WORLD, start, into);
        assert!(matches!(code(made), Class::NoMem | Class::Size));
        // As many addresses there may be: the memory is missed at once, and not when it is written.
        let (start, into) = (result(&mut base), result(&mut win));
        let info = Info::NULL;
        let made = creation::win_allocate(process, 1 << 44, 1, info, WORLD, start, into);
        assert_eq!(code(made), Class::NoMem);
    });
}

const WORLD_WIN: Win = Win(7);

#[test]
fn accesses_outside_of_a_window_are_refused() {
    ranks(2, |process, me| {
        for made in ALL {
            let window = window(process, made, 4);
            window.fence().unwrap();
            let to = 1 - me;
            assert_eq!(
                code(window.put(&[1, 2], to, 3)),
                Class::RmaRange,
                "{made:?}"
            );
            assert_eq!(code(window.put(&[1], to, i64::MAX / 8)), Class::RmaRange);
            assert_eq!(code(window.get(&mut [0; 5], to, 0)), Class::RmaRange);
            assert_eq!(code(window.add(&[1], to, 4)), Class::RmaRange);
            let negative = code(window.put(&[1], to, -1));
            match made {
                // An address before the first.
                Made::Dynamic => assert_eq!(negative, Class::RmaRange),
                _ => assert_eq!(negative, Class::Disp),
            }
            assert_eq!(code(window.put(&[1], 2, 0)), Class::Rank);
            assert_eq!(code(window.put(&[1], -5, 0)), Class::Rank);
            window.put(&[1], PROC_NULL, 99).unwrap();
            window.put(&[4], to, 3).unwrap();
            window.fence().unwrap();
            assert_eq!(window.own(4), [0, 0, 0, 4]);
            window.free().unwrap();
        }
    });
}

#[test]
fn misuse_of_synchronization_is_found() {
    ranks(2, |process, me| {
        let window = window(process, Made::Allocated, 4);
        let win = window.win;
        let sync = |done: tagwire_shim::Result| assert_eq!(code(done), Class::RmaSync);
        let both = group_of(process, vec![0, 1]);
        sync(window.put(&[1], 0, 0));
        sync(window.get(&mut [1], 0, 0));
        sync(window.add(&[1], 0, 0));
        sync(window.fetch_add(&mut 0, 0, 0));
        sync(window.unlock(0));
        sync(window.unlock_all());
        sync(window.flush(0));
        sync(synchronization::win_flush_all(process, win));
        sync(one_sided::win_flush_local(process, 1, win));
        sync(synchronization::win_flush_local_all(process, win));
        sync(window.complete());
        sync(window.wait());
        sync(synchronization::win_test(process, win, result(&mut 0)));
        window.lock(SHARED, 0).unwrap();
        sync(window.lock(SHARED, 0));
        sync(window.lock_all());
        sync(window.fence());
        sync(window.start(both));
        sync(window.put(&[1], 1, 0));
        sync(creation::win_free(process, result(&mut { win })));
        window.unlock(0).unwrap();
        window.lock_all().unwrap();
        sync(window.lock(SHARED, 1));
        sync(window.unlock(1));
        window.unlock_all().unwrap();
        window.post(both).unwrap();
        sync(window.post(both));
        sync(window.fence());
        window.start(both).unwrap();
        sync(window.lock(SHARED, 1));
        window.complete().unwrap();
        window.wait().unwrap();
        window.fence().unwrap();
        window.put(&[1], me, 0).unwrap();
        sync(window.lock(SHARED, me));
        sync(window.post(both));
        window.fence().unwrap();

        let wrong = |done: tagwire_shim::Result, class| assert_eq!(code(done), class);
        wrong(window.lock(7, 0), Class::Locktype);
        wrong(window.lock(SHARED, 9), Class::Rank);
        let lock = |assertion| synchronization::win_lock(process, SHARED, 0, assertion, win);
        wrong(lock(4096), Class::Assert);
        wrong(synchronization::win_fence(process, 1, win), Class::Assert);
        wrong(
            synchronization::win_fence(process, 0, Win(0x7777)),
            Class::Win,
        );
        // Requests are for epochs of locks.
        let mut request = tagwire_shim::abi::Request::NULL;
        let origin = data(&[1_i32]).of(1, INT);
        let place = window.place(0, 0, 1);
        wrong(
            transfers::rput(process, origin, place, win, result(&mut request)),
            Class::RmaSync,
        );
        let mut own = Comm::NULL;
        communicators::comm_dup(process, Comm::SELF, result(&mut own)).unwrap();
        let mut alone = Win::NULL;
        let info = Info::NULL;
        creation::win_create_dynamic(process, info, own, result(&mut alone)).unwrap();
        queries::win_set_errhandler(process, alone, Errhandler::RETURN).unwrap();
        // The other rank is none of its group.
        let start = synchronization::win_start(process, both, 0, alone);
        assert_eq!(code(start), Class::Group);
        creation::win_free(process, result(&mut alone)).unwrap();
        window.free().unwrap();
    });
}

#[test]
fn memory_is_attached_and_detached() {
    ranks(2, |process, me| {
        let window = window(process, Made::Dynamic, 4);
        let win = window.win;
        let mut other = [0_i32; 2];
        let again = creation::win_attach(process, win, out_at(window.base), 4);
        assert_eq!(code(again), Class::RmaAttach);
        creation::win_attach(process, win, room(&mut other), 8).unwrap();
        creation::win_detach(process, win, data(&other)).unwrap();
        assert_eq!(
            code(creation::win_detach(process, win, data(&other))),
            Class::Base
        );
        window.fence().unwrap();
        window.put(&[me + 1], 1 - me, 2).unwrap();
        window.fence().unwrap();
        assert_eq!(window.own(4), [0, 0, 2 - me, 0]);
        // What was detached is not reached any more.
        barrier(process);
        if me == 1 {
            creation::win_detach(process, win, out_at(window.base).read()).unwrap();
        }
        barrier(process);
        if me == 0 {
            assert_eq!(code(window.put(&[1], 1, 0)), Class::RmaRange);
        }
        barrier(process);
        if me == 1 {
            creation::win_attach(process, win, out_at(window.base), 16).unwrap();
        }
        let created = common::windows::window(process, Made::Created, 1);
        let refused = creation::win_attach(process, created.win, room(&mut other), 8);
        assert_eq!(code(refused), Class::RmaFlavor);
        created.free().unwrap();
        window.free().unwrap();
    });
}

/// Returns a window of two ranks to which memory is attached in pieces of four values, and where it lies on either.
fn attached(process: &Process, memory: &mut [i32]) -> (Win, [i64; 2]) {
    let mut win = Win::NULL;
    creation::win_create_dynamic(process, Info::NULL, WORLD, result(&mut win)).unwrap();
    for piece in memory.chunks_exact_mut(4) {
        creation::win_attach(process, win, room(piece), 16).unwrap();
    }
    let (own, mut all) = ([memory.as_mut_ptr().expose_provenance() as i64], [0; 2]);
    let (sent, long) = (data(&own).of(1, Datatype(0x201)), Datatype(0x201));
    allgather(process, sent, room(&mut all).of(1, long), WORLD).unwrap();
    (win, all)
}

/// Puts that follow each other may go to pieces that were attached one by one.
#[test]
fn puts_on_either_side_of_a_border_are_there() {
    ranks(2, |process, me| {
        let mut memory = vec![0_i32; 8];
        let (mut win, all) = attached(process, &mut memory);
        synchronization::win_fence(process, 0, win).unwrap();
        for at in 2..6 {
            let place = Place {
                rank: 1 - me,
                displacement: all[(1 - me) as usize] + 4 * at,
                count: 1,
                datatype: INT,
            };
            let value = [at as i32];
            one_sided::put(process, data(&value).of(1, INT), place, win).unwrap();
        }
        synchronization::win_fence(process, 0, win).unwrap();
        assert_eq!(memory, [0, 0, 2, 3, 4, 5, 0, 0]);
        barrier(process);
        creation::win_free(process, result(&mut win)).unwrap();
    });
}

/// An access may reach over several pieces that were attached one by one.
#[test]
fn pieces_that_touch_each_other_are_one_memory() {
    ranks(2, |process, me| {
        let mut memory = vec![0_i32; 12];
        let (mut win, all) = attached(process, &mut memory);
        queries::win_set_errhandler(process, win, Errhandler::RETURN).unwrap();
        synchronization::win_fence(process, 0, win).unwrap();
        let (values, other) = ([1_i32, 2, 3, 4, 5, 6, 7], (1 - me) as usize);
        let place = |at: i64, count| Place {
            rank: 1 - me,
            displacement: all[other] + 4 * at,
            count,
            datatype: INT,
        };
        one_sided::put(process, data(&values).of(7, INT), place(3, 7), win).unwrap();
        let past = one_sided::put(process, data(&values).of(7, INT), place(6, 7), win);
        assert_eq!(code(past), Class::RmaRange);
        synchronization::win_fence(process, 0, win).unwrap();
        let mut got = [0_i32; 9];
        one_sided::get(process, room(&mut got).of(9, INT), place(2, 9), win).unwrap();
        synchronization::win_fence(process, 0, win).unwrap();
        assert_eq!(got, [0, 1, 2, 3, 4, 5, 6, 7, 0]);
        assert_eq!(memory, [0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 0, 0]);
        // The middle one is missing.
        creation::win_detach(process, win, data(&memory[4..])).unwrap();
        barrier(process);
        let gap = one_sided::put(process, data(&values).of(7, INT), place(3, 7), win);
        assert_eq!(code(gap), Class::RmaRange);
        // A hole of a datatype reaches over it.
        let mut apart = Datatype::NULL;
        datatypes::type_vector(process, Twin::Int, 2, 1, 8, INT, result(&mut apart)).unwrap();
        datatypes::type_commit(process, result(&mut apart)).unwrap();
        for (at, is_attached) in [(1, true), (3, true), (4, false)] {
            let datatype = apart;
            let place = Place {
                datatype,
                ..place(at, 1)
            };
            let done = one_sided::put(process, data(&values).of(2, INT), place, win);
            match is_attached {
                true => done.unwrap(),
                false => assert_eq!(code(done), Class::RmaRange),
            }
        }
        // What is past all addresses is attached by nobody, this rank neither.
        for (rank, displacement) in [0, 1].into_iter().flat_map(|rank| {
            [i64::MAX, i64::MAX - 15, i64::MAX - 27].map(|displacement| (rank, displacement))
        }) {
            let place = Place {
                rank,
                displacement,
                ..place(0, 7)
            };
            let past = one_sided::put(process, data(&values).of(7, INT), place, win);
            assert_eq!(code(past), Class::RmaRange, "{displacement:#x}");
        }
        synchronization::win_fence(process, 0, win).unwrap();
        assert_eq!(memory, [0, 1, 0, 1, 2, 3, 4, 5, 6, 2, 0, 2]);
        creation::win_free(process, result(&mut win)).unwrap();
    });
}

/// The origins of an exclusive lock change a value in turns, without any atomic operation.
#[test]
fn exclusive_locks_exclude() {
    for size in [2, 4] {
        ranks(size, |process, _| {
            for made in ALL {
                let window = window(process, made, 1);
                for _ in 0..50 {
                    window.lock(EXCLUSIVE, 0).unwrap();
                    let mut value = [0];
                    window.get(&mut value, 0, 0).unwrap();
                    window.flush(0).unwrap();
                    window.put(&[value[0] + 1], 0, 0).unwrap();
                    window.unlock(0).unwrap();
                }
                barrier(process);
                window.lock(SHARED, 0).unwrap();
                let mut value = [0];
                window.get(&mut value, 0, 0).unwrap();
                window.unlock(0).unwrap();
                assert_eq!(value[0], 50 * size as i32, "{made:?}");
                barrier(process);
                window.free().unwrap();
            }
        });
    }
}

/// Exposures end once all that were started have completed, and `MPI_Win_test` says when.
#[test]
fn an_exposure_ends_with_the_accesses_of_its_group() {
    ranks(2, |process, me| {
        let window = window(process, Made::Shared, 1);
        let other = group_of(process, vec![1 - me]);
        for round in 1..20 {
            if me == 0 {
                window.post(other).unwrap();
                let mut flag = 0;
                let mut looks = 0_u64;
                while flag == 0 {
                    synchronization::win_test(process, window.win, result(&mut flag)).unwrap();
                    looks += 1;
                }
                assert!(looks > 0);
                assert_eq!(window.own(1), [round]);
            } else {
                window.start(other).unwrap();
                window.put(&[round], 0, 0).unwrap();
                window.complete().unwrap();
            }
        }
        window.free().unwrap();
    });
}

/// A target that computes holds up nobody, whatever its window is: others access it by themselves.
#[test]
fn a_target_that_computes_is_accessed() {
    for made in ALL {
        let (is_done, done) = channel::<()>();
        let (is_done, done) = (Mutex::new(Some(is_done)), Mutex::new(done));
        ranks(2, |process, me| {
            let window = window(process, made, 4);
            window.lock_all().unwrap();
            if me == 0 {
                for round in 0..20 {
                    window.put(&[round], 1, 0).unwrap();
                    window.flush(1).unwrap();
                    let mut found = [-1];
                    window.get(&mut found, 1, 0).unwrap();
                    window.flush(1).unwrap();
                    assert_eq!(found, [round], "{made:?}");
                    let mut old = -1;
                    window.fetch_add(&mut old, 1, 1).unwrap();
                    window.flush(1).unwrap();
                    assert_eq!(old, 2 * round, "{made:?}");
                    window.add(&[1], 1, 1).unwrap();
                    window.add(&[1, 1], 1, 2).unwrap();
                    window.flush(1).unwrap();
                }
                is_done.lock().unwrap().take();
            } else {
                // The other drops its side when it is done: until then nothing here calls the library.
                let waited = done.lock().unwrap().recv_timeout(Duration::from_secs(60));
                assert_eq!(waited, Err(RecvTimeoutError::Disconnected), "{made:?}");
                assert_eq!(window.own(4), [19, 40, 20, 20], "{made:?}");
            }
            window.unlock_all().unwrap();
            window.free().unwrap();
        });
    }
}
