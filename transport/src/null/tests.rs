use tagwire_base::Rank;

use super::{NullOptions, NullTransport};
use crate::byte::{ByteTransport, Class, Post};
use crate::message::{AmHeader, Arrival, Disposition, Lane, Outcome, PeerEvent, Token, Upcalls};

/// Counts.
#[derive(Default)]
struct Tally {
    messages: usize,
    failed: usize,
}

impl Upcalls for Tally {
    fn deliver(&mut self, _: Arrival<'_>) -> Disposition {
        self.messages += 1;
        Disposition::Released
    }
    fn complete(&mut self, _: Token, _: Outcome) {}
    fn peer(&mut self, event: PeerEvent) {
        self.failed += usize::from(matches!(event, PeerEvent::Failed(_)));
    }
}

#[test]
fn messages_to_others_vanish_and_never_fill() {
    let mut null = NullTransport::new(Rank::new(3), NullOptions::default());
    let to = null
        .connect(
            Rank::new(9),
            &NullTransport::new(Rank::new(9), NullOptions::default()).address(),
        )
        .unwrap();
    for _ in 0..10_000 {
        let post = null.send(Lane(0), to, Class::Data, AmHeader::default(), b"gone");
        assert_eq!(post, Post::Posted);
    }
    let mut tally = Tally::default();
    assert_eq!(null.progress(Lane(0), &mut tally), 0);
    null.peer_failed(Rank::new(9), &mut tally);
    null.peer_failed(Rank::new(9), &mut tally);
    assert_eq!((tally.messages, tally.failed), (0, 1));
    let post = null.send(Lane(0), to, Class::Data, AmHeader::default(), b"");
    assert_eq!(post, Post::Gone);
}

#[test]
fn one_call_of_progress_delivers_a_burst() {
    let options = NullOptions {
        burst: 3,
        ..NullOptions::default()
    };
    let mut null = NullTransport::new(Rank::new(0), options);
    let to = null.connect(Rank::new(0), &null.address()).unwrap();
    for _ in 0..5 {
        let post = null.send(Lane(0), to, Class::Data, AmHeader::default(), b"");
        assert_eq!(post, Post::Posted);
    }
    let mut tally = Tally::default();
    null.progress(Lane(0), &mut tally);
    assert_eq!(tally.messages, 3);
    null.progress(Lane(0), &mut tally);
    assert_eq!(tally.messages, 5);
}
