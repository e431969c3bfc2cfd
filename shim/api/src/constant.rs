//! The table of constants and types.

use crate::function::Function;
use crate::{Error, lines};

/// The lines below one heading.
#[derive(Debug)]
pub struct Section {
    /// The heading.
    pub title: String,
    /// Its lines.
    pub entries: Vec<Constant>,
}

/// A line: a constant or a type. Names stand without `MPI_`.
#[derive(Debug)]
#[non_exhaustive]
pub enum Constant {
    /// An integer.
    Int(String, i64),
    /// A value of another type, as `void*` or `Comm`.
    Typed(String, String, u64),
    /// Another name of a constant.
    Alias(String, String),
    /// An opaque type.
    Handle(String),
    /// An opaque type, with the tag of its structure.
    Tool(String, String),
    /// An enumeration.
    Enum(String),
    /// The type of a caller's function.
    Function(Function),
    /// Another name of such a type.
    Same(String, String),
}

/// Reads the table.
pub(crate) fn parse(table: &str) -> Result<Vec<Section>, Error> {
    let mut sections: Vec<Section> = Vec::new();
    for (at, text) in lines(table) {
        if let Some(title) = text.strip_prefix("== ") {
            let (title, entries) = (title.to_owned(), Vec::new());
            sections.push(Section { title, entries });
            continue;
        }
        let constant = Constant::parse(text).map_err(|why| Error::in_line(at, text, why))?;
        let Some(section) = sections.last_mut() else {
            return Err(Error::in_line(at, text, "no heading before it"));
        };
        section.entries.push(constant);
    }
    Ok(sections)
}

impl Constant {
    fn parse(line: &str) -> Result<Self, String> {
        let (what, rest) = line.split_once(' ').ok_or("no name")?;
        let rest = rest.trim();
        if what == "function" {
            return Function::signature(rest).map(Self::Function);
        }
        let (name, value) = rest.split_once(' ').unwrap_or((rest, ""));
        let (name, value) = (name.to_owned(), value.trim());
        let wrong = || format!("no value of a constant: `{value}`");
        let constant = match what {
            "alias" => Self::Alias(name, value.to_owned()),
            "handle" => Self::Handle(name),
            "tool" => Self::Tool(name, value.to_owned()),
            "enum" => Self::Enum(name),
            "same" => Self::Same(name, value.to_owned()),
            "int" => Self::Int(name, value.parse().map_err(|_| wrong())?),
            "Offset" => Self::Typed(what.to_owned(), name, minus(value).ok_or_else(wrong)?),
            _ => Self::Typed(what.to_owned(), name, number(value).ok_or_else(wrong)?),
        };
        Ok(constant)
    }

    /// Returns the name that it defines, where that is a constant.
    pub fn constant(&self) -> Option<&str> {
        match self {
            Self::Int(name, _) | Self::Typed(_, name, _) | Self::Alias(name, _) => Some(name),
            _ => None,
        }
    }
}

/// A number in decimal or, after `0x`, in hexadecimal notation.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// A number with a sign, as its bits.
fn minus(text: &str) -> Option<u64> {
    text.parse::<i64>().ok().map(i64::cast_unsigned)
}
