//! Opening, closing, and what is asked of files (MPI-5.0, sections 14.2 and 14.6).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use tagwire_files::{self as files, Hints, Mode, Opening, Storage, Unix};

use super::on_file;
use crate::abi::{self, Comm, Group, Info};
use crate::error::{Class, Error, On, Result};
use crate::object::file::view::Viewed;
use crate::object::file::{File, hints};
use crate::object::group::Ranks;
use crate::object::info::Entries;
use crate::process::Process;
use crate::raw::{Ref, Text};

/// Access modes (MPI-5.0, section 14.2.1).
mod amode {
    pub(super) const APPEND: i32 = 1;
    pub(super) const CREATE: i32 = 2;
    pub(super) const DELETE_ON_CLOSE: i32 = 4;
    pub(super) const EXCL: i32 = 8;
    pub(super) const RDONLY: i32 = 16;
    pub(super) const RDWR: i32 = 32;
    pub(super) const SEQUENTIAL: i32 = 64;
    pub(super) const UNIQUE_OPEN: i32 = 128;
    pub(super) const WRONLY: i32 = 256;
}

/// What file systems are called in front of names, as ROMIO takes them: all are the system's.
const PREFIXES: [&str; 2] = ["ufs:", "nfs:"];

/// Returns the mode of a number.
///
/// # Errors
/// `MPI_ERR_AMODE` where it is none.
fn mode_of(number: i32) -> Result<Mode> {
    let wrong = |text: String| Err(Error::new(Class::Amode, text));
    let mut mode = match number & (amode::RDONLY | amode::RDWR | amode::WRONLY) {
        amode::RDONLY => Mode::READ,
        amode::RDWR => Mode::READ | Mode::WRITE,
        amode::WRONLY => Mode::WRITE,
        _ => {
            return wrong(
                "the mode has to have one of MPI_MODE_RDONLY, MPI_MODE_RDWR and MPI_MODE_WRONLY"
                    .to_owned(),
            );
        }
    };
    let mut left = number & !(amode::RDONLY | amode::RDWR | amode::WRONLY | amode::UNIQUE_OPEN);
    for (bit, means) in [
        (amode::APPEND, Mode::APPEND),
        (amode::CREATE, Mode::CREATE),
        (amode::DELETE_ON_CLOSE, Mode::DELETE_ON_CLOSE),
        (amode::EXCL, Mode::EXCLUSIVE),
        (amode::SEQUENTIAL, Mode::SEQUENTIAL),
    ] {
        if left & bit != 0 {
            mode = mode | means;
            left &= !bit;
        }
    }
    match left {
        0 => mode.check()?,
        _ => return wrong(format!("{number} is no mode of files")),
    }
    Ok(mode)
}

/// Returns the path of a name.
fn path_of(name: Text) -> Result<PathBuf> {
    let name = name.bytes()?;
    let mut prefixes = PREFIXES.iter();
    let path = prefixes.find_map(|prefix| name.strip_prefix(prefix.as_bytes()));
    Ok(PathBuf::from(OsStr::from_bytes(path.unwrap_or(&name))))
}

/// Returns the hints of an info, and those that are kept.
fn hints_of(process: &Process, info: Info) -> Result<(Hints, Entries)> {
    let (mut known, mut kept) = (Hints::default(), Entries::default());
    if info != Info::NULL {
        process
            .early
            .infos
            .read(info, |given| hints::set(&mut known, &mut kept, given))?;
    }
    Ok((known, kept))
}

/// `MPI_File_open`. Its errors are raised on `MPI_FILE_NULL`.
pub fn file_open(
    process: &Process,
    comm: Comm,
    name: Text,
    amode: i32,
    info: Info,
    file: Ref<abi::File>,
) -> Result {
    file.set(abi::File::NULL);
    let opened = open(process, comm, name, amode, info);
    file.set(opened.map_err(|error| error.on(On::File(abi::File::NULL)))?);
    Ok(())
}

fn open(process: &Process, comm: Comm, name: Text, amode: i32, info: Info) -> Result<abi::File> {
    let comm = process.comm(comm)?;
    comm.check_intra()?;
    let wanted = mode_of(amode).and_then(|mode| {
        let (hints, kept) = hints_of(process, info)?;
        let opening = Opening {
            storage: Arc::new(Unix),
            path: path_of(name)?,
            mode,
            hints,
            site: process.site(),
        };
        Ok((opening, kept))
    });
    let team = comm.team.duplicate()?;
    let (opened, kept) = match wanted {
        Ok((opening, kept)) => (files::File::open(team, Ok(opening)), kept),
        // The others open nothing then.
        Err(error) => {
            let text = error.text().to_owned();
            let told = match error.code() == Class::Amode as i32 {
                true => files::Error::Mode(text),
                false => files::Error::Argument(text),
            };
            let _ = files::File::open(team, Err(told));
            return Err(error);
        }
    };
    let opened = opened?;
    let end = match opened.mode().contains(Mode::APPEND) {
        true => opened.begin_at_end()?,
        false => 0,
    };
    let viewed = Viewed::initial(&process.types)?;
    let of_program = (amode, comm.session());
    let handler = process.files.initial();
    let handle = process
        .files
        .enter(File::new(opened, of_program, (viewed, kept), handler))?;
    process.files.find(handle)?.set_position(end as i64);
    Ok(handle)
}

