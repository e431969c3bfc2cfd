//! Which tiers of the conformance kits are passed: published here, so that no test code is in the
//! command, and checked by `tests/conformance_tiers.rs`, which says what to write when it fails.

/// The tiers of the kit for transports that move bytes.
pub const BYTES: &[(&str, &[&str])] = &[
    ("shm", &["core", "failure", "cooperative", "wake"]),
    ("null", &["core", "retain", "wake", "put", "get", "notice"]),
];

/// The tiers of the kit for point-to-point layers, by layer and transport.
pub const PAIRS: &[(&str, &str, &[&str])] = &[("ob1", "shm", ALL), ("cm", "shm", ALL)];

const ALL: &[&str] = &[
    "core", "flow", "failure", "wake", "close", "threads", "dump",
];
