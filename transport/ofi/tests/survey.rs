//! What is said of libraries and providers, and of those that are not there.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod common;

use tagwire_base::Rank;
use tagwire_base::bootstrap::LocalJob;
use tagwire_ofi::{Ofi, OfiOptions, survey};

use common::{mpich, system};

fn refusal(options: &OfiOptions) -> String {
    let job = LocalJob::new(1).unwrap();
    let opened = Ofi::open(options, &job.member(Rank::new(0)));
    opened.expect_err("nobody has this").to_string()
}

#[test]
fn a_missing_library_is_named_with_the_knob() {
    let options = OfiOptions {
        library: "/nonexistent/libfabric.so.1".to_owned(),
        ..OfiOptions::default()
    };
    let survey = survey(&options);
    let why = survey.why_not("tcp").unwrap();
    for text in [why, refusal(&options)] {
        assert!(
            text.contains("/nonexistent/libfabric.so.1") && text.contains("TAGWIRE_LIBFABRIC"),
            "{text}"
        );
    }
}

#[test]
fn what_is_no_libfabric_is_named_with_the_symbol() {
    let options = OfiOptions {
        library: "libc.so.6".to_owned(),
        ..OfiOptions::default()
    };
    let text = refusal(&options);
    assert!(text.contains("fi_version"), "{text}");
}

#[test]
fn providers_are_listed_and_judged() {
    for library in [system(), mpich()] {
        let Some(library) = library else {
            println!("SKIPPED: one libfabric is not on this machine");
            continue;
        };
        let survey = survey(&OfiOptions {
            library: library.clone(),
            ..OfiOptions::default()
        });
        assert!(survey.version.unwrap() >= (1, 17));
        assert_eq!(survey.why_not("tcp;ofi_rxm"), None);
        let rxm = survey
            .providers
            .iter()
            .find(|one| one.name == "tcp;ofi_rxm");
        assert!(rxm.unwrap().capabilities.contains(&"remote access"));
        let why = survey.why_not("nothing").unwrap();
        assert!(why.contains("tcp;ofi_rxm"), "{why}");
        let opened = refusal(&OfiOptions {
            library,
            provider: "nothing".to_owned(),
            ..OfiOptions::default()
        });
        assert!(opened.contains("ofi:nothing"), "{opened}");
    }
}

/// Debian's libfabric brings libraries of providers that would end the program their own way.
#[test]
fn signals_stay_the_programs() {
    let Some(library) = system() else {
        println!("SKIPPED: no libfabric on this machine");
        return;
    };
    let found = survey(&OfiOptions {
        library,
        ..OfiOptions::default()
    });
    assert_eq!(found.missing, None);
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = u64::from_str_radix(caught.unwrap().trim(), 16).unwrap();
    for signal in [libc::SIGINT, libc::SIGTERM] {
        assert_eq!(
            caught >> (signal - 1) & 1,
            0,
            "signal {signal} of {caught:x}"
        );
    }
}

#[test]
fn an_address_that_is_not_ours_is_named() {
    let Some(library) = system() else {
        println!("SKIPPED: no libfabric on this machine");
        return;
    };
    let text = refusal(&OfiOptions {
        library,
        provider: "tcp;ofi_rxm".to_owned(),
        source: "203.0.113.77".to_owned(),
        ..OfiOptions::default()
    });
    assert!(text.contains("203.0.113.77"), "{text}");
}
