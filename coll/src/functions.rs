//! Algorithms by messages as functions: each operation's file has those of its own, at the places that their names have among
//! [`ALGORITHMS`]. What is missing there, or in another place, does not compile.

use std::future::Future;
use std::pin::Pin;

use crate::algorithms::{ALGORITHMS, Algorithm, Collective, Needs};
use crate::error::{Error, Result};

/// The steps of a member, under way.
pub(crate) type Steps<'a> = Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;

/// Makes a function that returns [`Steps`] of one that is `async`: `steps!(ring[call, reduction, data])`.
macro_rules! steps {
    ($steps:path[$($argument:ident),*]) => {
        |$($argument),*| Box::pin($steps($($argument),*))
    };
}
pub(crate) use steps;

/// The functions of an operation's algorithms.
pub(crate) struct Functions<F, const N: usize> {
    list: [F; N],
}

impl<F: Copy, const N: usize> Functions<F, N> {
    /// Returns the functions of an operation, which are given with their names. To be called when it is compiled.
    pub(crate) const fn of(collective: Collective, named: [(&str, F); N]) -> Self {
        let (mut list, mut at, mut count) = ([named[0].1; N], 0, 0);
        while at < ALGORITHMS.len() {
            let algorithm = &ALGORITHMS[at];
            let is_own = algorithm.collective as usize == collective as usize;
            if is_own && !matches!(algorithm.needs, Needs::Board) {
                assert!(algorithm.place < N, "an algorithm has no function");
                let (name, function) = named[algorithm.place];
                assert!(
                    is_equal(name, algorithm.name),
                    "functions are in the order of ALGORITHMS"
                );
                list[algorithm.place] = function;
                count += 1;
            }
            at += 1;
        }
        assert!(count == N, "a function is of no algorithm");
        Self { list }
    }

    /// Returns the function of an algorithm.
    ///
    /// # Errors
    /// Where it goes by a board.
    pub(crate) fn get(&self, algorithm: &Algorithm) -> Result<F> {
        let by_messages = algorithm.needs != Needs::Board;
        let found = self.list.get(algorithm.place).filter(|_| by_messages);
        let none = || Error::Argument(format!("{algorithm} does not go by messages"));
        found.copied().ok_or_else(none)
    }
}

const fn is_equal(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}
