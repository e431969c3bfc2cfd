//! The threads of a rank that go through regions together.

use std::sync::{Barrier, Mutex, PoisonError};

use crate::error::{Error, Result};

/// What the threads of a rank do, region after region.
pub(crate) trait Program: Sync {
    /// What the first thread does before the others begin a region.
    fn before(&self, region: u64) -> Result<()>;

    /// What each thread does in a region.
    fn work(&self, region: u64, thread: u32) -> Result<()>;

    /// What the first thread does once all have ended a region.
    fn after(&self, region: u64) -> Result<()>;

    /// Takes the arrivals of the threads of this rank since the last call: iteration, thread, nanoseconds.
    #[inline]
    fn arrivals(&self) -> Vec<[u64; 3]> {
        Vec::new()
    }

    /// Takes the times of the iterations since the last call, in nanoseconds; none where only blocks are timed.
    #[inline]
    fn times(&self) -> Vec<u64> {
        Vec::new()
    }
}

/// Goes through `count` regions from `first` on with so many threads, of which the caller is one.
///
/// # Errors
/// The first error of any thread. A thread that fails skips what is left, so that the others are not kept waiting for it.
#[inline]
pub(crate) fn run(program: &dyn Program, threads: u32, first: u64, count: u64) -> Result<()> {
    let regions = first..first + count;
    if threads <= 1 {
        return regions.into_iter().try_for_each(|region| {
            program.before(region)?;
            program.work(region, 0)?;
            program.after(region)
        });
    }
    let meeting = Barrier::new(threads as usize);
    let failure = Mutex::new(None);
    std::thread::scope(|scope| {
        for thread in 1..threads {
            let (meeting, failure, regions) = (&meeting, &failure, regions.clone());
            scope.spawn(move || {
                for region in regions {
                    meeting.wait();
                    note(failure, || program.work(region, thread));
                    meeting.wait();
                }
            });
        }
        for region in regions {
            note(&failure, || program.before(region));
            meeting.wait();
            note(&failure, || program.work(region, 0));
            meeting.wait();
            note(&failure, || program.after(region));
        }
    });
    let failure = failure.into_inner().unwrap_or_else(PoisonError::into_inner);
    failure.map_or(Ok(()), Err)
}

/// Does something unless a thread has failed, and keeps the first error.
#[inline]
fn note(failure: &Mutex<Option<Error>>, work: impl FnOnce() -> Result<()>) {
    let has_failed = || failure.lock().unwrap_or_else(PoisonError::into_inner);
    if has_failed().is_some() {
        return;
    }
    if let Err(error) = work() {
        has_failed().get_or_insert(error);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// Counts what was done, and fails in one region of one thread.
    struct Counting {
        threads: u32,
        worked: AtomicU64,
        ended: AtomicU64,
        fails_in: Option<(u64, u32)>,
    }

    impl Counting {
        fn new(threads: u32, fails_in: Option<(u64, u32)>) -> Self {
            Self {
                threads,
                worked: AtomicU64::new(0),
                ended: AtomicU64::new(0),
                fails_in,
            }
        }
    }

    impl Program for Counting {
        fn before(&self, region: u64) -> Result<()> {
            let done = (region - 10) * u64::from(self.threads);
            assert_eq!(self.worked.load(Ordering::Relaxed), done);
            Ok(())
        }

        fn work(&self, region: u64, thread: u32) -> Result<()> {
            self.worked.fetch_add(1, Ordering::Relaxed);
            match self.fails_in {
                Some(place) if place == (region, thread) => Err(Error::Peer("gone".to_owned())),
                _ => Ok(()),
            }
        }

        fn after(&self, region: u64) -> Result<()> {
            let done = (region - 9) * u64::from(self.threads);
            assert_eq!(self.worked.load(Ordering::Relaxed), done);
            self.ended.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
    }

    #[test]
    fn all_threads_go_through_all_regions_together() {
        for threads in [1, 2, 5] {
            let program = Counting::new(threads, None);
            run(&program, threads, 10, 20).unwrap();
            assert_eq!(program.ended.into_inner(), 20);
        }
    }

    #[test]
    fn a_failure_ends_the_run_and_keeps_nobody_waiting() {
        for (threads, place) in [(1, (12, 0)), (3, (12, 2)), (3, (10, 0))] {
            let program = Counting::new(threads, Some(place));
            let error = run(&program, threads, 10, 20).unwrap_err();
            assert_eq!(error.to_string(), "gone");
            assert_eq!(program.ended.into_inner(), place.0 - 10);
        }
    }
}
