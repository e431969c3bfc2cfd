//! The checker of histories accepts runs that a legal matching explains, and no others.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use tagwire_base::{ContextId, Tag};
use tagwire_conformance::pml::history::{History, Sent, Wanted};

fn tag(value: i32) -> Tag {
    Tag::user(value).unwrap()
}

fn sent(from: usize, value: i32) -> Sent {
    Sent {
        from,
        to: 9,
        tag: tag(value),
        context: ContextId::WORLD,
        len: 8,
    }
}

fn wanted(source: Option<usize>, value: Option<i32>, got: Option<usize>) -> Wanted {
    Wanted {
        at: 9,
        source,
        tag: value.map(tag),
        context: ContextId::WORLD,
        got,
        excused: false,
    }
}

fn verdict(sent: Vec<Sent>, wanted: Vec<Wanted>) -> Result<(), String> {
    History::new(sent, wanted).check()
}

#[test]
fn the_checker_tells_right_from_wrong() {
    let two = || vec![sent(0, 1), sent(0, 1)];
    let any = |got| wanted(None, None, got);
    assert!(verdict(two(), vec![any(Some(0)), any(Some(1))]).is_ok());
    assert!(
        verdict(two(), vec![any(Some(1)), any(Some(0))]).is_err(),
        "overtaken"
    );
    assert!(
        verdict(two(), vec![any(None), any(Some(0)), any(Some(1))]).is_err(),
        "passed over"
    );
    assert!(verdict(two(), vec![any(Some(0))]).is_err(), "lost");
    let others = || vec![sent(0, 1), sent(1, 1)];
    assert!(
        verdict(others(), vec![any(Some(1)), any(Some(0))]).is_ok(),
        "two sources"
    );
    let tags = || vec![sent(0, 1), sent(0, 2)];
    let picky = wanted(None, Some(2), Some(1));
    assert!(verdict(tags(), vec![picky, any(Some(0))]).is_ok());
    assert!(verdict(tags(), vec![any(Some(1)), wanted(None, Some(1), Some(0))]).is_err());
}

/// No pair is wrong by itself; all four together are.
#[test]
fn the_checker_finds_circles_over_two_sources() {
    let sent = vec![sent(0, 1), sent(0, 2), sent(1, 1), sent(1, 2)];
    let wanted = vec![
        wanted(Some(0), Some(2), Some(1)),
        wanted(None, Some(1), Some(2)),
        wanted(Some(0), None, Some(0)),
        wanted(Some(1), None, Some(3)),
    ];
    // Receive 2 must follow receive 1 (both take message 0), and that is all there is to it.
    assert!(verdict(sent.clone(), wanted.clone()).is_ok());
    let mut crossed = wanted;
    crossed[0] = Wanted {
        tag: None,
        ..crossed[0]
    };
    // Now receive 0 could have taken message 0 and got message 1: 2 before 0, 0 before 2.
    assert!(verdict(sent, crossed).is_err());
}
