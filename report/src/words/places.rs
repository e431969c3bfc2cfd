//! Where something is, in a sentence.

use crate::model::Variable;
use crate::phrase::listed;

/// A value of the variable in a sentence.
pub(super) fn place(x: &Variable, value: f64) -> String {
    if x.is_bytes() {
        x.value(value)
    } else {
        format!("{} {}", x.key(), x.value(value))
    }
}

/// Where some of the values lie: "from 8 B to 4 KiB and at 1 MiB".
pub(super) fn ranges(x: &Variable, all: &[f64], some: &[f64]) -> String {
    let mut runs: Vec<(f64, f64)> = Vec::new();
    let mut before = false;
    for &value in all {
        let is_in = some.contains(&value);
        match runs.last_mut() {
            Some(run) if is_in && before => run.1 = value,
            _ if is_in => runs.push((value, value)),
            _ => {}
        }
        before = is_in;
    }
    let words = runs.iter().map(|&(from, to)| {
        if from == to {
            format!("at {}", place(x, from))
        } else {
            format!("from {} to {}", place(x, from), x.value(to))
        }
    });
    let words: Vec<String> = words.collect();
    listed(&words.iter().map(String::as_str).collect::<Vec<_>>())
}
