//! `tagwire report`: plots and tables of results, in a page or in files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use tagwire_bench::ResultsFile;
use tagwire_report::{Format, Report, Selection, Written};

use crate::failure::Failure;
use crate::output;

/// The options of `tagwire report`.
#[derive(Debug, Args)]
pub struct ReportOptions {
    /// Results of 'tagwire bench' and 'tagwire match', -o FILE.json
    #[arg(value_name = "FILE.json", required = true)]
    files: Vec<PathBuf>,

    /// Earlier results to compare with: what got worse, what got better
    #[arg(long, value_name = "BASE.json")]
    base: Option<PathBuf>,

    /// Where the report goes; a folder for the plots of --format svg [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// How it is written [default: as the output's name ends, else html]
    #[arg(long, value_enum)]
    format: Option<ReportFormat>,

    /// The variable along the axis of plots, such as size, partitions or threads [default: size where it varies]
    #[arg(long, value_name = "VARIABLE")]
    x: Option<String>,

    /// Only these figures, by their keys in the file, such as latency_us [default: all]
    #[arg(long, value_name = "KEY", value_delimiter = ',')]
    metric: Vec<String>,
}

/// How a report is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// One page with plots, tables and a summary, which needs no network
    Html,
    /// A file for each plot
    Svg,
    /// Summary and tables in Markdown, for pull requests
    Md,
    /// A line for each point, with the environment
    Csv,
}

impl From<ReportFormat> for Format {
    fn from(format: ReportFormat) -> Self {
        match format {
            ReportFormat::Html => Self::Html,
            ReportFormat::Svg => Self::Svg,
            ReportFormat::Md => Self::Markdown,
            ReportFormat::Csv => Self::Csv,
        }
    }
}

/// Writes a report.
pub fn report(options: &ReportOptions) -> Result<ExitCode, Failure> {
    let selection = Selection {
        x: options.x.clone(),
        metrics: options.metric.clone(),
    };
    let report = Report::read(&options.files, options.base.as_deref(), &selection)
        .map_err(Failure::usage)?;
    refuse_inputs(options)?;
    let format = options
        .format
        .unwrap_or_else(|| format_of(options.output.as_deref()));
    let written = report.write(format.into()).map_err(Failure::usage)?;
    match (written, &options.output) {
        (Written::One(text), Some(path)) => write(path, &text)?,
        (Written::One(text), None) => print(&text)?,
        (Written::Each(plots), path) => write_plots(&plots, path.as_deref())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Results are not overwritten by their report.
fn refuse_inputs(options: &ReportOptions) -> Result<(), Failure> {
    let Some(output) = options
        .output
        .as_deref()
        .and_then(|path| fs::canonicalize(path).ok())
    else {
        return Ok(());
    };
    let inputs = options.files.iter().chain(&options.base);
    let is_input = |file: &&PathBuf| fs::canonicalize(file).is_ok_and(|file| file == output);
    match inputs.into_iter().find(is_input) {
        Some(file) => Err(Failure::usage(format!(
            "{} is read, and cannot be the output (-o) as well",
            file.display()
        ))),
        None => Ok(()),
    }
}

fn format_of(output: Option<&Path>) -> ReportFormat {
    let extension = output
        .and_then(Path::extension)
        .and_then(|extension| extension.to_str());
    let known = extension.and_then(|extension| ReportFormat::from_str(extension, true).ok());
    known.unwrap_or(ReportFormat::Html)
}

/// One plot into a file, several into a folder.
fn write_plots(plots: &[(String, String)], path: Option<&Path>) -> Result<(), Failure> {
    let is_file = |path: &Path| {
        path.extension().is_some_and(|extension| extension == "svg") && !path.is_dir()
    };
    match (plots, path) {
        ([(_, only)], None) => print(only),
        ([(_, only)], Some(path)) if is_file(path) => write(path, only),
        (_, Some(path)) if !is_file(path) => {
            fs::create_dir_all(path).map_err(|error| {
                Failure::usage(format!(
                    "cannot make the folder {}: {error}",
                    path.display()
                ))
            })?;
            plots
                .iter()
                .try_for_each(|(id, plot)| write(&path.join(format!("{id}.svg")), plot))
        }
        _ => {
            let ids: Vec<&str> = plots.iter().map(|(id, _)| id.as_str()).collect();
            Err(Failure::usage(format!(
                "there are {} plots ({}): name a folder with -o, or one figure with --metric",
                plots.len(),
                ids.join(", ")
            )))
        }
    }
}

fn print(text: &str) -> Result<(), Failure> {
    output::print(text).map_err(Failure::into_usage)
}

/// Replaces a file as a whole.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let written = ResultsFile::open(path).and_then(|mut file| file.finish(text));
    written.map_err(Failure::usage)
}
