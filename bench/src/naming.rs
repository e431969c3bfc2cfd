//! Names of series: as few variables as tell them apart. `compare` and the reports have the same.

use std::collections::{BTreeMap, BTreeSet};

/// The variable that says which file a series comes from, where there are several. No key of a file has it as a
/// name: it has a space.
pub const FILE: &str = "in file";

/// The variable of message sizes.
pub const SIZE: &str = "size";

/// In which order variables are tried: what a reader expects first comes first. Others follow by name.
const ORDER: [&str; 10] = [
    "transport",
    "library",
    "layer",
    "pml",
    "engine",
    "unit",
    "policy",
    "partitions",
    "side",
    "receive",
];

/// Variables whose values say what they are.
const SELF_EXPLAINING: [&str; 21] = [
    "transport",
    "library",
    "layer",
    "pml",
    "engine",
    "unit",
    "policy",
    "side",
    "receive",
    "memory",
    "cache",
    "compute",
    "mode",
    "middleware",
    "stencil",
    "algorithm",
    "granularity",
    "origin",
    "order",
    "part",
    FILE,
];

/// A row's variables.
pub type Variables = BTreeMap<String, String>;

/// How the series of several tests are called, so that one series has the same name in all of them.
#[derive(Debug, Clone, Default)]
pub struct Naming {
    /// The variables that tell series of a test apart.
    keys: Vec<String>,
    /// The transports that stand there with several libraries.
    several: BTreeSet<String>,
}

impl Naming {
    /// Returns the names for `tests`, each with its series.
    #[must_use]
    pub fn of(tests: &[Vec<&Variables>]) -> Self {
        let mut keys: Vec<String> = tests.iter().flat_map(|all| telling(all)).collect();
        keys.sort_unstable();
        keys.dedup();
        let mut libraries: BTreeMap<&String, BTreeSet<Option<&String>>> = BTreeMap::new();
        for variables in tests.iter().flatten() {
            if let Some(transport) = variables.get("transport") {
                let of_transport = libraries.entry(transport).or_default();
                of_transport.insert(variables.get("library"));
            }
        }
        libraries.retain(|_, of_transport| of_transport.len() > 1);
        Self {
            keys,
            several: libraries.into_keys().cloned().collect(),
        }
    }

    /// Returns a name for each of `all`, series of one test. Two names differ if, and only if, the variables do.
    #[must_use]
    pub fn names(&self, all: &[&Variables]) -> Vec<String> {
        let different: BTreeSet<&Variables> = all.iter().copied().collect();
        let mut different: Vec<&Variables> = different.into_iter().collect();
        // Numbers go by the order of the series.
        different.sort_by_key(|variables| all.iter().position(|one| one == variables));
        let names = self.of_different(&different);
        let name = |variables: &&Variables| {
            let place = different.iter().position(|one| one == variables);
            place.map_or_else(String::new, |place| names[place].clone())
        };
        all.iter().map(name).collect()
    }

    fn of_different(&self, all: &[&Variables]) -> Vec<String> {
        let telling = self.telling(all);
        // The file stands with those that nothing else tells apart.
        let without_file: Vec<String> =
            telling.iter().filter(|key| *key != FILE).cloned().collect();
        let mut names: Vec<String> = all
            .iter()
            .map(|variables| self.name(variables, &without_file))
            .collect();
        rename_twins(&mut names, |place| self.name(all[place], &telling));
        // Values of two variables may look the same, and short names of libraries too.
        rename_twins(&mut names, |place| spelled_out(all[place], &telling));
        number(&mut names);
        names
    }

    /// The variables that tell these apart, and those that they have and that tell series of another test apart.
    fn telling(&self, all: &[&Variables]) -> Vec<String> {
        let mut keys = telling(all);
        let has = |key: &&String| all.iter().any(|variables| variables.contains_key(*key));
        keys.extend(self.keys.iter().filter(has).cloned());
        keys.sort_unstable();
        keys.dedup();
        ordered(keys)
    }

