//! Reading results of `tagwire bench`.

use std::fs;
use std::path::Path;

use serde_json::{Map, Value};

use crate::failure::Failure;

/// Returns what a file of results holds, with flat rows.
///
/// # Errors
/// Where it cannot be read, or holds none, or those of another version: the file and why.
pub fn read(file: &Path) -> Result<Map<String, Value>, Failure> {
    let named = |why: String| Failure::usage(format!("{}: {why}", file.display()));
    let bytes = fs::read(file).map_err(|error| named(error.to_string()))?;
    tagwire_bench::document(&bytes).map_err(named)
}
