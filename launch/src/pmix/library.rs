//! The calls of `libpmix.so.2` that a rank needs, declared by hand: the wire protocol between the library and its server is
//! each release's own, the library's interface is the PMIx standard's (chapters 3 and 5 to 7, version 4.1).
#![allow(
    unsafe_code,
    reason = "a C library, opened at run time; what it gives is copied before the call ends"
)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use libloading::Library as Loaded;
use tagwire_base::bootstrap::MemberEvent;

use super::events::{Events, Symbols};
use super::raw::{
    BYTES, GLOBAL, INT, LONGEST_KEY, RawBytes, RawData, RawInfo, RawProcess, RawValue, Value,
    copied,
};
use crate::error::{Error, Result};
use crate::launchers::LIBPMIX as LIBRARY;

/// Its name, which has stood for the same interface since version 2.
const NAME: &str = "libpmix.so.2";

/// The rank that stands for all of a namespace.
pub(super) const WILDCARD: u32 = u32::MAX - 1;

/// What calls return.
const SUCCESS: c_int = 0;
const NOT_FOUND: c_int = -46;
const TIMED_OUT: c_int = -24;
const DONE_AT_ONCE: c_int = -157;

/// How many processes above this one are looked at.
const MOST_ANCESTORS: usize = 32;

/// The oldest version whose interface is the one declared here.
const OLDEST: u32 = 3;

type OnFence = unsafe extern "C" fn(c_int, *mut c_void);
type OnValue = unsafe extern "C" fn(c_int, *mut RawValue, *mut c_void);

type Init = unsafe extern "C" fn(*mut RawProcess, *mut RawInfo, usize) -> c_int;
type Put = unsafe extern "C" fn(u8, *const c_char, *mut RawValue) -> c_int;
type Commit = unsafe extern "C" fn() -> c_int;
type FenceNb = unsafe extern "C" fn(
    *const RawProcess,
    usize,
    *const RawInfo,
    usize,
    OnFence,
    *mut c_void,
) -> c_int;
type GetNb = unsafe extern "C" fn(
    *const RawProcess,
    *const c_char,
    *const RawInfo,
    usize,
    OnValue,
    *mut c_void,
) -> c_int;
type Finalize = unsafe extern "C" fn(*const RawInfo, usize) -> c_int;
type Initialized = unsafe extern "C" fn() -> c_int;
type Abort = unsafe extern "C" fn(c_int, *const c_char, *mut RawProcess, usize) -> c_int;
type Version = unsafe extern "C" fn() -> *const c_char;
type Text = unsafe extern "C" fn(c_int) -> *const c_char;

/// The library, of which this process is a client.
pub(super) struct Library {
    process: RawProcess,
    put: Put,
    commit: Commit,
    fence: FenceNb,
    get: GetNb,
    finalize: Finalize,
    initialized: Initialized,
    abort: Abort,
    text: Text,
    events: Events,
    /// Never closed: its threads may be on their way out after the last call.
    _code: &'static Loaded,
}

impl std::fmt::Debug for Library {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Library").finish_non_exhaustive()
    }
}

/// Tells the caller of a fence that it has passed.
unsafe extern "C" fn fenced(status: c_int, context: *mut c_void) {
    // SAFETY: the context is the sender that `fence` has boxed for this one call, which comes once.
    let sender = unsafe { Box::from_raw(context.cast::<Sender<c_int>>()) };
    // Whoever waited may have given up.
    let _ = sender.send(status);
}

/// What a get is given, which the library reads until it has called back: it copies neither key nor attributes.
struct Get {
    process: RawProcess,
    key: CString,
    limit: RawInfo,
    sender: Sender<(c_int, Option<Value>)>,
}

/// Tells the caller of a get what has come.
unsafe extern "C" fn got(status: c_int, value: *mut RawValue, context: *mut c_void) {
    // SAFETY: the context is what `get` has boxed for this one call, which comes once and is the library's last use of it.
    let get = unsafe { Box::from_raw(context.cast::<Get>()) };
    // SAFETY: the library lends a whole value, or none, for the length of this call.
    let value = unsafe { value.as_ref().map(|value| copied(value)) };
    // Whoever waited may have given up.
    let _ = get.sender.send((status, value));
}

