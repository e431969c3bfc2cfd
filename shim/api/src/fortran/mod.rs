//! Fortran: its columns beside the table of functions, and what is written from both.

mod declare;
mod entries;
mod include;
mod module;
mod routine;

use crate::{Api, Error, lines};

pub use declare::Interface;
pub(crate) use routine::Routine;

/// The Fortran binding of an [`Api`]: the routines that Fortran has, in the order of the table.
///
/// ```
/// let api = tagwire_mpi_api::Api::load()?;
/// let fortran = api.fortran()?;
/// assert!(fortran.include().contains("PARAMETER (MPI_COMM_WORLD=257)"));
/// # Ok::<(), tagwire_mpi_api::Error>(())
/// ```
#[derive(Debug)]
pub struct Fortran<'a> {
    api: &'a Api,
    routines: Vec<Routine<'a>>,
}

impl<'a> Fortran<'a> {
    /// Reads the columns.
    ///
    /// # Errors
    ///
    /// The first line that does not follow the grammar at the head of its file, that names no function, or that has not a word for
    /// each parameter.
    pub(crate) fn parse(api: &'a Api, table: &str) -> Result<Self, Error> {
        let mut routines = Vec::new();
        let mut functions = api.functions();
        for (at, text) in lines(table) {
            if text.starts_with("== ") {
                continue;
            }
            let name = text.split_whitespace().next().unwrap_or_default();
            let routine = functions
                .find(|function| function.name == name)
                .ok_or_else(|| "no function of that name here".to_owned())
                .and_then(|function| Routine::parse(function, text));
            routines.push(routine.map_err(|why| Error::in_line(at, text, why))?);
        }
        Ok(Self { api, routines })
    }

    /// Writes `mpif.h`, which compiles in fixed and in free form.
    pub fn include(&self) -> String {
        include::write(self.api)
    }

    /// Writes the modules `mpi` and `tagwire_mpi_types`.
    pub fn module(&self) -> String {
        module::write(self.api, &self.routines, Interface::Mpi)
    }

    /// Writes the module `mpi_f08`, which uses `tagwire_mpi_types`.
    pub fn module_2008(&self) -> String {
        module::write(self.api, &self.routines, Interface::Mpi2008)
    }

    /// Writes the Rust declarations of the C functions that the entry points call.
    pub fn declarations(&self) -> String {
        entries::declarations(&self.routines)
    }

    /// Writes the Rust source of the entry points, for a crate that has the macros and types which they use.
    pub fn entries(&self) -> String {
        entries::write(&self.routines)
    }

    /// Returns the names of all entry points that are written, as the linker knows them.
    pub fn symbols(&self) -> Vec<String> {
        entries::symbols(&self.routines)
    }
}
