//! Short data of puts that follow each other in the memory of a target: it is written as one.
//!
//! A put into memory that is not mapped is a call of the system. Programs that put value by value up to a flush, each behind the last,
//! so make one of many.

use crate::error::Result;
use crate::lock::Lock;
use crate::object::window::accesses::Parts;
use crate::raw::{In, StagingBuffer};

/// Longer data is written at once: its copy would cost more than a call of the system.
pub(super) const SHORT: usize = 512;

/// Most bytes of a run.
const MOST: usize = 16 * 1024;

/// The run that data is added to.
#[derive(Debug, Default)]
pub(super) struct Gathered(Lock<Option<Run>>);

impl Gathered {
    /// Adds data for a position of a member's memory. Has `write` write the run before, where it does not follow that.
    ///
    /// # Errors
    /// Those of `write`.
    pub(super) fn add(
        &self,
        member: usize,
        (parts, start): (&Parts, i64),
        (data, bytes): (In, usize),
        write: impl FnOnce(Run) -> Result,
    ) -> Result {
        let mut gathered = self.0.lock();
        let range = (start, start + bytes as i64);
        let before = match &mut *gathered {
            Some(run) if run.takes(member, start, bytes) && run.parts.have(range) => {
                run.append(data, bytes);
                None
            }
            other => other.replace(Run::new(member, (parts, start), (data, bytes))),
        };
        // Under the lock: a flush of another thread finds it here, or under way.
        before.map_or(Ok(()), write)
    }

    /// Has `write` write the run of a member that is meant.
    ///
    /// # Errors
    /// Those of `write`.
    pub(super) fn spill(
        &self,
        is_meant: impl Fn(usize) -> bool,
        write: impl FnOnce(Run) -> Result,
    ) -> Result {
        let mut gathered = self.0.lock();
        let run = gathered.take_if(|run| is_meant(run.member));
        run.map_or(Ok(()), write)
    }
}

/// Data for a range of a target's memory.
#[derive(Debug)]
pub(super) struct Run {
    member: usize,
    parts: Parts,
    /// The position of the first byte.
    start: i64,
    data: Vec<u8>,
}

impl Run {
    /// Returns the run of the first data.
    fn new(member: usize, (parts, start): (&Parts, i64), (data, bytes): (In, usize)) -> Self {
        let parts = parts.clone();
        let data = data.to_vec(bytes);
        Self {
            member,
            parts,
            start,
            data,
        }
    }

    pub(super) const fn member(&self) -> usize {
        self.member
    }

    /// Returns whether data at a position is the next of this run.
    const fn takes(&self, member: usize, position: i64, bytes: usize) -> bool {
        let length = self.data.len();
        member == self.member && position == self.start + length as i64 && length + bytes <= MOST
    }

    fn append(&mut self, data: In, bytes: usize) {
        data.append(bytes, &mut self.data);
    }

    /// Returns where it begins, and the data.
    pub(super) fn data(&self) -> (i64, &[u8]) {
        (self.start, &self.data)
    }

    /// Returns the member, its regions, the range of positions there, and the data.
    pub(super) fn into_parts(self) -> (usize, Parts, (i64, i64), StagingBuffer) {
        let range = (self.start, self.start + self.data.len() as i64);
        (
            self.member,
            self.parts,
            range,
            StagingBuffer::from(self.data),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_takes_what_follows_it_up_to_its_most() {
        let (parts, values) = (Parts::from(Vec::new()), [7_u8; SHORT]);
        let data = In::over(&values);
        let mut run = Run::new(2, (&parts, 100), (data, 8));
        assert!(run.takes(2, 108, 8));
        assert!(!run.takes(2, 100, 8), "the same place again");
        assert!(!run.takes(2, 116, 8), "a gap");
        assert!(!run.takes(1, 108, 8), "another member");
        run.append(data, 8);
        let mut end = 116;
        while run.takes(2, end, SHORT) {
            run.append(data, SHORT);
            end += SHORT as i64;
        }
        let (member, _, range, data) = run.into_parts();
        assert_eq!((member, range), (2, (100, end)));
        let bytes = (end - 100) as usize;
        assert!((MOST - SHORT..=MOST).contains(&bytes));
        assert_eq!(data.address().read().to_vec(bytes), vec![7; bytes]);
    }
}
