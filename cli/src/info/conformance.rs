//! Which tiers of the conformance kits are passed: published here, so that no test code is in the
//! command, and checked by `tests/conformance_tiers.rs`, which says what to write when it fails. What
//! libraries decide is checked by the tests of their transports and of `tagwire-pml`, which read it here.

#![allow(dead_code, reason = "each test reads its part")]

/// The tiers of the kit for transports that move bytes.
pub const BYTES: &[(&str, &[&str])] = &[
    (
        "shm",
        &["core", "failure", "cooperative", "wake", "put", "get"],
    ),
    ("null", &["core", "wake", "put", "get", "notice"]),
];

/// The tiers of the kit for point-to-point layers, by layer and transport.
pub const PAIRS: &[(&str, &str, &[&str])] =
    &[("ob1", "shm", ALL), ("cm", "shm", ALL), ("dr", "shm", ALL)];

/// What a provider or transport of a library passes.
#[derive(Debug, Clone, Copy)]
pub struct Fabric {
    /// What follows the colon.
    pub detail: &'static str,
    pub library: &'static str,
    /// Tiers of the kit for transports that move bytes.
    pub tiers: &'static [&'static str],
    /// Checks of that kit that are skipped.
    pub but: &'static [&'static str],
    /// Checks of the kit for transports that match which are skipped; `None` where it may not match.
    pub matching_but: Option<&'static [&'static str]>,
}

/// What a point-to-point layer passes over a transport of a library.
#[derive(Debug, Clone, Copy)]
pub struct FabricPair {
    pub layer: &'static str,
    pub transport: &'static str,
    pub library: &'static str,
    pub tiers: &'static [&'static str],
    /// Checks that are run; all of the suite where there are none.
    pub only: Option<&'static [&'static str]>,
    /// Checks that are skipped.
    pub but: &'static [&'static str],
}

/// Debian 12's libfabric.
pub const SYSTEM_LIBFABRIC: &str = "libfabric 1.17";
/// The same in the guest of `tests/verbs/`.
pub const SOFTWARE_DEVICES: &str = "libfabric 1.17 on devices in software";
/// That of `pip install mpich`.
pub const NEWER_LIBFABRIC: &str = "libfabric 2.x";
/// Debian 12's UCX.
pub const SYSTEM_UCX: &str = "UCX 1.13";
/// The same in the guest of `tests/verbs/`.
pub const SOFTWARE_UCX: &str = "UCX 1.13 on devices in software";
/// That of `pip install libucx-cu12`.
pub const NEWER_UCX: &str = "UCX 1.22";

/// Providers of libfabric.
pub const OFI: &[Fabric] = &[
    fabric("tcp;ofi_rxm", SYSTEM_LIBFABRIC, NO_NOTICE, Some(UNSEEN)),
    fabric("net", SYSTEM_LIBFABRIC, CONNECTED, None),
    fabric("shm", SYSTEM_LIBFABRIC, PLAIN, None),
    fabric("udp;ofi_rxd", SYSTEM_LIBFABRIC, PLAIN, None),
    Fabric {
        but: OWN_TIMES,
        ..fabric("sockets", SYSTEM_LIBFABRIC, CONNECTED, None)
    },
    fabric(
        "verbs;ofi_rxm",
        SOFTWARE_DEVICES,
        NO_NOTICE,
        Some(VERBS_UNSEEN),
    ),
    fabric("tcp", NEWER_LIBFABRIC, CONNECTED, Some(UNSEEN)),
    fabric("tcp;ofi_rxm", NEWER_LIBFABRIC, NO_NOTICE, Some(UNSEEN)),
    fabric("udp;ofi_rxd", NEWER_LIBFABRIC, PLAIN, None),
];

