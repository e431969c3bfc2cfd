//! Errors: a class of the standard, a sentence, and the object on whose error handler it is raised.

use crate::abi::{Comm, Errhandler, File, Session, Win};

/// Makes the error classes (MPI-5.0, section 9.4): `name: number, "what it says"`.
macro_rules! classes {
    ($($Class:ident: $number:literal, $says:literal,)*) => {
        /// An error class.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(i32)]
        #[allow(missing_docs, reason = "each is a name of the standard")]
        pub enum Class {
            $($Class = $number,)*
        }

        impl Class {
            /// Returns the class with a number.
            #[must_use]
            pub const fn of(number: i32) -> Option<Self> {
                match number {
                    $($number => Some(Self::$Class),)*
                    _ => None,
                }
            }

            /// Returns its name in the standard.
            #[must_use]
            pub fn name(self) -> &'static str {
                let text = self.text();
                text.split_once(':').map_or(text, |(name, _)| name)
            }

            /// Returns what it says.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self {
                    $(Self::$Class => $says,)*
                }
            }
        }
    };
}

classes! {
    Success: 0, "MPI_SUCCESS: no error",
    Buffer: 1, "MPI_ERR_BUFFER: invalid buffer",
    Count: 2, "MPI_ERR_COUNT: invalid count",
    Type: 3, "MPI_ERR_TYPE: invalid datatype",
    Tag: 4, "MPI_ERR_TAG: invalid tag",
    Comm: 5, "MPI_ERR_COMM: invalid communicator",
    Rank: 6, "MPI_ERR_RANK: invalid rank",
    Request: 7, "MPI_ERR_REQUEST: invalid request",
    Root: 8, "MPI_ERR_ROOT: invalid root",
    Group: 9, "MPI_ERR_GROUP: invalid group",
    Op: 10, "MPI_ERR_OP: invalid operation",
    Topology: 11, "MPI_ERR_TOPOLOGY: invalid topology",
    Dims: 12, "MPI_ERR_DIMS: invalid dimensions",
    Arg: 13, "MPI_ERR_ARG: invalid argument",
    Unknown: 14, "MPI_ERR_UNKNOWN: unknown error",
    Truncate: 15, "MPI_ERR_TRUNCATE: message longer than the receive buffer",
    Other: 16, "MPI_ERR_OTHER: error of another class",
    Intern: 17, "MPI_ERR_INTERN: internal error",
    Pending: 18, "MPI_ERR_PENDING: the request is not complete",
    InStatus: 19, "MPI_ERR_IN_STATUS: the error codes are in the statuses",
    Access: 20, "MPI_ERR_ACCESS: permission denied",
    Amode: 21, "MPI_ERR_AMODE: invalid access mode",
    Assert: 22, "MPI_ERR_ASSERT: invalid assertion",
    BadFile: 23, "MPI_ERR_BAD_FILE: invalid file name",
    Base: 24, "MPI_ERR_BASE: invalid base address",
    Conversion: 25, "MPI_ERR_CONVERSION: error in a conversion function",
    Disp: 26, "MPI_ERR_DISP: invalid displacement",
    DupDatarep: 27, "MPI_ERR_DUP_DATAREP: the data representation is defined already",
    FileExists: 28, "MPI_ERR_FILE_EXISTS: the file exists",
    FileInUse: 29, "MPI_ERR_FILE_IN_USE: the file is in use",
    File: 30, "MPI_ERR_FILE: invalid file handle",
    InfoKey: 31, "MPI_ERR_INFO_KEY: invalid info key",
    InfoNokey: 32, "MPI_ERR_INFO_NOKEY: no such info key",
    InfoValue: 33, "MPI_ERR_INFO_VALUE: invalid info value",
    Info: 34, "MPI_ERR_INFO: invalid info",
    Io: 35, "MPI_ERR_IO: input or output error",
    Keyval: 36, "MPI_ERR_KEYVAL: invalid attribute key",
    Locktype: 37, "MPI_ERR_LOCKTYPE: invalid lock type",
    Name: 38, "MPI_ERR_NAME: no such service name",
    NoMem: 39, "MPI_ERR_NO_MEM: no memory",
    NotSame: 40, "MPI_ERR_NOT_SAME: arguments differ between ranks",
    NoSpace: 41, "MPI_ERR_NO_SPACE: no space",
    NoSuchFile: 42, "MPI_ERR_NO_SUCH_FILE: no such file",
    Port: 43, "MPI_ERR_PORT: invalid port name",
    Quota: 44, "MPI_ERR_QUOTA: quota exceeded",
    ReadOnly: 45, "MPI_ERR_READ_ONLY: read-only file",
    RmaAttach: 46, "MPI_ERR_RMA_ATTACH: memory cannot be attached",
    RmaConflict: 47, "MPI_ERR_RMA_CONFLICT: conflicting accesses to a window",
    RmaRange: 48, "MPI_ERR_RMA_RANGE: target memory is not in the window",
    RmaShared: 49, "MPI_ERR_RMA_SHARED: memory cannot be shared",
    RmaSync: 50, "MPI_ERR_RMA_SYNC: wrong synchronization",
    Service: 51, "MPI_ERR_SERVICE: invalid service name",
    Size: 52, "MPI_ERR_SIZE: invalid size",
    Spawn: 53, "MPI_ERR_SPAWN: processes cannot be started",
    UnsupportedDatarep: 54, "MPI_ERR_UNSUPPORTED_DATAREP: unsupported data representation",
    UnsupportedOperation: 55, "MPI_ERR_UNSUPPORTED_OPERATION: unsupported operation",
    Win: 56, "MPI_ERR_WIN: invalid window",
    RmaFlavor: 57, "MPI_ERR_RMA_FLAVOR: wrong flavor of window",
    ProcAborted: 58, "MPI_ERR_PROC_ABORTED: a peer process has failed",
    ValueTooLarge: 59, "MPI_ERR_VALUE_TOO_LARGE: the value does not fit its variable",
    Session: 60, "MPI_ERR_SESSION: invalid session",
    Errhandler: 61, "MPI_ERR_ERRHANDLER: invalid error handler",
    Abi: 62, "MPI_ERR_ABI: error of the binary interface",
}

