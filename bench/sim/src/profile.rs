//! What a rank spends in the calls of its program, as a profiler of MPI programs counts it.

use std::cell::{Cell, RefCell};

use tagwire_sim::{Counts, Moment};

use crate::error::Result;
use crate::rank::SimRank;

/// A rank whose calls are timed.
#[derive(Debug)]
pub(crate) struct Metered {
    rank: SimRank,
    routines: RefCell<Vec<(&'static str, u64)>>,
    began: Cell<Counted>,
}

/// What is counted from a moment on.
#[derive(Debug, Default, Clone, Copy)]
struct Counted {
    at: u64,
    messages: u64,
    long: u64,
    dropped: u64,
}

/// What one rank has spent where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankProfile {
    /// The rank.
    pub rank: u32,
    /// Its run time, in nanoseconds.
    pub run: u64,
    /// How many nanoseconds of it in each routine.
    pub routines: Vec<(&'static str, u64)>,
    /// Messages that it has sent, those of collectives among them.
    pub messages: u64,
    /// Those of them that are longer than what the network keeps.
    pub long: u64,
    /// Long messages that came before their receive, and whose bytes were fetched later.
    pub dropped: u64,
}

/// What the ranks of a job have spent where.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Profile {
    /// In the order in which they ended.
    pub ranks: Vec<RankProfile>,
    /// What has happened in the network.
    pub counts: Counts,
    /// When the last event was.
    pub end: Moment,
}

impl Profile {
    /// Returns the routines, those in which most time was spent first, each with its part of the run time of all ranks in percent.
    #[must_use]
    pub fn routines(&self) -> Vec<(&'static str, f64)> {
        let mut all: Vec<(&str, u64)> = Vec::new();
        for (name, time) in self.ranks.iter().flat_map(|rank| &rank.routines) {
            match all.iter_mut().find(|(known, _)| known == name) {
                Some((_, sum)) => *sum += time,
                None => all.push((name, *time)),
            }
        }
        all.sort_by_key(|(name, time)| (std::cmp::Reverse(*time), *name));
        let run: u64 = self.ranks.iter().map(|rank| rank.run).sum();
        let part = |time| 100.0 * time as f64 / run.max(1) as f64;
        all.into_iter()
            .map(|(name, time)| (name, part(time)))
            .collect()
    }

    /// Returns the mean, the least and the greatest of a figure of ranks.
    #[must_use]
    pub fn spread(&self, figure: impl Fn(&RankProfile) -> f64) -> [f64; 3] {
        let all: Vec<f64> = self.ranks.iter().map(figure).collect();
        let mean = all.iter().sum::<f64>() / all.len().max(1) as f64;
        let least = all.iter().copied().reduce(f64::min).unwrap_or_default();
        let most = all.iter().copied().reduce(f64::max).unwrap_or_default();
        [mean, least, most]
    }
}

impl RankProfile {
    /// Returns the part of its run time that it has spent in all routines, in percent.
    #[must_use]
    pub fn library(&self) -> f64 {
        let library: u64 = self.routines.iter().map(|(_, time)| time).sum();
        100.0 * library as f64 / self.run.max(1) as f64
    }

    /// Returns how many messages it has sent that are not long.
    #[must_use]
    pub const fn short(&self) -> u64 {
        self.messages.saturating_sub(self.long)
    }

    /// Returns the part of the long messages to it that were dropped, in percent, if it got as many as it sent.
    #[must_use]
    pub fn dropped_share(&self) -> f64 {
        100.0 * self.dropped as f64 / self.long.max(1) as f64
    }
}

impl Metered {
    pub(crate) fn new(rank: SimRank) -> Self {
        Self {
            rank,
            routines: RefCell::default(),
            began: Cell::default(),
        }
    }

    /// Returns the rank, whose calls are not timed.
    pub(crate) const fn rank(&self) -> &SimRank {
        &self.rank
    }

    /// Meets the others, and counts from here on.
    ///
    /// # Errors
    /// How the barrier failed.
    pub(crate) async fn begin(&self) -> Result<()> {
        self.rank.barrier().await?;
        self.routines.take();
        self.began.set(self.counted()?);
        Ok(())
    }

    /// Times a call that waits.
    pub(crate) async fn wait<T>(&self, routine: &'static str, call: impl Future<Output = T>) -> T {
        let began = self.now();
        let value = call.await;
        self.add(routine, began);
        value
    }

    /// Times a call that returns at once.
    pub(crate) fn call<T>(&self, routine: &'static str, call: impl FnOnce() -> T) -> T {
        let began = self.now();
        let value = call();
        self.add(routine, began);
        value
    }

    fn now(&self) -> u64 {
        self.rank.actor().now().as_nanos()
    }

    fn add(&self, routine: &'static str, began: u64) {
        let took = self.now() - began;
        let mut all = self.routines.borrow_mut();
        match all.iter_mut().find(|(name, _)| *name == routine) {
            Some((_, time)) => *time += took,
            None => all.push((routine, took)),
        }
    }

