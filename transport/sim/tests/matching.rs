//! A network that matches by itself takes note of its messages.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use tagwire_base::Rank;
use tagwire_sim::Trace;
use tagwire_sim::matching::{MatchNetwork, MatchOptions};
use tagwire_transport::{Lane, MatchTransport, SendBuffer, Sent, Token, Transport};

#[test]
fn messages_that_time_does_not_pass_for_have_a_picture() {
    for helping in [true, false] {
        let trace = Trace::default();
        let options = MatchOptions {
            helping,
            trace: Some(trace.clone()),
            ..MatchOptions::default()
        };
        let network = MatchNetwork::new(2, options);
        let (mut a, b) = (network.rank(Rank::new(0)), network.rank(Rank::new(1)));
        assert_eq!(trace.svg(), None);
        let to = a.connect(Rank::new(1), &b.address()).unwrap();
        for bits in 0..2 {
            let sent = a.send(Lane(0), to, bits, &SendBuffer::EMPTY, false, Token(1));
            assert_eq!(sent, Sent::Done);
        }
        let picture = trace.svg().unwrap();
        let told = picture.matches("message of 0 bytes, rank 0 to rank 1");
        assert_eq!(told.count(), 2, "{picture}");
        // Where senders match, both are taken at once; else nobody has taken them.
        let taken = if helping { 2 } else { 0 };
        assert_eq!(picture.matches("marker-end").count(), taken, "{picture}");
        let next = MatchOptions {
            trace: Some(trace.clone()),
            ..MatchOptions::default()
        };
        let _next = MatchNetwork::new(2, next);
        assert_eq!(trace.svg(), None);
    }
}
