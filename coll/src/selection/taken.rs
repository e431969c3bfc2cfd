//! What a group takes by the setting `coll-algorithm`, for reports.
//!
//! An algorithm that is named suits some operations and not others: operands that keep their order, or more members than a board has.
//! These go by the table, as with other libraries: a program that is measured with an algorithm runs to its end all the same.

use std::fmt;

use tagwire_base::config::parse::format_bytes;

use super::Selection;
use super::forced::SETTING;
use crate::algorithms::Collective::{Allreduce, Broadcast, Reduce};
use crate::algorithms::{ALGORITHMS, Algorithm, Collective, Group, Needs, ON_BOARD};

/// An algorithm that the setting names, and what a group takes where it does not suit.
#[derive(Debug)]
pub(crate) struct Taken {
    algorithm: &'static Algorithm,
    size: usize,
    /// What all operations take, and why.
    instead: Option<Other>,
    /// What some operations take.
    but: Vec<Other>,
}

/// What is taken in place of an algorithm, and where or why.
#[derive(Debug)]
struct Other {
    why: &'static str,
    taken: String,
}

/// What a group lacks for an algorithm that it cannot take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lack {
    /// Its members are too many, or on the wrong hosts.
    Places(&'static str),
    /// Its members have made no board.
    Board,
    /// Its members may not read each other's memory.
    Reads,
}

impl Lack {
    const fn why(self) -> &'static str {
        match self {
            Self::Places(why) => why,
            Self::Board => "its members share no board",
            Self::Reads => "its members cannot read each other's memory",
        }
    }
}

/// As a line of a report.
impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, name) = (self.algorithm.collective, self.algorithm.name);
        write!(f, "coll: {what}, {} ranks: ", self.size)?;
        match &self.instead {
            Some(Other { why, taken }) => {
                write!(f, "{taken}, in place of {name} ({SETTING}): {why}")?
            }
            None => write!(f, "{name} ({SETTING})")?,
        }
        let mut but = self.but.iter();
        but.try_for_each(|Other { why, taken }| write!(f, "; {why}: {taken}"))
    }
}

/// The choice of algorithms of a group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Choosing<'s> {
    selection: &'s Selection,
    group: Group,
}

impl<'s> Choosing<'s> {
    pub(crate) const fn new(selection: &'s Selection, group: Group) -> Self {
        Self { selection, group }
    }

    /// Returns what the group takes by the algorithms that the setting names; `found` returns what it has found that it lacks for one.
    pub(crate) fn taken(self, found: impl Fn(&Algorithm) -> Option<Lack>) -> Vec<Taken> {
        let one = |algorithm| {
            let lack = self.lacks(algorithm).or_else(|| found(algorithm));
            Taken {
                algorithm,
                size: self.group.size,
                instead: lack.map(|lack| self.instead_of(algorithm, lack)),
                but: match lack {
                    Some(_) => Vec::new(),
                    None => self.beside(algorithm),
                },
            }
        };
        self.selection.forced().map(one).collect()
    }

    /// Returns what the group lacks for an algorithm, as far as that is known without a look.
    fn lacks(self, algorithm: &Algorithm) -> Option<Lack> {
        let why = match algorithm.needs {
            Needs::Board if !ON_BOARD.contains(&self.group.size) => "a board has 2 to 8 members",
            Needs::Board if !self.selection.on_one_host => "a board is on one host",
            Needs::Levels if !self.group.has_levels => "it needs hosts with several members",
            _ => return None,
        };
        Some(Lack::Places(why))
    }

    fn instead_of(self, algorithm: &Algorithm, lack: Lack) -> Other {
        let on_board = before(algorithm).filter(|_| lack == Lack::Reads);
        let taken = on_board.map(|it| it.name.to_owned());
        Other {
            why: lack.why(),
            taken: taken.unwrap_or_else(|| self.told(algorithm.collective, false, true)),
        }
    }

