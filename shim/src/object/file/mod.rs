//! Files by handle (MPI-5.0, chapter 14).
//!
//! ```text
//!     File          what it is to its program: view, file pointer, info, error handler, a split access under way
//!       view        the etype and the filetype, and how data is represented
//!       memory      the program's memory, as an access reads and writes it
//!       table       all files, and what is of none
//!     tagwire-files reads and writes
//! ```

pub(crate) mod hints;
pub(crate) mod memory;
pub(crate) mod table;
pub(crate) mod view;

use std::fmt;
use std::sync::{Arc, MutexGuard};

use tagwire_files::{self as files, Access, Mode, Outcome};

use crate::abi::{Session, Status};
use crate::error::{Class, Error, Result};
use crate::lock::Lock;
use crate::object::datatype::{Span, Types};
use crate::object::errhandler::Handler;
use crate::object::info::Entries;
use memory::{How, Memory};
use view::Viewed;

/// Where an access begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    /// At an offset in etypes.
    At(i64),
    /// Where the file pointer of this process is.
    Own,
    /// Where the shared file pointer is.
    Shared,
    /// The same, for all processes in their order.
    Ordered,
}

/// An access.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub(crate) memory: Memory,
    pub(crate) from: From,
    pub(crate) is_collective: bool,
}

/// How an access ended: what it has read or written, and what has ended it.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: Status,
    pub(crate) error: Option<Error>,
}

/// A split access that has begun: its name, and how it ended.
#[derive(Debug)]
pub(crate) struct Split {
    pub(crate) name: &'static str,
    pub(crate) ended: Ended,
}

/// What calls on a file change.
#[derive(Debug)]
struct State {
    viewed: Arc<Viewed>,
    /// In etypes.
    position: i64,
    split: Option<Split>,
    kept: Entries,
}

/// A file.
pub(crate) struct File {
    pub(crate) file: files::File,
    amode: i32,
    session: Session,
    state: Lock<State>,
    errhandler: Lock<Handler>,
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.file.fmt(f)
    }
}

impl File {
    /// Returns a file that was opened with a view of its bytes.
    pub(crate) fn new(
        file: files::File,
        (amode, session): (i32, Session),
        (viewed, kept): (Viewed, Entries),
        errhandler: Handler,
    ) -> Self {
        Self {
            file,
            amode,
            session,
            state: Lock::new(State {
                viewed: Arc::new(viewed),
                position: 0,
                split: None,
                kept,
            }),
            errhandler: Lock::new(errhandler),
        }
    }

    pub(crate) const fn amode(&self) -> i32 {
        self.amode
    }

    pub(crate) const fn session(&self) -> Session {
        self.session
    }

    pub(crate) fn errhandler(&self) -> Handler {
        self.errhandler.lock().clone()
    }

