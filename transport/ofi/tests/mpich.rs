//! The conformance kit over the libfabric 2.x inside of the wheel mpich (`ci/peers`).
//!
//! `shm` is not here: a rank of 2.x reads the memory of its peers' endpoints directly where they
//! are in one process, also once they are closed.

mod common;

use common::{expect_published, mpich, published};

provider_conformance!(on_tcp, crate::common::mpich(), "tcp");
provider_conformance!(on_tcp_rxm, crate::common::mpich(), "tcp;ofi_rxm");
provider_conformance!(on_udp_rxd, crate::common::mpich(), "udp;ofi_rxd");

#[test]
fn providers_offer_what_is_published() {
    expect_published(mpich(), published::NEWER_LIBFABRIC);
}

provider_farewell!(farewell_tcp, crate::common::mpich(), "tcp");
provider_farewell!(farewell_tcp_rxm, crate::common::mpich(), "tcp;ofi_rxm");

provider_matching!(matching_tcp, crate::common::mpich(), "tcp", &[]);
provider_matching!(matching_tcp_rxm, crate::common::mpich(), "tcp;ofi_rxm", &[]);
provider_matching!(
    matching_little_data,
    crate::common::mpich(),
    "tcp;ofi_rxm",
    &[],
    crate::common::with_little_data
);

/// No version is known whose matching is right over `ofi_rxd`.
#[test]
fn broken_matching_is_refused() {
    match common::bench(mpich(), "udp;ofi_rxd") {
        Ok(options) => {
            let error = common::open_matching(&options).unwrap_err();
            assert!(error.contains("overtake"), "{error}");
        }
        Err(reason) => println!("SKIPPED: no udp;ofi_rxd here: {reason}"),
    }
}

/// A message is longer than what is left of the buffer that it comes into.
#[test]
fn messages_are_whole_with_small_buffers_of_the_provider() {
    common::with_small_buffers(&[
        "on_tcp_rxm::delivers_every_size",
        "on_tcp_rxm::delivers_each_message_once",
        "on_tcp_rxm::goes_on_with_any_length",
        "on_tcp_rxm::sends_without_a_copy",
    ]);
}
