//! The conformance kit over the system's libfabric (1.17 on Debian 12).
//!
//! `sockets` is not here: its thread brings messages at times of its own, which the kit takes for
//! never, and libfabric has given it up for `tcp`.

mod common;

use common::{expect_published, published, system};

provider_conformance!(on_tcp_rxm, crate::common::system(), "tcp;ofi_rxm");
provider_conformance!(
    without_notices,
    crate::common::system(),
    "tcp;ofi_rxm",
    crate::common::without_notices
);
provider_conformance!(on_net, crate::common::system(), "net");
provider_conformance!(on_shm, crate::common::system(), "shm");
provider_conformance!(on_udp_rxd, crate::common::system(), "udp;ofi_rxd");

#[test]
fn providers_offer_what_is_published() {
    expect_published(system(), published::SYSTEM_LIBFABRIC);
}

provider_farewell!(farewell_tcp_rxm, crate::common::system(), "tcp;ofi_rxm");
provider_farewell!(farewell_net, crate::common::system(), "net");

provider_matching!(
    matching_tcp_rxm,
    crate::common::system(),
    "tcp;ofi_rxm",
    &[]
);
provider_matching!(
    matching_little_data,
    crate::common::system(),
    "tcp;ofi_rxm",
    &[],
    crate::common::with_little_data
);
/// Providers whose matching is wrong are refused with the reason, and what to do.
#[test]
fn broken_matching_is_refused() {
    let newer_works = "TAGWIRE_LIBFABRIC";
    for (provider, reason, remedy) in [
        ("shm", "wildcards", newer_works),
        ("net", "have left", newer_works),
        ("sockets", "have left", "pml=ob1"),
        ("udp;ofi_rxd", "overtake", "pml=ob1"),
    ] {
        let Ok(options) = common::bench(system(), provider) else {
            println!("SKIPPED: no {provider} here");
            continue;
        };
        match common::open_matching(&options) {
            Ok(version) => assert!(
                version >= (1, 19) && remedy == newer_works,
                "{provider} of {version:?}"
            ),
            Err(error) => assert!(error.contains(reason) && error.contains(remedy), "{error}"),
        }
    }
}

/// Writes tell of themselves as they are asked to, at best.
#[test]
fn the_order_of_writes_is_known_where_it_is_needed() {
    use tagwire_ofi::{Notices, Ofi};
    use tagwire_transport::{ByteTransport, Ordering};

    for provider in ["tcp;ofi_rxm", "net"] {
        let Ok(options) = common::bench(system(), provider) else {
            println!("SKIPPED: no {provider} here");
            continue;
        };
        for (notices, width, ordering) in [
            (Notices::Data, 8, Ordering::None),
            (Notices::Flags, 0, Ordering::WriteAfterWrite),
            (Notices::Messages, 0, Ordering::None),
        ] {
            let options = tagwire_ofi::OfiOptions {
                notices,
                ..options.clone()
            };
            let job = tagwire_base::bootstrap::LocalJob::new(1).unwrap();
            let member = job.member(tagwire_base::Rank::new(0));
            let limits = Ofi::open(&options, &member).unwrap().limits();
            assert_eq!(
                (limits.immediate_width, limits.ordering),
                (width, ordering),
                "{provider}, {notices:?}"
            );
        }
    }
}