    fn name(&self, variables: &Variables, telling: &[String]) -> String {
        let value = |key: &str| variables.get(key).map(String::as_str);
        let tells = |key: &str| telling.iter().any(|told| told == key);
        let mut parts = Vec::new();
        let carrier = tells("transport") || telling.is_empty();
        match (value("transport"), value("library")) {
            // A foreign library is known by its own name.
            (Some("mpi"), Some(library)) if carrier || tells("library") => {
                parts.push(short(library));
            }
            (Some(transport), Some(library))
                if tells("library") && self.several.contains(transport) =>
            {
                parts.push(format!("{transport} ({library})"));
            }
            (Some(transport), _) if carrier || tells("library") => {
                parts.push(transport.to_owned());
            }
            (_, Some(library)) if tells("library") => parts.push(library.to_owned()),
            _ => {}
        }
        let others = telling
            .iter()
            .filter(|key| !["transport", "library"].contains(&key.as_str()));
        parts.extend(others.filter_map(|key| value(key).map(|value| told(key, value))));
        match parts.join(" · ") {
            // By itself, and carried by nothing: by the first of what it has.
            empty if empty.is_empty() && telling.is_empty() => {
                let first = ordered(variables.keys().cloned().collect());
                let first = first.first().map(|key| told(key, &variables[key]));
                first.unwrap_or_else(|| "all".to_owned())
            }
            // Told apart by what it has not.
            empty if empty.is_empty() => format!("no {}", telling.join(", ").replace('_', " ")),
            name => name,
        }
    }
}

/// Returns the variable that lies along the axis of these rows: sizes where there are several, else the number that
/// takes most values.
#[must_use]
pub fn axis<'a>(rows: impl Iterator<Item = &'a Variables>) -> String {
    let mut values: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
    for variables in rows {
        // What follows from a series' own variable lies along no axis.
        let follows = |key: &&String| {
            variables.contains_key("unit") && ["ranks", "threads"].contains(&key.as_str())
        };
        for key in variables.keys().filter(|key| !follows(key)) {
            if let Some(number) = number_of(variables, key) {
                values.entry(key).or_default().insert(number.to_bits());
            }
        }
    }
    let count = |key: &str| values.get(key).map_or(0, BTreeSet::len);
    let most = values
        .keys()
        .copied()
        .max_by_key(|key| (count(key), *key == SIZE));
    match most {
        Some(key) if count(SIZE) < 2 && count(key) > 1 => key.to_owned(),
        _ => SIZE.to_owned(),
    }
}

/// Returns the value of a variable, where it is a number.
#[must_use]
pub fn number_of(variables: &Variables, key: &str) -> Option<f64> {
    let number: f64 = variables.get(key)?.parse().ok()?;
    number.is_finite().then_some(number)
}

/// Gives each name that is there more than once the one that `longer` has for its place.
fn rename_twins(names: &mut [String], longer: impl Fn(usize) -> String) {
    let before = names.to_vec();
    for (place, name) in names.iter_mut().enumerate() {
        if before
            .iter()
            .filter(|other| *other == &before[place])
            .count()
            > 1
        {
            *name = longer(place);
        }
    }
}

/// Puts a number behind each name that another one has. Values are anybody's.
pub fn number(names: &mut [String]) {
    for place in 1..names.len() {
        let (before, rest) = names.split_at_mut(place);
        let mut name = rest[0].clone();
        for number in 2.. {
            if !before.contains(&name) {
                break;
            }
            name = format!("{} #{number}", rest[0]);
        }
        rest[0] = name;
    }
}

/// Returns the variables that have the same value in all, but for those that `except` names.
#[must_use]
pub fn shared(all: &[&Variables], except: &str) -> Vec<(String, String)> {
    let Some((first, others)) = all.split_first() else {
        return Vec::new();
    };
    let is_shared = |key: &&String| {
        *key != except
            && others
                .iter()
                .all(|other| other.get(*key) == first.get(*key))
    };
    let keys = ordered(first.keys().filter(is_shared).cloned().collect());
    keys.into_iter()
        .map(|key| (key.clone(), first[&key].clone()))
        .collect()
}

/// Returns a variable with its value, as a caption has it: `window 64`, `ob1`.
#[must_use]
pub fn told(key: &str, value: &str) -> String {
    match (key, value) {
        ("ranks", count) => counted(count, "rank"),
        ("threads", count) => counted(count, "thread") + " a rank",
        (SIZE, size) => size
            .parse()
            .map_or_else(|_| size.to_owned(), crate::number::bytes),
        ("partitions", count) => counted(count, "partition"),
        (key, "true") => key.replace('_', " "),
        (key, value) if SELF_EXPLAINING.contains(&key) => value.to_owned(),
        (key, value) => format!("{} {value}", key.replace('_', " ")),
    }
}

