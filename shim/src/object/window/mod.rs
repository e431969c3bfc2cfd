//! Windows by handle (MPI-5.0, chapter 12).
//!
//! ```text
//!     Window      what it is to its program: group, attributes, name, info, error handler
//!       epochs    which calls may follow which, without anything of other processes
//!       members   how this process reaches each member
//!         block   its control block: words
//!         data    its memory: mapped, remote, or what it attaches
//!       accesses  what is under way to memory that is not mapped, and what is gathered for it
//!       locks     taking turns, by words of a control block
//!       meeting   meeting all members, by such words
//!       waits     waiting for words, and waking who does
//!       shortcuts which windows the first thread finds without a lock
//! ```
//!
//! On one host nobody has to serve: who accesses memory does it by itself. Mapped memory is read and written in place, and changed by
//! instructions or under a lock. Short accesses to other memory of the host are left to its owner while that waits (`served`). All
//! other memory is reached by the rank's remote memory access, where its owner has the
//! transport's help or serves it in its progress; accumulates into it are done by its owner (`delegated`).

pub(crate) mod accesses;
pub(crate) mod atomics;
pub(crate) mod attached;
pub(crate) mod block;
pub(crate) mod delegated;
pub(crate) mod delegation;
pub(crate) mod elsewhere;
pub(crate) mod epochs;
pub(crate) mod exchange;
pub(crate) mod hints;
mod locks;
pub(crate) mod make;
pub(crate) mod meeting;
pub(crate) mod memory;
mod run;
pub(crate) mod served;
pub(crate) mod shortcuts;
pub(crate) mod waits;

use std::fmt;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64};
use std::sync::{Arc, MutexGuard, OnceLock};

use tagwire_base::Rank;
use tagwire_coll::Team;
use tagwire_pml::{Messenger, Region};
use tagwire_transport::{BoardWaker, PeerAllocations};

use crate::abi::{PROC_NULL, Session, Win};
use crate::error::{Class, Error, Result};
use crate::lock::Lock;
use crate::object::attributes::Attributes;
use crate::object::errhandler::Handler;
use crate::object::group::Ranks;
use crate::object::info::Entries;
use crate::object::window::accesses::{Accesses, Parts};
use crate::object::window::attached::Attached;
use crate::object::window::block::{Block, Mapping};
use crate::object::window::delegation::Delegated;
use crate::object::window::epochs::Epochs;
use crate::object::window::exchange::{Asker, Serving};
use crate::object::window::run::Gathered;
use crate::raw::{Out, Pointer};

/// How a window was made: the values of `MPI_WIN_CREATE_FLAVOR`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavor {
    Create = 311,
    Allocate = 312,
    Dynamic = 313,
    Shared = 314,
}

/// `MPI_WIN_UNIFIED`.
const UNIFIED: i32 = 321;

/// Keys of attributes that windows have (MPI-5.0, section 12.2.6).
pub(crate) mod key {
    pub(crate) const BASE: i32 = 601;
    pub(crate) const DISP_UNIT: i32 = 602;
    pub(crate) const SIZE: i32 = 603;
    pub(crate) const CREATE_FLAVOR: i32 = 604;
    pub(crate) const MODEL: i32 = 605;
}

/// The memory of a member, as this process reaches it.
#[derive(Debug)]
pub(crate) enum Data {
    /// At an address of this process.
    Mapped(Out),
    Remote(Parts),
    /// What it has attached; of this process itself too.
    Attached,
    /// None.
    Empty,
}

/// A member of a window.
pub(crate) struct Member {
    pub(crate) rank: Rank,
    pub(crate) block: Block,
    pub(crate) data: Data,
    /// Bytes of its memory.
    pub(crate) size: u64,
    /// Bytes of a displacement.
    pub(crate) unit: i64,
    /// Wakes it, where it waits on this host.
    waker: Option<Arc<dyn BoardWaker>>,
    /// What the open epoch allows, of mapped memory.
    open: AtomicU8,
    /// Where mapped memory begins.
    start: Out,
    /// Keeps memory that the member has allocated before.
    _allocations: Option<Arc<dyn PeerAllocations>>,
    /// How many accesses to it this process has started: as many exposures of it have been used.
    pub(crate) starts: Count,
    /// How often this process is exposed to it: as many completions of it end that.
    pub(crate) posts: Count,
    /// What this process has asked of it.
    asker: Lock<Asker>,
}

