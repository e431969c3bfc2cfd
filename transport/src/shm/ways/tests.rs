//! The chooser against a model: ways of given costs, and a clock of the test's.

use std::time::Duration;

use proptest::prelude::*;
use tagwire_base::{Clock, ManualClock};

use super::*;

/// What the ways cost: nanoseconds for a message, and for each KiB of it.
type Costs = [(u64, u64); 3];

/// Two ranks that move messages, as far as the chooser sees them.
struct Model {
    costs: Costs,
    hand: ManualClock,
    clock: Clock,
    chooser: Chooser,
    /// What a message of which the ring moves a part takes beside its cost, a tenth less each time: its memory is untouched at first.
    cold: u64,
}

/// What became of one message.
struct Moved {
    /// Nanoseconds that it took, and would have taken by the way that was known.
    took: u64,
    known: u64,
}

impl Model {
    fn new(costs: Costs, chooser: Chooser) -> Self {
        let hand = ManualClock::default();
        let clock = hand.clock();
        Self {
            costs,
            hand,
            clock,
            chooser,
            cold: 0,
        }
    }

    fn cost(&self, way: CopyWay, bytes: u64) -> u64 {
        let (start, each) = self.costs[way as usize];
        start + each * bytes / 1024
    }

    /// Moves a message of `units` of 4 KiB: the part that is tried, no longer than it may take, and the rest.
    fn send(&mut self, units: u32) -> Moved {
        let bytes = u64::from(units) * 4096;
        let known = self.cost(self.chooser.known().0, bytes);
        let plan = self.chooser.plan(|_| true);
        let begin = self.clock.now();
        let mut left = bytes;
        if let Some((way, part)) = plan.first {
            let is_cold = way == CopyWay::Ring;
            let cold = if is_cold { self.cold } else { 0 };
            self.cold -= cold.div_ceil(10);
            let first = u64::from(part.of(units)) * 4096;
            // A transfer looks at the clock after each unit.
            let mut moved = 0;
            while moved < first {
                moved += 4096;
                let until = Duration::from_nanos(cold + self.cost(way, moved));
                self.hand
                    .advance(until.saturating_sub(self.clock.now().since(begin)));
                if self.clock.now().since(begin) > plan.limit(bytes) {
                    break;
                }
            }
            left = bytes - moved;
            self.chooser
                .took(&plan, moved, self.clock.now().since(begin));
        }
        if left > 0 {
            let rest = Duration::from_nanos(self.cost(plan.rest, left));
            self.hand.advance(rest);
        }
        if plan.first.is_none() && plan.is_timed() {
            self.chooser
                .took(&plan, bytes, self.clock.now().since(begin));
        }
        let took = self.clock.now().since(begin).as_nanos() as u64;
        Moved { took, known }
    }

    fn send_many(&mut self, messages: u32, units: u32) {
        for _ in 0..messages {
            self.send(units);
        }
    }

    fn known(&self) -> CopyWay {
        self.chooser.known().0
    }
}

const SLOW: (u64, u64) = (500, 90);
const FAST: (u64, u64) = (300, 45);

#[test]
fn the_fastest_way_is_found() {
    for fast in CopyWay::ALL {
        let mut costs = [SLOW; 3];
        costs[fast as usize] = FAST;
        for first in CopyWay::ALL {
            let mut model = Model::new(costs, Chooser::new(first));
            model.send_many(200, 16);
            assert_eq!(model.known(), fast, "from {first:?}");
            let (_, time) = model.chooser.known();
            assert_eq!(time, Some((300 + 45 * 64) * 1024 / 65_536));
        }
    }
}

/// Of a short message most of the time is what it takes to begin, which is in each part.
#[test]
fn a_way_that_takes_long_to_begin_is_found() {
    let mut model = Model::new(
        [(2600, 30), (2600, 60), (2200, 5)],
        Chooser::new(CopyWay::Halves),
    );
    model.send_many(200, 8);
    assert_eq!(model.known(), CopyWay::Ring);
}

/// A way whose first messages are slow is found with the first trial.
#[test]
fn a_way_that_becomes_faster_is_found() {
    let mut model = Model::new([SLOW, SLOW, FAST], Chooser::new(CopyWay::Halves));
    model.cold = 6_000;
    model.send_many(250, 16);
    assert_eq!(model.known(), CopyWay::Ring);
}

