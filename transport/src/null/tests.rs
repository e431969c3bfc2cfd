use tagwire_base::Rank;

use super::{NullOptions, NullTransport};
use crate::byte::ByteTransport;
use crate::data::{RecvBuffer, SendBuffer};
use crate::message::{AmHeader, Arrival, Lane, Outcome, PeerEvent, Token, Upcalls};
use crate::post::{Class, Post};
use crate::remote::{RemoteAccess, RemoteMemory};
use crate::transport::Transport;

/// Counts.
#[derive(Default)]
struct Tally {
    messages: usize,
    failed: usize,
}

impl Upcalls for Tally {
    fn deliver(&mut self, _: Arrival<'_>) {
        self.messages += 1;
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

/// Returns another length each time that it is asked.
struct Growing(std::sync::atomic::AtomicUsize);

impl crate::data::Pack for Growing {
    fn len(&self) -> usize {
        self.0.fetch_add(8, std::sync::atomic::Ordering::Relaxed)
    }

    fn pack(&self, _: usize, out: &mut [u8]) {
        out.fill(7);
    }
}

/// What is found to fit is what is written, whatever becomes of the message meanwhile.
#[test]
#[allow(unsafe_code)]
fn a_message_that_grows_stays_within_what_is_registered() {
    let mut null = NullTransport::new(Rank::new(0), NullOptions::default());
    let to = null.connect(Rank::new(0), &null.address()).unwrap();
    let mut bytes = [0u8; 64];
    // SAFETY: the bytes are left alone until they are registered no more.
    let room = unsafe { RecvBuffer::contiguous(bytes.as_mut_ptr(), 8) };
    let handle = null.register(&room).unwrap();
    let target = RemoteMemory {
        address: room.region().unwrap().address(),
        key: &handle.key,
    };
    let data = SendBuffer::packed(Box::new(Growing(8.into())));
    let post = null.put(Lane(0), to, &data, target, None, Token(1));
    assert_eq!(post, Post::Posted);
    null.deregister(handle);
    assert!(bytes[8..].iter().all(|byte| *byte == 0), "{bytes:?}");
}
