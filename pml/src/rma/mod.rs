//! Remote memory access: regions of a rank's memory that its peers write, read, and change word by word.
//!
//! ```text
//!   initiator                                         owner
//!   put: transport's put       --------------------->  memory        where the transport has it
//!        Put ..                --------------------->  copies        elsewhere, in pieces, some of
//!                              <---------------------  Done          which are under way at a time
//!   flush: the transport's, behind what it has put; what went by packets is there when it has ended
//! ```
//!
//! What the transport lacks, or refuses for some memory, the owner does when it makes progress. Which of both it was shows in
//! nothing but time. Atomic operations on a word are atomic among themselves and beside loads and stores of the owner's
//! that are atomic too; beside puts they are not.
//!
//! **Trust.** A peer names a region by its handle and is checked against its bounds; any rank of the job that knows the handle
//! may reach it. What the owner says of an access is checked against what was asked for.

mod access;
mod atomic;
mod initiator;
mod owner;
mod service;
#[cfg(all(test, not(loom)))]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests;
mod wire;

pub(crate) use self::access::{Remote, What};
pub use self::atomic::Atomic;
pub(crate) use self::initiator::Rma;
pub(crate) use self::wire::Key;
