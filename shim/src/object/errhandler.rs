//! Error handlers by handle.

use std::sync::Arc;

use crate::abi::Errhandler;
use crate::error::{Class, Error, Result};
use crate::functions::ErrorFunction;
use crate::lock::Lock;
use crate::object::table::{Kind, Table};

/// What is done with an error.
#[derive(Debug, Clone)]
pub(crate) enum Handler {
    /// `MPI_ERRORS_ARE_FATAL`, where the program has set none.
    Initial,
    /// `MPI_ERRORS_ARE_FATAL`.
    Fatal,
    /// `MPI_ERRORS_ABORT`.
    Abort,
    /// `MPI_ERRORS_RETURN`.
    Return,
    Made(Arc<Made>),
}

/// An error handler that a program has made. Objects which have it keep it when its handle is freed.
#[derive(Debug)]
pub(crate) struct Made {
    function: ErrorFunction,
    shown: Lock<Shown>,
}

/// What an error is raised on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Raiser {
    Comm,
    Session,
    Win,
    File,
}

/// The handle of an error handler, while the program has references to it.
#[derive(Debug)]
struct Shown {
    handle: Errhandler,
    references: usize,
}

impl Made {
    /// Returns its function. Nothing is locked when it is called.
    pub(crate) const fn function(&self) -> ErrorFunction {
        self.function
    }
}

/// The error handlers of a process.
#[derive(Debug)]
pub(crate) struct Handlers(Table<Arc<Made>>);

impl Handlers {
    pub(crate) fn new() -> Self {
        Self(Table::new(Kind::Errhandler))
    }

    pub(crate) fn enter(&self, function: ErrorFunction) -> Result<Errhandler> {
        let made = Arc::new(Made {
            function,
            shown: Lock::new(Shown {
                handle: Errhandler::NULL,
                references: 0,
            }),
        });
        self.show(&Handler::Made(made))
    }

    /// Returns the error handler with a handle.
    ///
    /// # Errors
    /// `MPI_ERR_ERRHANDLER` where there is none.
    pub(crate) fn get(&self, handle: Errhandler) -> Result<Handler> {
        Ok(match handle {
            Errhandler::ARE_FATAL => Handler::Fatal,
            Errhandler::ABORT => Handler::Abort,
            Errhandler::RETURN => Handler::Return,
            _ => Handler::Made(Arc::clone(&*self.0.find(handle.0)?)),
        })
    }

    /// Returns the error handler with a handle, for objects of a kind.
    ///
    /// # Errors
    /// `MPI_ERR_ERRHANDLER` where there is none for such objects.
    pub(crate) fn get_for(&self, handle: Errhandler, raiser: Raiser) -> Result<Handler> {
        let handler = self.get(handle)?;
        let is_for = match &handler {
            Handler::Made(made) => matches!(
                (made.function, raiser),
                (ErrorFunction::Comm(_), Raiser::Comm)
                    | (ErrorFunction::Session(_), Raiser::Session)
                    | (ErrorFunction::Win(_), Raiser::Win)
                    | (ErrorFunction::File(_), Raiser::File)
            ),
            _ => true,
        };
        match is_for {
            true => Ok(handler),
            false => {
                let text = "the error handler is for objects of another kind";
                Err(Error::new(Class::Errhandler, text))
            }
        }
    }

    /// Returns a handle of an error handler, with a reference for the program: the one it has, or a new one.
    pub(crate) fn show(&self, handler: &Handler) -> Result<Errhandler> {
        let made = match handler {
            Handler::Initial | Handler::Fatal => return Ok(Errhandler::ARE_FATAL),
            Handler::Abort => return Ok(Errhandler::ABORT),
            Handler::Return => return Ok(Errhandler::RETURN),
            Handler::Made(made) => made,
        };
        let mut shown = made.shown.lock();
        if shown.references == 0 {
            let entered = self.0.insert_with(|_| Arc::clone(made))?;
            shown.handle = Errhandler(entered);
        }
        shown.references += 1;
        Ok(shown.handle)
    }

    /// Gives a reference of the program back.
    pub(crate) fn free(&self, handle: Errhandler) -> Result {
        let Handler::Made(made) = self.get(handle)? else {
            return Ok(());
        };
        let mut shown = made.shown.lock();
        shown.references = shown.references.saturating_sub(1);
        if shown.references == 0 {
            self.0.remove(handle.0);
        }
        Ok(())
    }
}