/// The object on whose error handler an error is raised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// A communicator.
    Comm(Comm),
    /// A window.
    Win(Win),
    /// A file.
    File(File),
    /// A session.
    Session(Session),
    /// None yet: the call is given the error handler of the one that it makes.
    Handler(Errhandler),
    /// None: the initial error handler, that of `MPI_COMM_SELF` (MPI-5.0, section 9.3).
    None,
}

/// Why a call has failed.
#[derive(Debug)]
pub struct Error(Box<Details>);

#[derive(Debug)]
struct Details {
    code: i32,
    text: String,
    on: On,
}

/// What handlers return.
pub type Result<T = ()> = std::result::Result<T, Error>;

impl Error {
    /// Returns an error of a class, with what is wrong.
    #[cold]
    #[must_use]
    pub fn new(class: Class, text: impl Into<String>) -> Self {
        Self::of_code(class as i32, text)
    }

    /// Returns an error with a code, which may be a user's.
    #[cold]
    #[must_use]
    pub fn of_code(code: i32, text: impl Into<String>) -> Self {
        let (text, on) = (text.into(), On::None);
        Self(Box::new(Details { code, text, on }))
    }

    /// Returns the same, raised on an object where it is not raised on another.
    #[must_use]
    pub fn on(mut self, on: On) -> Self {
        if self.0.on == On::None {
            self.0.on = on;
        }
        self
    }

    /// Returns the code.
    #[must_use]
    pub fn code(&self) -> i32 {
        self.0.code
    }

    /// Returns what is wrong.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// Returns the object on whose error handler it is raised.
    #[must_use]
    pub fn raised_on(&self) -> On {
        self.0.on
    }
}

/// Returns the class of a failure of an operation.
#[must_use]
pub fn class_of(failure: tagwire_pml::Failure) -> Class {
    use tagwire_pml::Failure;
    match failure {
        Failure::Truncated { .. } => Class::Truncate,
        Failure::PeerFailed(_) => Class::ProcAborted,
        Failure::PeerLeft(_) | Failure::Unreachable(_) => Class::Other,
        _ => Class::Intern,
    }
}