/// `MPI_File_close`.
pub fn file_close(process: &Process, file: Ref<abi::File>) -> Result {
    let handle = file.get()?;
    let closed = on_file(process, handle, |open| {
        open.check_no_split()?;
        let closed = open.file.close().map_err(Error::from);
        process.files.remove(handle, closed.is_err());
        file.set(abi::File::NULL);
        closed
    });
    closed.map_err(|error| error.on(On::File(handle)))
}

/// `MPI_File_delete`. Its errors are raised on `MPI_FILE_NULL`.
pub fn file_delete(process: &Process, name: Text, info: Info) -> Result {
    let deleted = hints_of(process, info).and_then(|_| {
        let path = path_of(name)?;
        let removed = Unix.remove(&path);
        removed.map_err(|errno| {
            Error::from(files::Error::System {
                call: "unlink",
                path,
                errno,
                member: None,
            })
        })
    });
    deleted.map_err(|error| error.on(On::File(abi::File::NULL)))
}

/// Returns a size that a call is given.
///
/// # Errors
/// `MPI_ERR_ARG` where it is negative.
fn size_of(size: i64) -> files::Result<u64> {
    u64::try_from(size).map_err(|_| files::Error::Argument(format!("the size is {size}")))
}

/// `MPI_File_set_size`.
pub fn file_set_size(process: &Process, file: abi::File, size: i64) -> Result {
    on_file(process, file, |file| {
        file.check_seekable()?;
        Ok(file.file.set_size(size_of(size))?)
    })
}

/// `MPI_File_preallocate`.
pub fn file_preallocate(process: &Process, file: abi::File, size: i64) -> Result {
    on_file(process, file, |file| {
        file.check_seekable()?;
        Ok(file.file.preallocate(size_of(size))?)
    })
}

/// `MPI_File_get_size`.
pub fn file_get_size(process: &Process, file: abi::File, size: Ref<i64>) -> Result {
    on_file(process, file, |file| {
        size.set(file.file.size()? as i64);
        Ok(())
    })
}

/// `MPI_File_get_group`.
pub fn file_get_group(process: &Process, file: abi::File, group: Ref<Group>) -> Result {
    group.set(Group::NULL);
    on_file(process, file, |file| {
        let members = file.file.team().members();
        let ranks = (0..members.len()).filter_map(|member| members.rank(member));
        let ranks = Ranks::new(ranks.collect(), file.session());
        group.set(process.enter_group(ranks)?);
        Ok(())
    })
}

/// `MPI_File_get_amode`.
pub fn file_get_amode(process: &Process, file: abi::File, amode: Ref<i32>) -> Result {
    on_file(process, file, |file| {
        amode.set(file.amode());
        Ok(())
    })
}

/// `MPI_File_set_info`.
pub fn file_set_info(process: &Process, file: abi::File, info: Info) -> Result {
    on_file(process, file, |file| {
        let infos = &process.early.infos;
        infos.read(info, |given| file.set_info(given))
    })
}

/// `MPI_File_get_info`.
pub fn file_get_info(process: &Process, file: abi::File, info: Ref<Info>) -> Result {
    info.set(Info::NULL);
    on_file(process, file, |file| {
        info.set(process.early.infos.enter(file.info()?)?);
        Ok(())
    })
}

/// `MPI_File_set_atomicity`.
pub fn file_set_atomicity(process: &Process, file: abi::File, flag: i32) -> Result {
    on_file(process, file, |file| Ok(file.file.set_atomic(flag != 0)?))
}

/// `MPI_File_get_atomicity`.
pub fn file_get_atomicity(process: &Process, file: abi::File, flag: Ref<i32>) -> Result {
    on_file(process, file, |file| {
        flag.set(i32::from(file.file.is_atomic()));
        Ok(())
    })
}

/// `MPI_File_sync`.
pub fn file_sync(process: &Process, file: abi::File) -> Result {
    on_file(process, file, |file| Ok(file.file.sync()?))
}
