//! Opening and closing, sizes, the shared pointer and atomic mode.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tagwire_files::{
    Access, Data, Errno, Error, File, Hints, Kind, Mode, Opening, Room, Site, Storage, Switch,
    Unix, View,
};
use tagwire_layout::{Basic, Datatype, Program};

use crate::common::memory::Memory;
use crate::common::{open, open_as, ranks};

fn both() -> Mode {
    Mode::READ | Mode::WRITE
}

#[test]
fn all_members_open_a_file_or_none() {
    let memory = Memory::default();
    ranks(3, |team| {
        let me = team.me();
        let storage: Arc<dyn Storage> = Arc::new(memory.clone());
        let open = |mode: Mode, path: &str| {
            let team = team.duplicate().unwrap();
            let defaults = (Hints::default(), 0);
            open_as(
                team,
                Arc::clone(&storage),
                mode,
                PathBuf::from(path),
                defaults,
            )
        };
        let kind = |opened: tagwire_files::Result<File>| opened.map(drop).unwrap_err().kind();
        assert_eq!(kind(open(both(), "none")), Kind::NoSuchFile);
        let exclusive = both() | Mode::CREATE | Mode::EXCLUSIVE;
        let file = open(exclusive, "new").unwrap();
        file.close().unwrap();
        assert_eq!(kind(open(exclusive, "new")), Kind::Exists);
        // One of them names another file.
        let name = if me == 1 { "none" } else { "new" };
        assert_eq!(kind(open(both(), name)), Kind::NoSuchFile);
        let mode = if me == 2 { Mode::READ } else { both() };
        assert_eq!(kind(open(mode, "new")), Kind::NotSame);
        let wrong = team.duplicate().unwrap();
        let opened = match me {
            0 => File::open(wrong, Err(Error::Argument("no name".to_owned()))),
            _ => File::open(wrong, Ok(opening(&storage, both(), "new"))),
        };
        assert_eq!(kind(opened), Kind::Argument);
        // What the first has made for all is gone where another cannot open it.
        let name = if me == 1 { "none" } else { "made" };
        assert_eq!(kind(open(exclusive, name)), Kind::NoSuchFile);
        assert!(me != 0 || !memory.has("made"));
        for round in 0..50 {
            let created = both() | Mode::CREATE | Mode::DELETE_ON_CLOSE;
            let file = open(created, "new").unwrap();
            // It is there until all close it.
            assert!(memory.has("new"), "round {round}");
            file.close().unwrap();
            assert!(!memory.has("new"));
            team.barrier().unwrap();
        }
    });
    let here = std::env::current_dir().unwrap();
    assert_eq!(Unix.lasting(Path::new("a")), here.join("a"));
}

/// HDF5 and PnetCDF have filetypes whose extent is shorter than their data, of which an access has one tile.
#[test]
fn an_access_within_one_tile_does_not_meet_the_next() {
    let memory = Memory::default();
    ranks(2, |team| {
        let me = team.me() as u64;
        let hints = Hints {
            two_phase_writes: Switch::Enable,
            two_phase_reads: Switch::Enable,
            ..Hints::default()
        };
        let file = open(team, Arc::new(memory.clone()), hints, 0).unwrap();
        let byte = Datatype::of(Basic::Byte);
        let short = byte.hvector(4, 1, 2).unwrap().resized(0, 1).unwrap();
        let view = View::new(me, &Program::of(&byte), &Program::of(&short)).unwrap();
        file.check_view(&view).unwrap();
        let own = [me as u8 + 1; 8];
        let outcome = file.write_all(Access::new(&view, 0), &Data::Bytes(&own[..4]));
        assert!(outcome.error.is_none() && outcome.bytes == 4, "{outcome:?}");
        let mut read = [0; 3];
        let outcome = file.read_all(Access::new(&view, 1), &mut Room::Bytes(&mut read));
        assert!(outcome.error.is_none() && outcome.bytes == 3, "{outcome:?}");
        assert_eq!(read, own[..3]);
        // Two tiles share bytes.
        let outcome = file.write(Access::new(&view, 3), &Data::Bytes(&own[..2]));
        let kind = outcome.error.map(|error| error.kind());
        assert_eq!((kind, outcome.bytes), (Some(Kind::Io), 0));
        file.close().unwrap();
    });
    assert_eq!(memory.bytes(), [1, 2, 1, 2, 1, 2, 1, 2]);
}

