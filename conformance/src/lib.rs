//! What tests of transports and of point-to-point layers share, and users of the library need not compile.
//!
//! ```text
//!     pml          the suite for layers          pml_conformance!
//!     byte         the kit for byte transports   transport_conformance!
//!     matching     the kit for those that match  match_conformance!
//!     network      ranks of one process: the network that protocols are tested on
//! ```
//!
//! A kit is a list of checks, each with a name. A back end brings a factory that opens jobs of connected ranks
//! inside one process, and the kit's macro makes a test of each check. The tests in `tests/` run the kits on back
//! ends that are broken on purpose.
//!
//! The other crates have this one as a dev-dependency. So unit tests inside of `transport` cannot use it, since they
//! would see two copies of the types of their own crate; nor can unit tests inside of `pml` use [`pml`].

pub mod allocations;
pub mod byte;
mod chance;
mod closing;
mod common;
mod frame;
mod job;
pub mod matching;
mod memory;
pub mod network;
pub mod pml;
pub mod seeds;

pub use chance::{Chance, cases_of};
pub(crate) use frame::kit;
pub use frame::{Check, Subject, Verdict, assert_check, passed_tiers, run_all, tiers};
pub use job::{Factory, Job, Kit};
