//! Operations of groups: one program, a module for each property. `ci/tests` runs each module as a process of its own.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod common;

mod board;
mod fixed;
mod inter;
mod inter_deaths;
mod levels;
mod meetings;
mod mix;
mod neighbours;
mod nonblocking;
mod oracle;
mod schedules;
mod ways;
