//! First contact: what peers are like, and how much memory there is.

use tagwire_base::Rank;
use tagwire_base::bootstrap::LocalJob;

use super::open;
use crate::shm::ShmOptions;
use crate::shm::arena::STEP;
use crate::shm::identity::Identity;
use crate::shm::layout::LARGEST_ROOM;
use crate::shm::room::Size;
use crate::shm::segment::{Extent, Segment};
use crate::transport::Transport;

/// A rank that only ever sends to such a peer sleeps for its credits, which come without a barrier.
#[test]
fn sleeps_are_bounded_where_a_peer_has_no_barriers() {
    for barriers in [true, false] {
        let job = LocalJob::new(2).unwrap();
        let options = ShmOptions::default();
        let (mut a, b) = (open(&job, 0, &options), open(&job, 1, &options));
        let before = a.shm.waiter.is_bounded();
        let identity = Identity {
            barriers,
            ..b.shm.identity
        };
        identity.write(&b.shm.header.identity);
        a.shm.connect(Rank::new(1), &identity.to_bytes()).unwrap();
        assert_eq!(a.shm.waiter.is_bounded(), before || !barriers);
    }
}

/// Only a rank that matches has a match list; rooms go first, and the arena takes what is left.
#[test]
fn a_limit_of_file_sizes_costs_rooms_and_the_arena_first() {
    let plain = Extent {
        size: 4,
        matches: false,
        room: Size::NONE,
        arena: 0,
    };
    let with_list = Extent {
        matches: true,
        ..plain
    };
    assert!(plain.len() < 1 << 20, "{}", plain.len());
    assert!(with_list.len() > 64 << 20, "{}", with_list.len());
    let wanted = Extent {
        arena: 64 << 20,
        ..plain
    };
    assert_eq!(wanted.within(u64::MAX), wanted);
    assert_eq!(wanted.within(wanted.len()), wanted);
    let with_rooms = Extent {
        room: LARGEST_ROOM,
        ..wanted
    };
    assert!(with_rooms.len() >= wanted.len() + (16 << 20));
    assert_eq!(with_rooms.within(with_rooms.len()), with_rooms);
    assert_eq!(with_rooms.within(with_rooms.len() - 1), wanted);
    let less = wanted.within(plain.len() + 3 * STEP + 1);
    assert_eq!(less.arena, 3 * STEP);
    assert_eq!(wanted.within(0), plain);
    let made = Segment::create(less).unwrap();
    let number = made.number().unsigned_abs();
    let own = std::process::id();
    assert!(Segment::open_in(own, number, less).is_ok());
    assert!(Segment::open_in(own, number, wanted).is_err());
    assert!(made.map_target().is_err(), "there is no match list");
}
