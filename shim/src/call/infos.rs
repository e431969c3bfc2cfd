//! Making infos, and what is asked of them (MPI-5.0, chapter 10).
//!
//! All but those of communicators may be called at any time.

use crate::abi::{Comm, Info};
use crate::call::on_comm;
use crate::error::{Class, Error, Result};
use crate::library::Library;
use crate::object::info::{Entries, MAX_KEY, checked, environment};
use crate::process::Process;
use crate::raw::{Pointer, Ref, Text, TextOut};

/// `MPI_Info_create`.
pub fn info_create(library: &Library, info: Ref<Info>) -> Result {
    let made = library.objects().infos.enter(Entries::default())?;
    info.set(made);
    Ok(())
}

/// `MPI_Info_create_env`. The arguments of the program are taken from the system.
pub fn info_create_env(library: &Library, _argc: i32, _argv: Pointer, info: Ref<Info>) -> Result {
    let made = library.objects().infos.enter(environment())?;
    info.set(made);
    Ok(())
}

/// `MPI_Info_dup`.
pub fn info_dup(library: &Library, info: Info, new: Ref<Info>) -> Result {
    let early = library.objects();
    let entries = early.infos.read(info, |entries| Ok(entries.clone()))?;
    new.set(early.infos.enter(entries)?);
    Ok(())
}

/// `MPI_Info_free`.
pub fn info_free(library: &Library, info: Ref<Info>) -> Result {
    library.objects().infos.free(info.get()?)?;
    info.set(Info::NULL);
    Ok(())
}

/// `MPI_Info_set`.
pub fn info_set(library: &Library, info: Info, key: Text, value: Text) -> Result {
    let (key, value) = (key.get()?, value.get()?);
    let early = library.objects();
    early
        .infos
        .change(info, |entries| entries.set(&key, &value))
}

/// `MPI_Info_delete`.
pub fn info_delete(library: &Library, info: Info, key: Text) -> Result {
    let key = key.get()?;
    checked(&key)?;
    let early = library.objects();
    early.infos.change(info, |entries| entries.remove(&key))
}

/// Calls `found` with the value of a key, where there is one, and sets the flag.
fn look_up(
    library: &Library,
    info: Info,
    key: Text,
    flag: Ref<i32>,
    found: impl FnOnce(&str),
) -> Result {
    let key = key.get()?;
    checked(&key)?;
    library.objects().infos.read(info, |entries| {
        let value = entries.get(&key);
        flag.set(i32::from(value.is_some()));
        if let Some(value) = value {
            found(value);
        }
        Ok(())
    })
}

/// `MPI_Info_get`. The memory has a byte more than `length` says.
pub fn info_get(
    library: &Library,
    info: Info,
    key: Text,
    length: i32,
    value: TextOut,
    flag: Ref<i32>,
) -> Result {
    let size = usize::try_from(length);
    let size = size.map_err(|_| Error::new(Class::Arg, format!("the length is {length}")))?;
    look_up(library, info, key, flag, |found| {
        value.set(found, size + 1);
    })
}

/// `MPI_Info_get_string`.
pub fn info_get_string(
    library: &Library,
    info: Info,
    key: Text,
    length: Ref<i32>,
    value: TextOut,
    flag: Ref<i32>,
) -> Result {
    let given = length.get()?;
    let size = usize::try_from(given);
    let size = size.map_err(|_| Error::new(Class::Arg, format!("the length is {given}")))?;
    look_up(library, info, key, flag, |found| {
        value.set(found, size);
        length.set(found.len() as i32 + 1);
    })
}

/// `MPI_Info_get_valuelen`.
pub fn info_get_valuelen(
    library: &Library,
    info: Info,
    key: Text,
    length: Ref<i32>,
    flag: Ref<i32>,
) -> Result {
    look_up(library, info, key, flag, |found| {
        length.set(found.len() as i32);
    })
}

/// `MPI_Info_get_nkeys`.
pub fn info_get_nkeys(library: &Library, info: Info, count: Ref<i32>) -> Result {
    library.objects().infos.read(info, |entries| {
        count.set(entries.len() as i32);
        Ok(())
    })
}

/// `MPI_Info_get_nthkey`.
pub fn info_get_nthkey(library: &Library, info: Info, number: i32, key: TextOut) -> Result {
    library.objects().infos.read(info, |entries| {
        let found = usize::try_from(number).ok();
        let found = found.and_then(|number| entries.key(number));
        let found = found.ok_or_else(|| {
            let text = format!("there is no key {number} among {}", entries.len());
            Error::new(Class::Arg, text)
        })?;
        key.set(found, MAX_KEY);
        Ok(())
    })
}

/// `MPI_Comm_set_info`. Hints that are known are kept; others are ignored.
pub fn comm_set_info(process: &Process, comm: Comm, info: Info) -> Result {
    on_comm(process, comm, |comm| {
        let hints = process.early.infos.hints(info)?;
        comm.hints().extend(&hints);
        Ok(())
    })
}

/// `MPI_Comm_get_info`.
pub fn comm_get_info(process: &Process, comm: Comm, info: Ref<Info>) -> Result {
    on_comm(process, comm, |comm| {
        let hints = comm.hints().clone();
        info.set(process.early.infos.enter(hints)?);
        Ok(())
    })
}
