//! Matching in shared memory: the target of Portals 4, with whoever is free as the hardware.
//!
//! Each rank's match list lies in its own segment ([`layout`]): posted receives (the priority
//! list), headers of unexpected messages, overflow blocks with the payload of short ones. A lock
//! in it ([`lock`]) is taken by
//!
//! - the owner, while it is inside a call: it takes messages out of its rings and matches them,
//!   as it would with a list of its own;
//! - a sender that waits and sees that its messages lie untaken ([`sender_matcher`]): it empties its own
//!   ring into the list, in order, and delivers: short messages into the receive's entry or, by
//!   cross-memory attach, into the user's buffer; long ones by a transfer that it claims on the
//!   receiver's behalf, and whose chunks either side then copies.
//!
//! ```text
//!     sender                ring              target of the receiver          receiver
//!     send     ---------->  | | | |
//!                                \----------> (in a call) matches, copies  <-- progress
//!     waits                       \
//!     takes the lock               \--------> matches, copies                  computes
//!                                             state = landed, an event
//!                                             (in a call) sees the event   <-- test, wait
//! ```
//!
//! **Objects.** [`ShmMatch`] has the calls and the own lock; [`state`] holds its parts:
//!
//! ```text
//!   receiver   list (engine, unexpected messages), receives, pending operations towards senders
//!   sender     sends, targets (allowances, messages that are kept back); sender_matcher matches at receivers
//!   controls, completions    messages that found no room, ends that are not reported yet
//!   deliver    brings what arrives to both halves; recovery makes the list anew after a death
//!   table, layout, packed    what is in the target, its words as types, and what a lock's holder does to it
//! ```
//!
//! **Order.** A ring is only read under the lock, from its front, by either. Messages that a
//! sender keeps back are later than everything in its ring; it matches them itself once that is
//! empty.
//!
//! **Bounds.** A sender sends as many messages as it was allowed ([`table`]); what it was not
//! allowed it keeps, and looks into the match list for receives that take one of these whenever
//! something was posted. So no receive waits for a message that a bound holds up. A probe is answered
//! from what has arrived; where senders keep messages back it makes them send envelopes, up to
//! the number of headers there are.
//!
//! **Death.** The engine's state is a cache: should the holder of the lock die, the owner takes
//! the lock over, and makes the engine anew from the states of receives and headers, each
//! of which is one word. The journal says whether the message that the dead was dealing with
//! counts as taken ([`recovery`]).
//!
//! **Trust.** What the owner needs for its own memory (tokens, buffers, lengths) it keeps to
//! itself; an index or length from the target is checked where it is used. A peer that breaks the
//! rules can make a rank match wrongly, and no more than that.

mod completions;
mod controls;
mod deliver;
mod layout;
mod list;
mod lock;
mod memory;
mod packed;
mod pending;
mod rank;
mod receiver;
mod receives;
mod recovery;
mod sender;
mod sender_matcher;
mod sends;
mod state;
mod table;
mod targets;
#[cfg(test)]
mod tests;
mod visit;
mod wire;

use std::sync::atomic::Ordering::Relaxed;

pub(super) use layout::{MAX_HEADERS, MAX_OVERFLOW, Shape};
#[cfg(all(test, loom))]
pub(super) use lock::{take_over, try_lock, unlock};
pub(super) use memory::TargetMap;
pub use rank::ShmMatch;
pub(super) use table::{load_state, store_state};

/// Returns a count of the visits by senders to the match list of `rank`, which can be read after the rank is closed: for
/// the test that races of the conformance kit have such senders.
#[doc(hidden)]
pub fn visits(rank: &ShmMatch) -> impl Fn() -> u32 + use<> {
    let map = rank.state.receiver.list.table.map.clone();
    move || map.head().visits.load(Relaxed)
}
