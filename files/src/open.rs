//! Opening a file: all members do, or none.

use std::path::PathBuf;
use std::sync::Arc;

use tagwire_coll::Team;

use crate::code::{word, words};
use crate::error::Kind;
use crate::hints::Hints;
use crate::pointer::{KEY, Made, SharedPointer, Way};
use crate::storage::{Handle, Storage};
use crate::{Errno, Error, File, Mode, Result};

/// Where a member is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Site {
    /// The same number for all members on its host.
    pub host: u64,
    /// All ranks of the job are there.
    pub is_only_host: bool,
}

/// What a member wants to open.
#[derive(Debug)]
pub struct Opening {
    /// What holds the file.
    pub storage: Arc<dyn Storage>,
    /// Its name.
    pub path: PathBuf,
    /// How.
    pub mode: Mode,
    /// What the program says of it.
    pub hints: Hints,
    /// Where this member is.
    pub site: Site,
}

/// Bytes of what a member says when a file is opened: how that went, its mode, its host, and how others reach its word.
const SAID: usize = 32 + KEY + 2;

/// Returns an error as words of a message; zeros for none.
fn error_words(error: Option<&Error>) -> [u64; 2] {
    let Some(error) = error else { return [0, 0] };
    let errno = error.errno().map_or(0, Errno::raw_os_error);
    [error.kind() as u64 + 1, errno as u64]
}

/// Returns the error that a member has said.
fn error_of(said: &[u8], member: usize) -> Option<Error> {
    let (kind, errno) = (word(said, 0), word(said, 1));
    let errno = i32::try_from(errno).ok().filter(|errno| *errno > 0);
    (kind > 0).then(|| Error::Elsewhere {
        member,
        kind: Kind::of_number(kind - 1),
        errno: errno.map(Errno::from_raw_os_error),
    })
}

/// Returns an error where a member has one, its own one where this member has, or where a value differs from that of member 0.
///
/// # Errors
/// These; when a member fails.
pub(crate) fn agree<T>(
    team: &Team,
    own: Result<T>,
    (value, what): (u64, &'static str),
) -> Result<T> {
    if team.size() == 1 {
        return own;
    }
    let [kind, errno] = error_words(own.as_ref().err());
    let mut all = vec![0; 24 * team.size()];
    team.allgather(&words([kind, errno, value]), &mut all)?;
    let own = own?;
    let mut said = all.chunks_exact(24).enumerate();
    let found = said.find_map(|(member, said)| match error_of(said, member) {
        None if word(said, 2) != word(&all, 2) => Some(Error::NotSame { member, what }),
        error => error,
    });
    found.map_or(Ok(own), Err)
}

impl File {
    /// Opens a file, with all other members of a group that is for this file alone. `wanted` is what this member wants, or what is
    /// wrong with its arguments: then no member opens the file.
    ///
    /// # Errors
    /// What is wrong with the arguments of a member; what the system says to one; when a member fails.
    pub fn open(team: Team, wanted: Result<Opening>) -> Result<Self> {
        let wanted = wanted.and_then(|wanted| wanted.mode.check().map(|()| wanted));
        let is_first = team.me() == 0;
        let is_exclusive = |mode: Mode| mode.contains(Mode::EXCLUSIVE);
        let mut created = Created::default();
        // Of a file that must be new, the first makes it, and the others open it then.
        let opened = wanted.and_then(|wanted| {
            let waits = is_exclusive(wanted.mode) && !is_first;
            let handle = match waits {
                true => None,
                false => Some(wanted.open(wanted.mode)?),
            };
            if !waits && is_exclusive(wanted.mode) && wanted.mode.contains(Mode::CREATE) {
                created = Created::new(&wanted);
            }
            Ok((wanted, handle))
        });
        let has_word = is_first && team.size() > 1;
        let opened = opened.and_then(|(wanted, handle)| match has_word {
            true => {
                let (made, way) = Made::new(&team, wanted.site.is_only_host)?;
                Ok((wanted, handle, made, way))
            }
            false => Ok((wanted, handle, Made::default(), Way::Nowhere)),
        });
        let all = said_by_all(&team, &opened)?;
        let (wanted, handle, made, _) = opened?;
        for (member, said) in all.chunks_exact(SAID).enumerate() {
            if let Some(error) = error_of(said, member) {
                return Err(error);
            }
            if word(said, 2) != word(&all, 2) {
                let what = "mode";
                return Err(Error::NotSame { member, what });
            }
        }
        let mode = wanted.mode;
        let handle = match (is_exclusive(mode), handle) {
            (false, Some(handle)) => handle,
            (_, handle) => {
                let existing = mode.without(Mode::EXCLUSIVE).without(Mode::CREATE);
                let handle = handle.map_or_else(|| wanted.open(existing), Ok);
                agree(&team, handle, (0, "call"))?
            }
        };
        let hosts = all.chunks_exact(SAID).map(|said| word(said, 3)).collect();
        let way = Way::decode(&all[32..SAID]);
        let pointer = match (team.size(), way) {
            (1, _) => SharedPointer::own(),
            // One member may fail to reach the word alone.
            (_, way @ Way::Reach(_)) => {
                agree(&team, SharedPointer::new(&team, made, way), (0, "call"))?
            }
            (_, way) => SharedPointer::new(&team, made, way)?,
        };
        created.keep();
        Ok(Self::new(team, wanted, handle, (hosts, pointer)))
    }
}

/// A file that member 0 has made for all, which is removed where they do not all open it.
#[derive(Default)]
struct Created(Option<(Arc<dyn Storage>, PathBuf)>);

impl Created {
    fn new(wanted: &Opening) -> Self {
        Self(Some((Arc::clone(&wanted.storage), wanted.path.clone())))
    }

    /// Has the file stay.
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Created {
    fn drop(&mut self) {
        if let Some((storage, path)) = self.0.take() {
            // The error of the call is why it is not open; that the name stays is less.
            let _ = storage.remove(&path);
        }
    }
}

/// What a member has when it tells the others: what it wants, the open file, and the word of the shared pointer.
type Opened = Result<(Opening, Option<Box<dyn Handle>>, Made, Way)>;

/// Tells all members how opening went here. Returns what all have said.
fn said_by_all(team: &Team, opened: &Opened) -> Result<Vec<u8>> {
    let [kind, errno] = error_words(opened.as_ref().err());
    let (mode, host, way) = match opened {
        Ok((wanted, _, _, way)) => (wanted.mode.bits(), wanted.site.host, way.encode()),
        Err(_) => (0, 0, Way::Nowhere.encode()),
    };
    let mut own = words([kind, errno, u64::from(mode), host]);
    own.extend(way);
    if team.size() == 1 {
        return Ok(own);
    }
    let mut all = vec![0; SAID * team.size()];
    team.allgather(&own, &mut all)?;
    Ok(all)
}

impl Opening {
    fn open(&self, mode: Mode) -> Result<Box<dyn Handle>> {
        loop {
            match self.storage.open(&self.path, mode, self.hints.permissions) {
                Err(Errno::INTR) => {}
                opened => return opened.map_err(|errno| Error::system("open", &self.path, errno)),
            }
        }
    }
}
