//! Long messages that their sender writes into the receiver's memory.

use super::*;
use crate::ob1::protocols::get::{MAX_KEY, WINDOW};
use tagwire_transport::Transport;

/// Longer than all pieces that are under way at once.
const LONG: usize = 5_000_000;

/// Most bytes of one put.
const PIECE: usize = 1 << 20;

fn world() -> World {
    with(MemoryOptions::default())
}

fn with(network: MemoryOptions) -> World {
    let options = Ob1Options {
        rendezvous: "put".to_owned(),
        ..Ob1Options::default()
    };
    let network = MemoryOptions {
        get: true,
        put: true,
        ..network
    };
    World::new(2, network, &options)
}

impl World {
    /// Posts a receive at rank 1 and lets it tell the sender where its memory is.
    fn registered(&mut self, room: usize) -> (RequestId, usize) {
        let (receive, place) = self.recv(1, SourceSelector::ANY, TagSelector::ANY, room);
        for _ in 0..100 {
            if self.network.registered() == 1 {
                return (receive, place);
            }
            self.ranks[1].progress();
        }
        panic!("no memory was registered");
    }
}

#[test]
fn memory_can_be_written_no_longer_than_needed() {
    let mut world = world();
    let data = pattern(1, LONG);
    let send = world.send(0, 1, tag(1), &data, SendMode::Standard);
    world.settle();
    assert_eq!(world.network.registered(), 0, "nobody waits for it");
    let (receive, place) = world.registered(LONG);
    let status = world.finish(1, receive);
    assert_eq!((status.length, status.failure), (LONG, None));
    assert_eq!(world.finish(0, send).failure, None);
    assert!(*world.lent[place] == *data);
    assert_eq!(
        (world.network.registered(), world.network.exposed()),
        (0, 0)
    );
}

#[test]
fn only_as_much_is_written_as_there_is_room_for() {
    let mut world = world();
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
    assert_eq!(world.network.registered(), 0);
}

/// All bytes are written, in pieces, and nothing else; then one flush reports that they are there.
#[test]
fn every_byte_is_written_once() {
    for completions in [1, usize::MAX] {
        let mut world = with(MemoryOptions {
            completions,
            ..MemoryOptions::default()
        });
        let send = world.send(0, 1, tag(1), &pattern(6, LONG), SendMode::Standard);
        world.settle();
        let (receive, _) = world.registered(LONG);
        assert_eq!(world.finish(1, receive).failure, None);
        assert_eq!(world.finish(0, send).failure, None);
        let puts = world.network.puts();
        let count = LONG.div_ceil(PIECE);
        assert_eq!((puts.count, puts.bytes, puts.flushes), (count, LONG, 1));
    }
}

/// Each put that has ended makes room for the next.
#[test]
fn as_many_puts_are_under_way_as_may_be() {
    let mut world = with(MemoryOptions {
        completions: 1,
        ..MemoryOptions::default()
    });
    let count = 12;
    let data = pattern(7, count * PIECE);
    world.send(0, 1, tag(1), &data, SendMode::Standard);
    world.settle();
    world.registered(data.len());
    let mut seen = vec![0];
    for _ in 0..100 {
        world.ranks[1].progress();
        world.ranks[0].progress();
        seen.push(world.network.puts().count);
    }
    seen.dedup();
    let expected: Vec<_> = [0].into_iter().chain(WINDOW..=count).collect();
    assert_eq!(seen, expected);
    assert_eq!(world.network.puts().flushes, 1);
}

/// A transport without room for a put, whether one of this message is under way or none, has room later.
#[test]
fn puts_wait_for_room() {
    for puts in 1..=WINDOW {
        let mut world = with(MemoryOptions {
            puts,
            completions: 1,
            ..MemoryOptions::default()
        });
        let messages = [(1, LONG), (2, 2 * LONG)].map(|(seed, len)| {
            let data = pattern(seed, len);
            let send = world.send(0, 1, tag(seed as i32), &data, SendMode::Standard);
            let wanted = TagSelector::exact(tag(seed as i32));
            let (receive, place) = world.recv(1, SourceSelector::ANY, wanted, len);
            (data, send, receive, place)
        });
        for (data, send, receive, place) in messages {
            assert_eq!(world.finish(1, receive).failure, None);
            assert_eq!(world.finish(0, send).failure, None);
            assert!(*world.lent[place] == *data);
        }
        assert_eq!(world.network.puts().bytes, 3 * LONG, "{puts} at once");
    }
}