impl Library {
    /// Opens the library and connects to the server that started this process.
    ///
    /// # Errors
    /// When there is no library of this interface, or no server.
    pub(super) fn open() -> Result<Self> {
        register_for_barriers();
        let (code, file) = load()?;
        let symbol = |name: &str| missing(&file, name);
        // SAFETY: the types are those of the PMIx standard for these names, and the version is looked at before any other
        // call.
        let version = unsafe { code.get::<Version>(b"PMIx_Get_version\0") };
        let version = version.map_err(|_| symbol("PMIx_Get_version"))?;
        // SAFETY: the call may come before all others, and returns text that lives as long as the library.
        let version = unsafe { CStr::from_ptr(version()) };
        check_version(&file, &version.to_string_lossy())?;
        macro_rules! call {
            ($name:literal) => {
                // SAFETY: as above; the code stays for good.
                *unsafe { code.get(concat!($name, "\0").as_bytes()) }.map_err(|_| symbol($name))?
            };
        }
        let init: Init = call!("PMIx_Init");
        let mut library = Self {
            process: RawProcess::nobody(),
            put: call!("PMIx_Put"),
            commit: call!("PMIx_Commit"),
            fence: call!("PMIx_Fence_nb"),
            get: call!("PMIx_Get_nb"),
            finalize: call!("PMIx_Finalize"),
            initialized: call!("PMIx_Initialized"),
            abort: call!("PMIx_Abort"),
            text: call!("PMIx_Error_string"),
            events: Events::new(Symbols {
                register: call!("PMIx_Register_event_handler"),
                deregister: call!("PMIx_Deregister_event_handler"),
            }),
            _code: code,
        };
        // SAFETY: the process is room for one, and there are no attributes.
        let status = unsafe { init(&raw mut library.process, std::ptr::null_mut(), 0) };
        library.check("PMIx_Init", status)?;
        // SAFETY: the library is initialised, and `finalize` ends what begins here.
        unsafe { library.events.begin(&library.process) };
        Ok(library)
    }

    /// Returns what the server has reported of other ranks since the last call.
    pub(super) fn events(&mut self) -> Vec<MemberEvent> {
        self.events.take()
    }

    /// Returns this process's rank.
    pub(super) const fn rank(&self) -> u32 {
        self.process.rank
    }

    /// Puts a value where every rank can get it, after the next [`fence`](Library::fence) for sure.
    ///
    /// # Errors
    /// When the library refuses it.
    pub(super) fn put(&mut self, key: &str, value: &[u8]) -> Result<()> {
        let name = key_of(key)?;
        let mut raw = RawValue {
            kind: BYTES,
            data: RawData {
                bytes: RawBytes {
                    bytes: value.as_ptr().cast_mut().cast(),
                    size: value.len(),
                },
            },
        };
        // SAFETY: key and value are whole, and the library copies both.
        let status = unsafe { (self.put)(GLOBAL, name.as_ptr(), &raw mut raw) };
        self.check("PMIx_Put", status)?;
        // SAFETY: the library is initialised.
        self.check("PMIx_Commit", unsafe { (self.commit)() })
    }

    /// Returns once every process of the namespace has called it; `None` where `timeout` passes before.
    ///
    /// # Errors
    /// When the server is gone.
    pub(super) fn fence(&mut self, timeout: Duration) -> Result<Option<()>> {
        let (sender, passed) = channel();
        let context = Box::into_raw(Box::new(sender)).cast();
        let none = std::ptr::null();
        // SAFETY: no processes are all of the namespace; the context is the callback's.
        let status = unsafe { (self.fence)(std::ptr::null(), 0, none, 0, fenced, context) };
        if status != SUCCESS {
            // SAFETY: the callback does not come: the context is ours again.
            drop(unsafe { Box::from_raw(context.cast::<Sender<c_int>>()) });
            if status != DONE_AT_ONCE {
                self.check("PMIx_Fence_nb", status)?;
            }
            return Ok(Some(()));
        }
        match passed.recv_timeout(timeout) {
            Ok(status) => self.check("PMIx_Fence_nb", status).map(Some),
            Err(_) => Ok(None),
        }
    }

