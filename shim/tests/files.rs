//! Files: opening, views, accesses of all kinds, pointers, errors.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod common;

use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use common::files::{CURRENT, File, amode, open, try_open, whence};
use common::{
    BYTE, INT, Ints, WORLD, barrier, code, data, ignore, library, ranks, result, room, said,
    status, text, text_out,
};
use tagwire_base::Rank;
use tagwire_base::bootstrap::LocalJob;
use tagwire_shim::Process;
use tagwire_shim::abi::{self, Comm, Datatype, Errhandler, Group, Info, Request, Status};
use tagwire_shim::call::complete::wait;
use tagwire_shim::call::files::{accesses, handlers, management, pointers, split, views};
use tagwire_shim::call::{datatypes, groups};
use tagwire_shim::error::Class;
use tagwire_shim::raw::{Pointer, Ref, Twin};

const LONG: Datatype = Datatype(0x20a);

/// A folder of files, gone when it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tagwire-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns the `int`s of a file.
fn ints(path: &Path) -> Vec<i32> {
    let bytes = std::fs::read(path).unwrap();
    let words = bytes.chunks_exact(4);
    words
        .map(|word| i32::from_ne_bytes(word.try_into().unwrap()))
        .collect()
}

/// Returns a datatype of one `int` of so many.
fn every(process: &Process, step: i64) -> Datatype {
    let mut made = Datatype::NULL;
    let into = result(&mut made);
    datatypes::type_create_resized(process, Twin::Int, INT, 0, 4 * step, into).unwrap();
    datatypes::type_commit(process, result(&mut made)).unwrap();
    made
}

#[test]
fn files_are_opened_and_closed() {
    let folder = Folder::new("open");
    ranks(3, |process, me| {
        let path = folder.file("a");
        let class = |mode: i32, path: &Path| {
            let mut file = abi::File(7);
            let error = code(try_open(process, WORLD, path, mode, &mut file));
            assert_eq!(file, abi::File::NULL);
            error
        };
        assert_eq!(class(amode::RDWR, &path), Class::NoSuchFile);
        assert_eq!(class(amode::RDONLY | amode::CREATE, &path), Class::Amode);
        assert_eq!(class(amode::RDONLY | amode::WRONLY, &path), Class::Amode);
        assert_eq!(class(amode::CREATE, &path), Class::Amode);
        assert_eq!(class(amode::RDWR | amode::SEQUENTIAL, &path), Class::Amode);
        assert_eq!(class(amode::RDWR | 4096, &path), Class::Amode);
        // What is wrong on one is an error of all.
        let mode = if me == 1 {
            0
        } else {
            amode::RDWR | amode::CREATE
        };
        assert_eq!(class(mode, &path), Class::Amode);
        let exclusive = amode::RDWR | amode::CREATE | amode::EXCL;
        open(process, &folder.file("new"), exclusive)
            .close()
            .unwrap();
        assert_eq!(class(exclusive, &folder.file("new")), Class::FileExists);
        assert_eq!(class(amode::RDONLY, &folder.0), Class::BadFile);
        assert_eq!(
            class(amode::RDONLY, &folder.file("new").join("x")),
            Class::BadFile
        );
        let long = folder.file(&"x".repeat(300));
        assert_eq!(class(amode::RDONLY, &long), Class::BadFile);

        let with_prefix = PathBuf::from(format!("ufs:{}", path.display()));
        let file = open(
            process,
            &with_prefix,
            amode::RDWR | amode::CREATE | amode::DELETE_ON_CLOSE,
        );
        let mut mode = 0;
        management::file_get_amode(process, file.handle, result(&mut mode)).unwrap();
        assert_eq!(mode, amode::RDWR | amode::CREATE | amode::DELETE_ON_CLOSE);
        let (mut group, mut size) = (Group::NULL, 0);
        management::file_get_group(process, file.handle, result(&mut group)).unwrap();
        groups::group_size(process, group, result(&mut size)).unwrap();
        assert_eq!(size, 3);
        assert!(path.exists());
        barrier(process);
        file.close().unwrap();
        assert!(!path.exists());
        barrier(process);
        if me == 0 {
            let name = CString::new(folder.file("new").to_str().unwrap()).unwrap();
            management::file_delete(process, text(&name), Info::NULL).unwrap();
            let again = management::file_delete(process, text(&name), Info::NULL);
            assert_eq!(code(again), Class::NoSuchFile);
        }
    });
}

