//! The `tagwire` command, with the engines of the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    tagwire_cli::command().main()
}
