//! What a rank of a large job takes that talks to a few others.

use std::time::Duration;

use tagwire_base::ManualClock;

use super::*;
use crate::shm::layout::{AREA, INLINE, LONG, MAX_SEND};

const RANKS: u32 = 256;
const NEIGHBOURS: u32 = 8;

/// What a rank takes at most whose messages fit into slots, and any rank after some silence.
const QUIET: u64 = 300 << 10;
/// The same with the payload rings in use: whole areas, and the header.
const BUSY: u64 = NEIGHBOURS as u64 * AREA as u64 + 8192;
const BUDGET: usize = 1 << 20;

/// A rank of a job, its neighbours, and the way from each of these to it.
struct Neighbourhood {
    target: Member,
    neighbours: Vec<(Member, EndpointId)>,
    clock: ManualClock,
}

impl Neighbourhood {
    /// Ranks that may spend `budget` bytes of rooms each.
    fn new(budget: usize) -> Self {
        let (clock, job) = (ManualClock::default(), LocalJob::new(RANKS).unwrap());
        let options = ShmOptions {
            room: Some(RANKS as usize * budget),
            ..ShmOptions::default()
        };
        let open = |rank| {
            let mut member = job.member(Rank::new(rank)).with_clock(clock.clock());
            let shm = Shm::open(options.clone(), &mut member).unwrap();
            let log = Log::default();
            Member { shm, log }
        };
        let mut target = open(0);
        let mut connected = |rank| {
            let mut member = open(rank);
            let to = connect(&mut member, &target);
            connect(&mut target, &member);
            (member, to)
        };
        let neighbours = (1..=NEIGHBOURS).map(&mut connected).collect();
        Self {
            target,
            neighbours,
            clock,
        }
    }

    /// Has each neighbour send so many messages of `len` bytes, which the rank takes.
    fn send(&mut self, count: u64, len: usize) {
        for number in 0..count {
            let data = periodic(len, 251, |at| (number as usize + at) as u8);
            for (member, to) in &mut self.neighbours {
                while member.send(*to, Class::Data, number, &data) == Post::Busy {
                    self.target.progress();
                    member.progress();
                }
            }
            while self.target.progress() > 0 {}
            for (_, of, arrived) in self.target.log.messages.drain(..) {
                assert!(of == number && arrived == data);
            }
        }
    }

    /// Lets so much time pass, in which all look after their peers.
    fn wait(&mut self, time: Duration) {
        let step = Duration::from_millis(100);
        for _ in 0..time.as_millis() / step.as_millis() {
            self.clock.advance(step);
            self.target.look_after_peers();
            for (member, _) in &mut self.neighbours {
                member.look_after_peers();
                member.progress();
            }
        }
    }

    fn memory(&self) -> u64 {
        self.target.shm.memory_in_use().unwrap()
    }
}

#[test]
fn long_traffic_takes_the_budget_and_gives_it_back() {
    let mut ranks = Neighbourhood::new(BUDGET);
    ranks.send(2000, INLINE);
    assert!(ranks.memory() <= QUIET, "{}", ranks.memory());
    for _ in 0..2 {
        ranks.send(2000, LONG - 1);
        let rings = ranks.memory();
        assert!(QUIET < rings && rings <= BUSY, "{rings}");
        ranks.send(2000, MAX_SEND);
        let rooms = ranks.memory();
        assert!(BUSY < rooms && rooms <= BUSY + BUDGET as u64, "{rooms}");
        ranks.wait(Duration::from_secs(10));
        assert!(ranks.memory() <= QUIET, "{}", ranks.memory());
    }
}
