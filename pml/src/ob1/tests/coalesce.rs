//! Short messages that leave together.

use super::*;
use crate::ob1::coalesce::AT_ONCE;

const LENGTH: usize = 8;

/// What a message takes in a batch.
const ENTRY: usize = 16 + LENGTH;

fn coalescing(size: u32) -> World {
    let options = Ob1Options {
        coalesce: Some(100),
        ..Ob1Options::default()
    };
    let mut world = World::new(size, MemoryOptions::default(), &options);
    // What is sent before the first contact takes the long way.
    for to in 1..size {
        world.send(0, to, tag(0), b"hello", SendMode::Standard);
        let (received, _) = world.recv(to as usize, SourceSelector::ANY, TagSelector::ANY, 5);
        world.finish(to as usize, received);
    }
    world
}

impl World {
    /// Bytes that wait at rank 0 for rank `to`.
    fn waiting(&mut self, to: u32) -> usize {
        let peers = &mut self.ranks[0].core.lane.peers;
        let index = peers.find(Rank::new(to)).unwrap();
        peers.get(index).unwrap().batch.len()
    }

    fn send_word(&mut self, to: u32, value: i32) -> RequestId {
        let word = i64::from(value).to_le_bytes();
        self.send(0, to, tag(value), &word, SendMode::Standard)
    }

    fn expect_word(&mut self, at: usize, value: i32) {
        let (received, place) = self.recv(at, SourceSelector::ANY, TagSelector::ANY, LENGTH);
        let status = self.finish(at, received);
        assert_eq!((status.tag, status.failure), (tag(value), None));
        assert_eq!(*self.lent[place], i64::from(value).to_le_bytes());
    }
}

#[test]
fn a_window_of_messages_leaves_in_few_packets() {
    const WINDOW: i32 = 60;
    let mut world = coalescing(2);
    for value in 0..WINDOW {
        assert_eq!(world.send_word(1, value), RequestId::COMPLETE);
    }
    let waiting = (WINDOW as u32 - AT_ONCE) as usize * ENTRY;
    assert_eq!(world.waiting(1), waiting);
    assert!(
        world.ranks[0].open_work().is_some(),
        "closing would lose them"
    );
    // Two packets and one batch.
    assert_eq!(world.ranks[0].progress(), 1);
    assert_eq!(world.waiting(1), 0);
    for value in 0..WINDOW {
        world.expect_word(1, value);
    }
    assert_eq!(world.ranks[0].open_work(), None);
}

#[test]
fn the_first_messages_after_progress_go_at_once() {
    let mut world = coalescing(2);
    for value in 0..10 {
        world.send_word(1, value);
        assert_eq!(world.waiting(1), 0);
        world.ranks[0].progress();
    }
    for value in 0..10 {
        world.expect_word(1, value);
    }
}

#[test]
fn whatever_goes_otherwise_goes_after_what_waits() {
    for (len, mode) in [
        (101, SendMode::Standard),
        (100_000, SendMode::Standard),
        (8, SendMode::Synchronous),
        (50, SendMode::Buffered),
    ] {
        let mut world = coalescing(2);
        for value in 0..10 {
            world.send_word(1, value);
        }
        let last = world.send(0, 1, tag(10), &vec![7; len], mode);
        for value in 0..10 {
            world.expect_word(1, value);
        }
        let (received, place) = world.recv(1, SourceSelector::ANY, TagSelector::ANY, len);
        let status = world.finish(1, received);
        assert_eq!((status.tag, status.length), (tag(10), len));
        assert!(world.lent[place].iter().all(|byte| *byte == 7));
        if last != RequestId::COMPLETE {
            world.finish(0, last);
        }
    }
}

#[test]
fn a_full_batch_leaves_by_itself() {
    let mut world = coalescing(2);
    for value in 0..1000 {
        // Receives keep the sender in credit, and are all that makes progress.
        world.send_word(1, value);
        assert!(world.waiting(1) <= 8192, "at {value}");
        world.ranks[1].progress();
    }
    for value in 0..1000 {
        world.expect_word(1, value);
    }
}

#[test]
fn each_rank_has_its_own_batch() {
    let mut world = coalescing(3);
    for value in 0..20 {
        world.send_word(1 + value as u32 % 2, value);
    }
    let waiting = (world.waiting(1), world.waiting(2));
    assert!(waiting.0 > 0 && waiting.1 > 0, "{waiting:?}");
    for value in 0..20 {
        world.expect_word(1 + value as usize % 2, value);
    }
    assert_eq!(world.waiting(1) + world.waiting(2), 0);
}

#[test]
fn what_waits_for_a_rank_that_dies_is_forgotten() {
    let mut world = coalescing(2);
    for value in 0..10 {
        world.send_word(1, value);
    }
    assert!(world.waiting(1) > 0);
    let index = world.ranks[0].core.lane.peers.find(Rank::new(1)).unwrap();
    world.ranks[0].core.lose(index, Health::Failed);
    assert_eq!(world.ranks[0].open_work(), None);
    assert_eq!(world.waiting(1), 0);
}
