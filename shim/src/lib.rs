//! MPI on Tagwire: what the calls of the standard's binary interface do (MPI-5.0).
//!
//! ```text
//!     mpi_abi       the shared library: an exported function for each name, generated from a table
//!        |  Library::call
//!     handlers      one function for each name, by chapters: p2p, complete, ...
//!        |
//!     Process       a rank: communicators, datatypes, operations and requests by handle
//!        |
//!     coll, pml     groups and messages
//! ```
//!
//! Handlers are safe code: the pointers of the C program come as values of [`raw`], which say what may be done with them.

pub mod abi;
pub mod allocations;
mod attributes;
mod between;
mod booleans;
pub mod bsend;
mod buffer;
pub mod callbacks;
mod codes;
pub mod collectives;
mod comm;
pub mod communicators;
pub mod complete;
pub mod contents;
mod data;
mod datatype;
mod dimensions;
pub mod duplicates;
mod early;
pub mod environment;
mod errhandler;
pub mod errhandlers;
pub mod error;
pub mod exchanges;
pub mod fortran;
mod freed;
pub mod functions;
pub mod generalized;
mod group;
pub mod groups;
mod info;
pub mod infos;
pub mod intercommunicators;
pub mod interface;
pub mod keyvals;
pub mod library;
mod memory;
mod message;
mod models;
mod named;
pub mod neighbours;
mod operands;
mod operation;
pub mod p2p;
pub mod packing;
mod partitioned;
pub mod partitions;
mod pending;
pub mod probes;
mod process;
mod psets;
pub mod raw;
pub mod reductions;
mod request;
mod run;
mod session;
pub mod sessions;
mod short;
pub mod statuses;
mod table;
pub mod time;
pub mod topologies;
mod topology;
pub mod types;

pub use error::{Error, Result};
pub use library::Library;
pub use process::Process;
