//! From options to a provider that does.
#![allow(unsafe_code)]

use std::ffi::CStr;

use tagwire_base::Error as BaseError;
use tagwire_libfabric_sys::Library;
use tagwire_transport::Result;

use crate::config::OfiOptions;
use crate::error::bad_setting;
use crate::fabric::{Info, Infos, Wanted};
use crate::quirks;

/// What a provider is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// Messages, and remote access where there is any.
    Bytes,
    /// Tagged messages.
    Matching,
}

/// Variables of providers without which programs hang that keep to the rules, and what they are
/// set to where the user has not.
const VARIABLES: [(&CStr, &CStr); 2] = [
    // How many unmatched messages of a peer plain tcp of 2.x keeps: 64, past which it stops reading.
    (c"FI_TCP_MAX_SAVED", c"1000000000"),
    // The same of net, as the provider was called in 1.17: 4.
    (c"FI_NET_MAX_SAVED", c"1000000000"),
];

/// Opens the library that `file` names, or the system's.
pub(crate) fn open_library(file: &str) -> std::result::Result<Library, BaseError> {
    for (name, value) in VARIABLES {
        // SAFETY: strings with their ends. Providers read their variables when the library looks
        // for them, right after this. A thread that reads the environment by other means at just
        // this moment is at risk, as with every program that sets a variable; libfabric has no
        // other way to be told.
        unsafe { libc::setenv(name.as_ptr(), value.as_ptr(), 0) };
    }
    let name = if file.is_empty() {
        Library::SYSTEM
    } else {
        file
    };
    Library::open(name).map_err(|error| {
        let expected = format!(
            "a libfabric of 1.17 or newer ({error}); install libfabric1, or name a file with \
             TAGWIRE_LIBFABRIC"
        );
        bad_setting("libfabric", name, &expected)
    })
}

/// The library's first offer that fits.
pub(crate) fn open_info(options: &OfiOptions, wanted: Use) -> Result<Info> {
    let library = open_library(&options.library)?;
    let infos = match wanted {
        Use::Matching => {
            let infos = Infos::find(&library, options, Wanted::MATCHING)?;
            quirks::check_matching(&library, &infos)?;
            infos
        }
        Use::Bytes => Infos::find(&library, options, Wanted::REMOTE)
            .or_else(|_| Infos::find(&library, options, Wanted::MESSAGES))?,
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
