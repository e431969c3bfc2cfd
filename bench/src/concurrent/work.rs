//! Callers: the process itself, or threads that are started once and wait for orders between blocks.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier};
use std::thread::Scope;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::port::Port;
use crate::time::nanoseconds;

/// A process or a thread that communicates.
pub(crate) trait Caller<P: Port>: Send {
    /// Does `count` iterations, and returns how long they took; `None` on a side whose clock does not count.
    fn block(&mut self, port: &P, size: usize, count: u64) -> Result<Option<Duration>>;
}

/// What callers took for one block.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Tally {
    /// How many callers' clocks counted.
    pub callers: u64,
    /// The longest time, and all times together, in nanoseconds.
    pub longest: u64,
    pub sum: u64,
    /// Blocks per nanosecond, of all callers together.
    pub rate: f64,
}

impl Tally {
    #[inline]
    fn add_time(&mut self, time: Option<Duration>) {
        let Some(time) = time else { return };
        let time = nanoseconds(time).max(1);
        self.add(&Self {
            callers: 1,
            longest: time,
            sum: time,
            rate: 1.0 / time as f64,
        });
    }

    #[inline]
    fn add(&mut self, other: &Self) {
        self.callers += other.callers;
        self.longest = self.longest.max(other.longest);
        self.sum += other.sum;
        self.rate += other.rate;
    }

    /// What all ranks told.
    #[inline]
    pub(crate) fn of(all: &[Self]) -> Self {
        let mut sum = Self::default();
        all.iter().for_each(|one| sum.add(one));
        sum
    }
}

/// The callers of a process.
pub(crate) trait Team {
    /// Has each do `count` iterations.
    fn block(&mut self, size: usize, count: u64) -> Result<Tally>;
}

/// The process, with its one thread.
pub(crate) struct Alone<'a, P, C> {
    pub port: &'a P,
    pub caller: C,
}

impl<P: Port, C: Caller<P>> Team for Alone<'_, P, C> {
    #[inline]
    fn block(&mut self, size: usize, count: u64) -> Result<Tally> {
        let mut tally = Tally::default();
        tally.add_time(self.caller.block(self.port, size, count)?);
        Ok(tally)
    }
}

/// Threads, which end with this value.
pub(crate) struct Workers {
    orders: Vec<Sender<(usize, u64)>>,
    ends: Receiver<Result<Option<Duration>>>,
}

impl Workers {
    /// Starts a thread for each of `callers`. They begin each block behind a barrier, where they begin `together`.
    pub(crate) fn start<'scope, P, C>(
        scope: &'scope Scope<'scope, '_>,
        port: &'scope P,
        callers: Vec<C>,
        together: bool,
    ) -> Self
    where
        P: Port + Sync,
        C: Caller<P> + 'scope,
    {
        let (ended, ends) = channel();
        let meeting = Arc::new(Barrier::new(callers.len()));
        let start = |mut caller: C| {
            let (order, orders) = channel::<(usize, u64)>();
            let (ended, meeting) = (ended.clone(), Arc::clone(&meeting));
            scope.spawn(move || {
                for (size, count) in orders {
                    if together {
                        meeting.wait();
                    }
                    if ended.send(caller.block(port, size, count)).is_err() {
                        return;
                    }
                }
            });
            order
        };
        Self {
            orders: callers.into_iter().map(start).collect(),
            ends,
        }
    }
}

impl Team for Workers {
    #[inline]
    fn block(&mut self, size: usize, count: u64) -> Result<Tally> {
        let gone = || Error::Peer("a thread panicked".to_owned());
        for worker in &self.orders {
            worker.send((size, count)).map_err(|_| gone())?;
        }
        let mut tally = Tally::default();
        let mut failure = None;
        // All are waited for: those that are well go on with their partners.
        for _ in &self.orders {
            match self.ends.recv().map_err(|_| gone())? {
                Ok(time) => tally.add_time(time),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        failure.map_or(Ok(tally), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tallies_of_ranks_add_up() {
        let mut one = Tally::default();
        one.add_time(Some(Duration::from_nanos(100)));
        one.add_time(None);
        one.add_time(Some(Duration::from_nanos(400)));
        let all = Tally::of(&[one, Tally::default()]);
        assert_eq!(all, one);
        assert_eq!((all.callers, all.longest, all.sum), (2, 400, 500));
        assert!((all.rate - 0.0125).abs() < 1e-12);
    }
}