    /// Returns what operations take that an algorithm does not suit, though it does their group.
    fn beside(self, algorithm: &Algorithm) -> Vec<Other> {
        let what = algorithm.collective;
        let mut others = Vec::new();
        let has_board = self.selection.on_one_host && ON_BOARD.contains(&self.group.size);
        let taken = self.told(what, has_board, false);
        // Two operands are one tree.
        let is_one_tree = algorithm.needs == Needs::Board && self.group.size == 2;
        if what.reduces() && taken != algorithm.name && !is_one_tree {
            let why = match self.selection.is_fixed {
                true => "of operands in the one tree",
                false => "of operands in order",
            };
            others.push(Other { why, taken });
        }
        if algorithm.needs == Needs::Board {
            let has_blocks = !matches!(what, Allreduce | Broadcast | Reduce);
            let why = match has_blocks {
                true => "of unequal blocks, or nonblocking beyond a line",
                false => "nonblocking beyond a line",
            };
            let taken = self.told(what, false, true);
            others.push(Other { why, taken });
        }
        others
    }

    /// Returns what it takes by length, in words.
    fn told(self, what: Collective, has_board: bool, may_reorder: bool) -> String {
        let ranges = self
            .selection
            .ranges_of(what, self.group, has_board, may_reorder);
        let ranges = ranges.iter().map(|(from, name)| match from {
            0 => (*name).to_owned(),
            from => format!("{name} from {} on", format_bytes(*from as u64)),
        });
        ranges.collect::<Vec<_>>().join(", ")
    }
}

/// Returns the algorithm by a board that is taken where members may not read each other's memory.
fn before(algorithm: &Algorithm) -> Option<&'static Algorithm> {
    let own = |it: &&Algorithm| it.collective == algorithm.collective && it.needs == Needs::Board;
    let before = ALGORITHMS
        .iter()
        .filter(own)
        .take_while(|it| *it != algorithm);
    before.filter(|it| !it.reads_memory).last()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_in_place_of_an_algorithm_is_told() {
        let told = |names: &str, size: usize, fixed: bool, found: Option<Lack>| {
            let selection = Selection::parse(names).unwrap().fixed(fixed);
            let selection = selection.on_one_host(true);
            let taken = Choosing::new(&selection, size.into()).taken(|_| found);
            taken
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join("\n")
        };
        assert_eq!(told("", 2, false, None), "");
        assert_eq!(
            told("broadcast:binomial", 2, false, None),
            "coll: broadcast, 2 ranks: binomial (coll-algorithm)"
        );
        let line = told("allreduce:ring", 16, false, None);
        let start = "coll: allreduce, 16 ranks: ring (coll-algorithm); of operands in order: ";
        assert!(line.starts_with(start), "{line}");
        assert!(
            line[start.len()..].starts_with("recursive-doubling"),
            "{line}"
        );
        let line = told("allreduce:board", 4, true, None);
        assert!(
            line.contains("; of operands in the one tree: recursive-doubling"),
            "{line}"
        );
        assert!(
            line.contains("; nonblocking beyond a line: recursive-doubling"),
            "{line}"
        );
        let line = told("allreduce:board", 16, false, None);
        let start = "coll: allreduce, 16 ranks: recursive-doubling";
        let end = "in place of board (coll-algorithm): a board has 2 to 8 members";
        assert!(line.starts_with(start) && line.ends_with(end), "{line}");
        let line = told("allreduce:single-copy", 4, false, Some(Lack::Reads));
        let expected = "coll: allreduce, 4 ranks: board-parts, in place of single-copy (coll-algorithm): its members cannot read each other's memory";
        assert_eq!(line, expected);
        let line = told("allreduce:single-copy", 4, false, Some(Lack::Board));
        assert!(
            line.starts_with("coll: allreduce, 4 ranks: recursive-doubling"),
            "{line}"
        );
        // One line for an operation, whatever is named behind.
        let line = told("allreduce:ring,allreduce:rabenseifner", 16, false, None);
        assert!(
            line.ends_with("of operands in order: rabenseifner"),
            "{line}"
        );
    }
}
