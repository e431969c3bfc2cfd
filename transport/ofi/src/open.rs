//! From options to a provider that does.
#![allow(unsafe_code)]

use std::env;

use tagwire_base::Error as BaseError;
use tagwire_libfabric_sys::Library;
use tagwire_transport::Result;

use crate::config::OfiOptions;
use crate::devices;
use crate::error::bad_setting;
use crate::fabric::{Info, Infos, Wanted};
use crate::quirks;

/// What a provider is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// Messages, and remote access where there is any.
    Bytes,
    /// Tagged messages, and remote access where there is any.
    Matching,
    /// Messages that may be lost and overtaken.
    Datagrams,
}

/// Variables of providers without which programs hang that keep to the rules, or memory is touched
/// that is not theirs; and what they are set to where the user has not.
const VARIABLES: [(&str, &str); 5] = [
    // How many unmatched messages of a peer plain tcp of 2.x keeps: 64, past which it stops reading.
    ("FI_TCP_MAX_SAVED", "1000000000"),
    // The same of net, as the provider was called in 1.17: 4.
    ("FI_NET_MAX_SAVED", "1000000000"),
    // Receive buffers of ofi_rxm that all connections share: with buffers of their own it hands one
    // that held an unexpected message back to a connection closed meanwhile, and follows its dangling
    // pointer (seen in 1.17 as a crash after a peer's death; mended upstream in 2026 by "prov/rxm: fix
    // the msg_ep use-after-free at connection teardown").
    ("FI_OFI_RXM_USE_SRX", "1"),
    // Registrations that outlive their end: a peer could still reach memory that was given back.
    ("FI_MR_CACHE_MAX_COUNT", "0"),
    // The library of psm takes over the signals of crashes and ends, and leaves files behind. That of psm2
    // does where HFI_BACKTRACE is set, whatever to: SIGTERM then hangs in libfabric's own destructor.
    ("IPATH_NO_BACKTRACE", "1"),
];

/// How many receive buffers of 17 KB `ofi_rxm` posts for all connections. It would post 4,096, and has all of them in memory once it is
/// opened: 68 MB for each network of a rank. These are twice as many as a peer may have messages under way; what comes when none is free
/// waits in its connection.
const RECEIVES: (&str, &str) = ("FI_OFI_RXM_MSG_RX_SIZE", "256");

/// Peers that providers make room for at least.
const FEWEST_PEERS: u32 = 16;

/// Whether what comes from a peer waits in its connection until there is a receive buffer, so that few are enough: over RDMA it is sent
/// again. Without a name it is a provider of RDMA where there is a device for it.
fn waits_for_receives(provider: &str) -> bool {
    match provider.split(';').next() {
        Some("tcp" | "net") => true,
        Some("") | None => devices::missing("verbs").is_some(),
        Some(_) => false,
    }
}

/// Opens the library that `options` name for a job of so many ranks.
pub(crate) fn open_library(
    options: &OfiOptions,
    ranks: u32,
) -> std::result::Result<Library, BaseError> {
    let name = options.library_name();
    // Of 256 peers where nobody says: ofi_rxm then asks for a longer completion queue than a device
    // in software has, and with more peers than that one runs over.
    let peers = ranks.max(FEWEST_PEERS).to_string();
    let size = ("FI_UNIVERSE_SIZE", peers.as_str());
    let receives = waits_for_receives(&options.provider).then_some(RECEIVES);
    let others = [Some(size), receives].into_iter().flatten();
    for (name, value) in VARIABLES.into_iter().chain(others) {
        if env::var_os(name).is_some() {
            continue;
        }
        // SAFETY: Rust code that reads or sets variables at this moment waits for the lock that this takes. C code
        // that does so in another thread is at risk, as with every program that sets a variable; libfabric has no
        // other way to be told. Providers read theirs when the library looks for them, right after this.
        unsafe { env::set_var(name, value) };
    }
    // SAFETY: whoever names another file than the system's in the setting names a libfabric.
    let opened = unsafe { Library::open(name) };
    opened.map_err(|error| {
        let expected = format!(
            "a libfabric of 1.17 or newer ({error}); install libfabric1, or name a file with \
             TAGWIRE_LIBFABRIC"
        );
        bad_setting("libfabric", name, &expected)
    })
}

/// The library's first offer that fits.
pub(crate) fn open_info(options: &OfiOptions, ranks: u32, wanted: Use) -> Result<Info> {
    let library = open_library(options, ranks)?;
    let infos = match wanted {
        Use::Matching => {
            let infos = Infos::find(&library, options, Wanted::MATCHING_REMOTE)
                .or_else(|_| Infos::find(&library, options, Wanted::MATCHING))?;
            quirks::check_matching(&library, &infos)?;
            infos
        }
        Use::Bytes => Infos::find(&library, options, Wanted::REMOTE)
            .or_else(|_| Infos::find(&library, options, Wanted::MESSAGES))?,
        Use::Datagrams => Infos::find(&library, options, Wanted::DATAGRAMS)?,
    };
    let nothing = || {
        bad_setting(
            "transport",
            &options.provider,
            "a provider that libfabric has",
        )
    };
    Ok(infos.take_first().ok_or_else(nothing)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_receives_are_posted_where_messages_wait_for_them() {
        for (provider, waits) in [
            ("tcp;ofi_rxm", true),
            ("tcp", true),
            ("net", true),
            ("verbs;ofi_rxm", false),
            ("shm", false),
            ("", devices::missing("verbs").is_some()),
        ] {
            assert_eq!(waits_for_receives(provider), waits, "{provider}");
        }
    }
}
