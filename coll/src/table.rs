//! The table of algorithms: rows in a file of TOML.

use std::fmt;
use std::fs;
use std::ops::Range;

use tagwire_base::config::parse::{bytes, format_bytes};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::algorithms::{ALGORITHMS, Algorithm, Collective};

/// The rows that are taken where no file says otherwise.
const IN_THE_TREE: &str = include_str!("../tables/default.toml");

/// The name of these in reports.
const NAME: &str = "the table in the tree";

/// The key of the rows in a file.
const ROWS: &str = "rows";

/// The keys of a row.
const KEYS: [&str; 5] = ["operation", "algorithm", "ranks", "bytes", "place"];

/// Where the ranks of a job are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// All share the memory of one host.
    Host,
    /// On several hosts, or without shared memory.
    Hosts,
}

impl Place {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Host, Self::Hosts];

    /// Returns the name in tables and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Hosts => "hosts",
        }
    }
}

/// A row: from so many ranks and bytes on, its algorithm is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Row {
    /// What is taken.
    pub algorithm: &'static Algorithm,
    /// By groups of so many ranks and more.
    pub ranks: usize,
    /// For lengths of so many bytes and more.
    pub bytes: usize,
    /// Where the ranks are; anywhere, where that is not said.
    pub place: Option<Place>,
}

impl Row {
    /// Returns a row for any place.
    #[must_use]
    pub const fn new(algorithm: &'static Algorithm, ranks: usize, bytes: usize) -> Self {
        Self {
            algorithm,
            ranks,
            bytes,
            place: None,
        }
    }

    /// Returns the same row for one place.
    #[must_use]
    pub const fn at(mut self, place: Place) -> Self {
        self.place = Some(place);
        self
    }
}

/// As a file has it.
impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Algorithm {
            collective, name, ..
        } = self.algorithm;
        write!(f, "{{ operation = \"{collective}\", algorithm = \"{name}\"")?;
        if self.ranks > 1 {
            write!(f, ", ranks = {}", self.ranks)?;
        }
        if self.bytes > 0 {
            write!(f, ", bytes = \"{}\"", format_bytes(self.bytes as u64))?;
        }
        if let Some(place) = self.place {
            write!(f, ", place = \"{}\"", place.name())?;
        }
        f.write_str(" }")
    }
}

/// Rows of all operations: those in the tree, then those of a file. Of an operation's rows, the last one that fits counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    name: String,
    rows: Vec<Row>,
}

impl Default for Table {
    /// Returns the table in the tree.
    fn default() -> Self {
        let rows = rows(IN_THE_TREE).expect("a test reads the table in the tree");
        let name = NAME.to_owned();
        Self { name, rows }
    }
}

impl Table {
    /// Returns the table in the tree with the rows of the file at `path` after its own.
    ///
    /// # Errors
    /// When the file cannot be read, or is no table: with its line, and what is expected there.
    pub fn read(path: &str) -> tagwire_base::Result<Self> {
        let refused = |expected| tagwire_base::Error::BadSetting {
            name: "coll-table".to_owned(),
            value: path.to_owned(),
            expected,
        };
        let text = fs::read_to_string(path).map_err(|error| refused(error.to_string()))?;
        let more = rows(&text).map_err(|(line, what)| refused(format!("line {line}: {what}")))?;
        let mut table = Self::default();
        table.rows.extend(more);
        table.name = path.to_owned();
        Ok(table)
    }

    /// Returns the same with `rows` after its own.
    #[must_use]
    pub fn with(mut self, rows: &[Row]) -> Self {
        self.rows.extend_from_slice(rows);
        self
    }

