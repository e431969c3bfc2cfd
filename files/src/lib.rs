//! Files that the ranks of a group read and write together (MPI-5.0, chapter 14), without handles of MPI.
//!
//! ```text
//!     File          what a group has opened: the storage, hints, the shared pointer
//!      |  read, write, read_all, write_all
//!     View          which bytes of the file an access counts, and where they are
//!      |  extents
//!     Extents       runs of bytes of the file, in the order of the data
//!      |  gathered by all members of a collective access
//!     Plan          who reads or writes what
//!      |  direct    each member its own extents; reads of short ones through a window of the file (data sieving)
//!      |  two-phase aggregators read or write whole parts of the file, and exchange the data with the members
//!     Handle        system calls: positioned reads and writes, which are repeated until all is done
//! ```
//!
//! **Holes.** What a view leaves out is never written, not even with what was read there before: it may belong to others, who write
//! it at the same time. So writes are not sieved.
//!
//! **Failure.** A system call that fails ends the access of the member whose bytes they were, also where an aggregator has made the
//! call: its [`Outcome`] has how many bytes before were written, or read, and the error. When a member dies, every other member's
//! collective access ends with the failure; later ones end with the same, and accesses of one member alone still work.
//!
//! **Durability.** What [`File::write`] and [`File::write_all`] report as written is in the file as others read it on this host.
//! [`File::sync`] returns when it is on the storage (fdatasync(2)), or with the error of what is not.

mod access;
mod code;
mod data;
mod direct;
mod error;
mod extents;
mod file;
mod hints;
mod mode;
mod open;
mod plan;
mod pointer;
mod storage;
mod transfer;
mod two_phase;
mod unix;
mod view;

pub use access::Access;
pub use data::{Data, Room};
pub use error::{Error, Kind, Outcome, Result};
pub use extents::{Extent, Extents};
pub use file::File;
pub use hints::{Hints, Switch};
pub use mode::Mode;
pub use open::{Opening, Site};
pub use plan::{Plan, Summary};
pub use rustix::io::Errno;
pub use storage::{Handle, LockKind, Storage};
pub use unix::Unix;
pub use view::View;
