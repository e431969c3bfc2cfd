//! What UCX is told, in its own words: what the user chose, and what our protocol needs.

use crate::config::UcxOptions;

/// The names and values of UCX's configuration to set, for a library of this version.
pub(crate) fn settings(
    options: &UcxOptions,
    version: (u32, u32, u32),
) -> impl Iterator<Item = (&'static str, &str)> {
    let given = [
        ("TLS", options.transports.as_deref()),
        ("NET_DEVICES", options.devices.as_deref()),
        // With one lane for eager messages they arrive in order.
        ("MAX_EAGER_LANES", Some("1")),
        // Without it, endpoints over shared memory neither break nor can be closed by force.
        (
            "MM_ERROR_HANDLING",
            (!options.avoids_shared_memory()).then_some("y"),
        ),
        ("ADAPTIVE_PROGRESS", polls_all(options).then_some("n")),
        // Whoever started the ranks of this host sees them end. UCX would look after them every 20
        // seconds, and to know when, run a callback under a lock in every call of progress.
        (
            "KEEPALIVE_INTERVAL",
            unless_set("UCX_KEEPALIVE_INTERVAL", "inf").filter(|_| options.stays_on_host()),
        ),
    ];
    // Names of transports' own settings have the transport's name before them from 1.17 on.
    let bare = version < (1, 17, 0);
    let tcp = TCP
        .into_iter()
        .filter(|_| options.allows("tcp"))
        .map(move |(variable, value)| {
            let prefix = if bare { "UCX_TCP_" } else { "UCX_" };
            (&variable[prefix.len()..], unless_set(variable, value))
        });
    given
        .into_iter()
        .chain(tcp)
        .filter_map(|(name, value)| Some((name, value?)))
}

/// Settings for TCP that go without saying, as variables that the user may set.
const TCP: [(&str, &str); 3] = [
    // The longest piece that is written at once. In segments of 8 KiB, as UCX sends by default, 1 MiB
    // takes three times as long with 1.22, and a tenth longer with 1.13.
    ("UCX_TCP_TX_SEG_SIZE", "256k"),
    ("UCX_TCP_RX_SEG_SIZE", "256k"),
    // Two ranks that connect to each other at once by blocking calls crash UCX: it frees a receive
    // buffer twice when it drops one of the two connections (docs/libraries.md).
    ("UCX_TCP_CONN_NB", "y"),
];

/// `value`, where the user has not set this variable of UCX's own.
fn unless_set<'a>(variable: &str, value: &'a str) -> Option<&'a str> {
    std::env::var_os(variable).is_none().then_some(value)
}

/// Whether every transport is polled from the start. As a rule UCX polls one once a peer has used it,
/// of which another thread of its own tells it, ten milliseconds later on a busy machine; where there
/// is one transport alone, that saves nothing.
fn polls_all(options: &UcxOptions) -> bool {
    let beside = ["self", "cma", "knem", "xpmem"];
    let names = options.transports.as_deref().unwrap_or("all");
    let mut messages = names.split(',').filter(|name| !beside.contains(name));
    let one = messages.next();
    let is_plain =
        |name: &str| !name.starts_with('^') && name != "all" && name != "sm" && name != "ib";
    one.is_some_and(is_plain) && messages.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_called_as_the_version_calls_them_and_set_where_they_serve() {
        let names = |transports: &str, version| {
            let options = UcxOptions {
                transports: (!transports.is_empty()).then(|| transports.to_owned()),
                ..UcxOptions::default()
            };
            let names: Vec<_> = settings(&options, version).map(|(name, _)| name).collect();
            names
        };
        assert!(names("tcp", (1, 13, 1)).contains(&"CONN_NB"));
        assert!(names("rc_verbs,tcp,self", (1, 22, 0)).contains(&"TCP_CONN_NB"));
        assert!(names("", (1, 22, 0)).contains(&"TCP_CONN_NB"));
        assert!(!names("posix", (1, 22, 0)).contains(&"TCP_CONN_NB"));
        assert!(!names("^tcp", (1, 22, 0)).contains(&"TCP_CONN_NB"));
        assert!(names("posix", (1, 22, 0)).contains(&"MM_ERROR_HANDLING"));
        assert!(!names("tcp", (1, 22, 0)).contains(&"MM_ERROR_HANDLING"));
    }
}
