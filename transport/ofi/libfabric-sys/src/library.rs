//! The library: opened by name or path, its symbols by version.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};

use crate::bindings::{fi_fabric_attr, fi_info, fid_fabric};

/// Why a library cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The system cannot open it.
    #[error("cannot open {file}: {reason}")]
    Open {
        /// What was tried.
        file: String,
        /// What the loader said.
        reason: String,
    },
    /// It is not libfabric, or one too old.
    #[error("{file} has no symbol {symbol}@{version}: it is not libfabric, or older than 1.17")]
    Symbol {
        /// The file.
        file: String,
        /// What it lacks.
        symbol: &'static str,
        /// In this version.
        version: &'static str,
    },
    /// Its API is older than the one that is bound.
    #[error("{file} is libfabric {major}.{minor}: 1.17 or newer is needed")]
    TooOld {
        /// The file.
        file: String,
        /// Its major version.
        major: u32,
        /// Its minor version.
        minor: u32,
    },
}

type Version = unsafe extern "C" fn() -> u32;
type FreeInfo = unsafe extern "C" fn(*mut fi_info);
type DupInfo = unsafe extern "C" fn(*const fi_info) -> *mut fi_info;
type OpenFabric =
    unsafe extern "C" fn(*mut fi_fabric_attr, *mut *mut fid_fabric, *mut c_void) -> c_int;
type StrError = unsafe extern "C" fn(c_int) -> *const c_char;
type GetInfo = unsafe extern "C" fn(
    u32,
    *const c_char,
    *const c_char,
    u64,
    *const fi_info,
    *mut *mut fi_info,
) -> c_int;

/// An open libfabric: its exported functions. It stays open until the process ends, since providers
/// may have threads of their own.
#[derive(Debug, Clone)]
pub struct Library {
    file: String,
    version: u32,
    getinfo: GetInfo,
    freeinfo: FreeInfo,
    dupinfo: DupInfo,
    fabric: OpenFabric,
    strerror: StrError,
}

impl Library {
    /// The name under which systems have it.
    pub const SYSTEM: &'static str = "libfabric.so.1";

    /// Opens `file`: a path, or a name that the loader looks for.
    ///
    /// # Safety
    /// What the loader finds under that name is a libfabric, or nothing that has its versioned symbols, and its
    /// initialisers may run in this process.
    ///
    /// # Errors
    /// When it cannot be opened, or is not a libfabric of 1.17 or newer.
    pub unsafe fn open(file: &str) -> Result<Self, LoadError> {
        let handle = open_handle(file)?;
        let symbol =
            |name: &'static CStr, version: &'static CStr| find(file, handle, name, version);
        // SAFETY: each symbol has been asked for in the version whose declaration, in the headers
        // of API 1.17, is that of the field. Pointers to functions have the size of pointers.
        let (library, version) = unsafe {
            let version = symbol(c"fi_version", c"FABRIC_1.0")?;
            let version = std::mem::transmute::<*mut c_void, Version>(version)();
            let getinfo = symbol(c"fi_getinfo", c"FABRIC_1.3")?;
            let freeinfo = symbol(c"fi_freeinfo", c"FABRIC_1.3")?;
            let dupinfo = symbol(c"fi_dupinfo", c"FABRIC_1.3")?;
            let fabric = symbol(c"fi_fabric", c"FABRIC_1.1")?;
            let strerror = symbol(c"fi_strerror", c"FABRIC_1.0")?;
            let library = Self {
                file: file.to_owned(),
                version,
                getinfo: std::mem::transmute::<*mut c_void, GetInfo>(getinfo),
                freeinfo: std::mem::transmute::<*mut c_void, FreeInfo>(freeinfo),
                dupinfo: std::mem::transmute::<*mut c_void, DupInfo>(dupinfo),
                fabric: std::mem::transmute::<*mut c_void, OpenFabric>(fabric),
                strerror: std::mem::transmute::<*mut c_void, StrError>(strerror),
            };
            (library, version)
        };
        if version < crate::API_VERSION {
            return Err(LoadError::TooOld {
                file: file.to_owned(),
                major: version >> 16,
                minor: version & 0xffff,
            });
        }
        Ok(library)
    }

    /// What was opened.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Where one of its functions lies in this process: which file was found for a name is known by that.
    #[must_use]
    pub fn address(&self) -> usize {
        self.getinfo as usize
    }

