//! When the machine ran neither the driver nor, for all it knows, the ranks: a guest that was paused, a control group that was
//! frozen. What was late then is no evidence.

use std::sync::{Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

/// How often a thread of the driver looks at the clock, and after how long without a look the driver was away.
pub const LOOK: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_millis(250);

/// A time in which the driver did not run.
pub type Span = (Instant, Instant);

static SPANS: Mutex<Vec<Span>> = Mutex::new(Vec::new());

/// Begins to watch, where nobody has yet.
pub fn watch() {
    static BEGUN: Once = Once::new();
    BEGUN.call_once(|| {
        std::thread::spawn(|| {
            let mut before = None;
            loop {
                let now = Instant::now();
                if let Some(span) = before.and_then(|before| span(before, now)) {
                    SPANS
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push(span);
                }
                before = Some(now);
                std::thread::sleep(LOOK);
            }
        });
    });
}

/// Returns when the driver did not run.
pub fn spans() -> Vec<Span> {
    SPANS.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Returns how long the driver did not run since then.
pub fn since(then: Instant) -> Duration {
    let spans = spans().into_iter();
    spans
        .map(|(from, to)| to.saturating_duration_since(from.max(then)))
        .sum()
}

/// Returns when the driver was away between two looks, if it was.
fn span(before: Instant, now: Instant) -> Option<Span> {
    (now - before > LONG).then_some((before + LOOK, now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_that_are_far_apart_are_a_time_away() {
        let begin = Instant::now();
        assert_eq!(span(begin, begin + LONG), None);
        let now = begin + Duration::from_secs(3);
        assert_eq!(span(begin, now), Some((begin + LOOK, now)));
    }
}
