use proptest::prelude::*;

use super::*;

fn requests() -> impl Strategy<Value = Request> {
    let key = "\\PC{0,60}";
    let who = prop_oneof![
        any::<u32>().prop_map(Who::Rank),
        (any::<u32>(), key).prop_map(|(ranks, name)| Who::Host { ranks, name }),
    ];
    prop_oneof![
        (any::<u16>(), any::<[u8; 32]>(), who).prop_map(|(version, nonce, who)| {
            Request::Hello(Hello {
                version,
                nonce: Nonce::from_bytes(nonce),
                who,
            })
        }),
        any::<[u8; 32]>().prop_map(|proof| Request::Proof(Proof::from_bytes(proof))),
        (key, prop::collection::vec(any::<u8>(), 0..300))
            .prop_map(|(key, value)| Request::Put { key, value }),
        (any::<u32>(), key).prop_map(|(rank, key)| Request::Get { rank, key }),
        Just(Request::Fence),
        Just(Request::PutDescriptor),
        any::<u32>().prop_map(|rank| Request::GetDescriptor { rank }),
        Just(Request::Leave),
        (any::<u32>(), any::<u32>()).prop_map(|(rank, status)| Request::Ended { rank, status }),
    ]
}

fn grants() -> impl Strategy<Value = Grant> {
    let nonce = any::<[u8; 32]>().prop_map(Nonce::from_bytes);
    prop_oneof![
        (any::<u32>(), any::<u32>(), nonce).prop_map(|(size, round, nonce)| Grant::Welcome {
            size,
            round,
            nonce
        }),
        (any::<u32>(), any::<u32>()).prop_map(|(first, size)| Grant::Place { first, size }),
    ]
}

fn replies() -> impl Strategy<Value = Reply> {
    let rank = (0..=Rank::MAX).prop_map(Rank::new);
    let proof = any::<[u8; 32]>().prop_map(Proof::from_bytes);
    let nonce = any::<[u8; 32]>().prop_map(Nonce::from_bytes);
    prop_oneof![
        (grants(), proof).prop_map(|(grant, proof)| Reply::Granted(grant, proof)),
        nonce.prop_map(Reply::Challenge),
        any::<u32>().prop_map(|status| Reply::End { status }),
        Just(Reply::Done),
        prop::collection::vec(any::<u8>(), 0..300).prop_map(Reply::Value),
        Just(Reply::Descriptor),
        "\\PC{0,100}".prop_map(Reply::Refused),
        "\\PC{0,100}".prop_map(Reply::Later),
        rank.clone().prop_map(Reply::Left),
        rank.prop_map(Reply::Failed),
    ]
}

/// Feeds `bytes` in pieces of `step` and returns the frames, up to the first error.
fn cut(bytes: &[u8], step: usize) -> Result<Vec<Frame>, Malformed> {
    let mut buffer = FrameBuffer::default();
    let mut frames = Vec::new();
    for piece in bytes.chunks(step.max(1)) {
        buffer.extend(piece);
        while let Some(frame) = buffer.next_frame()? {
            frames.push(frame);
        }
    }
    Ok(frames)
}

