//! File pointers (MPI-5.0, sections 14.4.3 and 14.4.4).

use super::on_file;
use crate::abi;
use crate::error::{Class, Error, Result};
use crate::object::file::File;
use crate::process::Process;
use crate::raw::Ref;

/// Where an offset is counted from.
mod whence {
    /// `MPI_SEEK_CUR`.
    pub(super) const CURRENT: i32 = 401;
    /// `MPI_SEEK_END`.
    pub(super) const END: i32 = 402;
    /// `MPI_SEEK_SET`.
    pub(super) const SET: i32 = 403;
}

/// Returns where a call wants a file pointer, in etypes, which is at `current` now.
///
/// # Errors
/// `MPI_ERR_ARG` where that is before the beginning.
fn wanted(
    file: &File,
    (offset, whence): (i64, i32),
    current: impl FnOnce() -> Result<i64>,
) -> Result<i64> {
    let from = match whence {
        whence::SET => 0,
        whence::CURRENT => current()?,
        whence::END => file.viewed().end(file.file.size()?)?,
        _ => {
            let text = format!("{whence} says not where the offset is counted from");
            return Err(Error::new(Class::Arg, text));
        }
    };
    let position = from.checked_add(offset).filter(|position| *position >= 0);
    position.ok_or_else(|| {
        let text = format!("the offset {offset} leads to before the file from {from}");
        Error::new(Class::Arg, text)
    })
}

/// `MPI_File_seek`.
pub fn file_seek(process: &Process, file: abi::File, offset: i64, whence: i32) -> Result {
    on_file(process, file, |file| {
        file.check_seekable()?;
        let position = wanted(&file, (offset, whence), || Ok(file.position()))?;
        file.set_position(position);
        Ok(())
    })
}

/// `MPI_File_get_position`.
pub fn file_get_position(process: &Process, file: abi::File, offset: Ref<i64>) -> Result {
    on_file(process, file, |file| {
        file.check_seekable()?;
        offset.set(file.position());
        Ok(())
    })
}

/// `MPI_File_get_byte_offset`.
pub fn file_get_byte_offset(
    process: &Process,
    file: abi::File,
    offset: i64,
    displacement: Ref<i64>,
) -> Result {
    on_file(process, file, |file| {
        let viewed = file.viewed();
        let found = viewed.view.offset_of(viewed.position(offset)?)?;
        displacement.set(found as i64);
        Ok(())
    })
}

/// Returns where the shared file pointer is, in etypes.
fn shared(file: &File) -> Result<i64> {
    let position = i64::try_from(file.file.shared_position()?);
    position.map_err(|_| Error::new(Class::Arg, "the shared file pointer is too far"))
}

/// `MPI_File_seek_shared`.
pub fn file_seek_shared(process: &Process, file: abi::File, offset: i64, whence: i32) -> Result {
    on_file(process, file, |file| {
        // No process moves it while another looks where it is.
        file.file.agree(Ok(()), whence as u64, "way to count")?;
        let position = file
            .check_seekable()
            .and_then(|()| wanted(&file, (offset, whence), || shared(&file)));
        let value = position.as_ref().ok().copied().unwrap_or(0) as u64;
        let wrong = || tagwire_files::Error::Argument("the arguments are wrong".to_owned());
        let told = position.as_ref().map(|_| value).map_err(|_| wrong());
        let set = file.file.set_shared_position(told);
        position?;
        Ok(set?)
    })
}

/// `MPI_File_get_position_shared`.
pub fn file_get_position_shared(process: &Process, file: abi::File, offset: Ref<i64>) -> Result {
    on_file(process, file, |file| {
        file.check_seekable()?;
        offset.set(shared(&file)?);
        Ok(())
    })
}
