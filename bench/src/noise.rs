//! Models of noise: how long the threads of a rank compute in a round.

use std::time::Duration;

use crate::args::partitioned::Noise;
use crate::stats::Seeded;

/// Which threads take longer, and by how many percent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Model {
    pub noise: Noise,
    pub pct: f64,
}

impl Model {
    /// Draws the times of `threads` threads that compute for `time` each.
    pub(crate) fn draw(self, random: &mut Seeded, time: Duration, threads: u32) -> Vec<Duration> {
        let late = random.next() % u64::from(threads.max(1));
        (0..threads)
            .map(|thread| self.of_thread(time, u64::from(thread) == late, random))
            .collect()
    }

    /// Draws the time of one thread that computes for `time`, and is the late one or not.
    pub(crate) fn of_thread(self, time: Duration, is_late: bool, random: &mut Seeded) -> Duration {
        let more = match self.noise {
            Noise::None => 0.0,
            Noise::Single => f64::from(u8::from(is_late)),
            Noise::Uniform => unit(random),
            Noise::Gaussian => normal(random).abs(),
            Noise::Normal => normal(random),
        };
        time.mul_f64((1.0 + self.pct / 100.0 * more).max(0.0))
    }
}

/// Returns a number from 0 to 1.
pub(crate) fn unit(random: &mut Seeded) -> f64 {
    (random.next() >> 11) as f64 / (1u64 << 53) as f64
}

/// Returns a normal variable of mean 0 and deviation 1 (Box and Muller).
pub(crate) fn normal(random: &mut Seeded) -> f64 {
    let radius = (-2.0 * unit(random).max(1e-300).ln()).sqrt();
    radius * (std::f64::consts::TAU * unit(random)).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Duration = Duration::from_millis(10);

    fn draw(noise: Noise, pct: f64) -> Vec<Duration> {
        Model { noise, pct }.draw(&mut Seeded::new(7), TIME, 1000)
    }

    #[test]
    fn one_thread_is_late_by_the_whole_percentage() {
        let times = draw(Noise::Single, 4.0);
        let late = times.iter().filter(|time| **time > TIME);
        assert_eq!(late.collect::<Vec<_>>(), [&TIME.mul_f64(1.04)]);
        assert!(draw(Noise::None, 4.0).iter().all(|time| *time == TIME));
    }

    #[test]
    fn all_threads_are_late_within_the_bounds_of_the_model() {
        let uniform = draw(Noise::Uniform, 4.0);
        assert!(
            uniform
                .iter()
                .all(|time| (TIME..=TIME.mul_f64(1.04)).contains(time))
        );
        let mean = uniform.iter().sum::<Duration>() / 1000;
        assert!(
            (TIME.mul_f64(1.018)..TIME.mul_f64(1.022)).contains(&mean),
            "{mean:?}"
        );
        let gaussian = draw(Noise::Gaussian, 4.0);
        assert!(gaussian.iter().all(|time| *time >= TIME));
        let beyond = gaussian.iter().filter(|time| **time > TIME.mul_f64(1.04));
        // A third of a normal variable lies beyond its deviation.
        assert!((250..400).contains(&beyond.count()));
    }
}
