//! Addresses of this machine by the names of its network interfaces: one name says the same thing on
//! all machines of a cluster, where an address does not.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ptr;

/// The address of the interface called `name`, version 4 where it has one; `None` where there is no
/// such interface, or it has none.
pub(crate) fn address_of(name: &str) -> Option<IpAddr> {
    let mut first = ptr::null_mut();
    // SAFETY: a place for the list's head, which is given back below.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        return None;
    }
    let mut found = Vec::new();
    let mut next = first;
    while !next.is_null() {
        // SAFETY: the list is ours until it is freed, its names end with a zero, and an address is as
        // long as its family says.
        unsafe {
            let entry = &*next;
            if CStr::from_ptr(entry.ifa_name).to_bytes() == name.as_bytes() {
                found.extend(read(entry.ifa_addr));
            }
            next = entry.ifa_next;
        }
    }
    // SAFETY: what getifaddrs gave, once.
    unsafe { libc::freeifaddrs(first) };
    found.sort_by_key(IpAddr::is_ipv6);
    found.first().copied()
}

/// The address in `socket`, if it is one of the internet.
///
/// # Safety
/// `socket` is null or points to an address as long as its family says.
unsafe fn read(socket: *const libc::sockaddr) -> Option<IpAddr> {
    if socket.is_null() {
        return None;
    }
    // SAFETY: the caller vouches for the pointer; the family is looked at before more is read.
    unsafe {
        match i32::from((*socket).sa_family) {
            libc::AF_INET => {
                let address = ptr::read_unaligned(socket.cast::<libc::sockaddr_in>());
                let address = u32::from_be(address.sin_addr.s_addr);
                Some(Ipv4Addr::from(address).into())
            }
            libc::AF_INET6 => {
                let address = ptr::read_unaligned(socket.cast::<libc::sockaddr_in6>());
                Some(Ipv6Addr::from(address.sin6_addr.s6_addr).into())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_is_found_by_name() {
        assert_eq!(address_of("lo"), Some(Ipv4Addr::LOCALHOST.into()));
        for name in ["", "no such one", "127.0.0.1"] {
            assert_eq!(address_of(name), None);
        }
    }
}
