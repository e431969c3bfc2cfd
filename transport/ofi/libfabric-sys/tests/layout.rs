//! The structures that are bound, against the headers of this machine: newer headers may append
//! to a structure, and must not move what is there.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use std::fmt::Write;
use std::mem::{offset_of, size_of};
use std::path::Path;
use std::process::Command;

use tagwire_libfabric_sys::bindings::*;

/// A structure: its name, its size, and its fields with their places.
type Layout = (&'static str, usize, Vec<(&'static str, usize)>);

macro_rules! layouts {
    ($($structure:ident { $($field:ident,)* })*) => {
        fn layouts() -> Vec<Layout> {
            vec![$((
                stringify!($structure),
                size_of::<$structure>(),
                vec![$((stringify!($field), offset_of!($structure, $field))),*],
            )),*]
        }
    };
}

include!("fields/mod.rs");

/// What libfabric's headers call a field that is a word of Rust.
fn name_in_c(field: &str) -> &str {
    field.strip_suffix('_').unwrap_or(field)
}

/// A program that prints size and places of everything that is bound.
fn program() -> String {
    let mut text = String::from("#include <stddef.h>\n#include <stdio.h>\n");
    text += include_str!("../headers.h");
    text += "int main(void) {\n";
    for (structure, _, fields) in layouts() {
        writeln!(text, "printf(\"%zu\", sizeof(struct {structure}));").unwrap();
        for (field, _) in fields {
            let field = name_in_c(field);
            writeln!(
                text,
                "printf(\" %zu\", offsetof(struct {structure}, {field}));"
            )
            .unwrap();
        }
        text += "puts(\"\");\n";
    }
    text + "return 0;\n}\n"
}

/// What the program prints when it is compiled here.
fn printed(folder: &Path) -> String {
    let (source, binary) = (folder.join("layout.c"), folder.join("layout"));
    std::fs::write(&source, program()).unwrap();
    let compiled = Command::new("cc")
        .arg("-o")
        .arg(&binary)
        .arg(&source)
        .output();
    let compiled = compiled.expect("cc is there where headers are");
    let errors = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{errors}");
    String::from_utf8(Command::new(&binary).output().unwrap().stdout).unwrap()
}

#[test]
fn bound_structures_are_prefixes_of_the_headers() {
    if !Path::new("/usr/include/rdma/fabric.h").exists() {
        println!("SKIPPED: no libfabric headers on this machine (libfabric-dev)");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let printed = printed(folder.path());
    let layouts = layouts();
    assert!(layouts.len() > 40, "{} structures", layouts.len());
    assert_eq!(printed.lines().count(), layouts.len());
    for ((structure, size, fields), line) in layouts.into_iter().zip(printed.lines()) {
        let mut numbers = line
            .split(' ')
            .map(|number| number.parse::<usize>().unwrap());
        let theirs = numbers.next().unwrap();
        assert!(
            size <= theirs,
            "{structure} has {size} bytes, {theirs} in the headers"
        );
        for ((field, place), theirs) in fields.into_iter().zip(numbers) {
            assert_eq!(place, theirs, "{structure}.{field}");
        }
    }
}
