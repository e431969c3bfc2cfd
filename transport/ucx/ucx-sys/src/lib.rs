//! UCX's protocol layer (UCP), bound by hand of `bindgen` and loaded at run time.
//!
//! Neither the library nor its headers are needed to build this crate: [`Ucp`] is a table of
//! function pointers, filled when a library file is [opened](open). The structures are those of
//! UCX 1.13; every struct that a caller fills begins with a mask of the fields that it knows, so
//! that newer libraries take them as they are. `tests/layout.rs` holds them against the machine's
//! headers; `bindings.sh` makes them anew.
#![allow(unsafe_code)]

#[allow(
    missing_docs,
    missing_debug_implementations,
    non_camel_case_types,
    non_upper_case_globals,
    unreachable_pub,
    unused,
    unsafe_op_in_unsafe_fn,
    clippy::all,
    clippy::undocumented_unsafe_blocks
)]
mod bindings;
mod load;

pub use bindings::*;
pub use load::{OpenError, open};

use std::ffi::c_void;

/// What the calls that start an operation return: done, an error, or a request that goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Started {
    /// Complete; the callback is not called.
    Done,
    /// Not started, or failed at once; the callback is not called.
    Failed(ucs_status_t),
    /// Under way; the callback will be called, and the request has to be freed.
    Open(*mut c_void),
}

impl Started {
    /// Reads a status pointer (`UCS_PTR_IS_PTR`, `UCS_PTR_STATUS`).
    #[inline]
    #[must_use]
    pub fn from_pointer(pointer: *mut c_void) -> Self {
        // Errors are the numbers from -1 to -100, as addresses.
        let number = pointer.addr() as isize;
        if number == 0 {
            Self::Done
        } else if (LAST_ERROR..0).contains(&number) {
            Self::Failed(number as ucs_status_t)
        } else {
            Self::Open(pointer)
        }
    }
}

/// `UCS_ERR_LAST`.
const LAST_ERROR: isize = UCS_ERR_LAST as isize;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_pointers_are_told_apart() {
        assert_eq!(Started::from_pointer(std::ptr::null_mut()), Started::Done);
        let error = std::ptr::without_provenance_mut(usize::MAX - 15);
        assert_eq!(
            Started::from_pointer(error),
            Started::Failed(UCS_ERR_CANCELED)
        );
        let mut request = 0_u64;
        let pointer = (&raw mut request).cast();
        assert_eq!(Started::from_pointer(pointer), Started::Open(pointer));
    }
}
