//! Writes the exported functions from the tables of `shim/api`, and names the library.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

use tagwire_mpi_api::Api;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libmpi_abi.so.1");
    // A tool may define `MPI_X` and call `PMPI_X`. What the library calls itself must never lead to the tool: the compiler
    // may make one of two equal functions a jump to the other.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-Bsymbolic-functions");
    let out = env::var_os("OUT_DIR").map(PathBuf::from);
    let file = out.ok_or("cargo sets OUT_DIR")?.join("exports.rs");
    fs::write(file, Api::load()?.exports())?;
    Ok(())
}
