//! Attributes across languages (MPI-5.0, section 19.3.7).
//!
//! An attribute of Fortran is an integer, one of C an address. An integer lies in memory of its own, whose address is the attribute for C:
//! so C finds a pointer to the integer, as the standard has it, and Fortran finds the integer again. An attribute that C has set is an
//! address that is none of these, and Fortran gets it as an integer.

use std::collections::BTreeSet;
use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

/// The addresses of the integers.
static SET: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());

/// Keys whose attributes are addresses of an `int` in C: those of `MPI_COMM_WORLD`, and of windows.
const INTEGERS: [std::ops::RangeInclusive<i32>; 3] = [501..=507, 602..=602, 604..=605];

/// `MPI_WIN_SIZE`, whose attribute is the address of an `MPI_Aint`.
const WIN_SIZE: i32 = 603;

/// Makes the attribute for C of an integer.
pub(crate) fn of_integer(value: i64) -> *mut c_void {
    let address = Box::into_raw(Box::new(value));
    let mut set = SET.lock().unwrap_or_else(PoisonError::into_inner);
    set.insert(address.addr());
    address.cast()
}

/// Returns the integer of an attribute of C.
pub(crate) fn integer(attribute: *mut c_void) -> i64 {
    let set = SET.lock().unwrap_or_else(PoisonError::into_inner);
    match set.contains(&attribute.addr()) {
        // SAFETY: it was made here, and is freed under the same lock.
        true => unsafe { *attribute.cast::<i64>() },
        false => attribute.addr().cast_signed() as i64,
    }
}

/// Makes the attribute of a copy, for which a function of Fortran has given an integer. The address that C has set stays what it is
/// where the function has given it on: C wants to find its pointer.
pub(crate) fn of_copy(given: *mut c_void, integer: i64) -> *mut c_void {
    let is_kept = given.addr().cast_signed() as i64 == integer;
    let set = SET.lock().unwrap_or_else(PoisonError::into_inner);
    if is_kept && !set.contains(&given.addr()) {
        return given;
    }
    drop(set);
    of_integer(integer)
}

/// Returns the integer of an attribute that has a key.
///
/// # Safety
///
/// The attribute has come from the library under this key.
pub(crate) unsafe fn of_key(key: i32, attribute: *mut c_void) -> i64 {
    // SAFETY: so the standard has the predefined ones.
    unsafe {
        match key {
            _ if INTEGERS.iter().any(|keys| keys.contains(&key)) => {
                i64::from(*attribute.cast::<i32>())
            }
            WIN_SIZE => *attribute.cast::<i64>(),
            _ => integer(attribute),
        }
    }
}

/// Frees an integer, where the attribute is one.
pub(crate) fn forget(attribute: *mut c_void) {
    let mut set = SET.lock().unwrap_or_else(PoisonError::into_inner);
    if set.remove(&attribute.addr()) {
        // SAFETY: it was made by `of_integer`, and is in the set no more.
        drop(unsafe { Box::from_raw(attribute.cast::<i64>()) });
    }
}
