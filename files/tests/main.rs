//! Tests of files, over groups whose ranks are threads of the test.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod accesses;
mod common;
mod deaths;
mod faults;
mod files;
mod plans;
mod views;
