//! Standard output.

use std::io::{ErrorKind, Write};

use crate::failure::Failure;

/// Writes `text` to standard output. A reader that has seen enough and closed the pipe is no
/// failure; a full disk is.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::run(format!(
            "cannot write to standard output: {error}"
        ))),
        _ => Ok(()),
    }
}
