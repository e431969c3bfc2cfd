//! Infos by handle (MPI-5.0, chapter 10).

use std::sync::Arc;

use crate::abi::Info;
use crate::error::{Class, Error, Result};
use crate::lock::Lock;
use crate::object::table::{Kind, Table};

/// `MPI_MAX_INFO_KEY`, with the zero byte at the end.
pub(crate) const MAX_KEY: usize = 256;
/// `MPI_MAX_INFO_VAL`, with the zero byte at the end.
pub(crate) const MAX_VALUE: usize = 1024;

/// Keys and their values, in the order in which the keys were set first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Entries(Vec<(String, String)>);

impl Entries {
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        let found = self.0.iter().find(|entry| entry.0 == key);
        found.map(|entry| entry.1.as_str())
    }

    pub(crate) fn key(&self, number: usize) -> Option<&str> {
        self.0.get(number).map(|entry| entry.0.as_str())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Sets the value of a key.
    ///
    /// # Errors
    /// `MPI_ERR_INFO_KEY` and `MPI_ERR_INFO_VALUE` where they are too long, or the key is empty.
    pub(crate) fn set(&mut self, key: &str, value: &str) -> Result {
        checked(key)?;
        if value.len() >= MAX_VALUE {
            let text = format!("the value of the key '{key}' has {} bytes", value.len());
            return Err(Error::new(Class::InfoValue, text));
        }
        match self.0.iter_mut().find(|entry| entry.0 == key) {
            Some(entry) => value.clone_into(&mut entry.1),
            None => self.0.push((key.to_owned(), value.to_owned())),
        }
        Ok(())
    }

    /// Removes a key.
    ///
    /// # Errors
    /// `MPI_ERR_INFO_NOKEY` where it is not set.
    pub(crate) fn remove(&mut self, key: &str) -> Result {
        let place = self.0.iter().position(|entry| entry.0 == key);
        let place = place.ok_or_else(|| {
            let text = format!("the info has no key '{key}'");
            Error::new(Class::InfoNokey, text)
        })?;
        self.0.remove(place);
        Ok(())
    }

    /// Returns hints of communicators (MPI-5.0, section 7.4.4) that are set: assertions that are true or false.
    pub(crate) fn hints(&self) -> Self {
        let is_hint = |(key, value): &&(String, String)| {
            HINTS.contains(&key.as_str()) && matches!(value.as_str(), "true" | "false")
        };
        Self(self.0.iter().filter(is_hint).cloned().collect())
    }

    /// Sets those of another.
    pub(crate) fn extend(&mut self, other: &Self) {
        for (key, value) in &other.0 {
            self.0.retain(|entry| entry.0 != *key);
            self.0.push((key.clone(), value.clone()));
        }
    }
}

/// Hints of communicators.
const HINTS: &[&str] = &[
    "mpi_assert_no_any_tag",
    "mpi_assert_no_any_source",
    "mpi_assert_exact_length",
    "mpi_assert_allow_overtaking",
    "mpi_assert_strict_persistent_collective_ordering",
];

/// Returns a key.
///
/// # Errors
/// `MPI_ERR_INFO_KEY` where it is too long, or empty.
pub(crate) fn checked(key: &str) -> Result {
    match key.len() {
        1..MAX_KEY => Ok(()),
        bytes => Err(Error::new(
            Class::InfoKey,
            format!("a key of {bytes} bytes"),
        )),
    }
}

/// The infos of a process.
#[derive(Debug)]
pub(crate) struct Infos {
    made: Table<Lock<Entries>>,
    environment: Arc<Lock<Entries>>,
}

impl Infos {
    pub(crate) fn new() -> Self {
        Self {
            made: Table::new(Kind::Info),
            environment: Arc::new(Lock::new(environment())),
        }
    }

    pub(crate) fn enter(&self, entries: Entries) -> Result<Info> {
        let entered = self.made.insert_with(|_| Lock::new(entries));
        entered.map(Info)
    }

    /// Calls `body` with the entries of an info.
    ///
    /// # Errors
    /// `MPI_ERR_INFO` where there is none, and those of `body`.
    pub(crate) fn read<R>(
        &self,
        handle: Info,
        body: impl FnOnce(&Entries) -> Result<R>,
    ) -> Result<R> {
        match handle {
            Info::ENV => body(&self.environment.lock()),
            _ => body(&self.get(handle)?.lock()),
        }
    }

    /// The same for one that is changed: not for `MPI_INFO_ENV`.
    pub(crate) fn change<R>(
        &self,
        handle: Info,
        body: impl FnOnce(&mut Entries) -> Result<R>,
    ) -> Result<R> {
        body(&mut self.get(handle)?.lock())
    }

    /// Returns the hints of an info that a call is given, which may be `MPI_INFO_NULL`.
    pub(crate) fn hints(&self, handle: Info) -> Result<Entries> {
        match handle {
            Info::NULL => Ok(Entries::default()),
            _ => self.read(handle, |entries| Ok(entries.hints())),
        }
    }

    pub(crate) fn free(&self, handle: Info) -> Result {
        self.get(handle)?;
        self.made.remove(handle.0);
        Ok(())
    }

    /// Adds to `MPI_INFO_ENV` what is known once the process was initialized.
    pub(crate) fn describe(&self, key: &str, value: &str) {
        let set = self.environment.lock().set(key, value);
        debug_assert!(set.is_ok(), "a key of the standard");
    }

    fn get(&self, handle: Info) -> Result<Arc<Lock<Entries>>> {
        match handle {
            Info::ENV => {
                let text = "MPI_INFO_ENV cannot be changed or freed";
                Err(Error::new(Class::Info, text))
            }
            _ => self.made.find(handle.0),
        }
    }
}

/// Returns what is known of how the program was started (MPI-5.0, section 11.2.3). What is too long is left out.
pub(crate) fn environment() -> Entries {
    let mut entries = Entries::default();
    let mut add = |key, value: &str| {
        let _ = entries.set(key, value);
    };
    let mut arguments = std::env::args_os().map(|one| one.to_string_lossy().into_owned());
    if let Some(command) = arguments.next() {
        add("command", &command);
    }
    add("argv", &arguments.collect::<Vec<_>>().join(" "));
    if let Ok(folder) = std::env::current_dir() {
        add("wdir", &folder.to_string_lossy());
    }
    add("arch", std::env::consts::ARCH);
    entries
}
