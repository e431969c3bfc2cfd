#![doc = include_str!("../README.md")]
//!
//! Addresses come from compiled Fortran: by reference, or as descriptors of arrays. What they point to is the caller's promise, as it is
//! in C.

#![allow(
    unsafe_code,
    reason = "the ABI of Fortran: exported names, and the caller's addresses"
)]
#![allow(
    non_upper_case_globals,
    reason = "common blocks have the names that compilers make"
)]

/// Defines one body with all names that lead to it.
macro_rules! entries {
    (($($name:ident)+) $work:ident $parameters:tt -> $result:ty $body:block) => {
        work! { $work $parameters $result $body }
        $(name! { $name $work $parameters $result })+
    };
}

macro_rules! work {
    ($work:ident ($($parameter:ident: $of:ty),*) $result:ty $body:block) => {
        #[allow(unused_unsafe, reason = "one that does nothing needs none")]
        #[allow(clippy::too_many_arguments, reason = "the standard's")]
        unsafe fn $work($($parameter: $of),*) -> $result {
            // SAFETY: the caller's addresses are what the standard asks for.
            unsafe { $body }
        }
    };
}

macro_rules! name {
    ($name:ident $work:ident ($($parameter:ident: $of:ty),*) $result:ty) => {
        #[unsafe(no_mangle)]
        #[allow(clippy::too_many_arguments, reason = "the standard's")]
        pub unsafe extern "C-unwind" fn $name($($parameter: $of),*) -> $result {
            // SAFETY: as for this function.
            unsafe { $work($($parameter),*) }
        }
    };
}

mod abi;
mod address;
mod attributes;
mod c;
mod callbacks;
mod copied;
mod descriptor;
mod entry;
mod handles;
mod others;
mod peers;
mod raise;
mod removed;
mod section;
mod special;
mod text;
