//! What an executable file says to the loader: ELF of 64 bits, little-endian.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A larger table is none that a linker has written.
const TABLE: u64 = 1 << 20;

/// As long may the name of a file be.
const NAME: u64 = 4096;

const SEGMENT: usize = 56;
const SEGMENT_LOAD: u64 = 1;
const SEGMENT_DYNAMIC: u64 = 2;
const SEGMENT_INTERPRETER: u64 = 3;
const SEGMENT_NOTE: u64 = 4;

const DYNAMIC: usize = 16;
const DYNAMIC_NEEDED: u64 = 1;
const DYNAMIC_STRINGS: u64 = 5;
const DYNAMIC_PATH: u64 = 15;
const DYNAMIC_RUN_PATH: u64 = 29;

/// What the loader is told.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Executable {
    /// The loader.
    pub(super) interpreter: PathBuf,
    /// The names of the shared libraries that it needs itself.
    pub(super) needed: Vec<String>,
    /// Whether it is looked for libraries in a path of its own (`DT_RPATH`) before `LD_LIBRARY_PATH`.
    pub(super) has_first_path: bool,
}

/// Returns whether a file has a note of this name.
pub(super) fn has_note(path: &Path, name: &str) -> bool {
    File::open(path).is_ok_and(|file| find_note(reader(&file), name).unwrap_or(false))
}

/// Returns what reads bytes of a file: an offset and a length give as many, or fewer at the end.
fn reader(file: &File) -> impl Fn(u64, u64) -> Option<Vec<u8>> {
    move |offset, length| {
        let mut bytes = vec![0; usize::try_from(length.min(TABLE)).ok()?];
        let mut filled = 0;
        while filled < bytes.len() {
            let place = offset.checked_add(filled as u64)?;
            match file.read_at(&mut bytes[filled..], place).ok()? {
                0 => break,
                read => filled += read,
            }
        }
        bytes.truncate(filled);
        Some(bytes)
    }
}

/// Reads the table of segments. `None` where it is no ELF file of this kind.
fn segments(read: impl Fn(u64, u64) -> Option<Vec<u8>>) -> Option<Vec<Segment>> {
    let header = read(0, 64)?;
    // The magic number, 64 bits, little-endian.
    if !header.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let (table, count) = (number(&header, 32, 8)?, number(&header, 56, 2)?);
    if number(&header, 54, 2)? != SEGMENT as u64 {
        return None;
    }
    let table = read(table, count * SEGMENT as u64)?;
    table.chunks_exact(SEGMENT).map(segment).collect()
}

fn find_note(read: impl Fn(u64, u64) -> Option<Vec<u8>>, name: &str) -> Option<bool> {
    let segments = segments(&read)?;
    let notes = segments.iter().filter(|part| part.kind == SEGMENT_NOTE);
    for part in notes {
        let bytes = read(part.offset, part.length)?;
        let mut rest = bytes.as_slice();
        while let (Some(length), Some(content)) = (number(rest, 0, 4), number(rest, 4, 4)) {
            let (start, length) = (12, usize::try_from(length).ok()?);
            let found = rest.get(start..start + length)?;
            if found.strip_suffix(b"\0") == Some(name.as_bytes()) {
                return Some(true);
            }
            let content = usize::try_from(content).ok()?;
            let end = start + length.next_multiple_of(4) + content.next_multiple_of(4);
            rest = rest.get(end..).unwrap_or_default();
        }
    }
    Some(false)
}

/// A part of a file that the loader looks at.
struct Segment {
    kind: u64,
    offset: u64,
    address: u64,
    length: u64,
}

impl Executable {
    /// Reads a file. `None` where it is no such executable, or one without a loader.
    pub(super) fn read(path: &Path) -> Option<Self> {
        let file = File::open(path).ok()?;
        Self::parse(reader(&file))
    }

    /// Parses what `read` returns for an offset and a length: as many bytes, or fewer at the end.
    fn parse(read: impl Fn(u64, u64) -> Option<Vec<u8>>) -> Option<Self> {
        let segments = segments(&read)?;
        let of = |kind| segments.iter().find(|segment| segment.kind == kind);

        let interpreter = of(SEGMENT_INTERPRETER)?;
        let interpreter = text(read(interpreter.offset, interpreter.length.min(NAME))?);

        let dynamic = of(SEGMENT_DYNAMIC)?;
        let dynamic = read(dynamic.offset, dynamic.length)?;
        let entries: Vec<(u64, u64)> = dynamic
            .chunks_exact(DYNAMIC)
            .map(|entry| Some((number(entry, 0, 8)?, number(entry, 8, 8)?)))
            .collect::<Option<_>>()?;
        let strings = entries.iter().find(|(tag, _)| *tag == DYNAMIC_STRINGS)?.1;
        let strings = segments.iter().find_map(|segment| {
            let inside = strings.checked_sub(segment.address)?;
            let is_there = segment.kind == SEGMENT_LOAD && inside < segment.length;
            is_there.then(|| segment.offset.checked_add(inside))?
        })?;
        let needed = entries.iter().filter(|(tag, _)| *tag == DYNAMIC_NEEDED);
        let needed = needed.map(|(_, name)| {
            let name = text(read(strings.checked_add(*name)?, NAME)?);
            Some(name.to_string_lossy().into_owned())
        });
        let has = |wanted| entries.iter().any(|(tag, _)| *tag == wanted);
        Some(Self {
            interpreter: interpreter.into(),
            needed: needed.collect::<Option<_>>()?,
            has_first_path: has(DYNAMIC_PATH) && !has(DYNAMIC_RUN_PATH),
        })
    }
}

