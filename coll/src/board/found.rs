//! What trials have found, for reports: the groups of a rank note it when a trial is over.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::algorithms::{Algorithm, Collective};

/// An algorithm, and the median time of a call by it, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Timed {
    pub(super) algorithm: &'static Algorithm,
    pub(super) nanos: u64,
}

/// How the algorithms of an operation stand to each other after a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Standing {
    /// The one that is in use.
    pub(super) known: Timed,
    /// The best of the others.
    pub(super) next: Timed,
}

/// What was tried: an operation of groups of so many members, on lengths of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Tried {
    size: usize,
    /// The place in [`Collective::ALL`].
    operation: usize,
    class: u32,
}

/// What the last trial of each kind has found. It does not grow with the number of groups: those of one size share a place.
#[derive(Debug)]
pub(crate) struct Found(Mutex<Vec<(Tried, Standing)>>);

/// Kinds of trials that a program has no more of, mostly: a call in which a trial ends allocates nothing.
const KINDS: usize = 32;

impl Default for Found {
    fn default() -> Self {
        Self(Mutex::new(Vec::with_capacity(KINDS)))
    }
}

impl Found {
    /// Notes how the algorithms stand in a group of `size` members, for lengths of a class.
    #[cold]
    pub(super) fn note(&self, size: usize, class: u32, standing: Standing) {
        let operation = standing.known.algorithm.collective as usize;
        let tried = Tried {
            size,
            operation,
            class,
        };
        let mut all = self.all();
        match all.binary_search_by_key(&tried, |(tried, _)| *tried) {
            Ok(at) => all[at].1 = standing,
            Err(at) => all.insert(at, (tried, standing)),
        }
    }

    /// Forgets what a group of `size` members goes by that cannot read each other's memory any more.
    #[cold]
    pub(super) fn forget_reads(&self, size: usize) {
        self.all()
            .retain(|(tried, it)| tried.size != size || !it.known.algorithm.reads_memory);
    }

    /// Adds a line for each kind of trial, with what is in use and the best of the others.
    pub(crate) fn tell(&self, out: &mut Vec<String>) {
        let all = self.all();
        out.extend(all.iter().map(|(tried, it)| {
            let operation = Collective::ALL[tried.operation];
            let (least, most) = (kib(tried.class), kib(tried.class + 1) - 1);
            let Tried { size, .. } = tried;
            let Standing { known, next } = it;
            format!(
                "coll: {operation}, {least} to {most} KiB, {size} ranks: {known}; next best {next}"
            )
        }));
    }

    /// What was found, in order.
    fn all(&self) -> MutexGuard<'_, Vec<(Tried, Standing)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the least length of a class.
const fn kib(class: u32) -> u64 {
    (1 << class) >> 10
}

impl fmt::Display for Timed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} ns", self.algorithm.name, self.nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::ALGORITHMS;

    fn standing(names: [&str; 2]) -> Standing {
        let [known, next] = names.map(|name| {
            let mut all = ALGORITHMS.iter();
            let algorithm = all.find(|it| it.to_string() == name).unwrap();
            let nanos = 100 + name.len() as u64;
            Timed { algorithm, nanos }
        });
        Standing { known, next }
    }

    fn told(found: &Found) -> Vec<String> {
        let mut lines = Vec::new();
        found.tell(&mut lines);
        lines
    }

    #[test]
    fn each_kind_of_trial_has_a_line_of_its_last() {
        let found = Found::default();
        let copy = standing(["allreduce:single-copy", "allreduce:board"]);
        found.note(
            3,
            16,
            standing(["allgather:board", "allgather:single-copy"]),
        );
        found.note(
            2,
            16,
            standing(["allreduce:board", "allreduce:board-parts"]),
        );
        found.note(2, 16, copy);
        found.note(2, 13, copy);
        let line = |class: &str| {
            format!(
                "coll: allreduce, {class} KiB, 2 ranks: single-copy, 121 ns; next best board, 115 ns"
            )
        };
        let other =
            "coll: allgather, 64 to 127 KiB, 3 ranks: board, 115 ns; next best single-copy, 121 ns";
        let all = [line("8 to 15"), line("64 to 127"), other.to_owned()];
        assert_eq!(told(&found), all);
        found.forget_reads(3);
        assert_eq!(told(&found), all);
        found.forget_reads(2);
        assert_eq!(told(&found), [other]);
    }
}
