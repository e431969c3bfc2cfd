#![doc = include_str!("../README.md")]
//!
//! `libmpi_abi.so.1`: the exported functions of the MPI-5.0 standard ABI, each under its name and under that of tools.
//!
//! `build.rs` writes them from `shim/api/functions.txt`. A function wraps the caller's addresses and widens its counts; its
//! work is done in `tagwire-shim`.

#![allow(
    unsafe_code,
    reason = "the C ABI: exported names, and the caller's addresses"
)]

use tagwire_shim::Library;

/// The library of the program that has loaded it.
static LIBRARY: Library = Library::new(exit);

/// A note of the file, by which `mpiexec` tells this library from others with the interface of the standard: no name that it
/// exports does.
#[repr(C, align(4))]
struct Note {
    name_length: u32,
    length: u32,
    kind: u32,
    name: [u8; 8],
}

#[used]
#[unsafe(link_section = ".note.tagwire")]
static NOTE: Note = Note {
    name_length: 8,
    length: 0,
    kind: 1,
    name: *b"Tagwire\0",
};

extern "C" fn exit() {
    LIBRARY.leave();
}

/// Exports one function under its two names.
macro_rules! export {
    ($name:ident $tools:ident $work:ident($($parameter:ident: $of:ty),*) -> $result:ty { $($body:tt)* }) => {
        #[inline(always)]
        unsafe fn $work($($parameter: $of),*) -> $result {
            // SAFETY: the caller's addresses are what the standard asks for.
            unsafe { $($body)* }
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($parameter: $of),*) -> $result {
            // SAFETY: as for this function.
            unsafe { self::$work($($parameter),*) }
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $tools($($parameter: $of),*) -> $result {
            // SAFETY: as for this function.
            unsafe { self::$work($($parameter),*) }
        }
    };
}

#[allow(
    missing_docs,
    non_snake_case,
    unused_unsafe,
    unused_variables,
    clippy::all,
    reason = "written by the generator; the names are the standard's"
)]
mod exported {
    use std::ffi::{c_char, c_void};

    use tagwire_shim::library::On;
    use tagwire_shim::{abi, callbacks, raw};

    use super::LIBRARY;

    include!(concat!(env!("OUT_DIR"), "/exports.rs"));
}
