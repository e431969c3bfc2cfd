//! Processes that are not looked for each time.

use std::time::Duration;

use tagwire_base::ManualClock;

use crate::shm::liveness::Liveness;
use crate::shm::sighting::{FRESH, Sighting};

#[test]
fn a_process_is_looked_for_again_after_a_while() {
    let hand = ManualClock::default();
    let sighting = Sighting::new(hand.clock());
    let mut looks = 0;
    let mut is_still = |is_there| {
        let still = sighting.is_still(&Liveness::Unknown, || {
            looks += 1;
            is_there
        });
        (still, looks)
    };
    assert_eq!(is_still(true), (true, 1));
    hand.advance(FRESH - Duration::from_nanos(1));
    assert_eq!(is_still(false), (true, 1));
    hand.advance(Duration::from_nanos(1));
    assert_eq!(is_still(false), (false, 2));
    assert_eq!(is_still(false), (false, 3));
    assert_eq!(is_still(true), (true, 4));
}
