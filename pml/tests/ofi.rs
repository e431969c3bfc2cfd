//! ob1 and cm over libfabric: `tcp` of 2.x. Over `tcp;ofi_rxm` each job takes a second to connect,
//! and the suite minutes.
#![cfg(not(loom))]

mod common;

use common::{ofi, ofi_matching, ofi_options};
use tagwire_pml::conformance::Factory;

/// The suite on plain `tcp`, but for the checks that `tagwire info` publishes as skipped; it says so loudly
/// where that is not there.
macro_rules! provider {
    ($name:ident, $layer:literal, $over:expr) => {
        mod $name {
            use super::*;

            fn check(name: &str) {
                if common::published_pair($layer, "ofi:tcp").but.contains(&name) {
                    println!("SKIPPED: tcp has no means for this");
                    return;
                }
                let over: fn(tagwire_ofi::OfiOptions) -> Factory = $over;
                if let Some(options) = ofi_options(true, "tcp") {
                    tagwire_pml::conformance::assert_check(name, &over(options));
                }
            }

            tagwire_pml::pml_conformance!(@for_each tests);
        }
    };
}

provider!(ob1_tcp, "ob1", ofi);
provider!(cm_tcp, "cm", ofi_matching);

/// Partitions over writes that say nothing of themselves.
macro_rules! without_notices {
    ($name:ident, $notices:expr) => {
        mod $name {
            use super::*;

            fn check(name: &str) {
                if let Some(options) = ofi_options(true, "tcp") {
                    let notices = $notices;
                    let options = tagwire_ofi::OfiOptions { notices, ..options };
                    tagwire_pml::conformance::assert_check(name, &ofi(options));
                }
            }

            #[test]
            fn partitions_arrive_in_every_round() {
                check("partitions_arrive_in_every_round");
            }

            #[test]
            fn a_partitioned_round_ends_with_its_peer() {
                check("a_partitioned_round_ends_with_its_peer");
            }

            #[test]
            fn partitions_of_many_threads_arrive() {
                check("partitions_of_many_threads_arrive");
            }

            #[test]
            fn random_partitions_arrive() {
                check("random_partitions_arrive");
            }
        }
    };
}

without_notices!(ob1_tcp_flags, tagwire_ofi::Notices::Flags);
without_notices!(ob1_tcp_flushes, tagwire_ofi::Notices::Messages);

/// A tier is published where some of its checks are run, and what is skipped is a check.
#[test]
fn pairs_run_the_tiers_that_are_published() {
    use tagwire_pml::conformance::{CHECKS, Check, Tier};

    for pair in common::published::FABRIC_PAIRS {
        let known = |name: &&&str| CHECKS.iter().any(|check| check.name() == **name);
        assert_eq!(pair.but.iter().filter(known).count(), pair.but.len());
        let runs = |check: &&Check| !pair.but.contains(&check.name());
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
