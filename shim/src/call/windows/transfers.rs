//! Put and get (MPI-5.0, section 12.3).

use std::sync::Arc;

use tagwire_pml::AccessId;

use crate::abi::{Comm, Request, Win};
use crate::call::windows::{on_kept_win, on_win};
use crate::error::{Class, Error, On, Result};
use crate::object::datatype::Span;
use crate::object::pending::{End, Pending, PendingOperation};
use crate::object::request::DONE;
use crate::object::window::Window;
use crate::object::window::accesses::Ends;
use crate::object::window::waits::count_passing;
use crate::process::Process;
use crate::raw::{Elements, In, Out, Place, Ref};

/// Which calls complete an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Completion {
    /// Those of synchronization.
    Epoch,
    /// Those of its request: in epochs of locks alone (MPI-5.0, section 12.3.5).
    Request,
}

impl Completion {
    const fn ends(self) -> Ends {
        match self {
            Self::Epoch => Ends::Flushed,
            Self::Request => Ends::Taken,
        }
    }
}

/// Returns the member that an access of the call is to; `None` for `MPI_PROC_NULL`.
///
/// # Errors
/// `MPI_ERR_RANK`; `MPI_ERR_RMA_SYNC` where no epoch allows it.
#[inline]
pub(super) fn target(window: &Window, rank: i32, by: Completion) -> Result<Option<usize>> {
    let target = window.member(rank)?;
    if let Some(target) = target {
        let mut epochs = window.epochs();
        match by {
            Completion::Epoch => epochs.access(target)?,
            Completion::Request => epochs.passive(target)?,
        }
    }
    Ok(target)
}

/// Does an access of simple elements, at both ends, in mapped memory, in an epoch that allows it: the fast path of the thread that
/// initialized MPI. `None`, with nothing done, where it is another, errors too.
#[inline(always)]
fn try_simple(
    process: &Process,
    origin: Elements<Out>,
    place: Place,
    win: Win,
    copy: impl FnOnce(Out, usize),
) -> Option<()> {
    let types = &process.types;
    let bytes = types.simple_bytes(origin.count, origin.datatype)?;
    let is_alike = origin.count == place.count && origin.datatype == place.datatype;
    if !is_alike && types.simple_bytes(place.count, place.datatype)? != bytes {
        return None;
    }
    if bytes == 0 || origin.address.is_constant() {
        return None;
    }
    process.shortcuts.find(win, |window| {
        let (_, at) = window.mapped(place.rank, place.displacement, bytes)?;
        copy(at, bytes);
        Some(())
    })
}

/// Which end of an access sends the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sender {
    Origin,
    Target,
}

/// Returns both ends of an access, that of the origin first: of the receiver as much as is sent.
///
/// # Errors
/// `MPI_ERR_COUNT`, `MPI_ERR_TYPE`, `MPI_ERR_BUFFER`; `MPI_ERR_TRUNCATE` where the sender has more data.
fn ends(
    process: &Process,
    origin: Elements<Out>,
    place: Place,
    sender: Sender,
) -> Result<(Span, Span)> {
    let here = process.types.span(origin.count, origin.datatype)?;
    let there = process.types.span(place.count, place.datatype)?;
    let (here, there) = match sender {
        Sender::Origin => {
            let there = received(there, here.bytes)?;
            (here, there)
        }
        Sender::Target => (received(here, there.bytes)?, there),
    };
    here.check(origin.address.read())?;
    Ok((here, there))
}

/// Returns what receives so many bytes (MPI-5.0, section 12.3: as a message is received).
///
/// # Errors
/// `MPI_ERR_TRUNCATE` where they are more than it has room for.
pub(super) fn received(room: Span, bytes: usize) -> Result<Span> {
    if bytes == room.bytes {
        return Ok(room);
    }
    if bytes > room.bytes {
        let text = format!("{bytes} bytes of data do not fit {} bytes", room.bytes);
        return Err(Error::new(Class::Truncate, text));
    }
    room.first(bytes)
}

