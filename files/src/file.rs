//! Open files.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tagwire_coll::Team;

use crate::code::{word, words};
use crate::hints::{Hints, Switch};
use crate::open::{Opening, agree};
use crate::plan::Summary;
use crate::pointer::SharedPointer;
use crate::storage::{Handle, LockKind, Storage};
use crate::transfer::Calls;
use crate::two_phase::TwoPhase;
use crate::two_phase::common::Common;
use crate::{Access, Data, Errno, Error, Mode, Outcome, Plan, Result, Room, View, direct};

/// Bytes of zeros that are written at once where a file system cannot allocate.
const ZEROS: usize = 1 << 20;

/// A file that a group has opened.
///
/// Calls whose names end in `_all`, and those that say so, are of all members, in the same order. The others are of one member, from
/// any thread. Buffers are read and written until a call returns.
#[derive(Debug)]
pub struct File {
    team: Team,
    storage: Arc<dyn Storage>,
    path: PathBuf,
    /// What is removed when the file is closed.
    removed: Option<PathBuf>,
    mode: Mode,
    handle: Box<dyn Handle>,
    hints: Mutex<Hints>,
    hosts: Box<[u64]>,
    pointer: SharedPointer,
    is_atomic: AtomicBool,
    /// Held by the thread that has a lock of the file: locks keep out other open files alone.
    turn: Mutex<()>,
    /// Through which data of collective writes goes: found at the first that needs it.
    common: OnceLock<Option<Common>>,
}

/// Words of what a member says of a collective access: its summary, and the hints of which those of member 0 hold.
const SUMMARY: usize = 10;

impl File {
    pub(crate) fn new(
        team: Team,
        wanted: Opening,
        handle: Box<dyn Handle>,
        (hosts, pointer): (Box<[u64]>, SharedPointer),
    ) -> Self {
        let removes = wanted.mode.contains(Mode::DELETE_ON_CLOSE);
        Self {
            team,
            removed: removes.then(|| wanted.storage.lasting(&wanted.path)),
            storage: wanted.storage,
            path: wanted.path,
            mode: wanted.mode,
            handle,
            hints: Mutex::new(wanted.hints),
            hosts,
            pointer,
            is_atomic: AtomicBool::new(false),
            turn: Mutex::new(()),
            common: OnceLock::new(),
        }
    }

    /// Returns how it was opened.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns its name.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the group that has opened it.
    #[must_use]
    pub const fn team(&self) -> &Team {
        &self.team
    }

    /// Returns the hints that are in use.
    #[must_use]
    pub fn hints(&self) -> Hints {
        self.held_hints().clone()
    }

    /// Changes the hints. Those of a collective access are of member 0, and its own switches of each member.
    pub fn change_hints(&self, change: impl FnOnce(&mut Hints)) {
        change(&mut self.held_hints());
    }

