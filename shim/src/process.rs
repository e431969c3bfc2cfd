//! A rank as MPI sees it: its objects by handle, and the layers below.

mod booleans;
mod codes;
pub(crate) mod early;
mod freed;
mod memory;
mod models;
pub(crate) mod psets;

use std::fmt;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::thread::ThreadId;
use std::time::Duration;

use tagwire_base::bootstrap::{Attribute, SharedBootstrap};
use tagwire_base::{Bootstrap, Config, Rank, Registry};
use tagwire_coll::Team;
use tagwire_files::Site;
use tagwire_launch::asked::Asked;
use tagwire_pml::{ContextNames, Messenger, ThreadLevel};

use crate::abi::{Comm, Group, Session, thread};
use crate::error::{Class, Error, On, Result};
use crate::lock::Lock;
use crate::object::attributes::{Keys, key};
use crate::object::buffer::Slot;
use crate::object::comm::{CommRef, Communicator};
use crate::object::datatype::Types;
use crate::object::errhandler::Handler;
use crate::object::file::table::Files;
use crate::object::group::Ranks;
use crate::object::message::Claimed;
use crate::object::operation::Operations;
use crate::object::request::Requests;
use crate::object::session;
use crate::object::table::{Kind, Table};
use crate::object::window::Window;
use crate::object::window::shortcuts::Shortcuts;
use crate::process::early::Early;
use crate::process::freed::Freed;
use crate::process::memory::Memory;
use crate::process::models::Models;
use crate::streams::{drain_pipes, flush_streams};

/// How long an abort waits for what the program has printed: nobody may read it, and another thread may hold a stream.
const FLUSH_DEADLINE: Duration = Duration::from_secs(1);

/// How many times it looks, a millisecond apart, whether a launcher has read what was printed into its pipes.
const DRAIN_LOOKS: u32 = 500;

/// A rank: every call of MPI between initialization and finalization is one of its methods, or a handler that is given it.
///
/// A process has one at a time; tests have several.
pub struct Process {
    pub(crate) messenger: Arc<Messenger>,
    bootstrap: SharedBootstrap,
    pub(crate) world: Arc<Communicator>,
    pub(crate) own: Arc<Communicator>,
    pub(crate) comms: Table<Communicator>,
    /// The error handlers of objects that were freed.
    pub(crate) freed: Freed,
    pub(crate) groups: Table<Ranks>,
    pub(crate) sessions: Table<session::Session>,
    pub(crate) first_local: Rank,
    pub(crate) messages: Table<Claimed>,
    pub(crate) windows: Table<Window>,
    /// Those that the thread which initialized MPI finds at once.
    pub(crate) shortcuts: Shortcuts,
    pub(crate) files: Files,
    pub(crate) types: Types,
    pub(crate) operations: Operations,
    pub(crate) requests: Requests,
    pub(crate) keys: Keys,
    pub(crate) early: Arc<Early>,
    /// For buffered sends.
    pub(crate) buffer: Slot,
    pub(crate) memory: Memory,
    pub(crate) thread_level: AtomicI32,
    pub(crate) main_thread: ThreadId,
    close_timeout: Duration,
    /// Until the process leaves the job.
    asked: Lock<Asked>,
    values: Values,
    pub(crate) models: Models,
    /// What the last error of a call was.
    last: Lock<Option<(i32, String)>>,
}

/// The values of predefined attributes, at addresses that stay.
#[derive(Debug)]
struct Values {
    tag_ub: Box<i32>,
    no: Box<i32>,
    any: Box<i32>,
    no_process: Box<i32>,
    universe_size: Option<Box<i32>>,
    application: Option<Box<i32>>,
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Process({} of {})",
            self.messenger.rank(),
            self.messenger.size()
        )
    }
}

/// Returns the registry of settings.
fn registry() -> Registry {
    Registry::new(&tagwire_coll::settings()).with_reserved(&tagwire_launch::detect::RESERVED)
}

impl Process {
    /// Joins the job that this process was started in, with the objects that the program has already. It uses neither the world
    /// model nor sessions yet.
    ///
    /// # Errors
    /// What is wrong, in a sentence.
    pub(crate) fn join(early: Arc<Early>) -> std::result::Result<Self, String> {
        let found = tagwire_launch::detect::detect().map_err(|error| error.to_string())?;
        Self::open_with(found.bootstrap, &[], early)
    }

