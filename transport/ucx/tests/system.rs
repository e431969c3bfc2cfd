//! The conformance kits on the system's UCX.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod suite;

use suite::{factory, match_factory, published, system as library};
use tagwire_conformance::{match_conformance, transport_conformance};

transport_conformance!(tcp, factory(library(), "tcp,self"));
transport_conformance!(posix, factory(library(), "posix,cma,self"));
transport_conformance!(sysv, factory(library(), "sysv,cma,self"));

writes!(writes_tcp, library(), "tcp,self");
writes!(writes_posix, library(), "posix,cma,self");

match_conformance!(match_tcp, match_factory(library(), "tcp,self"));
match_conformance!(match_posix, match_factory(library(), "posix,cma,self"));
match_conformance!(match_sysv, match_factory(library(), "sysv,cma,self"));

/// No tier passes by not being claimed.
#[test]
fn each_transport_offers_what_it_should() {
    if library().is_none() {
        println!("SKIPPED: this version of UCX is not installed");
        return;
    }
    suite::expect_published(published::SYSTEM_UCX, library);
}
