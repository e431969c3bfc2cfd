//! What can go wrong with a file.

use std::path::{Path, PathBuf};

use rustix::io::Errno;

/// What can go wrong with a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A system call failed, of this member or of one that made it for this member's bytes.
    #[error("{call} of {path:?}: {}{}", system_text(*errno), by(*member))]
    System {
        /// What was called.
        call: &'static str,
        /// The file.
        path: PathBuf,
        /// The number of the error (errno(3)).
        errno: Errno,
        /// Who has called it, where that was another member.
        member: Option<usize>,
    },
    /// The file system has no locks, which atomic mode needs.
    #[error(
        "{path:?} is on a file system without locks ({}): atomic mode (MPI_File_set_atomicity) needs a mount with them, such as one without the option nolock",
        system_text(*errno)
    )]
    NoLocks {
        /// The file.
        path: PathBuf,
        /// What fcntl(2) said.
        errno: Errno,
    },
    /// Members have called it with different arguments.
    #[error("rank {member} of the group has called it with another {what}")]
    NotSame {
        /// The first that differs.
        member: usize,
        /// What differs.
        what: &'static str,
    },
    /// Another member has failed in a call that all make together.
    #[error("rank {member} of the group has failed in the same call: {}", kind_text(*kind, *errno))]
    Elsewhere {
        /// The first that has.
        member: usize,
        /// What its error was.
        kind: Kind,
        /// The number of that, where a system call failed (errno(3)).
        errno: Option<Errno>,
    },
    /// The mode is none that a file can have.
    #[error("{0}")]
    Mode(String),
    /// An argument is wrong.
    #[error("{0}")]
    Argument(String),
    /// The filetype of a view is none that a file can have.
    #[error("{0}")]
    Filetype(&'static str),
    /// The file was opened to be read only.
    #[error("the file was opened to be read, and not to be written")]
    NotWritable,
    /// The file was opened to be written only.
    #[error("the file was opened to be written, and not to be read")]
    NotReadable,
    /// The call is none of files that were opened so.
    #[error("{0}")]
    Unsupported(String),
    /// The group is broken, or a member of it has failed.
    #[error(transparent)]
    Team(#[from] tagwire_coll::Error),
    /// The layer below refused.
    #[error(transparent)]
    Pml(#[from] tagwire_pml::Error),
    /// A datatype cannot be used.
    #[error(transparent)]
    Layout(#[from] tagwire_layout::Error),
    /// What a member has sent is not what the members of a collective access send.
    #[error("rank {member} of the group has broken the protocol of collective accesses: {what}")]
    Protocol {
        /// Who.
        member: usize,
        /// What it did.
        what: &'static str,
    },
}

/// Returns what a number of an error means.
fn system_text(errno: Errno) -> String {
    match errno {
        Errno::NOSPC => "no space is left on the file system".to_owned(),
        Errno::DQUOT => "the disk quota is exceeded".to_owned(),
        _ => errno.to_string(),
    }
}

/// Returns what an error of another member was.
fn kind_text(kind: Kind, errno: Option<Errno>) -> String {
    errno.map_or_else(|| format!("{kind:?}"), system_text)
}

/// Returns who has made a call.
fn by(member: Option<usize>) -> String {
    member.map_or_else(String::new, |member| {
        format!(" (called by rank {member} of the group)")
    })
}

/// What an error is, as far as programs tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[repr(u8)]
pub enum Kind {
    /// There is no such file.
    NoSuchFile,
    /// There is one already.
    Exists,
    /// It may not be accessed so.
    Access,
    /// It, or its file system, is only to be read.
    ReadOnly,
    /// The file system is full.
    NoSpace,
    /// The user has no more room there.
    Quota,
    /// The name is none of a file.
    BadFile,
    /// Something else uses it.
    InUse,
    /// A mode that no file can have.
    Mode,
    /// Members differ.
    NotSame,
    /// An argument is wrong.
    Argument,
    /// The call is none of such files.
    Unsupported,
    /// A member has failed, or the layers below refuse.
    Peer,
    /// Any other error of input and output.
    Io,
}

/// All kinds, in the order of their numbers in messages.
const KINDS: [Kind; 14] = [
    Kind::NoSuchFile,
    Kind::Exists,
    Kind::Access,
    Kind::ReadOnly,
    Kind::NoSpace,
    Kind::Quota,
    Kind::BadFile,
    Kind::InUse,
    Kind::Mode,
    Kind::NotSame,
    Kind::Argument,
    Kind::Unsupported,
    Kind::Peer,
    Kind::Io,
];

impl Kind {
    /// Returns the kind with a number in messages; [`Io`](Self::Io) for others.
    pub(crate) fn of_number(number: u64) -> Self {
        let found = KINDS.into_iter().find(|kind| *kind as u64 == number);
        found.unwrap_or(Self::Io)
    }
}

impl Error {
    /// Returns what it is.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::System { errno, .. } => kind_of(*errno),
            Self::NotSame { .. } => Kind::NotSame,
            Self::Mode(_) => Kind::Mode,
            Self::Argument(_) | Self::Layout(_) => Kind::Argument,
            Self::NotWritable => Kind::ReadOnly,
            Self::NotReadable => Kind::Access,
            Self::Elsewhere { kind, .. } => *kind,
            Self::Unsupported(_) => Kind::Unsupported,
            Self::Team(_) | Self::Pml(_) => Kind::Peer,
            Self::NoLocks { .. } | Self::Protocol { .. } | Self::Filetype(_) => Kind::Io,
        }
    }

    /// Returns the number of the error, where a system call failed.
    #[must_use]
    pub const fn errno(&self) -> Option<Errno> {
        match self {
            Self::System { errno, .. } | Self::NoLocks { errno, .. } => Some(*errno),
            Self::Elsewhere { errno, .. } => *errno,
            _ => None,
        }
    }

    /// Returns that of a call of this member.
    pub(crate) fn system(call: &'static str, path: &Path, errno: Errno) -> Self {
        Self::System {
            call,
            path: path.to_owned(),
            errno,
            member: None,
        }
    }
}

/// Returns what a number of an error means to a program.
const fn kind_of(errno: Errno) -> Kind {
    match errno {
        Errno::NOENT => Kind::NoSuchFile,
        Errno::EXIST => Kind::Exists,
        Errno::ACCESS | Errno::PERM => Kind::Access,
        Errno::ROFS => Kind::ReadOnly,
        Errno::NOSPC => Kind::NoSpace,
        Errno::DQUOT => Kind::Quota,
        Errno::NAMETOOLONG | Errno::NOTDIR | Errno::LOOP | Errno::ISDIR => Kind::BadFile,
        Errno::TXTBSY | Errno::BUSY => Kind::InUse,
        _ => Kind::Io,
    }
}

/// What calls on files return.
pub type Result<T> = std::result::Result<T, Error>;

/// How an access ended.
#[derive(Debug)]
#[must_use = "an access may have failed"]
pub struct Outcome {
    /// Bytes of the data that were read or written, from its first on: fewer than were asked for at the end of the file, and
    /// after an error.
    pub bytes: u64,
    /// What ended it.
    pub error: Option<Error>,
}

impl Outcome {
    pub(crate) const fn good(bytes: u64) -> Self {
        Self { bytes, error: None }
    }

    pub(crate) const fn failed(bytes: u64, error: Error) -> Self {
        let error = Some(error);
        Self { bytes, error }
    }

    /// Returns how many bytes there were.
    ///
    /// # Errors
    /// What ended it.
    pub fn into_result(self) -> Result<u64> {
        match self.error {
            None => Ok(self.bytes),
            Some(error) => Err(error),
        }
    }
}

impl From<Error> for Outcome {
    fn from(error: Error) -> Self {
        Self::failed(0, error)
    }
}