    /// Returns a value of `rank` of this namespace, or of the namespace itself; `None` where it is not there, or does not
    /// come within `timeout`.
    ///
    /// # Errors
    /// When the server is gone.
    pub(super) fn get(&mut self, rank: u32, key: &str, timeout: Duration) -> Result<Option<Value>> {
        let name = key_of(key)?;
        let process = RawProcess {
            rank,
            ..self.process.clone()
        };
        let seconds = c_int::try_from(timeout.as_secs()).unwrap_or(c_int::MAX);
        let int = seconds.max(1);
        let limit = RawInfo::new(c"pmix.timeout", INT, RawData { int });
        let (sender, value) = channel();
        let get = Box::into_raw(Box::new(Get {
            process,
            key: name,
            limit,
            sender,
        }));
        // SAFETY: process, key and the one attribute lie in the box, which the callback frees, and nobody before: also where
        // this call gives up first.
        let status = unsafe {
            (self.get)(
                &raw const (*get).process,
                (*get).key.as_ptr(),
                &raw const (*get).limit,
                1,
                got,
                get.cast(),
            )
        };
        if status != SUCCESS {
            // SAFETY: the callback does not come: the box is ours again.
            drop(unsafe { Box::from_raw(get) });
            return self.absent("PMIx_Get_nb", status);
        }
        match value.recv_timeout(timeout) {
            Ok((SUCCESS, value)) => Ok(value),
            Ok((status, _)) => self.absent("PMIx_Get_nb", status),
            Err(_) => Ok(None),
        }
    }

    /// Asks the server to end the job with a status.
    pub(super) fn abort(&mut self, status: i32) {
        // SAFETY: no processes are all of the namespace.
        let ended = unsafe {
            (self.abort)(
                status,
                c"a rank of tagwire".as_ptr(),
                std::ptr::null_mut(),
                0,
            )
        };
        if let Err(error) = self.check("PMIx_Abort", ended) {
            tracing::debug!("the job was to end: {error}");
        }
    }

    /// Says that this process leaves in good order.
    ///
    /// # Errors
    /// When the server is gone.
    pub(super) fn finalize(&mut self) -> Result<()> {
        // The end of the registration first would be a message that nobody answers before one that is answered: TCP holds the
        // second back until the server's kernel confirms the first, 40 ms.
        // SAFETY: the library is initialised, and but for the end of the registration no call follows.
        let ended = self.check("PMIx_Finalize", unsafe {
            (self.finalize)(std::ptr::null(), 0)
        });
        // SAFETY: the call may come at any time.
        let stays = unsafe { (self.initialized)() } != 0;
        if stays {
            // SAFETY: others of this process use the library, which is initialised.
            unsafe { self.events.end() };
        } else if ended.is_ok() {
            // SAFETY: this was the last user of the library, which has joined its thread.
            unsafe { self.events.forget() };
        }
        ended
    }

    fn absent(&self, call: &str, status: c_int) -> Result<Option<Value>> {
        match status {
            NOT_FOUND | TIMED_OUT => Ok(None),
            status => self.check(call, status).map(|()| None),
        }
    }

    fn check(&self, call: &str, status: c_int) -> Result<()> {
        if status == SUCCESS {
            return Ok(());
        }
        // SAFETY: the call takes any number, and returns text that lives as long as the library.
        let text = unsafe { CStr::from_ptr((self.text)(status)) };
        Err(failed(format!(
            "{call} returns {status} ({})",
            text.to_string_lossy()
        )))
    }
}

/// Registers this process for barriers (`membarrier(2)`), which the layers above ask for, while it has one thread. The library
/// starts a thread, and with several the kernel takes some milliseconds for each kind. What it refuses they are refused again.
fn register_for_barriers() {
    use rustix::thread::{MembarrierCommand, membarrier};
    let _ = membarrier(MembarrierCommand::RegisterGlobalExpedited);
    let _ = membarrier(MembarrierCommand::RegisterPrivateExpedited);
}

pub(super) fn failed(what: impl std::fmt::Display) -> Error {
    tagwire_base::Error::Bootstrap(format!("the launcher's PMIx: {what}")).into()
}

fn missing(file: &Path, name: &str) -> Error {
    failed(format!("{} has no {name}", file.display()))
}

