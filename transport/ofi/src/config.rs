//! What the user may set.

use tagwire_base::config::{Config, Setting};

/// The options of an [`Ofi`](crate::Ofi) or [`OfiMatch`](crate::OfiMatch).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OfiOptions {
    /// The library's file; empty for the system's.
    pub library: String,
    /// The provider, by libfabric's name (`tcp;ofi_rxm`); empty for the first that does.
    pub provider: String,
    /// The local address to use, or the name of one; empty for the provider's choice.
    pub source: String,
    /// Never use what the provider says it has, but how it is done without: for tests.
    #[doc(hidden)]
    pub plain_receives: bool,
}

impl OfiOptions {
    /// The options that `config` holds under the names of [`SETTINGS`]; `provider` is the detail
    /// behind `ofi:`.
    #[must_use]
    pub fn from_config(provider: Option<&str>, config: &Config) -> Self {
        Self {
            library: config.text("libfabric").to_owned(),
            provider: provider.unwrap_or_default().to_owned(),
            source: config.text("ofi-source").to_owned(),
            plain_receives: false,
        }
    }
}

/// The settings of this transport.
pub const SETTINGS: &[Setting] = &[
    Setting::text(
        READER,
        "libfabric",
        "",
        "The file of the libfabric library (libfabric.so.1); the system's where none is named",
    ),
    Setting::text(
        READER,
        "ofi-source",
        "",
        "The local address or host name that libfabric's provider uses; its own choice where none \
         is named",
    ),
];

const READER: &str = "transport::ofi";
