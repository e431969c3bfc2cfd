//! Parts of sentences.

use crate::model::Variable;

/// One figure, or two.
pub(super) fn between(least: &str, greatest: &str, unit: &str) -> String {
    if least == greatest {
        format!("{least}{unit}")
    } else {
        format!("{least} to {greatest}{unit}")
    }
}

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

/// Words, the last one behind an "and".
pub(super) fn listed(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [before @ .., last] => format!("{} and {last}", before.join(", ")),
    }
}

/// A text with a capital letter in front.
pub(crate) fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first: String = letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().collect());
    first + letters.as_str()
}
