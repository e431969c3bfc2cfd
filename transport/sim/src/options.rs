//! What a simulated network is like, beside the times of its machine.

use std::time::Duration;

use crate::machine::Machine;
use crate::picture::Trace;

/// The sizes of a [`SimNetwork`](crate::SimNetwork) and what it pretends to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimOptions {
    /// Messages that may be under way from one rank to another.
    pub slots: usize,
    /// How many of the slots only control messages may use.
    pub control_slots: usize,
    /// Largest payload of one message, in bytes.
    pub max_send: usize,
    /// Messages that one call of progress delivers.
    pub burst: usize,
    /// Whether there are cooperative transfers (offer and claim).
    pub cooperative: bool,
    /// Bytes of a cooperative transfer that one call of progress moves.
    pub chunk: usize,
    /// Whether peers may read exposed memory (expose and get).
    pub get: bool,
    /// Whether peers may write registered memory (register and put).
    pub put: bool,
    /// Whether a put may come with a notice.
    pub notices: bool,
    /// Whether it says that puts become visible in their order, as they do.
    pub ordered_puts: bool,
    /// Bytes of the key of memory that peers may reach, 8 at least.
    pub key: usize,
    /// Puts of a rank that may be under way: their ends were not reported.
    pub puts: usize,
    /// Ends of operations that one call of progress reports.
    pub completions: usize,
    /// Offers that may be open from one rank to another.
    pub max_offers: usize,
    /// Whether the network finds failed ranks itself.
    pub detect_failures: bool,
    /// Whether it says that it reaches other hosts.
    pub remote: bool,
    /// What a call of progress that finds nothing takes, where ranks are driven by calls: so that who polls until a moment comes gets
    /// there.
    pub poll: Duration,
    /// The machine. Without one messages take no time, and nothing happens but by calls, in their order.
    pub machine: Option<Machine>,
    /// What a seed decides, on a machine.
    pub schedule: Schedule,
    /// Whether ranks that are driven by calls have a thread each, of which one runs at a time: see [`SimNetwork::turn`](crate::SimNetwork::turn).
    pub turns: bool,
    /// Takes note of what travels, for a [picture](Trace::svg).
    pub trace: Option<Trace>,
}

/// What a seed decides: which of several things at one moment comes first, and what goes wrong.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Schedule {
    /// Names the schedule.
    pub seed: u64,
    /// Whether the seed decides among events at one moment. Else the one that was entered first comes first.
    pub shuffle: bool,
    /// The most by which a message is late.
    pub delay: Duration,
    /// Whether a message that is late may be overtaken by others from its sender to its receiver.
    pub reorder: bool,
    /// Ranks that die, and when.
    pub kills: Vec<Kill>,
}

/// The death of a rank: it says no goodbye.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kill {
    /// The rank.
    pub rank: u32,
    /// When, from the start.
    pub at: Duration,
}

impl Default for SimOptions {
    /// A plain network: small queues, messages of up to 8 KiB, neither cooperative
    /// transfers nor gets, failures detected; no machine.
    fn default() -> Self {
        Self {
            slots: 64,
            control_slots: 8,
            max_send: 8192,
            burst: 16,
            cooperative: false,
            chunk: 64 * 1024,
            get: false,
            put: false,
            notices: false,
            ordered_puts: false,
            key: 8,
            puts: usize::MAX,
            completions: usize::MAX,
            max_offers: 16,
            detect_failures: true,
            remote: false,
            poll: Duration::from_nanos(100),
            machine: None,
            schedule: Schedule::default(),
            turns: false,
            trace: None,
        }
    }
}

impl SimOptions {
    /// The same, with everything that can be had.
    #[must_use]
    pub fn full() -> Self {
        Self {
            cooperative: true,
            get: true,
            put: true,
            notices: true,
            ordered_puts: true,
            ..Self::default()
        }
    }

    /// Returns the options of a network of a machine as those of the presets are: messages as long as the machine's library sends them
    /// before they are matched, remote writes and reads.
    #[must_use]
    pub fn of(machine: Machine) -> Self {
        Self {
            cooperative: false,
            max_send: match machine.eager {
                0 => 64 << 10,
                eager => eager as usize,
            },
            remote: true,
            machine: Some(machine),
            ..Self::full()
        }
    }

    /// The nearest options with which messages get through at all: a slot for data and one for
    /// control, progress that moves something.
    pub(crate) fn made_consistent(mut self) -> Self {
        self.slots = self.slots.max(2);
        self.control_slots = self.control_slots.clamp(1, self.slots - 1);
        self.burst = self.burst.max(1);
        self.chunk = self.chunk.max(1);
        self.key = self.key.max(8);
        self.puts = self.puts.max(1);
        self.completions = self.completions.max(1);
        self.max_offers = self.max_offers.max(1);
        self
    }

    /// Returns whether messages from one rank to another arrive in their order.
    pub(crate) const fn keeps_order(&self) -> bool {
        self.machine.is_none() || !self.schedule.reorder
    }
}
