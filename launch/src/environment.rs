//! The variables by which a launcher informs a process of its place in a job.

use std::ffi::OsString;

use crate::error::{Error, Result};

/// The variable by which the user chooses how a rank joins its job: one of [`choices`](crate::detect::choices).
pub const LAUNCHER: &str = "TAGWIRE_LAUNCHER";

/// The variables of a process.
pub(crate) struct Environment<'a>(pub &'a dyn Fn(&str) -> Option<OsString>);

impl Environment<'_> {
    /// Returns the value of a variable, where that is text.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        (self.0)(name)?.into_string().ok()
    }

    /// Whether a variable is set, to whatever.
    pub(crate) fn has(&self, name: &str) -> bool {
        (self.0)(name).is_some()
    }

    /// Returns whether all of the variables `names` are set. `advice` says who sets them, and how to do without.
    ///
    /// # Errors
    /// When some of them are missing.
    pub(crate) fn has_all(&self, names: &[&str], advice: &str) -> Result<bool> {
        let (set, missing): (Vec<&str>, Vec<&str>) = names.iter().partition(|name| self.has(name));
        if !set.is_empty() && !missing.is_empty() {
            return Err(Error::Environment(format!(
                "{} is set and {} is missing: {advice}",
                set.join(", "),
                missing.join(", ")
            )));
        }
        Ok(missing.is_empty())
    }

    /// Returns the number that a variable holds.
    ///
    /// # Errors
    /// When it holds anything else, or more than any launcher counts.
    pub(crate) fn number(&self, name: &str) -> Result<u32> {
        let number = self.text(name).and_then(|text| text.parse::<u32>().ok());
        number
            .filter(|number| i32::try_from(*number).is_ok())
            .ok_or_else(|| {
                let value = (self.0)(name).unwrap_or_default();
                Error::Environment(format!(
                    "{name} is {value:?}, which is no number that a launcher sets"
                ))
            })
    }

    /// Returns a rank and the number of ranks that two variables hold.
    ///
    /// # Errors
    /// As [`Environment::number`]; when there is no such rank among so many.
    pub(crate) fn rank_of(&self, rank: &str, size: &str) -> Result<(u32, u32)> {
        let (number, count) = (self.number(rank)?, self.number(size)?);
        if number >= count {
            return Err(Error::Environment(format!(
                "{rank} is {number} and {size} is {count}"
            )));
        }
        Ok((number, count))
    }
}
