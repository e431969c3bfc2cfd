//! Handles, statuses and constants of the standard's binary interface (MPI-5.0, chapter 20 and appendix A).

/// Makes the types of handles: `name: the value of its null`.
macro_rules! handles {
    ($($(#[$doc:meta])* $Handle:ident: $null:literal,)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(transparent)]
        pub struct $Handle(pub usize);

        impl $Handle {
            /// No object.
            pub const NULL: Self = Self($null);
        }
    )*};
}

handles! {
    /// `MPI_Comm`.
    Comm: 0x100,
    /// `MPI_Group`.
    Group: 0x108,
    /// `MPI_Win`.
    Win: 0x110,
    /// `MPI_File`.
    File: 0x118,
    /// `MPI_Session`.
    Session: 0x120,
    /// `MPI_Message`.
    Message: 0x128,
    /// `MPI_Info`.
    Info: 0x130,
    /// `MPI_Errhandler`.
    Errhandler: 0x140,
    /// `MPI_Request`.
    Request: 0x180,
    /// `MPI_Datatype`.
    Datatype: 0x200,
    /// `MPI_Op`.
    Op: 0x20,
}

impl Comm {
    /// All ranks of the job.
    pub const WORLD: Self = Self(0x101);
    /// This rank alone.
    pub const SELF: Self = Self(0x102);
}

impl Group {
    /// The group without members.
    pub const EMPTY: Self = Self(0x109);
}

impl Message {
    /// What a matched probe of no process returns.
    pub const NO_PROC: Self = Self(0x129);
}

impl Info {
    /// `MPI_INFO_ENV`.
    pub const ENV: Self = Self(0x131);
}

impl Errhandler {
    /// `MPI_ERRORS_ARE_FATAL`.
    pub const ARE_FATAL: Self = Self(0x141);
    /// `MPI_ERRORS_ABORT`.
    pub const ABORT: Self = Self(0x142);
    /// `MPI_ERRORS_RETURN`.
    pub const RETURN: Self = Self(0x143);
}

impl Datatype {
    /// `MPI_PACKED`.
    pub const PACKED: Self = Self(0x207);
    /// `MPI_BYTE`.
    pub const BYTE: Self = Self(0x247);
}

/// `MPI_Status`: 32 bytes at multiples of 4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Status {
    /// `MPI_SOURCE`.
    pub source: i32,
    /// `MPI_TAG`.
    pub tag: i32,
    /// `MPI_ERROR`.
    pub error: i32,
    /// The number of bytes in the first two, and whether the operation was cancelled.
    internal: [i32; 5],
}

impl Status {
    /// What calls return that have received nothing (MPI-5.0, section 3.7.3).
    pub const EMPTY: Self = Self::new(ANY_SOURCE, ANY_TAG, 0);

    /// That of a receive from no process (MPI-5.0, section 3.10).
    pub const NO_PROC: Self = Self::new(PROC_NULL, ANY_TAG, 0);

    /// Returns that of a message of so many bytes.
    #[must_use]
    pub const fn new(source: i32, tag: i32, bytes: u64) -> Self {
        let status = Self {
            source,
            tag,
            error: SUCCESS,
            internal: [0; 5],
        };
        status.with_bytes(bytes)
    }

    /// Returns the same for so many bytes.
    #[must_use]
    pub const fn with_bytes(mut self, bytes: u64) -> Self {
        self.internal[0] = bytes as u32 as i32;
        self.internal[1] = (bytes >> 32) as i32;
        self
    }

    /// Returns the same with another source.
    #[must_use]
    pub const fn with_source(mut self, source: i32) -> Self {
        self.source = source;
        self
    }

    /// Returns the same with another tag.
    #[must_use]
    pub const fn with_tag(mut self, tag: i32) -> Self {
        self.tag = tag;
        self
    }

    /// Returns the same with an error code.
    #[must_use]
    pub const fn with_error(mut self, code: i32) -> Self {
        self.error = code;
        self
    }

    /// Returns the same for an operation that was cancelled, or not.
    #[must_use]
    pub const fn with_cancelled(mut self, cancelled: bool) -> Self {
        self.internal[2] = cancelled as i32;
        self
    }

    /// Returns the number of bytes.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.internal[0] as u32 as u64 | (self.internal[1] as u32 as u64) << 32
    }

    /// Returns whether the operation was cancelled.
    #[must_use]
    pub const fn is_cancelled(&self) -> bool {
        self.internal[2] != 0
    }
}

/// `MPI_ANY_SOURCE`.
pub const ANY_SOURCE: i32 = -1;
/// `MPI_ANY_TAG`.
pub const ANY_TAG: i32 = -2;
/// `MPI_PROC_NULL`.
pub const PROC_NULL: i32 = -3;
/// `MPI_ROOT`.
pub const ROOT: i32 = -4;
/// `MPI_UNDEFINED`.
pub const UNDEFINED: i32 = -32766;
/// `MPI_SUCCESS`.
pub const SUCCESS: i32 = 0;

/// `MPI_MAX_PROCESSOR_NAME`.
pub const MAX_PROCESSOR_NAME: usize = 256;
/// `MPI_MAX_ERROR_STRING`.
pub const MAX_ERROR_STRING: usize = 512;
/// `MPI_MAX_LIBRARY_VERSION_STRING`.
pub const MAX_LIBRARY_VERSION_STRING: usize = 8192;
/// `MPI_MAX_OBJECT_NAME`.
pub const MAX_OBJECT_NAME: usize = 128;

/// Thread levels (MPI-5.0, section 11.2).
pub mod thread {
    /// `MPI_THREAD_SINGLE`.
    pub const SINGLE: i32 = 0;
    /// `MPI_THREAD_FUNNELED`.
    pub const FUNNELED: i32 = 1024;
    /// `MPI_THREAD_SERIALIZED`.
    pub const SERIALIZED: i32 = 2048;
    /// `MPI_THREAD_MULTIPLE`.
    pub const MULTIPLE: i32 = 4096;
}
