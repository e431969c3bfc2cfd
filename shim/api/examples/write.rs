//! Prints what is written from the tables: `write header`, `write coverage`, `write exports`, or for Fortran `write include`, `write mpi`,
//! `write f08` or `write entries`.

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
    let fortran = match api.fortran() {
        Ok(fortran) => fortran,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    match std::env::args().nth(1).as_deref() {
        Some("include") => print!("{}", fortran.include()),
        Some("mpi") => print!("{}", fortran.module()),
        Some("f08") => print!("{}", fortran.module_2008()),
        Some("entries") => print!("{}", fortran.entries()),
        Some("header") => print!("{}", api.header()),
        Some("coverage") => print!("{}", api.coverage()),
        Some("exports") => print!("{}", api.exports()),
        _ => {
            eprintln!("usage: write header | coverage | exports | include | mpi | f08 | entries");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
