//! How long a reply takes, and how long to wait for one (RFC 6298, sections 2 and 5).

use std::time::Duration;

/// The longest time-out, unless two round trips are longer. Those that vary, as with a peer that computes now and then, make none longer.
const LONGEST: Duration = Duration::from_millis(200);

/// A reply that takes longer was waited for by nobody.
const ABSENT: Duration = Duration::from_secs(1);

/// What was measured of a peer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RoundTrip {
    /// Smoothed, and its mean deviation; none before the first sample.
    smoothed: Option<(Duration, Duration)>,
    /// The least time-out.
    least: Duration,
    /// How often the time-out was doubled.
    doubled: u32,
    /// Replies take longer than the least time-out.
    is_long: bool,
}

impl RoundTrip {
    pub(crate) const fn new(least: Duration) -> Self {
        Self {
            smoothed: None,
            least,
            doubled: 0,
            is_long: false,
        }
    }

    /// Takes the time of one round trip, of a message that was sent once (Karn's algorithm: section 3). One of more than a second is
    /// taken for none: of a rank that computed while the reply lay there.
    pub(crate) fn sample(&mut self, time: Duration) {
        if time > ABSENT {
            return;
        }
        self.smoothed = Some(match self.smoothed {
            None => (time, time / 2),
            Some((mean, deviation)) => (
                mean * 7 / 8 + time / 8,
                deviation * 3 / 4 + mean.abs_diff(time) / 4,
            ),
        });
        self.is_long = self.usual() > self.least;
    }

    /// Nothing came in time.
    pub(crate) const fn back_off(&mut self) {
        self.doubled += 1;
    }

    /// Whether the time-out is longer than the least one. It may be so for a peer that was away, and is to fall soon.
    #[inline]
    pub(crate) const fn is_long(&self) -> bool {
        self.is_long
    }

    /// Something came.
    pub(crate) const fn relax(&mut self) {
        self.doubled = 0;
    }

    /// Returns the smoothed time; `None` before the first sample.
    pub(crate) fn mean(&self) -> Option<Duration> {
        self.smoothed.map(|(mean, _)| mean)
    }

    /// Returns after which time a reply is late that was not delayed.
    pub(crate) fn usual(&self) -> Duration {
        let usual = self.smoothed.map(|(mean, deviation)| mean + 4 * deviation);
        usual.unwrap_or(self.least)
    }

    /// Returns after which time a message without a reply is sent again. Where all replies take equally long, it is a quarter more than that
    /// (RFC 6298, section 2.3: the granularity of the clock).
    pub(crate) fn timeout(&self) -> Duration {
        let mean = self.mean().unwrap_or_default();
        let once = self.usual().max(mean * 5 / 4).max(self.least);
        let grown = once.saturating_mul(1 << self.doubled.min(16));
        let longest = self.mean().map_or(LONGEST, |mean| LONGEST.max(2 * mean));
        grown.min(longest.max(self.least))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn the_timeout_follows_the_samples() {
        let mut trip = RoundTrip::new(MS(1));
        assert_eq!((trip.timeout(), trip.mean()), (MS(1), None));
        trip.sample(MS(8));
        assert_eq!(trip.timeout(), MS(8 + 4 * 4), "section 2.2");
        trip.sample(MS(16));
        // Section 2.3: the deviation is 3/4 of 4 and 1/4 of 8, the mean 7/8 of 8 and 1/8 of 16.
        assert_eq!((trip.mean(), trip.timeout()), (Some(MS(9)), MS(9 + 4 * 5)));
        for _ in 0..200 {
            trip.sample(Duration::from_micros(20));
        }
        assert_eq!(trip.timeout(), MS(1), "no less than the least");
        assert!(trip.usual() < Duration::from_micros(30));
        for _ in 0..200 {
            trip.sample(MS(8));
        }
        let off = trip.timeout().abs_diff(MS(10));
        assert!(off < Duration::from_micros(1), "a quarter more: {off:?}");
    }

    #[test]
    fn the_timeout_grows_within_bounds() {
        let mut trip = RoundTrip::new(MS(1));
        let grown: Vec<_> = std::iter::repeat_with(|| {
            trip.back_off();
            trip.timeout()
        })
        .take(100)
        .collect();
        assert_eq!(grown[..3], [MS(2), MS(4), MS(8)]);
        assert_eq!(grown[99], LONGEST);
        trip.relax();
        assert_eq!(trip.timeout(), MS(1));
        trip.sample(MS(400));
        assert_eq!(trip.timeout(), MS(800), "a slow network has a longer one");
        trip.back_off();
        assert_eq!(trip.timeout(), MS(800));
        trip.sample(MS(10_000));
        assert_eq!(trip.mean(), Some(MS(400)), "this rank was away");
    }
}