fn key_of(key: &str) -> Result<CString> {
    let name = CString::new(format!("tagwire.{key}")).ok();
    let name = if key.starts_with("pmix.") {
        CString::new(key).ok()
    } else {
        name
    };
    name.filter(|name| name.count_bytes() <= LONGEST_KEY)
        .ok_or_else(|| failed(format!("'{key}' is no key of at most {LONGEST_KEY} bytes")))
}

/// Checks a version such as `OpenPMIx 5.0.11rc1 (PMIx Standard: 4.2, ...)`.
fn check_version(file: &Path, text: &str) -> Result<()> {
    let digits = text.trim_start_matches(|c: char| !c.is_ascii_digit());
    let major = digits.split(|c: char| !c.is_ascii_digit()).next();
    let major: Option<u32> = major.and_then(|major| major.parse().ok());
    match major {
        Some(major) if major >= OLDEST => Ok(()),
        _ => Err(failed(format!(
            "{} is '{text}', and versions from {OLDEST} on have the interface that is wanted: {} names another",
            file.display(),
            LIBRARY
        ))),
    }
}

/// Returns the places where the library may be: the one that the user names alone, or those beside the launcher, whose
/// version the server has, and the system's.
fn places() -> Vec<PathBuf> {
    if let Some(named) = std::env::var_os(LIBRARY) {
        return vec![named.into()];
    }
    let mut places = Vec::new();
    for launcher in ancestors() {
        if let Some(root) = launcher.parent().and_then(Path::parent) {
            let folders = ["lib", "lib/openmpi", "lib64"].map(|folder| root.join(folder));
            let files = folders.map(|folder| folder.join(NAME));
            places.extend(files.into_iter().filter(|file| file.exists()));
        }
    }
    places.push(NAME.into());
    places
}

/// Returns the programs of the processes above this one, the nearest first: a rank may have been started by a wrapper.
fn ancestors() -> Vec<PathBuf> {
    let mut programs = Vec::new();
    let mut process = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get());
    while let Some(pid) = process.filter(|pid| *pid > 1 && programs.len() < MOST_ANCESTORS) {
        let program = std::fs::read_link(format!("/proc/{pid}/exe"));
        programs.push(program.unwrap_or_default());
        // Behind the name, which is in brackets and may hold anything: state and parent.
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let parent = stat
            .rsplit(')')
            .next()
            .and_then(|rest| rest.split_whitespace().nth(1));
        process = parent.and_then(|pid| pid.parse().ok());
    }
    programs
}

fn load() -> Result<(&'static Loaded, PathBuf)> {
    let mut tried = Vec::new();
    for place in places() {
        // SAFETY: the user, the system or the launcher names the file; its initialisers are trusted as those of any
        // library that a program is linked with.
        match unsafe { Loaded::new(&place) } {
            Ok(code) => return Ok((Box::leak(Box::new(code)), place)),
            Err(error) => tried.push(format!("{}: {error}", place.display())),
        }
    }
    Err(failed(format!(
        "libpmix cannot be opened ({}); {} names the file; or start with a launcher that has a PMI (mpiexec of MPICH, srun --mpi=pmi2), or with tagwire run",
        tried.join("; "),
        LIBRARY
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_libraries_are_refused_by_name() {
        let file = Path::new("/somewhere/libpmix.so.2");
        for text in [
            "OpenPMIx 5.0.11rc1 (PMIx Standard: 4.2)",
            "OpenPMIx 4.2.2",
            "PMIx 3.1",
        ] {
            check_version(file, text).unwrap();
        }
        for text in ["OpenPMIx 2.2.5", "", "none"] {
            let error = check_version(file, text).unwrap_err().to_string();
            assert!(
                error.contains("/somewhere") && error.contains(LIBRARY),
                "{error}"
            );
        }
    }

    #[test]
    fn keys_of_the_standard_are_not_ours() {
        assert_eq!(
            key_of("pmix.job.size").unwrap().to_str(),
            Ok("pmix.job.size")
        );
        assert_eq!(key_of("host").unwrap().to_str(), Ok("tagwire.host"));
        assert!(key_of(&"k".repeat(600)).is_err() && key_of("a\0b").is_err());
    }
}
