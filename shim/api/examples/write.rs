//! Prints what is written from the tables: `write header`, `write coverage` or `write exports`.

use std::process::ExitCode;

use tagwire_mpi_api::Api;

fn main() -> ExitCode {
    let api = match Api::load() {
        Ok(api) => api,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    match std::env::args().nth(1).as_deref() {
        Some("header") => print!("{}", api.header()),
        Some("coverage") => print!("{}", api.coverage()),
        Some("exports") => print!("{}", api.exports()),
        _ => {
            eprintln!("usage: write header | coverage | exports");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
