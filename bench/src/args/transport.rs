//! What carries the messages: our own transports, or a foreign library.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use tagwire_base::Config;
use tagwire_base::nearest::nearest;

use super::tool::{TOOL, Tool};
use crate::environment::MPI;

/// The setting behind `--transport`.
const SETTING: &str = "transport";

/// What stands for all of our transports that work here: who knows which those are puts them in its place.
const ALL: &str = "all";

/// What carries the messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum TransportChoice {
    /// One of ours, as the setting `transport` names it.
    Ours(String),
    /// Another library, by the MPI standard ABI; at this path, or searched for.
    Mpi(Option<PathBuf>),
    /// A tool of a peer, which measures by itself.
    Tool(Tool),
}

/// What one `--transport` names: several with commas between them. What follows a comma and is no
/// transport belongs to the detail before it: `ucx:posix,cma,shm` are two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transports(pub Vec<TransportChoice>);

impl TransportChoice {
    /// What is used when the command line names nothing.
    #[must_use]
    pub fn of_setting(config: &Config) -> Self {
        let entry = config.entry(SETTING);
        Self::Ours(entry.map_or_else(
            |_| tagwire_rails::AUTO.to_owned(),
            |entry| entry.value().to_string(),
        ))
    }

    /// Whether what is sent to another rank vanishes.
    #[must_use]
    pub fn reaches_nobody(&self) -> bool {
        matches!(self, Self::Ours(name) if name == "null")
    }

    /// Whether it stands for all of ours that work here.
    #[must_use]
    pub fn is_all(&self) -> bool {
        matches!(self, Self::Ours(name) if name == ALL)
    }

    /// Whether it is a foreign library.
    #[must_use]
    pub const fn is_mpi(&self) -> bool {
        matches!(self, Self::Mpi(_))
    }
}

impl fmt::Display for TransportChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ours(name) => f.write_str(name),
            Self::Mpi(_) => f.write_str(MPI),
            Self::Tool(tool) => tool.fmt(f),
        }
    }
}

impl FromStr for TransportChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == ALL => return Ok(Self::Ours(ALL.to_owned())),
            None if text == "mpi" => return Ok(Self::Mpi(None)),
            Some(("mpi", "")) => return Err("'mpi:' lacks the path of a library".to_owned()),
            Some(("mpi", path)) => return Ok(Self::Mpi(Some(path.into()))),
            Some((TOOL, tool)) => return tool.parse().map(Self::Tool),
            _ => {}
        }
        if let Some(name) = text.split('+').map(head).find(|name| !is_known(name)) {
            return Err(unknown(name));
        }
        let value = tagwire_rails::SETTINGS[0].parse(text)?;
        Ok(Self::Ours(value.to_string()))
    }
}

impl FromStr for Transports {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts: Vec<String> = Vec::new();
        for part in text.split(',') {
            match parts.last_mut() {
                Some(last) if last.contains(':') && !is_known(head(part)) => {
                    last.push(',');
                    last.push_str(part);
                }
                _ => parts.push(part.to_owned()),
            }
        }
        let choices = parts.iter().map(|part| part.parse());
        choices.collect::<Result<_, _>>().map(Self)
    }
}

/// What stands before file and detail.
fn head(part: &str) -> &str {
    let end = part.find(['@', ':', '+']).unwrap_or(part.len());
    &part[..end]
}

fn is_known(name: &str) -> bool {
    name == "mpi" || name == TOOL || name == ALL || tagwire_rails::NAMES.contains(&name)
}

/// What is no transport by itself, but of a library: details that users know by their names.
const OF_LIBRARIES: &[(&str, &str)] = &[
    ("tcp", "ofi"),
    ("verbs", "ofi"),
    ("sockets", "ofi"),
    ("net", "ofi"),
    ("udp;ofi_rxd", "ofi"),
    ("tcp;ofi_rxm", "ofi"),
    ("rc_verbs", "ucx"),
    ("ud_verbs", "ucx"),
    ("posix", "ucx"),
    ("sysv", "ucx"),
];

fn unknown(name: &str) -> String {
    let names = || tagwire_rails::NAMES.iter().copied();
    let all: Vec<_> = names().map(|name| format!("'{name}'")).collect();
    let of_libraries = OF_LIBRARIES.iter().map(|(detail, _)| *detail);
    let meant = nearest(name, names().chain(["mpi"]).chain(of_libraries));
    let hint = meant.map_or_else(String::new, |meant| {
        let library = OF_LIBRARIES.iter().find(|(detail, _)| *detail == meant);
        let library = library.map_or_else(String::new, |(_, library)| format!("{library}:"));
        format!("; did you mean '{library}{meant}'?")
    });
    format!(
        "unknown transport; there are {}, 'mpi', 'mpi:PATH', 'tool:NAME' and 'all'{hint}",
        all.join(", ")
    )
}
