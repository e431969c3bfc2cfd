//! Whether the hosts that are named are this one.

use std::fs;
use std::net::{IpAddr, UdpSocket};

/// Returns the first of the hosts, `a:2,b` as launchers take them, that is not this one.
pub(super) fn elsewhere_of(list: &str) -> Option<String> {
    let own = own_name();
    let mut hosts = list.split(',').map(|host| without_slots(host.trim()));
    hosts
        .find(|host| !host.is_empty() && !is_here(host, &own))
        .map(str::to_owned)
}

/// Returns the first host of a file, one on each line, that is not this one.
///
/// # Errors
/// When the file cannot be read.
pub(super) fn elsewhere_of_file(path: &str) -> Result<Option<String>, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let lines = text.lines().map(|line| {
        let line = line.split('#').next().unwrap_or_default();
        line.split_whitespace().next().unwrap_or_default()
    });
    Ok(lines.filter_map(elsewhere_of).next())
}

/// Removes `:4` from a name; an address of IPv6 has colons of its own.
fn without_slots(host: &str) -> &str {
    match host.split_once(':') {
        Some((name, slots)) if !slots.contains(':') => name,
        _ => host,
    }
}

fn is_here(host: &str, own: &str) -> bool {
    let short = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        // The system binds what is its own.
        Ok(address) => UdpSocket::bind((address, 0)).is_ok(),
        Err(_) => host == own || short(host) == "localhost" || short(host) == short(own),
    }
}

fn own_name() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_has_several_names() {
        let own = own_name();
        for list in [
            "localhost",
            "localhost:4,127.0.0.1:2,::1,[::1]",
            &own,
            &format!("{own}:8,{own}.example.org"),
            "",
        ] {
            assert_eq!(elsewhere_of(list), None, "{list}");
        }
        for (list, elsewhere) in [
            ("localhost,no-such-node:3", "no-such-node"),
            ("192.0.2.7", "192.0.2.7"),
            ("2001:db8::1", "2001:db8::1"),
        ] {
            assert_eq!(elsewhere_of(list).as_deref(), Some(elsewhere));
        }
    }

    #[test]
    fn a_file_has_comments_and_slots() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().to_str().unwrap();
        fs::write(path, "# hosts\nlocalhost slots=4\n127.0.0.1:2 # more\n\n").unwrap();
        assert_eq!(elsewhere_of_file(path), Ok(None));
        fs::write(path, "localhost\nnode7 slots=2\n").unwrap();
        assert_eq!(elsewhere_of_file(path), Ok(Some("node7".to_owned())));
        assert!(elsewhere_of_file("/no/such/file").is_err());
    }
}