#[test]
fn members_write_and_read_what_their_views_show() {
    const COUNT: usize = 500;
    let folder = Folder::new("views");
    let path = folder.file("a");
    ranks(3, |process, me| {
        let file = open(process, &path, amode::RDWR | amode::CREATE);
        let mine = every(process, 3);
        file.view(8 + 4 * i64::from(me), INT, mine, "native")
            .unwrap();
        let own: Vec<i32> = (0..COUNT as i32).map(|at| at * 10 + me).collect();
        let mut ended = Status::EMPTY;
        let from = data(&own).ints(COUNT as i64);
        accesses::file_write_all(process, file.handle, from, status(&mut ended)).unwrap();
        assert_eq!(ended.bytes(), 4 * COUNT as u64);
        barrier(process);
        let all = ints(&path);
        assert_eq!(all.len(), 2 + 3 * COUNT);
        for (at, value) in all[2..].iter().enumerate() {
            assert_eq!(*value, (at / 3 * 10 + at % 3) as i32);
        }
        // Those of the next one, one after another, and all at once.
        let next = (me + 1) % 3;
        file.view(8 + 4 * i64::from(next), INT, mine, "internal")
            .unwrap();
        for collective in [false, true] {
            let mut seen = vec![0_i32; 20];
            let into = room(&mut seen).ints(20);
            match collective {
                true => accesses::file_read_at_all(process, file.handle, 5, into, ignore()),
                false => accesses::file_read_at(process, file.handle, 5, into, ignore()),
            }
            .unwrap();
            assert!(
                seen.iter()
                    .zip(5..)
                    .all(|(value, at)| *value == at * 10 + next),
                "{seen:?}"
            );
        }
        let mut offset = 0;
        pointers::file_get_byte_offset(process, file.handle, 7, result(&mut offset)).unwrap();
        assert_eq!(offset, 8 + 4 * i64::from(next) + 7 * 12);
        let (mut start, mut etype, mut filetype) = (0, Datatype::NULL, Datatype::NULL);
        let mut name = [0; 128];
        let (types, into) = (
            (result(&mut etype), result(&mut filetype)),
            text_out(&mut name),
        );
        views::file_get_view(
            process,
            file.handle,
            result(&mut start),
            types.0,
            types.1,
            into,
        )
        .unwrap();
        assert_eq!(
            (start, etype, said(&name)),
            (8 + 4 * i64::from(next), INT, "internal")
        );
        datatypes::type_free(process, result(&mut filetype)).unwrap();
        // Past the end there is less, and nothing.
        let mut seen = vec![0_i32; 10];
        let into = room(&mut seen).ints(10);
        let last = COUNT as i64 - 4;
        accesses::file_read_at(process, file.handle, last, into, status(&mut ended)).unwrap();
        assert_eq!(ended.bytes(), 16);
        accesses::file_read_at(process, file.handle, last + 4, into, status(&mut ended)).unwrap();
        assert_eq!(ended.bytes(), 0);
        file.close().unwrap();
    });
}

/// Data with gaps in memory, and short accesses of all ranks that lie between each other: aggregators write them.
#[test]
fn data_with_gaps_goes_through_aggregators() {
    const COUNT: usize = 3000;
    let folder = Folder::new("gaps");
    let path = folder.file("a");
    ranks(3, |process, me| {
        let file = open(process, &path, amode::RDWR | amode::CREATE);
        file.hint("romio_cb_write", "enable");
        file.hint("romio_cb_read", "enable");
        file.hint("cb_buffer_size", "4096");
        let (mine, spread) = (every(process, 3), every(process, 2));
        file.view(4 * i64::from(me), INT, mine, "native").unwrap();
        let own: Vec<i32> = (0..2 * COUNT as i32)
            .map(|at| if at % 2 == 0 { at * 3 + me } else { -1 })
            .collect();
        let from = data(&own).of(COUNT as i64, spread);
        accesses::file_write_at_all(process, file.handle, 0, from, ignore()).unwrap();
        barrier(process);
        let all = ints(&path);
        assert_eq!(all.len(), 3 * COUNT);
        let expected = |at: usize| (at / 3 * 6 + at % 3) as i32;
        assert!((0..3 * COUNT).all(|at| all[at] == expected(at)));
        let mut seen = vec![-1_i32; 2 * COUNT];
        let into = room(&mut seen).of(COUNT as i64, spread);
        accesses::file_read_at_all(process, file.handle, 0, into, ignore()).unwrap();
        assert_eq!(seen, own);
        file.close().unwrap();
    });
}

