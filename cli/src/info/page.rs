//! Text of a width that terminals have.

/// Columns of a line.
pub const WIDTH: usize = 100;

/// Lines, each broken where it is longer than [`WIDTH`].
#[derive(Debug, Default)]
pub struct Page(String);

impl Page {
    /// Adds a line. Where it is broken it goes on behind its own indent, two columns further in.
    pub fn line(&mut self, text: &str) {
        let indent = text.len() - text.trim_start().len();
        self.broken(text, indent + 2);
    }

    /// Adds a line with a name and its value.
    pub fn field(&mut self, name: &str, value: &str) {
        self.broken(&format!("  {name:<14} {value}"), 17);
    }

    /// Begins a section.
    pub fn section(&mut self, name: &str) {
        if !self.0.is_empty() {
            self.0.push('\n');
        }
        self.line(name);
    }

    /// Adds a line as it is, but for what is behind its last column.
    pub fn clipped(&mut self, text: &str) {
        self.0.push_str(clip(text.trim_end(), WIDTH).as_str());
        self.0.push('\n');
    }

    /// All of it.
    pub fn into_text(self) -> String {
        self.0
    }

    /// Adds a line, broken between words, with `indent` columns before the words of its later parts.
    fn broken(&mut self, text: &str, indent: usize) {
        let (mut rest, mut room) = (text, WIDTH);
        while let Some(end) = last_gap(rest, room) {
            self.0.push_str(rest[..end].trim_end());
            self.0.push('\n');
            self.0.push_str(&" ".repeat(indent));
            (rest, room) = (rest[end..].trim_start(), WIDTH - indent);
        }
        self.0.push_str(rest.trim_end());
        self.0.push('\n');
    }
}

/// Where `text` is to be broken to fit into `room` columns: the last gap between words that leaves so much, else the
/// first gap. `None` where it fits, or has no gap.
fn last_gap(text: &str, room: usize) -> Option<usize> {
    let (end, _) = text.char_indices().nth(room)?;
    let words = text.len() - text.trim_start().len();
    // The gap may be the first column that is too many.
    let end = if text[end..].starts_with(' ') {
        end + 1
    } else {
        end
    };
    let fits = text[..end].rfind(' ').filter(|gap| *gap > words);
    fits.or_else(|| Some(words + text[words..].find(' ')?))
}

/// `text`, if it has so many columns, else its beginning and an ellipsis.
pub fn clip(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_between_words() {
        let mut page = Page::default();
        page.line(&format!("    - {}", "word ".repeat(50).trim_end()));
        let text = page.into_text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines.iter().all(|line| line.len() <= WIDTH), "{text}");
        assert!(lines[1].starts_with("      word") && lines[0].len() > WIDTH - 5);
        assert_eq!(text.matches("word").count(), 50);
    }

    #[test]
    fn words_are_not_broken() {
        let mut page = Page::default();
        let long = "x".repeat(150);
        page.line(&format!("  {long} {long}"));
        page.line(&format!("{} y", "a".repeat(WIDTH - 2)));
        let text = page.into_text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..2], [format!("  {long}"), format!("    {long}")]);
        assert_eq!(lines[2].len(), WIDTH);
    }

    #[test]
    fn clipped_text_says_so() {
        assert_eq!(clip("four", 4), "four");
        assert_eq!(clip("fours", 4), "fou…");
        let mut page = Page::default();
        page.clipped(&"é".repeat(WIDTH + 1));
        assert_eq!(page.into_text().trim_end().chars().count(), WIDTH);
    }
}
