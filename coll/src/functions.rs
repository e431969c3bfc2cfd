//! Algorithms as functions: each operation's file has those of its own, at the places that their names have among
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

/// The functions of an operation's algorithms by messages, or of those by a board, each with its name.
pub(crate) struct Functions<F: 'static> {
    list: &'static [(&'static str, F)],
    by_board: bool,
}

impl<F: Copy> Functions<F> {
    /// Returns the functions of an operation that go by messages. To be called when it is compiled.
    pub(crate) const fn of(collective: Collective, list: &'static [(&'static str, F)]) -> Self {
        Self::checked(collective, list, false)
    }

    /// Returns those that go by a board. To be called when it is compiled.
    pub(crate) const fn by_board(
        collective: Collective,
        list: &'static [(&'static str, F)],
    ) -> Self {
        Self::checked(collective, list, true)
    }

    const fn checked(
        collective: Collective,
        list: &'static [(&'static str, F)],
        by_board: bool,
    ) -> Self {
        let (mut at, mut count) = (0, 0);
        while at < ALGORITHMS.len() {
            let algorithm = &ALGORITHMS[at];
            let is_own = algorithm.collective as usize == collective as usize;
            if is_own && matches!(algorithm.needs, Needs::Board) == by_board {
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
        Self { list, by_board }
    }

    /// Returns the function of an algorithm.
    ///
    /// # Errors
    /// Where it goes the other way: by a board, or by messages.
    #[inline]
    pub(crate) fn get(&self, algorithm: &Algorithm) -> Result<F> {
        let is_own = (algorithm.needs == Needs::Board) == self.by_board;
        let found = self.list.get(algorithm.place).filter(|_| is_own);
        let none = || {
            let way = ["messages", "a board"][usize::from(self.by_board)];
            Error::Argument(format!("{algorithm} does not go by {way}"))
        };
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