/// Tiles lie between each other, and a window of no bytes reads all the same.
#[test]
fn tiles_between_each_other_are_written_and_read() {
    let memory = Memory::default();
    ranks(2, |team| {
        let me = team.me() as u64;
        let file = open(team, Arc::new(memory.clone()), Hints::default(), 0).unwrap();
        let byte = Datatype::of(Basic::Byte);
        let tile = byte.hvector(2, 1, 6).unwrap().resized(0, 4).unwrap();
        let view = View::new(me, &Program::of(&byte), &Program::of(&tile)).unwrap();
        file.check_view(&view).unwrap();
        let own = [1, 2, 3, 4].map(|byte| byte + 10 * me as u8);
        let access = Access::new(&view, 0);
        let written = file.write_all(access, &Data::Bytes(&own));
        assert_eq!(written.into_result().unwrap(), 4);
        file.team().barrier().unwrap();
        assert_eq!(memory.bytes(), [1, 11, 0, 0, 3, 13, 2, 12, 0, 0, 4, 14]);
        file.change_hints(|hints| (hints.sieve, hints.window) = (Switch::Enable, 0));
        for position in 0..4 {
            let access = Access::new(&view, position as u64);
            let mut seen = [0; 4];
            let read = file.read(access, &mut Room::Bytes(&mut seen[position..]));
            read.into_result().unwrap();
            assert_eq!(seen[position..], own[position..]);
        }
        let every = byte.resized(0, 2).unwrap();
        let view = View::new(me, &Program::of(&byte), &Program::of(&every)).unwrap();
        let mut seen = [9; 4];
        let read = file.read(Access::new(&view, 0), &mut Room::Bytes(&mut seen));
        assert_eq!(read.into_result().unwrap(), 4);
        assert_eq!(seen, [own[0], 0, own[2], own[1]]);
        file.close().unwrap();
    });
}

/// What was written is counted where the lock cannot be given back.
#[test]
fn a_failed_unlock_loses_no_outcome() {
    let memory = Memory::default().with_locks();
    ranks(1, |team| {
        let file = open(team, Arc::new(memory.clone()), Hints::default(), 0).unwrap();
        memory.fail_unlock(Errno::IO);
        assert_eq!(file.set_atomic(true).unwrap_err().kind(), Kind::Io);
        file.set_atomic(true).unwrap();
        memory.fail_unlock(Errno::IO);
        let view = View::bytes();
        let written = file.write(Access::new(&view, 0), &Data::Bytes(b"abcd"));
        assert_eq!(written.bytes, 4);
        assert_eq!(written.error.unwrap().kind(), Kind::Io);
        file.close().unwrap();
    });
}

fn opening(storage: &Arc<dyn Storage>, mode: Mode, path: &str) -> Opening {
    Opening {
        storage: Arc::clone(storage),
        path: PathBuf::from(path),
        mode,
        hints: Hints::default(),
        site: Site {
            host: 0,
            is_only_host: true,
        },
    }
}

#[test]
fn modes_that_no_file_has_are_refused() {
    for mode in [
        Mode::CREATE,
        Mode::READ | Mode::CREATE,
        Mode::READ | Mode::EXCLUSIVE,
        both() | Mode::SEQUENTIAL,
    ] {
        assert_eq!(mode.check().unwrap_err().kind(), Kind::Mode, "{mode:?}");
    }
    (Mode::READ | Mode::SEQUENTIAL).check().unwrap();
    (Mode::WRITE | Mode::CREATE | Mode::EXCLUSIVE)
        .check()
        .unwrap();
}

#[test]
fn sizes_are_changed_by_all() {
    let memory = Memory::default();
    ranks(2, |team| {
        let me = team.me();
        let file = open(team, Arc::new(memory.clone()), Hints::default(), 0).unwrap();
        file.set_size(Ok(10)).unwrap();
        assert_eq!(file.size().unwrap(), 10);
        // The file system cannot allocate: zeros are written.
        file.preallocate(Ok(3 << 20)).unwrap();
        assert_eq!(file.size().unwrap(), 3 << 20);
        file.preallocate(Ok(5)).unwrap();
        assert_eq!(file.size().unwrap(), 3 << 20);
        let different = file.set_size(Ok(20 + me as u64)).unwrap_err();
        assert_eq!(different.kind(), Kind::NotSame);
        assert_eq!(file.size().unwrap(), 3 << 20);
        let locks = file.set_atomic(true).unwrap_err().to_string();
        let names = locks.contains("file system without locks") || locks.contains("another");
        assert!(names && !file.is_atomic(), "{locks}");
        file.close().unwrap();
    });
}

