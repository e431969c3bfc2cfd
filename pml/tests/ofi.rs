//! ob1 and cm over the libfabric 2.x inside of the wheel mpich (`ci/peers`).
//!
//! `shm` is not here, for the reason given in `transport/ofi/tests/mpich.rs`.
#![cfg(not(loom))]

mod common;
mod fabrics;

use common::ofi_options;
use fabrics::ofi;

pair!(ob1_tcp: for_each, "ob1", "ofi:tcp", NEWER_LIBFABRIC);
pair!(cm_tcp: for_each, "cm", "ofi:tcp", NEWER_LIBFABRIC);
pair!(ob1_rxm: selection, "ob1", "ofi:tcp;ofi_rxm", NEWER_LIBFABRIC);
pair!(cm_rxm: selection, "cm", "ofi:tcp;ofi_rxm", NEWER_LIBFABRIC);
pair!(ob1_rxd: selection, "ob1", "ofi:udp;ofi_rxd", NEWER_LIBFABRIC);

/// Without messages, whoever matches them.
#[test]
fn partitions_are_written_under_both_layers() {
    for layer in ["ob1", "cm"] {
        fabrics::expect_written(layer, "ofi:tcp", common::published::NEWER_LIBFABRIC);
    }
}

/// Partitions over writes that say nothing of themselves.
macro_rules! without_notices {
    ($name:ident, $notices:expr) => {
        mod $name {
            use super::*;

            fn check(name: &str) {
                if let Some(options) = ofi_options(true, "tcp") {
                    let notices = $notices;
                    let options = tagwire_ofi::OfiOptions { notices, ..options };
                    tagwire_conformance::assert_check(name, &ofi(options));
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
