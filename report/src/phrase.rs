//! Parts of sentences.

/// One figure, or two.
pub(crate) fn between(least: &str, greatest: &str, unit: &str) -> String {
    if least == greatest {
        format!("{least}{unit}")
    } else {
        format!("{least} to {greatest}{unit}")
    }
}

/// Words, the last one behind an "and".
pub(crate) fn listed(words: &[&str]) -> String {
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