    fn held_hints(&self) -> MutexGuard<'_, Hints> {
        self.hints.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn calls(&self) -> Calls<'_> {
        let (handle, path) = (&*self.handle, &*self.path);
        Calls { handle, path }
    }

    /// Returns how many bytes it has.
    ///
    /// # Errors
    /// What the system says.
    pub fn size(&self) -> Result<u64> {
        self.calls().repeat("fstat", |handle| handle.size())
    }

    /// Gives it so many bytes, with all other members (MPI-5.0, section 14.2.4). `size` is how many, or what is wrong with the arguments
    /// of this one.
    ///
    /// # Errors
    /// Where members want different sizes, or the file is only read; what the system says; when a member fails.
    pub fn set_size(&self, size: Result<u64>) -> Result<()> {
        self.resize(size, |calls, size| {
            calls.repeat("ftruncate", |handle| handle.set_size(size))
        })
    }

    /// Has storage for its first so many bytes, with all other members (MPI-5.0, section 14.2.5). It has as many then, or more.
    ///
    /// # Errors
    /// As [`set_size`](Self::set_size).
    pub fn preallocate(&self, size: Result<u64>) -> Result<()> {
        self.resize(size, |calls, size| {
            if size == 0 {
                return Ok(());
            }
            match calls.repeat("fallocate", |handle| handle.allocate(size)) {
                Err(Error::System { errno, .. }) if errno == Errno::OPNOTSUPP => fill(calls, size),
                other => other,
            }
        })
    }

    /// Has member 0 change the size, which all want.
    fn resize(
        &self,
        size: Result<u64>,
        change: impl FnOnce(Calls<'_>, u64) -> Result<()>,
    ) -> Result<()> {
        let size = size.and_then(|size| self.check_writable().map(|()| size));
        let value = *size.as_ref().unwrap_or(&0);
        let size = agree(&self.team, size, (value, "size"))?;
        let changed = match self.team.me() {
            0 => change(self.calls(), size),
            _ => Ok(()),
        };
        agree(&self.team, changed, (0, "size"))
    }

    const fn check_writable(&self) -> Result<()> {
        match self.mode.writes() {
            true => Ok(()),
            false => Err(Error::NotWritable),
        }
    }

    /// Returns when what all members have written is on the storage, and each reads what the others had written before the call
    /// (MPI-5.0, section 14.6.1).
    ///
    /// # Errors
    /// On all members, where what one has written could not be stored; when a member fails.
    pub fn sync(&self) -> Result<()> {
        let synced = match self.mode.writes() {
            true => self.calls().repeat("fdatasync", |handle| handle.sync()),
            false => Ok(()),
        };
        agree(&self.team, synced, (0, "call"))
    }

    /// Says whether accesses are atomic, with all other members (MPI-5.0, section 14.6.1): then each locks the part of the file from
    /// its first byte to its last.
    ///
    /// # Errors
    /// [`Error::NoLocks`]; where members say different things; when a member fails.
    pub fn set_atomic(&self, is_atomic: bool) -> Result<()> {
        let kind = match self.mode.reads() {
            true => LockKind::Read,
            false => LockKind::Write,
        };
        let can = match is_atomic {
            true => self
                .locked(0..1, kind, || ())
                .and_then(|((), unlocked)| unlocked),
            false => Ok(()),
        };
        agree(&self.team, can, (u64::from(is_atomic), "mode of atomicity"))?;
        self.is_atomic.store(is_atomic, SeqCst);
        Ok(())
    }

    /// Returns whether accesses are atomic.
    #[must_use]
    pub fn is_atomic(&self) -> bool {
        self.is_atomic.load(Relaxed)
    }

    /// Ends the use of the file, with all other members. It is closed when it is dropped.
    ///
    /// What was written is not put on the storage, unless the hint `tagwire_sync_on_close` asks for it: call [`sync`](Self::sync).
    ///
    /// # Errors
    /// What the file system has kept back until now (close(2)), and where it cannot be removed; when a member fails, or has failed
    /// before.
    pub fn close(&self) -> Result<()> {
        let syncs = self.hints().syncs_on_close && self.mode.writes();
        let synced = match syncs {
            true => self.calls().repeat("fdatasync", |handle| handle.sync()),
            false => Ok(()),
        };
        let flushed = self.calls().repeat("close", |handle| handle.flush());
        let ended = agree(&self.team, synced.and(flushed), (0, "call"));
        let Some(name) = &self.removed else {
            return ended;
        };
        // All members are in the call: none uses the name any more.
        let removed = match self.team.me() {
            0 => self
                .storage
                .remove(name)
                .map_err(|errno| Error::system("unlink", name, errno)),
            _ => Ok(()),
        };
        agree(&self.team, ended.and(removed), (0, "call"))
    }

    /// Returns the shared file pointer, in etypes of the view.
    ///
    /// # Errors
    /// When it cannot be reached: the member that has it is gone.
    pub fn shared_position(&self) -> Result<u64> {
        self.pointer.add(&self.team, 0)
    }

    /// Moves the shared file pointer on by so many etypes. Returns where it was.
    ///
    /// # Errors
    /// As [`shared_position`](Self::shared_position).
    pub fn advance_shared(&self, units: u64) -> Result<u64> {
        self.pointer.add(&self.team, units)
    }

    /// Moves the shared file pointer on for all members, in their order (MPI-5.0, section 14.4.4). Returns where the part of this one
    /// begins.
    ///
    /// # Errors
    /// As [`shared_position`](Self::shared_position), on all members; when a member fails.
    pub fn advance_ordered(&self, units: u64) -> Result<u64> {
        let size = self.team.size();
        let mut all = vec![0; 8 * size];
        self.team.allgather(&words([units]), &mut all)?;
        let sum = |members: Range<usize>| {
            let units = members.map(|member| word(&all, member));
            units.fold(0, u64::wrapping_add)
        };
        let moved = match self.team.me() {
            0 => Some(self.pointer.add(&self.team, sum(0..size))),
            _ => None,
        };
        let mut told = match &moved {
            Some(Ok(start)) => words([1, *start]),
            _ => words([0, 0]),
        };
        self.team.broadcast(&mut told, 0)?;
        if let Some(Err(error)) = moved {
            return Err(error);
        }
        match word(&told, 0) {
            1 => Ok(word(&told, 1).wrapping_add(sum(0..self.team.me()))),
            _ => Err(Error::Elsewhere {
                member: 0,
                kind: crate::Kind::Peer,
                errno: None,
            }),
        }
    }

    /// Puts the shared file pointer at the end of the file, with all other members, while the view is that of bytes. Returns where that is.
    ///
    /// # Errors
    /// As [`shared_position`](Self::shared_position), on all members; when a member fails.
    pub fn begin_at_end(&self) -> Result<u64> {
        let set = match self.team.me() {
            0 => self.size().and_then(|size| {
                self.pointer.set(&self.team, size)?;
                Ok(size)
            }),
            _ => Ok(0),
        };
        let size = agree(&self.team, set, (0, "call"))?;
        let mut told = words([size]);
        self.team.broadcast(&mut told, 0)?;
        Ok(word(&told, 0))
    }

    /// Sets the shared file pointer, with all other members. `position` is where, or what is wrong with the arguments.
    ///
    /// # Errors
    /// What is wrong with the arguments of a member, and where they differ; when it cannot be reached, or a member fails.
    pub fn set_shared_position(&self, position: Result<u64>) -> Result<()> {
        let value = *position.as_ref().unwrap_or(&0);
        let position = agree(&self.team, position, (value, "position"))?;
        let set = match self.team.me() {
            0 => self.pointer.set(&self.team, position),
            _ => Ok(()),
        };
        agree(&self.team, set, (0, "position"))
    }

    /// Checks that all members go on, and give the same value.
    ///
    /// # Errors
    /// `own` where this member has an error; that of the first other; [`Error::NotSame`]; when a member fails.
    pub fn agree<T>(&self, own: Result<T>, value: u64, what: &'static str) -> Result<T> {
        agree(&self.team, own, (value, what))
    }

    /// Checks that the file can have a view.
    ///
    /// # Errors
    /// [`Error::Filetype`] where it overlaps itself, and the file may be written (MPI-5.0, section 14.3).
    pub const fn check_view(&self, view: &View) -> Result<()> {
        match view.overlaps() && self.mode.writes() {
            false => Ok(()),
            true => Err(Error::Filetype(
                "the filetype of the view overlaps itself: it is only to be read",
            )),
        }
    }

    /// Checks that all members go on with a new view: the shared file pointer is at its beginning then.
    ///
    /// # Errors
    /// As [`agree`](Self::agree).
    pub fn agree_on_view<T>(&self, own: Result<T>, value: u64, what: &'static str) -> Result<T> {
        let own = agree(&self.team, own, (value, what))?;
        self.pointer.restart(&self.team)?;
        Ok(own)
    }
}

