//! The files of a process, and what is of no file.

use std::sync::Arc;

use crate::abi;
use crate::error::{Class, Error, Result};
use crate::lock::Lock;
use crate::object::errhandler::Handler;
use crate::object::file::File;
use crate::object::table::{Kind, Table};

/// The files of a process.
#[derive(Debug)]
pub(crate) struct Files {
    open: Table<File>,
    /// The error handler of `MPI_FILE_NULL`, which files get that are opened.
    initial: Lock<Handler>,
    /// The error handlers of files of which the close has failed, until that is raised.
    closed: Lock<Vec<(abi::File, Handler)>>,
    /// Data representations that the program has registered.
    representations: Lock<Vec<String>>,
}

impl Files {
    pub(crate) fn new() -> Self {
        Self {
            open: Table::new(Kind::File),
            initial: Lock::new(Handler::Return),
            closed: Lock::default(),
            representations: Lock::default(),
        }
    }

    /// Returns a file.
    ///
    /// # Errors
    /// `MPI_ERR_FILE` where there is none.
    pub(crate) fn find(&self, handle: abi::File) -> Result<Arc<File>> {
        self.open.find(handle.0)
    }

    /// Takes a file in.
    pub(crate) fn enter(&self, file: File) -> Result<abi::File> {
        let entered = self.open.insert_with(|_| file);
        entered.map(abi::File)
    }

    /// Takes a file out that was closed, or could not be: then the error is raised by its error handler.
    pub(crate) fn remove(&self, handle: abi::File, has_failed: bool) {
        if let Some(file) = self.open.remove(handle.0)
            && has_failed
        {
            let mut closed = self.closed.lock();
            closed.retain(|(other, _)| *other != handle);
            closed.push((handle, file.errhandler()));
        }
    }

    /// Returns the error handler of a file; that of `MPI_FILE_NULL` where there is none (MPI-5.0, section 14.7).
    pub(crate) fn handler(&self, handle: abi::File) -> Handler {
        if let Some(file) = self.open.get(handle.0) {
            return file.errhandler();
        }
        let mut closed = self.closed.lock();
        let place = closed.iter().position(|(other, _)| *other == handle);
        match place {
            Some(place) => closed.swap_remove(place).1,
            None => self.initial(),
        }
    }

    pub(crate) fn initial(&self) -> Handler {
        self.initial.lock().clone()
    }

    pub(crate) fn set_initial(&self, handler: Handler) {
        *self.initial.lock() = handler;
    }

    /// Takes a data representation of the program in.
    ///
    /// # Errors
    /// `MPI_ERR_DUP_DATAREP` where there is one of that name.
    pub(crate) fn register(&self, name: &str) -> Result {
        let mut known = self.representations.lock();
        let is_known = matches!(name, "native" | "internal" | "external32")
            || known.iter().any(|other| other == name);
        if is_known {
            let text = format!("there is a data representation \"{name}\" already");
            return Err(Error::new(Class::DupDatarep, text));
        }
        known.push(name.to_owned());
        Ok(())
    }

    /// Returns whether the program has registered a data representation of that name.
    pub(crate) fn has_registered(&self, name: &str) -> bool {
        self.representations
            .lock()
            .iter()
            .any(|other| other == name)
    }
}
