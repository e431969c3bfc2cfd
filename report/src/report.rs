//! A report: files, what they are compared with, and the plots of both.

use std::fs;
use std::path::Path;

use crate::build::Selection;
use crate::circumstances;
use crate::error::{Error, Result};
use crate::model::Model;
use crate::phrase::capitalized;
use crate::read::{Results, labels};
use crate::words::{Findings, findings};

/// All that is written, whatever the format.
#[derive(Debug)]
pub struct Report {
    /// The files that are reported.
    pub files: Vec<Results>,
    /// What they are compared with.
    pub base: Option<Results>,
    /// The plots.
    pub model: Model,
}

impl Report {
    /// Reads the files.
    ///
    /// # Errors
    /// Where one of them is no report, or is given twice, or has nothing of what is asked for.
    pub fn read(
        files: &[impl AsRef<Path>],
        base: Option<&Path>,
        selection: &Selection,
    ) -> Result<Self> {
        // A link or another way to the same file gives the same rows once more.
        for (place, file) in files.iter().enumerate() {
            let own = fs::canonicalize(file).ok();
            let others = &files[..place];
            if own.is_some()
                && others
                    .iter()
                    .any(|other| fs::canonicalize(other).ok() == own)
            {
                let file = file.as_ref().display();
                return Err(Error::Usage(format!("{file} is given twice")));
            }
        }
        let read: Vec<Results> = files
            .iter()
            .map(|file| Results::read(file.as_ref()))
            .collect::<Result<_>>()?;
        let base = base.map(Results::read).transpose()?;
        Self::of(read, base, selection)
    }

    /// Makes a report of what was read.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn of(files: Vec<Results>, base: Option<Results>, selection: &Selection) -> Result<Self> {
        if let Some(base) = &base
            && !files.iter().any(|results| results.test == base.test)
        {
            let tests: Vec<&str> = files.iter().map(|results| results.test.as_str()).collect();
            return Err(Error::Input {
                file: base.file.clone(),
                reason: format!(
                    "has results of '{}', and no file has these: {}",
                    base.test,
                    tests.join(", ")
                ),
            });
        }
        let model = Model::of(&files, base.as_ref(), selection)?;
        Ok(Self { files, base, model })
    }

    /// Returns the title.
    #[must_use]
    pub fn title(&self) -> String {
        let tests = capitalized(&self.model.tests().join(", ").replace('-', " "));
        match &self.base {
            Some(_) => format!("{tests}: compared with a base"),
            None => tests,
        }
    }

    /// Returns all files with their names, that of the base last.
    #[must_use]
    pub fn sources(&self) -> (Vec<&Results>, Vec<String>) {
        let mut all: Vec<&Results> = self.files.iter().collect();
        let mut names = labels(&self.files);
        if let Some(base) = &self.base {
            all.push(base);
            let name = labels(std::slice::from_ref(base)).remove(0);
            names.push(format!("{name} (base)"));
        }
        (all, names)
    }

    /// Returns the summary in words: for each test, and last what holds for all.
    #[must_use]
    pub fn summary(&self) -> Vec<Findings> {
        let mut all = findings(&self.model);
        let (sources, names) = self.sources();
        let mut sentences: Vec<String> = circumstances::difference(&sources, &names)
            .into_iter()
            .collect();
        for (results, name) in sources.iter().zip(&names) {
            if !results.failed.is_empty() {
                let count = results.failed.len();
                let rows = if count == 1 {
                    format!("1 row of {name} has")
                } else {
                    format!("{count} rows of {name} have")
                };
                sentences.push(format!("{rows} no figures: {}.", results.failed.join("; ")));
            }
        }
        if !sentences.is_empty() {
            all.push(Findings {
                title: "Files".to_owned(),
                sentences,
            });
        }
        all
    }

    /// Returns what the files warn of, each with the file's name.
    #[must_use]
    pub fn warnings(&self) -> Vec<(String, String)> {
        let (sources, names) = self.sources();
        let of_file = |(results, name): (&&Results, &String)| {
            let named = results
                .warnings
                .iter()
                .map(|warning| (name.clone(), warning.clone()));
            named.collect::<Vec<_>>()
        };
        sources.iter().zip(&names).flat_map(of_file).collect()
    }
}
