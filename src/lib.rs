//! Tagged messages between processes, at the level of Portals and libfabric, with no MPI
//! installed.
//!
//! Ranks of a job send each other messages in an envelope of source, tag and context; a receive
//! names the same three, or takes any source or tag. On one machine they go through shared
//! memory: a cache line for a small message, a cooperative copy for a large one.
//!
//! ```no_run
//! use tagwire::{ANY_SOURCE, ANY_TAG, Session};
//!
//! let session = Session::open()?; // joins the job of `tagwire run -n 4 -- this-program`
//! let world = session.world();
//! if session.rank() == 0 {
//!     for _ in 1..session.size() {
//!         let mut square = [0u64];
//!         let status = world.recv(&mut square, ANY_SOURCE, ANY_TAG)?;
//!         println!("rank {} says {}", status.source(), square[0]);
//!     }
//! } else {
//!     world.send(&[u64::from(session.rank()).pow(2)], 0, 7)?;
//! }
//! session.close()?;
//! # Ok::<(), tagwire::Error>(())
//! ```
//!
//! - [`Session`] is one rank; [`Context`] is where messages are sent and received.
//! - Blocking calls borrow their buffer for the call. Non-blocking ones lend it for a
//!   [`Scope`], or own it ([`OwnedSend`], [`OwnedRecv`]): a posted buffer cannot be freed or
//!   touched, by construction.
//! - Collectives ([`Context::allreduce`], ...) are values too ([`Collective`]), which a [`Scope`] starts: they are waited for
//!   like messages and together with them. Made of vectors they are persistent ([`PersistentCollective`]).
//! - Ranks that exchange data with a few others do so in a [`Neighbourhood`] ([`Context::neighbours`]), or in a grid
//!   ([`Context::cartesian`]).
//! - Transfers that repeat are made once and started again and again ([`PersistentSend`],
//!   [`PersistentRecv`]).
//! - Transfers to which many threads contribute have partitions, each of which leaves as soon as it is
//!   ready ([`PartitionedSend`], [`PartitionedRecv`]).
//! - Every wait has a form with a timeout. What timed out goes on: it stays posted, and its buffer
//!   stays lent to its scope, or with the operation that owns it.
//! - Operations that own their buffers are futures, under any runtime: see [`Session::drive`].
//! - Large buffers come best from [`Session::alloc`]: where the system lets no process into another's memory, such as in
//!   many containers, they are the ones that are copied once.
//! - Lengths are in elements of [`Plain`] data: numbers, arrays, and structs that derive it. A [`Status`] has source, tag
//!   and true length.
//! - A session belongs to the process that opened it. A child that it forks must not use the session; calls there are
//!   refused, and dropping the copy does nothing. A child that calls `exec` has no copy.
//! - What can go wrong is in [`Error`] and [`Failure`]. A truncated receive, or a rank that
//!   died, fails the operations concerned and nothing else.
//!
//! # A halo exchange
//!
//! A program often sends from one end of a buffer what it receives at the other. A buffer that is lent whole cannot be
//! lent again (errors E0499 and E0502); [`split_at_mut`](slice::split_at_mut) cuts it into parts that can be lent each:
//!
//! ```
//! # let session = tagwire::Session::open()?;
//! const CELLS: usize = 100;
//! const TO_LEFT: i32 = 1;
//! const TO_RIGHT: i32 = 2;
//!
//! let (world, rank, size) = (session.world(), session.rank(), session.size());
//! let (left, right) = ((rank + size - 1) % size, (rank + 1) % size);
//! // Own cells, with one of each neighbour's at either end.
//! let mut cells = vec![f64::from(rank); CELLS + 2];
//! for _step in 0..10 {
//!     let (from_left, rest) = cells.split_at_mut(1);
//!     let (own, from_right) = rest.split_at_mut(CELLS);
//!     session.try_scope(|scope| {
//!         world.irecv(scope, from_left, left, TO_RIGHT)?;
//!         world.irecv(scope, from_right, right, TO_LEFT)?;
//!         world.isend(scope, &own[..1], left, TO_LEFT)?;
//!         world.isend(scope, &own[CELLS - 1..], right, TO_RIGHT)?;
//!         Ok(())
//!     })?; // all four are complete, and `cells` is one buffer again
//!     let old = cells.clone();
//!     for i in 1..=CELLS {
//!         cells[i] = (old[i - 1] + old[i + 1]) / 2.0;
//!     }
//! }
//! # session.close()?;
//! # Ok::<(), tagwire::Error>(())
//! ```
//!
//! Parts that do not follow each other, such as the columns of a plate, are copied into arrays of their own: see
//! `examples/halo.rs`. More than two parts come from [`chunks_mut`](slice::chunks_mut) or `iter_mut`.
//!
//! # In a project of one's own
//!
//! ```toml
//! [dependencies]
//! tagwire = { path = "../tagwire" } # a clone of the repository beside the project
//!
//! [dev-dependencies]
//! tagwire = { path = "../tagwire", features = ["testing"] }
//! ```
//!
//! What a program compiles is chosen by features, all of which are on by default:
//!
//! | feature | brings |
//! |---|---|
//! | `coll` | collectives, neighbourhoods, and contexts beside the world's |
//! | `engines` | published matching engines, for comparison, by the setting `engine` |
//! | `launchers` | jobs of launchers with a PMI or PMIx, of Slurm and of torchrun |
//! | `ofi`, `ucx` | networks by libfabric and by UCX, which are opened at run time |
//! | `partitioned` | [`PartitionedSend`] and [`PartitionedRecv`] |
//!
//! With `default-features = false` the ranks of `tagwire run`, or a process alone, send and receive over the shared memory of one
//! host. A transport or a launcher that needs a feature is refused at run time, with the feature's name. Of the programs of one
//! job either all have `coll` or none.
//!
//! `cargo test` starts no job: a test that opens a [`Session`] is alone. The module `testing`, which the feature brings, runs a
//! job inside of a test, with a thread for each rank. Where ranks have to be processes, the launcher runs the test program:
//!
//! ```text
//! CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="tagwire run -n 3 --tag-output --" cargo test -- --test-threads 1
//! ```
//!
//! Programs in C use the interface of MPI, from the same transport: `tagwire mpi install`.
//!
//! The command `tagwire` starts jobs, measures, and reports what is there; the crates below
//! (`tagwire-pml`, `tagwire-transport`, `tagwire-matching`) are for those who build on the parts.

