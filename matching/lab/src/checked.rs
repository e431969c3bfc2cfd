//! How an engine was checked: what rows of results say of it.

use std::fmt;
use std::fs;

use serde::{Serialize, Serializer};
use tagwire_matching::{EngineName, Grade};

use crate::error::{Error, Result};

/// What an engine has passed, and what the calls follow from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Checked {
    grade: &'static str,
    operations: u64,
    seed: Option<u64>,
    /// Of the file of an engine in a library: the name alone does not say which one was checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<Digest>,
}

/// A SHA-256, as `sha256sum` prints it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Digest([u8; 32]);

impl Checked {
    /// Returns that an engine has passed a grade in so many operations, which follow from a seed where there is one.
    ///
    /// # Errors
    /// [`Error::Read`] where the file of its library is not there any more.
    pub(crate) fn of(
        engine: &EngineName,
        grade: Grade,
        operations: u64,
        seed: Option<u64>,
    ) -> Result<Self> {
        Ok(Self {
            grade: grade.name(),
            operations,
            seed,
            sha256: library(engine).map(Digest::of_file).transpose()?,
        })
    }

    /// Returns the name of the grade.
    pub(crate) const fn grade(&self) -> &'static str {
        self.grade
    }
}

/// `exact 20000 1`: the grade, the operations, and their seed where they have one; behind them the library's `sha256:` and hash.
impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.grade, self.operations)?;
        if let Some(seed) = self.seed {
            write!(f, " {seed}")?;
        }
        self.sha256
            .map_or(Ok(()), |hash| write!(f, " sha256:{hash}"))
    }
}

/// The file of an engine in a library: its name is the path, and a name with a slash is one.
fn library(engine: &EngineName) -> Option<&'static str> {
    Some(engine.name()).filter(|name| name.contains('/'))
}

impl Digest {
    fn of_file(path: &str) -> Result<Self> {
        let bytes = fs::read(path).map_err(|error| Error::Read(path.to_owned(), error))?;
        Ok(Self(hmac_sha256::Hash::hash(&bytes)))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 180-4's example, as `sha256sum` prints it.
    #[test]
    fn a_file_has_the_hash_that_sha256sum_prints() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("abc");
        fs::write(&file, "abc").unwrap();
        let checked = Checked {
            grade: "exact",
            operations: 9,
            seed: Some(1),
            sha256: Some(Digest::of_file(file.to_str().unwrap()).unwrap()),
        };
        let hash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(checked.to_string(), format!("exact 9 1 sha256:{hash}"));
        let value = serde_json::to_value(checked).unwrap();
        assert_eq!(value["sha256"], hash);
        fs::remove_file(&file).unwrap();
        let gone = Digest::of_file(file.to_str().unwrap()).unwrap_err();
        assert!(gone.to_string().starts_with("cannot read "), "{gone}");
    }

    #[test]
    fn an_engine_that_is_no_file_has_no_hash() {
        let list: EngineName = "list".parse().unwrap();
        let checked = Checked::of(&list, Grade::Exact, 9, None).unwrap();
        assert_eq!(checked.to_string(), "exact 9");
        let value = serde_json::to_value(checked).unwrap();
        assert_eq!(
            value,
            serde_json::json!({"grade": "exact", "operations": 9, "seed": null})
        );
    }
}
