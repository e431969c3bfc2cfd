//! The conformance kits on the UCX of Python's libucx-cu12.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod suite;

use suite::factory;
use tagwire_transport::transport_conformance;

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

transport_conformance!(tcp, factory("tcp,self"));
transport_conformance!(posix, factory("posix,cma,self"));
transport_conformance!(sysv, factory("sysv,cma,self"));