proptest! {
    #[test]
    fn requests_survive_any_cut(sent in prop::collection::vec(requests(), 0..8), step in 1usize..64) {
        let bytes: Vec<u8> = sent
            .iter()
            .zip(1..)
            .flat_map(|(request, id)| request.encode(RequestId(id)))
            .collect();
        let frames = cut(&bytes, step).unwrap();
        prop_assert_eq!(frames.len(), sent.len());
        for ((frame, request), id) in frames.iter().zip(&sent).zip(1..) {
            prop_assert_eq!(frame.id, RequestId(id));
            prop_assert_eq!(&Request::decode(frame).unwrap(), request);
        }
    }

    #[test]
    fn replies_survive_any_cut(sent in prop::collection::vec(replies(), 0..8), step in 1usize..64) {
        let bytes: Vec<u8> =
            sent.iter().flat_map(|reply| reply.encode(RequestId(7))).collect();
        let got: Vec<Reply> =
            cut(&bytes, step).unwrap().iter().map(|frame| Reply::decode(frame).unwrap()).collect();
        prop_assert_eq!(got, sent);
    }

    #[test]
    fn a_proof_is_of_all_that_is_granted(grant in grants(), at in any::<prop::sample::Index>(), flip in 1u8..) {
        let secret = JobSecret::from_bytes([1; JobSecret::LEN]);
        let challenge = Nonce::from_bytes([3; Nonce::LEN]);
        let hello = Hello::of(Who::Rank(1)).unwrap();
        let proof = hello.answer(&secret, &challenge, &grant);
        let mut bytes = Reply::Granted(grant, proof).encode(RequestId(1));
        let answered = |bytes: &[u8]| match Reply::decode(&cut(bytes, 64).unwrap()[0]) {
            Ok(Reply::Granted(grant, proof)) => hello.is_answered(&proof, &secret, (&challenge, &grant)),
            other => panic!("{other:?}"),
        };
        prop_assert!(answered(&bytes));
        let header = 4 + HEADER;
        let at = header + at.index(bytes.len() - header);
        bytes[at] ^= flip;
        prop_assert!(!answered(&bytes));
    }

    #[test]
    fn arbitrary_streams_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..512), step in 1usize..64) {
        if let Ok(frames) = cut(&bytes, step) {
            for frame in frames {
                let _ = Request::decode(&frame);
                let _ = Reply::decode(&frame);
            }
        }
    }

    #[test]
    fn arbitrary_bodies_never_panic(kind in any::<u8>(), body in prop::collection::vec(any::<u8>(), 0..512)) {
        let frame = Frame { kind, id: RequestId(1), body };
        // What decodes must be what encodes: no two readings of one frame.
        if let Ok(Request::Put { key, value }) = Request::decode(&frame) {
            let again = Request::Put { key, value }.encode(RequestId(1));
            prop_assert_eq!(&again[12..], &frame.body[..]);
        }
        let _ = Reply::decode(&frame);
    }

    #[test]
    fn one_flipped_byte_never_panics(request in requests(), at in any::<prop::sample::Index>(), flip in 1u8..) {
        let mut bytes = request.encode(RequestId(9));
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        if let Ok(frames) = cut(&bytes, 16) {
            frames.iter().for_each(|frame| { let _ = Request::decode(frame); });
        }
    }
}

#[test]
fn limits_are_enforced() {
    let long_key = Frame {
        kind: 3,
        id: RequestId(1),
        body: vec![b'k'; 4 + MAX_KEY + 1],
    };
    assert_eq!(Request::decode(&long_key), Err(Malformed("key too long")));
    let long_value = Frame {
        kind: 67,
        id: RequestId(1),
        body: vec![0; MAX_VALUE + 1],
    };
    assert_eq!(Reply::decode(&long_value), Err(Malformed("value too long")));
    assert_eq!(
        cut(&u32::MAX.to_le_bytes(), 4),
        Err(Malformed("impossible length"))
    );
    assert_eq!(
        cut(&7u32.to_le_bytes(), 4),
        Err(Malformed("impossible length"))
    );
    let largest = Request::Put {
        key: "k".repeat(MAX_KEY),
        value: vec![5; MAX_VALUE],
    };
    let frames = cut(&largest.encode(RequestId(1)), 4096).unwrap();
    assert_eq!(Request::decode(&frames[0]), Ok(largest));
    let mut reserved = Request::Fence.encode(RequestId(1));
    reserved[6] = 1;
    assert_eq!(cut(&reserved, 64), Err(Malformed("reserved bytes in use")));
}

#[test]
fn long_refusals_are_cut_between_characters() {
    let why = "é".repeat(1000);
    let frames = cut(&Reply::Refused(why).encode(RequestId(1)), 4096).unwrap();
    let Ok(Reply::Refused(text)) = Reply::decode(&frames[0]) else {
        panic!("not a refusal")
    };
    assert_eq!(text, "é".repeat(512));
    let odd = format!("x{}", "é".repeat(1000));
    let frames = cut(&Reply::Later(odd).encode(RequestId(1)), 4096).unwrap();
    let Ok(Reply::Later(text)) = Reply::decode(&frames[0]) else {
        panic!("not a refusal")
    };
    assert_eq!(text, format!("x{}", "é".repeat(511)), "no half of one");
}
