//! The table by itself. `tests/models.rs` has it with loom's atomics.

use super::ranges::{Change, Ranges};
use super::sync::DISCARDED;

fn ranges() -> Ranges {
    let ranges = Ranges::new(4);
    ranges.enter(0, &(100..200));
    ranges.enter(1, &(150..300));
    ranges.enter(2, &(400..500));
    ranges
}

fn whole(ranges: &Ranges) -> Vec<usize> {
    (0..4).filter(|slot| ranges.is_whole(*slot)).collect()
}

#[test]
fn a_change_ends_what_it_touches_and_nothing_else() {
    for (change, left) in [
        (Change::Unmapped(0..100), vec![0, 1, 2]),
        (Change::Unmapped(199..200), vec![2]),
        (Change::Unmapped(200..400), vec![0, 2]),
        (Change::Discarded(499..600), vec![0, 1]),
        (
            Change::Moved {
                from: 0..101,
                to: 450..551,
            },
            vec![1],
        ),
    ] {
        let ranges = ranges();
        let before = ranges.ended();
        ranges.take(|each| each(change));
        assert_eq!(whole(&ranges), left);
        assert_eq!(ranges.ended() - before, 3 - left.len() as u64);
    }
}

#[test]
fn what_was_discarded_stays_so_until_it_is_unmapped() {
    let ranges = ranges();
    let ask = |range| ranges.is_discarded(&range);
    ranges.take(|each| each(Change::Discarded(1000..2000)));
    assert!(ask(1999..3000) && ask(0..1001) && !ask(2000..3000) && !ask(0..1000));
    ranges.take(|each| each(Change::Unmapped(1200..1300)));
    assert!(ask(1200..1300), "the middle stays with the rest");
    ranges.take(|each| each(Change::Unmapped(900..1100)));
    ranges.take(|each| {
        each(Change::Moved {
            from: 1900..2000,
            to: 0..100,
        })
    });
    assert!(!ask(1000..1100) && ask(1100..1101) && ask(1899..1900) && !ask(1900..2000));
    ranges.take(|each| each(Change::Unmapped(0..5000)));
    assert!(!ask(0..5000));
}

#[test]
fn more_discarded_ranges_than_places_are_none_too_few() {
    let ranges = Ranges::new(0);
    let places = 0..3 * DISCARDED;
    for place in places.clone() {
        ranges.take(|each| each(Change::Discarded(1000 * place..1000 * place + 10)));
    }
    for place in places {
        assert!(ranges.is_discarded(&(1000 * place..1000 * place + 10)));
    }
    assert!(!ranges.is_discarded(&(1 << 40..1 << 41)));
}

#[test]
fn what_others_have_is_not_uncovered() {
    let ranges = ranges();
    ranges.leave(2);
    ranges.take(|each| each(Change::Discarded(320..330)));
    let mut found = Vec::new();
    ranges.uncovered(&(50..500), |part| found.push(part));
    assert_eq!(found, [50..100, 300..320, 330..500]);
}

/// While the reader is at work nothing is settled; a look in which it begins does not count.
#[test]
fn nothing_is_settled_in_the_middle_of_a_round() {
    let ranges = ranges();
    ranges.take(|_| assert_eq!(ranges.settled(|| Some(())), None));
    assert_eq!(ranges.settled(|| Some(())), Some(()));
    let mut looks = 0;
    let seen = ranges.settled(|| {
        looks += 1;
        let seen = ranges.is_whole(0);
        if looks == 1 {
            ranges.take(|each| each(Change::Unmapped(100..200)));
        }
        Some(seen)
    });
    assert_eq!((seen, looks), (Some(false), 2));
}
