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

/// The functions of an operation's algorithms, each with its name.
pub(crate) struct Functions<F: 'static>(&'static [(&'static str, F)]);

impl<F: Copy> Functions<F> {
    /// Returns the functions of an operation. To be called when it is compiled.
    pub(crate) const fn of(collective: Collective, list: &'static [(&'static str, F)]) -> Self {
        let (mut at, mut count) = (0, 0);
        while at < ALGORITHMS.len() {
            let algorithm = &ALGORITHMS[at];
            let is_own = algorithm.collective as usize == collective as usize;
            if is_own && !matches!(algorithm.needs, Needs::Board) {
                assert!(count < list.len(), "an algorithm has no function");
                assert!(
                    is_equal(list[count].0, algorithm.name),
                    "functions are in the order of ALGORITHMS"
                );
                count += 1;
            }
            at += 1;
        }
        assert!(count == list.len(), "a function is of no algorithm");
        Self(list)
    }

    /// Returns the function of an algorithm.
    ///
    /// # Errors
    /// Where it goes by a board.
    pub(crate) fn get(&self, algorithm: &Algorithm) -> Result<F> {
        let by_messages = algorithm.needs != Needs::Board;
        let found = self.0.get(algorithm.place).filter(|_| by_messages);
        let none = || Error::Argument(format!("{algorithm} does not go by messages"));
        found.map(|(_, function)| *function).ok_or_else(none)
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
