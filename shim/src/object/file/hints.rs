//! The info of files (MPI-5.0, section 14.2.8).

use std::path::Path;

use tagwire_files::Hints;

use crate::error::Result;
use crate::object::info::{Entries, MAX_VALUE};

/// Hints that are kept and given back, and not used: those of the standard, and those of ROMIO that programs set.
const KEPT: &[&str] = &[
    "access_style",
    "cb_block_size",
    "chunked",
    "chunked_item",
    "chunked_size",
    "collective_buffering",
    "ind_wr_buffer_size",
    "io_node_list",
    "nb_proc",
    "num_io_nodes",
    "romio_no_indep_rw",
    "striping_factor",
];

/// Takes the hints of an info that a call was given. Those that are unknown, or have no good value, are ignored.
///
/// # Errors
/// None where the values have come through an info.
pub(crate) fn set(hints: &mut Hints, kept: &mut Entries, given: &Entries) -> Result {
    for number in 0..given.len() {
        let Some((key, value)) = given
            .key(number)
            .and_then(|key| Some((key, given.get(key)?)))
        else {
            continue;
        };
        hints.set(key, value);
        if KEPT.contains(&key) {
            kept.set(key, value)?;
        }
    }
    Ok(())
}

/// Returns the hints that are in use, with those that are kept, and the name of the file where it is text that an info holds.
///
/// # Errors
/// `MPI_ERR_INFO_VALUE` where a value is too long.
pub(crate) fn all(hints: &Hints, path: &Path, kept: &Entries) -> Result<Entries> {
    let mut all = Entries::default();
    if let Some(name) = path.to_str().filter(|name| name.len() < MAX_VALUE) {
        all.set("filename", name)?;
    }
    for (key, value) in hints.all() {
        all.set(key, &value)?;
    }
    all.extend(kept);
    Ok(all)
}
