//! Opening libraries: the right one, and others.

#![allow(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use tagwire_libfabric_sys::{Library, LoadError};

#[test]
fn what_is_not_there_is_named() {
    // SAFETY: there is no such file.
    let error = unsafe { Library::open("/nonexistent/libfabric.so.1") }.unwrap_err();
    assert!(matches!(error, LoadError::Open { .. }));
    assert!(error.to_string().contains("/nonexistent/libfabric.so.1"));
}

#[test]
fn what_is_not_libfabric_is_refused_by_symbol() {
    // SAFETY: it is loaded already, and has none of the symbols.
    let error = unsafe { Library::open("libc.so.6") }.unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("libc.so.6") && text.contains("fi_version"),
        "{text}"
    );
}

#[test]
fn the_systems_library_has_every_symbol() {
    // SAFETY: the system's libfabric.
    match unsafe { Library::open(Library::SYSTEM) } {
        Ok(library) => {
            assert!(library.version() >= (1, 17));
            assert!(!library.describe(-11).is_empty());
        }
        Err(LoadError::Open { reason, .. }) => println!("SKIPPED: no libfabric here: {reason}"),
        Err(error) => panic!("{error}"),
    }
}
