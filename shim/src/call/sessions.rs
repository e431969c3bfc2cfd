//! Sessions and process sets (MPI-5.0, section 11.3).

use crate::abi::{Errhandler, Group, Info, Request, Session};
use crate::call::bsend;
use crate::error::{Class, Error, On, Result};
use crate::library::Library;
use crate::object::errhandler::Raiser;
use crate::object::group::Ranks;
use crate::object::info::Entries;
use crate::object::session;
use crate::object::table::Kind;
use crate::process::Process;
use crate::process::psets::ProcessSet;
use crate::raw::{CountOut, Out, Pointer, Ref, Text, TextOut};

/// The key by which a program asks for a thread level, and the names of the levels.
const LEVEL: &str = "thread_level";
const LEVELS: [&str; 4] = [
    "MPI_THREAD_SINGLE",
    "MPI_THREAD_FUNNELED",
    "MPI_THREAD_SERIALIZED",
    "MPI_THREAD_MULTIPLE",
];

/// Runs the body of a call on a session, where its errors are raised.
fn on_session<R>(
    process: &Process,
    handle: Session,
    body: impl FnOnce(&session::Session) -> Result<R>,
) -> Result<R> {
    let session = process.sessions.find(handle.0)?;
    body(&session).map_err(|error| error.on(On::Session(handle)))
}

/// `MPI_Session_init`. The first one joins the job, where `MPI_Init` has not.
pub fn session_init(
    library: &Library,
    info: Info,
    errhandler: Errhandler,
    session: Ref<Session>,
) -> Result {
    session.set(Session::NULL);
    let joined = library.joined();
    let process = joined.map_err(|error| error.on(On::Handler(errhandler)))?;
    library.leave_at_exit();
    session.set(open(process, info, errhandler)?);
    Ok(())
}

/// Opens a session of a process.
///
/// # Errors
/// `MPI_ERR_ERRHANDLER`, `MPI_ERR_INFO`; `MPI_ERR_OTHER` where the process has left its job.
pub fn open(process: &Process, info: Info, errhandler: Errhandler) -> Result<Session> {
    let handlers = &process.early.handlers;
    let handler = handlers.get_for(errhandler, Raiser::Session)?;
    let opened = || {
        // What is asked for is provided; without a wish, any thread may call.
        let mut known = Entries::default();
        let asked = match info {
            Info::NULL => None,
            _ => process.early.infos.read(info, |entries| {
                let level = entries.get(LEVEL);
                Ok(level.and_then(|level| LEVELS.into_iter().find(|known| *known == level)))
            })?,
        };
        known.set(LEVEL, asked.unwrap_or(LEVELS[3]))?;
        process.models.begin_session()?;
        let made = session::Session::new(handler, known);
        let entered = process.sessions.insert_with(|_| made);
        entered.map(Session).inspect_err(|_| {
            process.models.end_session();
        })
    };
    opened().map_err(|error: Error| error.on(On::Handler(errhandler)))
}

/// `MPI_Session_finalize`. A buffer that is attached to it is detached, which waits until its messages have been delivered.
pub fn session_finalize(process: &Process, session: Ref<Session>) -> Result {
    let given = session.get()?;
    on_session(process, given, |held| {
        held.buffer().detach(&process.messenger)
    })?;
    let was_open = process.sessions.remove(given.0).is_some();
    session.set(Session::NULL);
    match was_open && process.models.end_session() {
        true => process.leave(),
        false => Ok(()),
    }
}

/// `MPI_Session_get_num_psets`.
pub fn session_get_num_psets(
    process: &Process,
    session: Session,
    _: Info,
    count: Ref<i32>,
) -> Result {
    on_session(process, session, |_| {
        count.set(ProcessSet::ALL.len() as i32);
        Ok(())
    })
}

/// `MPI_Session_get_nth_pset`.
pub fn session_get_nth_pset(
    process: &Process,
    session: Session,
    _: Info,
    number: i32,
    length: Ref<i32>,
    name: TextOut,
) -> Result {
    on_session(process, session, |_| {
        let (set, given) = (ProcessSet::numbered(number)?, length.get()?);
        let size = usize::try_from(given);
        let size = size.map_err(|_| Error::new(Class::Arg, format!("the length is {given}")))?;
        name.set(set.name(), size);
        length.set(set.name().len() as i32 + 1);
        Ok(())
    })
}

