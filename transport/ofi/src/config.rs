//! What the user may set.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tagwire_base::config::{Config, Setting};
use tagwire_libfabric_sys::Library;

/// How the target of a write is notified, at best: what the provider does not have goes by the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notices {
    /// By a value that comes with it (remote completion data).
    Data,
    /// By a write behind it, where writes pass the test of their order.
    Flags,
    /// By a message once it is there.
    Messages,
}

/// The options of an [`Ofi`](crate::Ofi) or [`OfiMatch`](crate::OfiMatch).
#[derive(Debug, Clone)]
pub struct OfiOptions {
    /// The library's file; empty for the system's.
    pub library: String,
    /// The provider, by libfabric's name (`tcp;ofi_rxm`); empty for the first that does.
    pub provider: String,
    /// Open the provider's datagrams, which may be lost, and not the reliable ones.
    pub datagrams: bool,
    /// The local address to use, the name of one, or of an interface; empty for the provider's choice.
    pub source: String,
    /// How the target of a write is notified.
    pub notices: Notices,
    /// Bytes of unexpected messages that a rank that matches keeps.
    pub unexpected_bytes: usize,
    /// Unexpected messages that it keeps with their bytes.
    pub unexpected_messages: usize,
    /// The number of the first message to each peer. They wrap at 2^32.
    pub first_message: u32,
    /// Registrations that are kept for further operations on the same memory; 0: none.
    pub registrations: usize,
    /// Bytes of memory that stay registered so; `None`: by the memory of the machine, and what may be locked of it.
    pub registered_bytes: Option<usize>,
    /// Never use what the provider says it has, but how it is done without: for tests.
    #[doc(hidden)]
    pub plain_receives: bool,
    /// Match as over a provider that has 4 bytes of completion data only: for tests.
    #[doc(hidden)]
    pub little_data: bool,
    /// Once set, the rank goes without a word, as killed ones do: for tests.
    #[doc(hidden)]
    pub silent: Arc<AtomicBool>,
    /// How long a rank that closes tries to tell its peers.
    #[doc(hidden)]
    pub disconnect_timeout: Duration,
}

impl Default for OfiOptions {
    fn default() -> Self {
        Self {
            library: String::new(),
            provider: String::new(),
            datagrams: false,
            source: String::new(),
            notices: Notices::Data,
            unexpected_bytes: UNEXPECTED_BYTES,
            unexpected_messages: UNEXPECTED_MESSAGES,
            first_message: 0,
            registrations: REGISTRATIONS,
            registered_bytes: None,
            plain_receives: false,
            little_data: false,
            silent: Arc::default(),
            disconnect_timeout: Duration::from_millis(500),
        }
    }
}

impl OfiOptions {
    /// The same, from the address by which this machine reaches the others, where nothing else is said
    /// and the provider goes by addresses: its own choice may be one that they do not reach.
    #[must_use]
    pub(crate) fn reached_at(mut self, own: Option<IpAddr>) -> Self {
        const BY_ADDRESS: [&str; 5] = ["tcp", "udp", "net", "sockets", "verbs"];
        let by_address = BY_ADDRESS
            .iter()
            .any(|kind| self.provider.starts_with(kind));
        if let Some(own) = own.filter(|_| by_address && self.source.is_empty()) {
            self.source = own.to_string();
        }
        self
    }

    /// What the loader is asked for.
    pub(crate) fn library_name(&self) -> &str {
        match self.library.as_str() {
            "" => Library::SYSTEM,
            file => file,
        }
    }

    /// The options that `config` holds under the names of [`SETTINGS`]; `detail` is what follows the
    /// colon: `ofi:PROVIDER`, or `ofi:PROVIDER@SOURCE` with a local address, or interface, of its own. `;datagram` behind the
    /// provider asks for its datagrams.
    #[must_use]
    pub fn from_config(detail: Option<&str>, config: &Config) -> Self {
        let detail = detail.unwrap_or_default();
        let (provider, source) = detail
            .split_once('@')
            .unwrap_or_else(|| (detail, config.text("ofi-source")));
        let plain = provider.strip_suffix(DATAGRAM);
        let provider = plain.unwrap_or(provider);
        Self {
            datagrams: plain.is_some(),
            library: config.text("libfabric").to_owned(),
            provider: provider.to_owned(),
            source: source.to_owned(),
            notices: match config.choice("ofi-notices") {
                "flags" => Notices::Flags,
                "messages" => Notices::Messages,
                _ => Notices::Data,
            },
            unexpected_bytes: config.bytes("ofi-unexpected"),
            first_message: config.integer("ofi-first-message") as u32,
            registrations: config.integer("ofi-registrations") as usize,
            registered_bytes: config.bytes_or_auto("ofi-registered"),
            ..Self::default()
        }
    }
}

/// What stands behind a provider whose datagrams are meant.
pub(crate) const DATAGRAM: &str = ";datagram";

/// Default of [`OfiOptions::unexpected_bytes`].
const UNEXPECTED_BYTES: usize = 16 << 20;

/// Default of [`OfiOptions::unexpected_messages`].
const UNEXPECTED_MESSAGES: usize = 1 << 16;

/// Default of [`OfiOptions::registrations`].
const REGISTRATIONS: usize = 1024;

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
        "The local address, host name or interface that libfabric's provider uses, where none is named \
         with it (ofi:PROVIDER@INTERFACE); its own choice where there is neither",
    ),
    Setting::choice(
        READER,
        "ofi-notices",
        "data",
        &["data", "flags", "messages"],
        "How a write of a partitioned channel tells its target of itself: by completion data where the \
         provider has it, else by a flag written behind it where writes pass a test of their order at \
         start, else by a message once all is there",
    ),
    Setting::bytes(
        READER,
        "ofi-unexpected",
        UNEXPECTED_BYTES as u64,
        0..=1 << 40,
        "Payload of unexpected short messages that a rank keeps where the provider matches, all \
         senders together; past it they keep it themselves",
    ),
    Setting::integer(
        READER,
        "ofi-first-message",
        0,
        0..=u32::MAX as u64,
        "The number of the first message to each peer: one shortly below 2^32 has the numbers wrap early, as they do in long runs",
    ),
    Setting::integer(
        READER,
        "ofi-registrations",
        REGISTRATIONS as u64,
        0..=1 << 16,
        "How many registrations of buffers are kept for the next operation on the same memory, where the provider wants buffers \
         registered locally; what was used least recently goes first. They serve this rank alone, and end when the memory changes. \
         0: each operation registers anew",
    ),
    Setting::bytes_or_auto(
        READER,
        "ofi-registered",
        0..=1 << 40,
        "Most bytes of memory that stay registered so; auto is 1/64 of the machine's, or of the limit of the control group where that is \
         less, and no more than a quarter of what the process may lock (RLIMIT_MEMLOCK)",
    ),
];

const READER: &str = "transport::ofi";