/// A program that sends a message each millisecond has its way within as many messages, in 200 ms.
#[test]
fn rare_messages_are_enough() {
    let mut model = Model::new([SLOW, SLOW, FAST], Chooser::new(CopyWay::Halves));
    let begin = model.clock.now();
    while model.known() != CopyWay::Ring {
        model.hand.advance(Duration::from_millis(1));
        model.send(16);
        assert!(model.clock.now().since(begin) < Duration::from_millis(200));
    }
}

#[test]
fn the_way_changes_with_the_machine() {
    let mut model = Model::new([FAST, SLOW, SLOW], Chooser::new(CopyWay::Halves));
    model.send_many(50_000, 16);
    assert_eq!(model.known(), CopyWay::Halves);
    // What is known becomes slow: that shows. What is not becomes fast: that is found after the period.
    for (costs, way, within) in [
        ([SLOW, SLOW, FAST], CopyWay::Ring, 1500),
        ([(100, 20), SLOW, FAST], CopyWay::Halves, 5000),
    ] {
        model.costs = costs;
        model.send_many(within, 16);
        assert_eq!(model.known(), way);
    }
}

/// What is as fast is not changed for.
#[test]
fn equal_ways_stay() {
    let mut model = Model::new([FAST; 3], Chooser::new(CopyWay::OneSide));
    for _ in 0..20_000 {
        model.send(16);
        assert_eq!(model.known(), CopyWay::OneSide);
    }
}

/// One unit of a candidate takes as long as seven messages: there is no less to try.
#[test]
fn what_costs_much_is_tried_less_often() {
    let mut model = Model::new(
        [(2112, 766), (100, 20), (100, 453)],
        Chooser::new(CopyWay::Halves),
    );
    // The first trials are repeated soon.
    model.send_many(1000, 8);
    assert_eq!(model.known(), CopyWay::OneSide);
    let moved: Vec<_> = (0..20_000).map(|_| model.send(8)).collect();
    let [took, known] = [|one: &Moved| one.took, |one: &Moved| one.known]
        .map(|time| moved.iter().map(time).sum::<u64>());
    assert!(
        took > known && took * 100 <= known * 101,
        "{took} of {known}"
    );
}

/// Where the system runs another in the middle of some messages of either way, nothing follows from it.
#[test]
fn pauses_decide_nothing() {
    let mut model = Model::new([FAST, SLOW, SLOW], Chooser::new(CopyWay::Halves));
    for message in 0..3000_u64 {
        if message % 7 == 3 {
            // In the next message, of whatever way.
            model.costs.iter_mut().for_each(|cost| cost.0 += 4_000_000);
        }
        model.send(16);
        model.costs = [FAST, SLOW, SLOW];
        assert_eq!(model.known(), CopyWay::Halves);
    }
}

#[test]
fn what_is_fixed_is_not_tried() {
    let mut model = Model::new([FAST, SLOW, SLOW], Chooser::fixed(CopyWay::OneSide));
    for _ in 0..10_000 {
        let moved = model.send(16);
        assert_eq!(moved.took, moved.known);
    }
    assert_eq!(model.known(), CopyWay::OneSide);
    assert!(model.chooser.known().1.is_some(), "its time is known");
}

#[test]
fn what_cannot_be_is_not_tried_and_ends_a_trial() {
    let mut chooser = Chooser::new(CopyWay::Halves);
    let took = Duration::from_micros(3);
    let mut tried = 0;
    for message in 0..2000 {
        let can =
            |way: CopyWay| way != CopyWay::Ring && (way != CopyWay::OneSide || message > 1000);
        let plan = chooser.plan(can);
        if let Some((way, _)) = plan.first {
            assert!(can(way));
            tried += 1;
        }
        if plan.is_timed() {
            chooser.took(&plan, 65_536, took);
        }
    }
    assert!(tried > 3);
    // Halfway through a trial it cannot be any more.
    let mut chooser = Chooser::new(CopyWay::Halves);
    loop {
        let plan = chooser.plan(|_| true);
        if plan.first.is_some() {
            break;
        }
        chooser.took(&plan, 65_536, took);
    }
    let plan = chooser.plan(|way| way == CopyWay::Halves);
    assert_eq!((plan.first, plan.rest), (None, CopyWay::Halves));
}

/// Messages of which most say nothing: trials that lead to nothing are given up.
#[test]
fn what_says_nothing_costs_little() {
    let mut chooser = Chooser::new(CopyWay::Halves);
    let mut tried = 0;
    for _ in 0..800 {
        let plan = chooser.plan(|_| true);
        tried += usize::from(plan.first.is_some());
        match plan.first {
            // Others begin before it has ended.
            Some(_) => chooser.lost(&plan),
            None if plan.is_timed() => chooser.took(&plan, 65_536, Duration::from_micros(3)),
            None => assert_eq!(plan.rest, CopyWay::Halves),
        }
    }
    assert!((1..=20).contains(&tried), "{tried}");
}

