//! The functions of MPI libraries that the benchmarks call, and a port over them.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr;

use libloading::Library;
use tagwire_base::{Rank, Tag};

use super::collective::{MpiCollectives, MpiNonblocking};
use super::group::MpiGroup;
use super::handles::{ANY_SOURCE, Handle, Handles, THREAD_SINGLE};
use crate::buffer::{Incoming, Outgoing};
use crate::error::{Error, Result};
use crate::port::collective::{Collectives, Form};
use crate::port::group::{Divide, Group};
use crate::port::{Endpoint, Port};

/// Null stands for "no status wanted".
pub(super) type StatusPointer = *mut c_void;

const SUCCESS: c_int = 0;

/// Room for texts of a library: the standard's largest is 8192 bytes.
const TEXT: usize = 8192;

/// Declares a table of functions, all of which return a code, and loads each by its name.
macro_rules! functions {
    ($name:ident: $($field:ident = $symbol:literal: fn($($argument:ty),* $(,)?);)*) => {
        #[derive(Clone, Copy)]
        struct $name {
            $($field: unsafe extern "C" fn($($argument),*) -> c_int,)*
        }

        impl $name {
            #[inline]
            fn load(library: &libloading::Library, file: &std::path::Path) -> Result<Self> {
                Ok(Self {
                    $($field: {
                        // SAFETY: the standard gives the function of this name this type.
                        let found = unsafe {
                            library.get::<unsafe extern "C" fn($($argument),*) -> c_int>($symbol)
                        };
                        *found.map_err(|_| crate::error::Error::Symbol {
                            file: file.to_path_buf(),
                            symbol: $symbol.to_owned(),
                        })?
                    },)*
                })
            }
        }
    };
}
pub(super) use functions;

functions! {
    Functions:
    init_thread = "MPI_Init_thread": fn(*mut c_int, *mut *mut *mut c_char, c_int, *mut c_int);
    finalize = "MPI_Finalize": fn();
    abort = "MPI_Abort": fn(Handle, c_int);
    comm_rank = "MPI_Comm_rank": fn(Handle, *mut c_int);
    comm_size = "MPI_Comm_size": fn(Handle, *mut c_int);
    set_errhandler = "MPI_Comm_set_errhandler": fn(Handle, Handle);
    error_string = "MPI_Error_string": fn(c_int, *mut c_char, *mut c_int);
    library_version = "MPI_Get_library_version": fn(*mut c_char, *mut c_int);
    send = "MPI_Send": fn(*const c_void, c_int, Handle, c_int, c_int, Handle);
    recv = "MPI_Recv": fn(*mut c_void, c_int, Handle, c_int, c_int, Handle, StatusPointer);
    isend = "MPI_Isend": fn(*const c_void, c_int, Handle, c_int, c_int, Handle, *mut Handle);
    irecv = "MPI_Irecv": fn(*mut c_void, c_int, Handle, c_int, c_int, Handle, *mut Handle);
    waitall = "MPI_Waitall": fn(c_int, *mut Handle, StatusPointer);
}

/// A loaded library.
pub(crate) struct Mpi {
    functions: Functions,
    handles: Handles,
    version: String,
    file: PathBuf,
    /// Keeps the code where the functions point.
    library: Library,
}

impl Mpi {
    /// Loads the library at `file`, with all functions that the benchmarks need.
    ///
    /// # Errors
    /// [`Error::Library`] and [`Error::Symbol`].
    #[inline]
    pub(crate) fn load(file: &Path) -> Result<Self> {
        // SAFETY: loading runs the library's initialisers. The user asked for this file as an MPI
        // library; those of MPI libraries do nothing that could break this process.
        let library = unsafe { Library::new(file) }.map_err(|error| Error::Library {
            file: file.to_path_buf(),
            reason: error.to_string(),
        })?;
        let functions = Functions::load(&library, file)?;
        let handles = Handles::of(&library, file)?;
        let mut text = [0; TEXT];
        let mut len = 0;
        // SAFETY: the text has room for the longest version that the standard allows, and the
        // function may be called before the library is initialised (MPI-5.0, section 9.1.1).
        let code = unsafe { (functions.library_version)(text.as_mut_ptr(), &raw mut len) };
        let version = if code == SUCCESS {
            first_line(&text)
        } else {
            String::new()
        };
        Ok(Self {
            functions,
            handles,
            version,
            file: file.to_path_buf(),
            library,
        })
    }

    /// The first line of the library's description of itself.
    #[inline]
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// Where it lies.
    #[inline]
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    #[inline]
    fn check(&self, call: &'static str, code: c_int) -> Result<()> {
        if code == SUCCESS {
            Ok(())
        } else {
            Err(self.failure(call, code))
        }
    }

    #[cold]
    fn failure(&self, call: &'static str, code: c_int) -> Error {
        let mut text = [0; TEXT];
        let mut len = 0;
        // SAFETY: the text has room for the longest message that the standard allows.
        let told = unsafe { (self.functions.error_string)(code, text.as_mut_ptr(), &raw mut len) };
        let message = match told {
            SUCCESS => first_line(&text),
            _ => format!("error {code}"),
        };
        Error::Mpi { call, message }
    }
}

