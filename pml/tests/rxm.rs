//! Eight ranks over libfabric's `tcp;ofi_rxm`: a core of the suite, since each job takes a second or
//! more to connect.
#![cfg(not(loom))]

mod common;

use common::{ofi, ofi_matching, ofi_options};
use tagwire_ofi::OfiOptions;
use tagwire_pml::conformance::{Factory, assert_check};

/// Runs check `name`, where the provider is there: that of 2.x, whose matching can be trusted.
fn check(name: &str, over: fn(OfiOptions) -> Factory) {
    if let Some(options) = ofi_options(true, "tcp;ofi_rxm") {
        assert_check(name, &over(options));
    }
}

macro_rules! checks {
    ($($layer:ident over $open:ident: $($name:ident)*;)*) => {
        $(mod $layer {
            $(#[test]
            fn $name() {
                super::check(stringify!($name), super::$open);
            })*
        })*
    };
}

checks! {
    ob1 over ofi: wildcards_take_from_everyone random_traffic_of_eight
        eight_exchange_with_each_other eight_go_on_after_a_death;
    cm over ofi_matching: wildcards_take_from_everyone random_traffic_of_eight
        eight_exchange_with_each_other eight_go_on_after_a_death;
}