/// Writes data into a window.
fn write(
    process: &Process,
    window: &Window,
    origin: Elements<In>,
    place: Place,
    by: Completion,
) -> Result<Vec<AccessId>> {
    let Some(target) = target(window, place.rank, by)? else {
        return Ok(Vec::new());
    };
    let (from, to) = ends(process, origin.into(), place, Sender::Origin)?;
    let at = window.place(target, place.displacement, &to)?;
    window.put((target, by.ends()), (&from, origin.address), (&to, at))
}

/// Reads data out of a window.
fn read(
    process: &Process,
    window: &Window,
    origin: Elements<Out>,
    place: Place,
    by: Completion,
) -> Result<Vec<AccessId>> {
    let Some(target) = target(window, place.rank, by)? else {
        return Ok(Vec::new());
    };
    let (to, from) = ends(process, origin, place, Sender::Target)?;
    let at = window.place(target, place.displacement, &from)?;
    window.get((target, by.ends()), (&to, origin.address), (&from, at))
}

/// Accesses that a request stands for.
#[derive(Debug)]
struct Accessing {
    window: Arc<Window>,
    started: Vec<AccessId>,
}

impl Accessing {
    /// Returns how they have ended; `None` while some are under way.
    fn end(&self) -> Result<Option<End>> {
        let window = self.window.messenger().window();
        for access in &self.started {
            if !window.has_ended(*access)? {
                return Ok(None);
            }
        }
        let on = On::Win(self.window.handle());
        let ended = self.window.accesses().finish(&self.started);
        let ended = ended.map_err(|error| self.window.cause(error).on(on));
        Ok(Some(End::of(ended)))
    }
}

impl PendingOperation for Accessing {
    fn is_complete(&self) -> bool {
        let window = self.window.messenger().window();
        let mut all = self.started.iter();
        // On a thread that may not call, its end says so.
        all.all(|access| window.has_ended(*access).unwrap_or(true))
    }

    fn take(&self) -> Option<End> {
        self.end().unwrap_or_else(|error| Some(End::of(Err(error))))
    }
}

/// Returns the request of accesses: that of what has ended where there are none.
fn requested(process: &Process, window: Arc<Window>, started: Vec<AccessId>) -> Result<Request> {
    if started.is_empty() {
        count_passing(&window)?;
        return Ok(DONE);
    }
    let accessing = Accessing { window, started };
    let pending = Pending::Operation(Arc::new(accessing));
    process.requests.enter(pending, Comm::SELF)
}

/// The short form of `MPI_Put`.
#[inline(always)]
pub fn try_put(process: &Process, origin: Elements<In>, place: Place, win: Win) -> Option<()> {
    try_simple(process, origin.into(), place, win, |to, bytes| {
        to.copy(origin.address, bytes);
    })
}

/// `MPI_Put`, where its short form does nothing.
pub fn put(process: &Process, origin: Elements<In>, place: Place, win: Win) -> Result {
    on_win(process, win, |window| {
        write(process, window, origin, place, Completion::Epoch).map(drop)
    })
}

/// The short form of `MPI_Get`.
#[inline(always)]
pub fn try_get(process: &Process, origin: Elements<Out>, place: Place, win: Win) -> Option<()> {
    try_simple(process, origin, place, win, |from, bytes| {
        origin.address.copy(from.read(), bytes);
    })
}

/// `MPI_Get`, where its short form does nothing.
pub fn get(process: &Process, origin: Elements<Out>, place: Place, win: Win) -> Result {
    on_win(process, win, |window| {
        read(process, window, origin, place, Completion::Epoch).map(drop)
    })
}

/// `MPI_Rput`.
pub fn rput(
    process: &Process,
    origin: Elements<In>,
    place: Place,
    win: Win,
    request: Ref<Request>,
) -> Result {
    request.set(Request::NULL);
    on_kept_win(process, win, |window| {
        let started = write(process, window, origin, place, Completion::Request)?;
        request.set(requested(process, Arc::clone(window), started)?);
        Ok(())
    })
}

/// `MPI_Rget`.
pub fn rget(
    process: &Process,
    origin: Elements<Out>,
    place: Place,
    win: Win,
    request: Ref<Request>,
) -> Result {
    request.set(Request::NULL);
    on_kept_win(process, win, |window| {
        let started = read(process, window, origin, place, Completion::Request)?;
        request.set(requested(process, Arc::clone(window), started)?);
        Ok(())
    })
}