// They use what is here for messages too.
#![cfg_attr(not(all(feature = "coll", feature = "partitioned")), allow(dead_code))]

// The derive macro names the crate so.
#[cfg(test)]
extern crate self as tagwire;

mod buffer;
#[cfg(not(feature = "coll"))]
mod coll;
#[cfg(feature = "coll")]
mod collective;
mod context;
mod descriptor;
mod drive;
mod error;
mod orphans;
mod owned;
mod panics;
#[cfg(feature = "partitioned")]
mod partitioned;
mod persistent;
mod plain;
mod scope;
mod selector;
mod session;
pub mod settings;
mod shared;
mod tasks;
#[cfg(feature = "testing")]
pub mod testing;

pub use buffer::Buffer;
#[cfg(feature = "coll")]
pub use collective::{
    Allgather, Allreduce, Alltoall, Barrier, Blocks, Broadcast, Cartesian, Collective,
    CollectiveOperation, Combine, Exscan, Gather, Group, LentBuffers, Max, Min, Neighbourhood,
    Number, Operation, OwnedBlocks, OwnedBuffers, PersistentCollective, Product, Readable, Reduce,
    ReduceScatter, Reducer, Scan, Scatter, Sum, Varying, Within, Writable,
};
pub use context::{Claimed, Context};
pub use descriptor::WaitDescriptor;
pub use error::{Error, OwnedError, Result};
pub use owned::{OwnedRecv, OwnedSend};
#[cfg(feature = "partitioned")]
pub use partitioned::{
    Costs, Model, Partition, PartitionedRecv, PartitionedSend, Policy, RecvRound, Round, SendRound,
    wait_rounds, wait_rounds_for,
};
pub use persistent::{PersistentRecv, PersistentSend};
pub use plain::{Plain, Status};
pub use scope::{Request, Scope};
pub use selector::{ANY_SOURCE, ANY_TAG, Source, TagChoice};
pub use session::{Builder, Session};
#[cfg(feature = "coll")]
use tagwire_coll as coll;
pub use tagwire_derive::Plain;
pub use tagwire_pml::{CancelOutcome, Engines, Failure, SendMode, ThreadLevel};
