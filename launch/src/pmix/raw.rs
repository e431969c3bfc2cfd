//! The C types of `libpmix.so.2` that calls of this process have in common (PMIx standard, version 4.1, chapter 3).
#![allow(
    unsafe_code,
    reason = "a C library, opened at run time; what it lends is copied before the call ends"
)]

use std::ffi::{CStr, c_char, c_int, c_void};

/// The longest namespace and key, without the final zero.
pub(super) const LONGEST: usize = 255;
pub(super) const LONGEST_KEY: usize = 511;

/// Types of values.
pub(super) const STRING: u16 = 3;
pub(super) const INT: u16 = 6;
pub(super) const UINT16: u16 = 13;
pub(super) const UINT32: u16 = 14;
pub(super) const PROCESS: u16 = 22;
pub(super) const BYTES: u16 = 27;
pub(super) const POINTER: u16 = 31;

/// Visible to all ranks.
pub(super) const GLOBAL: u8 = 3;

/// A process, by its namespace and rank.
#[repr(C)]
#[derive(Clone)]
pub(super) struct RawProcess {
    pub(super) namespace: [c_char; LONGEST + 1],
    pub(super) rank: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct RawBytes {
    pub(super) bytes: *mut c_char,
    pub(super) size: usize,
}

#[repr(C)]
pub(super) union RawData {
    pub(super) string: *const c_char,
    pub(super) int: c_int,
    pub(super) uint16: u16,
    pub(super) uint32: u32,
    pub(super) bytes: RawBytes,
    pub(super) process: *const RawProcess,
    pub(super) pointer: *mut c_void,
    pub(super) size: [u64; 3],
}

#[repr(C)]
pub(super) struct RawValue {
    pub(super) kind: u16,
    pub(super) data: RawData,
}

#[repr(C)]
pub(super) struct RawInfo {
    pub(super) key: [c_char; LONGEST_KEY + 1],
    pub(super) flags: u32,
    pub(super) value: RawValue,
}

// `pmix_proc_t`, `pmix_value_t` and `pmix_info_t` of versions 3 to 5.
const _: () = assert!(
    size_of::<RawProcess>() == 260 && size_of::<RawValue>() == 32 && size_of::<RawInfo>() == 552
);

impl RawProcess {
    /// Returns room for a process.
    pub(super) const fn nobody() -> Self {
        Self {
            namespace: [0; LONGEST + 1],
            rank: 0,
        }
    }
}

impl RawInfo {
    /// Returns an attribute. `kind` says which member of `data` it is.
    pub(super) fn new(key: &CStr, kind: u16, data: RawData) -> Self {
        let mut info = Self {
            key: [0; LONGEST_KEY + 1],
            flags: 0,
            value: RawValue { kind, data },
        };
        for (place, byte) in info.key.iter_mut().zip(key.to_bytes()) {
            *place = *byte as c_char;
        }
        info
    }

    /// Whether its key is this one.
    pub(super) fn is(&self, key: &CStr) -> bool {
        let wanted = key.to_bytes_with_nul().iter().map(|byte| *byte as c_char);
        self.key.iter().copied().take(wanted.len()).eq(wanted)
    }
}

/// A value as PMIx has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Number(u32),
    Text(String),
    Bytes(Vec<u8>),
    /// Of a type that nobody here asks for.
    Other(u16),
}

/// Returns a copy of what the library lends.
///
/// # Safety
/// The union holds what the value's type says, and pointers in it are good for as long as `value` is.
pub(super) unsafe fn copied(value: &RawValue) -> Value {
    let data = &value.data;
    // SAFETY: of each type the member that the standard gives it is read; the caller promises the rest.
    unsafe {
        match value.kind {
            UINT16 => Value::Number(data.uint16.into()),
            UINT32 => Value::Number(data.uint32),
            STRING if !data.string.is_null() => {
                Value::Text(CStr::from_ptr(data.string).to_string_lossy().into_owned())
            }
            BYTES if data.bytes.size == 0 => Value::Bytes(Vec::new()),
            BYTES if !data.bytes.bytes.is_null() => {
                let start = data.bytes.bytes.cast::<u8>();
                Value::Bytes(std::slice::from_raw_parts(start, data.bytes.size).to_vec())
            }
            other => Value::Other(other),
        }
    }
}
