//! From the times of algorithms to the rows of a table.

use tagwire_coll::{Algorithm, Collective, Place, Row, Selection, Table};

use crate::stats::Summary;

/// An algorithm that is not taken yet has to be faster by this part at least.
const LEAST_GAIN: f64 = 0.03;

/// The times of an operation's algorithms in groups of one size.
#[derive(Debug, Clone)]
pub(super) struct Times {
    pub collective: Collective,
    pub ranks: usize,
    /// As the table counts them, the shortest first.
    pub lengths: Vec<usize>,
    pub algorithms: Vec<&'static Algorithm>,
    /// By algorithm and length, a value for each launch.
    pub samples: Vec<Vec<Vec<f64>>>,
}

impl Times {
    /// Returns what is known of an algorithm at a length.
    pub(super) fn summary(&self, algorithm: usize, length: usize) -> Option<Summary> {
        Summary::of(&self.samples[algorithm][length])
    }

    /// Returns the number of the algorithm that is taken at each length: that of the table in the tree, which `in_the_tree` has
    /// for a length, or the one of the next shorter length where that is another already, unless one is faster by more than its
    /// own spread and the other's.
    pub(super) fn taken(&self, in_the_tree: impl Fn(usize) -> &'static str) -> Vec<usize> {
        let named = |name: &str| self.algorithms.iter().position(|it| it.name == name);
        let (mut taken, mut differs) = (Vec::new(), false);
        for (place, length) in self.lengths.iter().enumerate() {
            let default = named(in_the_tree(*length)).unwrap_or(0);
            let current = match taken.last() {
                Some(last) if differs => *last,
                _ => default,
            };
            let all = 0..self.algorithms.len();
            let known = all.filter_map(|it| Some((it, self.summary(it, place)?)));
            let best = known.min_by(|(_, a), (_, b)| a.median.total_cmp(&b.median));
            let own = self.summary(current, place);
            let now = match (best, own) {
                (Some((other, best)), Some(own)) if is_faster(&best, &own) => other,
                (Some((other, _)), None) => other,
                _ => current,
            };
            differs = now != default;
            taken.push(now);
        }
        taken
    }
}

fn is_faster(one: &Summary, other: &Summary) -> bool {
    let spread = |it: &Summary| (it.max - it.min) / 2.0;
    let margin = spread(one)
        .max(spread(other))
        .max(LEAST_GAIN * other.median);
    one.median + margin < other.median
}

/// Returns the rows by which a table takes what is fastest at all lengths that were measured, and no more of them than that
/// takes.
pub(super) fn rows(all: &[Times], place: Place) -> Vec<Row> {
    let in_the_tree = selection(&[], place);
    let (mut rows, mut wanted) = (Vec::new(), Vec::new());
    for times in all {
        let (what, ranks) = (times.collective, times.ranks);
        let taken = times.taken(|length| in_the_tree.choose(what, ranks, length, true).name);
        for (number, algorithm) in taken.iter().enumerate() {
            let algorithm = times.algorithms[*algorithm];
            let length = times.lengths[number];
            if number == 0 || taken[number - 1] != taken[number] {
                let from = if number == 0 { 0 } else { length };
                rows.push(Row::new(algorithm, ranks, from).at(place));
            }
            wanted.push((what, ranks, length, algorithm.name));
        }
    }
    let is_right = |rows: &[Row]| {
        let selection = selection(rows, place);
        let mut wanted = wanted.iter();
        wanted.all(|(what, ranks, length, name)| {
            selection.choose(*what, *ranks, *length, true).name == *name
        })
    };
    // A row may be in the way of the tree's until another is gone.
    let without = |rows: &[Row], number: usize| {
        let mut fewer = rows.to_vec();
        fewer.remove(number);
        fewer
    };
    while let Some(fewer) = (0..rows.len())
        .rev()
        .map(|number| without(&rows, number))
        .find(|fewer| is_right(fewer))
    {
        rows = fewer;
    }
    rows
}

