//! Objects that programs may use before initialization and after finalization (MPI-5.0, section 11.4.1).

use crate::object::errhandler::Handlers;
use crate::object::info::Infos;
use crate::process::booleans::Booleans;
use crate::process::codes::Codes;

/// Infos, error handlers, error codes, and values of Fortran.
#[derive(Debug)]
pub(crate) struct Early {
    pub(crate) infos: Infos,
    pub(crate) handlers: Handlers,
    pub(crate) codes: Codes,
    pub(crate) booleans: Booleans,
}

impl Early {
    pub(crate) fn new() -> Self {
        Self {
            infos: Infos::new(),
            handlers: Handlers::new(),
            codes: Codes::new(),
            booleans: Booleans::default(),
        }
    }
}
