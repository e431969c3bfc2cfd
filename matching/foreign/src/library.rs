//! A library with an engine: its table of functions, and calls of them. All of the `unsafe` is here.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_void};
use std::mem::{self, MaybeUninit};
use std::ptr::{self, NonNull};

use tagwire_matching::{Capacity, Grade};

/// `tw_key`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) source: u32,
    pub(crate) tag: i32,
    pub(crate) context: u32,
    pub(crate) flags: u32,
}

/// `tw_answer`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u32,
    pub(crate) cookie: u32,
    pub(crate) handle: u64,
}

/// `tw_queue_stats`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct QueueFigures {
    pub(crate) length: u64,
    pub(crate) queued: u64,
    pub(crate) high_water: u64,
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    pub(crate) probes: u64,
    pub(crate) attempts: u64,
}

/// `tw_stats`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Figures {
    pub(crate) posted: QueueFigures,
    pub(crate) unexpected: QueueFigures,
}

pub(crate) const NONE: u32 = 0;
pub(crate) const QUEUED: u32 = 1;
pub(crate) const MATCHED: u32 = 2;
pub(crate) const FULL: u32 = 3;

/// How a message arrives.
pub(crate) const QUEUE: u32 = 0;
pub(crate) const EXPECTED_ONLY: u32 = 1;
pub(crate) const LOOK: u32 = 2;

/// Bits of `tw_key.flags`.
pub(crate) const ANY_SOURCE: u32 = 1;
pub(crate) const ANY_TAG: u32 = 2;

type Create = unsafe extern "C" fn(u32, u32, *const c_char, *mut c_char, usize) -> *mut c_void;
type Each = unsafe extern "C" fn(*mut c_void, Key, u32);
type Visit = unsafe extern "C" fn(*const c_void, u32, Each, *mut c_void);

/// `tw_engine_v1`, as a library has it: whatever it says is missing is null.
#[repr(C)]
#[derive(Clone, Copy)]
struct Raw {
    size: u32,
    abi: u32,
    name: *const c_char,
    grade: *const c_char,
    create: Option<Create>,
    destroy: Option<unsafe extern "C" fn(*mut c_void)>,
    post: Option<unsafe extern "C" fn(*mut c_void, Key, u32) -> Answer>,
    arrive: Option<unsafe extern "C" fn(*mut c_void, Key, u32, u32) -> Answer>,
    look: Option<unsafe extern "C" fn(*mut c_void, Key, *mut Key, u32) -> Answer>,
    withdraw: Option<unsafe extern "C" fn(*mut c_void, u64, u32) -> Answer>,
    stats: Option<unsafe extern "C" fn(*const c_void, *mut Figures)>,
    visit: Option<Visit>,
    promise: Option<unsafe extern "C" fn(*mut c_void, u32, u32)>,
}

/// The functions of an engine.
#[derive(Debug, Clone, Copy)]
struct Functions {
    create: Create,
    destroy: unsafe extern "C" fn(*mut c_void),
    post: unsafe extern "C" fn(*mut c_void, Key, u32) -> Answer,
    arrive: unsafe extern "C" fn(*mut c_void, Key, u32, u32) -> Answer,
    look: unsafe extern "C" fn(*mut c_void, Key, *mut Key, u32) -> Answer,
    withdraw: unsafe extern "C" fn(*mut c_void, u64, u32) -> Answer,
    stats: unsafe extern "C" fn(*const c_void, *mut Figures),
    visit: Visit,
    promise: Option<unsafe extern "C" fn(*mut c_void, u32, u32)>,
}

/// A library that stays open until the process ends: its engines have pointers into it.
#[derive(Debug, Clone)]
pub(crate) struct Library {
    name: String,
    grade: Grade,
    functions: Functions,
}

/// One engine of a library.
#[derive(Debug)]
pub(crate) struct Instance {
    engine: NonNull<c_void>,
    functions: Functions,
}

// SAFETY: the header has an engine be called by any thread, one call at a time, and nothing else refers to it.
unsafe impl Send for Instance {}

impl Library {
    /// Opens the file.
    pub(crate) fn open(path: &str) -> Result<Self, String> {
        // SAFETY: whoever names a library has its initialisers run in the process. That is what is asked for.
        let library = unsafe { libloading::Library::new(path) };
        let library = library.map_err(|error| reason(&error))?;
        // SAFETY: the header gives the function of this name this type.
        let symbol = unsafe { library.get::<unsafe extern "C" fn() -> *const Raw>(SYMBOL) };
        let symbol = *symbol.map_err(|_| {
            let symbol = String::from_utf8_lossy(SYMBOL);
            format!("it has no function '{symbol}', as an engine's library has (include/tagwire_engine.h)")
        })?;
        // SAFETY: it has no parameters, and the library is open.
        let table = unsafe { symbol() };
        let opened = Self::of(table);
        // From here on its functions may be called at any time.
        mem::forget(library);
        opened
    }

