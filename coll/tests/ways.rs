//! What groups go by, as reports tell it.
#![cfg(not(loom))]

use crate::common::shm::on_shm_by;
use tagwire_coll::{ALGORITHMS, Collective, Needs, Reduction, Selection, ways};
use tagwire_layout::{Basic, Layout, Operation};
use tagwire_pml::wait::WaitMode;

/// More calls than there are before the first trials of all others are over.
const CALLS: usize = 200;

/// Returns the lines of each of two ranks after calls of allreduce.
fn lines(selection: &Selection, bytes: usize) -> Vec<Vec<String>> {
    on_shm_by(selection, 2, WaitMode::Adaptive, |team| {
        let layout = Layout::of(Basic::U64);
        let sum = Reduction {
            operation: &Operation::Sum,
            layout: &layout,
        };
        // A group that is gone by then.
        let group = team.duplicate().unwrap();
        let mut data = vec![1; bytes];
        for _ in 0..CALLS {
            group.allreduce(sum, &mut data).unwrap();
        }
        drop(group);
        let mut lines = Vec::new();
        ways(team, &mut lines);
        lines
    })
}

#[test]
fn what_a_trial_has_found_is_told() {
    let selection = Selection::default().on_one_host(true);
    let all = lines(&selection, 64 << 10);
    assert_eq!(all[0], all[1], "members decide by the same times");
    let [line] = &all[0][..] else {
        panic!("one operation, one length: {all:?}");
    };
    let start = "coll: allreduce, 64 to 127 KiB, 2 ranks: ";
    let rest = line.strip_prefix(start).unwrap_or_else(|| panic!("{line}"));
    let (known, next) = rest.split_once("; next best ").unwrap();
    let name = |timed: &str| {
        let (name, nanos) = timed.strip_suffix(" ns").unwrap().split_once(", ").unwrap();
        assert!(nanos.parse::<u64>().is_ok_and(|nanos| nanos > 0), "{line}");
        let mut own = ALGORITHMS
            .iter()
            .filter(|it| it.collective == Collective::Allreduce);
        let found = own.find(|it| it.needs == Needs::Board && it.name == name);
        found.unwrap_or_else(|| panic!("{line}")).name
    };
    assert_ne!(name(known), name(next), "{line}");
}

#[test]
fn what_is_short_or_not_tried_has_no_line() {
    let tried = Selection::default().on_one_host(true);
    let untried = tried.clone().trying(false);
    for (selection, bytes) in [(&tried, 4 << 10), (&untried, 64 << 10)] {
        assert_eq!(lines(selection, bytes), [Vec::<String>::new(), Vec::new()]);
    }
}

#[test]
fn what_a_setting_names_is_told_and_not_tried() {
    let line = |names: &str| {
        let selection = Selection::parse(names).unwrap().on_one_host(true);
        let all = lines(&selection, 64 << 10);
        let [line] = &all[0][..] else {
            panic!("one line: {all:?}");
        };
        line.clone()
    };
    let board = line("allreduce:board");
    assert!(
        board.starts_with(
            "coll: allreduce, 2 ranks: board (coll-algorithm); nonblocking beyond a line: "
        ),
        "{board}"
    );
    let ring = line("allreduce:ring");
    assert!(
        ring.starts_with("coll: allreduce, 2 ranks: ring (coll-algorithm); of operands in order: "),
        "{ring}"
    );
}
