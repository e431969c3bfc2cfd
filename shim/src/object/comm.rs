//! Communicators by handle.

use std::ops::Deref;
use std::sync::{Arc, MutexGuard, OnceLock};

use tagwire_base::{ContextId, Rank, SourceSelector, Tag, TagSelector};
use tagwire_coll::{Members, Sides, Team};
use tagwire_pml as pml;

use crate::abi::{ANY_SOURCE, ANY_TAG, Comm, Session, Status};
use crate::error::{Class, Error, On, Result};
use crate::lock::Lock;
use crate::object::attributes::Attributes;
use crate::object::buffer::Slot;
use crate::object::errhandler::Handler;
use crate::object::info::Entries;
use crate::object::topology::Topology;

/// A communicator.
#[derive(Debug)]
pub(crate) struct Communicator {
    pub(crate) handle: Comm,
    /// All members; of an intercommunicator those of both groups.
    pub(crate) team: Arc<Team>,
    /// Those that messages go to and come from: all members, or the remote group.
    peers: Members,
    /// The session that it comes from; null in the world model.
    session: Session,
    errhandler: Lock<Handler>,
    name: Lock<String>,
    attributes: Attributes,
    topology: OnceLock<Arc<Topology>>,
    hints: Lock<Entries>,
    /// For buffered sends.
    buffer: Slot,
    /// Those as well, where their numbers are not those of the job's ranks.
    members: Option<Arc<Members>>,
}

/// A communicator that a call has looked up.
#[derive(Debug)]
pub(crate) enum CommRef<'p> {
    Predefined(&'p Arc<Communicator>),
    Made(Arc<Communicator>),
}

impl Deref for CommRef<'_> {
    type Target = Arc<Communicator>;

    #[inline]
    fn deref(&self) -> &Arc<Communicator> {
        match self {
            CommRef::Predefined(comm) => comm,
            CommRef::Made(comm) => comm,
        }
    }
}

impl Communicator {
    pub(crate) fn new(
        handle: Comm,
        team: Arc<Team>,
        (errhandler, session): (Handler, Session),
        name: &str,
    ) -> Self {
        let peers = match team.sides() {
            None => team.members().clone(),
            Some(sides) => team.members().part(sides.remote()),
        };
        let ranks = (0..peers.len()).map(|member| peers.rank(member));
        let is_identity = ranks
            .enumerate()
            .all(|(number, rank)| rank == Some(Rank::new(number as u32)));
        Self {
            handle,
            errhandler: Lock::new(errhandler),
            name: Lock::new(name.to_owned()),
            attributes: Attributes::new(),
            session,
            topology: OnceLock::new(),
            hints: Lock::default(),
            buffer: Slot::default(),
            members: (!is_identity).then(|| Arc::new(peers.clone())),
            peers,
            team,
        }
    }

    /// Returns what a duplicate is once its group has been made, which was asked for by its handle before.
    pub(crate) fn with_team(&self, team: Arc<Team>) -> Self {
        let name = self.name().clone();
        let mut made = Self::new(self.handle, team, (self.errhandler(), self.session), &name);
        made.attributes = self.attributes.take();
        made.buffer = self.buffer.moved();
        *made.hints() = self.hints().clone();
        if let Some(topology) = self.topology() {
            made.set_topology(Arc::clone(topology));
        }
        made
    }

    pub(crate) const fn session(&self) -> Session {
        self.session
    }

    /// Returns this process's rank in its group.
    pub(crate) fn rank(&self) -> i32 {
        let own = || self.team.me();
        self.sides().map_or_else(own, Sides::me) as i32
    }

    /// Returns how many there are in this process's group.
    pub(crate) fn size(&self) -> i32 {
        let local = self.sides().map(|sides| sides.local().len());
        local.unwrap_or_else(|| self.team.size()) as i32
    }

    /// Returns the two groups of an intercommunicator.
    #[inline]
    pub(crate) fn sides(&self) -> Option<&Sides> {
        self.team.sides()
    }

    /// Returns those that messages go to and come from: the members of the remote group, or of the only one.
    #[inline]
    pub(crate) const fn peers(&self) -> &Members {
        &self.peers
    }

    /// Returns the ranks in the job of this process's group.
    pub(crate) fn group(&self) -> Vec<Rank> {
        let members = self.team.members();
        let local = self.sides().map_or(0..members.len(), Sides::local);
        local.filter_map(|member| members.rank(member)).collect()
    }

    /// Returns those of the remote group of an intercommunicator.
    pub(crate) fn remote_group(&self) -> Option<Vec<Rank>> {
        let members = self.team.members();
        let remote = self.sides()?.remote();
        Some(remote.filter_map(|member| members.rank(member)).collect())
    }

