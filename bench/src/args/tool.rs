//! The names of tools of peers.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What stands in front of a tool's name, with a colon behind it.
pub(crate) const TOOL: &str = "tool";

/// A tool, where it is installed, and what it is told to use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    pub(crate) name: String,
    /// The folder that has `bin` and `lib`; none where it is in `PATH`.
    pub(crate) prefix: Option<PathBuf>,
    /// A provider of libfabric, or the transports of UCX.
    pub(crate) detail: Option<String>,
}

pub(crate) const UCX: &str = "ucx_perftest";
pub(crate) const FABTESTS: &str = "fabtests";

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{TOOL}:{}", self.name)?;
        self.detail
            .iter()
            .try_for_each(|detail| write!(f, ":{detail}"))
    }
}

impl FromStr for Tool {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (place, detail) = match text.split_once(':') {
            Some((place, detail)) => (place, Some(detail.to_owned())),
            None => (text, None),
        };
        let (name, prefix) = match place.split_once('@') {
            Some((name, prefix)) => (name, Some(PathBuf::from(prefix))),
            None => (place, None),
        };
        match [UCX, FABTESTS].contains(&name) {
            true => Ok(Self {
                name: name.to_owned(),
                prefix,
                detail,
            }),
            false => Err(format!(
                "unknown tool '{name}'; there are '{UCX}' and '{FABTESTS}', as {TOOL}:NAME, {TOOL}:NAME@PREFIX or {TOOL}:NAME@PREFIX:DETAIL"
            )),
        }
    }
}