/// The first line of a text that ends in a zero, its blanks made single.
#[inline]
fn first_line(text: &[c_char; TEXT]) -> String {
    let mut text = *text;
    text[TEXT - 1] = 0;
    // SAFETY: the text ends in a zero at its last place at the latest.
    let text = unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy();
    let line = text.lines().next().unwrap_or_default();
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// This process as a rank of the library's job.
pub(crate) struct MpiPort {
    mpi: Mpi,
    /// One test calls it alone.
    ssend: Option<SendCall>,
    rank: Rank,
    size: u32,
}

/// The type of `MPI_Send` and `MPI_Ssend`.
type SendCall = unsafe extern "C" fn(*const c_void, c_int, Handle, c_int, c_int, Handle) -> c_int;

/// An `MPI_Request`.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct MpiRequest(Handle);

// SAFETY: nothing here looks behind a handle; any thread may wait for a request, where the library was initialised for threads.
unsafe impl Send for MpiRequest {}

impl MpiPort {
    /// Initialises the library, once in a process, and joins its job.
    ///
    /// # Errors
    /// [`Error::Mpi`], also when the library does not allow several threads at once, where `any_thread` asks for them.
    #[inline]
    pub(crate) fn open(mpi: Mpi, any_thread: bool) -> Result<Self> {
        let level = if any_thread {
            mpi.handles.thread_multiple
        } else {
            THREAD_SINGLE
        };
        let (mut provided, mut rank, mut size) = (0, 0, 0);
        let functions = mpi.functions;
        let world = mpi.handles.world;
        // SAFETY: null arguments are allowed, and the result has its place.
        let code = unsafe {
            (functions.init_thread)(ptr::null_mut(), ptr::null_mut(), level, &raw mut provided)
        };
        mpi.check("MPI_Init_thread", code)?;
        if provided < level {
            let message = "the library does not allow several threads at once".to_owned();
            return Err(Error::Mpi {
                call: "MPI_Init_thread",
                message,
            });
        }
        // SAFETY: the library is initialised, the handles are predefined ones, and the results
        // have their places.
        unsafe {
            let code = (functions.set_errhandler)(world, mpi.handles.errors_return);
            mpi.check("MPI_Comm_set_errhandler", code)?;
            mpi.check("MPI_Comm_rank", (functions.comm_rank)(world, &raw mut rank))?;
            mpi.check("MPI_Comm_size", (functions.comm_size)(world, &raw mut size))?;
        }
        let nonsense = |_| Error::Mpi {
            call: "MPI_Comm_rank",
            message: format!("answered rank {rank} of {size}"),
        };
        let (rank, size) = (u32::try_from(rank).map_err(nonsense)?, {
            u32::try_from(size).map_err(nonsense)?
        });
        // SAFETY: the standard gives `MPI_Ssend` this type.
        let found = unsafe { mpi.library.get::<SendCall>(b"MPI_Ssend") };
        let ssend = found.ok().map(|found| *found);
        Ok(Self {
            mpi,
            ssend,
            rank: Rank::new(rank),
            size,
        })
    }

    /// The first line of the library's description of itself.
    #[inline]
    pub(crate) fn version(&self) -> &str {
        self.mpi.version()
    }

    /// The library's predefined handles.
    #[inline]
    pub(super) const fn handles(&self) -> &Handles {
        &self.mpi.handles
    }

    /// Returns a table of functions, all of which the library has to have.
    #[inline]
    pub(super) fn functions<T>(&self, load: fn(&Library, &Path) -> Result<T>) -> Result<T> {
        load(&self.mpi.library, &self.mpi.file)
    }

    /// What a call's result means.
    #[inline]
    pub(super) fn check(&self, call: &'static str, code: c_int) -> Result<()> {
        self.mpi.check(call, code)
    }

    /// Leaves the job in good order.
    #[inline]
    pub(crate) fn close(self) -> Result<()> {
        // SAFETY: the library is initialised, and no operation is under way.
        let code = unsafe { (self.mpi.functions.finalize)() };
        self.mpi.check("MPI_Finalize", code)
    }

    /// Ends the job, with this exit status.
    #[inline]
    pub(crate) fn abort(&self, status: i32) {
        // SAFETY: the library is initialised. The call does not return where it works.
        let _ = unsafe { (self.mpi.functions.abort)(self.mpi.handles.world, status) };
    }
}

/// A length as the ABI's plain functions count it.
#[inline]
pub(super) fn count(len: usize) -> Result<c_int> {
    c_int::try_from(len).map_err(|_| {
        Error::Usage(format!(
            "size {len} is too large for an MPI library (2^31 - 1 bytes)"
        ))
    })
}

#[inline]
pub(super) fn number(rank: Rank) -> c_int {
    // The library itself counts ranks as `int`.
    rank.as_u32().cast_signed()
}

impl Endpoint for MpiPort {
    #[inline]
    fn collectives(&self, form: Form) -> Result<Box<dyn Collectives + '_>> {
        Ok(match form {
            Form::Blocking => Box::new(MpiCollectives::of(self)?),
            Form::Nonblocking => Box::new(MpiNonblocking::of(self)?),
        })
    }

    #[inline]
    fn group(&self, divide: Divide) -> Result<Box<dyn Group + '_>> {
        Ok(Box::new(MpiGroup::of(self, divide)?))
    }

    #[inline]
    fn rank(&self) -> Rank {
        self.rank
    }

    #[inline]
    fn size(&self) -> u32 {
        self.size
    }

    #[inline]
    fn send(&self, data: Outgoing, to: Rank, tag: Tag) -> Result<()> {
        let (len, to, tag) = (count(data.len())?, number(to), tag.as_i32());
        let (byte, world) = (self.mpi.handles.byte, self.mpi.handles.world);
        // SAFETY: as for `isend`.
        let code =
            unsafe { (self.mpi.functions.send)(data.as_ptr().cast(), len, byte, to, tag, world) };
        self.mpi.check("MPI_Send", code)
    }

    #[inline]
    fn ssend(&self, data: Outgoing, to: Rank, tag: Tag) -> Result<()> {
        let Some(ssend) = self.ssend else {
            return Err(Error::Symbol {
                file: self.mpi.file.clone(),
                symbol: "MPI_Ssend".to_owned(),
            });
        };
        let (len, to, tag) = (count(data.len())?, number(to), tag.as_i32());
        let (byte, world) = (self.mpi.handles.byte, self.mpi.handles.world);
        // SAFETY: as for `isend`.
        let code = unsafe { ssend(data.as_ptr().cast(), len, byte, to, tag, world) };
        self.mpi.check("MPI_Ssend", code)
    }

    #[inline]
    fn recv(&self, data: Incoming, from: Rank, tag: Tag) -> Result<()> {
        let (len, from, tag) = (count(data.len())?, number(from), tag.as_i32());
        let (byte, world) = (self.mpi.handles.byte, self.mpi.handles.world);
        let (start, status) = (data.as_ptr().cast(), ptr::null_mut());
        // SAFETY: as for `irecv`; a null pointer asks for no status.
        let code = unsafe { (self.mpi.functions.recv)(start, len, byte, from, tag, world, status) };
        self.mpi.check("MPI_Recv", code)
    }
}

