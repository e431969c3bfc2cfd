//! The measuring loops of `tagwire-bench`, compiled here: the profiles optimise this crate, and not all of that one.

use tagwire_bench::Loops;

/// Generic code is compiled where its types are.
enum Here {}

/// Returns what the ranks of a benchmark do.
///
/// It is not inlined: what is would be compiled by its caller, with all that it calls.
#[inline(never)]
#[must_use]
pub fn loops() -> Loops {
    Loops::of_crate::<Here>()
}

/// Returns the two cores that the command line of an example names; 0 and 1 where it names none.
#[must_use]
pub fn cores() -> [u32; 2] {
    let mut cores = std::env::args()
        .skip(1)
        .map(|text| text.parse().unwrap_or(0));
    [cores.next().unwrap_or(0), cores.next().unwrap_or(1)]
}