    /// Opens a rank of the job that `bootstrap` knows, with settings beside those of the environment.
    ///
    /// # Errors
    /// What is wrong, in a sentence.
    pub fn open(
        bootstrap: Box<dyn Bootstrap>,
        settings: &[(&str, &str)],
    ) -> std::result::Result<Self, String> {
        let process = Self::open_with(bootstrap, settings, Arc::new(Early::new()))?;
        let begun = process.models.begin_world();
        begun.map_err(|error| error.text().to_owned())?;
        Ok(process)
    }

    fn open_with(
        bootstrap: Box<dyn Bootstrap>,
        settings: &[(&str, &str)],
        early: Arc<Early>,
    ) -> std::result::Result<Self, String> {
        let config = Config::from_process(&registry(), settings.iter().copied());
        let config = config.map_err(|error| error.to_string())?;
        tagwire_base::log::to_stderr(&config, format!("rank {}", bootstrap.rank()));
        let bootstrap = SharedBootstrap::new(bootstrap);
        // The bias of the lock makes the first thread's calls as cheap as those of a rank with one thread.
        let world = tagwire_coll::open(&config, ThreadLevel::Multiple, &bootstrap);
        let world = Arc::new(world.map_err(|error| error.to_string())?);
        let alone = world.subset(&[world.me()]);
        let alone = Arc::new(alone.map_err(|error| error.to_string())?);
        let messenger = Arc::clone(world.messenger());
        let communicator = |handle, team, name| {
            let handler = Handler::Initial;
            let origin = (handler, Session::NULL);
            Arc::new(Communicator::new(handle, team, origin, name))
        };
        let limits = messenger.tag_limits().map_err(|error| error.to_string())?;
        let largest_tag = limits.largest_tag;
        let first_local = bootstrap.locality().first_local;
        let mut asked = bootstrap.clone();
        let mut number = |attribute| {
            let known = asked.attribute(attribute);
            known
                .and_then(|number| i32::try_from(number).ok())
                .map(Box::new)
        };
        let size = messenger.size().to_string();
        early.infos.describe("maxprocs", &size);
        let asked = Asked::new(messenger.dumps().flag());
        Ok(Self {
            asked: Lock::new(asked),
            keys: Keys::new(),
            early,
            buffer: Slot::default(),
            memory: Memory::default(),
            values: Values {
                tag_ub: Box::new(largest_tag),
                no: Box::new(0),
                any: Box::new(crate::abi::ANY_SOURCE),
                no_process: Box::new(crate::abi::PROC_NULL),
                universe_size: number(Attribute::UniverseSize),
                application: number(Attribute::ApplicationNumber),
            },
            requests: Requests::new(&messenger),
            messenger,
            bootstrap,
            world: communicator(Comm::WORLD, world, "MPI_COMM_WORLD"),
            own: communicator(Comm::SELF, alone, "MPI_COMM_SELF"),
            comms: Table::new(Kind::Comm),
            freed: Freed::default(),
            groups: Table::new(Kind::Group),
            sessions: Table::new(Kind::Session),
            first_local,
            messages: Table::new(Kind::Message),
            windows: Table::new(Kind::Win),
            shortcuts: Shortcuts::new(),
            files: Files::new(),
            types: Types::new(),
            operations: Operations::new(),
            thread_level: AtomicI32::new(thread::SINGLE),
            main_thread: std::thread::current().id(),
            close_timeout: config.duration("close-timeout"),
            models: Models::default(),
            last: Lock::default(),
        })
    }

    /// Has the rank call contexts by the names of communicators where it says what it waits for.
    pub(crate) fn name_contexts(self: &Arc<Self>) {
        let process = Arc::downgrade(self);
        self.messenger.dumps().name_contexts(move || {
            let Some(process) = process.upgrade() else {
                return ContextNames::default();
            };
            let mut all = vec![Arc::clone(&process.world), Arc::clone(&process.own)];
            all.extend(process.comms.all());
            ContextNames::new(move |peer, id| {
                let found = all.iter().find(|comm| comm.has_context(peer, id))?;
                Some(found.called())
            })
        });
    }