fn selection(rows: &[Row], place: Place) -> Selection {
    let table = Table::default().with(rows);
    Selection::default()
        .with_table(table)
        .on_one_host(place == Place::Host)
}

#[cfg(test)]
mod tests {
    use tagwire_coll::ALGORITHMS;

    use super::*;

    /// Three launches of each time, with `spread` between the least and the greatest.
    fn times(ranks: usize, spread: f64, of: &[(&str, [f64; 4])]) -> Times {
        let around = |time: &f64| vec![time - spread / 2.0, *time, time + spread / 2.0];
        let algorithm = |name: &str| {
            let mut all = ALGORITHMS.iter();
            let is_it = |it: &&Algorithm| it.collective == Collective::Allreduce && it.name == name;
            all.find(is_it).unwrap()
        };
        Times {
            collective: Collective::Allreduce,
            ranks,
            lengths: vec![8, 1024, 65_536, 1 << 20],
            algorithms: of.iter().map(|(name, _)| algorithm(name)).collect(),
            samples: of
                .iter()
                .map(|(_, times)| times.iter().map(around).collect())
                .collect(),
        }
    }

    const DOUBLING: &str = "recursive-doubling";

    fn text(rows: &[Row]) -> Vec<(&str, usize, usize)> {
        let short = |row: &Row| (row.algorithm.name, row.ranks, row.bytes);
        rows.iter().map(short).collect()
    }

    #[test]
    fn what_the_tree_says_already_has_no_row() {
        let same = times(
            2,
            0.1,
            &[(DOUBLING, [1., 2., 9., 90.]), ("ring", [2., 3., 7., 50.])],
        );
        assert!(rows(&[same], Place::Host).is_empty());
    }

    #[test]
    fn a_change_has_to_win_by_more_than_the_spread() {
        let both = [
            (DOUBLING, [1.0, 2.0, 9.0, 90.0]),
            ("ring", [2.0, 1.5, 7.0, 50.0]),
        ];
        let taken = |spread, tree: [&'static str; 4]| {
            let in_the_tree = |length: usize| match length {
                8 => tree[0],
                1024 => tree[1],
                65_536 => tree[2],
                _ => tree[3],
            };
            times(2, spread, &both).taken(in_the_tree)
        };
        assert_eq!(taken(0.2, [DOUBLING; 4]), [0, 1, 1, 1]);
        assert_eq!(taken(1.2, [DOUBLING; 4]), [0, 0, 1, 1]);
        assert_eq!(taken(1.2, ["ring"; 4]), [0, 0, 1, 1]);
        // Where nothing is certain, the tree's choice stays, with its changes.
        assert_eq!(
            taken(90.0, [DOUBLING, "ring", "ring", DOUBLING]),
            [0, 1, 1, 0]
        );
    }

    #[test]
    fn neighbours_are_merged_and_each_group_has_its_own() {
        let two = times(2, 0.1, &[(DOUBLING, [3.; 4]), ("ring", [1.; 4])]);
        let four = times(4, 0.1, &[(DOUBLING, [1., 1., 1., 5.]), ("ring", [3.; 4])]);
        let found = rows(&[two.clone(), four], Place::Host);
        let expected = [("ring", 2, 0), (DOUBLING, 4, 0), ("ring", 4, 1 << 20)];
        assert_eq!(text(&found), expected);
        assert!(found.iter().all(|row| row.place == Some(Place::Host)));
        // What holds for two holds for four.
        let four = Times {
            ranks: 4,
            ..two.clone()
        };
        assert_eq!(text(&rows(&[two, four], Place::Hosts)), [("ring", 2, 0)]);
    }

    #[test]
    fn what_was_not_measured_is_not_taken() {
        let mut some = times(2, 0.1, &[(DOUBLING, [3.; 4]), ("ring", [1.; 4])]);
        some.samples[1] = vec![Vec::new(); 4];
        assert_eq!(some.taken(|_| "ring"), [0; 4]);
    }
}