impl From<tagwire_pml::Error> for Error {
    #[cold]
    fn from(error: tagwire_pml::Error) -> Self {
        use tagwire_pml::Error;
        let class = match &error {
            Error::Failed(failure) => class_of(*failure),
            Error::TagTooWide { .. } => Class::Tag,
            Error::NoSuchRank { .. } => Class::Rank,
            Error::StaleRequest | Error::WrongRequest(_) | Error::BadRound(_) => Class::Request,
            Error::BadPartition { .. } => Class::Arg,
            Error::BadPartitions { .. } => Class::Count,
            Error::Mismatch { sent, received } if sent > received => Class::Truncate,
            Error::Mismatch { .. } => Class::Count,
            Error::NoContext | Error::MessageTooLong { .. } => Class::Other,
            _ => Class::Intern,
        };
        Self::new(class, error.to_string())
    }
}

impl From<tagwire_coll::Error> for Error {
    #[cold]
    fn from(error: tagwire_coll::Error) -> Self {
        use tagwire_coll::Error;
        let class = match &error {
            Error::Failed(failure) => class_of(*failure),
            Error::Gone { .. } | Error::Broken => Class::ProcAborted,
            Error::Length { .. } => Class::Truncate,
            Error::Different { .. } => Class::Other,
            Error::Operation(_) => Class::Op,
            Error::Argument(_) => Class::Arg,
            _ => Class::Intern,
        };
        let text = error.to_string();
        match error {
            Error::Pml(error) => error.into(),
            _ => Self::new(class, text),
        }
    }
}

impl From<tagwire_files::Error> for Error {
    #[cold]
    fn from(error: tagwire_files::Error) -> Self {
        use tagwire_files::{Error, Kind};
        let class = match error.kind() {
            Kind::NoSuchFile => Class::NoSuchFile,
            Kind::Exists => Class::FileExists,
            Kind::Access => Class::Access,
            Kind::ReadOnly => Class::ReadOnly,
            Kind::NoSpace => Class::NoSpace,
            Kind::Quota => Class::Quota,
            Kind::BadFile => Class::BadFile,
            Kind::InUse => Class::FileInUse,
            Kind::Mode => Class::Amode,
            Kind::NotSame => Class::NotSame,
            Kind::Argument => Class::Arg,
            Kind::Unsupported => Class::UnsupportedOperation,
            Kind::Peer => Class::ProcAborted,
            _ => Class::Io,
        };
        match error {
            Error::Team(error) => error.into(),
            Error::Pml(error) => error.into(),
            error => Self::new(class, error.to_string()),
        }
    }
}

impl From<tagwire_layout::Error> for Error {
    #[cold]
    fn from(error: tagwire_layout::Error) -> Self {
        use tagwire_layout::Error;
        let class = match &error {
            Error::Undefined { .. } => Class::Op,
            Error::Lengths { .. } => Class::Count,
            Error::NotExternal { .. } => Class::Type,
            _ => Class::Arg,
        };
        Self::new(class, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use tagwire_files::Error as File;
    use tagwire_files::Kind;

    use super::{Class, Error};

    #[test]
    fn each_kind_of_error_of_files_has_its_class() {
        let classes = [
            (Kind::NoSuchFile, Class::NoSuchFile),
            (Kind::Exists, Class::FileExists),
            (Kind::Access, Class::Access),
            (Kind::ReadOnly, Class::ReadOnly),
            (Kind::NoSpace, Class::NoSpace),
            (Kind::Quota, Class::Quota),
            (Kind::BadFile, Class::BadFile),
            (Kind::InUse, Class::FileInUse),
            (Kind::Mode, Class::Amode),
            (Kind::NotSame, Class::NotSame),
            (Kind::Argument, Class::Arg),
            (Kind::Unsupported, Class::UnsupportedOperation),
            (Kind::Peer, Class::ProcAborted),
            (Kind::Io, Class::Io),
        ];
        for (kind, class) in classes {
            let errno = None;
            let error = File::Elsewhere {
                member: 1,
                kind,
                errno,
            };
            assert_eq!(Error::from(error).code(), class as i32, "{kind:?}");
        }
    }
}
