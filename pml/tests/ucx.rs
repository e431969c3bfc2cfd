//! ob1 and cm over the system's UCX (1.13 on Debian 12): by TCP and by shared memory.
#![cfg(not(loom))]

mod common;
mod fabrics;

pair!(ob1_tcp: for_each, "ob1", "ucx:tcp,self", SYSTEM_UCX);
pair!(cm_tcp: for_each, "cm", "ucx:tcp,self", SYSTEM_UCX);
pair!(ob1_posix: for_each, "ob1", "ucx:posix,cma,self", SYSTEM_UCX);
pair!(cm_posix: for_each, "cm", "ucx:posix,cma,self", SYSTEM_UCX);
pair!(ob1_sysv: for_each, "ob1", "ucx:sysv,cma,self", SYSTEM_UCX);
pair!(cm_sysv: for_each, "cm", "ucx:sysv,cma,self", SYSTEM_UCX);

/// Without messages, whoever matches them.
#[test]
fn partitions_are_written_under_both_layers() {
    for layer in ["ob1", "cm"] {
        fabrics::expect_written(layer, "ucx:tcp,self", common::published::SYSTEM_UCX);
    }
}

/// A tier is published where some of its checks are run, and what is skipped or selected is a check.
#[test]
fn pairs_run_the_tiers_that_are_published() {
    use tagwire_conformance::Check;
    use tagwire_conformance::pml::{CHECKS, Factory, Tier};

    for pair in common::published::FABRIC_PAIRS {
        let named = pair.but.iter().chain(pair.only.into_iter().flatten());
        for name in named {
            assert!(CHECKS.iter().any(|check| check.name() == *name), "{name}");
        }
        let runs = |check: &&Check<Factory>| {
            pair.only.is_none_or(|only| only.contains(&check.name()))
                && !pair.but.contains(&check.name())
        };
        let run = |tier: &Tier| {
            CHECKS
                .iter()
                .filter(runs)
                .any(|check| check.tier() == *tier)
        };
        let tiers: Vec<_> = Tier::ALL.into_iter().filter(run).map(Tier::name).collect();
        assert_eq!(tiers, pair.tiers, "{pair:?}");
    }
}

/// Each pair that is published is a line of a test file.
#[test]
fn pairs_that_are_published_are_run() {
    use common::published::*;

    for pair in FABRIC_PAIRS {
        let (file, library) = match pair.library {
            NEWER_LIBFABRIC => (include_str!("ofi.rs"), "NEWER_LIBFABRIC"),
            SYSTEM_LIBFABRIC => (include_str!("ofi_system.rs"), "SYSTEM_LIBFABRIC"),
            SYSTEM_UCX => (include_str!("ucx.rs"), "SYSTEM_UCX"),
            NEWER_UCX => (include_str!("ucx_wheel.rs"), "NEWER_UCX"),
            SOFTWARE_DEVICES => (include_str!("verbs.rs"), "SOFTWARE_DEVICES"),
            SOFTWARE_UCX => (include_str!("verbs.rs"), "SOFTWARE_UCX"),
            other => panic!("a library without a test file: {other}"),
        };
        let line = format!("\"{}\", \"{}\", {library});", pair.layer, pair.transport);
        assert!(file.contains(&line), "{line}");
    }
}
