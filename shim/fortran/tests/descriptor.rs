//! The unit tests of `src/descriptor.rs`. The library itself has no program of tests: what it calls is found when it is loaded.
#![allow(
    unsafe_code,
    reason = "the file that is included reads what a compiler has made"
)]

#[path = "../src/descriptor.rs"]
#[allow(dead_code, reason = "the library uses what is not tested here")]
mod descriptor;