    /// Refuses what there is for one group alone.
    ///
    /// # Errors
    /// `MPI_ERR_COMM` where it is an intercommunicator.
    pub(crate) fn check_intra(&self) -> Result {
        match self.sides() {
            None => Ok(()),
            Some(_) => Err(between_groups()),
        }
    }

    pub(crate) fn errhandler(&self) -> Handler {
        self.errhandler.lock().clone()
    }

    pub(crate) fn set_errhandler(&self, handler: Handler) {
        *self.errhandler.lock() = handler;
    }

    pub(crate) fn name(&self) -> MutexGuard<'_, String> {
        self.name.lock()
    }

    /// Returns what it is called where it is described: by its handle where it has no name.
    pub(crate) fn called(&self) -> String {
        match &**self.name() {
            "" => format!("communicator {:#x}", self.handle.0),
            name => name.to_owned(),
        }
    }

    /// Returns whether this process has the id for its context, or `peer` has it, where one is given.
    pub(crate) fn has_context(&self, peer: Option<Rank>, id: ContextId) -> bool {
        let Some(peer) = peer else {
            return self.team.context() == id;
        };
        let number = self.peers.member(peer);
        number.and_then(|number| self.peers.context(number)) == Some(id)
    }

    pub(crate) const fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    pub(crate) fn hints(&self) -> MutexGuard<'_, Entries> {
        self.hints.lock()
    }

    pub(crate) const fn buffer(&self) -> &Slot {
        &self.buffer
    }

    /// Returns the topology that it was made with, where there is one.
    pub(crate) fn topology(&self) -> Option<&Arc<Topology>> {
        self.topology.get()
    }

    /// Gives a new communicator its topology.
    pub(crate) fn set_topology(&self, topology: Arc<Topology>) {
        let set = self.topology.set(topology);
        debug_assert!(set.is_ok(), "a communicator has one topology");
    }

    /// Returns where a message to `rank` goes.
    ///
    /// # Errors
    /// `MPI_ERR_RANK` where there is no such rank.
    #[inline]
    pub(crate) fn peer(&self, rank: i32) -> Result<(Rank, ContextId)> {
        let members = self.peers();
        let number = usize::try_from(rank).unwrap_or(usize::MAX);
        let found = members.rank(number).zip(members.context(number));
        found.ok_or_else(|| self.no_rank(rank))
    }

    /// Returns what a receive from `rank` accepts.
    ///
    /// # Errors
    /// As [`peer`](Self::peer).
    #[inline]
    pub(crate) fn source(&self, rank: i32) -> Result<SourceSelector> {
        if rank == ANY_SOURCE {
            return Ok(SourceSelector::ANY);
        }
        let number = usize::try_from(rank).unwrap_or(usize::MAX);
        let found = self.peers().rank(number);
        found
            .map(SourceSelector::exact)
            .ok_or_else(|| self.no_rank(rank))
    }

    #[cold]
    fn no_rank(&self, rank: i32) -> Error {
        let size = self.peers().len();
        let text = format!("there is no rank {rank} in a group of {size}");
        Error::new(Class::Rank, text).on(On::Comm(self.handle))
    }

    /// Returns the peers, where they have other numbers than in the job.
    pub(crate) fn members(&self) -> Option<Arc<Members>> {
        self.members.clone()
    }
}

/// Returns the error of a call that there is for one group alone.
#[cold]
pub(crate) fn between_groups() -> Error {
    Error::new(Class::Comm, "the communicator is an intercommunicator")
}

/// Returns a status of the layer below with the source's number among `members`; the job's where there are none.
pub(crate) fn status(status: &pml::Status, members: Option<&Members>) -> Status {
    let number = match members {
        Some(members) => members
            .member(status.source)
            .map_or(ANY_SOURCE, |number| number as i32),
        None => status.source.as_u32() as i32,
    };
    let tag = status.tag.as_i32();
    Status::new(number, tag, status.length as u64).with_cancelled(status.cancelled)
}

/// Returns the tag of a message that is sent.
///
/// # Errors
/// `MPI_ERR_TAG` where it is none.
#[inline]
pub(crate) fn tag(number: i32) -> Result<Tag> {
    Tag::user(number).ok_or_else(|| no_tag(number))
}

/// Returns the tags that a receive accepts.
///
/// # Errors
/// As [`tag`].
#[inline]
pub(crate) fn tags(number: i32) -> Result<TagSelector> {
    match number {
        ANY_TAG => Ok(TagSelector::ANY),
        _ => Ok(TagSelector::exact(tag(number)?)),
    }
}

#[cold]
fn no_tag(number: i32) -> Error {
    Error::new(Class::Tag, format!("{number} is no tag"))
}
