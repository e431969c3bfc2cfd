//! A stand-in for the crate `tagwire-shim`: the names that the exports of `shim/abi` use, and three handlers.

pub mod abi;
pub mod callbacks;
pub mod comm;
pub mod environment;
pub mod exports;
pub mod raw;
pub mod time;

/// A process of MPI.
#[derive(Debug)]
pub struct Process;

/// The library outside of initialization and finalization.
#[derive(Debug)]
pub struct State;

/// Why a call failed: a class of errors.
#[derive(Debug)]
pub struct Error(pub i32);
