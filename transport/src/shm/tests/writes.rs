//! How short messages are written, and what is said of it.

use std::time::Duration;

use tagwire_base::ManualClock;

use super::*;

/// Has two ranks answer each other with messages of each length. Returns what is said of their ways.
fn ways_of(options: &ShmOptions, lengths: &[usize]) -> Vec<String> {
    let (clock, job) = (ManualClock::default(), LocalJob::new(2).unwrap());
    let mut members = [0, 1].map(|rank| {
        let mut member = job.member(Rank::new(rank)).with_clock(clock.clock());
        let shm = Shm::open(options.clone(), &mut member).unwrap();
        let log = Log::default();
        Member { shm, log }
    });
    let [a, b] = &mut members;
    let to = [connect(a, b), connect(b, a)];
    for turn in 0..2000_usize {
        let (from, len) = (turn % 2, lengths[turn / 2 % lengths.len()]);
        let data = periodic(len, 251, |at| (turn + at) as u8);
        let posted = members[from].send(to[from], Class::Data, turn as u64, &data);
        assert_eq!(posted, Post::Posted, "message {turn}");
        let receiver = &mut members[1 - from];
        while receiver.log.messages.is_empty() {
            receiver.progress();
        }
        let (_, number, arrived) = receiver.log.messages.pop_front().unwrap();
        assert_eq!((number, arrived), (turn as u64, data));
    }
    clock.advance(Duration::from_secs(1));
    let mut lines = Vec::new();
    let [mut a, b] = members;
    b.leave();
    while a.log.left.is_empty() {
        a.progress();
    }
    // What was found of a peer that has left is known as well.
    a.shm.ways(&mut lines);
    lines
}

fn options(reuse: Option<bool>, stream: Option<bool>) -> ShmOptions {
    ShmOptions {
        reuse,
        stream,
        ..ShmOptions::default()
    }
}

const LENGTHS: [usize; 4] = [300, 2048, 5000, 8192];

/// Returns what is said of messages that begin with `length` of [`LENGTHS`] and its neighbours.
fn said<'a>(lines: &'a [String], length: &str) -> &'a str {
    let mut of = lines.iter().filter(|line| line.contains(length));
    let line = of.next().unwrap_or_else(|| panic!("{length}: {lines:?}"));
    assert!(
        line.starts_with("shm: rank 1, short messages sent, "),
        "{line}"
    );
    line
}

/// Of each class of lengths that were sent there is a way and its time, whatever was found.
#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "needs the processor's own count of time"
)]
fn the_way_of_each_length_is_said() {
    let lines = ways_of(&options(None, None), &LENGTHS);
    for length in [
        "from 256 B, below 1024 B",
        "from 1024 B, below 4096 B",
        "from 4096 B",
    ] {
        let line = said(&lines, length);
        let ways = ["plain stores", "past the caches", "back and forth"];
        assert!(ways.iter().any(|way| line.contains(way)), "{line}");
        assert!(line.ends_with(" ns per KiB"), "{line}");
    }
    // Nothing is said of lengths that were not sent.
    let lines = ways_of(&options(None, None), &[64, 2048]);
    assert_eq!(lines.len(), 1, "{lines:?}");
}

/// What settings fix is not tried.
#[test]
#[cfg_attr(not(target_arch = "x86_64"), ignore = "needs stores past the caches")]
fn a_way_that_is_fixed_is_the_only_one() {
    for (stream, long) in [(false, "plain stores"), (true, "stores past the caches")] {
        let lines = ways_of(&options(Some(false), Some(stream)), &LENGTHS);
        // Those below 1 KiB do not go past the caches.
        let ways = [
            ("from 256 B", "plain stores"),
            ("from 1024 B", long),
            ("from 4096 B", long),
        ];
        for (length, way) in ways {
            let line = said(&lines, length);
            assert!(line.contains(way), "{line}");
        }
    }
}