/// A number that one thread of this process changes at a time: two that synchronize a window at once are an error of the program.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    /// Adds 1. Returns the sum.
    pub(crate) fn next(&self) -> u64 {
        let next = self.get() + 1;
        self.0.store(next, Relaxed);
        next
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// What accesses an epoch allows of mapped memory: what fast paths look at, in place of the epochs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Open {
    None = 0,
    Access = 1,
    /// The same, and calls that complete accesses: of locks.
    Passive = 2,
}

impl Member {
    fn open(&self, kind: Open) {
        if matches!(self.data, Data::Mapped(_)) {
            self.open.store(kind as u8, Relaxed);
        }
    }

    /// Returns whether it is locked, and its memory mapped: then all accesses have ended when they return.
    #[inline(always)]
    pub(crate) fn is_locked_here(&self) -> bool {
        self.open.load(Relaxed) & Open::Passive as u8 != 0
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member")
            .field("rank", &self.rank)
            .field("data", &self.data)
            .finish_non_exhaustive()
    }
}

/// The values of predefined attributes, at addresses that stay.
#[derive(Debug)]
struct Values {
    base: Pointer,
    size: i64,
    unit: i32,
    flavor: i32,
    model: i32,
}

/// A group, with the members of a window that it names.
type NamedGroup = (Arc<Ranks>, Arc<[usize]>);

/// A window.
#[derive(Debug)]
pub(crate) struct Window {
    handle: Win,
    flavor: Flavor,
    pub(crate) team: Team,
    session: Session,
    messenger: Arc<Messenger>,
    members: Box<[Member]>,
    /// The blocks of all members are mapped.
    maps_all: bool,
    /// How many meetings of all members this process has begun.
    meetings: Count,
    epochs: Lock<Epochs>,
    /// What the open epoch allows, where it is the same of all members.
    open: AtomicU8,
    /// The last group that a call has named, with the members that it names.
    last_group: Lock<Option<NamedGroup>>,
    /// A fast path has accessed something since the epochs were last looked at.
    is_accessed: AtomicBool,
    attached: Attached,
    accesses: Accesses,
    /// Calls of synchronization, in a byte. Every 256th makes progress: programs that wait for a value of a window call nothing else.
    calls: AtomicU8,
    values: Box<Values>,
    attributes: Attributes,
    name: Lock<String>,
    errhandler: Lock<Handler>,
    hints: Lock<Entries>,
    /// What others reach by remote memory access.
    regions: Lock<Vec<Region>>,
    /// Others of this host reach the memory of this process by calls of the system: they may ask for short accesses.
    is_asked: bool,
    serving: Lock<Option<Serving>>,
    /// Short data that is not under way yet.
    gathered: Gathered,
    /// What members on other hosts do for this process, and it for them.
    pub(super) delegated: Delegated,
    /// The code and the text of what has broken it: a member that has failed.
    lost: OnceLock<(i32, String)>,
    /// Memory of this process that was allocated for the window.
    allocated: Lock<Option<Pointer>>,
    /// What holds the blocks, and the memory, of members.
    _mapping: Arc<Mapping>,
}

impl Window {
    pub(crate) const fn flavor(&self) -> Flavor {
        self.flavor
    }

    pub(crate) const fn handle(&self) -> Win {
        self.handle
    }

    /// Returns where its memory begins at this process.
    pub(crate) const fn base(&self) -> Pointer {
        self.values.base
    }

    pub(crate) const fn session(&self) -> Session {
        self.session
    }

    pub(crate) fn messenger(&self) -> &Messenger {
        &self.messenger
    }

