//! The chooser against a model: ways of given costs that serve one message after the other, and a clock of the test's.

use std::collections::VecDeque;
use std::time::Duration;

use proptest::prelude::*;
use tagwire_base::{Clock, ManualClock};

use super::*;

/// Nanoseconds that the ways take for each KiB.
type Costs = [u64; 3];

const KIB: u64 = 64;

const BLOCK: u32 = 32;

/// Messages that are under way, as far as the chooser sees them.
struct Model {
    costs: Costs,
    hand: ManualClock,
    clock: Clock,
    chooser: BesideChooser,
    under_way: VecDeque<(CopyWay, Option<u32>)>,
    /// What each message by the ring takes more, a fifth less each time: its memory is untouched at first.
    cold: u64,
    /// What all took, and would have taken by the way that was known.
    took: u64,
    known: u64,
}

impl Model {
    fn new(costs: Costs) -> Self {
        let hand = ManualClock::default();
        Self {
            costs,
            clock: hand.clock(),
            hand,
            chooser: BesideChooser::new(BLOCK),
            under_way: VecDeque::new(),
            cold: 0,
            took: 0,
            known: 0,
        }
    }

    fn begin(&mut self, can: impl Fn(CopyWay) -> bool) {
        if self.under_way.is_empty() {
            self.chooser.begins_alone(self.clock.now());
        }
        self.known += self.costs[self.known_way() as usize] * KIB;
        let planned = self.chooser.plan(CopyWay::Halves, can);
        self.under_way.push_back(planned);
    }

    fn end(&mut self) {
        let Some((way, block)) = self.under_way.pop_front() else {
            return;
        };
        let cold = if way == CopyWay::Ring { self.cold } else { 0 };
        self.cold -= cold.div_ceil(5);
        let took = self.costs[way as usize] * KIB + cold;
        self.took += took;
        self.hand.advance(Duration::from_nanos(took));
        self.chooser
            .ended(block, Some(KIB * 1024), self.clock.now());
    }

    /// Moves windows of so many messages, with a pause after each.
    fn windows(&mut self, windows: u32, size: u32, pause: Duration) {
        for _ in 0..windows {
            (0..size).for_each(|_| self.begin(|_| true));
            (0..size).for_each(|_| self.end());
            self.hand.advance(pause);
        }
    }

    /// Moves so many messages, of which 16 are always under way.
    fn stream(&mut self, messages: u32) {
        for _ in 0..messages {
            self.begin(|_| true);
            if self.under_way.len() > 16 {
                self.end();
            }
        }
    }

    fn known_way(&self) -> CopyWay {
        self.chooser.known.unwrap_or(CopyWay::Halves)
    }
}

#[test]
fn the_fastest_way_is_found() {
    for (costs, way) in [
        ([60, 60, 40], CopyWay::Ring),
        ([60, 40, 60], CopyWay::OneSide),
        ([40, 60, 60], CopyWay::Halves),
    ] {
        let mut model = Model::new(costs);
        model.stream(1500);
        assert_eq!(model.chooser.known(), Some((way, 40)), "in a stream");
        for size in [2, 6, 64] {
            let mut model = Model::new(costs);
            model.windows(4000 / size, size, Duration::from_micros(2));
            assert_eq!(
                model.chooser.known(),
                Some((way, 40)),
                "in windows of {size}"
            );
        }
    }
}

/// What a program does between its messages is no part of their time.
#[test]
fn pauses_between_windows_are_not_counted() {
    let mut model = Model::new([40, 60, 60]);
    for window in 0..1000_u64 {
        let pause = Duration::from_micros(window * 7919 % 1000);
        model.windows(1, 6, pause);
        assert_eq!(model.known_way(), CopyWay::Halves);
    }
    assert_eq!(model.chooser.known(), Some((CopyWay::Halves, 40)));
}

#[test]
fn a_way_that_becomes_faster_is_found() {
    let mut model = Model::new([60, 60, 40]);
    // At first it takes eleven times as long.
    model.cold = 40_000;
    model.windows(30, 64, Duration::ZERO);
    assert_eq!(model.known_way(), CopyWay::Ring);
}

