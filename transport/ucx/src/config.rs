//! What the user may set.

use std::time::Duration;

use tagwire_base::config::{Config, Setting};

use crate::library::DEFAULT;

/// The options of a [`Ucx`](crate::Ucx).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UcxOptions {
    /// The library's file; the system's where there is none.
    pub library: Option<String>,
    /// The transports that UCX may use, in the words of `UCX_TLS`; its own choice where there is
    /// none.
    pub transports: Option<String>,
    /// The network devices that UCX may use, in the words of `UCX_NET_DEVICES`.
    pub devices: Option<String>,
    /// How long a rank that closes waits until its peers have read its last messages.
    pub linger: Duration,
    /// Bytes of unexpected messages from one peer after which sends wait for the match.
    pub unexpected_bytes: usize,
    /// Unexpected messages from one peer after which sends wait for the match.
    pub unexpected_messages: usize,
}

impl Default for UcxOptions {
    fn default() -> Self {
        Self {
            library: None,
            transports: None,
            devices: None,
            linger: LINGER,
            unexpected_bytes: UNEXPECTED_BYTES as usize,
            unexpected_messages: UNEXPECTED_MESSAGES as usize,
        }
    }
}

impl UcxOptions {
    /// What the loader is asked for.
    pub(crate) fn library_name(&self) -> &str {
        self.library.as_deref().unwrap_or(DEFAULT)
    }

    /// Whether no transport may be used that leaves the host.
    pub(crate) fn stays_on_host(&self) -> bool {
        self.names_only(|name| name == "self" || SHARED_MEMORY.contains(&name))
    }

    /// Whether no transport may be used that is shared memory.
    pub(crate) fn avoids_shared_memory(&self) -> bool {
        self.names_only(|name| name != "all" && !SHARED_MEMORY.contains(&name))
    }

    /// Whether UCX may use this transport.
    pub(crate) fn allows(&self, transport: &str) -> bool {
        let Some(names) = &self.transports else {
            return true;
        };
        match names.strip_prefix('^') {
            Some(others) => others.split(',').all(|name| name != transport),
            None => names
                .split(',')
                .any(|name| name == "all" || name.split(':').next() == Some(transport)),
        }
    }

    /// Whether the user names unreliable datagrams by verbs, or what brings them along.
    pub(crate) fn names_datagrams_by_verbs(&self) -> bool {
        let names = self.transports.as_deref().unwrap_or_default();
        let is_one = |name: &str| {
            let name = name.split(':').next();
            matches!(name, Some("ud_verbs" | "ud_v" | "rc_v"))
        };
        !names.starts_with('^') && names.split(',').any(is_one)
    }

    /// Whether the user names the transports that may be used, and `is_one` holds for each.
    fn names_only(&self, is_one: impl Fn(&str) -> bool) -> bool {
        self.transports
            .as_deref()
            .is_some_and(|names| !names.starts_with('^') && names.split(',').all(is_one))
    }

    /// Whether messages to other ranks go by TCP alone.
    pub(crate) fn goes_by_tcp(&self) -> bool {
        self.allows("tcp") && self.names_only(|name| matches!(name, "tcp" | "self"))
    }

    /// The options that `config` holds under the names of [`SETTINGS`]; `detail` is what follows
    /// the colon in `ucx:TLS`.
    #[must_use]
    pub fn from_config(detail: Option<&str>, config: &Config) -> Self {
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Self {
            library: given(config.text("ucx")),
            transports: detail.and_then(given),
            devices: given(config.text("ucx-devices")),
            linger: config.duration("ucx-linger"),
            unexpected_bytes: config.bytes("ucx-unexpected-bytes"),
            unexpected_messages: config.integer("ucx-unexpected-messages") as usize,
        }
    }
}

/// The settings of this transport.
pub const SETTINGS: &[Setting] = &[
    Setting::text(
        READER,
        "ucx",
        "",
        "The UCX library to load: a path of libucp.so, or a name for the loader to look for; \
         empty for the system's libucp.so.0",
    ),
    Setting::text(
        READER,
        "ucx-devices",
        "",
        "The network devices that UCX may use, as in UCX_NET_DEVICES; empty for its own choice",
    ),
    Setting::duration(
        READER,
        "ucx-linger",
        LINGER,
        Duration::ZERO..=Duration::from_secs(60),
        "How long a rank that closes waits until its peers have read its last messages over UCX",
    ),
    Setting::bytes(
        READER,
        "ucx-unexpected-bytes",
        UNEXPECTED_BYTES,
        0..=1 << 40,
        "Bytes of unmatched messages to one peer after which sends by UCX's matching wait for \
         the match",
    ),
    Setting::integer(
        READER,
        "ucx-unexpected-messages",
        UNEXPECTED_MESSAGES,
        1..=1 << 32,
        "Unmatched messages to one peer after which sends by UCX's matching wait for the match",
    ),
];

const READER: &str = "transport::ucx";
const LINGER: Duration = Duration::from_secs(2);
const UNEXPECTED_BYTES: u64 = 16 << 20;
const UNEXPECTED_MESSAGES: u64 = 1 << 15;

/// Transports by shared memory, and groups of them.
const SHARED_MEMORY: [&str; 8] = [
    "sm", "shm", "shmem", "posix", "sysv", "cma", "xpmem", "knem",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transports_stay_on_the_host_or_avoid_shared_memory_by_their_names() {
        for (names, stays, avoids) in [
            (None, false, false),
            (Some("all"), false, false),
            (Some("posix,cma,self"), true, false),
            (Some("sm"), true, false),
            (Some("tcp,self"), false, true),
            (Some("posix,tcp"), false, false),
            (Some("^posix"), false, false),
            (Some("^tcp"), false, false),
        ] {
            let options = UcxOptions {
                transports: names.map(str::to_owned),
                ..UcxOptions::default()
            };
            assert_eq!(options.stays_on_host(), stays, "{names:?}");
            assert_eq!(options.avoids_shared_memory(), avoids, "{names:?}");
        }
    }
}
