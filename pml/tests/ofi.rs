//! ob1 and cm over libfabric: `tcp` of 2.x. Over `tcp;ofi_rxm` each job takes a second to connect,
//! and the suite minutes.
#![cfg(not(loom))]

mod common;

use common::{ofi, ofi_matching, ofi_options};
use tagwire_pml::conformance::Factory;

/// Checks that no network passes whose ranks are driven by one thread. A rank that closes while
/// nobody drives its peers is not heard out: what it has just greeted is open, and what a peer sends
/// to it before it reads the goodbye may reset the connection with the goodbye in it.
const ONE_THREAD: &[&str] = &[
    "a_close_past_its_deadline_names_what_is_open",
    "those_who_left_are_no_failures",
];

/// And those of a provider that matches: it shows no unexpected messages, and messages of several
/// senders arrive in the order in which it reads its connections.
const PROVIDER_MATCHES: &[&str] = &[
    "a_dump_names_what_is_waited_for",
    "the_earliest_message_wins",
];

/// The suite on one provider, but for some checks; it says so loudly where that is not there.
macro_rules! provider {
    ($name:ident, $over:expr, $newer:literal, $provider:literal, $($except:expr),*) => {
        mod $name {
            use super::*;

            fn check(name: &str) {
                let except: [&[&str]; _] = [$($except),*];
                if except.iter().any(|list| list.contains(&name)) {
                    println!("SKIPPED: {} has no means for this", $provider);
                    return;
                }
                let over: fn(tagwire_ofi::OfiOptions) -> Factory = $over;
                if let Some(options) = ofi_options($newer, $provider) {
                    tagwire_pml::conformance::assert_check(name, &over(options));
                }
            }

            tagwire_pml::pml_conformance!(@for_each tests);
        }
    };
}

provider!(ob1_tcp, ofi, true, "tcp", ONE_THREAD);
provider!(
    cm_tcp,
    ofi_matching,
    true,
    "tcp",
    ONE_THREAD,
    PROVIDER_MATCHES
);

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
