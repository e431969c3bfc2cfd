//! The conformance kits on the system's UCX.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod suite;

use suite::factory;
use tagwire_transport::transport_conformance;

/// The system's library, where there is one.
fn library() -> Option<String> {
    Some("libucp.so.0".to_owned())
}

transport_conformance!(tcp, factory("tcp,self"));
transport_conformance!(posix, factory("posix,cma,self"));
transport_conformance!(sysv, factory("sysv,cma,self"));
