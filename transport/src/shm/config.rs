//! What the user may set.

use tagwire_base::config::{Config, Setting};

use super::arena;
use super::matching::{MAX_HEADERS, MAX_OVERFLOW};
use super::ways::CopyWay;
use crate::shared_writes::{Way, Ways};

/// Whether ranks copy straight between each other's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CrossAttach {
    /// Where the kernel lets them.
    Auto,
    /// The same, and opening fails where the kernel forbids it.
    On,
    /// Never: as if the kernel forbade it.
    Off,
}

/// How a peer's segment is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DescriptorWay {
    /// Through `/proc` where the peer's process is visible there, else passed.
    Auto,
    /// Through `/proc` only.
    Proc,
    /// Passed by the bootstrap only.
    Passed,
}

/// The options of a [`Shm`](super::Shm).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShmOptions {
    /// Cross-memory attach.
    pub cross_attach: CrossAttach,
    /// How a peer's segment is opened.
    pub descriptor: DescriptorWay,
    /// Smallest chunk of a cooperative transfer, in bytes.
    pub chunk_min: usize,
    /// Largest chunk of a cooperative transfer, in bytes.
    pub chunk_max: usize,
    /// Largest partitioned message whose partitions are copied over shared memory.
    pub staged: usize,
    /// Bytes of unexpected short messages that a rank that matches keeps.
    pub overflow: usize,
    /// Unexpected messages that a rank that matches keeps the headers of.
    pub headers: usize,
    /// Bytes of the arena that [`allocate`](crate::Transport::allocate) takes from, rounded up to 64 KiB; 0 for none.
    pub arena: usize,
    /// Bytes that the rooms of all ranks on the machine may take; `None` for 1/64 of the machine's memory, or of
    /// the limit of the control group where that is less.
    pub room: Option<usize>,
    /// Whether answers go into memory of what they answer, always or never; `None`: as is found by trial.
    pub reuse: Option<bool>,
    /// Whether payloads and slots of boards are written past the caches, always or never; `None`: as is found by trial.
    pub stream: Option<bool>,
    /// How long messages are moved, always; `None`: as is found by trial, for each pair and length.
    pub way: Option<CopyWay>,
    /// Set by [`ShmMatch::open`](super::ShmMatch::open): peers' match lists are mapped.
    #[doc(hidden)]
    pub matches: bool,
    /// Where the rings of what this rank sends begin to count slots, and bytes of payload. Both wrap at 2^32.
    pub first_slot: u32,
}

impl Default for ShmOptions {
    fn default() -> Self {
        Self {
            cross_attach: CrossAttach::Auto,
            descriptor: DescriptorWay::Auto,
            chunk_min: 32 * 1024,
            chunk_max: 512 * 1024,
            staged: 8 * 1024,
            overflow: MAX_OVERFLOW,
            headers: MAX_HEADERS,
            arena: ARENA,
            room: None,
            reuse: None,
            stream: None,
            way: None,
            matches: false,
            first_slot: 0,
        }
    }
}

impl ShmOptions {
    /// The options that `config` holds under the names of [`SETTINGS`].
    #[must_use]
    pub fn from_config(config: &Config) -> Self {
        let chunk_min = config.bytes("shm-chunk-min");
        Self {
            cross_attach: match config.choice("shm-cma") {
                "on" => CrossAttach::On,
                "off" => CrossAttach::Off,
                _ => CrossAttach::Auto,
            },
            descriptor: match config.choice("shm-descriptor") {
                "proc" => DescriptorWay::Proc,
                "passed" => DescriptorWay::Passed,
                _ => DescriptorWay::Auto,
            },
            chunk_min,
            chunk_max: config.bytes("shm-chunk-max").max(chunk_min),
            staged: config.bytes("shm-staged"),
            overflow: config.bytes("shm-overflow"),
            headers: config.integer("shm-headers") as usize,
            arena: config.bytes("shm-arena"),
            room: config.bytes_or_auto("shm-room"),
            reuse: switch(config.choice("shm-reuse")),
            stream: switch(config.choice("shm-stream")),
            way: CopyWay::named(config.choice("shm-way")),
            matches: false,
            first_slot: config.integer("shm-first-slot") as u32,
        }
    }

    /// The ways of writing payloads that are tried, towards one peer.
    pub(super) fn write_ways(&self) -> Ways {
        let ways = Ways::of_stores(self.stream);
        match self.reuse {
            None if self.has_rooms() => ways.and(Way::Reuse),
            _ => ways,
        }
    }

    /// Whether there may be rooms.
    pub(super) fn has_rooms(&self) -> bool {
        !self.matches && self.room != Some(0)
    }
}

