//! Foreign text in XML, Markdown and CSV. Names come from files of anybody.

pub use tagwire_bench::visible::csv;
use tagwire_bench::visible::letter as plain;

/// Returns `text` for the content of an element or a quoted attribute. What XML cannot have, and what changes the
/// direction of writing, becomes U+FFFD.
#[must_use]
pub fn xml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            letter => escaped.push(plain(letter)),
        }
    }
    escaped
}

/// Returns `text` for a cell of a table or a sentence in Markdown.
#[must_use]
pub fn markdown(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match plain(letter) {
            '\n' | '\t' => escaped.push(' '),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            letter @ ('\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~') => {
                escaped.push('\\');
                escaped.push(letter);
            }
            // No address becomes a link, and no name a mention.
            ':' if escaped.ends_with("http") || escaped.ends_with("https") => {
                escaped.push_str("&#58;")
            }
            '@' => escaped.push_str("&#64;"),
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// Returns `text` as a block of code in Markdown, between fences that it has not.
#[must_use]
pub fn code_block(text: &str) -> String {
    let text: String = text.chars().map(plain).collect();
    let longest = text
        .split(|letter| letter != '`')
        .map(str::len)
        .max()
        .unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{text}\n{fence}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_foreign_is_markup() {
        assert_eq!(
            xml("<b a=\"'&\">\u{1b}\u{202e}"),
            "&lt;b a=&quot;&#39;&amp;&quot;&gt;\u{fffd}\u{fffd}"
        );
        assert_eq!(
            markdown("a|b<c>\n`d` https://x @me"),
            "a\\|b&lt;c&gt; \\`d\\` https&#58;//x &#64;me"
        );
        assert_eq!(code_block("a```b"), "````\na```b\n````\n");
        assert_eq!(csv("a,\"b\""), "\"a,\"\"b\"\"\"");
    }
}
