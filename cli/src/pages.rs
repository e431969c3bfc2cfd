//! The options of what writes for shells and for `man`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

/// The options of `tagwire completions`.
#[derive(Debug, Args)]
pub struct CompletionOptions {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}

/// The options of `tagwire man`.
#[derive(Debug, Args)]
pub struct ManOptions {
    /// The folder of the pages; it is made where it is not there
    pub folder: PathBuf,
}
