//! Machines of papers, as far as their networks are known, each value with where it comes from.

use crate::machine::{Link, Machine};
use crate::time::{PerByte, Span};

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The paper says it.
    Text,
    /// It follows from what the paper says.
    Derived,
    /// Another public source says it, which the note names.
    Elsewhere,
    /// It is chosen so that a figure of the paper comes out.
    Fitted,
    /// Nothing is known but what such machines usually have.
    Assumed,
}

impl Source {
    /// Returns its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Derived => "derived",
            Self::Elsewhere => "elsewhere",
            Self::Fitted => "fitted",
            Self::Assumed => "assumed",
        }
    }
}

/// A value of a preset, and where it comes from.
#[derive(Debug, Clone, Copy)]
pub struct Value {
    /// The field of [`Machine`], as a file of a preset names it.
    pub field: &'static str,
    /// Where it comes from.
    pub source: Source,
    /// What is to be known of it.
    pub note: &'static str,
}

/// A named machine.
#[derive(Debug, Clone, Copy)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Its values.
    pub machine: Machine,
    /// Where they come from. What is not named is assumed to be nothing.
    pub values: &'static [Value],
}

/// A link by its latency, the overhead of each side and its gap, in nanoseconds, and femtoseconds per byte.
const fn link(latency: u64, overhead: u64, gap: u64, per_byte: u64) -> Link {
    Link {
        latency: Span::nanos(latency),
        send: Span::nanos(overhead),
        after_send: Span::ZERO,
        recv: Span::nanos(overhead),
        gap: Span::nanos(gap),
        per_byte: PerByte::femtos(per_byte),
        copy_out: PerByte::ZERO,
        copy_in: PerByte::ZERO,
        copy_in_up_to: 0,
        stream: PerByte::ZERO,
        process: PerByte::ZERO,
        process_from: 0,
        crowding: PerByte::ZERO,
        crowding_up_to: 0,
        crowding_beside: PerByte::ZERO,
        beside: PerByte::ZERO,
        beside_put: PerByte::ZERO,
    }
}

/// A machine with `cores` a node, of which a job's ranks take all.
const fn machine(network: Link, local: Link, cores: u32) -> Machine {
    Machine {
        network,
        local,
        ranks_per_node: 1,
        shares_local: false,
        cores,
        slice: Span::nanos(3_000_000),
        wake: Span::ZERO,
        handover: Span::ZERO,
        socket: 0,
        far_handover: Span::ZERO,
        matching: Span::ZERO,
        matching_gap: Span::ZERO,
        eager: 0,
        turn: 0,
        detection: Span::nanos(1_000_000),
    }
}

const fn value(field: &'static str, source: Source, note: &'static str) -> Value {
    Value {
        field,
        source,
        note,
    }
}

/// What all machines here have that no paper says.
const LOCAL: Value = value(
    "local",
    Source::Assumed,
    "0.4 us, 10 GB/s between ranks of a node",
);
const SLICE: Value = value(
    "slice",
    Source::Assumed,
    "3 ms, as schedulers of Linux give",
);
const DETECTION: Value = value("detection", Source::Assumed, "1 ms until a death is found");

const NODE: Link = link(400, 100, 50, 100_000);