    fn counted(&self) -> Result<Counted> {
        let counters = self.rank.port().statistics()?.counters;
        Ok(Counted {
            at: self.now(),
            messages: self.rank.actor().messages(),
            long: counters.sent_long,
            dropped: counters.unexpected_long,
        })
    }

    /// Ends what is counted.
    ///
    /// # Errors
    /// When the layer does not tell.
    pub(crate) fn end(&self) -> Result<()> {
        let (now, then) = (self.counted()?, self.began.get());
        self.began.set(Counted {
            at: now.at - then.at,
            messages: now.messages - then.messages,
            long: now.long - then.long,
            dropped: now.dropped - then.dropped,
        });
        Ok(())
    }

    /// Returns what was counted from [`begin`](Self::begin) to [`end`](Self::end).
    pub(crate) fn into_profile(self) -> RankProfile {
        let of = self.began.get();
        RankProfile {
            rank: self.rank.rank(),
            run: of.at,
            routines: self.routines.into_inner(),
            messages: of.messages,
            long: of.long,
            dropped: of.dropped,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use std::rc::Rc;
    use std::time::Duration;

    use tagwire_sim::presets::preset;
    use tagwire_sim::{SimNetwork, SimOptions};

    use super::*;
    use crate::job::{Opener, Pml};
    use crate::programs::tag;
    use crate::threads::Threads;

    /// Sends a message of `len` sevens to a rank that posts its receive after `late`. Returns the profile of that one, and what it has.
    fn received(len: usize, late: Duration, hollow: bool) -> (RankProfile, Box<[u8]>) {
        let options = SimOptions::of(preset("redstorm").unwrap().machine);
        let network = SimNetwork::new(2, options);
        let opener = match hollow {
            true => Opener::hollow(Pml::Cm, &network),
            false => Opener::new(Pml::Cm, &network),
        };
        let mut threads = Threads::of(&network, opener);
        let seen = Rc::new(RefCell::new(None));
        for rank in threads.open_all(2).unwrap() {
            let seen = Rc::clone(&seen);
            threads.spawn(&rank.actor().clone(), async move {
                let metered = Metered::new(rank);
                let rank = metered.rank();
                // Both know each other, and begin at the same moment.
                rank.barrier().await?;
                rank.compute(Duration::from_millis(1) - Duration::from_nanos(metered.now()))
                    .await;
                metered.began.set(metered.counted()?);
                let bytes = if rank.rank() == 0 {
                    let sent = rank.isend(1, tag(0), vec![7; len])?;
                    rank.wait(sent).await?
                } else {
                    rank.compute(late).await;
                    let posted = rank.irecv(0, tag(0), len)?;
                    metered.wait("wait", rank.wait(posted)).await?
                };
                metered.end()?;
                rank.barrier().await?;
                rank.close()?;
                if rank.rank() == 1 {
                    *seen.borrow_mut() = Some((metered.into_profile(), bytes));
                }
                Ok(())
            });
        }
        threads.run().unwrap();
        seen.take().unwrap()
    }

    /// Nanoseconds of the machine: a message of no bytes, and each side's part of it.
    const WAY: u64 = 4910;
    const SIDE: u64 = 1305;
    const LATENCY: u64 = WAY - 2 * SIDE;

    #[test]
    fn long_messages_come_whole_where_a_receive_waits() {
        for len in [32_768, 32_769, 200_000] {
            let (profile, bytes) = received(len, Duration::ZERO, false);
            let long = u64::from(len > 32_768);
            assert_eq!((profile.run, profile.dropped), (WAY + len as u64 / 2, 0));
            assert_eq!(
                (profile.messages, profile.long),
                (0, 0),
                "of the sender: {long}"
            );
            assert!(bytes.iter().all(|byte| *byte == 7));
        }
    }

    #[test]
    fn long_messages_that_come_first_are_fetched() {
        let late = Duration::from_micros(900);
        let (profile, bytes) = received(200_000, late, false);
        // The word to the sender's NIC goes while the rank is busy with the envelope; then it is busy with the bytes.
        assert_eq!(profile.routines, [("wait", 2 * LATENCY + 100_000)]);
        assert_eq!(profile.dropped, 1);
        assert!(bytes.iter().all(|byte| *byte == 7));
        // What is short was kept.
        let (profile, _) = received(32_768, late, false);
        assert_eq!(profile.dropped, 0);
        assert!(profile.routines[0].1 <= SIDE, "{profile:?}");
    }

    #[test]
    fn who_does_not_look_may_have_nothing() {
        let (profile, bytes) = received(200_000, Duration::ZERO, true);
        assert_eq!(profile.run, WAY + 100_000);
        assert!(bytes.iter().all(|byte| *byte == 0));
        let (_, short) = received(1000, Duration::ZERO, true);
        assert!(short.iter().all(|byte| *byte == 7));
    }
}
