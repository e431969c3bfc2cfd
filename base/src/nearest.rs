//! The nearest right name to a mistyped one.

/// The name of `known` that `given` was most likely meant to be, or `None` when none is close:
/// when more than half of the longer name would have to change.
///
/// Case does not count, and the beginning of a name counts as close to it. Of several that are
/// equally close the first is taken.
///
/// ```
/// use tagwire_base::nearest::nearest;
///
/// assert_eq!(nearest("latnecy", ["bandwidth", "latency"]), Some("latency"));
/// assert_eq!(nearest("lat", ["bandwidth", "latency"]), Some("latency"));
/// assert_eq!(nearest("xyzzy", ["bandwidth", "latency"]), None);
/// ```
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let given: Vec<char> = given.to_lowercase().chars().collect();
    let mut best: Option<(usize, &str)> = None;
    for name in known {
        let candidate: Vec<char> = name.to_lowercase().chars().collect();
        let Some(score) = closeness(&given, &candidate) else {
            continue;
        };
        if best.is_none_or(|(least, _)| score < least) {
            best = Some((score, name));
        }
    }
    best.map(|(_, name)| name)
}

/// How many characters must be put in, left out, replaced, or swapped with their neighbour to
/// turn one name into the other.
///
/// ```
/// use tagwire_base::nearest::distance;
///
/// assert_eq!(distance("shm", "shn"), 1);
/// assert_eq!(distance("shm", "smh"), 1);
/// assert_eq!(distance("", "shm"), 3);
/// ```
#[must_use]
pub fn distance(from: &str, to: &str) -> usize {
    let from: Vec<char> = from.chars().collect();
    let to: Vec<char> = to.chars().collect();
    edits(&from, &to)
}

/// The shortest beginning of a name that is taken for the name.
const SHORTEST_PREFIX: usize = 2;

fn closeness(given: &[char], candidate: &[char]) -> Option<usize> {
    if given.len() >= SHORTEST_PREFIX && candidate.starts_with(given) {
        return Some(usize::from(candidate.len() > given.len()));
    }
    let edits = edits(given, candidate);
    (2 * edits <= given.len().max(candidate.len())).then_some(edits)
}

/// Optimal string alignment, over three rows of the table.
fn edits(from: &[char], to: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.iter().enumerate() {
        let mut row = Vec::with_capacity(to.len() + 1);
        row.push(i + 1);
        for (j, b) in to.iter().enumerate() {
            let replaced = above[j] + usize::from(a != b);
            let mut least = replaced.min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == to[j - 1] && from[i - 1] == *b {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[to.len()]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_closest_of_several_is_taken() {
        let names = ["eager-limit", "chunk-size", "engine", "log"];
        assert_eq!(nearest("eager-limt", names), Some("eager-limit"));
        assert_eq!(nearest("EAGER-LIMIT", names), Some("eager-limit"));
        assert_eq!(nearest("engin", names), Some("engine"));
        assert_eq!(nearest("lgo", names), Some("log"));
        assert_eq!(nearest("", names), None);
        assert_eq!(nearest("anything", []), None);
    }

    #[test]
    fn a_right_name_wins_over_one_that_it_begins() {
        assert_eq!(nearest("idle", ["idle-time", "idle"]), Some("idle"));
    }

    proptest! {
        #[test]
        fn distance_is_symmetric_and_bounded(a in "[a-c]{0,8}", b in "[a-c]{0,8}") {
            let there = distance(&a, &b);
            prop_assert_eq!(there, distance(&b, &a));
            prop_assert_eq!(there == 0, a == b);
            prop_assert!(there <= a.len().max(b.len()));
            prop_assert!(there >= a.len().abs_diff(b.len()));
        }

        #[test]
        fn one_edit_is_one_away(name in "[a-z]{4,12}", at in 0usize..4, with in "[A-Z]") {
            let mut left_out = name.clone();
            left_out.remove(at);
            prop_assert_eq!(distance(&name, &left_out), 1);
            let mut replaced = left_out.clone();
            replaced.insert_str(at, &with);
            prop_assert_eq!(distance(&name, &replaced), 1);
            prop_assert_eq!(nearest(&left_out, [name.as_str()]), Some(name.as_str()));
        }
    }
}