#[test]
fn each_process_has_a_file_pointer() {
    let folder = Folder::new("pointer");
    ranks(2, |process, me| {
        let own = folder.file(&format!("own-{me}"));
        let file = File::open(process, Comm::SELF, &own, amode::RDWR | amode::CREATE);
        file.view(0, INT, INT, "native").unwrap();
        let values = [1, 2, 3, 4, 5];
        let from = data(&values).ints(5);
        accesses::file_write(process, file.handle, from, ignore()).unwrap();
        assert_eq!(file.position(), 5);
        file.seek(-2, whence::CUR).unwrap();
        let mut seen = [0_i32; 2];
        accesses::file_read(process, file.handle, room(&mut seen).ints(2), ignore()).unwrap();
        assert_eq!(seen, [4, 5]);
        file.seek(-5, whence::END).unwrap();
        assert_eq!(file.position(), 0);
        assert_eq!(code(file.seek(-1, whence::SET)), Class::Arg);
        assert_eq!(code(file.seek(0, 7)), Class::Arg);
        assert_eq!(file.position(), 0);
        let mut size = 0;
        management::file_set_size(process, file.handle, 8).unwrap();
        management::file_preallocate(process, file.handle, 100).unwrap();
        management::file_get_size(process, file.handle, result(&mut size)).unwrap();
        assert_eq!(size, 100);
        assert_eq!(
            code(management::file_set_size(process, file.handle, -1)),
            Class::Arg
        );
        file.close().unwrap();
        assert_eq!(ints(&own)[..3], [1, 2, 0]);

        // Appended: both pointers begin at the end, which is counted in bytes.
        let file = File::open(process, Comm::SELF, &own, amode::WRONLY | amode::APPEND);
        assert_eq!(file.position(), 100);
        assert_eq!(file.shared_position(), 100);
        let from = data(&values).ints(1);
        accesses::file_write(process, file.handle, from, ignore()).unwrap();
        let into = room(&mut seen).ints(1);
        let read = accesses::file_read_at(process, file.handle, 0, into, ignore());
        assert_eq!(code(read), Class::Access);
        file.close().unwrap();
        assert_eq!(ints(&own).len(), 26);
        let file = File::open(process, Comm::SELF, &own, amode::RDONLY);
        let written = accesses::file_write_at(process, file.handle, 0, from, ignore());
        assert_eq!(code(written), Class::ReadOnly);
        // No pointer moves.
        let handle = file.handle;
        for written in [
            accesses::file_write(process, handle, from, ignore()),
            accesses::file_write_all(process, handle, from, ignore()),
            accesses::file_write_shared(process, handle, from, ignore()),
            accesses::file_write_ordered(process, handle, from, ignore()),
        ] {
            assert_eq!(code(written), Class::ReadOnly);
        }
        assert_eq!((file.position(), file.shared_position()), (0, 0));
        assert_eq!(
            code(management::file_set_size(process, file.handle, 1)),
            Class::ReadOnly
        );
        file.close().unwrap();
    });
}

