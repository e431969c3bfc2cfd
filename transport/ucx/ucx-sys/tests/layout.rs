//! The bound structs have the layout of the machine's headers: as prefixes, since newer versions
//! append.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;

#[path = "../../../../ci/wheels.rs"]
mod wheels;

/// What the bindings say, as assertions in C.
fn assertions() -> String {
    let bindings = include_str!("../src/bindings.rs");
    let mut c = String::from("#include <stddef.h>\n#include <ucp/api/ucp.h>\n");
    for rest in bindings.split("[\"Offset of field: ").skip(1) {
        let (name, rest) = rest.split_once("\"]").unwrap();
        let (owner, field) = name.split_once("::").unwrap();
        let offset = rest
            .split_once("- ")
            .unwrap()
            .1
            .split_once("usize")
            .unwrap()
            .0;
        if owner.starts_with("ucp_") && !owner.contains("__bindgen") {
            let owner = c_name(owner);
            writeln!(
                c,
                "_Static_assert(offsetof({owner}, {field}) == {offset}, \"{owner}.{field}\");"
            )
            .unwrap();
        }
    }
    // Written by the library as a whole, without a mask.
    let size = size_of::<tagwire_ucx_sys::ucp_tag_recv_info_t>();
    writeln!(
        c,
        "_Static_assert(sizeof(ucp_tag_recv_info_t) == {size}, \"tag info\");"
    )
    .unwrap();
    c
}

/// Structs have a tag in C, or a name by `typedef` alone, which ends in `_t`.
fn c_name(name: &str) -> String {
    if name.ends_with("_t") {
        name.to_owned()
    } else {
        format!("struct {name}")
    }
}

/// Where headers of UCX may be: the system's, and those inside Python wheels.
fn include_folders() -> Vec<PathBuf> {
    let mut folders = vec![PathBuf::from("/usr/include")];
    // include/ucp/api/ucp.h
    let header = wheels::wheel("libucx-cu12", "ucp.h");
    folders.extend(header.and_then(|file| Some(file.ancestors().nth(3)?.to_owned())));
    folders.retain(|folder| folder.join("ucp/api/ucp.h").exists());
    folders
}

#[test]
fn bound_structs_are_prefixes_of_the_headers() {
    let source = assertions();
    let count = source.matches("_Static_assert").count();
    assert!(
        count > 60,
        "only {count} offsets were found in the bindings"
    );
    let folders = include_folders();
    if folders.is_empty() {
        println!("SKIPPED: no headers of UCX here (libucx-dev, or ci/peers libucx-cu12)");
    }
    for folder in folders {
        let file =
            std::env::temp_dir().join(format!("tagwire-ucx-layout-{}.c", std::process::id()));
        std::fs::write(&file, &source).unwrap();
        let output = Command::new("cc")
            .args(["-fsyntax-only", "-I"])
            .arg(&folder)
            .arg(&file)
            .output();
        std::fs::remove_file(&file).unwrap();
        let Ok(output) = output else {
            println!("SKIPPED: no C compiler here");
            return;
        };
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {text}", folder.display());
    }
}
