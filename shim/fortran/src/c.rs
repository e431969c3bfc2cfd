//! The functions of the C interface, by the names that tools leave alone.

#![allow(
    dead_code,
    missing_docs,
    non_snake_case,
    reason = "written by the generator: all functions of the standard, by its names"
)]

use std::ffi::{c_char, c_void};

use crate::abi;

include!(concat!(env!("OUT_DIR"), "/declarations.rs"));