#[test]
fn the_shared_pointer_gives_each_access_a_part() {
    const ROUNDS: i32 = 50;
    let folder = Folder::new("shared");
    let path = folder.file("a");
    ranks(3, |process, me| {
        let file = open(process, &path, amode::RDWR | amode::CREATE);
        file.view(0, INT, INT, "native").unwrap();
        for round in 0..ROUNDS {
            let pair = [me * 1000 + round; 2];
            let from = data(&pair).ints(2);
            accesses::file_write_shared(process, file.handle, from, ignore()).unwrap();
        }
        barrier(process);
        assert_eq!(file.shared_position(), i64::from(ROUNDS) * 6);
        let mut all = ints(&path);
        assert!(all.chunks(2).all(|pair| pair[0] == pair[1]), "{all:?}");
        all.sort_unstable();
        let ranks =
            (0..3).flat_map(|rank| (0..ROUNDS).flat_map(move |round| [rank * 1000 + round; 2]));
        assert!(all.into_iter().eq(ranks));
        barrier(process);
        // In the order of ranks, each another length.
        pointers::file_seek_shared(process, file.handle, -2, whence::END).unwrap();
        let own = vec![7 + me; me as usize + 1];
        let from = data(&own).ints(own.len() as i64);
        accesses::file_write_ordered(process, file.handle, from, ignore()).unwrap();
        barrier(process);
        let end = ints(&path)[i64::from(ROUNDS) as usize * 6 - 2..].to_vec();
        assert_eq!(end, [7, 8, 8, 9, 9, 9]);
        pointers::file_seek_shared(process, file.handle, -6, whence::CUR).unwrap();
        let mut seen = vec![0_i32; me as usize + 1];
        let into = room(&mut seen).ints(seen.len() as i64);
        accesses::file_read_ordered(process, file.handle, into, ignore()).unwrap();
        assert_eq!(seen, own);
        let (mut one, mut request, mut ended) = ([0_i32], Request::NULL, Status::EMPTY);
        let into = room(&mut one).ints(1);
        accesses::file_iread_shared(process, file.handle, into, result(&mut request)).unwrap();
        wait(process, result(&mut request), status(&mut ended)).unwrap();
        assert_eq!(
            (ended.bytes(), request),
            (0, Request::NULL),
            "behind the end"
        );
        let different =
            pointers::file_seek_shared(process, file.handle, i64::from(me), whence::SET);
        assert_eq!(code(different), Class::NotSame);
        let before = pointers::file_seek_shared(process, file.handle, -1, whence::SET);
        assert_eq!(code(before), Class::Arg);
        file.close().unwrap();
    });
}

#[test]
fn split_and_nonblocking_accesses_end() {
    let folder = Folder::new("split");
    let path = folder.file("a");
    ranks(2, |process, me| {
        let file = open(process, &path, amode::RDWR | amode::CREATE);
        file.view(0, INT, INT, "native").unwrap();
        let own = [me * 2, me * 2 + 1];
        let (from, at) = (data(&own).ints(2), 2 * i64::from(me));
        split::file_write_at_all_begin(process, file.handle, at, from).unwrap();
        let second = split::file_read_all_begin(process, file.handle, room(&mut [0_i32]).ints(1));
        assert_eq!(code(second), Class::Other, "one at a time");
        let collective = accesses::file_write_all(process, file.handle, from, ignore());
        assert_eq!(code(collective), Class::Other, "beside a split access");
        let mut none = Request::NULL;
        let started = accesses::file_iwrite_all(process, file.handle, from, result(&mut none));
        assert_eq!((code(started), none), (Class::Other, Request::NULL));
        accesses::file_read_at(
            process,
            file.handle,
            0,
            room(&mut [0_i32; 0]).ints(0),
            ignore(),
        )
        .unwrap();
        assert_eq!(
            code(split::file_read_all_end(
                process,
                file.handle,
                common::nowhere(),
                ignore()
            )),
            Class::Other
        );
        let mut ended = Status::EMPTY;
        split::file_write_at_all_end(process, file.handle, data(&own), status(&mut ended)).unwrap();
        assert_eq!(ended.bytes(), 8);
        let again = split::file_write_at_all_end(process, file.handle, data(&own), ignore());
        assert_eq!(code(again), Class::Other);
        barrier(process);
        assert_eq!(ints(&path), [0, 1, 2, 3]);
        let mut seen = [0_i32; 2];
        split::file_read_ordered_begin(process, file.handle, room(&mut seen).ints(2)).unwrap();
        split::file_read_ordered_end(process, file.handle, common::nowhere(), ignore()).unwrap();
        assert_eq!(seen, own);
        // Nobody waits for the other in a call that starts something.
        let mut request = Request::NULL;
        if me == 0 {
            let from = data(&own).ints(2);
            accesses::file_iwrite_all(process, file.handle, from, result(&mut request)).unwrap();
        }
        barrier(process);
        if me == 1 {
            let into = room(&mut seen).ints(2);
            accesses::file_iread_all(process, file.handle, into, result(&mut request)).unwrap();
        }
        wait(process, result(&mut request), status(&mut ended)).unwrap();
        assert_eq!((ended.bytes(), file.position()), (8, 2));
        let wrong = accesses::file_iread_at(
            process,
            file.handle,
            -1,
            room(&mut seen).ints(2),
            result(&mut request),
        );
        assert_eq!((code(wrong), request), (Class::Arg, Request::NULL));
        file.close().unwrap();
    });
}

