//! Variables that a launcher sets together.

use std::ffi::OsString;

use crate::error::{Error, Result};

/// Returns whether the variables `names` are set. `advice` names who sets them, and how to do without.
///
/// # Errors
/// When some of them are missing.
pub(crate) fn are_set(
    variable: &impl Fn(&str) -> Option<OsString>,
    names: &[&str],
    advice: &str,
) -> Result<bool> {
    let (set, missing): (Vec<&str>, Vec<&str>) =
        names.iter().partition(|name| variable(name).is_some());
    if !set.is_empty() && !missing.is_empty() {
        return Err(Error::Environment(format!(
            "{} is set and {} is missing: {advice}",
            set.join(", "),
            missing.join(", ")
        )));
    }
    Ok(missing.is_empty())
}
