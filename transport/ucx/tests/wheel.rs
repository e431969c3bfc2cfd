//! The conformance kits on the UCX of the wheel libucx-cu12 (`ci/peers`).

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod suite;
#[path = "../../../ci/wheels.rs"]
mod wheels;

use suite::{factory, match_factory, published};
use tagwire_conformance::{match_conformance, transport_conformance};

/// Returns the library of the wheel, where that is installed.
fn library() -> Option<String> {
    let file = wheels::wheel("libucx-cu12", "libucp.so.0")?;
    file.into_os_string().into_string().ok()
}

transport_conformance!(tcp, factory(library(), "tcp,self"));
transport_conformance!(posix, factory(library(), "posix,cma,self"));

writes!(writes_tcp, library(), "tcp,self");
writes!(writes_posix, library(), "posix,cma,self");

match_conformance!(match_tcp, match_factory(library(), "tcp,self"));
match_conformance!(match_posix, match_factory(library(), "posix,cma,self"));

/// No tier passes by not being claimed.
#[test]
fn each_transport_offers_what_it_should() {
    if library().is_none() {
        println!("SKIPPED: this version of UCX is not installed");
        return;
    }
    suite::expect_published(published::NEWER_UCX, library);
}