    fn of(table: *const Raw) -> Result<Self, String> {
        if table.is_null() || !table.is_aligned() {
            return Err("its function returns no table".to_owned());
        }
        // SAFETY: the header has every table begin with these two words, and stay.
        let [size, abi] = unsafe { table.cast::<[u32; 2]>().read() };
        if abi != ABI {
            return Err(format!(
                "its table is of version {abi}, and this program reads version {ABI}"
            ));
        }
        let size = size as usize;
        if size < mem::offset_of!(Raw, promise) {
            return Err(format!(
                "its table has {size} bytes, fewer than version {ABI} has"
            ));
        }
        let mut raw = MaybeUninit::<Raw>::zeroed();
        // SAFETY: the table has so many bytes, and `raw` has as many as are copied; they do not overlap. What is not copied is
        // zero, which is null in every member behind.
        let raw = unsafe {
            let bytes = size.min(size_of::<Raw>());
            ptr::copy_nonoverlapping(table.cast::<u8>(), raw.as_mut_ptr().cast(), bytes);
            raw.assume_init()
        };
        let lacks = |what: &str| format!("its table has no '{what}'");
        let text = |text: *const c_char, what| {
            if text.is_null() {
                return Err(lacks(what));
            }
            // SAFETY: the header has it be a text that ends with a zero and stays as long as the library.
            let text = unsafe { CStr::from_ptr(text) };
            Ok(text.to_string_lossy().into_owned())
        };
        let grade = text(raw.grade, "grade")?;
        let all = [Grade::Exact, Grade::Mpi, Grade::Free];
        let known = all.into_iter().find(|known| known.name() == grade);
        Ok(Self {
            name: text(raw.name, "name")?,
            grade: known.ok_or_else(|| {
                format!(
                    "its grade is '{grade}', and there are {}",
                    Grade::NAMES.join(", ")
                )
            })?,
            functions: Functions {
                create: raw.create.ok_or_else(|| lacks("create"))?,
                destroy: raw.destroy.ok_or_else(|| lacks("destroy"))?,
                post: raw.post.ok_or_else(|| lacks("post"))?,
                arrive: raw.arrive.ok_or_else(|| lacks("arrive"))?,
                look: raw.look.ok_or_else(|| lacks("look"))?,
                withdraw: raw.withdraw.ok_or_else(|| lacks("withdraw"))?,
                stats: raw.stats.ok_or_else(|| lacks("stats"))?,
                visit: raw.visit.ok_or_else(|| lacks("visit"))?,
                promise: raw.promise,
            },
        })
    }

    /// Makes an engine; the library says why where it cannot.
    pub(crate) fn create(
        &self,
        capacity: Capacity,
        parameters: &CString,
    ) -> Result<Instance, String> {
        let mut error = [0_u8; ERROR];
        let Capacity { posted, unexpected } = capacity;
        let (text, room) = (error.as_mut_ptr().cast(), error.len());
        // SAFETY: the text ends with a zero, the room is as large as is said, and both outlive the call.
        let engine =
            unsafe { (self.functions.create)(posted, unexpected, parameters.as_ptr(), text, room) };
        match NonNull::new(engine) {
            Some(engine) => Ok(Instance {
                engine,
                functions: self.functions,
            }),
            None => {
                let said = CStr::from_bytes_until_nul(&error).unwrap_or_default();
                match said.to_string_lossy() {
                    said if said.is_empty() => {
                        Err("it makes no engine, and says not why".to_owned())
                    }
                    said => Err(said.into_owned()),
                }
            }
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) const fn grade(&self) -> Grade {
        self.grade
    }
}

// In each call the engine is one that `create` has made and `destroy` has not got: `Instance` is the only one that has it, and
// gives it to `destroy` when it is dropped. Calls do not overlap, since each borrows the instance alone, or reads only.
impl Instance {
    #[inline]
    pub(crate) fn post(&mut self, receive: Key, cookie: u32) -> Answer {
        // SAFETY: see above.
        unsafe { (self.functions.post)(self.engine.as_ptr(), receive, cookie) }
    }

    #[inline]
    pub(crate) fn arrive(&mut self, message: Key, cookie: u32, how: u32) -> Answer {
        // SAFETY: see above.
        unsafe { (self.functions.arrive)(self.engine.as_ptr(), message, cookie, how) }
    }

    /// Returns what was found too, where something was.
    #[inline]
    pub(crate) fn look(&mut self, receive: Key, take: bool) -> (Answer, Key) {
        let mut found = Key::default();
        // SAFETY: see above; `found` outlives the call.
        let answer = unsafe {
            (self.functions.look)(self.engine.as_ptr(), receive, &raw mut found, take.into())
        };
        (answer, found)
    }

    pub(crate) fn withdraw(&mut self, handle: u64, is_message: bool) -> Answer {
        // SAFETY: see above; a handle is a number.
        unsafe { (self.functions.withdraw)(self.engine.as_ptr(), handle, is_message.into()) }
    }

    pub(crate) fn promise(&mut self, context: u32, promises: u32) {
        if let Some(promise) = self.functions.promise {
            // SAFETY: see above.
            unsafe { promise(self.engine.as_ptr(), context, promises) }
        }
    }

    pub(crate) fn figures(&self) -> Figures {
        let mut figures = Figures::default();
        // SAFETY: see above; `figures` outlives the call.
        unsafe { (self.functions.stats)(self.engine.as_ptr(), &raw mut figures) };
        figures
    }

    pub(crate) fn visit(&self, is_message: bool, mut each: &mut dyn FnMut(Key, u32)) {
        let with = ptr::from_mut(&mut each).cast();
        // SAFETY: see above; `with` is what `visited` takes, and outlives the call, within which alone it is used.
        unsafe { (self.functions.visit)(self.engine.as_ptr(), is_message.into(), visited, with) }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // SAFETY: `create` has made it, and nobody has it any more.
        unsafe { (self.functions.destroy)(self.engine.as_ptr()) }
    }
}

/// Calls the visitor. A panic in it ends the process, since it must not pass the library.
unsafe extern "C" fn visited(with: *mut c_void, key: Key, cookie: u32) {
    // SAFETY: `visit` gives a pointer to such a reference, which it has borrowed alone.
    let each = unsafe { &mut *with.cast::<&mut dyn FnMut(Key, u32)>() };
    each(key, cookie);
}

/// What the system says, with the causes.
fn reason(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

const SYMBOL: &[u8] = b"tagwire_engine_v1";
const ABI: u32 = 1;
/// Room for the reason of a library.
const ERROR: usize = 512;
