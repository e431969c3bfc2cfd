//! The safe interface, on jobs of one rank: timeouts, sets of operations, operations that repeat, failures, structs.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use std::time::Duration;

use tagwire::{
    ANY_SOURCE, ANY_TAG, Allgather, Allreduce, Alltoall, Barrier, Blocks, Error, Plain, Scatter,
    SendMode, Session, Sum,
};
use tagwire_base::Rank;
use tagwire_base::bootstrap::LocalJob;

const SOON: Duration = Duration::from_millis(5);

fn session() -> Session {
    session_over("ob1")
}

fn session_over(layer: &str) -> Session {
    let job = LocalJob::new(1).unwrap();
    let bootstrap = Box::new(job.member(Rank::new(0)));
    let builder = Session::builder().setting("pml", layer);
    builder.open_with(bootstrap).unwrap()
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
        assert!(
            left.iter()
                .all(|(_, end)| end.as_ref().unwrap().is_cancelled())
        );
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

/// Collectives and messages are waited for together.
#[test]
fn collectives_are_operations_of_a_scope() {
    let (other, session) = (session(), session());
    let world = session.world();
    let (own, mut all, mut sum, mut room) = ([7u8; 4], [0u8; 4], [2.5], [0u8; 4]);
    session.scope(|scope| {
        let refused = scope.start(&other.world(), Barrier::new());
        assert!(matches!(refused, Err(Error::OtherSession)), "{refused:?}");
        let refused = scope.start(&world, Scatter::new(&own, &mut [0u8; 0], 0));
        assert!(matches!(refused, Err(Error::Collective(_))), "{refused:?}");
        let receive = world.irecv(scope, &mut room, 0, 1).unwrap();
        let mut open = vec![
            receive,
            scope.start(&world, Allgather::new(&own, &mut all)).unwrap(),
            scope
                .start(&world, Allreduce::in_place(&mut sum, Sum))
                .unwrap(),
            scope.start(&world, Barrier::new()).unwrap(),
        ];
        assert!(open[3].cancel().is_err());
        let (place, status) = scope.wait_any(&mut open).unwrap().unwrap();
        assert_eq!((place, status.bytes()), (1, 0));
        assert!(
            scope
                .wait_all_for(&mut open, SOON)
                .unwrap_err()
                .is_timeout()
        );
        assert_eq!(open.len(), 3);
        let some = scope.wait_some(&mut open).unwrap();
        assert_eq!(some.iter().map(|one| one.0).collect::<Vec<_>>(), [1, 2]);
        assert!(some.into_iter().all(|(_, end)| end.is_ok()));
        world.send(&own, 0, 1).unwrap();
        open.push(scope.start(&world, Barrier::new()).unwrap());
        assert_eq!(scope.wait_all(open).unwrap()[0].bytes(), 4);
        // Left to the scope.
        scope.start(&world, Barrier::new()).unwrap();
    });
    assert_eq!((all, sum, room), (own, [2.5], own));
    session.close().unwrap();
}

#[test]
fn persistent_collectives_go_round() {
    let session = session();
    let world = session.world();
    let mut all = world
        .init(Alltoall::new(vec![0u32; 9], vec![0; 9]))
        .unwrap();
    assert!(
        world
            .init(Alltoall::new(vec![0u32; 9], vec![0; 8]))
            .is_err()
    );
    all.wait().unwrap();
    for round in 0..5 {
        all.data_mut().unwrap().fill(round);
        all.start().unwrap();
        assert!(all.is_active());
        assert!(matches!(all.start(), Err(Error::UnderWay)));
        assert!(matches!(all.data_mut(), Err(Error::UnderWay)));
        assert!(all.test().unwrap());
        assert_eq!(all.result().unwrap(), [round; 9]);
    }
    assert_eq!(all.into_data().unwrap(), (vec![4; 9], vec![4; 9]));
    let mut sum = world.init(Allreduce::in_place(vec![1.0], Sum)).unwrap();
    sum.start().unwrap();
    drop(sum);
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

/// Sends 24 bytes to a receive that has room for 16, in every form of receive: the error names both, and the envelope.
#[test]
fn a_truncated_receive_has_its_status_in_every_form() {
    const TAG: i32 = 7;
    for layer in ["ob1", "cm"] {
        let session = session_over(layer);
        let world = session.world();
        let data = [5u64; 3];
        let send = || world.send(&data, 0, TAG).unwrap();
        let is_told = |error: &Error| {
            let status = error.status().unwrap();
            assert_eq!((status.source(), status.tag()), (0, TAG), "{layer}");
            assert_eq!(status.count::<u64>().unwrap(), 3);
            assert_eq!(error.failure(), Some(tagwire::Failure::truncated(16)));
            let text = error.to_string();
            for part in ["rank 0", "tag 7", "24 bytes", "room for 16"] {
                assert!(text.contains(part), "{layer}: {text}");
            }
        };
        let mut room = [0u64; 2];

        send();
        is_told(&world.recv(&mut room, ANY_SOURCE, ANY_TAG).unwrap_err());
        assert_eq!(room, [5; 2]);

        send();
        let claimed = world.claim(ANY_SOURCE, ANY_TAG).unwrap().unwrap();
        is_told(&world.recv_claimed(&mut room, claimed).unwrap_err());

        let owned = world.irecv_owned(vec![0u64; 2], 0, TAG).unwrap();
        send();
        let (error, given_back) = owned.wait().unwrap_err().into_parts();
        is_told(&error);
        assert_eq!(given_back, Some(vec![5; 2]));
        let owned = world.irecv_owned(vec![0u64; 2], 0, TAG).unwrap();
        send();
        let failed = owned.wait_for(Duration::MAX).unwrap().unwrap_err();
        is_told(failed.error());
        assert_eq!(format!("{failed:?}"), failed.error().to_string());

        let mut again = world.recv_init(vec![0u64; 2], ANY_SOURCE, TAG).unwrap();
        for _ in 0..2 {
            again.start().unwrap();
            send();
            is_told(&again.wait().unwrap_err());
            assert_eq!(again.data().unwrap(), [5; 2]);
        }
        drop(again);

        let mut rooms = [[0u64; 2]; 6];
        session.scope(|scope| {
            let mut open: Vec<_> = rooms
                .iter_mut()
                .map(|room| world.irecv(scope, room, ANY_SOURCE, TAG).unwrap())
                .collect();
            (0..6).for_each(|_| send());
            is_told(&open.remove(0).wait().unwrap_err());
            let for_long = open.remove(0).wait_for(Duration::MAX).unwrap();
            is_told(&for_long.unwrap_err());
            is_told(&scope.wait_any(&mut open).unwrap_err());
            let some = scope.wait_some(&mut open).unwrap();
            assert!(!some.is_empty());
            some.iter()
                .for_each(|(_, end)| is_told(end.as_ref().unwrap_err()));
            open.push(world.irecv(scope, &mut room, ANY_SOURCE, TAG).unwrap());
            send();
            is_told(&scope.wait_all(open).unwrap_err());
        });
        session.close().unwrap();
    }
}

/// What nobody waited for is reported by the scope, and by one that fixes the type of its error.
#[test]
fn a_scope_reports_what_nobody_waited_for() {
    let session = session();
    let world = session.world();
    let data = [1u32; 8];
    let (mut long, mut short) = ([0u32; 8], [0u32; 4]);
    let number = session.try_scope(|scope| {
        world.irecv(scope, &mut long, 0, 1)?;
        world.isend(scope, &data, 0, 1)?;
        Ok(17)
    });
    assert_eq!((number.unwrap(), long), (17, data));
    let cut_off = session.try_scope(|scope| {
        world.irecv(scope, &mut short, 0, 2)?;
        world.isend(scope, &data, 0, 2)?;
        Ok(())
    });
    let status = cut_off.unwrap_err().status().unwrap();
    assert_eq!((status.tag(), status.bytes()), (2, 32));

    // What the body has taken is its own affair.
    let taken = session.try_scope(|scope| {
        let receive = world.irecv(scope, &mut short, 0, 2)?;
        world.isend(scope, &data, 0, 2)?;
        assert!(receive.wait().is_err());
        Ok(())
    });
    taken.unwrap();
    session.close().unwrap();
}

/// A body that fails may not reach what its receives wait for.
#[test]
fn a_scope_whose_body_fails_takes_its_receives_back() {
    let session = session();
    let world = session.world();
    let mut never = [0u8; 8];
    let failed = session.try_scope(|scope| {
        world.irecv(scope, &mut never, 0, 1)?;
        world.isend(scope, &[1u8; 8], 0, -1)?;
        Ok(())
    });
    assert!(matches!(failed, Err(Error::NegativeTag(-1))), "{failed:?}");
    session.close().unwrap();
}

/// Most often a program that was meant to be started by the launcher.
#[test]
fn a_rank_beyond_a_job_of_one_hints_at_the_launcher() {
    let session = session();
    let error = session.world().send(&[1u8], 1, 0).unwrap_err();
    assert!(
        format!("{error:?}").contains("start the program with 'tagwire run -n 2"),
        "{error:?}"
    );
    session.close().unwrap();
}

#[derive(Debug, Clone, Copy, PartialEq, Plain)]
#[repr(C)]
struct Particle {
    /// Attributes and visibilities are passed over.
    pub(crate) position: [f64; 3],
    pub kind: u32,
    flags: std::num::Wrapping<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Plain)]
#[repr(C, packed)]
struct Packed(u8, pub u64, [Small; 2]);

#[derive(Debug, Clone, Copy, PartialEq, Plain)]
#[repr(transparent)]
struct Small(u16);

/// What a macro by example was given reaches the derive macro in groups without delimiters.
macro_rules! record {
    ($(#[$attribute:meta])* $vis:vis struct $name:ident { $($fvis:vis $field:ident: $type:ty,)* }) => {
        #[derive(Debug, Clone, Copy, PartialEq, Plain)]
        $(#[$attribute])*
        $vis struct $name { $($fvis $field: $type,)* }
    };
    ($vis:vis struct $name:ident($($fvis:vis $type:ty),*)) => {
        #[derive(Debug, Clone, Copy, PartialEq, Plain)]
        #[repr(C)]
        $vis struct $name($($fvis $type),*);
    };
    ($item:item) => {
        #[derive(Debug, Clone, Copy, PartialEq, Plain)]
        $item
    };
}

record!(
    #[doc = "Seen from outside."]
    #[repr(C)]
    pub struct Public {
        pub(crate) id: u64,
        range: [u32; 2],
    }
);
record!(struct Private(u32, pub [i16; 2]));
record!(
    #[repr(transparent)]
    struct Whole {
        only: std::num::Wrapping<u8>,
    }
);
// A macro hands the visibility on to a second one: a group in a group.
macro_rules! twice {
    ($vis:vis $name:ident: $type:ty) => {
        record!($vis struct $name($vis $type));
    };
}
twice!(pub(crate) Nested: Public);

#[test]
fn structs_that_macros_make_derive_plain() {
    fn size<T: Plain>() -> usize {
        size_of::<T>()
    }
    assert_eq!((size::<Public>(), size::<Private>()), (16, 8));
    assert_eq!((size::<Whole>(), size::<Nested>()), (1, 16));
    let nested = Nested(Public {
        id: 1,
        range: [2, 3],
    });
    assert_eq!((nested.0.id, nested.0.range[1]), (1, 3));
    let whole = Whole {
        only: std::num::Wrapping(4),
    };
    assert_eq!((Private(5, [6, 7]).0, whole.only.0), (5, 4));
}

#[test]
fn structs_that_derive_plain_are_sent_as_they_lie() {
    let session = session();
    let world = session.world();
    let particle = Particle {
        position: [1.0, 2.5, -3.0],
        kind: 4,
        flags: std::num::Wrapping(5),
    };
    let sent = world.isend_owned(vec![particle; 3], 0, 1).unwrap();
    let received = world.irecv_owned(vec![[0u8; 32]; 3], 0, 1).unwrap();
    let (status, bytes) = received.wait().unwrap();
    sent.wait().unwrap();
    assert_eq!(status.count::<Particle>().unwrap(), 3);
    assert_eq!(bytes[1][8..16], 2.5f64.to_ne_bytes());

    let packed = [Packed(1, 2, [Small(3), Small(4)])];
    let sent = world.isend_owned(packed.to_vec(), 0, 1).unwrap();
    let mut copy = session.alloc::<Packed>(1).unwrap();
    assert_eq!(*copy, [Packed(0, 0, [Small(0), Small(0)])]);
    let status = world.recv(&mut copy, 0, 1).unwrap();
    sent.wait().unwrap();
    assert_eq!((status.bytes(), &*copy), (13, &packed[..]));
    drop(copy);
    session.close().unwrap();
}

/// A rank that is its own neighbour, in every direction.
#[test]
fn a_rank_exchanges_with_itself() {
    let session = session();
    let world = session.world();
    let grid = world.cartesian(&[1, 1], &[true, false]).unwrap();
    let around: Vec<_> = grid.neighbourhood().sources().collect();
    assert_eq!(around, [Some(0), Some(0), None, None]);
    assert_eq!(grid.rank(&[-7, 0]), Some(0));
    assert_eq!(grid.rank(&[0, 1]), None);
    let mut halo = [9; 4];
    grid.neighbourhood()
        .alltoall(&[1, 2, 3, 4], &mut halo)
        .unwrap();
    assert_eq!(halo, [2, 1, 9, 9]);

    let twice = world.neighbours(&[0, 0], &[0, 0]).unwrap();
    let mut out = [9u16; 3];
    let wrong = twice.alltoall_varying(&[1, 2, 3], &[1, 2], &mut out, &[2, 1]);
    let why = wrong.unwrap_err().to_string();
    assert!(why.contains("for oneself has 4 bytes where 2"), "{why}");
    twice
        .alltoall_varying(&[1, 2, 3], &[1, 2], &mut out, &[1, 2])
        .unwrap();
    assert_eq!(out, [1, 2, 3]);
    let wrong = twice.allgather(&[1u8], &mut [0; 3]);
    let why = wrong.unwrap_err().to_string();
    assert!(why.contains("3 bytes where 2 are needed"), "{why}");
    let wrong = twice.alltoall_blocks(Blocks::new().send(&[1u8]));
    let why = wrong.unwrap_err().to_string();
    assert!(why.contains("1 blocks were given for 2"), "{why}");
    assert!(world.neighbours(&[0], &[1]).is_err());
    assert!(world.cartesian(&[2], &[true]).is_err());
    assert!(world.cartesian(&[1], &[]).is_err());
    assert!(grid.shift(2, 1).is_err());

    let mut again = twice
        .init(Allgather::new(vec![0u8; 2], vec![9; 4]))
        .unwrap();
    for round in 0..3 {
        again.data_mut().unwrap()[1] = round;
        again.start().unwrap();
        again.wait().unwrap();
        assert_eq!(again.result().unwrap(), [0, round, 0, round]);
    }
}
