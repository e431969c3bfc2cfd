//! A kind of transport: how the settings name it, and how one is opened.

use std::fmt;

use tagwire_base::bootstrap::SharedBootstrap;
use tagwire_base::config::{Config, Setting};

use crate::byte::ByteTransport;
use crate::error::Result;
use crate::matching::MatchTransport;

/// One thing that a transport can be told to use: a provider, a network.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Way {
    /// What is written behind the colon; empty where nothing is, and nothing can be.
    pub detail: String,
    /// What it is and has here, one sentence each.
    pub notes: Vec<String>,
    /// Why it cannot move bytes here.
    pub why_not: Option<String>,
    /// Why it cannot match here.
    pub why_not_matching: Option<String>,
}

/// A foreign library that a transport uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignLibrary {
    /// Its name, as its makers write it.
    pub name: &'static str,
    /// Its version.
    pub version: String,
    /// Where it lies, as far as that can be seen; else the name under which it was asked for.
    pub file: String,
}

impl ForeignLibrary {
    /// The library that was asked for as `file` and has a function at `address`.
    #[must_use]
    pub fn new(name: &'static str, version: String, file: &str, address: usize) -> Self {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        Self {
            name,
            version,
            file: mapped_at(&maps, address).unwrap_or(file).to_owned(),
        }
    }
}

/// Name and version: `libfabric 1.17`.
impl fmt::Display for ForeignLibrary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.version)
    }
}

/// The file that is mapped at `address`, by the lines of `/proc/PID/maps` (man 5 `proc_pid_maps`).
fn mapped_at(maps: &str, address: usize) -> Option<&str> {
    maps.lines().find_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (begin, end) = range.split_once('-')?;
        let number = |text| usize::from_str_radix(text, 16).ok();
        let is_here = (number(begin)?..number(end)?).contains(&address);
        let place = rest.find('/')?;
        is_here.then(|| &rest[place..])
    })
}

/// What the choice among transports needs to know of one of them. `detail` is what the user
/// wrote behind the colon, as in `ofi:tcp`.
pub trait TransportKind: fmt::Debug + Sync {
    /// The name in settings and reports.
    fn name(&self) -> &'static str;

    /// What it is, in a few words.
    fn about(&self) -> &'static str;

    /// The settings that it reads.
    fn settings(&self) -> &'static [Setting];

    /// The setting that names the file of the foreign library; `None` where there is no such library.
    fn library_setting(&self) -> Option<&'static str> {
        None
    }

    /// The foreign library that `config` comes to; `None` where none is used or it cannot be loaded.
    fn library(&self, config: &Config) -> Option<ForeignLibrary> {
        let _ = config;
        None
    }

    /// What the library opens for `detail`, in its own words; `None` where no library chooses. A transport
    /// that `matches` may get another one than one that moves bytes.
    fn opened(
        &self,
        detail: Option<&str>,
        matches: bool,
        config: &Config,
        bootstrap: &SharedBootstrap,
    ) -> Option<String> {
        let _ = (detail, matches, config, bootstrap);
        None
    }

    /// What may stand behind the colon on this machine, and what cannot and why. Looks at
    /// libraries and devices: may take seconds.
    fn ways(&self, config: &Config) -> Vec<Way> {
        let _ = config;
        Vec::new()
    }

    /// Opens it as bytes.
    ///
    /// # Errors
    /// When the machine does not offer what it needs, or the detail names nothing.
    fn open(
        &self,
        detail: Option<&str>,
        config: &Config,
        bootstrap: &SharedBootstrap,
    ) -> Result<Box<dyn ByteTransport>>;

    /// Opens it as one that matches; `None` where it does not.
    ///
    /// # Errors
    /// As [`open`](TransportKind::open).
    fn open_matching(
        &self,
        detail: Option<&str>,
        config: &Config,
        bootstrap: &SharedBootstrap,
    ) -> Result<Option<Box<dyn MatchTransport>>> {
        let _ = (detail, config, bootstrap);
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_leads_to_its_file() {
        let maps = "7f00-7f80 r-xp 00000000 fe:01 17   /usr/lib/a b.so.1\n\
                    7f80-8000 rw-p 00000000 00:00 0 \n";
        assert_eq!(mapped_at(maps, 0x7f00), Some("/usr/lib/a b.so.1"));
        assert_eq!(mapped_at(maps, 0x7f80), None);
        assert_eq!(mapped_at(maps, 0x8000), None);
        let own = std::fs::read_to_string("/proc/self/maps").expect("Linux has it");
        let here = mapped_at(&own, mapped_at as *const () as usize).expect("a program is a file");
        assert_eq!(here, std::env::current_exe().unwrap().to_string_lossy());
    }
}