#[test]
fn equal_ways_stay() {
    let mut model = Model::new([50; 3]);
    for _ in 0..20_000 {
        model.stream(1);
        assert_eq!(model.known_way(), CopyWay::Halves);
    }
}

#[test]
fn the_way_changes_with_the_machine() {
    let mut model = Model::new([60, 60, 40]);
    model.stream(1000);
    assert_eq!(model.known_way(), CopyWay::Ring);
    model.costs = [40, 60, 60];
    model.stream(2 * PERIOD * BLOCK);
    assert_eq!(model.known_way(), CopyWay::Halves);
}

/// The time of the known way is looked at between trials.
#[test]
fn a_change_is_noticed_before_the_next_trials_are_due() {
    let mut model = Model::new([60, 60, 40]);
    model.stream(1000);
    assert_eq!(model.chooser.known(), Some((CopyWay::Ring, 40)));
    model.costs = [60, 60, 100];
    model.stream((CHANGED + 2 * SAMPLED) * BLOCK);
    assert_eq!(model.chooser.known(), Some((CopyWay::Halves, 60)));
    let is_long_before = |messages: u32| messages * 8 < PERIOD * BLOCK;
    assert!(is_long_before((CHANGED + 2 * SAMPLED) * BLOCK));
}

#[test]
fn what_is_fixed_is_not_tried() {
    let mut chooser = BesideChooser::fixed(CopyWay::OneSide);
    for _ in 0..10_000 {
        let planned = chooser.plan(CopyWay::Halves, |_| true);
        assert_eq!(planned, (CopyWay::OneSide, None));
    }
    let planned = chooser.plan(CopyWay::Ring, |way| way == CopyWay::Halves);
    assert_eq!(planned, (CopyWay::Halves, None));
}

#[test]
fn what_cannot_be_is_not_tried_and_ends_a_trial() {
    let mut model = Model::new([60, 60, 40]);
    for message in 0..1000 {
        let can = |way| way != CopyWay::Ring;
        model.begin(can);
        let (way, _) = model.under_way.back().unwrap();
        assert_ne!(*way, CopyWay::Ring);
        if message % 4 == 3 {
            (0..4).for_each(|_| model.end());
        }
    }
    assert_eq!(model.known_way(), CopyWay::Halves);
    model.chooser.turns.due = model.chooser.turns.count;
    while !model.chooser.is_trying() {
        model.stream(1);
    }
    let way = model.chooser.trial.as_ref().unwrap().way;
    let planned = model.chooser.plan(CopyWay::Halves, |can| can != way);
    assert_eq!(planned, (CopyWay::Halves, None));
}

/// Ends of messages that have failed, or are of a block before: a trial of them is given up.
#[test]
fn what_fails_ends_a_trial() {
    let mut model = Model::new([60, 60, 40]);
    model.stream(EARLY * BLOCK + 1);
    assert!(model.chooser.is_trying());
    let number = model.chooser.trial.as_ref().unwrap().block.number;
    let now = model.clock.now();
    for _ in 0..100 {
        model
            .chooser
            .ended(Some(number.wrapping_sub(1)), Some(1), now);
        model.chooser.ended(Some(BESIDE), Some(1), now);
    }
    assert!(model.chooser.is_trying());
    for _ in 0..=LOST {
        model.chooser.ended(Some(number), None, now);
    }
    assert!(!model.chooser.is_trying());
}

proptest! {
    /// Whatever the ways cost: in the long run trials cost less than a hundredth, and what is much better is known.
    #[test]
    fn trials_are_cheap(costs in prop::array::uniform3(20..1000_u64), size in 2..100_u32) {
        let mut model = Model::new(costs);
        model.windows(4000 / size + 1, size, Duration::from_micros(1));
        let best = *costs.iter().min().unwrap();
        prop_assert!(costs[model.known_way() as usize] * 9 <= best * 10, "{:?}", model.known_way());
        (model.took, model.known) = (0, 0);
        model.windows(160_000 / size, size, Duration::from_micros(1));
        prop_assert!(model.took * 100 <= model.known * 101, "{} of {}", model.took, model.known);
    }
}