#[test]
fn the_shared_pointer_is_one_for_all() {
    let memory = Memory::default();
    let all = ranks(3, |team| {
        let me = team.me() as u64;
        let file = open(team, Arc::new(memory.clone()), Hints::default(), 0).unwrap();
        let mut own: Vec<u64> = (0..20).map(|_| file.advance_shared(3).unwrap()).collect();
        file.team().barrier().unwrap();
        assert_eq!(file.shared_position().unwrap(), 180);
        file.set_shared_position(Ok(1000)).unwrap();
        let start = file.advance_ordered(me + 1).unwrap();
        assert_eq!(start, 1000 + [0, 1, 3][me as usize]);
        file.team().barrier().unwrap();
        assert_eq!(file.shared_position().unwrap(), 1006);
        // Each view begins at 0, whatever the pointer was before.
        for view in 0..5 {
            file.agree_on_view(Ok(()), view, "view").unwrap();
            file.team().barrier().unwrap();
            assert_eq!(file.shared_position().unwrap(), 0, "view {view}");
            file.team().barrier().unwrap();
            file.advance_shared(view + 1).unwrap();
        }
        let wrong = file.set_shared_position(Ok(me)).unwrap_err();
        assert_eq!(wrong.kind(), Kind::NotSame);
        file.close().unwrap();
        own.sort_unstable();
        own
    });
    let mut all: Vec<u64> = all.into_iter().flatten().collect();
    all.sort_unstable();
    assert!(all.into_iter().eq((0..60).map(|number| number * 3)));
}

/// In atomic mode readers see a write as a whole, of members that write the same bytes at the same time.
#[test]
fn atomic_accesses_are_whole() {
    const LEN: usize = 3 << 16;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let storages: [Arc<dyn Storage>; 2] =
        [Arc::new(Unix), Arc::new(Memory::default().with_locks())];
    for storage in storages {
        ranks(3, |team| {
            let me = team.me();
            let mode = both() | Mode::CREATE;
            let defaults = (Hints::default(), 0);
            let file = open_as(team, Arc::clone(&storage), mode, path.clone(), defaults).unwrap();
            file.set_atomic(true).unwrap();
            let view = View::bytes();
            let access = Access::new(&view, 0);
            file.write_all(access, &Data::Bytes(&[9; LEN]))
                .into_result()
                .unwrap();
            file.team().barrier().unwrap();
            for round in 0..10 {
                let own = vec![(me * 16 + round) as u8; LEN];
                let written = file.write(access, &Data::Bytes(&own));
                assert_eq!(written.into_result().unwrap(), LEN as u64);
                let mut seen = vec![0; LEN];
                let read = file.read(access, &mut Room::Bytes(&mut seen));
                assert_eq!(read.into_result().unwrap(), LEN as u64);
                assert!(seen.iter().all(|byte| *byte == seen[0]));
            }
            file.set_atomic(false).unwrap();
            file.close().unwrap();
        });
    }
}

/// Calls on files of the system, and what a mode does not allow.
#[test]
fn files_of_the_system_are_read_and_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    ranks(2, |team| {
        let me = team.me() as u64;
        let storage: Arc<dyn Storage> = Arc::new(Unix);
        let open = |mode: Mode, path: PathBuf| {
            let team = team.duplicate().unwrap();
            open_as(
                team,
                Arc::clone(&storage),
                mode,
                path,
                (Hints::default(), 0),
            )
        };
        let view = View::bytes();
        let file = open(Mode::WRITE | Mode::CREATE, path.clone()).unwrap();
        let access = Access::new(&view, me * 4);
        file.write_all(access, &Data::Bytes(b"abcd"))
            .into_result()
            .unwrap();
        let mut seen = [0; 8];
        let read = file.read(access, &mut Room::Bytes(&mut seen)).into_result();
        assert_eq!(read.unwrap_err().kind(), Kind::Access);
        file.sync().unwrap();
        file.preallocate(Ok(100)).unwrap();
        assert_eq!(file.size().unwrap(), 100);
        file.set_size(Ok(6)).unwrap();
        file.close().unwrap();
        drop(file);
        let file = open(Mode::READ, path.clone()).unwrap();
        let read = file.read_all(Access::new(&view, 0), &mut Room::Bytes(&mut seen));
        assert_eq!(read.into_result().unwrap(), 6);
        assert_eq!(seen[..6], *b"abcdab");
        let refused = file.write(access, &Data::Bytes(b"x")).into_result();
        assert_eq!(refused.unwrap_err().kind(), Kind::ReadOnly);
        file.close().unwrap();
        let folder = open(Mode::READ, folder.path().to_owned());
        assert_eq!(folder.unwrap_err().kind(), Kind::BadFile);
        let missing = open(Mode::READ, path.join("below"));
        assert_eq!(missing.unwrap_err().kind(), Kind::BadFile);
    });
}
