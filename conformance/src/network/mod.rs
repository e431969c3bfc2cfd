//! Networks inside one process: ranks are plain objects that share queues.
//!
//! These are the beds on which protocols are tested. [`MemoryNetwork`] is the simulated network of [`tagwire_sim`], by default without
//! a machine: messages take no time, and nothing happens but by calls, in the order of the calls. A test that drives its ranks
//! by turns from one thread sees the same run every time. Ranks may also live on threads of their own. [`matching`] has the network of
//! transports that match.
//!
//! Queues are bounded and return [`Post::Busy`](tagwire_transport::Post::Busy), a sleeper is woken by what arrives, ranks leave
//! and fail. What a real transport may or may not have (cooperative transfers,
//! detection of failures) is switched by [`MemoryOptions`], so that each way a protocol can take
//! is tested. It is no transport for measurements: each message costs a lock and an allocation.

pub use tagwire_sim::matching;
pub use tagwire_sim::{
    Actor, Link, Machine, PerByte, Puts, Schedule, SimJob, SimNetwork as MemoryNetwork,
    SimOptions as MemoryOptions, SimTransport as MemoryTransport, Simulation, Span, Trace,
};