/// Transports of UCX.
pub const UCX: &[Fabric] = &[
    fabric("tcp,self", SYSTEM_UCX, UCX_TCP, Some(&[])),
    fabric("posix,cma,self", SYSTEM_UCX, CONNECTED, Some(&[])),
    fabric("sysv,cma,self", SYSTEM_UCX, CONNECTED, Some(&[])),
    Fabric {
        but: CLOSED_EARLY,
        ..fabric("rc_verbs,tcp,self", SOFTWARE_UCX, UCX_TCP, Some(MANY_JOBS))
    },
    fabric("tcp,self", NEWER_UCX, UCX_TCP, Some(&[])),
    fabric("posix,cma,self", NEWER_UCX, CONNECTED, Some(&[])),
];

/// Layers over both libraries. Where matching is refused there is no cm.
pub const FABRIC_PAIRS: &[FabricPair] = &[
    pair("ob1", "ofi:tcp", NEWER_LIBFABRIC, ALL, ONE_THREAD),
    pair("cm", "ofi:tcp", NEWER_LIBFABRIC, ALL_BUT_DUMP, OTHERS_MATCH),
    selection("ob1", "ofi:tcp;ofi_rxm", NEWER_LIBFABRIC),
    selection("cm", "ofi:tcp;ofi_rxm", NEWER_LIBFABRIC),
    selection("ob1", "ofi:udp;ofi_rxd", NEWER_LIBFABRIC),
    selection("ob1", "ofi:tcp;ofi_rxm", SYSTEM_LIBFABRIC),
    selection("cm", "ofi:tcp;ofi_rxm", SYSTEM_LIBFABRIC),
    FabricPair {
        tiers: ALL_BUT_WAKE,
        but: RESTLESS,
        ..selection("ob1", "ofi:net", SYSTEM_LIBFABRIC)
    },
    selection("ob1", "ofi:udp;ofi_rxd", SYSTEM_LIBFABRIC),
    selection("ob1", "ofi:verbs;ofi_rxm", SOFTWARE_DEVICES),
    selection("cm", "ofi:verbs;ofi_rxm", SOFTWARE_DEVICES),
    pair("ob1", "ucx:tcp,self", SYSTEM_UCX, ALL, &[]),
    pair("cm", "ucx:tcp,self", SYSTEM_UCX, ALL, &[]),
    pair("ob1", "ucx:posix,cma,self", SYSTEM_UCX, ALL, &[]),
    pair("cm", "ucx:posix,cma,self", SYSTEM_UCX, ALL, &[]),
    pair("ob1", "ucx:sysv,cma,self", SYSTEM_UCX, ALL, &[]),
    pair("cm", "ucx:sysv,cma,self", SYSTEM_UCX, ALL, &[]),
    selection("ob1", "ucx:rc_verbs,tcp,self", SOFTWARE_UCX),
    selection("cm", "ucx:rc_verbs,tcp,self", SOFTWARE_UCX),
    selection("ob1", "ucx:tcp,self", NEWER_UCX),
    selection("cm", "ucx:tcp,self", NEWER_UCX),
    selection("ob1", "ucx:posix,cma,self", NEWER_UCX),
    selection("cm", "ucx:posix,cma,self", NEWER_UCX),
];

/// The checks that are run where a job takes long to connect (`pml_conformance!(@selection)`).
pub const SELECTION: &[&str] = &[
    "every_length_arrives",
    "messages_to_oneself_arrive",
    "synchronous_sends_wait_for_the_match",
    "statuses_are_full",
    "order_is_kept_per_pair",
    "tags_are_received_in_any_order",
    "the_earliest_posted_receive_wins",
    "wildcards_take_from_everyone",
    "contexts_keep_apart",
    "probes_see_and_leave",
    "cancelled_receives_take_nothing",
    "blocking_calls_get_on",
    "random_traffic_of_eight",
    "floods_stay_within_the_budget",
    "what_was_sent_before_a_goodbye_is_there",
    "eight_exchange_with_each_other",
    "eight_go_on_after_a_death",
    "a_rank_that_waits_for_long_sleeps",
    "closing_ends_receives_and_flushes_sends",
    "many_threads_share_a_rank",
];