/// `MPI_Session_get_info`.
pub fn session_get_info(process: &Process, session: Session, info: Ref<Info>) -> Result {
    on_session(process, session, |held| {
        let entries = held.info().clone();
        info.set(process.early.infos.enter(entries)?);
        Ok(())
    })
}

/// `MPI_Session_get_pset_info`.
pub fn session_get_pset_info(
    process: &Process,
    session: Session,
    name: Text,
    info: Ref<Info>,
) -> Result {
    on_session(process, session, |_| {
        let mut entries = Entries::default();
        let size = set_named(name)?.members(process).len();
        entries.set("mpi_size", &size.to_string())?;
        info.set(process.early.infos.enter(entries)?);
        Ok(())
    })
}

/// `MPI_Group_from_session_pset`. A set that there is not has the null group, and is an error as of other libraries.
pub fn group_from_session_pset(
    process: &Process,
    session: Session,
    name: Text,
    group: Ref<Group>,
) -> Result {
    group.set(Group::NULL);
    on_session(process, session, |_| {
        let members = set_named(name)?.members(process);
        group.set(process.enter_group(Ranks::new(members, session))?);
        Ok(())
    })
}

/// Returns the process set with a name.
///
/// # Errors
/// `MPI_ERR_ARG` where there is none.
fn set_named(name: Text) -> Result<ProcessSet> {
    let name = name.get()?;
    ProcessSet::named(&name).ok_or_else(|| {
        let text = format!("there is no process set '{name}'");
        Error::new(Class::Arg, text)
    })
}

/// `MPI_Session_set_errhandler`.
pub fn session_set_errhandler(process: &Process, session: Session, handler: Errhandler) -> Result {
    on_session(process, session, |held| {
        held.set_errhandler(process.early.handlers.get_for(handler, Raiser::Session)?);
        Ok(())
    })
}

/// `MPI_Session_get_errhandler`. The program frees what it gets.
pub fn session_get_errhandler(
    process: &Process,
    session: Session,
    handler: Ref<Errhandler>,
) -> Result {
    on_session(process, session, |held| {
        handler.set(process.early.handlers.show(&held.errhandler())?);
        Ok(())
    })
}

/// `MPI_Session_call_errhandler`.
pub fn session_call_errhandler(library: &Library, session: Session, code: i32) -> Result {
    let process = library.process();
    let process = process.ok_or_else(|| Kind::Session.invalid(session.0))?;
    on_session(process, session, |_| Ok(()))?;
    let text = process.text_of(code);
    let text = text.unwrap_or_else(|| format!("the error code {code}"));
    let error = Error::of_code(code, text).on(On::Session(session));
    process.raise(&error, "MPI_Session_call_errhandler");
    Ok(())
}

/// `MPI_Session_attach_buffer`.
pub fn session_attach_buffer(
    process: &Process,
    session: Session,
    buffer: Out,
    size: i64,
) -> Result {
    on_session(process, session, |held| {
        bsend::attach(held.buffer(), buffer, size)
    })
}

/// `MPI_Session_detach_buffer`.
pub fn session_detach_buffer(
    process: &Process,
    session: Session,
    address: Ref<Pointer>,
    size: CountOut,
) -> Result {
    on_session(process, session, |held| {
        bsend::detach(process, held.buffer(), address, size)
    })
}

/// `MPI_Session_flush_buffer`.
pub fn session_flush_buffer(process: &Process, session: Session) -> Result {
    on_session(process, session, |held| {
        held.buffer().flush(&process.messenger)
    })
}

/// `MPI_Session_iflush_buffer`.
pub fn session_iflush_buffer(process: &Process, session: Session, request: Ref<Request>) -> Result {
    on_session(process, session, |held| {
        bsend::iflush(process, held.buffer(), crate::abi::Comm::SELF, request)
    })
}