/// What a choice among auto, on and off says.
fn switch(choice: &str) -> Option<bool> {
    match choice {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

/// The settings of this transport.
pub const SETTINGS: &[Setting] = &[
    Setting::choice(
        READER,
        "shm-cma",
        "auto",
        &["auto", "on", "off"],
        "Copy large messages straight between the memory of two ranks (cross-memory attach): \
         where the kernel allows it, or else fail, or never",
    ),
    Setting::choice(
        READER,
        "shm-descriptor",
        "auto",
        &["auto", "proc", "passed"],
        "How the shared memory of a peer is opened: through /proc where the peer is visible \
         there and else passed by the launcher, through /proc only, or passed only",
    ),
    Setting::bytes(
        READER,
        "shm-chunk-min",
        32 * 1024,
        4096..=1 << 30,
        "Smallest piece of a large message that one of both ranks takes to copy",
    ),
    Setting::bytes(
        READER,
        "shm-chunk-max",
        512 * 1024,
        4096..=1 << 30,
        "Largest piece of a large message that one of both ranks takes to copy",
    ),
    Setting::bytes(
        READER,
        "shm-staged",
        8 * 1024,
        0..=1 << 30,
        "Largest partitioned message whose partitions are copied over shared memory; those of longer \
         ones are copied in place, where the kernel allows it",
    ),
    Setting::bytes(
        READER,
        "shm-overflow",
        MAX_OVERFLOW as u64,
        0..=MAX_OVERFLOW as u64,
        "Payload of unexpected short messages that a rank keeps where the transport matches; past \
         it their senders keep them",
    ),
    Setting::integer(
        READER,
        "shm-headers",
        MAX_HEADERS as u64,
        0..=MAX_HEADERS as u64,
        "Unexpected messages that a rank knows of where the transport matches; past it their \
         senders keep them",
    ),
    Setting::bytes(
        READER,
        "shm-arena",
        ARENA as u64,
        0..=arena::MOST,
        "Memory of a rank from which its program can allocate buffers that peers map, so that large messages are copied once where \
         cross-memory attach is forbidden too; only addresses are taken until it is allocated",
    ),
    Setting::bytes_or_auto(
        READER,
        "shm-room",
        0..=1 << 40,
        "Memory of this machine in which the rings between ranks that send each other long messages may grow, over all ranks of the job; auto \
         is 1/64 of the machine's, or of the limit of the control group where that is less. A value other than 0 gives each \
         rank 256K at least. Within 10 s of silence a ring is back to 24K, with pages of 4K",
    ),
    Setting::choice(
        READER,
        "shm-reuse",
        "auto",
        &["auto", "on", "off"],
        "Whether messages of 256 B to 16 KiB go into memory from which their sender has just read others of their receiver: as is found by trial, \
         or always where there is such memory, or never. Pieces of longer messages do unless it is off",
    ),
    Setting::choice(
        READER,
        "shm-stream",
        "auto",
        &["auto", "on", "off"],
        "Whether what a rank writes for another to read, messages of 1 KiB to 16 KiB and the slots of collectives, goes past the caches: as is found by trial \
         for each peer and length, or always, or never",
    ),
    Setting::integer(
        READER,
        "shm-first-slot",
        0,
        0..=u32::MAX as u64,
        "Where the rings of what a rank sends begin to count slots, and bytes of payload: a place shortly below 2^32 has both wrap early, as they do in long runs",
    ),
    Setting::choice(
        READER,
        "shm-way",
        "auto",
        &["auto", "halves", "one-side", "ring"],
        "How two ranks copy a long message: as is found by trial for each pair and length (auto), \
         or always by halves, by the kernel with the side that joins last alone, or through the memory of their ring. Messages \
         that a rank moves one at a time, and those that it moves beside others, are tried apart. Those of 1 MiB at most that go through the ring are \
         sent before they are matched while their receiver is there in time",
    ),
];

/// Bytes of an arena, unless said otherwise.
const ARENA: usize = 64 << 20;

const READER: &str = "transport::shm";

#[cfg(test)]
mod tests {
    use tagwire_base::Registry;

    use super::*;

    #[test]
    fn options_come_from_the_settings() {
        let registry = Registry::new(&[SETTINGS]);
        let mut config = Config::defaults(&registry);
        assert_eq!(ShmOptions::from_config(&config), ShmOptions::default());
        for (name, value) in [
            ("shm-cma", "off"),
            ("shm-descriptor", "passed"),
            ("shm-chunk-min", "2M"),
            ("shm-arena", "3G"),
            ("shm-room", "96M"),
            ("shm-reuse", "off"),
            ("shm-stream", "on"),
            ("shm-way", "one-side"),
            ("shm-first-slot", "4294967295"),
        ] {
            config.set(name, value).expect("the settings exist");
        }
        let options = ShmOptions::from_config(&config);
        assert_eq!(options.cross_attach, CrossAttach::Off);
        assert_eq!(options.descriptor, DescriptorWay::Passed);
        assert_eq!((options.arena, options.room), (3 << 30, Some(96 << 20)));
        let ways = (options.reuse, options.stream, options.way);
        assert_eq!(ways, (Some(false), Some(true), Some(CopyWay::OneSide)));
        assert_eq!(options.first_slot, u32::MAX);
        // The largest chunk is never below the smallest.
        assert_eq!((options.chunk_min, options.chunk_max), (2 << 20, 2 << 20));
    }
}
