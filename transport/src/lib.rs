//! Transports: what moves bytes between ranks, and the contracts that every one of them keeps.
//!
//! ```text
//!        pml            decides what to send, matches what arrives
//!    ----------------   <- this crate's traits
//!    ByteTransport      moves bytes, matches nothing        (a BTL in Open MPI's words)
//!      RemoteAccess            put, get, atomics
//!      CooperativeTransfers    both ranks move the bytes
//!    MatchTransport     matches in the transport itself     (an MTL)
//!    Transport          what both are
//! ```
//!
//! A transport is an object that one rank owns. It is driven by calls alone: no thread of its
//! own, no statics. See [`ByteTransport`] for who calls what, from where, and what may fail.

pub mod allocation;
#[cfg(feature = "coll")]
pub mod board;
pub mod body;
pub mod byte;
pub mod capability;
#[cfg(feature = "partitioned")]
pub mod channel;
mod control_group;
pub mod cooperative;
pub mod data;
pub mod epoch;
pub mod error;
pub mod fault;
pub mod flow;
pub mod kind;
pub mod matching;
pub mod message;
pub mod null;
pub mod post;
pub mod remote;
mod shared_writes;
pub mod shm;
pub mod transport;
pub mod wait;
mod word;

pub use allocation::{Allocation, PeerAllocations};
#[cfg(feature = "coll")]
pub use board::{Board, BoardMemory, BoardWaker, Boards, MemberMemory, OpenBoard, SharedMemory};
pub use body::Body;
pub use byte::ByteTransport;
pub use capability::{
    Capabilities, Limits, Ordering, Preference, Registration, ThreadMode, WaitObject,
};
#[cfg(feature = "partitioned")]
pub use channel::{Buffering, Channels, OpenChannel, RecvChannel, SendChannel};
pub use control_group::process_memory;
pub use cooperative::{CooperativeTransfers, Offer, Ticket};
pub use data::{
    MemoryKind, Pack, ReadRegion, RecvBuffer, RecvPart, SendBuffer, Unpack, WriteRegion,
};
pub use epoch::EpochWaiter;
pub use error::{Error, Result};
pub use kind::{ForeignLibrary, TransportKind, Way};
pub use matching::{
    Cancel, ClaimId, Directed, Found, MatchCounts, MatchEnvelope, MatchLevels, MatchLimits,
    MatchPattern, MatchRemote, MatchTransport, MatchUpcalls, Posted, Probed, ReceiveEnd, Refusal,
    Sent,
};
pub use message::{
    AmHeader, Arrival, EndpointId, Lane, Outcome, Payload, PeerEvent, Token, Upcalls,
};
pub use post::{Class, Post};
pub use remote::{RegistrationHandle, RemoteAccess, RemoteMemory};
pub use transport::Transport;
pub use wait::{WaitKey, Waiter};