/// A dump of a rank's work reports how far a message is.
#[test]
fn a_dump_says_how_far_a_message_is() {
    let mut world = with(MemoryOptions {
        completions: 1,
        ..MemoryOptions::default()
    });
    let dump = |world: &World, rank: usize| {
        let mut text = String::new();
        world.ranks[rank]
            .dump(&crate::ContextNames::default(), &mut text)
            .unwrap();
        text
    };
    world.send(0, 1, tag(1), &pattern(9, LONG), SendMode::Standard);
    world.settle();
    assert!(dump(&world, 0).contains("envelope sent, not matched"));
    world.registered(LONG);
    for _ in 0..2 {
        world.ranks[1].progress();
        world.ranks[0].progress();
    }
    assert!(dump(&world, 0).contains("being written"));
    assert!(dump(&world, 1).contains("its sender writes"));
}

/// A receiver whose key has no room in a packet, or is longer than any, asks for the bytes.
#[test]
fn keys_have_to_fit() {
    const PREFIX: usize = 16;
    const KEY: usize = 100;
    let data = pattern(8, 200_000);
    for (key, max_send, fits) in [
        (MAX_KEY, 8192, true),
        (MAX_KEY + 1, 8192, false),
        (KEY, PREFIX + KEY, true),
        (KEY, PREFIX + KEY - 1, false),
    ] {
        let mut world = with(MemoryOptions {
            key,
            max_send,
            ..MemoryOptions::default()
        });
        let send = world.send(0, 1, tag(1), &data, SendMode::Standard);
        let (receive, place) = world.recv(1, SourceSelector::ANY, TagSelector::ANY, data.len());
        assert_eq!(world.finish(1, receive).failure, None, "{key} {max_send}");
        assert_eq!(world.finish(0, send).failure, None);
        assert!(*world.lent[place] == *data);
        assert_eq!(world.network.puts().count > 0, fits, "{key} {max_send}");
        assert_eq!(world.network.registered(), 0);
    }
}

/// The writer dies: the receive ends, and its memory is its own again.
#[test]
fn a_dead_writer_writes_no_more() {
    let mut world = world();
    world.send(0, 1, tag(1), &pattern(3, LONG), SendMode::Standard);
    world.settle();
    let (receive, _) = world.registered(LONG);
    world.network.fail(Rank::new(0));
    world.ranks[1].look_after_peers();
    assert_eq!(world.network.registered(), 0);
    let status = world.ranks[1].take(receive).unwrap().unwrap();
    assert_eq!(status.failure, Some(Failure::PeerFailed(Rank::new(0))));
}

/// The receiver dies: the sender ends with the news, whatever it has written.
#[test]
fn a_dead_receiver_is_written_no_more() {
    for steps in 0..4 {
        let mut world = world();
        let send = world.send(0, 1, tag(1), &pattern(4, LONG), SendMode::Standard);
        world.settle();
        world.registered(LONG);
        for _ in 0..steps {
            world.ranks[0].progress();
        }
        world.network.fail(Rank::new(1));
        for _ in 0..10 {
            world.ranks[0].progress();
            world.ranks[0].look_after_peers();
        }
        let status = world.ranks[0].take(send).unwrap().unwrap();
        let failure = Failure::PeerFailed(Rank::new(1));
        assert!(
            [None, Some(failure)].contains(&status.failure),
            "{steps} steps"
        );
        assert!(world.ranks[0].open_work().is_none(), "{steps} steps");
    }
}

/// Puts that reach nothing: the bytes come in fragments.
#[test]
fn what_cannot_be_written_is_sent() {
    let mut world = world();
    let data = pattern(5, LONG);
    let send = world.send(0, 1, tag(1), &data, SendMode::Standard);
    world.settle();
    let (receive, place) = world.registered(LONG);
    world.network.hide_all();
    assert_eq!(world.finish(1, receive).failure, None);
    assert_eq!(world.finish(0, send).failure, None);
    assert!(*world.lent[place] == *data);
}

/// The setting names the protocols of the table, and each can be preferred.
#[test]
fn the_preferred_rendezvous_is_the_one_that_is_described() {
    let network = MemoryOptions {
        get: true,
        put: true,
        ..MemoryOptions::full()
    };
    let rail = MemoryNetwork::new(1, network).rank(Rank::new(0));
    let preference = rail.preference(EndpointId(0));
    for (rendezvous, how) in [
        ("auto", "copied once"),
        ("offer", "copied once"),
        ("get", "read by its receiver"),
        ("put", "written by its sender"),
        ("push", "sent in packets"),
    ] {
        assert!(Ob1Options::RENDEZVOUS.contains(&rendezvous));
        let options = Ob1Options {
            rendezvous: rendezvous.to_owned(),
            ..Ob1Options::default()
        };
        let all = protocols(&options, rail.capabilities(), &rail.limits(), preference);
        let long = all.last().unwrap();
        assert!(long.how.contains(how), "{rendezvous}: {long}");
    }
    assert_eq!(Ob1Options::RENDEZVOUS.len(), 5);
}
