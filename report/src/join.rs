//! Which series of a base belongs to which of the new results, and how both are called.

use crate::naming::{FILE, Naming, Variables, number};

/// Which series belong together, `new` ones and those of the base behind them. The version of a library that a
/// transport of ours uses tells only where there are several, as for `tagwire compare`; the file never does.
pub(crate) fn counterparts(all: &[&Variables], new: usize) -> Vec<Option<usize>> {
    let without = |variables: &Variables, keys: &[&str]| {
        let mut variables = variables.clone();
        variables.retain(|key, _| !keys.contains(&key.as_str()));
        variables
    };
    let mut found = vec![None; all.len()];
    for exact in [true, false] {
        for base in new..all.len() {
            let ignored: &[&str] = match all[base].get("transport").map(String::as_str) {
                Some("mpi") => &[FILE],
                _ if exact => &[FILE],
                _ => &[FILE, "library"],
            };
            let wanted = without(all[base], ignored);
            let fits =
                |place: &usize| found[*place].is_none() && without(all[*place], ignored) == wanted;
            let fitting: Vec<usize> = (0..new).filter(fits).collect();
            if found[base].is_some() || fitting.is_empty() || (!exact && fitting.len() > 1) {
                continue;
            }
            found[base] = fitting.first().copied();
            for place in fitting {
                found[place] = Some(base);
            }
        }
    }
    found
}

/// A name for each, the base's with a word behind it.
pub(crate) fn distinct_names(
    naming: &Naming,
    all: &[&Variables],
    new: usize,
    counterparts: &[Option<usize>],
) -> Vec<String> {
    // The base is one file: which one of the others a series is in does not tell its own apart.
    let without_file = |variables: &&Variables| {
        let mut variables = (*variables).clone();
        variables.remove(FILE);
        variables
    };
    let bare: Vec<Variables> = all.iter().map(without_file).collect();
    // A series is called as its base: what only one of them has (a library's version) stands with the rest of the plot.
    let standing = |place: usize| match counterparts[place] {
        Some(own) if place >= new => own,
        _ => place,
    };
    let of_bases = naming.names(
        &(0..all.len())
            .map(|place| &bare[standing(place)])
            .collect::<Vec<_>>(),
    );
    let is_one_file = all[..new]
        .iter()
        .all(|variables| !variables.contains_key(FILE));
    let of_new = if is_one_file {
        of_bases[..new].to_vec()
    } else {
        naming.names(&all[..new])
    };
    let bases = of_bases[new..].iter().map(|name| format!("{name} (base)"));
    let mut names: Vec<String> = of_new.into_iter().chain(bases).collect();
    number(&mut names);
    names
}
