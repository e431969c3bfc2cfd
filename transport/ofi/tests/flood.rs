//! Unmatched messages in numbers that a provider is not made for. In a process of its own: libfabric reads its variables once.
#![allow(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use tagwire_base::Rank;
use tagwire_base::bootstrap::LocalJob;
use tagwire_ofi::{OfiMatch, OfiOptions};
use tagwire_transport::{
    Found, Lane, MatchPattern, MatchTransport, MatchUpcalls, Outcome, PeerEvent, Posted,
    ReceiveEnd, RecvBuffer, SendBuffer, Sent, Token, Transport,
};

/// More than numbers of 18 bits tell apart.
const FLOOD: u32 = 280_000;
/// What an announcement may take, at both ends together. A receive buffer of the provider is 16 KiB where nobody says.
const EACH: usize = 2 << 10;

const FLOOD_BITS: u64 = 1;
const LAST_BITS: u64 = 2;

#[derive(Debug, Default)]
struct Received(usize);

impl MatchUpcalls for Received {
    fn sent(&mut self, _: Token, _: Outcome) {}

    fn received(&mut self, _: Token, end: ReceiveEnd) {
        assert!(matches!(end, ReceiveEnd::Matched(_, Outcome::Done(8))));
        self.0 += 1;
    }

    fn probed(&mut self, _: Token, _: Option<Found>) {}

    fn peer(&mut self, event: PeerEvent) {
        assert!(matches!(event, PeerEvent::Up { .. }), "{event:?}");
    }
}

/// Returns the resident memory of this process, in bytes.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = text.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

/// The receiver wants the last message first. All before it are announced, since it keeps no bytes of them.
#[test]
fn what_is_behind_a_flood_of_announcements_is_received() {
    let options = OfiOptions {
        provider: "tcp;ofi_rxm".to_owned(),
        source: "127.0.0.1".to_owned(),
        unexpected_messages: 0,
        ..OfiOptions::default()
    };
    let job = LocalJob::new(2).unwrap();
    let open = |rank| OfiMatch::open(&options, &job.member(Rank::new(rank)));
    let (mut receiver, mut sender) = match (open(0), open(1)) {
        (Ok(receiver), Ok(sender)) => (receiver, sender),
        (Err(error), _) | (_, Err(error)) => return println!("SKIPPED: {error}"),
    };
    let mut told = Received::default();
    let to = sender.connect(Rank::new(0), &receiver.address()).unwrap();
    let (bytes, mut room) = ([7_u8; 8], [0_u8; 8]);
    // SAFETY: the room is kept longer than the ranks, which are dropped before it.
    let target = unsafe { RecvBuffer::contiguous(room.as_mut_ptr(), room.len()) };
    let pattern = MatchPattern {
        source: None,
        bits: LAST_BITS,
        ignore: 0,
    };
    let posted = receiver.post(Lane(0), pattern, &target, Token(0));
    assert!(matches!(posted, Posted::Open));
    let before = resident();
    for number in 0..=FLOOD {
        let bits = if number < FLOOD {
            FLOOD_BITS
        } else {
            LAST_BITS
        };
        // SAFETY: the bytes are kept longer than the ranks, which are dropped before them.
        let data = unsafe { SendBuffer::contiguous(bytes.as_ptr(), bytes.len()) };
        while sender.send(Lane(0), to, bits, &data, false, Token(u64::from(number))) == Sent::Busy {
            sender.progress(Lane(0), &mut told);
            receiver.progress(Lane(0), &mut told);
        }
    }
    while told.0 == 0 {
        sender.progress(Lane(0), &mut told);
        receiver.progress(Lane(0), &mut told);
    }
    let each = resident().saturating_sub(before) / FLOOD as usize;
    assert!(each < EACH, "{each} bytes for each");
    drop((receiver, sender));
    assert_eq!(room, bytes);
}