fn counted(count: &str, one: &str) -> String {
    let many = if count == "1" { "" } else { "s" };
    format!("{count} {one}{many}")
}

/// The variables that names need: each of them tells some apart that those before it do not.
fn telling(all: &[&Variables]) -> Vec<String> {
    let keys: BTreeSet<&String> = all.iter().flat_map(|variables| variables.keys()).collect();
    let mut taken: Vec<String> = Vec::new();
    let classes = |keys: &[String]| {
        let values = |variables: &&Variables| {
            keys.iter()
                .map(|key| variables.get(key).cloned())
                .collect::<Vec<_>>()
        };
        all.iter().map(values).collect::<BTreeSet<_>>().len()
    };
    let mut apart = 1;
    for key in ordered(keys.into_iter().cloned().collect()) {
        taken.push(key);
        let now = classes(&taken);
        if now > apart {
            apart = now;
        } else {
            taken.pop();
        }
    }
    taken
}

/// Keys that say too much, or nothing of what was measured: they come last.
const LAST: [&str; 2] = ["series", FILE];

/// Keys in the order in which names have them.
fn ordered(mut keys: Vec<String>) -> Vec<String> {
    let position = |keys: &[&str], key: &String| keys.iter().position(|known| known == key);
    let place = |key: &String| {
        let late = position(&LAST, key).map_or(0, |place| place + 1);
        position(&ORDER, key).unwrap_or(ORDER.len() + late)
    };
    keys.sort_by(|a, b| place(a).cmp(&place(b)).then_with(|| a.cmp(b)));
    keys
}

/// All that tells it apart, with the keys.
fn spelled_out(variables: &Variables, telling: &[String]) -> String {
    let told = telling.iter().map(|key| match variables.get(key) {
        Some(value) => format!("{key}={value}"),
        None => format!("no {key}"),
    });
    told.collect::<Vec<_>>().join(" · ")
}

