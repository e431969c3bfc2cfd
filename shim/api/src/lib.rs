#![doc = include_str!("../README.md")]

mod constant;
mod coverage;
mod exports;
mod fortran;
mod function;
mod header;
mod kind;

use std::fmt;

pub use constant::{Constant, Section};
pub use fortran::{Fortran, Interface};
pub use function::{Flag, Function, Handler, Parameter};
pub use kind::{Form, Kind, Twin};

/// The tables, read: every function and every constant of the ABI, in the order of the files.
///
/// ```
/// let api = tagwire_mpi_api::Api::load()?;
/// let send = api.functions().find(|function| function.name == "Send").expect("it is in the table");
/// assert!(send.has_twin());
/// assert_eq!(api.names().len(), 662);
/// # Ok::<(), tagwire_mpi_api::Error>(())
/// ```
#[derive(Debug)]
pub struct Api {
    chapters: Vec<Chapter>,
    sections: Vec<Section>,
}

/// The functions below one heading of the table.
#[derive(Debug)]
pub struct Chapter {
    /// The heading.
    pub title: String,
    /// Its functions.
    pub functions: Vec<Function>,
}

impl Api {
    /// Reads the tables that are part of this crate.
    ///
    /// # Errors
    ///
    /// The first line that does not follow the grammar at the head of its file.
    pub fn load() -> Result<Self, Error> {
        Self::parse(FUNCTIONS, CONSTANTS)
    }

    /// Reads tables from text.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub fn parse(functions: &str, constants: &str) -> Result<Self, Error> {
        let mut chapters: Vec<Chapter> = Vec::new();
        for (at, text) in lines(functions) {
            if let Some(title) = text.strip_prefix("== ") {
                let (title, functions) = (title.to_owned(), Vec::new());
                chapters.push(Chapter { title, functions });
                continue;
            }
            let function = Function::parse(text).map_err(|why| Error::in_line(at, text, why))?;
            let Some(chapter) = chapters.last_mut() else {
                return Err(Error::in_line(at, text, "no heading before it".to_owned()));
            };
            chapter.functions.push(function);
        }
        let sections = constant::parse(constants)?;
        Ok(Self { chapters, sections })
    }

    /// Returns the functions by chapter of the standard.
    pub fn chapters(&self) -> &[Chapter] {
        &self.chapters
    }

    /// Returns the constants and types by section.
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// Returns the lines of the table of functions.
    pub fn functions(&self) -> impl Iterator<Item = &Function> {
        self.chapters.iter().flat_map(|chapter| &chapter.functions)
    }

    /// Returns all names that a program can call, without `MPI_`, twins included.
    pub fn names(&self) -> Vec<String> {
        let twins = self.functions().flat_map(|function| {
            let twins = function.twins();
            twins.iter().map(|twin| function.name_of(*twin))
        });
        twins.collect()
    }

    /// Returns the handles of MPI's objects that have an integer form, as `Comm`, in the order of the table.
    pub(crate) fn handles(&self) -> impl Iterator<Item = &'static str> {
        self.functions().filter_map(|function| {
            let is_integer = function.name.ends_with("_toint");
            is_integer.then(|| function.parameters.first()?.kind.handle())?
        })
    }

    /// Writes `mpi.h`.
    pub fn header(&self) -> String {
        header::write(self)
    }

    /// Writes the Rust source of the exports, for a crate that has the macro `export!`.
    pub fn exports(&self) -> String {
        exports::write(self)
    }

    /// Reads the Fortran columns.
    ///
    /// # Errors
    ///
    /// The first line that does not follow the grammar at the head of its file, or does not fit to its function.
    pub fn fortran(&self) -> Result<Fortran<'_>, Error> {
        self.fortran_of(FORTRAN)
    }

    /// Reads Fortran columns from text.
    ///
    /// # Errors
    ///
    /// As [`fortran`](Self::fortran).
    pub fn fortran_of(&self, table: &str) -> Result<Fortran<'_>, Error> {
        Fortran::parse(self, table)
    }

    /// Writes the Markdown tables of what is there and what reports an error.
    pub fn coverage(&self) -> String {
        coverage::write(self)
    }
}

/// A line of a table that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {why}: {text}")]
#[non_exhaustive]
pub struct Error {
    /// The number of the line, from one.
    pub line: usize,
    /// The line.
    pub text: String,
    /// What is wrong with it.
    pub why: String,
}

impl Error {
    fn in_line(line: usize, text: &str, why: impl fmt::Display) -> Self {
        let (text, why) = (text.to_owned(), why.to_string());
        Self { line, text, why }
    }
}

/// The lines of a table that say something, with their numbers.
fn lines(table: &str) -> impl Iterator<Item = (usize, &str)> {
    let numbered = table.lines().enumerate();
    numbered
        .map(|(at, line)| (at + 1, line.trim()))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

const FUNCTIONS: &str = include_str!("../functions.txt");
const FORTRAN: &str = include_str!("../fortran.txt");
const CONSTANTS: &str = include_str!("../constants.txt");