/// What all members have told of a collective access.
struct Gathered {
    plan: Plan,
    members: Vec<Summary>,
    /// Those that hold for all.
    hints: Hints,
}

/// Accesses.
impl File {
    /// Writes the data.
    pub fn write(&self, access: Access<'_>, data: &Data<'_>) -> Outcome {
        if let Err(error) = self.check_write(access, data.len()) {
            return error.into();
        }
        self.in_turn(access, data.len(), LockKind::Write, || {
            direct::write(self.calls(), access, data)
        })
    }

    /// Reads into the room. At the end of the file there are fewer bytes than were asked for.
    pub fn read(&self, access: Access<'_>, room: &mut Room<'_>) -> Outcome {
        let summary = match self.check_read(access, room.len()) {
            Ok(summary) => summary,
            Err(error) => return error.into(),
        };
        let (plan, window) = {
            let hints = self.held_hints();
            let is_ordered = access.is_ordered(room.len());
            (Plan::of_read(&summary, &hints, is_ordered), hints.window)
        };
        self.in_turn(access, room.len(), LockKind::Read, || match plan {
            Plan::Sieve => direct::sieve(self.calls(), access, room, window),
            _ => direct::read(self.calls(), access, room),
        })
    }

    /// Writes the data of all members.
    pub fn write_all(&self, access: Access<'_>, data: &Data<'_>) -> Outcome {
        if self.is_alone() {
            return self.write(access, data);
        }
        let own = self.check_write(access, data.len());
        let own = own.and_then(|()| Summary::of(access, data.len()));
        let all = match self.gathered(&own, |hints| hints.two_phase_writes, Plan::of_writes) {
            Ok(all) => all,
            Err(error) => return error.into(),
        };
        if all.plan != Plan::TwoPhase {
            return own.map_or_else(Into::into, |_| self.write(access, data));
        }
        let none = Data::Bytes(&[]);
        let data = if own.is_ok() { data } else { &none };
        let access = self.two_phase(access, data.len(), &all);
        let common = match self.common(&access, all.hints.buffer) {
            Ok(common) => common,
            Err(error) => return error.into(),
        };
        let outcome = access.through(common).write(data);
        match own {
            Ok(_) => outcome,
            Err(error) => self.lost(error, outcome),
        }
    }