/// What no provider of libfabric that matches has the means for: it shows no unexpected messages.
pub const UNSEEN: &[&str] = &["dumps_name_messages_and_peers"];

/// And many jobs one after the other, which under emulation takes longer than the guest is given.
pub const VERBS_UNSEEN: &[&str] = &[
    "dumps_name_messages_and_peers",
    "cancels_race_with_messages",
    "random_runs_match_the_lists",
];

/// Where a thread of the provider moves messages while nobody makes progress: queues are full, and messages
/// are lost with a rank that dies, at times of its own.
pub const OWN_TIMES: &[&str] = &[
    "control_passes_full_data",
    "full_is_busy_and_recovers",
    "last_words_are_delivered",
];

/// The same of UCX, which shows its unexpected messages and takes longer to connect.
pub const MANY_JOBS: &[&str] = &[
    "cancels_race_with_messages",
    "deaths_cut_messages_off",
    "random_runs_match_the_lists",
];

/// Ranks that end while they connect crash UCX now and then (docs/libraries.md).
pub const CLOSED_EARLY: &[&str] = &["connects_to_the_same_endpoint"];

const ALL: &[&str] = &[
    "core", "flow", "failure", "wake", "close", "threads", "dump",
];

const ALL_BUT_DUMP: &[&str] = &["core", "flow", "failure", "wake", "close", "threads"];

const ALL_BUT_WAKE: &[&str] = &["core", "flow", "failure", "close", "threads"];

const CONNECTED: &[&str] = &[
    "core",
    "failure",
    "wake",
    "zero-copy",
    "put",
    "get",
    "notice",
];

const NO_NOTICE: &[&str] = &["core", "failure", "wake", "zero-copy", "put", "get"];

const UCX_TCP: &[&str] = &[
    "core",
    "failure",
    "detection",
    "wake",
    "zero-copy",
    "put",
    "get",
    "notice",
];

const PLAIN: &[&str] = &["core", "failure", "zero-copy"];

/// Now and then the descriptor to sleep on stays readable (docs/libraries.md).
const RESTLESS: &[&str] = &["a_rank_that_waits_for_long_sleeps"];

/// Checks that no network passes whose ranks are driven by one thread. A rank that closes while
/// nobody drives its peers is not heard out: what it has just greeted is open, and what a peer sends
/// to it before it reads the goodbye may reset the connection with the goodbye in it.
const ONE_THREAD: &[&str] = &[
    "a_close_past_its_deadline_names_what_is_open",
    "those_who_left_are_no_failures",
];

/// And those of a provider that matches: it shows no unexpected messages, and messages of several
/// senders arrive in the order in which it reads its connections.
const OTHERS_MATCH: &[&str] = &[
    "a_close_past_its_deadline_names_what_is_open",
    "those_who_left_are_no_failures",
    "a_dump_names_what_is_waited_for",
    "the_earliest_message_wins",
];

const fn fabric(
    detail: &'static str,
    library: &'static str,
    tiers: &'static [&'static str],
    matching_but: Option<&'static [&'static str]>,
) -> Fabric {
    Fabric {
        detail,
        library,
        tiers,
        but: &[],
        matching_but,
    }
}

const fn pair(
    layer: &'static str,
    transport: &'static str,
    library: &'static str,
    tiers: &'static [&'static str],
    but: &'static [&'static str],
) -> FabricPair {
    FabricPair {
        layer,
        transport,
        library,
        tiers,
        only: None,
        but,
    }
}

/// A pair of which some checks of most tiers are run.
const fn selection(
    layer: &'static str,
    transport: &'static str,
    library: &'static str,
) -> FabricPair {
    FabricPair {
        only: Some(SELECTION),
        ..pair(layer, transport, library, ALL_BUT_DUMP, &[])
    }
}
