//! Long messages that their receiver reads out of the sender's memory.

use super::*;

/// Longer than all pieces that are under way at once.
const LONG: usize = 5_000_000;

#[test]
fn what_is_read_can_be_read_no_longer_than_needed() {
    let mut world = World::pair(reading());
    let data = pattern(1, LONG);
    let send = world.send(0, 1, tag(1), &data, SendMode::Standard);
    world.settle();
    assert_eq!(world.network.exposed(), 1, "the bytes stay with the sender");
    let (receive, place) = world.recv(1, SourceSelector::ANY, TagSelector::ANY, LONG);
    let status = world.finish(1, receive);
    assert_eq!((status.length, status.failure), (LONG, None));
    assert_eq!(world.finish(0, send).failure, None);
    assert!(*world.lent[place] == *data);
    assert_eq!(world.network.exposed(), 0);
}

#[test]
fn only_as_much_is_read_as_there_is_room_for() {
    let mut world = World::pair(reading());
    let data = pattern(2, LONG);
    for room in [0, 1, LONG - 1] {
        let send = world.send(0, 1, tag(1), &data, SendMode::Synchronous);
        let (receive, place) = world.recv(1, SourceSelector::ANY, TagSelector::ANY, room);
        let status = world.finish(1, receive);
        assert_eq!(status.failure, Some(Failure::truncated(room)));
        assert_eq!(status.length, LONG);
        assert_eq!(world.finish(0, send).failure, None);
        assert!(*world.lent[place] == data[..room]);
    }
    assert_eq!(world.network.exposed(), 0);
}

/// The reader dies: the sender ends, and its bytes are its own again.
#[test]
fn a_dead_reader_reads_no_more() {
    let mut world = World::pair(reading());
    let data = pattern(3, LONG);
    let send = world.send(0, 1, tag(1), &data, SendMode::Standard);
    world.settle();
    world.network.fail(Rank::new(1));
    world.ranks[0].look_after_peers();
    assert_eq!(world.network.exposed(), 0);
    let status = world.ranks[0].take(send).unwrap().unwrap();
    assert_eq!(status.failure, Some(Failure::PeerFailed(Rank::new(1))));
}

/// The sender dies: a receive that has matched ends with the news.
#[test]
fn a_dead_sender_is_read_no_more() {
    let mut world = World::pair(reading());
    let data = pattern(4, LONG);
    world.send(0, 1, tag(1), &data, SendMode::Standard);
    world.settle();
    world.network.fail(Rank::new(0));
    let (receive, _) = world.recv(
        1,
        SourceSelector::exact(Rank::new(0)),
        TagSelector::ANY,
        LONG,
    );
    for _ in 0..10 {
        world.ranks[1].progress();
        world.ranks[1].look_after_peers();
    }
    let status = world.ranks[1].take(receive).unwrap().unwrap();
    assert_eq!(status.failure, Some(Failure::PeerFailed(Rank::new(0))));
}

/// Gets that reach nothing: the bytes come in fragments.
#[test]
fn what_cannot_be_read_is_sent() {
    let mut world = World::pair(reading());
    let data = pattern(5, LONG);
    let send = world.send(0, 1, tag(1), &data, SendMode::Standard);
    world.settle();
    world.network.hide_all();
    let (receive, place) = world.recv(1, SourceSelector::ANY, TagSelector::ANY, LONG);
    assert_eq!(world.finish(1, receive).failure, None);
    assert_eq!(world.finish(0, send).failure, None);
    assert!(*world.lent[place] == *data);
}
