//! What goes wrong is told in words that name what was tried and the knob to turn.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use tagwire_base::Rank;
use tagwire_base::bootstrap::LocalJob;
use tagwire_ucx::{Ucx, UcxOptions, survey};

fn error_of(options: UcxOptions) -> String {
    let job = LocalJob::new(1).unwrap();
    let opened = Ucx::open(options, &job.member(Rank::new(0)));
    opened
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default()
}

fn of(library: &str) -> UcxOptions {
    UcxOptions {
        library: Some(library.to_owned()),
        ..UcxOptions::default()
    }
}

#[test]
fn a_missing_library_is_named_with_its_setting() {
    let error = error_of(of("/nowhere/libucp.so.0"));
    assert!(error.contains("/nowhere/libucp.so.0"), "{error}");
    assert!(error.contains("TAGWIRE_UCX"), "{error}");
}

#[test]
fn a_file_that_is_no_library_is_named() {
    let error = error_of(of("/etc/passwd"));
    assert!(
        error.contains("/etc/passwd") && error.contains("TAGWIRE_UCX"),
        "{error}"
    );
}

/// Another library: the first symbol that it lacks is named.
#[test]
fn a_library_that_is_not_ucx_is_named_with_its_symbol() {
    let error = error_of(of("libc.so.6"));
    assert!(error.contains("libc.so.6"), "{error}");
    assert!(error.contains("ucp_") || error.contains("ucs_"), "{error}");
    assert!(error.contains("UCX 1.13"), "{error}");
}

#[test]
fn transports_that_are_not_there_are_named() {
    let seen = survey(&UcxOptions::default());
    if seen.version.is_err() {
        println!("SKIPPED: no UCX on this machine: {seen:?}");
        return;
    }
    let options = UcxOptions {
        transports: Some("no_such_transport".to_owned()),
        ..UcxOptions::default()
    };
    let error = error_of(options);
    assert!(error.contains("no_such_transport"), "{error}");
    let tcp = seen.transports.iter().find(|offer| offer.name == "tcp");
    assert_eq!(tcp.unwrap().why_not, None);
    let rdma = seen.transports.iter().find(|offer| offer.name == "rc_mlx5");
    let why = rdma.unwrap().why_not.clone();
    assert!(why.is_none_or(|why| why.contains("rc_mlx5")));
}

#[test]
fn a_survey_without_a_library_says_why() {
    let seen = survey(&of("/nowhere/libucp.so.0"));
    assert!(seen.version.unwrap_err().contains("/nowhere"));
    assert!(seen.transports.is_empty());
}