/// Messages of two lengths by turns: each way is compared at one length.
#[test]
fn lengths_that_alternate_decide_nothing() {
    for (costs, way) in [
        ([SLOW; 3], CopyWay::Halves),
        ([SLOW, SLOW, FAST], CopyWay::Ring),
    ] {
        let mut model = Model::new(costs, Chooser::new(CopyWay::Halves));
        for message in 0..1000 {
            model.send([16, 4][message % 2]);
            let is_change = model.known() != CopyWay::Halves;
            assert!(!is_change || model.known() == way, "{costs:?}");
        }
        assert_eq!(model.known(), way);
    }
}

/// Seven lengths by turns: a trial ends, and nothing follows from it.
#[test]
fn lengths_that_seldom_recur_end_a_trial() {
    let mut model = Model::new([SLOW; 3], Chooser::new(CopyWay::Halves));
    let mut tried = 0;
    for message in 0..2000 {
        model.send(8 << (message % 7));
        tried += u32::from(model.chooser.trial.is_some());
        assert_eq!(model.known(), CopyWay::Halves);
    }
    assert!((1..400).contains(&tried), "{tried}");
}

/// Where the known way cannot be used, some messages are still looked at, which say whether it can be again.
#[test]
fn what_is_known_and_cannot_be_is_looked_at() {
    let mut chooser = Chooser::new(CopyWay::Ring);
    let mut looks = 0;
    for _ in 0..10 * TIMED {
        let plan = chooser.plan(|way| way != CopyWay::Ring);
        assert_eq!((plan.first, plan.rest), (None, CopyWay::Halves));
        if plan.is_timed() {
            looks += 1;
            chooser.took(&plan, 65_536, Duration::from_micros(3));
        }
    }
    assert_eq!(looks, 10);
    assert_eq!(chooser.known(), (CopyWay::Ring, None));
}

#[test]
fn ways_have_names() {
    for way in CopyWay::ALL {
        assert_eq!(CopyWay::named(way.name()), Some(way));
        assert_eq!(CopyWay::ALL[way as usize], way);
    }
    assert_eq!(CopyWay::named("none"), None);
}

proptest! {
    /// Whatever the ways cost: no message takes more than twice its time by the way that was known, beside one unit of the
    /// candidate, and what is tried costs less than a hundredth in the long run.
    #[test]
    fn trials_are_cheap(
        costs in prop::array::uniform3((100..3000_u64, 20..1000_u64)),
        units in 8..300_u32,
    ) {
        let mut model = Model::new(costs, Chooser::new(CopyWay::Halves));
        // The first trials, which are repeated soon.
        model.send_many(1000, units);
        let (mut took, mut known) = (0, 0);
        for _ in 0..20_000 {
            let moved = model.send(units);
            let unit = CopyWay::ALL.map(|way| model.cost(way, 4096)).into_iter().max().unwrap();
            prop_assert!(moved.took <= 2 * moved.known + unit, "{} of {}", moved.took, moved.known);
            took += moved.took;
            known += moved.known;
        }
        prop_assert!(took * 100 <= known * 101, "{took} of {known}");
        // What is much better is known, but for a way that begins so slowly that it was dropped after a part of a message.
        let each = |way: CopyWay, part: Part| {
            let bytes = u64::from(part.of(units)) * 4096;
            model.cost(way, bytes) as f64 / bytes as f64
        };
        let now = each(model.known(), Part::All);
        for way in CopyWay::ALL {
            let is_dropped = each(way, Part::Eighth) > 2.9 * now || each(way, Part::Half) > 1.4 * now;
            prop_assert!(is_dropped || now <= each(way, Part::All) * 1.1, "{way:?}");
        }
    }
}

/// The first trials of all candidates find memory that nobody has touched: they are repeated soon, whatever they cost, and from then on by their cost.
#[test]
fn first_trials_are_repeated_soon() {
    let mut turns = Turns::new(CopyWay::Halves, [16, 4096]);
    let mut round = |spent| {
        for _ in 0..2 {
            assert!(turns.next(CopyWay::Halves, |_| true).is_some());
            turns.end(spent);
        }
        turns.due
    };
    assert_eq!([round(1000), round(1000), round(0)], [256, 32_768, 4096]);
}