    /// Returns the memory of all members for windows of so many bytes. They make it for the first access that has several: it costs a
    /// file that is written little more than it gains. `None` where there is none.
    ///
    /// # Errors
    /// When a member fails.
    fn common(&self, access: &TwoPhase<'_>, window: u64) -> Result<Option<&Common>> {
        if let Some(made) = self.common.get() {
            return Ok(made.as_ref());
        }
        if !self.pointer.is_mapped() || !access.has_rounds() {
            return Ok(None);
        }
        let made = Common::new(&self.team, window)?;
        Ok(self.common.get_or_init(|| made).as_ref())
    }

    /// Reads for all members.
    pub fn read_all(&self, access: Access<'_>, room: &mut Room<'_>) -> Outcome {
        if self.is_alone() {
            return self.read(access, room);
        }
        let own = self.check_read(access, room.len());
        let all = match self.gathered(&own, |hints| hints.two_phase_reads, Plan::of_reads) {
            Ok(all) => all,
            Err(error) => return error.into(),
        };
        match (all.plan, own) {
            (Plan::TwoPhase, Ok(_)) => self.two_phase(access, room.len(), &all).read(room),
            (Plan::TwoPhase, Err(error)) => {
                let mut none = Room::Bytes(&mut []);
                self.lost(error, self.two_phase(access, 0, &all).read(&mut none))
            }
            (_, Ok(_)) => self.read(access, room),
            (_, Err(error)) => error.into(),
        }
    }

    /// Returns how the access of a member ended whose arguments are wrong, and which has taken part with nothing.
    fn lost(&self, error: Error, others: Outcome) -> Outcome {
        match others.error {
            // The group is broken: that is worse.
            Some(broken @ Error::Team(_)) => broken.into(),
            _ => error.into(),
        }
    }

