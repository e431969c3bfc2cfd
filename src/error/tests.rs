//! What errors print.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use super::*;

/// One of each variant.
fn all() -> Vec<Error> {
    let status = tagwire_pml::Status {
        source: tagwire_base::Rank::new(3),
        tag: tagwire_base::Tag::user(7).unwrap(),
        length: 24,
        failure: Some(Failure::truncated(16)),
        ..tagwire_pml::Status::EMPTY
    };
    vec![
        Error::Pml(tagwire_pml::Error::StaleRequest),
        Error::Failed(Failure::PeerFailed(tagwire_base::Rank::new(1))),
        Status::checked(status, 16).unwrap_err(),
        Error::Base(tagwire_base::Error::Bootstrap("no store".into())),
        Error::Launch(tagwire_launch::Error::Usage("no".into())),
        Error::OtherSession,
        Error::UnderWay,
        Error::NegativeTag(-1),
        Error::Fraction {
            bytes: 9,
            element: 8,
        },
        Error::BlockType { rank: 2 },
    ]
}

#[test]
fn both_short_forms_are_the_sentence() {
    for error in all() {
        let sentence = error.to_string();
        assert_eq!(format!("{error:?}"), sentence);
        let derived = format!("{error:#?}");
        assert!(derived != sentence && !derived.is_empty(), "{derived}");
    }
}

#[test]
fn the_long_form_names_variants_and_fields() {
    let long = |error: &Error| format!("{error:#?}").replace(['\n', ' '], "");
    let found: Vec<String> = all().iter().map(long).collect();
    assert_eq!(found[0], "Pml(StaleRequest,)");
    assert_eq!(
        found[2],
        "Truncated{status:Status{source:3,tag:7,bytes:24,failure:Truncated{room:16,},},room:16,}"
    );
    assert_eq!(
        found[5..],
        [
            "OtherSession",
            "UnderWay",
            "NegativeTag(-1,)",
            "Fraction{bytes:9,element:8,}",
            "BlockType{rank:2,}"
        ]
    );
}

#[test]
fn a_truncated_receive_names_source_tag_and_both_lengths() {
    let error = &all()[2];
    assert_eq!(
        error.to_string(),
        "the message from rank 3 with tag 7 has 24 bytes, and the receive had room for 16: the rest is lost"
    );
    let status = error.status().unwrap();
    assert_eq!((status.source(), status.tag(), status.bytes()), (3, 7, 24));
    assert_eq!(error.failure(), Some(Failure::truncated(16)));
    assert_eq!(error.code(), 300);
}
