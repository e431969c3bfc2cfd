//! The info of windows (MPI-5.0, section 12.2.1).

use crate::error::Result;
use crate::object::info::Entries;

/// The parts of a shared window need not follow each other.
pub(crate) const NONCONTIGUOUS: &str = "alloc_shared_noncontig";

/// Keys that are known, with their values where a program sets none. What else is set is ignored. None of them is needed: any mix of
/// operations and types is right, and accumulates have the order that is the default.
const KNOWN: &[(&str, &str)] = &[
    ("no_locks", "false"),
    ("accumulate_ordering", "rar,raw,war,waw"),
    ("accumulate_ops", "same_op_no_op"),
    ("mpi_accumulate_granularity", "0"),
    ("same_size", "false"),
    ("same_disp_unit", "false"),
    (NONCONTIGUOUS, "false"),
];

/// Returns what a window has that was given no info.
pub(crate) fn initial() -> Entries {
    let mut entries = Entries::default();
    for (key, value) in KNOWN {
        let set = entries.set(key, value);
        debug_assert!(set.is_ok(), "keys of the standard");
    }
    entries
}

/// Sets the values that a program gives when it makes a window.
///
/// # Errors
/// None where the values have come through an info.
pub(crate) fn begin(entries: &mut Entries, given: &Entries) -> Result {
    if let Some(value) = given.get(NONCONTIGUOUS) {
        entries.set(NONCONTIGUOUS, value)?;
    }
    set(entries, given)
}

/// Sets the values that a program gives later: how the memory lies is decided by then.
///
/// # Errors
/// As [`begin`].
pub(crate) fn set(entries: &mut Entries, given: &Entries) -> Result {
    for (key, _) in KNOWN.iter().filter(|(key, _)| *key != NONCONTIGUOUS) {
        if let Some(value) = given.get(key) {
            entries.set(key, value)?;
        }
    }
    Ok(())
}