/// The name and the version of an MPI library: "MPICH Version: 5.0.2" becomes "MPICH 5.0.2".
fn short(library: &str) -> String {
    let words = library.split_whitespace();
    let words = words.filter(|word| !word.to_lowercase().starts_with("version"));
    let mut words = words.map(|word| word.trim_end_matches([',', ';', ':']));
    let mut name = Vec::new();
    for word in words.by_ref().take(6) {
        name.push(word.trim_start_matches('v'));
        if word
            .trim_start_matches('v')
            .starts_with(|c: char| c.is_ascii_digit())
        {
            break;
        }
    }
    name.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> Variables {
        pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    }

    fn named(all: &[&[(&str, &str)]]) -> Vec<String> {
        let all: Vec<_> = all.iter().map(|pairs| variables(pairs)).collect();
        names(&all.iter().collect::<Vec<_>>())
    }

    fn names(all: &[&Variables]) -> Vec<String> {
        Naming::of(&[all.to_vec()]).names(all)
    }

    #[test]
    fn as_few_variables_as_tell_series_apart() {
        assert_eq!(named(&[&[("transport", "shm"), ("pml", "ob1")]]), ["shm"]);
        assert_eq!(
            named(&[
                &[("transport", "shm"), ("pml", "ob1"), ("engine", "bins")],
                &[
                    ("transport", "mpi"),
                    ("library", "MPICH Version:      5.0.2")
                ],
                &[
                    ("transport", "mpi"),
                    ("library", "Open MPI v5.0.11, package: x")
                ],
                &[
                    ("transport", "mpi"),
                    ("library", "Intel(R) MPI Library 2021.18 for Linux* OS")
                ],
            ]),
            [
                "shm",
                "MPICH 5.0.2",
                "Open MPI 5.0.11",
                "Intel(R) MPI Library 2021.18"
            ]
        );
        assert_eq!(
            named(&[
                &[("transport", "ofi:tcp"), ("library", "libfabric 1.17")],
                &[("transport", "ofi:tcp"), ("library", "libfabric 2.5")],
            ]),
            ["ofi:tcp (libfabric 1.17)", "ofi:tcp (libfabric 2.5)"]
        );
        assert_eq!(
            named(&[
                &[("transport", "shm"), ("layer", "raw")],
                &[
                    ("transport", "shm"),
                    ("layer", "ob1"),
                    ("pml", "ob1"),
                    ("engine", "bins")
                ],
                &[
                    ("transport", "shm"),
                    ("layer", "cm"),
                    ("pml", "cm"),
                    ("engine", "bins")
                ],
            ]),
            ["raw", "ob1", "cm"]
        );
        // Ranks and threads follow from the unit.
        assert_eq!(
            named(&[
                &[
                    ("transport", "shm"),
                    ("unit", "processes:4"),
                    ("ranks", "8")
                ],
                &[
                    ("transport", "shm"),
                    ("unit", "threads:4"),
                    ("ranks", "2"),
                    ("threads", "4")
                ],
            ]),
            ["processes:4", "threads:4"]
        );
        assert_eq!(
            named(&[
                &[("transport", "shm"), ("posted", "16")],
                &[("transport", "shm"), ("posted", "32")]
            ]),
            ["posted 16", "posted 32"]
        );
        assert_eq!(
            named(&[
                &[("transport", "shm"), ("cold_cache", "true")],
                &[("transport", "shm")],
            ]),
            ["cold cache", "no cold cache"]
        );
        assert_eq!(
            named(&[
                &[(FILE, "a"), ("transport", "shm"), ("stencil", "7-point")],
                &[(FILE, "b"), ("transport", "shm"), ("stencil", "27-point")]
            ]),
            ["7-point", "27-point"]
        );
        assert_eq!(
            named(&[
                &[(FILE, "a"), ("partitions", "1")],
                &[(FILE, "a"), ("partitions", "4")],
                &[(FILE, "b"), ("partitions", "1")],
                &[(FILE, "b"), ("partitions", "16")],
            ]),
            [
                "1 partition · a",
                "4 partitions",
                "1 partition · b",
                "16 partitions"
            ]
        );
        assert_eq!(
            named(&[
                &[(FILE, "a"), ("transport", "shm")],
                &[(FILE, "b"), ("transport", "shm")]
            ]),
            ["a", "b"]
        );
    }

    #[test]
    fn a_series_has_the_same_name_in_all_tests() {
        let ucx = variables(&[("transport", "ucx:tcp"), ("library", "UCX 1.13.1")]);
        let mpi = |name| variables(&[("transport", "mpi"), ("library", name)]);
        let (mpich, open) = (mpi("MPICH Version: 5.0.2"), mpi("Open MPI v5.0.11, x"));
        let rate = |unit| {
            let mut ucx = ucx.clone();
            ucx.insert("unit".to_owned(), unit);
            ucx
        };
        let (processes, threads) = (rate("processes:4".to_owned()), rate("threads:4".to_owned()));
        let tests = [
            vec![&ucx, &mpich, &open],
            vec![&ucx, &mpich],
            vec![&processes, &threads],
            vec![&ucx],
        ];
        let naming = Naming::of(&tests);
        let names: Vec<_> = tests.iter().map(|all| naming.names(all)).collect();
        assert_eq!(names[0], ["ucx:tcp", "MPICH 5.0.2", "Open MPI 5.0.11"]);
        assert_eq!(names[1], ["ucx:tcp", "MPICH 5.0.2"]);
        assert_eq!(names[2], ["ucx:tcp · processes:4", "ucx:tcp · threads:4"]);
        assert_eq!(names[3], ["ucx:tcp"]);
    }

    #[test]
    fn the_same_variables_have_the_same_name() {
        let shm = &[("transport", "shm")][..];
        assert_eq!(
            named(&[shm, &[("transport", "ucx")], shm]),
            ["shm", "ucx", "shm"]
        );
    }

    #[test]
    fn names_differ_where_variables_do() {
        // Each variable is there or not, with one of two values.
        let keys = ["transport", "library", "pml", "window", "size"];
        let all: Vec<Variables> = (0..3_usize.pow(5))
            .map(|mut number| {
                let mut all = Variables::new();
                for key in keys {
                    if let Some(value) = [None, Some("a"), Some("b")][number % 3] {
                        all.insert(key.to_owned(), value.to_owned());
                    }
                    number /= 3;
                }
                all
            })
            .collect();
        let names = names(&all.iter().collect::<Vec<_>>());
        assert_eq!(
            names.iter().collect::<BTreeSet<_>>().len(),
            all.len(),
            "{names:?}"
        );
    }
}
