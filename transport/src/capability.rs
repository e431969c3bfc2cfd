//! What a transport can do and how much of it.

use bitflags::bitflags;

bitflags! {
    /// What a transport offers beyond the core that all of them have (send by copy, progress,
    /// wait, peer events).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct Capabilities: u32 {
        /// [`send_zero_copy`](crate::ByteTransport::send_zero_copy).
        const ZERO_COPY = 1 << 0;
        /// [`put`](crate::RemoteAccess::put).
        const PUT = 1 << 1;
        /// [`get`](crate::RemoteAccess::get).
        const GET = 1 << 2;
        /// [`put`](crate::RemoteAccess::put) with immediate data for the target.
        const NOTICE = 1 << 3;
        /// [`offer`](crate::CooperativeTransfers::offer) and [`claim`](crate::CooperativeTransfers::claim):
        /// either side moves the bytes. Of a matching transport: a sender that waits matches and moves
        /// all bytes while its receiver computes.
        const COOPERATIVE = 1 << 4;
        /// A waiting rank can sleep in the kernel and is woken by arrivals.
        const WAKE = 1 << 5;
        /// The failure of a peer is found without help from the bootstrap.
        const FAILURE_DETECTION = 1 << 6;
        /// Small messages to one peer arrive in the order in which they were sent.
        const ORDERED = 1 << 7;
        /// Every message arrives exactly once and intact.
        const RELIABLE = 1 << 8;
        /// Reaches ranks on other machines.
        const REMOTE = 1 << 9;
        /// Reaches other ranks on the same machine.
        const LOCAL = 1 << 10;
        /// Reaches the own rank.
        const LOOPBACK = 1 << 11;
        /// Of a matching transport: a receive that has too little room for its message gets
        /// nothing that counts, and says so ([`Outcome::Done`](crate::Outcome::Done) of 0; what its
        /// buffer holds then is anything), where others give what there is room for.
        const ALL_OR_NOTHING = 1 << 12;
        /// [`channels`](crate::Transport::channels): partitioned channels of its own.
        const CHANNELS = 1 << 13;
        /// [`allocate`](crate::Transport::allocate): memory from which and into which cooperative transfers
        /// go, on either side, also without [`COOPERATIVE`](Capabilities::COOPERATIVE).
        const ALLOCATION = 1 << 14;
        /// Threads of the transport's own move the bytes: they need a core while a rank waits, which may be
        /// the rank's own.
        const THREADS = 1 << 15;
    }
}

/// What is known of the order in which remote writes become visible at their target: what was tested
/// on this machine, or holds by construction; not what a library merely promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ordering {
    /// Nothing.
    None,
    /// Writes to one peer become visible in the order in which they were posted, where a
    /// [fence](crate::RemoteAccess::fence) lies between them; a fence costs nothing.
    WriteAfterWrite,
}

/// What memory registration a transport asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Registration {
    /// None: any memory of the process can be named.
    None,
    /// Memory that a peer touches is registered first.
    Remote,
    /// Local buffers as well.
    LocalAndRemote,
}

/// From which threads a transport object may be driven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ThreadMode {
    /// One thread at a time per transport.
    Transport,
    /// One thread at a time per lane.
    Lane,
}

/// What a sleeping rank sleeps on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitObject {
    /// Nothing: waiting polls.
    None,
    /// A futex in shared memory.
    Futex,
    /// A file descriptor.
    Descriptor,
}

/// The sizes within which a transport works, in bytes unless said otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Largest payload that shares the header's slot (one cache line on shared memory).
    pub max_inline: usize,
    /// Largest payload of one [`send`](crate::ByteTransport::send).
    pub max_send: usize,
    /// Largest payload of one zero-copy send; 0 without the capability.
    pub max_zero_copy: usize,
    /// Largest single put or get; 0 without the capability.
    pub max_remote_access: u64,
    /// Offers that may be open towards one peer at once.
    pub max_offers: usize,
    /// Width of a put's immediate data, in bytes.
    pub immediate_width: usize,
    /// How many lanes there are.
    pub lanes: usize,
    /// Memory that an active peer costs in one direction.
    pub memory_per_peer: usize,
    /// Order of remote writes.
    pub ordering: Ordering,
    /// Registration of memory.
    pub registration: Registration,
    /// Threads.
    pub thread_mode: ThreadMode,
    /// What a sleeper sleeps on.
    pub wait_object: WaitObject,
}

/// How messages to one peer are best sent, as far as the layer above has a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preference {
    /// Most payload in one packet of a message that takes several, in bytes: little where a
    /// receiver copies one out while its sender copies the next in, much where each costs a call
    /// of the system.
    pub packet: usize,
    /// The longest message to be sent before it is matched, in bytes: the longer, the more an
    /// envelope that goes ahead costs.
    pub eager: usize,
    /// Each message costs so much that short ones are better sent several at once.
    pub coalesce: bool,
    /// Bytes that are worth a write of their own, of those that could go together.
    pub write: usize,
    /// Gets and puts carry long messages well, and the partitions of channels, where the transport has them.
    pub remote_access: bool,
}

impl Preference {
    /// For memory that two ranks share.
    pub const SHARED_MEMORY: Self = Self {
        packet: 8 << 10,
        eager: 16 << 10,
        coalesce: false,
        write: 4 << 10,
        remote_access: true,
    };

    /// For networks: as few messages as there can be.
    pub const NETWORK: Self = Self {
        packet: usize::MAX,
        eager: 64 << 10,
        coalesce: true,
        write: 32 << 10,
        remote_access: true,
    };
}

impl Limits {
    /// No length is as great, in bytes: what has no limit says this or more.
    pub const ENDLESS: u64 = 1 << 62;

    /// The limits of a transport that sends by copy, up to `max_send` bytes, and no more.
    #[must_use]
    pub const fn copying(max_inline: usize, max_send: usize) -> Self {
        Self {
            max_inline,
            max_send,
            max_zero_copy: 0,
            max_remote_access: 0,
            max_offers: 0,
            immediate_width: 0,
            lanes: 1,
            memory_per_peer: 0,
            ordering: Ordering::None,
            registration: Registration::None,
            thread_mode: ThreadMode::Transport,
            wait_object: WaitObject::None,
        }
    }
}