/// The bytes are those of the standard, which has 4 of them for `long`.
#[test]
fn data_is_converted_to_external32() {
    let folder = Folder::new("external");
    let path = folder.file("a");
    ranks(2, |process, me| {
        let file = open(process, &path, amode::RDWR | amode::CREATE);
        let class = |datarep: &str| code(file.view(0, LONG, LONG, datarep));
        assert_eq!(class("external64"), Class::UnsupportedDatarep);
        let name = CString::new("mine").unwrap();
        let register = || {
            let (read, write) = conversions();
            views::register_datarep(
                process,
                text(&name),
                read,
                write,
                None,
                Pointer(std::ptr::null_mut()),
            )
        };
        register().unwrap();
        assert_eq!(code(register()), Class::DupDatarep);
        assert_eq!(class("mine"), Class::UnsupportedDatarep);
        file.view(4 * i64::from(me), LONG, LONG, "external32")
            .unwrap();
        let mut extent = 0;
        let into = result(&mut extent);
        views::file_get_type_extent(process, file.handle, LONG, into).unwrap();
        assert_eq!(extent, 4);
        let own = [0x0102_0304_i64 + i64::from(me)];
        let mut ended = Status::EMPTY;
        let from = data(&own).of(1, LONG);
        accesses::file_write_at(process, file.handle, 0, from, status(&mut ended)).unwrap();
        assert_eq!(ended.bytes(), 8, "in bytes of memory");
        barrier(process);
        assert_eq!(std::fs::read(&path).unwrap(), [1, 2, 3, 4, 1, 2, 3, 5]);
        let mut seen = [0_i64; 3];
        let into = room(&mut seen).of(3, LONG);
        accesses::file_read_at_all(process, file.handle, 0, into, status(&mut ended)).unwrap();
        let expected = if me == 0 {
            [0x0102_0304, 0x0102_0305, 0]
        } else {
            [0x0102_0305, 0, 0]
        };
        assert_eq!(seen, expected);
        assert_eq!(ended.bytes(), if me == 0 { 16 } else { 8 });
        // The file ends within an element: its whole values are read.
        let mut many = Datatype::NULL;
        datatypes::type_contiguous(process, Twin::Int, 5, LONG, result(&mut many)).unwrap();
        datatypes::type_commit(process, result(&mut many)).unwrap();
        let mut seen = [7_i64; 5];
        let into = room(&mut seen).of(1, many);
        accesses::file_read_at(process, file.handle, 0, into, status(&mut ended)).unwrap();
        let whole = 2 - me as usize;
        assert_eq!(seen[..whole], expected[..whole]);
        assert_eq!(seen[whole..], [7; 5][whole..]);
        assert_eq!(ended.bytes(), 8 * whole as u64);
        file.close().unwrap();
    });
}

fn conversions() -> (
    tagwire_shim::callbacks::Conversion,
    tagwire_shim::callbacks::Conversion,
) {
    use tagwire_shim::callbacks::Conversion::Int;
    (Int(None), Int(None))
}

/// A member with wrong arguments gets an error, and the others their data.
#[test]
fn nobody_waits_for_a_member_with_wrong_arguments() {
    let folder = Folder::new("wrong");
    let path = folder.file("a");
    ranks(3, |process, me| {
        let file = open(process, &path, amode::RDWR | amode::CREATE);
        let mine = every(process, 3);
        file.view(4 * i64::from(me), INT, mine, "native").unwrap();
        let own = [me; 100];
        let count = if me == 1 { -1 } else { 100 };
        let from = data(&own).ints(count);
        let written = [
            accesses::file_write_all(process, file.handle, from, ignore()),
            accesses::file_write_at_all(process, file.handle, 0, from, ignore()),
            accesses::file_write_ordered(process, file.handle, from, ignore()),
        ];
        let mut seen = [7; 100];
        let into = room(&mut seen).ints(count);
        let read = accesses::file_read_at_all(process, file.handle, 0, into, ignore());
        match me {
            1 => {
                let classes = written.into_iter().chain([read]).map(code);
                assert!(classes.into_iter().all(|class| class == Class::Count));
            }
            _ => {
                written.into_iter().chain([read]).for_each(Result::unwrap);
                assert_eq!(seen, own);
            }
        }
        let half =
            accesses::file_write_at(process, file.handle, 0, data(&own).of(3, BYTE), ignore());
        assert_eq!(code(half), Class::Arg, "no whole etypes");
        let none =
            accesses::file_write_at(process, file.handle, 0, common::at(0).ints(1), ignore());
        assert_eq!(code(none), Class::Buffer);
        assert_eq!(code(file.view(-1, INT, INT, "native")), Class::Arg);
        let view = match me {
            2 => file.view(0, BYTE, BYTE, "native"),
            _ => file.view(0, INT, INT, "native"),
        };
        assert_eq!(code(view), Class::NotSame);
        file.close().unwrap();
    });
}

