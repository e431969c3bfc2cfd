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
        ("RNDV_THRESH", longest_at_once(options)),
        // Whoever started the ranks of this host sees them end. UCX would look after them every 20
        // seconds, and to know when, run a callback under a lock in every call of progress.
        (
            "KEEPALIVE_INTERVAL",
            unless_set("UCX_KEEPALIVE_INTERVAL", "inf").filter(|_| options.stays_on_host()),
        ),
    ];
    // Names of transports' own settings have the transport's name before them from 1.17 on.
    let bare = version < (1, 17, 0);
    let own = OWN
        .into_iter()
        .filter(move |own| own.serves(options, version));
    let own = own.map(move |own| {
        let name = if bare {
            own.bare
        } else {
            &own.variable["UCX_".len()..]
        };
        (name, unless_set(own.variable, own.value))
    });
    given
        .into_iter()
        .chain(own)
        .filter_map(|(name, value)| Some((name, value?)))
}

/// A setting of one of UCX's transports.
#[derive(Clone, Copy)]
struct Own {
    transport: &'static str,
    /// Its name before 1.17: that in the innermost of UCX's tables.
    bare: &'static str,
    /// The variable that the user may set.
    variable: &'static str,
    value: &'static str,
    /// The first version that does without it.
    until: (u32, u32, u32),
}

impl Own {
    fn serves(&self, options: &UcxOptions, version: (u32, u32, u32)) -> bool {
        let concerned = match self.transport {
            // UCX warns of settings that nothing has read, and has no such device on most machines.
            "ud_verbs" => options.names_datagrams_by_verbs(),
            transport => options.allows(transport),
        };
        concerned && version < self.until
    }
}

const ALWAYS: (u32, u32, u32) = (u32::MAX, 0, 0);

/// Settings of transports that go without saying.
const OWN: [Own; 4] = [
    // The longest piece that is written at once. In segments of 8 KiB, as UCX sends by default, 1 MiB
    // takes three times as long with 1.22, and a tenth longer with 1.13; in those of 256 KiB a third longer with both.
    tcp(TCP_SEGMENTS[0], "TX_SEG_SIZE", "640k"),
    tcp(TCP_SEGMENTS[1], "RX_SEG_SIZE", "640k"),
    // Two ranks that connect to each other at once by blocking calls crash UCX: it frees a receive
    // buffer twice when it drops one of the two connections (docs/libraries.md).
    tcp("UCX_TCP_CONN_NB", "CONN_NB", "y"),
    // It takes every datagram for one to somebody else, on devices that are not Mellanox's
    // (docs/libraries.md).
    Own {
        transport: "ud_verbs",
        bare: "UD_ETH_DGID_CHECK",
        variable: "UCX_UD_VERBS_ETH_DGID_CHECK",
        value: "n",
        until: (1, 19, 0),
    },
];

/// How long segments of TCP are.
const TCP_SEGMENTS: [&str; 2] = ["UCX_TCP_TX_SEG_SIZE", "UCX_TCP_RX_SEG_SIZE"];

/// The length from which tagged messages are asked for, where they go by TCP alone: one that is sent at once is one segment. UCX's own
/// choice by TCP is up to 600 KB. A receive that has matched the first of several segments never ends where the sender dies before
/// the last, since UCX does not know then which endpoint it belongs to (docs/libraries.md). The user's segments may be shorter.
fn longest_at_once(options: &UcxOptions) -> Option<&'static str> {
    let of_user = |variable: &&str| std::env::var_os(variable).is_some();
    let is_ours = options.goes_by_tcp() && !TCP_SEGMENTS.iter().any(of_user);
    unless_set("UCX_RNDV_THRESH", "600k").filter(|_| is_ours)
}

const fn tcp(variable: &'static str, bare: &'static str, value: &'static str) -> Own {
    Own {
        transport: "tcp",
        bare,
        variable,
        value,
        until: ALWAYS,
    }
}

/// `value`, where the user has not set this variable of UCX's own.
fn unless_set<'a>(variable: &str, value: &'a str) -> Option<&'a str> {
    std::env::var_os(variable).is_none().then_some(value)
}

/// Whether every transport is polled from the start. As a rule UCX polls one once a peer has used it,
/// which another thread of its own reports to it, ten milliseconds later on a busy machine; where there
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
        assert!(names("tcp,self", (1, 13, 1)).contains(&"RNDV_THRESH"));
        // Over others segments are as long as they are.
        for transports in ["", "all", "rc_verbs,tcp,self", "posix", "^tcp", "self"] {
            assert!(!names(transports, (1, 13, 1)).contains(&"RNDV_THRESH"));
        }
        let datagrams = "rc_verbs,ud_verbs:aux,self";
        assert!(names(datagrams, (1, 13, 1)).contains(&"UD_ETH_DGID_CHECK"));
        assert!(names("ud_v", (1, 18, 0)).contains(&"UD_VERBS_ETH_DGID_CHECK"));
        assert!(!names(datagrams, (1, 19, 0)).contains(&"UD_VERBS_ETH_DGID_CHECK"));
        for unnamed in ["", "all", "^ud_verbs", "rc_verbs,tcp,self"] {
            assert!(!names(unnamed, (1, 13, 1)).contains(&"UD_ETH_DGID_CHECK"));
        }
    }

    #[test]
    fn what_is_sent_at_once_by_tcp_is_one_segment() {
        let options = UcxOptions {
            transports: Some("tcp,self".to_owned()),
            ..UcxOptions::default()
        };
        let all: Vec<_> = settings(&options, (1, 13, 1)).collect();
        let kib = |wanted: &str| -> usize {
            let found = all.iter().find(|(name, _)| *name == wanted);
            let value = found.and_then(|(_, value)| value.strip_suffix('k'));
            value.expect("a length in KiB").parse().expect("a number")
        };
        // Headers of UCX and a tag are a few words.
        assert!(kib("RNDV_THRESH") < kib("TX_SEG_SIZE"));
        assert_eq!(kib("TX_SEG_SIZE"), kib("RX_SEG_SIZE"));
    }
}
