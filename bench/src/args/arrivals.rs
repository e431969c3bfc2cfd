//! The option `--arrivals`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tagwire_base::config::parse;

use crate::kernels::Kernel;

/// When threads arrive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Arrivals {
    pub model: Model,
    /// Of a density, where it was given.
    pub bandwidth: Option<Duration>,
}

/// By which model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Model {
    /// The first thread is late by so many percent.
    Laggard(f64),
    /// Normal variables of this deviation.
    Normal(Duration),
    /// A density over the times of a file.
    Density(PathBuf),
    /// The times of a file, line by line.
    Trace(PathBuf),
    /// Threads do a step of this instead of sleeping.
    Kernel(Kernel),
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |file: &PathBuf| {
            let name = file.file_stem().unwrap_or_default();
            name.to_string_lossy().into_owned()
        };
        match self {
            Self::Laggard(pct) => write!(f, "laggard:{pct}%"),
            Self::Normal(deviation) => write!(f, "normal:{}ns", deviation.as_nanos()),
            Self::Density(file) => write!(f, "kde:{}", name(file)),
            Self::Trace(file) => write!(f, "trace:{}", name(file)),
            Self::Kernel(kernel) => write!(f, "kernel:{kernel}"),
        }
    }
}

impl FromStr for Model {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = || {
            format!(
                "'{text}' is no model: expected laggard:PERCENT%, normal:DEVIATION, kde:FILE, trace:FILE or kernel:NAME"
            )
        };
        let (name, value) = text.split_once(':').ok_or_else(wanted)?;
        match name {
            "laggard" => match value.trim_end_matches('%').parse::<f64>() {
                Ok(pct) if (0.0..=1000.0).contains(&pct) => Ok(Self::Laggard(pct)),
                _ => Err(format!("'{value}' is no percentage from 0 to 1000")),
            },
            "normal" => parse::duration(value).map(Self::Normal),
            "kernel" => value.parse().map(Self::Kernel),
            // Ranks may have another working directory.
            "kde" | "trace" => {
                let file = std::path::absolute(value).map_err(|error| error.to_string())?;
                Ok(match name {
                    "kde" => Self::Density(file),
                    _ => Self::Trace(file),
                })
            }
            _ => Err(wanted()),
        }
    }
}