/// An error of one member that is found where its access begins is its own.
#[test]
fn nobody_waits_for_a_member_whose_pointer_is_too_far() {
    let folder = Folder::new("far");
    let path = folder.file("a");
    ranks(2, |process, me| {
        let file = open(process, &path, amode::RDWR | amode::CREATE);
        let own = [me; 4];
        for (etype, far, count) in [(INT, 1 << 61, 1), (LONG, 1 << 61, 1), (BYTE, i64::MAX, 4)] {
            file.view(0, etype, etype, "native").unwrap();
            let start = if me == 0 { far } else { 0 };
            file.seek(start, whence::SET).unwrap();
            let from = data(&own).of(count, etype);
            let written = accesses::file_write_all(process, file.handle, from, ignore());
            let into = &mut [0_i32; 4];
            let into = room(into).of(count, etype);
            let read = accesses::file_read_all(process, file.handle, into, ignore());
            match me {
                0 => {
                    assert_eq!((code(written), code(read)), (Class::Arg, Class::Arg));
                    assert_eq!(file.position(), far, "it does not move");
                }
                _ => {
                    written.unwrap();
                    read.unwrap();
                }
            }
        }
        // The elements of one are longer than memory is.
        let (mut spread, mut count) = (Datatype::NULL, 1);
        let into = result(&mut spread);
        datatypes::type_create_resized(process, Twin::Big, BYTE, 0, 1 << 62, into).unwrap();
        datatypes::type_commit(process, result(&mut spread)).unwrap();
        if me == 0 {
            count = 3;
        }
        let from = data(&own).of(count, spread);
        let written = accesses::file_write_at_all(process, file.handle, 0, from, ignore());
        assert_eq!(written.is_err(), me == 0, "{written:?}");
        file.close().unwrap();
    });
}

/// A name is bytes: those that are no text are not those of another file.
#[test]
fn names_of_files_are_bytes() {
    let folder = Folder::new("names");
    let [own, other] = [&b"n\xff"[..], "n\u{fffd}".as_bytes()];
    let [own, other] = [own, other].map(|name| folder.0.join(OsStr::from_bytes(name)));
    std::fs::write(&other, "kept").unwrap();
    ranks(1, |process, _| {
        let file = open(process, &own, amode::RDWR | amode::CREATE | amode::EXCL);
        file.close().unwrap();
        assert!(own.exists());
        let name = CString::new(own.as_os_str().as_bytes()).unwrap();
        management::file_delete(process, text(&name), Info::NULL).unwrap();
        assert!(!own.exists());
        assert_eq!(std::fs::read(&other).unwrap(), b"kept");
    });
}

#[test]
fn hints_are_given_back() {
    let folder = Folder::new("hints");
    ranks(2, |process, _| {
        let file = open(process, &folder.file("a"), amode::RDWR | amode::CREATE);
        let set = [
            ("cb_buffer_size", "8192"),
            ("romio_cb_write", "disable"),
            ("access_style", "write_once"),
            ("unknown", "1"),
            ("cb_nodes", "many"),
            ("filename", "b"),
        ];
        for (key, value) in set {
            file.hint(key, value);
        }
        assert_eq!(file.hint_of("cb_buffer_size").as_deref(), Some("8192"));
        assert_eq!(file.hint_of("romio_cb_write").as_deref(), Some("disable"));
        assert_eq!(file.hint_of("romio_ds_write").as_deref(), Some("disable"));
        assert_eq!(file.hint_of("access_style").as_deref(), Some("write_once"));
        assert_eq!(
            (file.hint_of("unknown"), file.hint_of("cb_nodes")),
            (None, None)
        );
        let name = file.hint_of("filename").unwrap();
        assert!(name.ends_with("/a"), "{name}");
        // PnetCDF aligns what it writes to that of the file system, where there is one.
        assert_eq!(file.hint_of("striping_unit"), None);
        file.hint("cb_config_list", "*:*");
        assert_eq!(file.hint_of("cb_config_list").as_deref(), Some("*:*"));
        let mut flag = 5;
        management::file_set_atomicity(process, file.handle, 1).unwrap();
        management::file_get_atomicity(process, file.handle, result(&mut flag)).unwrap();
        assert_eq!(flag, 1);
        let own = [3; 10];
        let from = data(&own).ints(10);
        accesses::file_write_all(process, file.handle, from, ignore()).unwrap();
        management::file_sync(process, file.handle).unwrap();
        file.close().unwrap();
    });
}

