//! Foreign text on a terminal, in a page, or in a table. Names come from files of anybody.

/// Returns the letter if it is one that shows. Control characters and what changes the direction of writing are U+FFFD;
/// the end of a line and a tab stay.
#[must_use]
pub const fn letter(letter: char) -> char {
    match letter {
        '\n' | '\t' => letter,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' => '\u{fffd}',
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            '\u{fffd}'
        }
        '\u{2028}' | '\u{2029}' | '\u{fffe}' | '\u{ffff}' => '\u{fffd}',
        letter => letter,
    }
}

/// Returns `text` with letters that show, and its lines.
#[must_use]
pub fn text(text: &str) -> String {
    text.chars().map(letter).collect()
}

/// Returns `text` as one line, with letters that show.
#[must_use]
pub fn line(text: &str) -> String {
    let blank = |letter: char| {
        if letter == '\n' || letter == '\t' {
            ' '
        } else {
            letter
        }
    };
    text.chars().map(|all| blank(letter(all))).collect()
}

/// Returns `text` as a field of CSV (RFC 4180). A spreadsheet takes a text that begins with `=` or its like for a
/// formula, unless an apostrophe stands in front of it. Numbers stay as they are.
#[must_use]
pub fn csv(text: &str) -> String {
    let is_formula = text.starts_with(FORMULA) && text.parse::<f64>().is_err();
    let apostrophe = if is_formula || has_apostrophe(text) {
        "'"
    } else {
        ""
    };
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{apostrophe}{}\"", text.replace('"', "\"\""))
    } else {
        format!("{apostrophe}{text}")
    }
}

/// Returns what a field of CSV was before [`csv`] put an apostrophe in front of it.
pub(crate) fn of_csv(field: String) -> String {
    match has_apostrophe(&field) {
        true => field[1..].to_owned(),
        false => field,
    }
}

/// Whether an apostrophe stands in front of a formula, or of another such one.
fn has_apostrophe(text: &str) -> bool {
    let behind = text.trim_start_matches('\'');
    behind.len() < text.len() && behind.starts_with(FORMULA)
}

/// What formulas begin with (OWASP, CSV injection).
const FORMULA: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_letters_that_show_are_left() {
        assert_eq!(
            line("\u{1b}[31ma\nb\u{202e}\u{9b}"),
            "\u{fffd}[31ma b\u{fffd}\u{fffd}"
        );
        assert_eq!(text("a\n\u{7}é"), "a\n\u{fffd}é");
    }

    #[test]
    fn no_field_is_a_formula() {
        for (text, field) in [
            ("=1+1", "'=1+1"),
            ("+x", "'+x"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("-a,b", "\"'-a,b\""),
            ("-1.5", "-1.5"),
            ("'=1", "''=1"),
            ("a=b", "a=b"),
            ("'quoted'", "'quoted'"),
            ("a,\"b\"", "\"a,\"\"b\"\"\""),
        ] {
            assert_eq!(csv(text), field);
            let inside = field.trim_matches('"').replace("\"\"", "\"");
            assert_eq!(of_csv(inside), text.trim_matches('"'));
        }
    }
}