    #[inline]
    pub(crate) const fn members(&self) -> &[Member] {
        &self.members
    }

    pub(crate) const fn me(&self) -> usize {
        self.team.me()
    }

    /// Looks at the epochs, which know of all accesses.
    pub(crate) fn epochs(&self) -> MutexGuard<'_, Epochs> {
        let mut epochs = self.epochs.lock();
        if self.is_accessed.load(Relaxed) {
            self.is_accessed.store(false, Relaxed);
            epochs.note_access();
        }
        epochs
    }

    /// Returns the last group that a call has named.
    pub(crate) fn last_group(&self) -> MutexGuard<'_, Option<NamedGroup>> {
        self.last_group.lock()
    }

    /// Says that the open epoch allows accesses to all members, of a kind, or to none.
    pub(crate) fn open_all(&self, kind: Open) {
        if self.open.load(Relaxed) != kind as u8 {
            self.open.store(kind as u8, Relaxed);
            for member in &self.members {
                member.open(kind);
            }
        }
    }

    /// Says the same of a member, while nothing is said of all.
    pub(crate) fn open_one(&self, member: usize, kind: Open) {
        debug_assert_eq!(self.open.load(Relaxed), Open::None as u8);
        self.members[member].open(kind);
    }

    /// Returns the accesses to memory that is not mapped.
    pub(crate) const fn accesses(&self) -> &Accesses {
        &self.accesses
    }

    pub(crate) const fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    pub(crate) fn name(&self) -> MutexGuard<'_, String> {
        self.name.lock()
    }

    pub(crate) fn hints(&self) -> MutexGuard<'_, Entries> {
        self.hints.lock()
    }

    pub(crate) fn errhandler(&self) -> Handler {
        self.errhandler.lock().clone()
    }

    pub(crate) fn set_errhandler(&self, handler: Handler) {
        *self.errhandler.lock() = handler;
    }

    /// Returns the member that a call names; `None` for `MPI_PROC_NULL`.
    ///
    /// # Errors
    /// `MPI_ERR_RANK` where there is none.
    #[inline]
    pub(crate) fn member(&self, rank: i32) -> Result<Option<usize>> {
        match usize::try_from(rank) {
            Ok(member) if member < self.members.len() => Ok(Some(member)),
            _ if rank == PROC_NULL => Ok(None),
            _ => Err(self.no_member(rank)),
        }
    }

    #[cold]
    fn no_member(&self, rank: i32) -> Error {
        let text = format!(
            "there is no rank {rank} in a window of {}",
            self.members.len()
        );
        Error::new(Class::Rank, text)
    }

    /// Returns what it is called where it is described.
    pub(crate) fn called(&self) -> String {
        match &**self.name() {
            "" => format!("window {:#x}", self.handle.0),
            name => name.to_owned(),
        }
    }

    /// Returns the value of a predefined attribute: a pointer to it, but for the base, which is itself the pointer.
    pub(crate) fn predefined_attribute(&self, number: i32) -> Option<Pointer> {
        let values = &*self.values;
        let to = |value: *const i32| Pointer(value.cast_mut().cast());
        Some(match number {
            key::BASE => values.base,
            key::SIZE => Pointer((&raw const values.size).cast_mut().cast()),
            key::DISP_UNIT => to(&raw const values.unit),
            key::CREATE_FLAVOR => to(&raw const values.flavor),
            key::MODEL => to(&raw const values.model),
            _ => return None,
        })
    }

    /// Lets nobody reach the memory of this process any more. Returns the memory that was allocated for the window.
    ///
    /// # Errors
    /// `MPI_ERR_INTERN` on a thread that may not call.
    pub(crate) fn withdraw(&self) -> Result<Option<Pointer>> {
        drop(self.serving.lock().take());
        self.delegated.close();
        let regions = std::mem::take(&mut *self.regions.lock());
        for region in regions.into_iter().chain(self.attached.take_regions()) {
            self.messenger.window().withdraw(region)?;
        }
        Ok(self.allocated.lock().take())
    }
}
