//! A transport that misbehaves within its contract: it wraps another one and, from a seed, holds
//! messages back, lets them overtake each other, is busy for no reason, loses, repeats and changes
//! messages, and dies.
//!
//! With losses, repeats or changes it is not reliable, and says so: what is above needs data reliability
//! (`tagwire-dr`) in between. Every run with the same seed and the same calls is the same.
//!
//! ```text
//!     TAGWIRE_FAULT="seed=42,delay=0..8,reorder=4,busy=10%,kill-after=1000"
//! ```
//!
//! | key | meaning |
//! |---|---|
//! | `seed=N` | where the randomness starts; each rank draws its own numbers from it |
//! | `delay=MIN..MAX` | how many calls of progress an arrived message is held back, both ends included |
//! | `reorder=N` | messages of one peer may arrive up to N places late; the order is not kept then |
//! | `busy=P%` | how often a verb is busy although there is room |
//! | `loss=P%` | how many of the messages that arrive are lost; `0.1%` and `100%` too |
//! | `duplicate=P%` | how many come twice |
//! | `corrupt=P%` | how many have up to four bits changed, in the header or the payload |
//! | `kill-after=N` | this rank dies once it has sent and received N messages |
//! | `kill=object` or `process` | dies: as an object of this process, or the process by `SIGKILL` |

mod config;
mod damage;
mod hold;
mod progress;
mod random;
mod rank;
mod share;

pub use config::{Delay, FaultOptions, Kill, SETTINGS};
pub use damage::Damage;
pub use random::SplitMix64;
pub use rank::FaultTransport;
pub use share::Share;

/// The name in settings and reports.
const NAME: &str = "fault";