    /// Its version: major and minor.
    #[must_use]
    pub const fn version(&self) -> (u32, u32) {
        (self.version >> 16, self.version & 0xffff)
    }

    /// What the library says of an error number, positive or negative.
    #[must_use]
    pub fn describe(&self, error: i32) -> String {
        // SAFETY: the function takes any number and returns a string that lives forever, or null.
        let text = unsafe { (self.strerror)(error.saturating_abs()) };
        if text.is_null() {
            return format!("error {error}");
        }
        // SAFETY: not null, so a string with its end, of the library's own.
        unsafe { CStr::from_ptr(text) }
            .to_string_lossy()
            .into_owned()
    }

    /// An empty info structure, as `fi_allocinfo` makes it; null when memory is short.
    #[must_use]
    pub fn allocate_info(&self) -> *mut fi_info {
        // SAFETY: `fi_dupinfo(NULL)` is what the headers' `fi_allocinfo` is.
        unsafe { (self.dupinfo)(std::ptr::null()) }
    }

    /// A copy of `info`.
    ///
    /// # Safety
    /// `info` came from this library and was not freed.
    #[must_use]
    pub unsafe fn duplicate_info(&self, info: *const fi_info) -> *mut fi_info {
        // SAFETY: the caller's promise.
        unsafe { (self.dupinfo)(info) }
    }

    /// Frees `info` and what follows it in its list.
    ///
    /// # Safety
    /// `info` came from this library, and nobody uses it any more.
    pub unsafe fn free_info(&self, info: *mut fi_info) {
        // SAFETY: the caller's promise.
        unsafe { (self.freeinfo)(info) }
    }

    /// `fi_getinfo` at [`API_VERSION`](crate::API_VERSION).
    ///
    /// # Errors
    /// The library's negative number.
    ///
    /// # Safety
    /// `hints` came from this library and holds what its fields ask for.
    pub unsafe fn get_info(
        &self,
        node: Option<&CStr>,
        service: Option<&CStr>,
        flags: u64,
        hints: *const fi_info,
    ) -> Result<*mut fi_info, i32> {
        let text = |text: Option<&CStr>| text.map_or(std::ptr::null(), CStr::as_ptr);
        let mut list = std::ptr::null_mut();
        // SAFETY: strings with their ends or null, the caller's hints, room for the result.
        let code = unsafe {
            (self.getinfo)(
                crate::API_VERSION,
                text(node),
                text(service),
                flags,
                hints,
                &raw mut list,
            )
        };
        if code == 0 { Ok(list) } else { Err(code) }
    }

    /// `fi_fabric`.
    ///
    /// # Errors
    /// The library's negative number.
    ///
    /// # Safety
    /// `attributes` are those of an info structure of this library.
    pub unsafe fn open_fabric(
        &self,
        attributes: *mut fi_fabric_attr,
    ) -> Result<*mut fid_fabric, i32> {
        let mut fabric = std::ptr::null_mut();
        // SAFETY: the caller's promise, and room for the result.
        let code = unsafe { (self.fabric)(attributes, &raw mut fabric, std::ptr::null_mut()) };
        if code == 0 { Ok(fabric) } else { Err(code) }
    }
}

fn open_handle(file: &str) -> Result<*mut c_void, LoadError> {
    let name = CString::new(file).map_err(|_| LoadError::Open {
        file: file.to_owned(),
        reason: "the name has a zero byte".to_owned(),
    })?;
    // SAFETY: a string with its end. What the library does when it is loaded is its own affair:
    // the user has named it.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() {
        return Err(LoadError::Open {
            file: file.to_owned(),
            reason: last_error(),
        });
    }
    Ok(handle)
}

fn find(
    file: &str,
    handle: *mut c_void,
    symbol: &'static CStr,
    version: &'static CStr,
) -> Result<*mut c_void, LoadError> {
    // SAFETY: the handle is open, both strings have their ends.
    let found = unsafe { libc::dlvsym(handle, symbol.as_ptr(), version.as_ptr()) };
    if found.is_null() {
        return Err(LoadError::Symbol {
            file: file.to_owned(),
            symbol: symbol.to_str().unwrap_or_default(),
            version: version.to_str().unwrap_or_default(),
        });
    }
    Ok(found)
}

fn last_error() -> String {
    // SAFETY: `dlerror` returns null or a string that lives until this thread's next call.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "no reason given".to_owned();
    }
    // SAFETY: not null, see above.
    unsafe { CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned()
}
