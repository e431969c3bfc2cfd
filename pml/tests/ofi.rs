//! ob1 and cm over libfabric.
#![cfg(not(loom))]

mod common;

use common::{ofi, ofi_matching, ofi_options};
use tagwire_pml::conformance::Factory;

/// The suite on one provider; it says so loudly where that is not there.
macro_rules! provider {
    ($name:ident, $over:expr, $newer:literal, $provider:literal) => {
        mod $name {
            use super::*;

            fn check(name: &str) {
                let over: fn(tagwire_ofi::OfiOptions) -> Factory = $over;
                if let Some(options) = ofi_options($newer, $provider) {
                    tagwire_pml::conformance::assert_check(name, &over(options));
                }
            }

            tagwire_pml::pml_conformance!(@for_each tests);
        }
    };
}

provider!(ob1_tcp_rxm, ofi, false, "tcp;ofi_rxm");
provider!(ob1_tcp, ofi, true, "tcp");
provider!(cm_tcp_rxm, ofi_matching, false, "tcp;ofi_rxm");
provider!(cm_tcp, ofi_matching, true, "tcp");