fn segment(bytes: &[u8]) -> Option<Segment> {
    Some(Segment {
        kind: number(bytes, 0, 4)?,
        offset: number(bytes, 8, 8)?,
        address: number(bytes, 16, 8)?,
        length: number(bytes, 32, 8)?,
    })
}

/// Returns a number of `length` bytes.
fn number(bytes: &[u8], start: usize, length: usize) -> Option<u64> {
    let bytes = bytes.get(start..start.checked_add(length)?)?;
    let mut number = [0; 8];
    number.get_mut(..length)?.copy_from_slice(bytes);
    Some(u64::from_le_bytes(number))
}

/// Returns what is before the first zero.
fn text(mut bytes: Vec<u8>) -> OsString {
    let end = bytes.iter().position(|byte| *byte == 0);
    bytes.truncate(end.unwrap_or(bytes.len()));
    OsString::from_vec(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(bytes: &[u8]) -> Option<Executable> {
        Executable::parse(of_bytes(bytes))
    }

    fn of_bytes(bytes: &[u8]) -> impl Fn(u64, u64) -> Option<Vec<u8>> {
        |offset, length| {
            let start = usize::try_from(offset).ok()?.min(bytes.len());
            let rest = &bytes[start..];
            let length = usize::try_from(length.min(TABLE)).ok()?;
            Some(rest[..length.min(rest.len())].to_vec())
        }
    }

    /// Returns an executable that needs a library, its dynamic segment at the end.
    fn made() -> Vec<u8> {
        let mut bytes = b"\x7fELF\x02\x01".to_vec();
        bytes.resize(64, 0);
        bytes[32] = 64;
        bytes[54] = SEGMENT as u8;
        bytes[56] = 3;
        let (text, dynamic) = (64 + 3 * SEGMENT as u64, 64 + 3 * SEGMENT as u64 + 32);
        for (kind, offset, address, length) in [
            (SEGMENT_INTERPRETER, text, 0, 7),
            (SEGMENT_LOAD, 0, 0x1000, 512),
            (SEGMENT_DYNAMIC, dynamic, 0, 48),
        ] {
            for number in [kind, offset, address, 0, length, 0, 0] {
                bytes.extend(number.to_le_bytes());
            }
        }
        bytes.extend(b"/ld.so\0\0libmpi.so.12\0");
        bytes.resize(dynamic as usize, 0);
        for number in [DYNAMIC_NEEDED, 8, DYNAMIC_STRINGS, 0x1000 + text, 0, 0] {
            bytes.extend(number.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn needed_libraries_are_read() {
        let expected = Executable {
            interpreter: "/ld.so".into(),
            needed: vec!["libmpi.so.12".to_owned()],
            has_first_path: false,
        };
        assert_eq!(parse(&made()), Some(expected));
        let own = Executable::read(&std::env::current_exe().unwrap()).unwrap();
        assert!(own.interpreter.exists(), "{own:?}");
        assert!(own.needed.iter().any(|name| name.starts_with("libc.")));
    }

    #[test]
    fn a_run_path_that_comes_first_is_seen() {
        let mut made = made();
        // The name of the library becomes a path, which is as good.
        let dynamic = made.len() - 3 * DYNAMIC;
        made[dynamic] = DYNAMIC_PATH as u8;
        assert!(parse(&made).unwrap().has_first_path);
        made[dynamic] = DYNAMIC_RUN_PATH as u8;
        assert!(!parse(&made).unwrap().has_first_path);
    }

    #[test]
    fn notes_are_found_by_their_names() {
        let mut made = made();
        let notes = made.len() as u64;
        for (name, content) in [(&b"GNU\0"[..], 3), (b"Tagwire\0", 0)] {
            for number in [name.len() as u32, content, 1] {
                made.extend(number.to_le_bytes());
            }
            made.extend(name);
            made.resize(made.len() + content.next_multiple_of(4) as usize, 7);
        }
        // In place of the interpreter.
        let length = made.len() as u64 - notes;
        for (place, number) in [(0, SEGMENT_NOTE), (8, notes), (32, length)] {
            made[64 + place..64 + place + 4].copy_from_slice(&(number as u32).to_le_bytes());
        }
        let find = |bytes: &[u8], name| find_note(of_bytes(bytes), name);
        assert_eq!(find(&made, "Tagwire"), Some(true));
        assert_eq!(find(&made, "GNU"), Some(true));
        assert_eq!(find(&made, "Tag"), Some(false));
        for length in 0..made.len() {
            find(&made[..length], "Tagwire");
        }
        for place in 0..made.len() {
            let mut broken = made.clone();
            broken[place] = 0xff;
            find(&broken, "Tagwire");
        }
    }

    #[test]
    fn other_files_are_no_executables() {
        assert_eq!(Executable::read(Path::new("/dev/null")), None);
        assert_eq!(parse(b"#!/bin/sh\n"), None);
        let made = made();
        for length in 0..made.len() {
            // What is cut off is not there: no panic, no other library.
            let names = parse(&made[..length]).map_or(Vec::new(), |read| read.needed);
            assert!(
                names
                    .iter()
                    .all(|name| "libmpi.so.12".starts_with(name.as_str()))
            );
        }
        for place in 0..made.len() {
            for value in [0, 0x7f, 0xff] {
                let mut broken = made.clone();
                broken[place] = value;
                parse(&broken);
            }
        }
    }
}