    /// Returns its file, or that it is the one in the tree.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns all rows.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Returns a number that differs, as far as 64 bits go, where rows do (FNV-1a over their text).
    #[must_use]
    pub fn digest(&self) -> u64 {
        let text: String = self.rows.iter().map(ToString::to_string).collect();
        text.bytes().fold(0xcbf2_9ce4_8422_2325, |digest, byte| {
            (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }

    /// Returns the text of a file with these rows below `header`, each line of which becomes a comment.
    #[must_use]
    pub fn text(header: &str, rows: &[Row]) -> String {
        let comment = header.lines().map(|line| match line {
            "" => "#\n".to_owned(),
            line => format!("# {line}\n"),
        });
        let rows = rows.iter().map(|row| format!("  {row},\n"));
        let (comment, rows) = (comment.collect::<String>(), rows.collect::<String>());
        format!("{comment}\n{ROWS} = [\n{rows}]\n")
    }
}

/// A line of a file, and what is wrong there.
type Wrong = (usize, String);

/// Reads the rows of a file.
fn rows(text: &str) -> Result<Vec<Row>, Wrong> {
    let file = File(text);
    let top = DeTable::parse(text).map_err(|error| {
        let span = error.span().unwrap_or_default();
        file.wrong(span, error.message())
    })?;
    let mut found = Vec::new();
    for (key, value) in top.get_ref() {
        if key.get_ref() != ROWS {
            let what = format!("expected the key {ROWS} alone, not '{}'", key.get_ref());
            return Err(file.wrong(key.span(), &what));
        }
        let list = value.get_ref().as_array();
        let list = list.ok_or_else(|| file.wrong(value.span(), "expected a list of rows"))?;
        for row in list.iter() {
            found.push(file.row(row)?);
        }
    }
    Ok(found)
}

/// The text of a file, which knows its lines.
#[derive(Debug, Clone, Copy)]
struct File<'t>(&'t str);

impl File<'_> {
    fn wrong(self, at: Range<usize>, what: &str) -> Wrong {
        let before = self.0.get(..at.start).unwrap_or(self.0);
        (before.matches('\n').count() + 1, what.to_owned())
    }

    fn row(self, value: &Spanned<DeValue<'_>>) -> Result<Row, Wrong> {
        let keys = KEYS.join(", ");
        let here = |what: &str| self.wrong(value.span(), what);
        let fields = value.get_ref().as_table();
        let fields =
            fields.ok_or_else(|| here(&format!("expected a row: a table with the keys {keys}")))?;
        for key in fields.keys() {
            if !KEYS.contains(&key.get_ref().as_ref()) {
                let what = format!("a row has the keys {keys}, not '{}'", key.get_ref());
                return Err(self.wrong(key.span(), &what));
            }
        }
        let operations = Collective::ALL.iter().map(|it| (it.name(), *it));
        let operation = self.name(fields, "operation", operations)?;
        let operation = operation.ok_or_else(|| here("a row needs an operation"))?;
        let own = ALGORITHMS.iter().filter(|it| it.collective == operation);
        let algorithm = self.name(fields, "algorithm", own.map(|it| (it.name, it)))?;
        let algorithm = algorithm.ok_or_else(|| here("a row needs an algorithm"))?;
        let places = Place::ALL.into_iter().map(|it| (it.name(), it));
        Ok(Row {
            algorithm,
            ranks: self.number(fields, "ranks")?.unwrap_or(1),
            bytes: self.number(fields, "bytes")?.unwrap_or(0),
            place: self.name(fields, "place", places)?,
        })
    }

    /// Returns the value of a key that has a name of `known`.
    fn name<T>(
        self,
        fields: &DeTable<'_>,
        key: &str,
        known: impl Iterator<Item = (&'static str, T)>,
    ) -> Result<Option<T>, Wrong> {
        let Some(value) = fields.get(key) else {
            return Ok(None);
        };
        let mut names = Vec::new();
        for (name, meaning) in known {
            if value.get_ref().as_str() == Some(name) {
                return Ok(Some(meaning));
            }
            names.push(format!("\"{name}\""));
        }
        let given = self.0.get(value.span()).unwrap_or_default();
        let what = format!(
            "expected for {key} one of {}; not {given}",
            names.join(", ")
        );
        Err(self.wrong(value.span(), &what))
    }

    /// Returns the value of a key that has a number, or a size as everywhere else.
    fn number(self, fields: &DeTable<'_>, key: &str) -> Result<Option<usize>, Wrong> {
        let Some(value) = fields.get(key) else {
            return Ok(None);
        };
        let number = match value.get_ref() {
            DeValue::Integer(number) => usize::from_str_radix(number.as_str(), number.radix()).ok(),
            DeValue::String(text) => bytes(text).ok().and_then(|size| size.try_into().ok()),
            _ => None,
        };
        let given = self.0.get(value.span()).unwrap_or_default();
        let what =
            format!("expected for {key} a number such as 4096 or \"4K\" (K is 1024), not {given}");
        number
            .map(Some)
            .ok_or_else(|| self.wrong(value.span(), &what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever comes, there is an algorithm, also for what must keep its order.
    #[test]
    fn the_table_in_the_tree_has_a_first_row_for_everything() {
        let table = Table::default();
        for operation in Collective::ALL {
            let mut rows = table.rows.iter();
            let first = rows.find(|row| row.algorithm.collective == *operation);
            let first = first.unwrap();
            assert_eq!((first.ranks, first.bytes, first.place), (1, 0, None));
            assert!(!first.algorithm.needs_commutative, "{operation}");
            assert_eq!(first.algorithm.follows_tree, operation.reduces());
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let table = Table::default();
        let mut all = table.rows.clone();
        all.push(all[0].at(Place::Host));
        all.push(all[1].at(Place::Hosts));
        let text = Table::text("made here\n\nfor this", &all);
        assert!(
            text.starts_with("# made here\n#\n# for this\n\nrows"),
            "{text}"
        );
        assert_eq!(rows(&text).unwrap(), all);
        assert_eq!(rows("").unwrap(), []);
        let short = "rows = [{operation='scatter', algorithm='linear', ranks=0x10, bytes='1K'}]";
        let row = rows(short).unwrap()[0];
        assert_eq!((row.ranks, row.bytes), (16, 1024));
    }

    #[test]
    fn a_file_comes_after_the_rows_in_the_tree() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().to_str().unwrap();
        assert_eq!(
            Table::read(path).unwrap().digest(),
            Table::default().digest()
        );
        fs::write(path, "rows = [{operation='reduce', algorithm='binomial'}]").unwrap();
        let table = Table::read(path).unwrap();
        assert_eq!(table.name(), path);
        assert_eq!(table.rows.len(), Table::default().rows.len() + 1);
        assert_ne!(table.digest(), Table::default().digest());
    }

    #[test]
    fn a_bad_file_is_refused_with_its_line_and_what_is_expected() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().to_str().unwrap();
        for (text, line, what) in [
            ("rows = [\n", 1, "array"),
            ("\n\nrow = []", 3, "the key rows alone, not 'row'"),
            ("rows = 1", 1, "a list of rows"),
            ("rows = [\n 1]", 2, "a table with the keys operation"),
            ("rows = [\n{ byte = 1 }]", 2, "not 'byte'"),
            ("rows = [\n{ bytes = 1 }]", 2, "needs an operation"),
            (
                "rows = [{ operation = \"scatter\" }]",
                1,
                "needs an algorithm",
            ),
            (
                "[[rows]]\noperation = \"allredce\"",
                2,
                "\"allreduce\", \"alltoall\"",
            ),
            (
                "[[rows]]\noperation = \"reduce\"\nalgorithm = \"ring\"",
                3,
                "expected for algorithm one of \"binomial\", \"board\", \"scatter-gather\", \"two-level\"; not \"ring\"",
            ),
            (
                "[[rows]]\noperation = \"reduce\"\nalgorithm = \"binomial\"\nbytes = \"4KB\"",
                4,
                "not \"4KB\"",
            ),
            (
                "[[rows]]\noperation = \"reduce\"\nalgorithm = \"binomial\"\nranks = -1",
                4,
                "not -1",
            ),
            (
                "[[rows]]\noperation = \"reduce\"\nalgorithm = \"binomial\"\nplace = \"here\"",
                4,
                "\"host\", \"hosts\"; not \"here\"",
            ),
        ] {
            fs::write(path, text).unwrap();
            let error = Table::read(path).unwrap_err().to_string();
            let line = format!("line {line}: ");
            let parts = ["coll-table", path, &line, what];
            assert!(
                parts.iter().all(|part| error.contains(part)),
                "{text}: {error}"
            );
        }
        let error = Table::read("/no/such.toml").unwrap_err().to_string();
        assert!(error.contains("/no/such.toml"), "{error}");
    }
}