/// Calls of a sequential file go by its shared pointer.
/// What the system says of a program that runs, of a full device, and of memory that is not there.
#[test]
fn errors_of_the_system_have_their_classes() {
    ranks(1, |process, _| {
        let own = std::env::current_exe().unwrap();
        let mut none = abi::File::NULL;
        let opened = try_open(process, WORLD, &own, amode::WRONLY, &mut none);
        assert_eq!(code(opened), Class::FileInUse);
        let full = open(process, Path::new("/dev/full"), amode::WRONLY);
        let from = data(&[1_i32]).ints(1);
        let written = accesses::file_write_at(process, full.handle, 0, from, ignore());
        assert_eq!(code(written), Class::NoSpace);
        full.close().unwrap();
        let memory = open(process, Path::new("/proc/self/mem"), amode::RDONLY);
        let mut seen = [0_i32];
        let into = room(&mut seen).ints(1);
        let read = accesses::file_read_at(process, memory.handle, 0, into, ignore());
        assert_eq!(code(read), Class::Io);
        memory.close().unwrap();
    });
}

#[test]
fn sequential_files_are_not_seeked_in() {
    let folder = Folder::new("sequential");
    let path = folder.file("a");
    std::fs::write(&path, [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]).unwrap();
    ranks(1, |process, _| {
        let written = open(process, &path, amode::WRONLY | amode::SEQUENTIAL);
        for change in [management::file_set_size, management::file_preallocate] {
            let refused = change(process, written.handle, 64);
            assert_eq!(code(refused), Class::UnsupportedOperation);
        }
        written.close().unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 12);
        let file = open(process, &path, amode::RDONLY | amode::SEQUENTIAL);
        let mut seen = [0_i32];
        let into = room(&mut seen).ints(1);
        let (class, handle) = (Class::UnsupportedOperation, file.handle);
        assert_eq!(
            code(accesses::file_read(process, handle, into, ignore())),
            class
        );
        assert_eq!(
            code(accesses::file_read_at(process, handle, 0, into, ignore())),
            class
        );
        assert_eq!(code(file.seek(0, whence::SET)), class);
        assert_eq!(
            code(pointers::file_seek_shared(process, handle, 0, whence::SET)),
            class
        );
        accesses::file_read_shared(process, handle, into, ignore()).unwrap();
        assert_eq!(code(file.view(0, INT, INT, "native")), Class::Arg);
        // From where it is on.
        file.view(CURRENT, INT, INT, "native").unwrap();
        accesses::file_read_shared(process, handle, into, ignore()).unwrap();
        assert_eq!(seen, [2]);
        file.close().unwrap();
    });
}

/// All members take the same place for the beginning of a view, whoever moves the shared pointer before its own call.
#[test]
fn members_of_a_sequential_file_begin_views_at_one_place() {
    let folder = Folder::new("current");
    let path = folder.file("a");
    let mode = amode::WRONLY | amode::CREATE | amode::SEQUENTIAL;
    ranks(2, |process, me| {
        let file = open(process, &path, mode);
        for round in 1..=50 {
            if me == 1 {
                let from = data(&[1_i32; 25]).ints(25);
                accesses::file_write_shared(process, file.handle, from, ignore()).unwrap();
            }
            file.view(CURRENT, BYTE, BYTE, "native").unwrap();
            assert_eq!(file.displacement(), 100 * round);
        }
        file.close().unwrap();
    });
}

extern "C-unwind" fn count_errors(file: *mut abi::File, code: *mut i32) {
    let (file, code): (Ref<abi::File>, Ref<i32>) =
        (common::out(file.cast()), common::out(code.cast()));
    // What the handler is given: the file of the error, and its class.
    SEEN.with(|seen| {
        seen.borrow_mut()
            .push((file.get().unwrap(), code.get().unwrap()));
    });
    // The call returns it.
    code.set(0);
}

thread_local! {
    static SEEN: std::cell::RefCell<Vec<(abi::File, i32)>> = const { std::cell::RefCell::new(Vec::new()) };
}

