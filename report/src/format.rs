//! Formats: each is a file here, and a line in [`Format`].

mod csv;
mod markdown;
mod svg;

use crate::error::Result;
use crate::page;
use crate::report::Report;

/// How a report is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// One self-contained page.
    Html,
    /// A file for each plot.
    Svg,
    /// Tables and the summary, for pull requests and papers.
    Markdown,
    /// A line for each point, with the environment.
    Csv,
}

/// What is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// One text.
    One(String),
    /// A text for each plot, with the plot's id.
    Each(Vec<(String, String)>),
}

impl Report {
    /// Returns the report in a format.
    ///
    /// # Errors
    /// [`Error::Drawing`](crate::Error::Drawing) where a plot cannot be drawn.
    pub fn write(&self, format: Format) -> Result<Written> {
        Ok(match format {
            Format::Html => Written::One(page::write(self)?),
            Format::Svg => Written::Each(svg::write(self)?),
            Format::Markdown => Written::One(markdown::write(self)),
            Format::Csv => Written::One(csv::write(self)),
        })
    }
}