    /// Returns the value of a predefined attribute of `MPI_COMM_WORLD`: a pointer to an `int`.
    pub(crate) fn predefined_attribute(&self, number: i32) -> Option<*const i32> {
        let values = &self.values;
        let found = match number {
            key::TAG_UB => &values.tag_ub,
            key::IO => &values.any,
            key::HOST => &values.no_process,
            key::WTIME_IS_GLOBAL => &values.no,
            key::LASTUSEDCODE => return Some(self.early.codes.last()),
            key::UNIVERSE_SIZE => values.universe_size.as_ref()?,
            key::APPNUM => values.application.as_ref()?,
            _ => return None,
        };
        Some(&raw const **found)
    }

    /// Whether calls are allowed: it has been initialized and not finalized, or has a session.
    #[inline]
    pub(crate) fn is_running(&self) -> bool {
        self.models.are_running()
    }

    pub(crate) fn set_thread_level(&self, level: i32) {
        self.thread_level.store(level, Relaxed);
    }

    /// Returns where the process is, among those that open a file.
    pub(crate) fn site(&self) -> Site {
        Site {
            host: u64::from(self.first_local.as_u32()),
            is_only_host: self.bootstrap.locality().local_size == self.messenger.size(),
        }
    }

    /// Finalizes the world model: waits for all ranks, and leaves the job where no session is open (MPI-5.0, section 11.2.2).
    ///
    /// # Errors
    /// Those of functions that delete attributes of `MPI_COMM_SELF`: then it is still initialized. Those of closing.
    pub fn finalize(&self) -> Result {
        // As the standard says: before anything else, so that libraries still may use MPI.
        self.own.attributes().delete_all(Comm::SELF.0)?;
        // Who leaves early would show as a peer that has left. After a failure nobody is waited for.
        if self.messenger.failed()?.is_empty() {
            self.flush()?;
            let _ = self.world.team.barrier();
        }
        match self.models.end_world() {
            true => self.leave(),
            false => Ok(()),
        }
    }

    /// Leaves the job.
    pub(crate) fn leave(&self) -> Result {
        self.tell_ways();
        // Calls by them do not look whether they are allowed.
        self.shortcuts.close();
        self.requests.abandon(usize::MAX);
        let mut asked = self.asked.lock();
        *asked = Asked::none();
        drop(asked);
        Ok(self.messenger.close(self.close_timeout)?)
    }

    /// Tells, where the setting `log` asks for it, how messages went at the end and by what algorithms collectives.
    fn tell_ways(&self) {
        if !tracing::enabled!(tracing::Level::INFO) {
            return;
        }
        let statistics = self.messenger.statistics();
        let mut ways = statistics.map(|all| all.ways).unwrap_or_default();
        tagwire_coll::ways(&self.world.team, &mut ways);
        for way in ways {
            tracing::info!("{way}");
        }
    }

    /// Waits until all buffered sends have been delivered.
    fn flush(&self) -> Result {
        self.buffer.flush(&self.messenger)?;
        let made = self.comms.all();
        let predefined = [&self.world, &self.own];
        for comm in made.iter().chain(predefined) {
            comm.buffer().flush(&self.messenger)?;
        }
        Ok(())
    }

    /// Ends the job (MPI-5.0, section 9.6).
    pub fn abort(&self, code: i32) -> ! {
        let status = if code & 0xff == 0 { 1 } else { code };
        // A launcher that hears of it ends this process too, with what it has not written yet.
        flush_streams(FLUSH_DEADLINE);
        // Hydra of MPICH drops what it has not read by then.
        drain_pipes(DRAIN_LOOKS);
        self.bootstrap.clone().abort(status);
        std::process::exit(status)
    }

    /// Raises an error of a call: by the error handler of the object it concerns (MPI-5.0, section 9.3). Returns the code for the
    /// caller.
    #[cold]
    pub fn raise(&self, error: &Error, call: &str) -> i32 {
        let (on, handler) = self.handler_of(error.raised_on());
        let text = format!("{call}: {}", error.text());
        match handler {
            Handler::Return => {
                self.keep(error.code(), text);
                error.code()
            }
            Handler::Made(made) => {
                self.keep(error.code(), text);
                made.function().call(on, error.code())
            }
            Handler::Initial | Handler::Fatal | Handler::Abort => {
                let class = match Class::of(error.code()) {
                    // It says nothing that the sentence does not.
                    Some(Class::Other) => String::new(),
                    Some(class) => format!(" ({})", class.name()),
                    None => {
                        let own = self.early.codes.text(error.code()).unwrap_or_default();
                        format!(" ({own})")
                    }
                };
                let rank = self.messenger.rank();
                let line = format!("tagwire: rank {rank}: {text}{class}: ending the job\n");
                let _ = std::io::stderr().write_all(line.as_bytes());
                self.abort(error.code())
            }
        }
    }