#[test]
fn errors_go_to_the_handler_of_the_file() {
    let folder = Folder::new("handlers");
    ranks(1, |process, _| {
        let library = library(process);
        let mut handler = Errhandler::NULL;
        let function = common::files::error_function(count_errors);
        handlers::file_create_errhandler(&library, Some(function), result(&mut handler)).unwrap();
        let of = |file: abi::File| {
            let mut held = Errhandler::NULL;
            handlers::file_get_errhandler(process, file, result(&mut held)).unwrap();
            held
        };
        assert_eq!(of(abi::File::NULL), Errhandler::RETURN);
        let file = open(process, &folder.file("a"), amode::RDWR | amode::CREATE);
        assert_eq!(of(file.handle), Errhandler::RETURN);
        handlers::file_set_errhandler(process, file.handle, handler).unwrap();
        assert_eq!(of(file.handle), handler);
        handlers::file_call_errhandler(process, file.handle, Class::Quota as i32).unwrap();
        let seek = file.seek(-1, whence::SET).unwrap_err();
        assert_eq!(process.raise(&seek, "MPI_File_seek"), 0);
        let taken = SEEN.with(|seen| std::mem::take(&mut *seen.borrow_mut()));
        assert_eq!(
            taken,
            [
                (file.handle, Class::Quota as i32),
                (file.handle, Class::Arg as i32)
            ]
        );
        // Files that are opened get that of the null file.
        handlers::file_set_errhandler(process, abi::File::NULL, Errhandler::ABORT).unwrap();
        let other = open(process, &folder.file("b"), amode::RDWR | amode::CREATE);
        assert_eq!(of(other.handle), Errhandler::ABORT);
        handlers::file_set_errhandler(process, abi::File::NULL, Errhandler::RETURN).unwrap();
        let mut closed = other.handle;
        management::file_close(process, result(&mut closed)).unwrap();
        assert_eq!(closed, abi::File::NULL);
        let again = management::file_get_amode(process, other.handle, result(&mut 0));
        assert_eq!(code(again), Class::File);
        let null = management::file_sync(process, abi::File::NULL);
        assert_eq!(code(null), Class::File);
        file.close().unwrap();
    });
}

/// Members of a file of which one dies in a collective access: the others' end with an error that names it, and the file is closed.
#[test]
fn collective_accesses_end_when_a_member_dies() {
    const SIZE: u32 = 3;
    let folder = Folder::new("deaths");
    let victims = [0, 1];
    for (victim, buffers) in victims.into_iter().zip(["64", "1048576"]) {
        let job = LocalJob::new(SIZE).unwrap();
        let (sender, ends) = channel();
        for number in 0..SIZE {
            let (job, sender) = (job.clone(), sender.clone());
            let path = folder.file(&format!("of-{victim}"));
            // Not joined: that of the victim is there for ever.
            std::thread::spawn(move || {
                let member = Box::new(job.member(Rank::new(number)));
                let process = Arc::new(Process::open(member, &[("wait", "yield")]).unwrap());
                let file = open(&process, &path, amode::RDWR | amode::CREATE);
                file.hint("romio_cb_write", "enable");
                file.hint("cb_buffer_size", buffers);
                let mine = every(&process, i64::from(SIZE));
                file.view(4 * i64::from(number), INT, mine, "native")
                    .unwrap();
                let own = vec![number as i32; 5000];
                let from = data(&own).ints(5000);
                let write =
                    || accesses::file_write_at_all(&process, file.handle, 0, from, ignore());
                write().unwrap();
                management::file_sync(&process, file.handle).unwrap();
                barrier(&process);
                if number == victim {
                    job.declare_failed(Rank::new(victim));
                    loop {
                        std::thread::park();
                    }
                }
                let ended = [write(), write(), file.close()];
                std::mem::forget(process);
                let _ = sender.send(ended);
            });
        }
        for _ in 1..SIZE {
            let ended = ends.recv_timeout(Duration::from_secs(60));
            let ended = ended.unwrap_or_else(|_| panic!("{victim}: somebody hangs"));
            assert!(
                ended[0]
                    .as_ref()
                    .is_err_and(|error| error.text().contains(&format!("rank {victim}")))
            );
            for one in ended {
                assert_eq!(code(one), Class::ProcAborted);
            }
        }
        // What was synchronized before is there.
        let all = ints(&folder.file(&format!("of-{victim}")));
        assert!(all.len() == 15_000 && all.chunks(3).all(|three| three == [0, 1, 2]));
    }
}
