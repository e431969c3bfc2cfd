//! The conformance kits on the UCX of Python's libucx-cu12.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod suite;

use suite::{factory, match_factory, published};
use tagwire_transport::{match_conformance, transport_conformance};

/// The library inside the package, where that is installed.
fn library() -> Option<String> {
    let script = "import libucx, os; print(os.path.dirname(libucx.__file__))";
    let output = std::process::Command::new("python3")
        .args(["-c", script])
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let folder = String::from_utf8(output.stdout).ok()?;
    Some(format!("{}/lib/libucp.so.0", folder.trim()))
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
