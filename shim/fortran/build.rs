//! Writes the entry points of Fortran from the tables of `shim/api`, and names the library.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

use tagwire_mpi_api::Api;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libmpifort_abi.so.1");
    let out = env::var_os("OUT_DIR").map(PathBuf::from);
    let out = out.ok_or("cargo sets OUT_DIR")?;
    let api = Api::load()?;
    let fortran = api.fortran()?;
    fs::write(out.join("declarations.rs"), fortran.declarations())?;
    fs::write(out.join("entries.rs"), fortran.entries())?;
    Ok(())
}