/// The presets, in the order of reports.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "niagara",
        about: "Niagara: 2 x 20 cores a node, EDR InfiniBand (Temucin and others, partitioned communication)",
        machine: Machine {
            handover: Span::nanos(250),
            socket: 20,
            far_handover: Span::nanos(2950),
            eager: 16 << 10,
            slice: Span::nanos(12_000_000),
            ..machine(link(900, 250, 150, 82_600), NODE, 40)
        },
        values: &[
            value("latency", Source::Assumed, "0.9 us; the text has none"),
            value("overhead", Source::Assumed, "0.25 us a side"),
            value("gap", Source::Assumed, "0.15 us"),
            value(
                "per-byte",
                Source::Assumed,
                "0.0826 ns: 12.1 GB/s usable of 12.5",
            ),
            value(
                "cores",
                Source::Text,
                "2 x 20: 64 threads are more than the cores, as the text has it",
            ),
            value(
                "eager",
                Source::Elsewhere,
                "16 KiB: over reliable connections UCX reads longer messages that are not blocking from their sender (openucx/ucx, pull request 4572: 16 to 19 KB)",
            ),
            value("socket", Source::Text, "20 cores"),
            value(
                "handover",
                Source::Assumed,
                "0.25 us, so that a partition costs 0.5 us",
            ),
            value(
                "far-handover",
                Source::Fitted,
                "2.95 us, on 59.4 times one message with 32 partitions (fig. 4)",
            ),
            LOCAL,
            value(
                "slice",
                Source::Elsewhere,
                "12 ms: two threads of a core take turns of 24 ms together (sysctl_sched_latency of Linux 3.10, that of CentOS 7, on 8 CPUs and more)",
            ),
            DETECTION,
        ],
    },
    Preset {
        name: "manzano",
        about: "Manzano: 2 x 24 cores a node, Omni-Path (message aggregation by bins)",
        machine: Machine {
            handover: Span::nanos(250),
            wake: Span::nanos(2_000),
            ..machine(
                Link {
                    copy_in: PerByte::femtos(400_000),
                    copy_in_up_to: 64_000,
                    stream: PerByte::femtos(755_000),
                    process: PerByte::femtos(670_000),
                    process_from: 10_600_000,
                    crowding: PerByte::femtos(570_000),
                    crowding_beside: PerByte::femtos(31_000),
                    crowding_up_to: 16_000,
                    ..link(500, 300, 0, 80_000)
                },
                NODE,
                48,
            )
        },
        values: &[
            value(
                "latency",
                Source::Fitted,
                "0.5 us, with the next on how little RMA loses below 64 KiB with 26 peers and normal arrivals (fig. 6)",
            ),
            value("overhead", Source::Fitted, "0.3 us a side, as the last"),
            value("per-byte", Source::Assumed, "0.08 ns: the line's 12.5 GB/s"),
            value(
                "copy-in",
                Source::Fitted,
                "0.4 ns, on the least gain of 32 bins with 6 peers, from 1 MiB on and with normal arrivals (fig. 6)",
            ),
            value(
                "copy-in-up-to",
                Source::Elsewhere,
                "64,000 B: longer messages go where they belong (PSM2_MQ_RNDV_HFI_THRESH of PSM2)",
            ),
            value(
                "stream",
                Source::Fitted,
                "0.755 ns: messages to one peer, on the greatest gain of RMA with 6 peers and normal arrivals (fig. 6)",
            ),
            value(
                "process",
                Source::Fitted,
                "0.67 ns: all messages of a process, with the next on the greatest gains of two-sided messages with 6 and with 26 peers and normal arrivals (fig. 6)",
            ),
            value(
                "process-from",
                Source::Fitted,
                "10.6 MB that have yet to leave, as the last",
            ),
            value(
                "crowding",
                Source::Fitted,
                "0.57 ns for each message of the same peer, with the next on the greatest losses of 32 bins with 6 peers, and of 4 to 32 with 26, with normal arrivals (fig. 6)",
            ),
            value(
                "crowding-up-to",
                Source::Elsewhere,
                "16,000 B: cores write shorter messages that are not blocking, the adapter fetches longer ones (MQ_HFI_THRESH_EGR_SDMA_SQ_XEON of PSM2)",
            ),
            value(
                "crowding-beside",
                Source::Fitted,
                "0.031 ns for each message, as the last",
            ),
            value("handover", Source::Assumed, "0.25 us, as on Niagara"),
            value("wake", Source::Assumed, "2 us, as on Mutrino"),
            value(
                "cores",
                Source::Assumed,
                "2 sockets of Cascade Lake; 32 threads were used",
            ),
            LOCAL,
            SLICE,
            DETECTION,
        ],
    },
    Preset {
        name: "mutrino",
        about: "Mutrino: 2 x 16 cores a node, Aries (message aggregation by bins)",
        machine: Machine {
            wake: Span::nanos(2_000),
            handover: Span::nanos(5_000),
            eager: 8 << 10,
            ..machine(
                Link {
                    beside: PerByte::femtos(340_000),
                    beside_put: PerByte::femtos(200_000),
                    ..link(2000, 500, 0, 100_000)
                },
                NODE,
                32,
            )
        },
        values: &[
            value(
                "latency",
                Source::Fitted,
                "2 us, on the least loss of RMA with 26 peers, up to 1 MiB and with normal arrivals (fig. 6)",
            ),
            value("overhead", Source::Assumed, "0.5 us a side"),
            value("per-byte", Source::Assumed, "0.1 ns: 10 GB/s"),
            value(
                "handover",
                Source::Fitted,
                "5 us, on the greatest loss of two-sided messages below 1 MiB with 6 peers and normal arrivals (fig. 6)",
            ),
            value(
                "beside",
                Source::Fitted,
                "0.34 ns: messages to several peers at once, on the greatest losses of two-sided messages with 6 and with 26 peers and normal arrivals (fig. 6)",
            ),
            value(
                "beside-put",
                Source::Fitted,
                "0.2 ns: RMA to several peers at once, on its greatest loss with 26 peers, 4 MiB and normal arrivals (fig. 6)",
            ),
            value(
                "wake",
                Source::Assumed,
                "2 us: no two nodes wake their threads at the same moment",
            ),
            value(
                "eager",
                Source::Elsewhere,
                "8 KiB: MPICH_GNI_MAX_EAGER_MSG_SIZE of Cray MPICH by default",
            ),
            value(
                "cores",
                Source::Assumed,
                "2 sockets of Haswell; 16 threads were used",
            ),
            LOCAL,
            SLICE,
            DETECTION,
        ],
    },
    Preset {
        name: "power9",
        about: "2 x 20 Power9 cores and 4 V100 a node, InfiniBand (partitioned reduction)",
        machine: Machine {
            ranks_per_node: 40,
            ..machine(
                Link {
                    copy_in: PerByte::femtos(250_000),
                    ..link(1100, 300, 0, 83_000)
                },
                Link {
                    copy_in: PerByte::femtos(250_000),
                    ..link(400, 100, 0, 100_000)
                },
                40,
            )
        },
        values: &[
            value("latency", Source::Assumed, "1.1 us"),
            value("overhead", Source::Assumed, "0.3 us a side"),
            value(
                "per-byte",
                Source::Assumed,
                "0.083 ns, shared by a node's processes",
            ),
            value(
                "copy-in",
                Source::Assumed,
                "0.25 ns: a core adds or copies what has come at 4 GB/s",
            ),
            value("ranks-per-node", Source::Text, "40"),
            value("cores", Source::Text, "2 x 20"),
            value(
                "local",
                Source::Assumed,
                "0.4 us, 0.1 ns a byte in a socket",
            ),
            SLICE,
            DETECTION,
        ],
    },
    Preset {
        name: "breadboard",
        about: "Breadboard: 2 x 2 Opteron cores a node, Gigabit Ethernet (threads)",
        machine: Machine {
            handover: Span::nanos(2_000),
            ..machine(link(36_900, 1_550, 0, 8_000_000), NODE, 4)
        },
        values: &[
            value(
                "latency",
                Source::Assumed,
                "36.9 us, so that an empty message takes about 40 us",
            ),
            value(
                "overhead",
                Source::Derived,
                "half of MPICH2's 3.10 us a message, each side",
            ),
            value("per-byte", Source::Derived, "8 ns: 1 Gbit/s"),
            value("cores", Source::Text, "2 x 2"),
            value(
                "handover",
                Source::Derived,
                "2 us: four threads send a message in 5.4 us of one lock, and one in 3.4 us (table 1)",
            ),
            LOCAL,
            SLICE,
            DETECTION,
        ],
    },
    Preset {
        name: "redstorm",
        about: "Red Storm: dual-core Opterons, SeaStar 2.1 (Graham and others, matching transport layer), as its Portals serves cm",
        machine: Machine {
            matching: Span::nanos(1_250),
            matching_gap: Span::nanos(5_400),
            eager: 32 << 10,
            ..machine(link(2300, 1305, 2700, 500_000), NODE, 2)
        },
        values: &[
            value(
                "latency",
                Source::Assumed,
                "2.3 us of the 4.91 us that L + 2o is in the text",
            ),
            value(
                "overhead",
                Source::Derived,
                "1.305 us a side: the rest of 4.91 us",
            ),
            value(
                "gap",
                Source::Derived,
                "2.7 us: 370,000 messages/s on an axis",
            ),
            value(
                "per-byte",
                Source::Assumed,
                "0.5 ns; the text has no bandwidth",
            ),
            value(
                "matching",
                Source::Derived,
                "1.25 us: the text has 6.16 us of ob1 and 4.91 us of cm at no bytes",
            ),
            value(
                "matching-gap",
                Source::Fitted,
                "5.4 us: ob1 has nearly half of the rate of cm (figure 4)",
            ),
            value(
                "eager",
                Source::Text,
                "32 KiB: ob1 has longer messages read after the match",
            ),
            value("cores", Source::Text, "2"),
            LOCAL,
            SLICE,
            DETECTION,
        ],
    },
];