    pub(crate) fn set_errhandler(&self, handler: Handler) {
        *self.errhandler.lock() = handler;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(crate) fn viewed(&self) -> Arc<Viewed> {
        Arc::clone(&self.state().viewed)
    }

    /// Sets the view. The file pointer of this process is at its beginning then.
    pub(crate) fn set_viewed(&self, viewed: Viewed) {
        let mut state = self.state();
        state.viewed = Arc::new(viewed);
        state.position = 0;
    }

    /// Returns the hints that are in use.
    pub(crate) fn info(&self) -> Result<Entries> {
        hints::all(&self.file.hints(), self.file.path(), &self.state().kept)
    }

    /// Takes the hints of an info.
    pub(crate) fn set_info(&self, given: &Entries) -> Result {
        let mut state = self.state();
        let mut set = Ok(());
        self.file
            .change_hints(|hints| set = hints::set(hints, &mut state.kept, given));
        set
    }

    /// Refuses calls that sequential files do not have (MPI-5.0, sections 14.2.4, 14.2.5 and 14.4).
    ///
    /// # Errors
    /// `MPI_ERR_UNSUPPORTED_OPERATION`.
    pub(crate) fn check_seekable(&self) -> Result {
        match self.file.mode().contains(Mode::SEQUENTIAL) {
            false => Ok(()),
            true => {
                let text = "the file was opened with MPI_MODE_SEQUENTIAL: its shared file pointer alone is used";
                Err(Error::new(Class::UnsupportedOperation, text))
            }
        }
    }

    /// Returns where the file pointer of this process is, in etypes.
    pub(crate) fn position(&self) -> i64 {
        self.state().position
    }

    pub(crate) fn set_position(&self, position: i64) {
        self.state().position = position;
    }

    /// Begins a split access, of which `run` is all (MPI-5.0, section 14.4.5: any part of it may be done so).
    ///
    /// # Errors
    /// `MPI_ERR_OTHER` where one has begun that has not ended; those of `run`.
    pub(crate) fn begin_split(
        &self,
        name: &'static str,
        run: impl FnOnce() -> Result<Ended>,
    ) -> Result {
        self.check_no_split()?;
        let ended = run()?;
        self.state().split = Some(Split { name, ended });
        Ok(())
    }

    /// Refuses what must not be called between the beginning and the end of a split access.
    ///
    /// # Errors
    /// `MPI_ERR_OTHER`.
    pub(crate) fn check_no_split(&self) -> Result {
        match &self.state().split {
            None => Ok(()),
            Some(split) => {
                let text = format!("MPI_File_{}_begin was called, and not its end", split.name);
                Err(Error::new(Class::Other, text))
            }
        }
    }

    /// Ends a split access. Returns how it ended.
    ///
    /// # Errors
    /// `MPI_ERR_OTHER` where there is none of that name.
    pub(crate) fn end_split(&self, name: &'static str) -> Result<Ended> {
        let mut state = self.state();
        match state.split.take_if(|split| split.name == name) {
            Some(split) => Ok(split.ended),
            None => {
                let text = format!("MPI_File_{name}_begin was not called before");
                Err(Error::new(Class::Other, text))
            }
        }
    }

    /// Makes an access.
    ///
    /// # Errors
    /// What is wrong with the arguments, `MPI_ERR_OTHER` for a collective access while a split one is under way: nothing is read or
    /// written then, and no file pointer of this process moves.
    pub(crate) fn access(&self, types: &Types, call: Call) -> Result<Ended> {
        let viewed = self.viewed();
        let alone = match call.is_collective {
            true => self.check_no_split(),
            false => Ok(()),
        };
        let checked = alone.and_then(|()| self.check(types, &viewed, call));
        let is_ordered = call.from == From::Ordered;
        // Others do not wait for a process with wrong arguments.
        if checked.is_err() && is_ordered {
            drop(self.file.advance_ordered(0));
        }
        let begun = checked.and_then(|(span, units)| {
            let position = self.begin(&viewed, call.from, units)?;
            Ok((span, Access::new(&viewed.view, position)))
        });
        // The parts of processes in their order do not lie between each other.
        let is_collective = call.is_collective && !is_ordered;
        if begun.is_err() && is_collective {
            let nothing = Access::new(&viewed.view, 0);
            memory::take_part(&self.file, nothing, call.memory);
        }
        let (span, access) = begun?;
        let how = How {
            representation: viewed.representation,
            is_collective,
        };
        let outcome = memory::access(&self.file, access, (call.memory, &span), how)?;
        Ok(ended(outcome))
    }

    /// Checks the arguments of an access. Returns the elements, and how many etypes they are.
    fn check(&self, types: &Types, viewed: &Viewed, call: Call) -> Result<(Span, u64)> {
        if matches!(call.from, From::At(_) | From::Own) {
            self.check_seekable()?;
        }
        let mode = self.file.mode();
        match call.memory {
            Memory::Read(_) if !mode.reads() => return Err(files::Error::NotReadable.into()),
            Memory::Write(_) if !mode.writes() => return Err(files::Error::NotWritable.into()),
            _ => {}
        }
        let elements = call.memory.elements();
        let span = types.span(elements.count, elements.datatype)?;
        span.check(elements.address.read())?;
        // Memory that no address is of is refused before a file pointer moves and others wait.
        span.program.span(span.count)?;
        if let From::At(offset) = call.from {
            viewed.position(offset)?;
        }
        let bytes = viewed.bytes_of(&span.program, span.count)?;
        match bytes.is_multiple_of(viewed.view.unit()) {
            true => Ok((span, bytes / viewed.view.unit())),
            false => {
                let text = format!(
                    "{bytes} bytes are not whole etypes of {} bytes",
                    viewed.view.unit()
                );
                Err(Error::new(Class::Arg, text))
            }
        }
    }

    /// Returns the position at which an access of so many etypes begins, and moves a file pointer on.
    ///
    /// # Errors
    /// `MPI_ERR_ARG` where it is beyond the longest file: the file pointer of this process does not move then.
    fn begin(&self, viewed: &Viewed, from: From, units: u64) -> Result<u64> {
        let too_far = || Error::new(Class::Arg, "the file pointer is beyond the longest file");
        let shared = |start: u64| viewed.position(i64::try_from(start).map_err(|_| too_far())?);
        match from {
            From::At(offset) => viewed.position(offset),
            From::Own => {
                let mut state = self.state();
                let position = viewed.position(state.position)?;
                let units = i64::try_from(units).ok();
                let end = units.and_then(|units| state.position.checked_add(units));
                state.position = end.ok_or_else(too_far)?;
                Ok(position)
            }
            From::Shared => shared(self.file.advance_shared(units)?),
            From::Ordered => shared(self.file.advance_ordered(units)?),
        }
    }
}

/// Returns how an access ended, in words of the standard.
fn ended(outcome: Outcome) -> Ended {
    Ended {
        status: Status::EMPTY.with_bytes(outcome.bytes),
        error: outcome.error.map(Error::from),
    }
}
