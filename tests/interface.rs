//! The safe interface, on jobs of one rank: timeouts, sets of operations, operations that repeat.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use std::time::Duration;

use tagwire::{ANY_SOURCE, ANY_TAG, Error, SendMode, Session};
use tagwire_base::Rank;
use tagwire_base::bootstrap::LocalJob;

const SOON: Duration = Duration::from_millis(5);

fn session() -> Session {
    let job = LocalJob::new(1).unwrap();
    let bootstrap = Box::new(job.member(Rank::new(0)));
    Session::builder().open_with(bootstrap).unwrap()
}

#[test]
fn a_scope_takes_its_own_sessions_operations_only() {
    let (ours, theirs) = (session(), session());
    let (data, mut room) = ([1u8; 4], [0u8; 4]);
    ours.scope(|scope| {
        let sent = theirs.world().isend(scope, &data, 0, 1);
        assert!(matches!(sent, Err(Error::OtherSession)), "{sent:?}");
        let posted = theirs.world().irecv(scope, &mut room, 0, 1);
        assert!(matches!(posted, Err(Error::OtherSession)), "{posted:?}");
    });
    assert!(theirs.world().probe(ANY_SOURCE, ANY_TAG).unwrap().is_none());
}

#[test]
fn what_timed_out_goes_on() {
    let session = session();
    let world = session.world();
    let data = vec![3u8; 1 << 20];
    let mut rooms = [vec![0u8; 1 << 20], vec![0u8; 8]];
    let [long, short] = &mut rooms;
    session.scope(|scope| {
        let late = world.recv_for(scope, &mut short[..], 0, 2, SOON);
        let receive = late.expect_err("nothing was sent");
        // Nobody receives it yet.
        let late = world.send_for(scope, &data[..], 0, 1, SOON);
        let send = late.expect_err("nothing was posted");

        let mut open = vec![receive, send];
        assert!(
            scope
                .wait_any_for(&mut open, SOON)
                .unwrap_err()
                .is_timeout()
        );
        assert!(
            scope
                .wait_some_for(&mut open, SOON)
                .unwrap_err()
                .is_timeout()
        );
        assert!(
            scope
                .wait_all_for(&mut open, SOON)
                .unwrap_err()
                .is_timeout()
        );
        assert_eq!(open.len(), 2);

        open.push(world.irecv(scope, &mut long[..], 0, 1).unwrap());
        world.send(&data[..8], 0, 2).unwrap();
        let ends = scope.wait_all_for(&mut open, Duration::MAX).unwrap();
        assert!(open.is_empty());
        let lengths: Vec<_> = ends.iter().map(tagwire::Status::bytes).collect();
        assert_eq!(lengths, [8, 1 << 20, 1 << 20]);
    });
    assert!(rooms.concat().iter().all(|byte| *byte == 3));
}

#[test]
fn some_are_taken_each_with_its_own_end() {
    let session = session();
    let world = session.world();
    let data = [7u8; 16];
    let mut rooms = [[0u8; 16]; 4];
    session.scope(|scope| {
        let mut open = Vec::new();
        for (tag, room) in (0..).zip(&mut rooms) {
            // The second has too little room.
            let room = if tag == 1 {
                &mut room[..4]
            } else {
                &mut room[..]
            };
            open.push(world.irecv(scope, room, 0, tag).unwrap());
        }
        assert!(scope.wait_some(&mut Vec::new()).unwrap().is_empty());
        for tag in [1, 3] {
            world.send(&data, 0, tag).unwrap();
        }
        let mut ends = scope.wait_some(&mut open).unwrap();
        while open.len() > 2 {
            ends.extend(scope.wait_some(&mut open).unwrap());
        }
        let well = ends.iter().filter(|(_, end)| end.is_ok()).count();
        assert_eq!((ends.len(), well), (2, 1), "{ends:?}");
        for request in &open {
            request.cancel().unwrap();
        }
        let left = scope.wait_some(&mut open).unwrap();
        assert_eq!(
            left.iter().map(|(place, _)| *place).collect::<Vec<_>>(),
            [0, 1]
        );
        assert!(left.iter().all(|(_, end)| end.unwrap().is_cancelled()));
    });
}

#[test]
fn persistent_operations_go_round() {
    let session = session();
    let world = session.world();
    for mode in [
        SendMode::Standard,
        SendMode::Synchronous,
        SendMode::Buffered,
        SendMode::Ready,
    ] {
        for len in [8, 100_000] {
            let mut send = world.send_init_with(mode, vec![0u32; len], 0, 5).unwrap();
            let mut recv = world.recv_init(vec![0u32; len], ANY_SOURCE, 5).unwrap();
            assert_eq!(
                recv.wait().unwrap().bytes(),
                0,
                "an inactive one waits for nothing"
            );
            for round in 0..5 {
                send.data_mut().unwrap().fill(round);
                recv.start().unwrap();
                assert!(recv.is_active());
                assert!(matches!(recv.start(), Err(Error::UnderWay)));
                assert!(matches!(recv.data(), Err(Error::UnderWay)));
                assert!(recv.wait_for(SOON).unwrap_err().is_timeout());
                send.start().unwrap();
                assert_eq!(recv.wait().unwrap().count::<u32>().unwrap(), len);
                send.wait().unwrap();
                assert!(recv.data().unwrap().iter().all(|value| *value == round));
            }
            assert_eq!(recv.into_data().unwrap(), send.into_data().unwrap());
        }
    }
    session.close().unwrap();
}

/// Whatever state they are dropped in, the session closes in good order.
#[test]
fn persistent_operations_may_be_dropped() {
    let session = session();
    let world = session.world();
    drop(world.send_init(vec![1u8; 9], 0, 1).unwrap());
    for len in [8, 100_000] {
        let mut recv = world.recv_init(vec![0u8; len], 0, 1).unwrap();
        recv.start().unwrap();
        drop(recv);
        // Taken back: the next receive gets the message.
        let mut send = world.send_init(vec![4u8; len], 0, 1).unwrap();
        send.start().unwrap();
        drop(send);
        let mut room = vec![0u8; len];
        world.recv(&mut room, 0, 1).unwrap();
        assert!(room.iter().all(|byte| *byte == 4));
    }
    session.close().unwrap();
}

/// Buffers that ranks share are slices as any: lent, filled, given back, and longer than their session.
#[test]
fn buffers_come_from_shared_memory_and_go_back() {
    let session = session();
    let world = session.world();
    let mut room = session.alloc::<u32>(100_000).unwrap();
    let mut data = session.alloc::<u32>(100_000).unwrap();
    assert!(room.is_shared() && data.is_shared());
    assert!(data.iter().all(|word| *word == 0) && data.len() == 100_000);
    data.iter_mut().zip(0..).for_each(|(word, at)| *word = at);
    session.scope(|scope| {
        let receive = world.irecv(scope, &mut room, 0, 1).unwrap();
        world.isend(scope, &data, 0, 1).unwrap();
        receive.wait().unwrap();
    });
    assert_eq!(room[..], data[..]);
    drop(data);
    // More than there is comes from the heap, and nothing is nothing.
    let large = session.alloc::<u64>(16 << 20).unwrap();
    assert!(!large.is_shared() && large.len() == 16 << 20);
    assert!(session.alloc::<u64>(0).unwrap().is_empty());
    let most = session.alloc::<[u8; 3]>(20 << 20).unwrap();
    assert!(most.is_shared() && most.len() == 20 << 20);
    assert!(most.iter().all(|bytes| *bytes == [0; 3]));
    session.close().unwrap();
    assert_eq!(room[99_999], 99_999);
}
