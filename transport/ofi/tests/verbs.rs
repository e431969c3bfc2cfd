//! The conformance kit over RDMA devices, where there are any: `tests/verbs/run` brings this program
//! to a guest that has one in software.

mod common;

use common::published;

provider_conformance!(on_verbs_rxm, crate::common::system(), "verbs;ofi_rxm");
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
