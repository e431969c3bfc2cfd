//! What this host is called, and where others reach it.

use std::net::{IpAddr, UdpSocket};

/// Returns what this host is called.
pub(crate) fn node() -> String {
    let system = rustix::system::uname();
    system.nodename().to_string_lossy().into_owned()
}

/// Returns the address by which this host reaches others, as its routes say; without a default route, as its interfaces do.
pub(crate) fn own_address() -> Option<IpAddr> {
    by_routes().or_else(by_interfaces)
}

/// Returns where other hosts reach what listens at `place`: whoever listens everywhere does at the address of its routes.
#[must_use]
pub fn reachable(place: &str) -> String {
    for everywhere in ["0.0.0.0:", "[::]:"] {
        if let Some(port) = place.strip_prefix(everywhere) {
            return match own_address() {
                Some(IpAddr::V6(own)) => format!("[{own}]:{port}"),
                Some(own) => format!("{own}:{port}"),
                None => format!("127.0.0.1:{port}"),
            };
        }
    }
    place.to_owned()
}

/// Returns the address that the default route goes from; nothing is sent.
fn by_routes() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    // An address of the block for documentation: it takes the default route.
    socket.connect("192.0.2.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_unspecified() && !address.is_loopback()).then_some(address)
}

/// Returns the first address of an interface that others may reach: nodes of a cluster often have no default route.
fn by_interfaces() -> Option<IpAddr> {
    let all = if_addrs::get_if_addrs().ok()?;
    let usable = all
        .iter()
        .filter(|one| one.is_oper_up() && !one.is_loopback());
    first_of(usable.map(if_addrs::Interface::ip))
}

/// Returns the first address that needs no interface beside it; one of version 4 before the others.
fn first_of(addresses: impl Iterator<Item = IpAddr>) -> Option<IpAddr> {
    let is_link_local = |address: &IpAddr| match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    let usable = addresses.filter(|address| !address.is_loopback() && !is_link_local(address));
    usable.min_by_key(IpAddr::is_ipv6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_without_routes_have_an_address_all_the_same() {
        let first = |all: &[&str]| {
            let all = all.iter().map(|text| text.parse().unwrap());
            first_of(all).map(|address| address.to_string())
        };
        let all = [
            "127.0.0.1",
            "fe80::1",
            "169.254.7.1",
            "fd00::7",
            "10.0.0.7",
            "10.0.1.7",
        ];
        assert_eq!(first(&all).as_deref(), Some("10.0.0.7"));
        assert_eq!(first(&all[..4]).as_deref(), Some("fd00::7"));
        assert_eq!(first(&all[..3]), None);
    }
}
