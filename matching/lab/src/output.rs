//! What is printed.

use std::io::Write;

use crate::error::{Error, Result};

/// Writes to standard output.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| Error::Output("standard output".to_owned(), error))
}
