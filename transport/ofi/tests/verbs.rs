//! The conformance kit over RDMA devices, where there are any: `tests/verbs/run` brings this program
//! to a guest that has one in software.

mod common;

/// Where a device is slow, its queue is full of the first contact's messages before any of ours.
const NO_ROOM: &str = "control_passes_full_data";

mod on_verbs_rxm {
    fn check(name: &str) {
        if name == super::NO_ROOM {
            println!("SKIPPED: verbs;ofi_rxm has no means for this");
            return;
        }
        match crate::common::bench(crate::common::system(), "verbs;ofi_rxm") {
            Ok(options) => {
                let factory = crate::common::factory(options);
                tagwire_transport::conformance::assert_check(name, &factory);
            }
            Err(reason) => println!("SKIPPED: no verbs;ofi_rxm here: {reason}"),
        }
    }

    tagwire_transport::transport_conformance!(@for_each tests);
}

/// Many jobs one after the other, which under emulation takes longer than the guest is given.
const TOO_LONG: &[&str] = &["cancels_race_with_messages", "random_runs_match_the_lists"];

provider_matching!(
    matching_verbs_rxm,
    crate::common::system(),
    "verbs;ofi_rxm",
    super::TOO_LONG
);
