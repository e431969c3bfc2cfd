//! Where results go while they come.

use std::io::{self, Write};
use std::path::Path;

use super::advice::Advice;
use super::file::ResultsFile;
use super::pace::Pace;
use super::text::{Table, closing, preamble};
use super::{Report, csv};
use crate::args::{Format, Percentiles};
use crate::error::{Error, Result};
use crate::profile::Profile;
use crate::record::Row;
use crate::warnings;

/// A report, its file, and the standard output.
pub(crate) struct Output<W: Write> {
    report: Report,
    format: Format,
    percentiles: Option<Percentiles>,
    file: Option<(ResultsFile, Format)>,
    /// When the file was written.
    pace: Pace,
    /// Rows have come since.
    is_behind: bool,
    stdout: W,
    /// Rows are printed as they come; else a table at the end.
    streams: bool,
    /// How many letters a line of the terminal has, where it is one.
    pub(crate) width: Option<usize>,
    table: Option<Table>,
    /// The best of the measured cases are named at the end.
    pub(crate) advises: bool,
    /// Jobs can be started again by `--launches`.
    pub(crate) starts_again: bool,
}

impl<W: Write> Output<W> {
    /// `streams` when there is one series and one launch.
    pub(crate) fn new(
        report: Report,
        format: Format,
        percentiles: Option<Percentiles>,
        path: Option<&Path>,
        streams: bool,
        stdout: W,
    ) -> Result<Self> {
        let open = |path| ResultsFile::open(path).map(|file| (file, format_of(path)));
        let file = path.map(open).transpose()?;
        Ok(Self {
            report,
            format,
            percentiles,
            file,
            pace: Pace::default(),
            is_behind: false,
            stdout,
            streams,
            width: None,
            table: None,
            advises: false,
            starts_again: false,
        })
    }

    pub(crate) const fn report(&self) -> &Report {
        &self.report
    }

    pub(crate) const fn report_mut(&mut self) -> &mut Report {
        &mut self.report
    }

    /// Takes the rows of an earlier part of the same run.
    pub(crate) fn restore(&mut self, rows: Vec<Row>) {
        if !rows.is_empty() {
            self.report.restore(rows);
            self.is_behind = true;
        }
    }

    /// Makes what follows from the rows.
    fn conclude(&mut self) {
        self.report.sum_up();
        if self.advises {
            self.report.advice = super::advice::of(&self.report);
        }
        let seen = self.report.measurements(self.starts_again);
        self.report.warnings = warnings::of(&seen);
    }

    /// Writes the file, where rows have come since. Called while nothing is measured: it takes a processor for a while.
    pub(crate) fn save(&mut self) -> Result<()> {
        if !self.is_behind || self.file.is_none() {
            return Ok(());
        }
        let began = self.pace.now();
        self.conclude();
        if let Some((file, format)) = &mut self.file {
            file.update(&render(&self.report, *format)?)?;
        }
        self.is_behind = false;
        self.pace.saved(began);
        Ok(())
    }

    /// Adds a row, of which the file has none until it is [saved](Self::save): now and then that is done here.
    pub(crate) fn row(&mut self, row: Row) -> Result<()> {
        self.report.add(row.clone());
        self.is_behind = true;
        if self.pace.is_due() {
            self.save()?;
        }
        if self.format != Format::Text || !self.streams || row.error.is_some() {
            return Ok(());
        }
        let mut text = String::new();
        if self.table.is_none() {
            text += &preamble(&self.report);
        }
        let percentiles = self.percentiles.as_ref();
        let is_first = self.table.is_none();
        let table = self
            .table
            .get_or_insert_with(|| Table::of(&self.report, percentiles));
        if is_first {
            text += &table.header();
        }
        text += &table.line(row.size, &[Some(&row)]);
        self.print(&text)
    }

    /// Adds a figure to the rows from `first` on, which is known only after them.
    pub(crate) fn label(&mut self, first: usize, name: &str, value: f64) {
        self.report.label(first, name, value);
        self.is_behind = true;
    }

    /// Prints what has not been printed yet.
    pub(crate) fn finish(&mut self) -> Result<()> {
        if self.is_behind {
            self.conclude();
        }
        if let Some((file, format)) = &mut self.file
            && !self.report.rows.is_empty()
        {
            file.finish(&render(&self.report, *format)?)?;
        }
        if self.report.rows.is_empty() {
            return Ok(());
        }
        match self.format {
            Format::Text => {
                let mut text = String::new();
                if self.table.is_none() {
                    let table = Table::of(&self.report, self.percentiles.as_ref());
                    text = preamble(&self.report) + &table.of_summary(&self.report, self.width);
                }
                text.extend(self.report.advice.iter().map(Advice::to_text));
                text.extend(self.report.profiles.iter().map(Profile::to_text));
                text += &closing(&self.report);
                self.print(&text)
            }
            Format::Csv => {
                let text = render(&self.report, Format::Csv)?;
                self.print(&text)?;
                // There is no place for them in the rows.
                for warning in &self.report.warnings {
                    let _ = writeln!(io::stderr(), "warning: {}", warning.to_text());
                }
                Ok(())
            }
            format @ Format::Json => {
                let text = render(&self.report, format)?;
                self.print(&text)
            }
        }
    }

    fn print(&mut self, text: &str) -> Result<()> {
        let written = self
            .stdout
            .write_all(text.as_bytes())
            .and_then(|()| self.stdout.flush());
        written.map_err(|source| {
            let closed = source.kind() == io::ErrorKind::BrokenPipe;
            let what = if closed {
                "to the standard output, which was closed"
            } else {
                "to the standard output"
            };
            Error::Output {
                what: what.to_owned(),
                source,
            }
        })
    }
}

/// Returns how many letters a line of the standard output has, where that is a terminal.
pub(crate) fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    (size.ws_col > 0).then(|| size.ws_col.into())
}

fn format_of(path: &Path) -> Format {
    match path.extension() {
        Some(extension) if extension.eq_ignore_ascii_case("csv") => Format::Csv,
        _ => Format::Json,
    }
}

fn render(report: &Report, format: Format) -> Result<String> {
    match format {
        Format::Csv => csv::to_text(report),
        _ => report
            .to_json()
            .map_err(|error| Error::Job(error.to_string())),
    }
}