impl Port for MpiPort {
    type Request = MpiRequest;

    #[inline]
    fn isend(&self, data: Outgoing, to: Rank, tag: Tag) -> Result<MpiRequest> {
        let (len, to, tag) = (count(data.len())?, number(to), tag.as_i32());
        let (byte, world) = (self.mpi.handles.byte, self.mpi.handles.world);
        let mut request = ptr::null_mut();
        let start = data.as_ptr().cast();
        // SAFETY: the piece is readable for its length and never freed; the handles are
        // predefined; the library is initialised while this port lives.
        let code = unsafe {
            (self.mpi.functions.isend)(start, len, byte, to, tag, world, &raw mut request)
        };
        self.mpi.check("MPI_Isend", code)?;
        Ok(MpiRequest(request))
    }

    #[inline]
    fn irecv(&self, data: Incoming, from: Rank, tag: Tag) -> Result<MpiRequest> {
        self.irecv_from(data, number(from), tag)
    }

    fn irecv_any(&self, data: Incoming, tag: Tag) -> Result<MpiRequest> {
        self.irecv_from(data, ANY_SOURCE, tag)
    }

    #[inline]
    fn wait_all(&self, requests: &mut Vec<MpiRequest>) -> Result<()> {
        let len = count(requests.len())?;
        let list = requests.as_mut_ptr().cast::<Handle>();
        // SAFETY: an `MpiRequest` is its handle and nothing else; all are requests of this
        // library under way; a null pointer asks for no statuses.
        let code = unsafe { (self.mpi.functions.waitall)(len, list, ptr::null_mut()) };
        requests.clear();
        self.mpi.check("MPI_Waitall", code)
    }
}

impl MpiPort {
    /// Starts to receive from a rank by its number, or from any.
    #[inline]
    fn irecv_from(&self, data: Incoming, from: c_int, tag: Tag) -> Result<MpiRequest> {
        let (len, tag) = (count(data.len())?, tag.as_i32());
        let (byte, world) = (self.mpi.handles.byte, self.mpi.handles.world);
        let mut request = ptr::null_mut();
        let start = data.as_ptr().cast();
        // SAFETY: as for `isend`; the piece is writable.
        let code = unsafe {
            (self.mpi.functions.irecv)(start, len, byte, from, tag, world, &raw mut request)
        };
        self.mpi.check("MPI_Irecv", code)?;
        Ok(MpiRequest(request))
    }
}
