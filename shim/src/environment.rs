//! What can be asked of the library.

use crate::{Error, State, raw};

/// `MPI_Get_version`.
///
/// # Errors
///
/// None.
pub fn version(_: &State, version: raw::Ref<i32>, subversion: raw::Ref<i32>) -> Result<(), Error> {
    version.set(5);
    subversion.set(0);
    Ok(())
}
