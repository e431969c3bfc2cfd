//! What the fuzz targets run, and what must hold for any input: functions of bytes that panic when
//! something is wrong. The main package's test `fuzz_corpus` includes this file.
#![allow(unsafe_code)]

use tagwire_base::bootstrap::{Bootstrap, LocalJob};
use tagwire_base::{ContextId, Rank, SourceSelector, TagSelector};
use tagwire_bench::Sizes;
use tagwire_conformance::network::{MemoryNetwork, MemoryOptions};
use tagwire_launch::store::wire::{FrameBuffer, Reply, Request};
use tagwire_pml::contact::{KEY, Stack};
use tagwire_pml::ob1::{Ob1, Ob1Options};
use tagwire_pml::{LocalRank, PointToPoint};
use tagwire_transport::{AmHeader, ByteTransport, Class, Lane, Post, RecvBuffer, Transport};

/// A rank of ob1 gets these packets from a peer that is none:
///
/// ```text
///   0       1              17            18
///  +-------+--------------+-------------+-----------------+
///  | what  | header (16)  | length (1)  | payload         |   and so on
///  +-------+--------------+-------------+-----------------+
/// ```
///
/// Bit 0 of `what` lets the rank post a receive first, bit 1 lets it make progress afterwards. Whatever
/// comes, the rank gives the peer up or goes on, and can be closed.
pub fn ob1_packets(data: &[u8]) {
    const LANE: Lane = Lane(0);
    const STACK: Stack = Stack::new("ob1", "memory");
    let network = MemoryNetwork::new(2, MemoryOptions::full());
    let Ok(job) = LocalJob::new(2) else { return };
    let (victim, villain) = (Rank::new(0), Rank::new(1));
    let mut rail = network.rank(villain);
    let mut rank = std::thread::scope(|scope| {
        let opened = scope.spawn(|| {
            let rail = Box::new(network.rank(victim));
            Ob1::open(&Ob1Options::default(), rail, Box::new(job.member(victim)))
        });
        let mut member = job.member(villain);
        let address = rail.address();
        let _ = member.put(KEY, &STACK.card(&address));
        let _ = member.fence(std::time::Duration::from_secs(30));
        let opened = opened.join().expect("opening does not panic");
        opened.expect("a rank over memory opens")
    });
    let patience = std::time::Duration::from_secs(30);
    let Ok(card) = job.member(villain).get(victim, KEY, patience) else {
        return;
    };
    // The address is behind the stack, which is the same here and there.
    let Ok(to) = rail.connect(victim, &card[STACK.card(&[]).len()..]) else {
        return;
    };
    let mut room = vec![0_u8; 4096];
    let mut rest = data;
    while let Some((&[what, ref header @ .., length], behind)) = rest.split_first_chunk::<18>() {
        let (payload, behind) = behind.split_at(usize::from(length).min(behind.len()));
        rest = behind;
        if what & 1 == 1 {
            // SAFETY: the room outlives the rank, and nobody looks at it.
            let buffer = unsafe { RecvBuffer::contiguous(room.as_mut_ptr(), room.len()) };
            let _ = rank.irecv(
                buffer,
                SourceSelector::ANY,
                TagSelector::ANY,
                ContextId::WORLD,
            );
        }
        let word = |at: usize| {
            let bytes = header[at..at + 8].try_into().expect("eight bytes");
            u64::from_le_bytes(bytes)
        };
        let header = AmHeader([word(0), word(8)]);
        if rail.send(LANE, to, Class::Data, header, payload) == Post::Gone {
            break;
        }
        if what & 2 == 2 {
            rank.progress();
        }
    }
    for _ in 0..64 {
        rank.progress();
    }
    rank.look_after_peers();
    let mut text = String::new();
    let _ = rank.dump(&tagwire_pml::ContextNames::default(), &mut text);
    rank.begin_close();
    rank.progress();
    rank.leave();
    drop(rank);
}

/// What a rank or a stranger may write into the store's socket: cut into frames however it arrives, each
/// frame is a request, a reply or refused, and what was read is written again as it was.
pub fn store_frames(data: &[u8]) {
    let (Some((&piece, bytes)), mut buffer) = (data.split_first(), FrameBuffer::default()) else {
        return;
    };
    for piece in bytes.chunks(usize::from(piece).max(1)) {
        buffer.extend(piece);
        loop {
            match buffer.next_frame() {
                Err(_) => return,
                Ok(None) => break,
                Ok(Some(frame)) => {
                    if let Ok(request) = Request::decode(&frame) {
                        let again = reread(&request.encode(frame.id));
                        assert_eq!(Request::decode(&again), Ok(request));
                    }
                    // The text of a refusal is repaired and cut: what is written is shorter.
                    if let Ok(reply) = Reply::decode(&frame)
                        && !matches!(reply, Reply::Refused(_) | Reply::Later(_))
                    {
                        let again = reread(&reply.encode(frame.id));
                        assert_eq!(Reply::decode(&again), Ok(reply));
                    }
                }
            }
        }
    }
}

fn reread(bytes: &[u8]) -> tagwire_launch::store::wire::Frame {
    let mut buffer = FrameBuffer::default();
    buffer.extend(bytes);
    let frame = buffer.next_frame().expect("our own frames are sound");
    frame.expect("our own frames are whole")
}

/// What a user may write behind `--sizes`: refused, or a list within its bounds that reads back.
pub fn sizes(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let Ok(sizes) = text.parse::<Sizes>() else {
        return;
    };
    assert!(!sizes.as_slice().is_empty() && sizes.as_slice().len() <= 10_000);
    assert!(sizes.largest() <= 1 << 40);
    assert_eq!(sizes.to_string().parse::<Sizes>(), Ok(sizes));
}
