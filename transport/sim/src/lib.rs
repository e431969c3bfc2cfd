//! A simulated network: the ranks of a job in one process, in virtual time, from a seed.
//!
//! ```text
//!     SimNetwork ── State ─┬─ members: links, inbox, clock of each rank
//!                          ├─ queue: events by time
//!                          └─ NICs, cores
//!     SimTransport           one rank's ByteTransport: ob1 and what is above run on it as on any other
//! ```
//!
//! A [`SimNetwork`] with a [`Machine`] has messages take the time that the model of LogGP says. Without a machine they take none,
//! and nothing happens but by calls, in their order: the bed on which protocols are tested.
//!
//! # Who has time pass
//! - A [`Simulation`] runs ranks as futures in one thread: it takes the next event, and polls the rank for which something came.
//!   The same seed gives the same events.
//! - Ranks may be driven by calls, from one thread or several. Then a call of progress that finds nothing, and a thread that sleeps,
//!   have the next event happen.
//!
//! Ranks read virtual time by their bootstrap's clock. Each is busy while it sends and receives; its clock shows up to when.
//!
//! ```
//! use tagwire_base::Rank;
//! use tagwire_sim::{SimNetwork, SimOptions};
//! use tagwire_transport::{AmHeader, ByteTransport, Class, Lane, Post, Transport};
//!
//! let network = SimNetwork::new(2, SimOptions::default());
//! let mut a = network.rank(Rank::new(0));
//! let b = network.rank(Rank::new(1));
//! let to = a.connect(Rank::new(1), &b.address())?;
//! let header = AmHeader([1, 2]);
//! assert_eq!(a.send(Lane(0), to, Class::Data, header, b"hello"), Post::Posted);
//! # Ok::<(), tagwire_transport::Error>(())
//! ```

mod bootstrap;
mod carried;
mod carry;
mod cores;
mod due;
mod ends;
mod file;
mod flight;
mod leaving;
mod machine;
pub mod matching;
mod member;
mod memory;
mod network;
mod nics;
mod options;
mod picture;
mod place;
pub mod presets;
mod progress;
mod queue;
mod rank;
mod remote;
mod run;
mod shared;
mod slots;
mod state;
mod threads;
mod time;
mod transfer;
mod turns;

pub use bootstrap::{SimBootstrap, SimJob};
pub use file::FileError;
pub use machine::{Link, Machine};
pub use network::{SimNetwork, Turn};
pub use options::{Kill, Schedule, SimOptions};
pub use picture::Trace;
pub use rank::SimTransport;
pub use run::{Actor, Simulation, Stuck};
pub use state::{Counts, Puts};
pub use time::{Moment, PerByte, Span};
