//! MPI on Tagwire: what the calls of the standard's binary interface do (MPI-5.0).
//!
//! ```text
//!     mpi_abi       the shared library: an exported function for each name, generated from a table
//!        |  Library::call
//!     call          handlers: one function for each name, by chapters: p2p, complete, ...
//!        |
//!     Process       a rank: its objects by handle
//!        |
//!     object        communicators, datatypes, operations, requests, ...
//!        |
//!     coll, pml     groups and messages
//! ```
//!
//! The pointers of the C program come as values of [`raw`], which say what may be done with them. Handlers are safe code, but
//! for those that lend an operation the program's memory.

pub mod abi;
pub mod call;
pub mod callbacks;
pub mod error;
pub mod functions;
pub mod library;
mod lock;
mod object;
mod process;
pub mod raw;
mod streams;

pub use error::{Error, Result};
pub use library::Library;
pub use process::Process;