/// Returns the preset called `name`.
#[must_use]
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_of_a_preset_has_a_source() {
        for preset in PRESETS {
            let Machine { network, .. } = preset.machine;
            let named = |field| preset.values.iter().any(|value| value.field == field);
            for field in [
                "latency",
                "overhead",
                "per-byte",
                "cores",
                "local",
                "slice",
                "detection",
            ] {
                assert!(named(field), "{}: {field}", preset.name);
            }
            let machine = preset.machine;
            for (field, is_set) in [
                ("gap", network.gap > Span::ZERO),
                ("wake", machine.wake > Span::ZERO),
                ("handover", machine.handover > Span::ZERO),
                ("socket", machine.socket > 0),
                ("far-handover", machine.far_handover > Span::ZERO),
                ("stream", network.stream.as_femtos() > 0),
                ("process", network.process.as_femtos() > 0),
                ("process-from", network.process_from > 0),
                ("crowding", network.crowding.as_femtos() > 0),
                ("crowding-up-to", network.crowding_up_to > 0),
                ("crowding-beside", network.crowding_beside.as_femtos() > 0),
                ("beside", network.beside.as_femtos() > 0),
                ("beside-put", network.beside_put.as_femtos() > 0),
                ("copy-in", network.copy_in.as_femtos() > 0),
                ("copy-in-up-to", network.copy_in_up_to > 0),
                ("ranks-per-node", machine.ranks_per_node > 1),
                ("matching", machine.matching > Span::ZERO),
                ("matching-gap", machine.matching_gap > Span::ZERO),
                ("eager", machine.eager > 0),
            ] {
                assert_eq!(named(field), is_set, "{}: {field}", preset.name);
            }
        }
    }
}
