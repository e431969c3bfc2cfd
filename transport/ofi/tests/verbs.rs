//! The conformance kit over RDMA devices, where there are any: `tests/verbs/run` brings this program
//! to a guest that has one in software.

mod common;

use common::published;

mod on_verbs_rxm {
    fn check(name: &str) {
        if super::published::NO_ROOM.contains(&name) {
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

provider_matching!(
    matching_verbs_rxm,
    crate::common::system(),
    "verbs;ofi_rxm",
    super::published::VERBS_UNSEEN
);

#[test]
fn providers_offer_what_is_published() {
    common::expect_published(common::system(), published::SOFTWARE_DEVICES);
}
