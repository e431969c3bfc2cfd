//! Which series of a base belongs to which of the new results, and how both are called.

use crate::naming::{FILE, Variables, names, number};

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
    all: &[&Variables],
    new: usize,
    counterparts: &[Option<usize>],
) -> Vec<String> {
    let mut own: Vec<&Variables> = all[..new].to_vec();
    let mut named_as: Vec<usize> = (0..new).collect();
    for base in new..all.len() {
        match counterparts[base] {
            // By the name of what it is compared with, unless several files are.
            Some(place) if !all[place].contains_key(FILE) => named_as.push(place),
            _ => {
                let place = own.iter().position(|known| *known == all[base]);
                named_as.push(place.unwrap_or(own.len()));
                if place.is_none() {
                    own.push(all[base]);
                }
            }
        }
    }
    let names = names(&own);
    let with_role = |(place, named): (usize, &usize)| {
        let suffix = if place < new { "" } else { " (base)" };
        format!("{}{suffix}", names[*named])
    };
    let mut all: Vec<String> = named_as.iter().enumerate().map(with_role).collect();
    number(&mut all);
    all
}