    /// Returns the error handler of an object, or that of `MPI_COMM_SELF` where it has none (MPI-5.0, section 9.3), with the object
    /// that it is of.
    fn handler_of(&self, on: On) -> (On, Handler) {
        let found = match on {
            On::Comm(comm) => {
                let held = self.comm(comm).ok().map(|comm| comm.errhandler());
                held.or_else(|| self.freed.handler(comm))
            }
            On::Session(session) => {
                let session = self.sessions.get(session.0);
                session.map(|session| session.errhandler())
            }
            On::Win(window_handle) => {
                let window = self.windows.get(window_handle.0);
                let held = window.map(|window| window.errhandler());
                held.or_else(|| self.freed.take_window(window_handle))
            }
            On::Handler(handler) => self.early.handlers.get(handler).ok(),
            On::File(file) => Some(self.files.handler(file)),
            On::None => None,
        };
        let initial = || {
            let comm = self.default_comm();
            (On::Comm(comm.handle), comm.errhandler())
        };
        found.map_or_else(initial, |handler| (on, handler))
    }

    /// Returns the communicator for errors of calls without one: `MPI_COMM_SELF` (MPI-5.0, section 9.3). Until MPI-3.1 it was
    /// `MPI_COMM_WORLD`: where a program has set the error handler of that one alone, it is meant.
    fn default_comm(&self) -> &Arc<Communicator> {
        let is_initial = |comm: &Communicator| matches!(comm.errhandler(), Handler::Initial);
        match is_initial(&self.own) && !is_initial(&self.world) {
            true => &self.world,
            false => &self.own,
        }
    }

    fn keep(&self, code: i32, text: String) {
        let mut last = self.last.lock();
        *last = Some((code, text));
    }

    /// Returns what an error code says: in the words of the last error, where that had it.
    pub(crate) fn text_of(&self, code: i32) -> Option<String> {
        let Some(class) = Class::of(code) else {
            return self.early.codes.text(code);
        };
        let last = self.last.lock();
        Some(match &*last {
            Some((last, text)) if *last == code => format!("{} ({text})", class.text()),
            _ => class.text().to_owned(),
        })
    }
}

impl Process {
    /// Returns a communicator.
    ///
    /// # Errors
    /// `MPI_ERR_COMM` where there is none.
    #[inline]
    pub(crate) fn comm(&self, handle: Comm) -> Result<CommRef<'_>> {
        match handle {
            Comm::WORLD => Ok(CommRef::Predefined(&self.world)),
            Comm::SELF => Ok(CommRef::Predefined(&self.own)),
            _ => self.comms.find(handle.0).map(CommRef::Made),
        }
    }

    /// Takes a new communicator in, with its error handler and the session that it comes from.
    pub(crate) fn enter_comm(&self, team: Team, origin: (Handler, Session)) -> Result<Comm> {
        let team = Arc::new(team);
        let make = |handle| Communicator::new(Comm(handle), team, origin, "");
        self.comms.insert_with(make).map(Comm)
    }

    /// The same with those of another.
    pub(crate) fn enter_comm_like(&self, team: Team, other: &Communicator) -> Result<Comm> {
        self.enter_comm(team, (other.errhandler(), other.session()))
    }
}

impl Process {
    pub(crate) fn group(&self, handle: Group) -> Result<Arc<Ranks>> {
        if handle == Group::EMPTY {
            return Ok(Arc::new(Ranks::new(Vec::new(), Session::NULL)));
        }
        self.groups.find(handle.0)
    }

    pub(crate) fn enter_group(&self, ranks: Ranks) -> Result<Group> {
        if ranks.is_empty() {
            return Ok(Group::EMPTY);
        }
        self.groups.insert_with(|_| ranks).map(Group)
    }
}