    fn two_phase<'f>(&'f self, access: Access<'f>, len: u64, all: &'f Gathered) -> TwoPhase<'f> {
        let among = (&all.members[..], &*self.hosts);
        TwoPhase::new((&self.team, self.calls()), (access, len), among, &all.hints)
    }

    /// Returns whether collective accesses are those of one member: others have no part in them.
    fn is_alone(&self) -> bool {
        self.team.size() == 1 || self.is_atomic()
    }

    /// Has all members tell what they access. A member whose arguments are wrong takes part with nothing.
    fn gathered(
        &self,
        own: &Result<Summary>,
        switch: impl Fn(&Hints) -> Switch,
        plan: impl Fn(&[Summary]) -> Plan,
    ) -> Result<Gathered> {
        let hints = self.hints();
        let nothing = Summary {
            is_free: true,
            ..Summary::default()
        };
        let summary = *own.as_ref().unwrap_or(&nothing);
        let summary = summary.with(switch(&hints));
        let own_words = words::<SUMMARY>([
            summary.bytes,
            summary.first,
            summary.end,
            summary.runs,
            u64::from(summary.is_free),
            u64::from(summary.wants_two_phase),
            hints.buffer,
            hints.unit.unwrap_or(0),
            hints.aggregators.map_or(0, |most| most as u64),
            hints.per_host as u64,
        ]);
        let mut all = vec![0; own_words.len() * self.team.size()];
        self.team.allgather(&own_words, &mut all)?;
        let members: Vec<Summary> = all.chunks_exact(8 * SUMMARY).map(summary_of).collect();
        Ok(Gathered {
            plan: plan(&members),
            members,
            hints: Hints {
                buffer: word(&all, 6),
                unit: Some(word(&all, 7)).filter(|unit| *unit > 0),
                aggregators: Some(word(&all, 8) as usize).filter(|most| *most > 0),
                per_host: (word(&all, 9) as usize).max(1),
                ..hints
            },
        })
    }

    /// Checks what a write needs, which takes part in nothing then.
    fn check_write(&self, access: Access<'_>, len: u64) -> Result<()> {
        self.check_writable()?;
        if len > 0 && access.view.overlaps_in(access.position, len) {
            let text = "the access has a byte of the file twice: it is only to be read";
            return Err(Error::Filetype(text));
        }
        access.extents(0, len).map(drop)
    }

    /// The same of a read. Returns what it is like.
    fn check_read(&self, access: Access<'_>, len: u64) -> Result<Summary> {
        match self.mode.reads() {
            true => Summary::of(access, len),
            false => Err(Error::NotReadable),
        }
    }

    /// Makes an access, in atomic mode under a lock of the part of the file that it is of.
    fn in_turn(
        &self,
        access: Access<'_>,
        len: u64,
        kind: LockKind,
        body: impl FnOnce() -> Outcome,
    ) -> Outcome {
        if !self.is_atomic() || len == 0 {
            return body();
        }
        let bytes = match Summary::of(access, len) {
            Ok(summary) if access.is_ordered(len) => summary.first..summary.end,
            Ok(_) => 0..i64::MAX as u64,
            Err(error) => return error.into(),
        };
        match self.locked(bytes, kind, body) {
            // What is done is done, though the lock could not be given back.
            Ok((outcome, unlocked)) => Outcome {
                error: outcome.error.or_else(|| unlocked.err()),
                ..outcome
            },
            Err(error) => error.into(),
        }
    }

    /// Calls `body` under a lock. Returns what it returns, and whether the lock was given back.
    fn locked<T>(
        &self,
        bytes: Range<u64>,
        kind: LockKind,
        body: impl FnOnce() -> T,
    ) -> Result<(T, Result<()>)> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let calls = self.calls();
        let locked = calls.repeat("fcntl", |handle| handle.lock(bytes.clone(), kind));
        locked.map_err(|error| self.no_locks(error))?;
        let done = body();
        let unlocked = calls.repeat("fcntl", |handle| handle.unlock(bytes.clone()));
        Ok((done, unlocked))
    }

    /// Returns the error of a lock, which says more where there are none.
    fn no_locks(&self, error: Error) -> Error {
        const NONE: [Errno; 4] = [Errno::NOLCK, Errno::NOSYS, Errno::OPNOTSUPP, Errno::INVAL];
        match error.errno().filter(|errno| NONE.contains(errno)) {
            Some(errno) => Error::NoLocks {
                path: self.path.clone(),
                errno,
            },
            None => error,
        }
    }
}

/// Returns the summary that a member has told.
fn summary_of(said: &[u8]) -> Summary {
    Summary {
        bytes: word(said, 0),
        first: word(said, 1),
        end: word(said, 2).max(word(said, 1)),
        runs: word(said, 3),
        is_free: word(said, 4) == 1,
        wants_two_phase: word(said, 5) == 1,
    }
}

/// Writes zeros behind the end of a file, up to a size.
fn fill(calls: Calls<'_>, size: u64) -> Result<()> {
    let mut end = calls.repeat("fstat", |handle| handle.size())?;
    let zeros = vec![0; ZEROS];
    while end < size {
        let part = (ZEROS as u64).min(size - end);
        calls.write(end, &zeros[..part as usize]).into_result()?;
        end += part;
    }
    Ok(())
}
